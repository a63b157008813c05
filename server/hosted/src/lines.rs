//! Reads lines of bounded length from a socket.

use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Why there is no next line.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It is longer than the protocol allows.
    #[error("a line is longer than {0} bytes")]
    TooLong(usize),
    /// The socket failed.
    #[error("the connection failed")]
    Io(#[source] io::Error),
}

/// The next line without its end; `None` at the end of the stream.
///
/// Cancel-safe as long as the same `line` is passed again. An unterminated rest is no line.
///
/// # Errors
/// The line and its end have more than `limit` bytes, or the socket fails.
pub async fn next_line<R: AsyncBufRead + Unpin>(
    reader: &mut R,
    line: &mut Vec<u8>,
    limit: usize,
) -> Result<Option<Vec<u8>>, LineError> {
    loop {
        let available = reader.fill_buf().await.map_err(LineError::Io)?;
        if available.is_empty() {
            return Ok(None);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(available.len());
        if line.len() + taken + 1 > limit {
            return Err(LineError::TooLong(limit));
        }
        line.extend_from_slice(available.get(..taken).unwrap_or_default());
        reader.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(Some(std::mem::take(line)));
        }
    }
}
