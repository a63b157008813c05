//! Tries another version in the place of this one, as a child of this process.
//!
//! Nothing of the service runs here any more, but the process stays: whoever started it sees no
//! end. Only when the new program has served is it asked to end, and this process becomes it.
//! Otherwise file and registry are put back, and this process becomes the old program again.

use crate::ask::{Ask, Target};
use crate::compose;
use crate::serve::feed_watchdog;
use crate::signals::Signals;
use crate::successor::Start;
use hyper::Method;
use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;
use svc_app::upgrade::Swap;
use svc_process::run_lock::{RUN_LOCK_FILE, RunLock};
use tokio::process::Child;
use tokio::time::timeout;

/// The new program serves within this time, or it is taken back.
const HEALTHY_WITHIN: Duration = Duration::from_secs(15);
/// The new program ends within this time when it has served.
/// Its requests have ten seconds.
const ENDS_WITHIN: Duration = Duration::from_secs(12);
/// Where changes of a file are not reported, the record is read this often.
const LOOK: Duration = Duration::from_millis(200);
/// A service that comes up answers after some time; it is asked again so often.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// The listener, and what keeps the other loopback address.
type Sockets<'a> = (&'a TcpListener, Option<&'a OwnedFd>);

/// What this process becomes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The program that is in its place, whichever it is.
    Go,
    /// Nothing: it was asked to end.
    End,
}

/// Exchanges the program, tries it, and keeps it or takes it back.
pub(crate) async fn run(
    swap: Swap,
    start: &Start,
    sockets: Sockets<'_>,
    state_dir: &Path,
    signals: &mut Signals,
) -> Verdict {
    let work = Box::pin(tried(swap, start, sockets, state_dir, signals));
    let verdict = tokio::select! {
        () = feed_watchdog() => Verdict::Go, // never comes back
        verdict = work => verdict,
    };
    // What must not be given up half-way is done; a request to end that came meanwhile counts now.
    tokio::select! {
        biased;
        _ = signals.asked() => Verdict::End,
        () = std::future::ready(()) => verdict,
    }
}

async fn tried(
    swap: Swap,
    start: &Start,
    sockets: Sockets<'_>,
    state_dir: &Path,
    signals: &mut Signals,
) -> Verdict {
    let exchanged = match swap.clone().exchange().await {
        Ok(exchanged) => exchanged,
        Err(reason) => {
            tracing::error!("the upgrade is given up: {reason}");
            swap.give_up(&reason, compose::now()).await;
            return Verdict::Go;
        }
    };
    let mut child = match start.child(sockets.0, sockets.1) {
        Ok(child) => child,
        Err(error) => {
            let reason = format!("it does not start ({error})");
            take_back(exchanged, &reason).await;
            return Verdict::Go;
        }
    };
    let outcome = tokio::select! {
        outcome = healthy(&mut child, state_dir) => Some(outcome),
        _ = signals.asked() => None,
    };
    let (reason, verdict) = match outcome {
        Some(Ok(())) => {
            // This process becomes what has served; its child makes room for that.
            exchanged.served().await;
            match ended(&mut child).await {
                Ok(()) => exchanged.keep(),
                Err(reason) => take_back(exchanged, &reason).await,
            }
            return Verdict::Go;
        }
        Some(Err(reason)) => (reason, Verdict::Go),
        None => ("the service was asked to end meanwhile".to_owned(), Verdict::End),
    };
    // Whatever it is doing: bridges are in sessions of their own.
    if let Err(error) = child.kill().await {
        tracing::warn!("the tried program cannot be ended: {error}");
    }
    take_back(exchanged, &reason).await;
    verdict
}

async fn take_back(exchanged: svc_app::upgrade::Exchanged, reason: &str) {
    tracing::error!("the new program is taken back: {reason}");
    if let Err(more) = exchanged.take_back(reason, compose::now()).await {
        tracing::error!("{more}");
    }
}

/// Waits until the child has a record with an address and answers there.
async fn healthy(child: &mut Child, state_dir: &Path) -> Result<(), String> {
    let pid = child.id().map(i64::from);
    let serves = async {
        let mut changes = compose::watched_file(&state_dir.join(RUN_LOCK_FILE), LOOK);
        loop {
            let record = RunLock::read(state_dir).ok().flatten();
            let url = record.filter(|record| Some(record.pid) == pid).and_then(|own| own.address);
            let Some(url) = url else {
                changes.changed().await;
                continue;
            };
            if answers(&url).await {
                return;
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    };
    tokio::select! {
        ended = child.wait() => Err(format!("it ended ({})", words(ended))),
        served = timeout(HEALTHY_WITHIN, serves) => served.map_err(|_| {
            format!("it did not serve within {} s", HEALTHY_WITHIN.as_secs())
        }),
    }
}

fn words(ended: std::io::Result<ExitStatus>) -> String {
    ended.map_or_else(|error| error.to_string(), |status| status.to_string())
}

/// Whether the service at an address says that it is well.
async fn answers(url: &str) -> bool {
    let Ok(target) = Target::parse(url) else { return false };
    let ask = Ask { method: Method::GET, path: "/healthz", headers: Vec::new() };
    target.ask(&ask).await.is_ok_and(|answer| answer.status == 200)
}

/// Asks the child to end, and waits for it.
async fn ended(child: &mut Child) -> Result<(), String> {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // Not collected yet: the number is still its own.
        let _ = kill_process(pid, Signal::TERM);
    }
    match timeout(ENDS_WITHIN, child.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(other) => Err(format!("it served, and did not end well ({})", words(other))),
        Err(_) => {
            let _ = child.kill().await; // gone already: fine
            Err(format!("it served, and did not end within {} s", ENDS_WITHIN.as_secs()))
        }
    }
}

/// The program that an order would exchange, as the service was started from it.
pub(crate) fn is_own(program: &Path, target: &Path) -> bool {
    let real: Option<PathBuf> = program.canonicalize().ok();
    real.as_deref() == Some(target)
}
