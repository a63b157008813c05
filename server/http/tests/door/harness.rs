//! A served door over a temporary tree, and records to fill it with.

use crate::app;
use crate::client::{Reply, Sent};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use svc_app::App;
use svc_http::ServeOptions;
use svc_shared::api::instances::Instance;
use svc_shared::api::projects::Project;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// No step of a test takes longer than this.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// A served door.
pub struct Server {
    pub app: App,
    pub address: SocketAddr,
    pub task: JoinHandle<std::io::Result<()>>,
    pub clock: Arc<app::Hand>,
    tree: TempDir,
}

impl Server {
    pub async fn start() -> Self {
        Self::with("", ServeOptions::default()).await
    }

    /// With more lines of configuration, or other limits.
    pub async fn with(configuration: &str, options: ServeOptions) -> Self {
        let tree = tempfile::tempdir().unwrap();
        let clock = Arc::default();
        let app = app::over(tree.path(), configuration, Some(tree.path()), &clock).await;
        Self::of(tree, app, clock, options).await
    }

    /// For a user without a home.
    pub async fn homeless() -> Self {
        let tree = tempfile::tempdir().unwrap();
        let clock = Arc::default();
        let app = app::over(tree.path(), "", None, &clock).await;
        Self::of(tree, app, clock, ServeOptions::default()).await
    }

    async fn of(tree: TempDir, app: App, clock: Arc<app::Hand>, options: ServeOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(svc_http::serve(listener, app.clone(), options, None));
        Self { app, address, task, clock, tree }
    }

    /// Everything on disk that belongs to this service.
    pub fn tree(&self) -> &std::path::Path {
        self.tree.path()
    }

    /// Two projects, and the bridges of the registry.
    pub async fn filled() -> Self {
        let server = Self::start().await;
        server.fill().await;
        server
    }

    pub async fn fill(&self) {
        let model = self.app.read_model();
        model.replace_projects(
            [project("api", "trusted"), project("has space", "untrusted")].into_iter().collect(),
        );
        let rows = self.app.instances().reconciled().await.unwrap();
        model.change_instances((1..).zip(rows).collect(), &[]);
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(Sent::new("GET", path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Sent::new("POST", path).json(body)).await
    }

    /// Sends a request on a new connection.
    /// Documented replies are checked against the description.
    pub async fn send(&self, sent: Sent) -> Reply {
        let raw = self.raw(sent.to_bytes(self.address).as_slice()).await;
        let reply = Reply::parse(&raw, sent.method == "HEAD");
        crate::document::check_recorded(&sent, &reply);
        reply
    }

    /// Sends bytes and reads until the server closes.
    pub async fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        // The server may close before it took everything.
        let _ = socket.write_all(bytes).await;
        read_to_end(&mut socket).await
    }
}

pub async fn read_to_end(socket: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let reading = async {
        let mut part = [0; 4096];
        // A reset after the reply is an end too.
        while let Ok(n @ 1..) = socket.read(&mut part).await {
            all.extend_from_slice(&part[..n]);
        }
    };
    tokio::time::timeout(DEADLINE, reading).await.expect("the server closes the connection");
    all
}

pub fn project(name: &str, trust: &str) -> (String, Project) {
    let project = serde_json::from_value(json!({
        "name": name, "path": format!("/projects/{name}"), "is_git_repo": true,
        "has_claude_md": false, "has_claude_dir": false, "trust_state": trust,
        "allow_bypass_permissions": false, "alias_of": null
    }));
    (name.to_owned(), project.unwrap())
}

pub fn instance(id: &str, project: &str, status: &str) -> Instance {
    serde_json::from_value(json!({
        "instance_id": id, "project": project, "label": project, "channel": "remote-control",
        "status": status, "resume_mode": "standard", "spawn_mode": "same-dir",
        "permission_mode": "default", "sandbox_mode": "default",
        "session_ref": "0123456789abcdef", "environment_ref": null,
        "connect": {"available": true, "kind": "session"},
        "status_since": "2026-01-01T00:00:00.000Z", "started_at": "2026-01-01T00:00:00.000Z",
        "generation": 1, "phase": "ready", "origin": "spawned",
        "exit_reason": "unknown", "quarantined": {"kind": "identity", "code": "unkillable"},
        "restart": {"policy": "never", "state": "idle", "attempt": 0, "crashes_in_window": 0},
        "intentional_stop": false, "adopted": false, "is_orphan": false, "resumable": false,
        "resume_blocked": "still_live", "has_log": false,
        "link": { "state": "unknown", "since": null, "reason": null, "source": null },
        "activity": null, "limit": null, "on_limit": "wait",
        "stranded": 0, "pending_permissions": [],
        "last_event_seq": 0
    }))
    .unwrap()
}

/// Ten thousand projects, for lists that are worth compressing.
pub fn many_projects(count: usize) -> BTreeMap<String, Project> {
    (0..count).map(|n| project(&format!("project-{n}"), "trusted")).collect()
}
