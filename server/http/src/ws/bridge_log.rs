//! The live log of one instance (`http-api` §4.3).

use super::{Out, Source};
use crate::call::Call;
use crate::error::{Refusal, echo};
use crate::internal::instances::{LONGEST_TAIL, TAIL};
use poem::Response;
use svc_app::{AppError, LogItem, LogStart, LogSubscription};
use svc_shared::error::ErrorCode;
use svc_shared::stream::{LogFrame, close};

/// Longest reason of a close, bytes: the protocol's limit.
const REASON: usize = 123;

/// Bytes around the text of most lines: they are encoded without growing.
const AROUND: usize = 96;

/// How lines are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// One line per frame, nothing around it, no marks.
    Plain,
    /// Lines and marks as JSON.
    Json,
}

/// Opens the log of one instance.
///
/// After the handshake a browser can no longer see a status, so an unknown reference is told by a
/// close code.
pub(crate) async fn open(call: Call) -> Result<Response, Refusal> {
    let format = match call.query.one("format")? {
        None => Format::Plain,
        Some("json") => Format::Json,
        Some(other) => {
            return Err(Refusal::invalid(format!(
                "`format` is `{}`; leave it out or use `json`",
                echo(other)
            )));
        }
    };
    let start = match call.query.one("cursor")? {
        Some(cursor) => LogStart::Cursor(cursor.to_owned()),
        None => LogStart::Tail(call.query.number("tail", 0..=LONGEST_TAIL)?.unwrap_or(TAIL)),
    };
    // Before anything is opened for a request that is no handshake.
    super::handshake::check(&call.request)?;
    let source = match call.context.app.logs().follow(call.param(), start).await {
        Ok(log) => BridgeLog::Following { log, format },
        Err(error) => match close_code(&error) {
            Some(code) => BridgeLog::Refused(code, reason(&error)),
            None => return Err(error.into()),
        },
    };
    call.context.sockets.open(&call.request, source)
}

fn close_code(error: &AppError) -> Option<u16> {
    match error.code {
        ErrorCode::UnknownInstance => Some(close::UNKNOWN),
        ErrorCode::Ambiguous => Some(close::AMBIGUOUS),
        _ => None,
    }
}

/// The code of the refusal; for an ambiguous reference the ids that match.
pub(super) fn reason(error: &AppError) -> String {
    if error.candidates.is_empty() {
        return error.code.as_str().to_owned();
    }
    let mut reason = String::new();
    for id in &error.candidates {
        let gap = if reason.is_empty() { "" } else { "," };
        if reason.len() + gap.len() + id.len() > REASON {
            break;
        }
        reason.push_str(gap);
        reason.push_str(id);
    }
    reason
}

enum BridgeLog {
    Following { log: LogSubscription, format: Format },
    Refused(u16, String),
}

impl Source for BridgeLog {
    async fn next(&mut self) -> Out {
        let (log, format) = match self {
            Self::Following { log, format } => (log, *format),
            Self::Refused(code, reason) => return Out::Close(*code, reason.clone().into()),
        };
        loop {
            let frame = match log.next().await {
                Some(LogItem::Frame(frame)) => frame,
                Some(LogItem::Closed(code, reason)) => {
                    return Out::Close(code, reason.as_str().into());
                }
                None => {
                    return Out::Close(close::INTERNAL, ErrorCode::Internal.as_str().into());
                }
            };
            if let Some(bytes) = encode(&frame, format) {
                return Out::Frame(bytes);
            }
        }
    }

    /// A read-only stream: input is discarded.
    fn receive(&mut self, _text: &str) {}
}

fn encode(frame: &LogFrame, format: Format) -> Option<bytes::Bytes> {
    match (format, frame) {
        (Format::Json, frame) => {
            let text = match frame {
                LogFrame::Line { text, .. } => text.len(),
                LogFrame::Output { lines, .. } => lines.iter().map(String::len).sum(),
                LogFrame::Mark { .. } => 0,
            };
            let mut bytes = Vec::with_capacity(text + AROUND);
            serde_json::to_writer(&mut bytes, frame).ok()?;
            Some(bytes.into())
        }
        (Format::Plain, LogFrame::Line { text, .. }) => Some(text.to_string().into_bytes().into()),
        (Format::Plain, LogFrame::Output { lines, .. }) => {
            Some(lines.join("\n").into_bytes().into())
        }
        (Format::Plain, LogFrame::Mark { .. }) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_app::Class;
    use svc_shared::stream::MarkKind;

    #[test]
    fn plain_framing_is_the_bare_line_and_no_mark() {
        let line = LogFrame::Line { cursor: "1:5".into(), text: "a \"b\"".into() };
        let mark = LogFrame::Mark { kind: MarkKind::Ended, generation: 1, at: None };
        let text = |frame, format| encode(frame, format).map(|bytes| bytes.to_vec());
        assert_eq!(text(&line, Format::Plain), Some(b"a \"b\"".to_vec()));
        assert_eq!(text(&mark, Format::Plain), None);
        assert_eq!(
            text(&mark, Format::Json),
            Some(br#"{"type":"mark","kind":"ended","generation":1}"#.to_vec())
        );
    }

    #[test]
    fn an_ambiguous_reference_names_as_many_ids_as_a_close_can_hold() {
        let mut error = AppError::new(ErrorCode::Ambiguous, Class::Conflict, "ambiguous");
        error.candidates =
            (0..9).map(|n| format!("a000000{n}-0000-4000-8000-000000000000")).collect();
        assert_eq!(close_code(&error), Some(4409));
        let reason = reason(&error);
        assert_eq!(reason.matches("-4000-").count(), 3);
        assert!(reason.len() <= 123);
    }
}
