//! What agents write: logs in any pieces, last output, secrets, terminal bytes.

use svc_domain::agent_log::evidence::Evidence;
use svc_domain::agent_log::lines::LogLines;
use svc_domain::agent_log::marker::text_marker;
use svc_domain::exit_cause::{Ended, LastWords};
use svc_domain::redact::{Colour, Redactor, redact_text, strip_ansi};
use svc_domain::tail_lines::{TailLine, TailLines};

/// A secret on a line of its own: whatever stands around it, it is masked.
const CANARY: &str = "sk-ant-api03-kT5uQ2wX9yB4nM7cV1zL8dF3gH6jP0rS-AA";

/// However a log is cut, it says the same.
pub(crate) fn agent_log(data: &[u8]) {
    let read = |cut: usize| {
        let mut lines = LogLines::new();
        let mut evidence = Evidence::default();
        for chunk in data.chunks(cut.max(1)) {
            lines.feed(chunk, |piece| evidence.debug_line(piece));
        }
        lines.finish(|piece| evidence.debug_line(piece));
        format!(
            "{:?} {:?} {} {:?} {:?}",
            evidence.readiness(),
            evidence.has_registered(),
            evidence.live_workers(),
            evidence.refusal_detail(),
            evidence.anchor(),
        )
    };
    let whole = read(data.len());
    assert_eq!(whole, read(3));
    assert_eq!(whole, read(1));
    let _ = text_marker(&String::from_utf8_lossy(data));
}

/// Any last words have a cause, and its detail is bounded.
pub(crate) fn exit_cause(data: &[u8]) {
    let Some((flags, data)) = data.split_first() else { return };
    let (debug, output) = data.split_at(data.len() / 2);
    let bit = |at: u8| flags & (1 << at) != 0;
    let ended = Ended {
        code: (!bit(0)).then_some(i32::from(flags >> 6)),
        signal: bit(0).then_some(9),
        our_signal: bit(1),
        oom_kill: bit(2),
    };
    let cause = svc_domain::exit_cause::exit_cause(ended, LastWords { debug, output });
    let length = cause.detail.as_deref().map_or(0, |detail| detail.chars().count());
    assert!(length <= 2000, "{length} characters");
}

/// However a stream is cut, the same lines come out.
/// Reading on from the end of any line loses and repeats nothing.
pub(crate) fn tail_lines(data: &[u8]) {
    let shown = |lines: Vec<TailLine<'_>>| {
        let mut redactor = Redactor::default();
        let mut text = |line: &TailLine<'_>| line.redacted(&mut redactor).into_owned();
        lines.iter().map(|line| (line.end, text(line))).collect::<Vec<_>>()
    };
    let read = |cut: usize| {
        let mut tail = TailLines::from_start();
        let mut all = Vec::new();
        for chunk in data.chunks(cut.max(1)) {
            all.extend(tail.feed(chunk));
        }
        all.extend(tail.finish());
        shown(all)
    };
    let whole = read(data.len());
    assert_eq!(whole, read(5));
    assert!(whole.iter().zip(whole.iter().skip(1)).all(|(one, next)| one.0 <= next.0));
}

/// A secret on its own line never comes out.
/// A text is redacted as its lines are, and the rules that are not asked for a line would have
/// matched nothing in it.
pub(crate) fn redact(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (before, after) = split(&text);
    let raw = format!("{before}\n{CANARY}\n{after}");
    let whole = redact_text(&raw);
    assert!(!whole.contains(CANARY), "{whole:?}");
    let mut redactor = Redactor::default();
    // A line end at the very end begins no line.
    let by_line: Vec<_> = raw.split_terminator('\n').map(|line| redactor.line(line)).collect();
    assert_eq!(whole.trim_end_matches('\n'), by_line.join("\n").trim_end_matches('\n'));
    for colour in [Colour::Strip, Colour::Keep] {
        let (mut quick, mut thorough) = (Redactor::new(colour), Redactor::new(colour));
        for line in raw.split('\n') {
            assert_eq!(quick.line(line), thorough.line_by_every_rule(line), "{line:?}");
        }
    }
}

/// What is shown holds no control character but the colours it may hold.
pub(crate) fn terminal(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let plain = strip_ansi(&text);
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    assert_eq!(strip_ansi(&plain), plain, "what is plain stays as it is");
    let mut colours = Redactor::new(Colour::Keep);
    let mut without = Redactor::new(Colour::Strip);
    for line in text.split('\n') {
        let coloured = colours.line(line);
        let stripped = without.line(line);
        assert!(!stripped.contains('\u{1b}'), "{stripped:?}");
        assert_eq!(strip_ansi(&coloured), stripped, "the text is the same in colour");
    }
    let _ = svc_domain::log_escape::escape(&text);
    let _ = svc_domain::log_escape::strip_controls(&text);
    let _ = svc_domain::log_escape::escape_json(&text);
}

fn split(text: &str) -> (&str, &str) {
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle -= 1;
    }
    text.split_at(middle)
}
