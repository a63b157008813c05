//! Keys about the agent and its bridges.

use crate::keys::terms::*;
use crate::keys::{choice, section};
use crate::schema::{ItemRule, Kind, Preset, Range, TextRule};
use crate::secret::Secret;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use svc_shared::status::{
    AfterReboot, HealMode, OnLimit, PermissionMode, RestartPolicy, ResumeMode, SpawnMode,
};

section! {
    /// The agent program and its bridges.
    Agent "claude." {
        /// The agent program: a name to look up in PATH, or a path.
        binary: String = PROGRAM => is("claude"), File Restart;
        /// Oldest supported agent version.
        min_version: String = LINE => is("2.1.145"), Basic Live;
        /// Interval of the cross-check with the agent's own list of sessions.
        agents_json_poll_interval as "agents_json_poll_interval_seconds": Duration
            = whole_seconds(1.0)
            => num(30), Basic Live;
        /// How long a bridge may take to register.
        startup_grace as "startup_grace_seconds": Duration = seconds(Range::above(0.0))
            => real(60.0), Basic Live;
        /// Answers the agent's one-time remote-control question before the first spawn.
        auto_enable_remote_control: bool = BOOL => ON, Basic Live;
        /// Lets all sessions of this machine ask for permissions in the inbox.
        approval_hook: bool = BOOL => OFF, Basic Live;
        /// Gives new sessions of bridges a recap of the newest earlier conversation.
        resume_recap: bool = BOOL => OFF, Basic Live;
        /// Length of that recap in characters; the newest turns are kept.
        resume_recap_max_chars: u32 = int(500) => num(8000), Basic Live;
        /// Mode of new bridges.
        launch_mode: ResumeMode = one_of(ResumeMode::WORDS) => is("standard"), Basic Live;
        /// What happens with bridges that a reboot of the machine ended.
        /// `offer` asks a person, `resume` resumes them when the service starts.
        after_reboot: AfterReboot = one_of(AfterReboot::WORDS) => is("offer"), Basic Live;
        /// Live terminal view of interactive sessions.
        pty_screen_enabled: bool = BOOL => OFF, Basic Live;
        /// Typing into an interactive session from the page; needs `pty_screen_enabled`.
        /// For full credentials only; the audit log names who types.
        terminal_input: bool = BOOL => OFF, File Restart;
        /// Directories after the inherited PATH of every bridge, in order.
        path_append: Vec<PathBuf> = list(ItemRule::Path) => EMPTY, File Restart;
        /// Puts the default node of nvm before the PATH of every bridge.
        node_from_nvm: bool = BOOL => ON, File Restart;
        /// Variables added to the environment of every bridge.
        /// Not scrubbed yet: see [`crate::is_scrubbed`].
        env: BTreeMap<String, Secret> = Kind::TextMap => Preset::EmptyMap, File Restart secret;
        /// Time between the orderly signal and the kill.
        stop_grace as "stop_grace_seconds": Duration
            = seconds(Range::at_least(0.5).up_to(120.0))
            => real(5.0), Basic Live;
        /// Own systemd scope per bridge: where possible, never, or always.
        /// `require` starts no bridge without one.
        scope: ScopeUse = one_of(ScopeUse::WORDS) => is("auto"), File Restart;
        /// What happens when a remote link is lost: nothing, a notice, or a restart.
        /// Other than `off` starts bridges with more output, which tells of a loss at once.
        heal: HealMode = one_of(HealMode::WORDS) => is("notify"), Basic Live;
    }
}

choice! {
    /// Whether bridges get a systemd scope of their own.
    ScopeUse {
        /// Where a manager is reachable.
        Auto = "auto",
        /// Never.
        Off = "off",
        /// Always: no bridge is started without one.
        Require = "require",
    }
}

section! {
    /// Defaults of a new bridge.
    InstanceDefaults "instance_defaults." {
        /// Where the sessions of a bridge work.
        spawn_mode: SpawnMode = one_of(SpawnMode::WORDS) => is("same-dir"), Basic Live;
        /// Permission mode handed to the agent.
        permission_mode: PermissionMode = one_of(PermissionMode::WORDS)
            => is("default"), Basic Live;
        /// Verbose agent output.
        verbose: bool = BOOL => OFF, Basic Live;
        /// Prefix of session names; null is the host name.
        session_name_prefix: Option<String> = text(TextRule::SessionName) => NULL, Basic Live;
        /// Sessions per bridge.
        capacity: u32 = int(1) => num(32), Basic Live;
        /// Most live bridges of the whole service; null is no limit.
        max_bridges: Option<u32> = int(1) => NULL, Basic Live;
        /// What a session does that stopped at a plan limit.
        on_limit: OnLimit = one_of(OnLimit::WORDS) => is("wait"), Basic Live;
    }
}

section! {
    /// Settings of one project.
    #[derive(Default)]
    Project "projects.<name>." {
        /// Whether this project may run without permission checks.
        allow_bypass_permissions: bool = BOOL => OFF, File Live;
        /// Restart policy of this project; null inherits restart.policy.
        restart: Option<RestartPolicy> = one_of(RestartPolicy::WORDS) => NULL, File Live;
    }
}

section! {
    /// Automatic restart.
    Restart "restart." {
        /// Default restart policy.
        policy: RestartPolicy = one_of(RestartPolicy::WORDS) => is("never"), Basic Live;
        /// Delay before the first restart.
        initial_delay as "initial_delay_seconds": Duration = seconds(Range::above(0.0))
            => real(2.0), Basic Live;
        /// Longest delay before a restart.
        /// Never below the first.
        max_delay as "max_delay_seconds": Duration = seconds(Range::above(0.0))
            => real(300.0), Basic Live;
        /// Factor on the delay after every restart.
        multiplier: f64 = float(Range::at_least(1.0).up_to(10.0)) => real(2.0), Basic Live;
        /// Random part of the delay, relative.
        jitter: f64 = float(Range::at_least(0.0).up_to(1.0)) => real(0.2), Basic Live;
        /// Crashes within the window after which restarts end.
        max_crashes: u32 = int(1) => num(5), Basic Live;
        /// Window in which crashes are counted.
        window as "window_seconds": Duration = seconds(Range::above(0.0))
            => real(600.0), Basic Live;
        /// Running time that resets the delay and the count.
        stable_after as "stable_after_seconds": Duration = seconds(Range::above(0.0))
            => real(120.0), Basic Live;
    }
}

section! {
    /// Limits of a bridge with everything it started.
    ///
    /// Measured only while `metrics.enabled` is on.
    Ceilings "ceilings." {
        /// Most processes of a bridge with everything it started; 0 is no limit.
        processes: u32 = int(0) => num(512), Basic Live;
        /// Most memory in MiB of a bridge with everything it started; 0 is no limit.
        /// Resident memory.
        memory_mb: u32 = int(0) => num(16_384), Basic Live;
        /// Most open files of a bridge with everything it started; 0 is no limit.
        open_files: u32 = int(0) => num(16_384), Basic Live;
        /// What happens above a ceiling.
        action: CeilingAction = one_of(CeilingAction::WORDS) => is("warn"), Basic Live;
    }
}

choice! {
    /// What happens above a ceiling.
    CeilingAction {
        /// The row says so.
        Warn = "warn",
        /// The bridge is stopped as well.
        Stop = "stop",
        /// The bridge is stopped and started again.
        Recycle = "recycle",
    }
}

section! {
    /// Bridge logs.
    Logs "logs." {
        /// Size in MiB at which a live bridge log rotates.
        bridge_log_max_size_mb: u32 = int(1) => num(10), Basic NextSpawn;
        /// Rotated generations kept per log.
        /// 0 only truncates.
        keep_rotated: u32 = int(0) => num(5), Basic NextSpawn;
        /// Writes a private raw copy and a redacted public log.
        redact_session_url: bool = BOOL => OFF, Basic NextSpawn;
        /// Removes colour from streamed lines.
        strip_ansi_in_stream: bool = BOOL => ON, Basic Live;
        /// Age in days after which log sets are deleted; 0 is never.
        retention_max_age_days: u32 = int(0) => num(30), Basic Live;
        /// Number of newest log sets kept; 0 is all.
        retention_max_files: u32 = int(0) => num(0), Basic Live;
        /// Size in MiB of all log sets; 0 is no limit.
        retention_max_total_mb: u32 = int(0) => num(0), Basic Live;
    }
}

section! {
    /// Resource use per row.
    Metrics "metrics." {
        /// Measures and shows the resource use of every bridge.
        enabled: bool = BOOL => ON, Basic Live;
        /// Divides processor use by the number of cores.
        normalize_cpu: bool = BOOL => OFF, Basic Live;
        /// Shows disk use.
        show_disk: bool = BOOL => ON, Basic Live;
        /// Time between the two measurements of a sample.
        sample_interval as "sample_interval_seconds": Duration
            = seconds(Range::above(0.0).up_to(2.0))
            => real(0.15), Basic Live;
        /// Interval at which the dashboard refreshes.
        poll as "poll_seconds": Duration = seconds(Range::at_least(1.0)) => real(4.0), Basic Live;
    }
}
