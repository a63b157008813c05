//! Signals that end this process, or that it explains.

use std::io;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

/// Which of the two asked for an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// SIGINT.
    Interrupt,
    /// SIGTERM, or SIGQUIT.
    Terminate,
}

/// Receives SIGINT and SIGTERM, which no longer end the process by themselves.
/// No signal after its creation is lost.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
    quit: Option<Signal>,
    /// Told of every SIGHUP; one that nobody waits for yet is kept.
    hangups: Arc<Notify>,
}

impl Signals {
    /// For a command: only the two.
    pub(crate) fn of_command() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: None,
            quit: None,
            hangups: Arc::default(),
        })
    }

    /// For a server that ends with its client: a hang-up is one of its ends.
    pub(crate) fn of_child() -> io::Result<Self> {
        svc_process::signal_state::settle_as_server();
        Self::of_command()
    }

    /// For a server: only what asks for its end ends it, and SIGQUIT asks like SIGTERM.
    pub(crate) fn of_server() -> io::Result<Self> {
        svc_process::signal_state::settle_as_server();
        Ok(Self {
            hangup: Some(signal(SignalKind::hangup())?),
            quit: Some(signal(SignalKind::quit())?),
            ..Self::of_command()?
        })
    }

    /// Who waits for it hears of each SIGHUP while [`Signals::asked`] is waited for.
    pub(crate) fn hangups(&self) -> Arc<Notify> {
        Arc::clone(&self.hangups)
    }

    /// The next request to end. Cancel-safe.
    pub(crate) async fn asked(&mut self) -> Asked {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return Asked::Interrupt,
                _ = self.terminate.recv() => return Asked::Terminate,
                () = received(self.quit.as_mut()) => return Asked::Terminate,
                () = received(self.hangup.as_mut()) => self.hangups.notify_one(),
            }
        }
    }
}

async fn received(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
