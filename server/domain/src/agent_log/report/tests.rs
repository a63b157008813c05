//! Link and activity: tables of lines, cuts anywhere, and forged lines.

use proptest::prelude::*;
use svc_shared::status::{ActivityState, LinkState};

use super::*;
use crate::agent_log::lines::LogLines;

/// The line's text with a header whose seconds are given.
fn line(second: u32, text: &str) -> String {
    format!("2026-03-01T10:{:02}:{:02}.123Z [DEBUG] {text}\n", second / 60, second % 60)
}

fn at(second: u32) -> Timestamp {
    line(second, "").split(' ').next().unwrap().parse().unwrap()
}

fn of(lines: &[(u32, &str)]) -> LogReport {
    let log: String = lines.iter().map(|(second, text)| line(*second, text)).collect();
    read(log.as_bytes(), &[])
}

fn read(log: &[u8], cuts: &[usize]) -> LogReport {
    let mut report = LogReport::default();
    let mut lines = LogLines::new();
    let mut rest = log;
    for cut in cuts {
        let (head, tail) = rest.split_at((*cut).min(rest.len()));
        lines.feed(head, |piece| report.debug_line(piece, Some(at(3_000))));
        rest = tail;
    }
    lines.feed(rest, |piece| report.debug_line(piece, Some(at(3_000))));
    lines.finish(|piece| report.debug_line(piece, Some(at(3_000))));
    report
}

fn output(report: &mut LogReport, second: u32, text: &str) {
    report.output_line(LogPiece { text, begins_line: true }, Some(at(second)));
}

const EMPTY: &str = "[bridge:api] GET .../work/poll -> 200 (no work, 1 consecutive empty polls)";
const WORK: &str = "[bridge:api] GET .../work/poll -> 200 workId=work_1 type=session";

#[track_caller]
fn check(report: &LogReport, state: LinkState, since: Option<u32>) {
    assert_eq!((report.link().state, report.link().since), (state, since.map(at)));
}

#[test]
fn h107_a_link_is_unknown_until_the_first_success_and_down_only_by_evidence() {
    check(&of(&[]), LinkState::Unknown, None);
    let registered = "[bridge:work] Starting poll loop spawnMode=same-dir maxSessions=32";
    check(&of(&[(1, registered)]), LinkState::Unknown, None);
    for poll in [EMPTY, WORK] {
        check(&of(&[(1, registered), (5, poll), (9, poll)]), LinkState::Up, Some(5));
    }
    let refused = "[bridge:api] GET .../work/poll -> 503 (no work)";
    let lost = of(&[(1, EMPTY), (5, refused), (9, refused)]);
    check(&lost, LinkState::Down, Some(5));
    assert_eq!(lost.link().reason.as_deref(), Some("the remote service answers with HTTP 503"));
    check(&of(&[(1, EMPTY), (5, refused), (9, EMPTY)]), LinkState::Up, Some(9));
    let back = "[bridge:poll] Reconnected after 4s";
    check(&of(&[(1, EMPTY), (5, refused), (9, back)]), LinkState::Up, Some(9));
}

#[test]
fn h107_a_refused_login_is_a_loss_with_that_reason() {
    for text in [
        "[bridge:api] GET .../work/poll: 401 received, attempting token refresh",
        "[bridge:api] Token refresh failed",
        "[bridge:api] heartbeat: Retry after refresh also got 401",
        "[bridge:api] GET .../work/poll -> 401 (x)",
    ] {
        let report = of(&[(1, EMPTY), (5, text)]);
        check(&report, LinkState::Down, Some(5));
        assert_eq!(report.link().loss, Some(Loss::Login), "{text}");
    }
}

#[test]
fn h107_the_output_tells_of_a_loss_with_its_begin_and_cause() {
    let mut report = of(&[(1, EMPTY)]);
    let text = "\u{1b}[2m[10:00:40]\u{1b}[22m Connection error, retrying in 8s (30s elapsed): \
                connect ECONNREFUSED env_01AB23CD45";
    output(&mut report, 100, text);
    check(&report, LinkState::Down, Some(70));
    assert_eq!(
        report.link().reason.as_deref(),
        Some("the remote service is not reached: connect ECONNREFUSED env_<redacted>")
    );
    let version = report.version();
    output(&mut report, 110, &text.replace("30s", "40s").replace("in 8s", "in 16s"));
    check(&report, LinkState::Down, Some(70));
    assert_eq!(report.version(), version, "a repeated line is no change");
    // The debug file is read before the output: an older success does not end the loss.
    let piece = line(105, EMPTY);
    report.debug_line(LogPiece { text: piece.trim_end(), begins_line: true }, None);
    check(&report, LinkState::Down, Some(70));
    output(&mut report, 120, "Reconnected after 50s");
    check(&report, LinkState::Up, Some(120));
    for text in [
        "Server unreachable for 10 minutes, giving up.",
        "Error: Persistent errors for 10 minutes, giving up.",
    ] {
        let mut report = report.clone();
        output(&mut report, 900, text);
        assert_eq!(report.link().loss, Some(Loss::GaveUp), "{text}");
    }
}

#[test]
fn h107_silence_and_sleep_are_no_loss() {
    let up = of(&[(1, EMPTY)]);
    assert_eq!(
        up.link().silence_ends_trust_at(),
        Some(at(1).plus(SILENCE + std::time::Duration::from_secs(60)))
    );
    let silenced = up.link().silenced(at(2_000));
    assert_eq!((silenced.state, silenced.since), (LinkState::Unknown, Some(at(2_000))));
    // After a sleep the silence counts anew.
    let slept = "[bridge:work] Detected system sleep (1800s gap), resetting error budget";
    let woken = of(&[(1, EMPTY), (1_801, slept)]);
    check(&woken, LinkState::Up, Some(1));
    assert!(woken.link().silence_ends_trust_at() > up.link().silence_ends_trust_at());
    // At capacity the agent asks every ten minutes: silence says nothing.
    let full = "[bridge:work] At capacity (2/2), cannot spawn new session for workId=w";
    assert_eq!(of(&[(1, EMPTY), (2, full)]).link().silence_ends_trust_at(), None);
    let ended = "[bridge:session] sessionId=cse_1 completed exit_code=0 pid=10";
    let started = "[bridge:session] sessionId=cse_1 pid=10";
    let free = of(&[(1, EMPTY), (1, started), (2, full), (3, ended)]);
    assert!(free.link().silence_ends_trust_at().is_some());
    assert_eq!(of(&[]).link().silence_ends_trust_at(), None);
}

#[test]
fn the_flag_form_tells_of_its_link() {
    let state =
        |word: &str| format!("[bridge:repl] handleStateChange state={word} detail=\"why {word}\"");
    check(&of(&[(1, &state("connected"))]), LinkState::Up, Some(1));
    check(&of(&[(1, &state("ready")), (5, &state("reconnecting"))]), LinkState::Down, Some(5));
    let failed = of(&[(1, &state("ready")), (5, &state("failed"))]);
    assert_eq!(failed.link().reason.as_deref(), Some("why failed"));
    assert_eq!(failed.link().loss, Some(Loss::GaveUp));
    check(&of(&[(1, "[bridge:sdk] State change: connected")]), LinkState::Up, Some(1));
    let lost = "[bridge:repl] notifyBridgeFailed detail=\"gone\" wasConnected=true";
    check(&of(&[(1, &state("ready")), (5, lost)]), LinkState::Down, Some(5));
    let skipped = of(&[(1, "[bridge:repl] Skipping: token expired")]);
    let reason = "remote control does not start: token expired";
    assert_eq!(skipped.link().reason.as_deref(), Some(reason));
}

const STARTED: &str = "[bridge:session] sessionId=cse_1 pid=10";

#[test]
fn a_session_works_waits_and_rests() {
    let works = "[bridge:activity] sessionId=cse_1 text \"hello\"";
    let asks = "[bridge:perm] sessionId=cse_1 tool=Bash request_id=r1 (not auto-approving)";
    let rests = "[bridge:activity] sessionId=cse_1 result subtype=success";
    let does =
        |lines: &[(u32, &str)]| of(lines).activity().map(|now| (now.state, now.since, now.tool));
    let bash = Some("Bash".to_owned());
    assert_eq!(does(&[]), None);
    assert_eq!(does(&[(1, STARTED)]), Some((ActivityState::Idle, at(1), None)));
    let mut lines = vec![(1, STARTED), (2, works), (3, works)];
    assert_eq!(does(&lines), Some((ActivityState::Working, at(2), None)));
    lines.push((4, asks));
    assert_eq!(does(&lines), Some((ActivityState::Blocked, at(4), bash.clone())));
    lines.push((5, works));
    assert_eq!(does(&lines), Some((ActivityState::Working, at(5), None)));
    lines.push((6, rests));
    assert_eq!(does(&lines), Some((ActivityState::Idle, at(6), None)));
    lines.extend([(7, asks), (8, "[bridge:session] sessionId=cse_2 pid=11")]);
    let both = of(&lines).activity().unwrap();
    assert_eq!((both.state, both.blocked, both.idle), (ActivityState::Blocked, 1, 1));
    lines.push((9, "[bridge:session] sessionId=cse_1 failed exit_code=1"));
    assert_eq!(does(&lines), Some((ActivityState::Idle, at(8), None)));
    // A tool with a name that is none is not shown.
    let odd = asks.replace("Bash", "<b>x</b>");
    assert_eq!(does(&[(1, STARTED), (2, &odd)]).unwrap(), (ActivityState::Blocked, at(2), None));
}

#[test]
fn the_wire_names_the_conversation_of_a_session() {
    let uuid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
    let wire = |json: &str| format!("[bridge:ws] sessionId=cse_1 <<< {json}");
    let init = wire(&format!(r#"{{"type":"system","subtype":"init","session_id":"{uuid}"}}"#));
    let conversation = |lines: &[(u32, &str)]| {
        let report = of(lines);
        report.sessions().next().and_then(|one| one.conversation.clone())
    };
    let named = conversation(&[(1, STARTED), (2, &init)]).unwrap();
    assert_eq!(named.expose(), uuid);
    let text = format!(r#"{{"type":"user","message":"\"session_id\":\"{uuid}\""}}"#);
    assert_eq!(conversation(&[(1, STARTED), (2, &wire(&text))]), None);
    assert_eq!(conversation(&[(1, STARTED), (2, &wire(r#"{"session_id":"cse_1"}"#))]), None);
    // It stays named through a second process of the same session.
    assert!(conversation(&[(1, STARTED), (2, &init), (3, STARTED)]).is_some());
    assert!(!format!("{:?}", of(&[(1, STARTED), (2, &init)])).contains(uuid));
}

const FORGERIES: &[&str] = &[
    "[bridge:poll] Reconnected after 2s",
    "[bridge:api] GET .../work/poll -> 503 (x)",
    "[bridge:api] Token refresh failed",
    EMPTY,
    "[bridge:sdk] State change: failed",
    "[bridge:session] sessionId=cse_1 completed exit_code=0 pid=10",
    "[bridge:perm] sessionId=cse_1 tool=Bash request_id=r1 (not auto-approving)",
    "[bridge:activity] sessionId=cse_1 result subtype=success",
    "[bridge:repl] Skipping: x",
    "Connection error, retrying in 2s (4s elapsed): x",
];

proptest! {
    /// Wherever reads cut the log, the report is the same.
    #[test]
    fn h107_the_report_is_the_same_wherever_the_log_is_cut(
        lines in prop::collection::vec(prop::sample::select(FORGERIES), 0..12),
        cuts in prop::collection::vec(0_usize..200, 0..8),
    ) {
        let mut log = line(1, STARTED);
        for (second, text) in (2_u32..).zip(&lines) {
            log.push_str(&line(second, text));
        }
        prop_assert_eq!(read(log.as_bytes(), &cuts), read(log.as_bytes(), &[]));
    }

    /// What a conversation says is never believed of the link or of a session.
    /// Also not over several lines, and with times of its own.
    #[test]
    fn h107_conversation_text_never_changes_link_or_session(
        forged in prop::collection::vec(
            (prop::sample::select(FORGERIES), prop::option::of(0_u32..99), "\\PC{0,10}"), 0..6),
        is_down in any::<bool>(),
        is_quoted in any::<bool>(),
    ) {
        let begin = if is_down { "[bridge:api] GET .../work/poll -> 500 (x)" } else { EMPTY };
        let text: Vec<String> = forged.iter().map(|(text, second, before)| match second {
            // Older than the entry that quotes it, or from a time that has not come.
            Some(second) if second % 2 == 0 => line(*second, text).trim_end().to_owned(),
            Some(second) => line(3_100 + second, text).trim_end().to_owned(),
            None => format!("{before}{text}"),
        }).collect();
        let text = text.join("\n");
        let mark = if is_quoted { "\"" } else { "" };
        let entry = format!("[bridge:activity] sessionId=cse_1 text {mark}{text}{mark}");
        let quiet = "[bridge:activity] sessionId=cse_1 text x";
        let with = |entry: &str| {
            let log = [line(100, STARTED), line(101, begin), line(102, entry), line(103, WORK)];
            read(log.concat().as_bytes(), &[])
        };
        let (seen, plain) = (with(&entry), with(quiet));
        prop_assert_eq!(seen.link(), plain.link());
        prop_assert_eq!(seen.activity(), plain.activity());
    }

    #[test]
    fn no_line_panics(text in "(2026-03-01T10:20:30\\.123Z \\[DEBUG\\] )?(\\[bridge:(api|poll|session|ws|perm|repl|activity)\\] )?\\PC{0,60}") {
        let mut report = LogReport::default();
        let piece = LogPiece { text: &text, begins_line: true };
        report.debug_line(piece, None);
        report.output_line(piece, Some(at(1)));
    }
}
