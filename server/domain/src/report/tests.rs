//! What a person learns from the report of an end.

use super::*;
use svc_shared::internal::report::{EndReport, LastOutput, ReportEvent};
use svc_shared::status::ResumeBlocked;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_795_000_000_000 + seconds * 1000)
}

fn facts(reason: ExitReason) -> Facts<'static> {
    Facts {
        status: BridgeStatus::Crashed,
        reason: Some(reason),
        code: None,
        signal: None,
        forced: false,
        started_at: Some(at(0)),
        ready_at: Some(at(2)),
        ended_at: Some(at(600)),
        asked: None,
        last_use: None,
        memory_ceiling: None,
        notice: None,
        detail: None,
        link_lost: None,
        gave_up_after: None,
    }
}

const CHOICES: Choices<'static> = Choices {
    id: "b81f09d4",
    project: "photo-pipeline",
    blocked: None,
    has_log: true,
    stranded: 0,
};

#[test]
fn a_kill_for_memory_names_the_signal_the_kernel_and_what_was_used() {
    let last = LastUse {
        at: at(590),
        cpu_percent: 180.25,
        rss_bytes: 7 << 30,
        processes: 5,
        peak_rss_bytes: 15 << 29,
        peak_at: at(580),
    };
    let facts = Facts {
        signal: Some(9),
        last_use: Some(&last),
        memory_ceiling: Some(8 << 30),
        ..facts(ExitReason::OutOfMemory)
    };
    assert_eq!(cause(&facts), "Killed, out of memory.");
    let evidence = evidence(&facts).join("\n");
    for says in [
        "killed by signal KILL (137)",
        "control group",
        "7.0 GiB of memory and 180.2 % of one core, in 5 processes",
        "The most memory that was measured is 7.5 GiB",
        "`ceilings.memory_mb` is 8.0 GiB",
        "ready 2.0 s after its start",
    ] {
        assert!(evidence.contains(says), "{says} is missing in\n{evidence}");
    }
    let next = next_steps(&facts, &CHOICES);
    assert!(next[0].says.contains("Free memory"));
    assert_eq!(next[1].command.as_deref(), Some("svc resume b81f09d4"));
}

#[test]
fn a_stop_names_who_asked_and_whether_the_kill_signal_was_needed() {
    for (by, says) in [
        ("admin", "The operator, in the browser or over HTTP, stopped it."),
        ("token:ci", "The token `ci` stopped it."),
        ("cli:anna", "The user anna of this machine, by a command, stopped it."),
        ("svc", "The service stopped it by itself."),
    ] {
        let asked = Asked { by: by.to_owned(), at: at(599) };
        let facts = Facts {
            status: BridgeStatus::Stopped,
            asked: Some(&asked),
            forced: true,
            ..facts(ExitReason::OperatorStop)
        };
        assert_eq!(cause(&facts), says);
        let evidence = evidence(&facts).join(" ");
        assert!(evidence.contains("2026-11-18T"), "{evidence}");
        assert!(evidence.contains("sent the kill signal"), "{evidence}");
    }
}

#[test]
fn the_line_that_decided_is_quoted_and_no_other() {
    let detail = Some("first\n  Error: Workspace not trusted");
    let said = Facts { detail, status: BridgeStatus::Error, ..facts(ExitReason::TrustRequired) };
    assert!(evidence(&said).contains(&"The agent wrote: Error: Workspace not trusted".to_owned()));
    let silent = Facts { detail, ..facts(ExitReason::Killed) };
    assert!(!evidence(&silent).join(" ").contains("The agent wrote"));
}

#[test]
fn every_reason_has_a_cause_and_something_to_do() {
    for reason in ExitReason::ALL {
        let facts = facts(*reason);
        let said = cause(&facts);
        assert!(said.ends_with('.') && said.len() > 5, "{reason}: {said}");
        assert!(!next_steps(&facts, &CHOICES).is_empty(), "{reason}");
        assert!(!evidence(&facts).is_empty(), "{reason}");
    }
}

#[test]
fn a_refused_resume_is_not_recommended() {
    for blocked in ResumeBlocked::ALL {
        let choices = Choices { blocked: Some(*blocked), project: "it's", ..CHOICES };
        for step in next_steps(&facts(ExitReason::CleanExit), &choices) {
            let command = step.command.unwrap_or_default();
            assert!(!command.starts_with("svc resume"), "{blocked}: {command}");
            assert!(!command.contains("it's"), "a shell would not take {command}");
        }
    }
}

#[test]
fn a_lost_job_says_that_nobody_works_on_it() {
    let (cause, evidence, next) = of_job("lost", "0a1b2c3d", "reading files", true);
    assert_eq!(cause, "The process of the job was lost.");
    assert!(evidence.join(" ").contains("reading files"));
    assert_eq!(next[0].command.as_deref(), Some("svc jobs resume 0a1b2c3d"));
}

#[test]
fn no_text_of_the_session_can_break_out_of_the_markdown() {
    let report = EndReport {
        id: "b81f09d4".to_owned(),
        kind: "interactive".to_owned(),
        project: Some("a`b".to_owned()),
        label: "x` <script>\n# Heading".to_owned(),
        generation: 3,
        status: "crashed".to_owned(),
        started_at: Some(at(0)),
        ended_at: Some(at(7300)),
        reason: None,
        cause: "Exit code 3.".to_owned(),
        evidence: vec!["one\n# two".to_owned()],
        next: Vec::new(),
        exit_code: Some(3),
        exit_signal: None,
        out_of_memory: false,
        forced: false,
        asked: None,
        last_use: None,
        output: vec![LastOutput {
            source: "log".to_owned(),
            lines: vec!["```".to_owned(), String::new(), "# not a heading".to_owned()],
        }],
        timeline: vec![ReportEvent {
            at: at(1),
            kind: "spawned".to_owned(),
            says: "launched".to_owned(),
        }],
        markdown: String::new(),
    };
    let text = markdown(&report);
    assert!(text.starts_with("# Why `x' <script> # Heading` stopped\n"), "{text}");
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).skip(1).collect();
    assert_eq!(headings, ["## Evidence", "## Timeline", "## End of the log"]);
    assert!(text.contains("    # not a heading"), "{text}");
    assert!(text.contains("- Lived: 2 h 1 min"), "{text}");
}
