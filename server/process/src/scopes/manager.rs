//! The calls of systemd's D-Bus interface that a scope needs.
//!
//! Source: `org.freedesktop.systemd1(5)`.

use super::failure::Failure;
use super::wire::{Message, Wire};
use std::path::Path;
use tokio::net::UnixStream;
use zvariant::{OwnedObjectPath, OwnedValue, Value};

const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const NO_SUCH_UNIT: &str = "org.freedesktop.systemd1.NoSuchUnit";

/// Time that processes get to end at the shutdown of the machine, microseconds.
const SHUTDOWN_LIMIT: u64 = 10_000_000;

type Properties<'a> = Vec<(&'a str, Value<'a>)>;

/// A connection for one request.
#[derive(Debug)]
pub(super) struct Connection {
    wire: Wire,
}

impl Connection {
    /// Connects, and proves that systemd is at the other end.
    ///
    /// A manager in another pid namespace would take our pids for other processes. It has no pid in
    /// our namespace, and is refused.
    pub(super) async fn open(path: &Path, is_system: bool) -> Result<Self, Failure> {
        let stream = UnixStream::connect(path).await?;
        let peer = stream.peer_cred()?.pid().unwrap_or_default();
        let is_manager = if is_system { peer == 1 } else { peer > 0 };
        if !is_manager {
            return Err(Failure::Impostor);
        }
        Ok(Self { wire: Wire::authenticate(stream).await? })
    }

    /// Creates a scope with these processes, and waits until they are in it.
    pub(super) async fn start_scope(
        &mut self,
        unit: &str,
        pids: &[i32],
        about: &str,
    ) -> Result<(), Failure> {
        let pids: Vec<u32> = pids.iter().filter_map(|pid| u32::try_from(*pid).ok()).collect();
        let mut properties: Properties<'_> = vec![
            ("Description", Value::from(about)),
            ("Slice", Value::from(svc_domain::enclosure::SLICE)),
            ("PIDs", Value::from(pids)),
            ("CollectMode", Value::from("inactive-or-failed")),
            ("KillMode", Value::from("control-group")),
            ("TimeoutStopUSec", Value::from(SHUTDOWN_LIMIT)),
            // If the kernel kills a compiler for memory, the agent beside it goes on.
            ("OOMPolicy", Value::from("continue")),
        ];
        let mut ended_jobs = Vec::new();
        let job = match self.start(unit, &properties, &mut ended_jobs).await {
            // Scopes have this property since version 253. Before, they always continue.
            Err(Failure::Refused { .. }) => {
                properties.pop();
                self.start(unit, &properties, &mut ended_jobs).await?
            }
            answer => answer?,
        };
        loop {
            if let Some((_, result)) = ended_jobs.iter().find(|(of, _)| *of == job) {
                return match result.as_str() {
                    "done" => Ok(()),
                    _ => Err(Failure::Job(result.clone())),
                };
            }
            let message = self.wire.receive().await?;
            ended_jobs.extend(ended_job(&message));
        }
    }

    async fn start(
        &mut self,
        unit: &str,
        properties: &Properties<'_>,
        ended_jobs: &mut Vec<(OwnedObjectPath, String)>,
    ) -> Result<OwnedObjectPath, Failure> {
        let other_units: Vec<(&str, Properties<'_>)> = Vec::new();
        let body = (unit, "fail", properties, other_units);
        let on_signal = |message: &Message| ended_jobs.extend(ended_job(message));
        self.wire.call(MANAGER, "StartTransientUnit", &body, on_signal).await?.body()
    }

    /// Kills everything in a scope. A scope that has ended counts as killed.
    pub(super) async fn kill_scope(&mut self, unit: &str) -> Result<(), Failure> {
        let signal = rustix::process::Signal::KILL.as_raw();
        match self.wire.call(MANAGER, "KillUnit", &(unit, "all", signal), |_| ()).await {
            Ok(_) => Ok(()),
            Err(Failure::Refused { name, .. }) if name == NO_SUCH_UNIT => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Version of the manager.
    pub(super) async fn version(&mut self) -> Result<String, Failure> {
        let reply = self.wire.call(PROPERTIES, "Get", &(MANAGER, "Version"), |_| ()).await?;
        Ok(String::try_from(reply.body::<OwnedValue>()?)?)
    }
}

/// The job that a message reports as ended, and its result.
fn ended_job(message: &Message) -> Option<(OwnedObjectPath, String)> {
    let signal = message.signal::<(u32, OwnedObjectPath, String, String)>(MANAGER, "JobRemoved");
    signal.map(|(_, job, _, result)| (job, result))
}
