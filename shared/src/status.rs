//! The words of states and modes, as they stand on the wire and in the database.

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "openapi", derive(poem_openapi::Enum))]
        pub enum $name {
            $(
                $(#[$vdoc])*
                #[serde(rename = $word)]
                #[cfg_attr(feature = "openapi", oai(rename = $word))]
                $variant,
            )+
        }

        impl $name {
            /// Every value, in the order of the documents.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Every word, in the same order.
            pub const WORDS: &[&str] = &[$($word),+];

            /// The word on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::status::UnknownWord;
            fn from_str(raw: &str) -> Result<Self, $crate::status::UnknownWord> {
                match raw {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::status::UnknownWord { allowed: Self::WORDS }),
                }
            }
        }
    };
}

/// A text that is none of the words of an enumeration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("use one of {}", allowed.join(", "))]
pub struct UnknownWord {
    /// The words that would have been accepted.
    pub allowed: &'static [&'static str],
}

pub(crate) use words;

words! {
    /// How the terminal of a session stands.
    ScreenState {
        /// The program was started and its screen is not there yet.
        Starting = "starting",
        /// The program runs and is not connected yet.
        Running = "running",
        /// The program is connected.
        Ready = "ready",
        /// The program has ended: the last screen.
        Exited = "exited",
        /// The program asks a question that cannot be answered from here.
        Error = "error",
        /// There is no terminal to read from.
        Unavailable = "unavailable",
    }
}

words! {
    /// Public status of a bridge.
    BridgeStatus {
        /// Launched, not yet seen ready.
        Starting = "starting",
        /// Seen ready, and its process is alive.
        Running = "running",
        /// Being stopped; Direct Sessions only.
        Stopping = "stopping",
        /// Ended on purpose, with its host, or by itself as planned.
        Stopped = "stopped",
        /// Ended unexpectedly after it was ready.
        Crashed = "crashed",
        /// Never became ready.
        Error = "error",
    }
}

words! {
    /// What resuming restores; fixed at launch.
    ResumeMode {
        /// Server Mode.
        Standard = "standard",
        /// Interactive Session.
        Pty = "pty",
    }
}

words! {
    /// Where the sessions of a bridge work.
    SpawnMode {
        /// In the project directory itself.
        SameDir = "same-dir",
        /// In a git worktree per session.
        Worktree = "worktree",
        /// One session; the bridge ends with it. Server Mode only.
        Session = "session",
    }
}

words! {
    /// Permission mode handed to the agent.
    PermissionMode {
        /// Asks before tools.
        Default = "default",
        /// Plans only.
        Plan = "plan",
        /// Edits without asking.
        AcceptEdits = "acceptEdits",
        /// The agent decides what to ask.
        Auto = "auto",
        /// Never asks; refuses what would need an answer.
        DontAsk = "dontAsk",
        /// Runs everything without asking.
        BypassPermissions = "bypassPermissions",
        /// No flag: the agent's own settings decide.
        Inherit = "inherit",
    }
}

words! {
    /// Inert option kept for compatibility.
    SandboxMode {
        /// The only effective value.
        Default = "default",
        /// Accepted, has no effect.
        On = "on",
        /// Accepted, has no effect.
        Off = "off",
    }
}

words! {
    /// Kind of launch, as `--mode` and the field `mode` name it.
    LaunchMode {
        /// Server Mode.
        Standard = "standard",
        /// Interactive Session.
        Pty = "pty",
        /// Direct Session.
        Hosted = "hosted",
    }
}

words! {
    /// How a session is driven.
    Channel {
        /// A bridge that a remote client drives.
        RemoteControl = "remote-control",
        /// A session driven through the hosted-session daemon.
        Hosted = "hosted",
    }
}

words! {
    /// Progress of one generation of a bridge.
    Phase {
        /// Recorded, not yet known to run.
        Launching = "launching",
        /// Runs, has not registered yet.
        Registering = "registering",
        /// Registered.
        Ready = "ready",
        /// A stop was asked for.
        Stopping = "stopping",
        /// No process.
        Exited = "exited",
    }
}

words! {
    /// How this service came to the bridge.
    Origin {
        /// Launched by it.
        Spawned = "spawned",
        /// Taken over from another process, or outlived a restart.
        Adopted = "adopted",
        /// Found running without a record.
        Rediscovered = "rediscovered",
    }
}

words! {
    /// Whether the agent may work in a directory.
    TrustState {
        /// Granted.
        Trusted = "trusted",
        /// Not granted.
        Untrusted = "untrusted",
    }
}

words! {
    /// What a row of the history tells.
    History {
        /// A generation was started.
        Spawned = "spawned",
        /// It became ready.
        Ready = "ready",
        /// It ended other than by a crash.
        Ended = "ended",
        /// It crashed.
        Crashed = "crashed",
        /// It lost its remote link while it ran.
        LinkLost = "link_lost",
        /// The link came back.
        LinkRestored = "link_restored",
    }
}

words! {
    /// Why the last generation of a bridge ended (`agent-cli` §11).
    ExitReason {
        /// The agent is not logged in.
        LoginRequired = "login_required",
        /// The account cannot use remote control.
        RemoteControlUnavailable = "remote_control_unavailable",
        /// The directory is not trusted.
        TrustRequired = "trust_required",
        /// No worktree could be made.
        WorktreeUnavailable = "worktree_unavailable",
        /// The agent refused an argument.
        BadArgument = "bad_argument",
        /// The folder is served by another environment.
        AlreadyServed = "already_served",
        /// The remote service refused the registration.
        RegistrationFailed = "registration_failed",
        /// No way to the remote service.
        Network = "network",
        /// The agent's own configuration is broken.
        ConfigError = "config_error",
        /// The remote session was archived or deleted, twice.
        PoisonedSession = "poisoned_session",
        /// Killed for memory.
        OutOfMemory = "out_of_memory",
        /// Killed by a signal that was not ours.
        Killed = "killed",
        /// Asked to end by a signal that was not ours.
        ExternalStop = "external_stop",
        /// Ended with code 0.
        CleanExit = "clean_exit",
        /// Ended with another code and no known words.
        Unknown = "unknown",
        /// A deliberate stop.
        OperatorStop = "operator_stop",
        /// Single-session bridge: its session ended.
        SessionEnded = "session_ended",
        /// Not ready within the grace period.
        NotRegistered = "not_registered",
        /// The agent program is gone.
        BinaryNotFound = "binary_not_found",
        /// The agent program could not be started.
        ExecFailed = "exec_failed",
        /// The log files could not be made.
        LogCreateFailed = "log_create_failed",
        /// No pseudo-terminal.
        NoPty = "no_pty",
        /// The host was restarted.
        HostRestarted = "host_restarted",
        /// Ended while no service watched.
        DiedUnsupervised = "died_unsupervised",
        /// The service ended in the middle of the launch.
        LaunchInterrupted = "launch_interrupted",
        /// The agent was never set up.
        OnboardingRequired = "onboarding_required",
        /// The keeper process was lost.
        KeeperLost = "keeper_lost",
    }
}

words! {
    /// Why a Resume would be declined or refused now.
    ResumeBlocked {
        /// Another Server Mode bridge of the project is live.
        StandardAlreadyLive = "standard_already_live",
        /// Its process is still alive.
        StillLive = "still_live",
        /// Nothing was saved that could be resumed.
        NoSession = "no_session",
        /// What was saved is malformed.
        BadSessionRef = "bad_session_ref",
        /// The project directory is gone.
        UnknownProject = "unknown_project",
        /// The directory is not trusted.
        NotTrusted = "not_trusted",
        /// The stored permission mode is no longer allowed.
        BypassForbidden = "bypass_forbidden",
        /// The daemon of hosted sessions is not connected, or this build has none.
        HostedUnavailable = "hosted_unavailable",
        /// The surviving process must be killed first.
        Orphan = "orphan",
        /// Automatic and manual actions are suspended.
        Quarantined = "quarantined",
        /// The session works in a git worktree, and the project is no repository now.
        NotGit = "not_git",
        /// No terminal can be made on this machine.
        PtyUnavailable = "pty_unavailable",
    }
}

words! {
    /// Why nothing new was launched.
    NotCreated {
        /// The project's one Server Mode bridge is live.
        StandardAlreadyLive = "standard_already_live",
        /// Found running from elsewhere; now managed.
        ExternalReattached = "external_reattached",
        /// The target of the resume is itself live.
        AlreadyRunning = "already_running",
    }
}

words! {
    /// What kind of suspension holds a row.
    QuarantineKind {
        /// Doubt about the process: no signals, no deletes.
        Identity = "identity",
        /// The restart policy gave up.
        CrashLoop = "crash-loop",
    }
}

words! {
    /// Which doubt holds a row (`agent-cli` §9.4).
    QuarantineCode {
        /// The process table could not be read, three times.
        IdentityUnknown = "identity_unknown",
        /// Two rows name one process.
        IdentityConflict = "identity_conflict",
        /// Alive after the kill signal.
        Unkillable = "unkillable",
        /// The keeper speaks no common protocol version.
        KeeperVersion = "keeper_version",
        /// A stored field has a wrong type or an unknown word.
        RowCorrupt = "row_corrupt",
        /// The process belongs to another user.
        ForeignOwner = "foreign_owner",
        /// A pointer names a live process of another project.
        PointerConflict = "pointer_conflict",
    }
}

words! {
    /// Restart policy of a row.
    RestartPolicy {
        /// Nothing is restarted automatically.
        Never = "never",
        /// After a crash.
        OnCrash = "on-crash",
        /// After every unexpected end.
        Always = "always",
    }
}

words! {
    /// What happens with a bridge that a reboot of the machine ended.
    AfterReboot {
        /// A person is offered to restore it.
        Offer = "offer",
        /// It is resumed when the service starts.
        Resume = "resume",
        /// Nothing.
        Never = "never",
    }
}

words! {
    /// Where the restart policy stands.
    RestartState {
        /// Nothing pending.
        Idle = "idle",
        /// A restart is scheduled.
        Waiting = "waiting",
        /// Gave up.
        Quarantined = "quarantined",
    }
}

words! {
    /// Verdict of one check.
    CheckStatus {
        /// Fine.
        Ok = "ok",
        /// Worth a look.
        Warn = "warn",
        /// Blocks.
        Fail = "fail",
    }
}

words! {
    /// Which link a bridge offers.
    ConnectKind {
        /// Straight to the session.
        Session = "session",
        /// To the environment's composer.
        Environment = "environment",
    }
}

words! {
    /// What is known about the remote link of a bridge (`agent-cli` §3.5).
    LinkState {
        /// The remote service answered at the last sign.
        Up = "up",
        /// Evidence says that the remote service is not reached.
        Down = "down",
        /// Nothing is known: no success yet, or silence for too long.
        Unknown = "unknown",
    }
}

words! {
    /// What a session does (`agent-cli` §3.5).
    ActivityState {
        /// It works.
        Working = "working",
        /// It waits for a permission.
        Blocked = "blocked",
        /// It asks a person something.
        Question = "question",
        /// It does nothing, and nothing is in its way.
        Idle = "idle",
        /// It stopped at a plan limit.
        Limit = "limit",
        /// The agent is signed out of its account.
        LoggedOut = "logged_out",
    }
}

words! {
    /// How sure a value is.
    Confidence {
        /// The agent says so itself, or waits for us.
        Certain = "certain",
        /// It follows from what else is known.
        Likely = "likely",
    }
}

words! {
    /// Where a value about link or activity was read.
    EvidenceSource {
        /// A line of the agent's debug file.
        DebugFile = "debug_file",
        /// A line of the captured output.
        Output = "output",
        /// Nothing was written for too long.
        Silence = "silence",
        /// A record of the agent's transcript.
        Transcript = "transcript",
        /// What the agent of a Direct Session writes to us.
        Stream = "stream",
        /// The agent's hook asked us.
        Hook = "hook",
        /// The entry of the process in the agent's registry of sessions.
        Process = "process",
        /// The file of a background job.
        Job = "job",
        /// What the agent answers about its account.
        Account = "account",
    }
}

words! {
    /// What is done about a lost remote link.
    HealMode {
        /// Nothing; the link is still shown.
        Off = "off",
        /// One notice for each loss.
        Notify = "notify",
        /// A notice, and one restart once the agent has given up.
        Restart = "restart",
    }
}

words! {
    /// A usage limit of the account's plan.
    PlanLimitKind {
        /// The one that lasts a few hours.
        Session = "session",
        /// The one of a week.
        Weekly = "weekly",
        /// Another one, or one that the agent did not name.
        Other = "other",
    }
}

words! {
    /// What a session does that stopped at a plan limit.
    OnLimit {
        /// It waits for a person.
        Wait = "wait",
        /// It goes on once, after the limit was reset.
        Continue = "continue",
    }
}

words! {
    /// Where a launch stands that waits for the reset of a plan limit.
    PlannedState {
        /// It waits.
        Waiting = "waiting",
        /// It is being started.
        Begun = "begun",
        /// It was started.
        Started = "started",
        /// Nothing was started.
        Failed = "failed",
        /// Somebody took it back.
        Cancelled = "cancelled",
    }
}

words! {
    /// What became of a conversation whose process died.
    StrandedState {
        /// What is typed into it reaches nobody.
        Stranded = "stranded",
        /// A new session goes on with it.
        Continued = "continued",
        /// Somebody decided to leave it.
        Dismissed = "dismissed",
    }
}

impl BridgeStatus {
    /// Whether a process is expected to exist.
    #[must_use]
    pub fn is_live(self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Stopping => true,
            Self::Stopped | Self::Crashed | Self::Error => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_in_text_and_json() {
        for mode in PermissionMode::ALL {
            assert_eq!(mode.as_str().parse::<PermissionMode>(), Ok(*mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
        }
        assert_eq!(
            "bypass".parse::<SpawnMode>().unwrap_err().to_string(),
            "use one of same-dir, worktree, session"
        );
    }
}
