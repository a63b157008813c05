//! The live terminal of one Interactive Session (`http-api` §4.6, N8).

use super::{Out, Source};
use crate::call::Call;
use crate::credential::ActiveCredential;
use crate::error::{Refusal, echo};
use poem::Response;
use serde::Serialize;
use svc_app::{AppError, TerminalForm, TerminalItem, TerminalSince, TerminalViewer};
use svc_shared::error::ErrorCode;
use svc_shared::stream::close;

/// Opens the terminal of one session.
///
/// After the handshake a browser can no longer see a status, so what is wrong with the reference is
/// told by a close code.
pub(crate) async fn open(call: Call) -> Result<Response, Refusal> {
    let form = match call.query.one("format")? {
        None => TerminalForm::Plain,
        Some("diff") => TerminalForm::Diff,
        Some(other) => {
            return Err(Refusal::invalid(format!(
                "`format` is `{}`; leave it out or use `diff`",
                echo(other)
            )));
        }
    };
    let generation = call.query.number("gen", 0..=u64::from(u32::MAX))?;
    let seq = call.query.number("since", 0..=u64::MAX)?;
    let since = generation.zip(seq).map(|(generation, seq)| TerminalSince {
        generation: u32::try_from(generation).unwrap_or(u32::MAX),
        seq,
    });
    // Before anything is opened for a request that is no handshake.
    super::handshake::check(&call.request)?;
    // Without sign-in there is no credential, and nothing that limits anybody.
    let credential = call.request.data::<ActiveCredential>();
    let may_type = credential.is_none_or(|credential| credential.identity().reach.is_full());
    let watched = call.context.app.terminals().watch(call.param(), form, since, may_type).await;
    let source = match watched {
        Ok(viewer) => PtyScreen::Watching(Box::new(viewer)),
        Err(error) => match close_code(&error) {
            Some(code) => PtyScreen::Refused(code, super::bridge_log::reason(&error)),
            None => return Err(error.into()),
        },
    };
    call.context.sockets.open(&call.request, source)
}

fn close_code(error: &AppError) -> Option<u16> {
    match error.code {
        ErrorCode::UnknownInstance => Some(close::UNKNOWN),
        ErrorCode::Ambiguous => Some(close::AMBIGUOUS),
        ErrorCode::CapabilityDisabled => Some(close::WRONG_KIND),
        _ => None,
    }
}

enum PtyScreen {
    Watching(Box<TerminalViewer>),
    Refused(u16, String),
}

impl Source for PtyScreen {
    async fn next(&mut self) -> Out {
        let viewer = match self {
            Self::Watching(viewer) => viewer,
            Self::Refused(code, reason) => return Out::Close(*code, reason.clone().into()),
        };
        match viewer.next().await {
            TerminalItem::Plain(frame) => encode(&frame),
            TerminalItem::Frame(frame) => encode(&frame),
            TerminalItem::Closed(code, word) => Out::Close(code, word.as_str().into()),
        }
    }

    fn receive(&mut self, text: &str) {
        // What is not understood is ignored.
        if let (Self::Watching(viewer), Ok(message)) = (self, serde_json::from_str(text)) {
            viewer.receive(message);
        }
    }
}

fn encode(frame: &impl Serialize) -> Out {
    match serde_json::to_vec(frame) {
        Ok(bytes) => Out::Frame(bytes.into()),
        Err(_) => Out::Close(close::INTERNAL, ErrorCode::Internal.as_str().into()),
    }
}
