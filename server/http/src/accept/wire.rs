//! A connection for the HTTP library, with strict framing and deadlines (H76).

use super::framing::{Fault, Framing};
use super::socket::Socket;
use super::{ConnectionFacts, Deadlines};
use crate::layers::headers;
use bytes::{Buf as _, BytesMut};
use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Bytes taken from the socket at once.
const READ: usize = 8 * 1024;
/// How long unread bytes of a peer are read before the connection is closed.
///
/// Closing with bytes unread resets the connection, and the peer would lose our last reply.
const LINGER: Duration = Duration::from_secs(1);

/// The connection.
pub(super) struct Wire {
    socket: Socket,
    facts: ConnectionFacts,
    deadlines: Deadlines,
    framing: Framing,
    onward: BytesMut,
    end: Option<End>,
    timer: Pin<Box<Sleep>>,
    head_began: Option<Instant>,
    stalled: Option<Pin<Box<Sleep>>>,
    linger: Option<Pin<Box<Sleep>>>,
}

/// Why nothing more is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Closed,
    Fault(Fault),
    /// The reply to the fault is written.
    Told,
}

impl Wire {
    pub(super) fn new(socket: Socket, facts: ConnectionFacts, deadlines: Deadlines) -> Self {
        Self {
            socket,
            facts,
            deadlines,
            framing: Framing::new(),
            onward: BytesMut::new(),
            end: None,
            timer: Box::pin(tokio::time::sleep(deadlines.idle)),
            head_began: None,
            stalled: None,
            linger: None,
        }
    }

    /// Whether requests are unanswered; the task is woken when one is answered.
    fn owes_answers(&self, cx: &Context<'_>) -> bool {
        self.facts.wake_when_answered(cx.waker());
        self.facts.answered() < self.framing.requests()
    }

    /// When the peer must have sent something; none while we owe it an answer.
    ///
    /// Counted from the last answer, not from the first look after it: the library looks again only
    /// when something wakes it. Empty lines between requests are no requests: they do not make a
    /// connection younger. A body that nobody waits for any more does not either.
    fn deadline(&mut self) -> Option<Instant> {
        if self.framing.is_inside_head() {
            let began = *self.head_began.get_or_insert_with(Instant::now);
            return Some(began + self.deadlines.head);
        }
        self.head_began = None;
        Some(self.facts.idle_since()? + self.deadlines.idle)
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) {
        let Some(deadline) = self.deadline() else {
            // The time begins with the answer.
            self.facts.wake_when_answered(cx.waker());
            return;
        };
        if self.timer.deadline() != deadline {
            self.timer.as_mut().reset(deadline);
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            let is_head = self.framing.is_inside_head();
            self.end = Some(if is_head { End::Fault(Fault::TooSlow) } else { End::Closed });
        }
    }

    /// Takes what the peer sent; `Pending` when there is nothing.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut space = [0_u8; READ];
        let mut buf = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buf))?;
        if buf.filled().is_empty() {
            self.end = Some(End::Closed);
        } else if let Err(fault) = self.framing.feed(buf.filled(), &mut self.onward) {
            // The request whose body this is gets its own refusal for an incomplete body.
            let is_told = self.framing.is_inside_body();
            self.end = Some(if is_told { End::Closed } else { End::Fault(fault) });
        }
        Poll::Ready(Ok(()))
    }

    /// Writes the reply to a fault, best effort: it is small, and the peer misbehaved.
    fn tell(&mut self) {
        if let Some(End::Fault(fault)) = self.end {
            self.end = Some(End::Told);
            self.socket.try_write(reply_to(fault).as_bytes());
        }
    }

    fn poll_stall(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // A socket of another protocol has its own rule for slow readers.
        if self.facts.is_upgraded() {
            return Poll::Pending;
        }
        let stall = self.deadlines.stall;
        let timer = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(stall)));
        match timer.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.facts.is_upgraded() {
            this.framing.pass_through(&mut this.onward);
        }
        loop {
            if !this.onward.is_empty() {
                let part = this.onward.len().min(buf.remaining());
                buf.put_slice(this.onward.get(..part).unwrap_or_default());
                this.onward.advance(part);
                return Poll::Ready(Ok(()));
            }
            match this.end {
                None => {}
                Some(End::Closed) => return Poll::Ready(Ok(())),
                // The library takes the end of input as reason to drop requests before it; it
                // asks again when they are answered.
                Some(End::Fault(_) | End::Told) if this.owes_answers(cx) => return Poll::Pending,
                Some(End::Fault(_) | End::Told) => return Poll::Ready(Ok(())),
            }
            match this.poll_fill(cx)? {
                Poll::Ready(()) => {}
                Poll::Pending => {
                    this.poll_deadline(cx);
                    if this.end.is_none() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match Pin::new(&mut this.socket).poll_write_vectored(cx, bufs) {
            Poll::Ready(result) => {
                this.stalled = None;
                Poll::Ready(result)
            }
            Poll::Pending => this.poll_stall(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.tell();
        ready!(Pin::new(&mut this.socket).poll_shutdown(cx))?;
        let is_clean = this.end != Some(End::Told) && this.framing.is_between();
        if is_clean || this.facts.is_upgraded() {
            return Poll::Ready(Ok(()));
        }
        let linger = this.linger.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        if linger.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        loop {
            let mut space = [0_u8; READ];
            let mut buf = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut this.socket).poll_read(cx, &mut buf))?;
            if buf.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.tell();
    }
}

/// Replies to bytes that never became a request.
fn reply_to(fault: Fault) -> String {
    let (status, code, detail) = match fault {
        Fault::Malformed => ("400 Bad Request", "invalid_value", "the request is malformed"),
        Fault::HeadTooLarge => (
            "431 Request Header Fields Too Large",
            "too_large",
            "the head of the request is too large",
        ),
        Fault::TooSlow => {
            ("408 Request Timeout", "invalid_value", "the request did not arrive in time")
        }
    };
    let body = format!(r#"{{"detail":"{detail}","code":"{code}"}}"#);
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n{}\r\n{body}",
        body.len(),
        headers::constant()
    )
}
