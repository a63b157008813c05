//! The few words of systemd's D-Bus interface that a scope takes (`org.freedesktop.systemd1(5)`).

use super::wire::{Message, Wire};
use std::path::Path;
use tokio::net::UnixStream;
use zvariant::{OwnedObjectPath, OwnedValue, Value};

const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const NO_SUCH_UNIT: &str = "org.freedesktop.systemd1.NoSuchUnit";

/// Processes that the manager ends at the shutdown of the machine get this long, microseconds.
const SHUTDOWN_LIMIT: u64 = 10_000_000;

/// Why the manager did not do it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("systemd did not answer within {seconds} s")]
    Silent { seconds: u64 },
    #[error("its socket belongs to another process than systemd")]
    Impostor,
    #[error("systemd does not know this user")]
    Greeting,
    #[error("systemd cannot be talked to: {0}")]
    Io(#[from] std::io::Error),
    #[error("systemd's words are not understood: {0}")]
    Words(#[from] zvariant::Error),
    #[error("systemd's words are not understood")]
    Garbled,
    #[error("systemd refused: {words} ({name})")]
    Refused { name: String, words: String },
    #[error("systemd could not start the scope: {0}")]
    Job(String),
}

type Properties<'a> = Vec<(&'a str, Value<'a>)>;

/// A connection for one question.
#[derive(Debug)]
pub(super) struct Connection {
    wire: Wire,
}

impl Connection {
    /// Connects and proves who is there. Across a border of process numbers a manager would take
    /// ours for other processes: it is not in our table then, and has no number here.
    pub(super) async fn open(path: &Path, is_system: bool) -> Result<Self, Failure> {
        let stream = UnixStream::connect(path).await?;
        let peer = stream.peer_cred()?.pid().unwrap_or_default();
        let is_manager = if is_system { peer == 1 } else { peer > 0 };
        if !is_manager {
            return Err(Failure::Impostor);
        }
        Ok(Self { wire: Wire::greet(stream).await? })
    }

    /// Makes a scope with one process in it, and waits until it is in there.
    pub(super) async fn start_scope(
        &mut self,
        unit: &str,
        pid: i32,
        about: &str,
    ) -> Result<(), Failure> {
        let pid = u32::try_from(pid).unwrap_or_default();
        let mut properties: Properties<'_> = vec![
            ("Description", Value::from(about)),
            ("Slice", Value::from(svc_domain::enclosure::SLICE)),
            ("PIDs", Value::from(vec![pid])),
            ("CollectMode", Value::from("inactive-or-failed")),
            ("KillMode", Value::from("control-group")),
            ("TimeoutStopUSec", Value::from(SHUTDOWN_LIMIT)),
            // A compiler that is killed for memory is no reason to end the agent beside it.
            ("OOMPolicy", Value::from("continue")),
        ];
        let mut ended = Vec::new();
        let job = match self.start(unit, &properties, &mut ended).await {
            // Scopes know this since version 253, and do so by themselves before.
            Err(Failure::Refused { .. }) => {
                properties.pop();
                self.start(unit, &properties, &mut ended).await?
            }
            answer => answer?,
        };
        loop {
            if let Some((_, result)) = ended.iter().find(|(of, _)| *of == job) {
                return match result.as_str() {
                    "done" => Ok(()),
                    _ => Err(Failure::Job(result.clone())),
                };
            }
            let message = self.wire.receive().await?;
            ended.extend(end_of_job(&message));
        }
    }

    async fn start(
        &mut self,
        unit: &str,
        properties: &Properties<'_>,
        ended: &mut Vec<(OwnedObjectPath, String)>,
    ) -> Result<OwnedObjectPath, Failure> {
        let others: Vec<(&str, Properties<'_>)> = Vec::new();
        let body = (unit, "fail", properties, others);
        let passing = |message: &Message| ended.extend(end_of_job(message));
        self.wire.call(MANAGER, "StartTransientUnit", &body, passing).await?.body()
    }

    /// Kills everything in a scope; one that has ended is as good.
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

/// A job that has ended, and how, if a message tells of one.
fn end_of_job(message: &Message) -> Option<(OwnedObjectPath, String)> {
    let told = message.signal::<(u32, OwnedObjectPath, String, String)>(MANAGER, "JobRemoved");
    told.map(|(_, job, _, result)| (job, result))
}
