//! Who else can log in on this machine (H146).
//!
//! A loopback address is reached by every account of the machine. Where nobody is asked who they
//! are, start, doctor and the report of who can reach the service say which accounts those are.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use svc_config::Config;
use svc_domain::accounts::{others, people, told};
use svc_domain::posture::is_loopback_host;
use tokio::sync::Mutex;

/// Longest wait for the list: it may come over a network.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long an answer is given again.
const KEPT: Duration = Duration::from_secs(5);

/// Knows who else can log in.
#[derive(Debug, Default)]
pub struct Accounts {
    last: Mutex<Option<(Instant, Arc<[String]>)>>,
}

impl Accounts {
    /// The other accounts that control a service with this configuration, by name.
    /// None where it asks who they are, or where a whole network does so anyway.
    pub async fn in_control(&self, config: &Config) -> Arc<[String]> {
        if config.auth.enabled || !is_loopback_host(&config.host) {
            return Arc::default();
        }
        // One look at a time: who waits gets the answer of who looked.
        let mut last = self.last.lock().await;
        match &*last {
            Some((at, known)) if at.elapsed() < KEPT => Arc::clone(known),
            _ => {
                let found: Arc<[String]> = look().await.into();
                *last = Some((Instant::now(), Arc::clone(&found)));
                found
            }
        }
    }

    /// What a start says about them.
    pub async fn warning(&self, config: &Config) -> Option<String> {
        let others = self.in_control(config).await;
        (!others.is_empty()).then(|| {
            format!(
                "auth.enabled is off, and {}: whoever does controls this service and its agents; \
                 {REMEDY}",
                told(&others)
            )
        })
    }
}

/// What to do about them.
pub(crate) const REMEDY: &str =
    "set auth.enabled and auth.password_required, with a hash from `svc hash-password`";

async fn look() -> Vec<String> {
    let Some(passwd) = listed().await else { return Vec::new() };
    let login_defs = read("/etc/login.defs").await.unwrap_or_default();
    others(&passwd, &people(&login_defs), rustix::process::getuid().as_raw())
}

/// All accounts as `passwd` lists them, also those of a directory service.
async fn listed() -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Relative elements mean another program in every directory (H34).
    let program = std::env::split_paths(&path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join("getent"))
        .find(|program| program.is_file());
    if let Some(program) = program
        && let Some(list) = asked(&program).await
    {
        return Some(list);
    }
    read("/etc/passwd").await
}

async fn asked(program: &Path) -> Option<String> {
    let mut getent = tokio::process::Command::new(program);
    getent.arg("passwd").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let done = tokio::time::timeout(PATIENCE, getent.output()).await.ok()?.ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

async fn read(file: &str) -> Option<String> {
    let bytes = tokio::fs::read(file).await.ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
