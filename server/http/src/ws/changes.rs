//! Tells when the files of a session have changed.
//!
//! The reader decides when to read them.

use super::{Out, Source};
use crate::call::Call;
use crate::error::Refusal;
use poem::Response;
use svc_app::{AppError, ChangesWatch, Checkout};
use svc_shared::error::ErrorCode;
use svc_shared::internal::changes::ChangesNotice;
use svc_shared::stream::close;

/// Opens the notices of one session.
///
/// After the handshake a browser can no longer see a status, so what is wrong with the reference is
/// told by a close code.
pub(crate) async fn open(call: Call) -> Result<Response, Refusal> {
    // Before anything is opened for a request that is no handshake.
    super::handshake::check(&call.request)?;
    let checkout = Checkout::Instance(call.param().to_owned());
    let source = match call.context.app.changes().follow(checkout).await {
        Ok(watch) => Notices::Watching { watch: Box::new(watch), is_new: true },
        Err(error) => match close_code(&error) {
            Some(code) => Notices::Refused(code, super::bridge_log::reason(&error)),
            None => return Err(error.into()),
        },
    };
    call.context.sockets.open(&call.request, source)
}

fn close_code(error: &AppError) -> Option<u16> {
    match error.code {
        ErrorCode::UnknownInstance => Some(close::UNKNOWN),
        ErrorCode::Ambiguous => Some(close::AMBIGUOUS),
        ErrorCode::NotFound | ErrorCode::PathEscape => Some(close::WRONG_KIND),
        _ => None,
    }
}

enum Notices {
    Watching { watch: Box<ChangesWatch>, is_new: bool },
    Refused(u16, String),
}

impl Source for Notices {
    async fn next(&mut self) -> Out {
        let (watch, is_new) = match self {
            Self::Watching { watch, is_new } => (watch, is_new),
            Self::Refused(code, reason) => return Out::Close(*code, reason.clone().into()),
        };
        // The first notice says that the watch stands: what changes from now on is told.
        let changed = !std::mem::take(is_new);
        if changed && let Err(error) = watch.changed().await {
            let code = close_code(&error).unwrap_or(close::INTERNAL);
            return Out::Close(code, super::bridge_log::reason(&error).into());
        }
        frame(&ChangesNotice { changed, complete: !watch.truncated })
    }

    /// A read-only stream: input is discarded.
    fn receive(&mut self, _text: &str) {}
}

fn frame(notice: &ChangesNotice) -> Out {
    match serde_json::to_vec(notice) {
        Ok(bytes) => Out::Frame(bytes.into()),
        Err(_) => Out::Close(close::INTERNAL, ErrorCode::Internal.as_str().into()),
    }
}
