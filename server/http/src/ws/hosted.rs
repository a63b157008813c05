//! The live view of one Direct Session (`http-api` §4.4).

use super::{Out, Source};
use crate::call::Call;
use crate::error::Refusal;
use poem::Response;
use svc_app::{AppError, HostedItem, HostedViewer};
use svc_shared::error::ErrorCode;
use svc_shared::stream::close;

/// Opens the view of one session.
///
/// After the handshake a browser can no longer see a status, so what is wrong with the reference is
/// told by a close code.
pub(crate) async fn open(call: Call) -> Result<Response, Refusal> {
    // Before anything is opened for a request that is no handshake.
    super::handshake::check(&call.request)?;
    // A position that is none begins at the start, as the protocol says.
    let after = call.query.one("after")?.and_then(|raw| raw.parse().ok()).unwrap_or(0);
    let stream = call.query.one("stream")?.map(str::to_owned);
    let app = &call.context.app;
    let watched = match app.bridges().direct_session(call.param()).await {
        Ok(Some(id)) => app.hosted().watch(&id, after, stream.as_deref()),
        // A bridge has a log instead; nothing at all is unknown.
        Ok(None) => match app.instances().get(call.param()).await {
            Ok(_) => return call.context.sockets.open(&call.request, wrong_kind()),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    };
    let source = match watched {
        Ok(viewer) => Hosted::Watching(Box::new(viewer)),
        Err(error) => match close_code(&error) {
            Some(code) => Hosted::Refused(code, super::bridge_log::reason(&error)),
            None => return Err(error.into()),
        },
    };
    call.context.sockets.open(&call.request, source)
}

fn wrong_kind() -> Hosted {
    Hosted::Refused(close::WRONG_KIND, ErrorCode::CapabilityDisabled.as_str().to_owned())
}

fn close_code(error: &AppError) -> Option<u16> {
    match error.code {
        ErrorCode::UnknownInstance => Some(close::UNKNOWN),
        ErrorCode::Ambiguous => Some(close::AMBIGUOUS),
        _ => None,
    }
}

enum Hosted {
    Watching(Box<HostedViewer>),
    Refused(u16, String),
}

impl Source for Hosted {
    async fn next(&mut self) -> Out {
        match self {
            Self::Refused(code, reason) => Out::Close(*code, reason.clone().into()),
            Self::Watching(viewer) => match viewer.next().await {
                HostedItem::Event(event) => Out::Frame(event),
                HostedItem::Closed(code, word) => Out::Close(code, word.as_str().into()),
            },
        }
    }

    fn receive(&mut self, _text: &str) {
        // Input goes over HTTP.
    }
}
