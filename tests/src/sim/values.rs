//! The values knobs can take, each with the one text form it is written in.

use serde::Deserialize;
use serde_json::Value;

/// Which markers of a start appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ready {
    Ok,
    Never,
    NoPollLoop,
    NoEnv,
    NoSession,
}

/// A canned failure with the agent's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fatal {
    Login,
    Trust,
    BadArgument,
    Network,
    AlreadyServed,
    OrgPolicy,
    ConfigError,
}

/// How the extra processes of knob `children` behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChildMode {
    /// Ends with the bridge.
    SameGroup,
    /// Leaves the session and outlives the bridge.
    NewSession,
    /// Stays in the group, ignores everything that can be ignored, outlives the bridge.
    IgnoreSignals,
    /// Drops the launch id, leaves the session, ignores signals, outlives the bridge.
    /// Only its parent shows which bridge it belongs to.
    Unmarked,
    /// Drops the launch id and is no child of the bridge: its parent ended at once.
    /// Only the session shows which bridge it belongs to.
    Forsaken,
    /// Drops its whole environment and leaves the session; its parent ended at once.
    /// Only a control group shows which bridge it belongs to.
    Escaped,
}

impl ChildMode {
    /// The argument that tells the process how to behave.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Self::SameGroup => "same_group",
            Self::NewSession => "new_session",
            Self::IgnoreSignals => "ignore_signals",
            Self::Unmarked => "unmarked",
            Self::Forsaken => "forsaken",
            Self::Escaped => "escaped",
        }
    }

    pub(crate) fn from_argument(text: &str) -> Option<Self> {
        [
            Self::SameGroup,
            Self::NewSession,
            Self::IgnoreSignals,
            Self::Unmarked,
            Self::Forsaken,
            Self::Escaped,
        ]
        .into_iter()
        .find(|mode| mode.argument() == text)
    }
}

/// Terminal sequences in the debug file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ansi {
    None,
    /// Coloured text behind the tag.
    Color,
    /// A colour change inside every identifier.
    SplitIds,
    /// Title and hyperlink sequences around identifiers.
    Osc,
    /// A line that opens a sequence and never closes it.
    Unterminated,
}

/// What happens to the bridge's own debug file behind the reader's back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum LogTarget {
    File,
    TruncateAt(u64),
    DeleteAt(u64),
    RenameAt(u64),
}

impl TryFrom<String> for LogTarget {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "file" {
            return Ok(Self::File);
        }
        let parsed = text.split_once(':').and_then(|(what, ms)| {
            let ms = ms.parse().ok()?;
            match what {
                "truncate_at_ms" => Some(Self::TruncateAt(ms)),
                "delete_at_ms" => Some(Self::DeleteAt(ms)),
                "rename_at_ms" => Some(Self::RenameAt(ms)),
                _ => None,
            }
        });
        parsed.ok_or_else(|| {
            format!("{text:?} is not file, truncate_at_ms:N, delete_at_ms:N or rename_at_ms:N")
        })
    }
}

/// Which starts knob `poison_ms` applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PoisonOn {
    /// Only one that resumed a session from the pointer.
    Reattach,
    /// Every start.
    Any,
}

/// Variants of the pointer file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PointerKind {
    Ok,
    None,
    Garbage,
    Truncated,
    ForeignPid,
    OldBoot,
    NoPid,
    Huge,
    Mode000,
}

/// Variants of the entries in `sessions/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RegistryKind {
    Ok,
    Off,
    Garbage,
    Stale,
    WrongPid,
}

/// How making a session's worktree goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorktreeKind {
    Ok,
    Fail,
    Locked,
    Dirty,
}

/// What `agents --json` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentsOutput {
    Ok,
    Empty,
    Garbage,
    Object,
    Huge,
    MissingFields,
    Rc1,
    Hang,
}

/// The account's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Auth {
    ClaudeAi,
    ApiKey,
    OauthToken,
    LoggedOut,
    Garbage,
    Hang,
    /// A claude.ai login that ends this many milliseconds after the start.
    Expiring(u64),
}

impl Auth {
    /// Remote control accepts only a login with a claude.ai subscription.
    /// A status probe that fails says nothing about the login itself.
    pub(crate) fn allows_remote_control(self) -> bool {
        match self {
            Self::ClaudeAi | Self::Garbage | Self::Hang | Self::Expiring(_) => true,
            Self::ApiKey | Self::OauthToken | Self::LoggedOut => false,
        }
    }
}

impl TryFrom<String> for Auth {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let expiring = || text.strip_prefix("expiring:")?.parse().ok().map(Self::Expiring);
        match text.as_str() {
            "claude_ai" => Ok(Self::ClaudeAi),
            "api_key" => Ok(Self::ApiKey),
            "oauth_token" => Ok(Self::OauthToken),
            "logged_out" => Ok(Self::LoggedOut),
            "garbage" => Ok(Self::Garbage),
            "hang" => Ok(Self::Hang),
            _ => expiring().ok_or_else(|| {
                format!(
                    "{text:?} is not claude_ai, api_key, oauth_token, logged_out, garbage, hang \
                     or expiring:N"
                )
            }),
        }
    }
}

/// A signal a process ends itself with, by name or number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct ExitSignal(pub(crate) i32);

impl TryFrom<Value> for ExitSignal {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        use signal_hook::consts::{
            SIGABRT, SIGBUS, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGKILL, SIGQUIT, SIGSEGV, SIGTERM,
        };
        let known = [
            ("HUP", SIGHUP),
            ("INT", SIGINT),
            ("QUIT", SIGQUIT),
            ("ILL", SIGILL),
            ("ABRT", SIGABRT),
            ("BUS", SIGBUS),
            ("FPE", SIGFPE),
            ("KILL", SIGKILL),
            ("SEGV", SIGSEGV),
            ("TERM", SIGTERM),
        ];
        let found = known.iter().find(|(name, number)| match &value {
            Value::String(text) => text.strip_prefix("SIG").unwrap_or(text) == *name,
            other => other.as_i64() == Some(i64::from(*number)),
        });
        found.map(|(_, number)| Self(*number)).ok_or_else(|| {
            let names = known.map(|(name, _)| name).join(", ");
            format!("{value} is not one of {names} or its number")
        })
    }
}

/// How `auth login` goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Login {
    Ok,
    Reject,
    NoUrl,
    UrlThenExit,
    /// The address comes this many milliseconds late.
    SlowUrl(u64),
    HangAfterCode,
    /// Another address in front of the one to visit.
    DecoyUrl,
    /// The address with colours and inside a hyperlink.
    AnsiUrl,
}

impl TryFrom<String> for Login {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let slow = || text.strip_prefix("slow_url:")?.parse().ok().map(Self::SlowUrl);
        match text.as_str() {
            "ok" => Ok(Self::Ok),
            "reject" => Ok(Self::Reject),
            "no_url" => Ok(Self::NoUrl),
            "url_then_exit" => Ok(Self::UrlThenExit),
            "hang_after_code" => Ok(Self::HangAfterCode),
            "decoy_url" => Ok(Self::DecoyUrl),
            "ansi_url" => Ok(Self::AnsiUrl),
            _ => slow().ok_or_else(|| format!("{text:?} is no way a login can go")),
        }
    }
}

/// How a dispatch goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bg {
    Ok,
    /// Accepted, without saying which job it is.
    NoId,
    Reworded,
    Rc1,
    /// The job starts; the command never ends.
    Hang,
    /// Acknowledged, and nothing is left of it.
    AckThenLost,
}

/// One step of a job: `[milliseconds since the session's start, change]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct JobStep(pub(crate) u64, pub(crate) JobChange);

/// What a step changes in the job's record. States are free text.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct JobChange {
    pub(crate) state: Option<String>,
    pub(crate) tempo: Option<String>,
    pub(crate) needs: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) result: Option<String>,
}

/// One step of a worker's scripted conversation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Turn {
    /// Milliseconds after the turn before.
    #[serde(default)]
    pub(crate) after_ms: u64,
    /// `user`, `assistant`, or `permission` for a question to the remote client.
    pub(crate) role: Role,
    #[serde(default)]
    pub(crate) text: String,
    /// Name of the tool the turn uses or asks for.
    #[serde(default)]
    pub(crate) tool: Option<String>,
    /// Token counts as they stand in a transcript.
    #[serde(default)]
    pub(crate) usage: Option<Value>,
}

/// Who acts in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    User,
    Assistant,
    Permission,
}
