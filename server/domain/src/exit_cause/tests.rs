//! Tests of the table of causes, and of what a detail may show.

use proptest::prelude::*;

use super::*;

const HEAD: &str = "2026-03-01T10:20:30.123Z [DEBUG] ";

fn code(code: i32) -> Ended {
    Ended { code: Some(code), ..Ended::default() }
}

fn signal(signal: i32) -> Ended {
    Ended { signal: Some(signal), ..Ended::default() }
}

fn cause(ended: Ended, debug: &str, output: &str) -> ExitCause {
    exit_cause(ended, LastWords { debug: debug.as_bytes(), output: output.as_bytes() })
}

#[track_caller]
fn check(ended: Ended, debug: &str, output: &str, reason: ExitReason) {
    assert_eq!(cause(ended, debug, output).reason, reason, "{debug:?} {output:?}");
}

/// A text of each row of the table that is known by a text.
const TEXTS: &[(&str, ExitReason)] = &[
    ("Error: You must be logged in to use Remote Control.", ExitReason::LoginRequired),
    ("--rc flag ignored.", ExitReason::RemoteControlUnavailable),
    (
        "Remote Control environments are not available for your account",
        ExitReason::RemoteControlUnavailable,
    ),
    (
        "Remote Control is disabled by your organization's policy.",
        ExitReason::RemoteControlUnavailable,
    ),
    ("Error: Workspace not trusted. Please run x", ExitReason::TrustRequired),
    ("accept the trust dialog first", ExitReason::TrustRequired),
    ("Error: Worktree mode requires a git repository", ExitReason::WorktreeUnavailable),
    (
        "Error creating worktree: Failed to resolve base branch \"HEAD\"",
        ExitReason::WorktreeUnavailable,
    ),
    ("Error: Unknown argument: --frob", ExitReason::BadArgument),
    ("--spawn requires one of: same-dir", ExitReason::BadArgument),
    ("Invalid permission mode 'x'", ExitReason::BadArgument),
    ("error: option '--capacity <n>' is invalid", ExitReason::BadArgument),
    ("error: unknown option '--frob'", ExitReason::BadArgument),
    ("POST /v1/environments/bridge -> 409 already served", ExitReason::AlreadyServed),
    (
        "Error: This folder is already served by another Claude Code on this device. Stop it first.",
        ExitReason::AlreadyServed,
    ),
    ("Error: Registration: Failed with status 409: already served", ExitReason::AlreadyServed),
    ("Error: Registration: Failed with status 500", ExitReason::RegistrationFailed),
    ("Bridge registration failed: 403", ExitReason::RegistrationFailed),
    ("POST /v1/environments/bridge -> 503 x", ExitReason::RegistrationFailed),
    ("getaddrinfo ENOTFOUND api.example", ExitReason::Network),
    ("connect ECONNREFUSED 127.0.0.1:1", ExitReason::Network),
    ("ETIMEDOUT", ExitReason::Network),
    ("Unable to connect to Anthropic services", ExitReason::Network),
    ("Server unreachable for 10 minutes, giving up.", ExitReason::Network),
    ("Configuration error in /home/x/.claude.json", ExitReason::ConfigError),
    ("ConfigParseError: JSON Parse error: Expected '}'", ExitReason::ConfigError),
];

#[test]
fn every_text_of_the_table_is_found_in_output_and_debug_file_and_shown() {
    for (text, reason) in TEXTS {
        for (debug, output) in [
            (String::new(), format!("\u{1b}[31m{text}\u{1b}[0m\r\n")),
            (format!("{HEAD}{text}\n{HEAD}other\n"), String::new()),
            (format!("{HEAD}[stderr] two lines\n{text}"), "banner\n".to_owned()),
        ] {
            check(code(1), &debug, &output, *reason);
            let detail = cause(code(1), &debug, &output).detail.unwrap();
            assert!(detail.contains(text), "{detail:?}");
        }
    }
}

#[test]
fn a_text_that_may_not_be_shown_is_evidence_all_the_same() {
    let found = cause(code(1), "", "{\"authError\":\"connect ECONNREFUSED 10.0.0.1\"}");
    assert_eq!(found.reason, ExitReason::Network);
    assert_eq!(found.detail.as_deref(), Some("{\"authError\":\"<redacted>\"}"));
}

#[test]
fn the_first_row_of_the_table_wins() {
    let all: Vec<&str> = TEXTS.iter().rev().map(|(text, _)| *text).collect();
    check(code(1), "", &all.join("\n"), ExitReason::LoginRequired);
    let network_and_argument = "ETIMEDOUT\nUnknown argument: x";
    check(code(1), network_and_argument, "", ExitReason::BadArgument);
}

#[test]
fn a_registration_that_was_answered_is_no_failure() {
    check(code(1), "POST /v1/environments/bridge -> 200 x", "", ExitReason::Unknown);
    check(code(1), "POST /v1/environments/bridge -> 4", "", ExitReason::Unknown);
    check(code(1), "409 served", "already served", ExitReason::Unknown);
}

#[test]
fn poison_is_a_cause_and_a_quotation_of_it_is_not() {
    let poison = r#"{"subtype":"end_session","reason":"archived"}"#;
    check(code(1), &format!("{HEAD}[bridge:ws] {poison}\n"), "", ExitReason::PoisonedSession);
    check(code(1), &format!("{HEAD}[bridge:activity] {poison}\n"), "", ExitReason::Unknown);
    check(code(1), "", poison, ExitReason::Unknown);
}

#[test]
fn f45_f80_a_foreign_signal_is_decisive() {
    check(signal(9), "ECONNREFUSED", "", ExitReason::Killed);
    check(signal(15), "", "", ExitReason::Killed);
    check(signal(6), "", "Unknown argument: x", ExitReason::Killed);
    let for_memory = Ended { oom_kill: true, ..signal(9) };
    check(for_memory, "ECONNREFUSED", "", ExitReason::OutOfMemory);
    // Memory ran out for a child; the bridge itself ended in another way.
    check(Ended { oom_kill: true, ..signal(15) }, "", "", ExitReason::Killed);
    check(Ended { oom_kill: true, ..code(1) }, "", "", ExitReason::Unknown);
}

#[test]
fn f45_a_reported_signal_that_was_not_ours_is_an_external_stop() {
    let log = |signal| {
        format!("{HEAD}ECONNREFUSED\n{HEAD}[bridge:shutdown] {signal} received, shutting down\n")
    };
    check(code(0), &log("SIGINT"), "", ExitReason::ExternalStop);
    check(code(0), &log("SIGTERM"), "", ExitReason::ExternalStop);
    let ours = Ended { our_signal: true, ..code(0) };
    check(ours, &format!("{HEAD}[bridge:shutdown] SIGINT received\n"), "", ExitReason::CleanExit);
    let killed_by_us = Ended { our_signal: true, ..signal(9) };
    check(killed_by_us, "", "Unknown argument: x", ExitReason::BadArgument);
    check(killed_by_us, "", "", ExitReason::Unknown);
    let forged = format!("{HEAD}[bridge:activity] text [bridge:shutdown] SIGINT received\n");
    check(code(0), &forged, "", ExitReason::CleanExit);
}

#[test]
fn without_words_the_code_decides() {
    check(code(0), "", "", ExitReason::CleanExit);
    check(code(3), "", "", ExitReason::Unknown);
    check(Ended::default(), "", "", ExitReason::Unknown);
    assert_eq!(cause(code(3), "\n  \n", "\r\n").detail, None);
}

#[test]
fn conversation_text_is_shown_but_is_no_evidence() {
    let debug = format!(
        "{HEAD}[bridge:activity] sessionId=cse_1 text first\nWorkspace not trusted\n\
         Unknown argument: x\n"
    );
    let found = cause(code(1), &debug, "");
    assert_eq!(found.reason, ExitReason::Unknown);
    assert!(found.detail.unwrap().ends_with("Unknown argument: x"));
    check(code(1), &format!("{debug}{HEAD}Unknown argument: x"), "", ExitReason::BadArgument);
}

#[test]
fn an_unknown_end_shows_the_last_twenty_lines() {
    let lines: Vec<String> = (1..=50).map(|n| format!("line {n}\n\n   ")).collect();
    let detail = cause(code(1), "", &lines.concat()).detail.unwrap();
    assert_eq!(detail.lines().count(), 20);
    assert!(detail.starts_with("line 31\n") && detail.ends_with("line 50"));
}

#[test]
fn the_line_that_decided_is_shown_last_however_early_it_came() {
    let filler = "later\n".repeat(40);
    let debug = format!("{HEAD}[stderr] It needs a subscription\n--rc flag ignored.\n{filler}");
    let detail = cause(code(1), &debug, "").detail.unwrap();
    assert!(detail.starts_with("later\n"), "{detail}");
    let end = "[DEBUG] [stderr] It needs a subscription\n--rc flag ignored.";
    assert!(detail.ends_with(end), "{detail}");
    let early = cause(code(1), "", "Unknown argument: --x\nusage: …\n").detail;
    assert_eq!(early.as_deref(), Some("usage: …\nUnknown argument: --x"));
}

#[test]
fn f37_a_missing_login_is_explained_without_the_ids_of_the_account() {
    let output = "Error: You must be logged in to use Remote Control.\n\n\
        [debug] Remote Control auth state:\n  hasAccessToken=false\n  subscriptionType=null\n\
        \x20 organizationUuid=0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\n  accountId=acc01AB23CD45EF\n\
        \x20 email=ada@example.org\n  scopes=user:inference\n\nother=line\n";
    let found = cause(code(1), "", output);
    assert_eq!(found.reason, ExitReason::LoginRequired);
    assert_eq!(
        found.detail.as_deref(),
        Some(
            "hasAccessToken=false\nsubscriptionType=null\nscopes=user:inference\n\
             Error: You must be logged in to use Remote Control."
        )
    );
}

#[test]
fn a_detail_is_redacted_before_it_is_cut() {
    // Cut first, the begin of the key would be gone and its rest unrecognisable.
    let key = format!("sk-{}", "a1B2".repeat(600));
    let detail = cause(code(1), "", &format!("start {key} end\n")).detail.unwrap();
    assert_eq!(detail, "start <redacted> end");

    let long = format!("{}\n", "é".repeat(500)).repeat(20);
    let detail = cause(code(1), "", &long).detail.unwrap();
    assert_eq!(detail.chars().count(), DETAIL);
    assert!(detail.starts_with('…'));
}

#[test]
fn the_cut_line_at_the_begin_of_a_tail_is_dropped() {
    let asked = usize::try_from(OUTPUT_TAIL).unwrap();
    let output = format!("{}\nlast words\n", "b".repeat(asked - 12));
    assert_eq!(output.len(), asked);
    assert_eq!(cause(code(1), "", &output).detail.as_deref(), Some("last words"));
    // A shorter one is the whole file.
    let output = output.get(1..).unwrap();
    assert!(cause(code(1), "", output).detail.unwrap().contains('b'));
    assert_eq!(cause(code(1), "", &"b".repeat(asked)).detail, None);
}

proptest! {
    #[test]
    fn no_last_words_panic_or_show_an_identifier(
        debug: Vec<u8>, output in "(env_01AB23CD45EF|\\PC{0,30}|\n|=){0,30}", code: Option<i32>,
        signal: Option<i32>, our_signal: bool,
    ) {
        let ended = Ended { code, signal, our_signal, oom_kill: false };
        let found = exit_cause(ended, LastWords { debug: &debug, output: output.as_bytes() });
        let detail = found.detail.unwrap_or_default();
        prop_assert!(detail.chars().count() <= DETAIL);
        prop_assert!(!detail.contains("01AB23CD45EF"));
    }
}

#[test]
fn what_was_printed_is_redacted_and_has_no_blank_ends() {
    let raw =
        "\n\nstarting\ntoken ghp_0123456789abcdefghij\nfatal: \u{1b}[31mno disk\u{1b}[0m  \n\n";
    let lines = printed(raw.as_bytes(), 50);
    assert_eq!(lines, ["starting", "token <redacted>", "fatal: no disk"]);
    assert_eq!(printed(raw.as_bytes(), 1), ["fatal: no disk"]);
    assert!(printed(b" \n\n", 50).is_empty());
}
