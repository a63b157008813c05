//! One conversation while it is written.

use super::{Out, Source};
use crate::call::Call;
use crate::error::Refusal;
use poem::Response;
use svc_app::{AppError, Followed, Follower};
use svc_shared::error::ErrorCode;
use svc_shared::stream::close;

/// Follows one conversation. Frames are those of the tail route.
///
/// After the handshake a browser can no longer see a status, so an unknown reference is told by a
/// close code.
pub(crate) async fn open(call: Call) -> Result<Response, Refusal> {
    let offset = call.query.number("offset", 0..=u64::MAX)?.unwrap_or(0);
    // Before anything is opened for a request that is no handshake.
    super::handshake::check(&call.request)?;
    let transcripts = call.context.app.transcripts();
    let source = match transcripts.follow(call.param(), call.second_param(), offset).await {
        Ok(follower) => Conversation::Following(Box::new(follower)),
        Err(error) if is_unknown(&error) => {
            Conversation::Refused(close::UNKNOWN, super::bridge_log::reason(&error))
        }
        Err(error) => return Err(error.into()),
    };
    call.context.sockets.open(&call.request, source)
}

fn is_unknown(error: &AppError) -> bool {
    matches!(error.code, ErrorCode::NotFound | ErrorCode::UnknownProject)
}

enum Conversation {
    Following(Box<Follower>),
    Refused(u16, String),
}

impl Source for Conversation {
    async fn next(&mut self) -> Out {
        let follower = match self {
            Self::Following(follower) => follower,
            Self::Refused(code, reason) => return Out::Close(*code, reason.clone().into()),
        };
        match follower.next().await {
            Followed::Tail(tail) => match serde_json::to_vec(&tail) {
                Ok(bytes) => Out::Frame(bytes.into()),
                Err(_) => Out::Close(close::INTERNAL, ErrorCode::Internal.as_str().into()),
            },
            Followed::Closed(code, word) => Out::Close(code, word.as_str().into()),
        }
    }

    /// A read-only stream: input is discarded.
    fn receive(&mut self, _text: &str) {}
}
