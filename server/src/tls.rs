//! The certificate of the running service: opened at start, kept current.

use crate::compose::{now, watched};
use std::sync::Arc;
use std::time::Duration;
use svc_app::certificates::source;
use svc_config::Config;
use svc_tls::{Certificates, Reloaded, TlsError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

/// How often files are looked at whose change nobody reports (H13).
const LOOK: Duration = Duration::from_secs(60);

/// Opens the certificate of the configuration; `None` without `tls`.
pub(crate) async fn open(config: &Config) -> Result<Option<Arc<Certificates>>, TlsError> {
    let Some(source) = source(config) else { return Ok(None) };
    let opened = spawn_blocking(move || Certificates::open(source, seconds())).await;
    let certificates = match opened {
        Ok(opened) => opened?,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    let left = certificates.facts().left(seconds());
    if left <= 0 {
        tracing::warn!("the certificate of tls.cert_file has expired; browsers refuse it");
    }
    Ok(Some(Arc::new(certificates)))
}

fn seconds() -> i64 {
    now().as_millis().div_euclid(1000)
}

/// Reads the certificate again when its files change, on SIGHUP, and once a minute.
///
/// The look once a minute also makes a self-signed certificate anew when it is due.
pub(crate) async fn keep(certificates: Arc<Certificates>, over: CancellationToken) {
    let (cert, key) = certificates.source().files();
    let [mut cert, mut key] = watched([&cert, &key], LOOK);
    let mut hangup = signal(SignalKind::hangup()).ok();
    let mut tick = tokio::time::interval(LOOK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last = None;
    loop {
        tokio::select! {
            () = over.cancelled() => return,
            _ = cert.changed() => {}
            _ = key.changed() => {}
            () = hung_up(hangup.as_mut()) => {}
            _ = tick.tick() => {}
        }
        let looked = Arc::clone(&certificates);
        let reloaded = spawn_blocking(move || looked.reload(seconds())).await;
        let Ok(reloaded) = reloaded else { continue };
        last = told(reloaded, last);
    }
}

async fn hung_up(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Says what came of a look, and one trouble only once. Returns the trouble.
fn told(reloaded: Result<Reloaded, TlsError>, last: Option<String>) -> Option<String> {
    match reloaded {
        Ok(Reloaded::Same) => None,
        Ok(Reloaded::Replaced) => {
            tracing::info!("new connections get the new certificate; open ones stay");
            None
        }
        Err(error) => {
            let words = crate::error_chain::error_chain(&error);
            if last.as_ref() != Some(&words) {
                tracing::error!("the certificate in use stays, because {words}");
            }
            Some(words)
        }
    }
}
