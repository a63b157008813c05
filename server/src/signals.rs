//! Signals that end this process, or that it explains.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Which of the two asked for an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Receives SIGINT and SIGTERM, which no longer end the process by themselves.
/// No signal after its creation is lost.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    /// For a command: only the two.
    pub(crate) fn of_command() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: None,
        })
    }

    /// For a server: SIGHUP does not end it either.
    pub(crate) fn of_server() -> io::Result<Self> {
        Ok(Self { hangup: Some(signal(SignalKind::hangup())?), ..Self::of_command()? })
    }

    /// The next request to end. Cancel-safe.
    pub(crate) async fn asked(&mut self) -> Asked {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return Asked::Interrupt,
                _ = self.terminate.recv() => return Asked::Terminate,
                () = hung_up(self.hangup.as_mut()) => tracing::warn!(
                    "SIGHUP is ignored: the configuration is read at start only; restart to apply \
                     a change, bridges keep running"
                ),
            }
        }
    }
}

async fn hung_up(hangup: Option<&mut Signal>) {
    match hangup {
        Some(hangup) => {
            hangup.recv().await;
        }
        None => std::future::pending().await,
    }
}
