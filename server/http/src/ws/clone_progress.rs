//! The progress of one clone (`http-api` §4.5).

use super::{Out, Source};
use crate::call::Call;
use crate::error::Refusal;
use poem::Response;
use svc_app::is_clone_over;
use svc_shared::error::ErrorCode;
use svc_shared::internal::clones::{CloneFrame, CloneJob};
use svc_shared::stream::close;
use tokio::sync::watch;

/// Opens the progress of one clone.
///
/// After the handshake a browser can no longer see a status, so an unknown job is told by a close
/// code.
pub(crate) async fn open(call: Call) -> Result<Response, Refusal> {
    // Before anything is opened for a request that is no handshake.
    super::handshake::check(&call.request)?;
    let source = match call.context.app.clones().follow(call.param()) {
        Ok(mut records) => {
            records.mark_changed();
            CloneProgress::Following { records, said: None }
        }
        Err(_) => CloneProgress::Unknown,
    };
    call.context.sockets.open(&call.request, source)
}

/// A reader that is slow misses steps: the channel keeps only the newest record.
enum CloneProgress {
    Following { records: watch::Receiver<CloneJob>, said: Option<CloneFrame> },
    Over,
    Unknown,
}

impl Source for CloneProgress {
    async fn next(&mut self) -> Out {
        loop {
            let (records, said) = match self {
                Self::Over => return Out::Close(close::COMPLETE, "".into()),
                Self::Unknown => {
                    return Out::Close(close::UNKNOWN, ErrorCode::UnknownJob.as_str().into());
                }
                Self::Following { records, said } => (records, said),
            };
            if records.changed().await.is_err() {
                // A job always ends with its last record, which was sent.
                *self = Self::Over;
                continue;
            }
            let (frame, is_over) = {
                let record = records.borrow_and_update();
                (frame(&record), is_clone_over(&record))
            };
            if said.as_ref() == Some(&frame) {
                continue; // only what this stream does not tell has changed
            }
            *said = Some(frame.clone());
            if is_over {
                *self = Self::Over;
            }
            return match serde_json::to_vec(&frame) {
                Ok(bytes) => Out::Frame(bytes.into()),
                Err(_) => Out::Close(close::INTERNAL, ErrorCode::Internal.as_str().into()),
            };
        }
    }

    fn receive(&mut self, _text: &str) {}
}

fn frame(record: &CloneJob) -> CloneFrame {
    match is_clone_over(record) {
        true => CloneFrame::Done {
            status: record.state.clone(),
            error: record.error.clone(),
            cancelled: record.cancelled,
        },
        false => CloneFrame::Progress { phase: record.phase.clone(), percent: record.percent },
    }
}
