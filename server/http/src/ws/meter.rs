//! Limits the bytes and fragments that are read without a whole message.
//!
//! The library limits the size of a message but not the number of its fragments: a client could
//! send empty ones for ever (H59). Between two messages only so many bytes make sense.

use super::frames::Frames;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most bytes without a whole message.
///
/// A message of the largest size in 64 fragments with the longest heads, and one read buffer of
/// the next message.
const BETWEEN_MESSAGES: usize = super::MESSAGE + 64 * 14 + 4096;

/// Counts bytes read since the last message.
pub(super) struct Metered<T> {
    inner: T,
    read: Arc<AtomicUsize>,
    frames: Frames,
}

/// Starts the count again.
#[derive(Clone)]
pub(super) struct Reset(Arc<AtomicUsize>);

impl Reset {
    pub(super) fn message_arrived(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl<T> Metered<T> {
    pub(super) fn new(inner: T) -> (Self, Reset) {
        let read = Arc::new(AtomicUsize::new(0));
        (Self { inner, read: Arc::clone(&read), frames: Frames::new() }, Reset(read))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Metered<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.load(Ordering::Relaxed) > BETWEEN_MESSAGES {
            return Poll::Ready(Err(io::Error::other("bytes without a message")));
        }
        let before = buf.filled().len();
        let result = Pin::new(&mut self.inner).poll_read(cx, buf);
        let new = buf.filled().get(before..).unwrap_or_default();
        self.read.fetch_add(new.len(), Ordering::Relaxed);
        if !self.frames.feed(new) {
            return Poll::Ready(Err(io::Error::other("a message of too many fragments")));
        }
        result
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Metered<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
