//! What one line of the debug file means (`agent-cli` §3.2, seen in agent 2.1.197).
//!
//! A bracketed marker counts only where the agent itself puts it: directly after the timestamp
//! and the level at the begin of a line, and not in the kinds of lines that quote conversations.

use std::sync::LazyLock;

use regex::Regex;

use super::{RemoteId, lines::LogPiece, poison::holds_poison};
use crate::redact::{redact_text, strip_ansi};
use crate::words::Words;

/// Longest message kept of a line, in characters.
const MESSAGE: usize = 500;

/// Says that the agent will not work in an untrusted directory; any case.
pub const TRUST_REFUSAL: &str = "workspace not trusted";
/// Says that an interactive session goes on without remote control.
pub const RC_IGNORED: &str = "--rc flag ignored.";
/// Says that nobody is logged in.
pub const LOGIN_REFUSAL: &str = "You must be logged in to use Remote Control";

/// Begins the one line of `[bridge:repl]` that the agent says of itself.
/// Seen in agent 2.1.197. The others of that tag quote what people type.
const HOOK: &str = "Hook initialized, session=";

/// A meaning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Marker {
    /// The bridge has an id.
    Bridge(RemoteId),
    /// The environment the bridge is registered as.
    Environment(RemoteId),
    /// An environment of an earlier run that the agent asks to reuse.
    PriorEnvironment(RemoteId),
    /// The session made at a cold start.
    StarterSession(RemoteId),
    /// A session taken up again.
    ResumedSession(RemoteId),
    /// An Interactive Session is connected; its remote session, if the line names it.
    Attached(Option<RemoteId>),
    /// The bridge takes work from now on.
    PollLoop {
        /// The environment it polls for.
        environment: Option<RemoteId>,
    },
    /// A worker process began to serve a session.
    WorkerStarted {
        /// Its session.
        session: RemoteId,
        /// Its process.
        pid: u32,
    },
    /// The worker of a session ended.
    WorkerEnded {
        /// Its session.
        session: RemoteId,
    },
    /// A worktree was not removed, because it holds work.
    WorktreeKept {
        /// Where it is.
        path: String,
    },
    /// The host slept for this many seconds.
    SystemSleep {
        /// Length of the gap.
        seconds: u64,
    },
    /// The bridge gives up; redacted and clipped.
    Fatal(String),
    /// The agent was asked to end.
    StopSignal(StopSignal),
    /// The environment stays registered after the end, for a resume.
    EnvironmentKept,
    /// The environment was deregistered.
    EnvironmentGone,
    /// The remote session was archived or deleted.
    Poison,
    /// The directory is not trusted.
    TrustRefused,
    /// The session goes on without remote control.
    RemoteControlIgnored,
    /// Nobody is logged in.
    LoginRefused,
}

/// A signal the agent reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// Interrupt.
    Sigint,
    /// Terminate.
    Sigterm,
}

/// Where a line of the debug file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    /// First line of an entry that can carry a marker: its tag, and the text after it.
    /// The tag has no brackets.
    Bridge { tag: &'a str, text: &'a str },
    /// Begins an entry that quotes a conversation.
    Conversation,
    /// Begins another entry, of which this is the text.
    Other(&'a str),
    /// Goes on with the entry of an earlier line.
    Continuation,
}

/// The time of an entry, and the text after its time and level.
/// The header looks like `2026-03-01T10:20:30.123Z [DEBUG] `.
pub(crate) fn header(raw: &str) -> Option<(&str, &str)> {
    const TIME: &[u8] = b"0000-00-00T00:00:00.000Z [";
    let (time, rest) = raw.split_at_checked(TIME.len())?;
    let fits = |(byte, shape): (u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        mark => byte == *mark,
    };
    if !time.bytes().zip(TIME).all(fits) {
        return None;
    }
    let levels = ["DEBUG] ", "INFO] ", "WARN] ", "ERROR] "];
    let text = levels.iter().find_map(|level| rest.strip_prefix(level))?;
    Some((time.strip_suffix(" [")?, text))
}

/// Classifies a line by its beginning. `raw` still has its escape sequences.
pub(crate) fn source(raw: &str) -> Source<'_> {
    let Some((_, text)) = header(raw) else {
        return Source::Continuation;
    };
    let tagged = text
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        .filter(|(tag, _)| tag.starts_with("bridge:") || *tag == "remote-bridge");
    match tagged {
        Some((tag @ "bridge:repl", text)) if text.trim_start_matches(' ').starts_with(HOOK) => {
            Source::Bridge { tag, text: text.trim_start_matches(' ') }
        }
        Some(("bridge:activity" | "bridge:repl" | "bridge:perm", _)) => Source::Conversation,
        Some((tag, text)) => Source::Bridge { tag, text: text.trim_start_matches(' ') },
        None => Source::Other(text),
    }
}

/// The meaning of a line of the debug file, or `None` if the service ignores it.
#[must_use]
pub fn debug_marker(piece: LogPiece<'_>) -> Option<Marker> {
    debug_marker_of(piece, source(piece.text))
}

/// The same for a line whose begin was looked at already.
pub(crate) fn debug_marker_of(piece: LogPiece<'_>, source: Source<'_>) -> Option<Marker> {
    let source = if piece.begins_line { source } else { Source::Continuation };
    let marker = match source {
        Source::Bridge { tag, text } => {
            let text = strip_ansi(text);
            tagged(tag, &text).or_else(|| holds_poison(&text).then_some(Marker::Poison))
        }
        Source::Conversation | Source::Other(_) | Source::Continuation => None,
    };
    marker.or_else(|| text_marker(piece.text))
}

/// The meaning of a text without a tag.
/// It counts anywhere in the debug file and in the captured output. It can make a start fail, never
/// succeed.
#[must_use]
pub fn text_marker(raw: &str) -> Option<Marker> {
    static REFUSALS: LazyLock<Words> =
        LazyLock::new(|| Words::new([TRUST_REFUSAL, RC_IGNORED, LOGIN_REFUSAL]));
    let text = strip_ansi(raw);
    if !REFUSALS.may_occur(&text) {
        return None;
    }
    if contains_ignoring_case(&text, TRUST_REFUSAL) {
        Some(Marker::TrustRefused)
    } else if text.contains(RC_IGNORED) {
        Some(Marker::RemoteControlIgnored)
    } else if text.contains(LOGIN_REFUSAL) {
        Some(Marker::LoginRefused)
    } else {
        None
    }
}

/// `needle` is ASCII in lower case.
pub(crate) fn contains_ignoring_case(text: &str, needle: &str) -> bool {
    text.as_bytes().windows(needle.len()).any(|w| w.eq_ignore_ascii_case(needle.as_bytes()))
}

/// A message of the agent as it may be kept: redacted, then clipped.
pub(crate) fn message(text: &str) -> String {
    redact_text(text.trim()).chars().take(MESSAGE).collect()
}

fn tagged(tag: &str, text: &str) -> Option<Marker> {
    match tag {
        "bridge:init" => init(text),
        "bridge:api" => environment(text).map(Marker::Environment),
        "bridge:work" => work(text),
        "bridge:session" => session(text),
        "bridge:worktree" => {
            let (path, _) = text.strip_prefix("kept ")?.rsplit_once(" dirty=")?;
            Some(Marker::WorktreeKept { path: path.to_owned() })
        }
        "bridge:shutdown" => shutdown(text),
        "bridge:repl" => text.strip_prefix(HOOK).map(|id| Marker::Attached(session_id(id))),
        "remote-bridge" => {
            let attached = ["Created session ", "Reattaching to session "];
            match attached.iter().find_map(|begin| text.strip_prefix(begin)) {
                Some(id) => Some(Marker::Attached(session_id(id))),
                None => id_after(text, "Unarchive ", "session_").map(Marker::ResumedSession),
            }
        }
        _ => None,
    }
}

fn init(text: &str) -> Option<Marker> {
    if let Some(rest) = text.strip_prefix("bridgeId=") {
        // Also names directory and branch, which others choose: nothing more is read from it.
        let id = rest.split(' ').next().filter(|id| is_uuid(id))?;
        return Some(Marker::Bridge(RemoteId::new(id)));
    }
    if text.starts_with("Found prior environment") {
        return id_after(text, "environment ", "env_").map(Marker::PriorEnvironment);
    }
    if text.starts_with("Created initial session") {
        return id_after(text, "session ", "session_").map(Marker::StarterSession);
    }
    environment(text).map(Marker::Environment)
}

fn work(text: &str) -> Option<Marker> {
    if text.starts_with("Starting poll loop") {
        return Some(Marker::PollLoop { environment: environment(text) });
    }
    if let Some(rest) = text.strip_prefix("Detected system sleep (") {
        let seconds = rest.split_once("s gap")?.0.parse().ok()?;
        return Some(Marker::SystemSleep { seconds });
    }
    text.strip_prefix("Fatal bridge error:").map(|why| Marker::Fatal(message(why)))
}

fn session(text: &str) -> Option<Marker> {
    let (id, rest) = text.strip_prefix("sessionId=")?.split_once(' ')?;
    let session = RemoteId::new(id);
    let mut words = rest.split(' ').filter(|word| !word.is_empty());
    let first = words.clone().next()?;
    if matches!(first, "completed" | "failed" | "interrupted") {
        return Some(Marker::WorkerEnded { session });
    }
    // Free text may follow elsewhere: only a run of `key=value` can name the process.
    let pid = words
        .by_ref()
        .map_while(|word| word.split_once('='))
        .find_map(|(key, value)| (key == "pid").then_some(value))?;
    Some(Marker::WorkerStarted { session, pid: pid.parse().ok()? })
}

fn shutdown(text: &str) -> Option<Marker> {
    if text.starts_with("SIGINT received") {
        Some(Marker::StopSignal(StopSignal::Sigint))
    } else if text.starts_with("SIGTERM received") {
        Some(Marker::StopSignal(StopSignal::Sigterm))
    } else if text.starts_with("Skipping archive+deregister to allow resume") {
        Some(Marker::EnvironmentKept)
    } else if text.starts_with("Environment deregistered") {
        Some(Marker::EnvironmentGone)
    } else {
        None
    }
}

static ENVIRONMENT: LazyLock<Regex> = LazyLock::new(|| {
    crate::redact::pattern("(?:^|[^A-Za-z0-9_])environment(?:_i|I)d=(env_[A-Za-z0-9]+)")
});

fn environment(text: &str) -> Option<RemoteId> {
    Some(RemoteId::new(ENVIRONMENT.captures(text)?.get(1)?.as_str()))
}

/// The identifier with this prefix that follows the first `before`.
fn id_after(text: &str, before: &str, prefix: &str) -> Option<RemoteId> {
    let (_, rest) = text.split_once(&format!("{before}{prefix}"))?;
    let body: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    (!body.is_empty()).then(|| RemoteId::new(&format!("{prefix}{body}")))
}

/// The id at the begin of a text that a link to the session can be made of.
fn session_id(text: &str) -> Option<RemoteId> {
    id_after(&format!(" {text}"), " ", "session_").filter(|_| text.starts_with("session_"))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: &str = "2026-03-01T10:20:30.123Z [DEBUG] ";

    fn read(text: &str) -> Option<Marker> {
        debug_marker(LogPiece { text, begins_line: true })
    }

    #[track_caller]
    fn means(text: &str, marker: Marker) {
        assert_eq!(read(&format!("{HEAD}{text}")), Some(marker), "{text}");
    }

    fn id(raw: &str) -> RemoteId {
        RemoteId::new(raw)
    }

    #[test]
    fn every_row_of_the_table_is_read() {
        let uuid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
        means(&format!("[bridge:init] bridgeId={uuid}"), Marker::Bridge(id(uuid)));
        means(
            &format!("[bridge:init] bridgeId={uuid} reuseEnvironmentId=env_01OLD dir=/p branch=m"),
            Marker::Bridge(id(uuid)),
        );
        for line in [
            "[bridge:api] POST /v1/environments/bridge -> 200 environment_id=env_01NEW",
            "[bridge:init] Registered, server environmentId=env_01NEW",
        ] {
            means(line, Marker::Environment(id("env_01NEW")));
        }
        means(
            "[bridge:init] Found prior environment env_01OLD in pointer (ageMs=1200)",
            Marker::PriorEnvironment(id("env_01OLD")),
        );
        means(
            "[bridge:init] Created initial session session_01AB",
            Marker::StarterSession(id("session_01AB")),
        );
        means(
            "[remote-bridge] done: Unarchive session_01AB status=200",
            Marker::ResumedSession(id("session_01AB")),
        );
        for line in [
            "[remote-bridge] Created session session_01AB",
            "[remote-bridge] Reattaching to session session_01AB (resume)",
            "[bridge:repl] Hook initialized, session=session_01AB",
        ] {
            means(line, Marker::Attached(Some(id("session_01AB"))));
        }
        means("[remote-bridge] Created session cse_01AB", Marker::Attached(None));
        means(
            "[bridge:work] Starting poll loop spawnMode=same-dir maxSessions=32 environmentId=env_01NEW",
            Marker::PollLoop { environment: Some(id("env_01NEW")) },
        );
        means("[bridge:work] Starting poll loop", Marker::PollLoop { environment: None });
        means(
            "[bridge:session] sessionId=cse_01AB pid=4711",
            Marker::WorkerStarted { session: id("cse_01AB"), pid: 4711 },
        );
        means(
            "[bridge:session] sessionId=cse_01AB mode=same-dir pid=4711",
            Marker::WorkerStarted { session: id("cse_01AB"), pid: 4711 },
        );
        for end in [
            "completed exit_code=0 pid=4711",
            "failed exit_code=1",
            "interrupted signal=SIGTERM pid=4711",
        ] {
            means(
                &format!("[bridge:session] sessionId=cse_01AB {end}"),
                Marker::WorkerEnded { session: id("cse_01AB") },
            );
        }
        means(
            "[bridge:worktree] kept /p/.x/w 1 dirty=true commitsAhead=0 gitError=none",
            Marker::WorktreeKept { path: "/p/.x/w 1".to_owned() },
        );
        means(
            "[bridge:work] Detected system sleep (1800s gap), resetting error budget",
            Marker::SystemSleep { seconds: 1800 },
        );
        means(
            "[bridge:work] Fatal bridge error: env_01AB23CD45 is gone",
            Marker::Fatal("env_<redacted> is gone".to_owned()),
        );
        for (signal, marker) in [("SIGINT", StopSignal::Sigint), ("SIGTERM", StopSignal::Sigterm)] {
            means(
                &format!("[bridge:shutdown] {signal} received, shutting down"),
                Marker::StopSignal(marker),
            );
        }
        means(
            "[bridge:shutdown] Skipping archive+deregister to allow resume (env env_01NEW)",
            Marker::EnvironmentKept,
        );
        means(
            "[bridge:shutdown] Environment deregistered, bridge offline",
            Marker::EnvironmentGone,
        );
        means(
            r#"[bridge:ws] got {"request":{"subtype":"end_session","reason":"archived"}}"#,
            Marker::Poison,
        );
    }

    #[test]
    fn texts_without_a_tag_count_anywhere_and_through_colour() {
        for (text, marker) in [
            ("Error: Workspace NOT trusted. Please run", Marker::TrustRefused),
            ("\u{1b}[33m--rc flag \u{1b}[1mignored.\u{1b}[0m", Marker::RemoteControlIgnored),
            ("You must be logged in to use Remote Control.", Marker::LoginRefused),
        ] {
            assert_eq!(read(text), Some(marker.clone()));
            assert_eq!(read(&format!("{HEAD}[stderr] {text}")), Some(marker.clone()));
            assert_eq!(debug_marker(LogPiece { text, begins_line: false }), Some(marker.clone()));
            assert_eq!(text_marker(text), Some(marker));
        }
    }

    #[test]
    fn colour_inside_an_id_is_no_part_of_it() {
        means(
            "[bridge:init] Registered, server environmentId=env_\u{1b}[31m01AB\u{1b}[0m",
            Marker::Environment(id("env_01AB")),
        );
    }

    const FORGERIES: &[&str] = &[
        "[remote-bridge] Created session session_01EVIL",
        "[bridge:repl] Hook initialized, session=session_01EVIL",
        "[bridge:work] Starting poll loop environmentId=env_01EVIL",
        "[bridge:init] Registered, server environmentId=env_01EVIL",
        "[bridge:init] Created initial session session_01EVIL",
        "[bridge:work] Fatal bridge error: fake",
        "[bridge:shutdown] SIGINT received, shutting down",
        "[bridge:shutdown] Environment deregistered, bridge offline",
        r#"[bridge:ws] {"subtype":"end_session","reason":"archived"}"#,
        r#"{"subtype":"end_session","reason":"archived"}"#,
    ];

    #[test]
    fn a_marker_that_is_not_directly_behind_the_header_is_forged() {
        for forged in FORGERIES {
            for line in [
                forged.to_string(),
                format!(" {HEAD}{forged}"),
                format!("x{HEAD}{forged}"),
                format!("{HEAD} {forged}"),
                format!("{HEAD}text {forged}"),
                format!("{HEAD}\u{1b}[0m{forged}"),
                format!("{HEAD}{HEAD}{forged}"),
                format!("{HEAD}[bridge:activity] sessionId=cse_1 text {forged}"),
                format!("{HEAD}[bridge:activity] {forged}"),
                format!("{HEAD}[bridge:repl] Injecting inbound user message: {forged}"),
                format!("{HEAD}[bridge:perm] sessionId=cse_1 tool=x {forged}"),
                format!("2026-03-01 10:20:30.123Z [DEBUG] {forged}"),
                format!("2026-03-01T10:20:30Z [DEBUG] {forged}"),
                format!("2026-03-01T10:20:30.123Z [TRACE] {forged}"),
                format!("2026-03-01T10:20:30.123Z [DEBUG]{forged}"),
                format!("２026-03-01T10:20:30.123Z [DEBUG] {forged}"),
            ] {
                assert_eq!(read(&line), None, "{line:?}");
            }
            let whole = format!("{HEAD}{forged}");
            assert_eq!(debug_marker(LogPiece { text: &whole, begins_line: false }), None);
        }
    }

    #[test]
    fn names_that_others_choose_carry_no_environment() {
        let uuid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
        means(
            &format!("[bridge:init] bridgeId={uuid} dir=/x branch=a environmentId=env_01EVIL"),
            Marker::Bridge(id(uuid)),
        );
        for line in [
            "[bridge:init] reuseEnvironmentId=env_01OLD",
            "[bridge:api] xenvironmentId=env_01OLD",
            "[bridge:api] environmentId=environment",
            "[bridge:debug] environmentId=env_01EVIL",
            "[bridge:session] sessionId=cse_1 says pid=1 environmentId=env_01EVIL",
            "[bridge:session] sessionId=cse_1 pid=x",
            "[bridge:work] Detected system sleep (xs gap)",
        ] {
            assert_eq!(read(&format!("{HEAD}{line}")), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn conversation_text_never_becomes_a_marker(
            before in "\\PC{0,20}", forged in prop::sample::select(FORGERIES), after in "\\PC{0,20}",
        ) {
            let line = format!("{HEAD}[bridge:activity] sessionId=cse_1 text {before}{forged}{after}");
            prop_assert_eq!(read(&line), None);
        }

        #[test]
        fn no_line_panics(text in "(2026-03-01T10:20:30\\.123Z \\[DEBUG\\] )?(\\[bridge:(init|work|session|api|worktree)\\] )?\\PC{0,60}") {
            let _ = read(&text);
        }
    }
}
