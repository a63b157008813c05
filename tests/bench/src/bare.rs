//! A bare route of the server's framework: the upper limit of this machine.

use anyhow::{Result, ensure};
use poem::listener::TcpListener;
use poem::{Route, Server, get, handler};
use std::net::TcpListener as Free;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// First argument of the process that serves it.
pub const WORD: &str = "__bare__";
/// About as large as the health report.
const BODY: &str = r#"{"status":"ok","version":"0.1.0","claude_ok":true,"claude_version":"2.1.197","claude_login_ok":true,"claude_login_method":"claude.ai","claude_login_expires_at":null,"instances_running":0}"#;

#[handler]
fn answer() -> poem::Response {
    poem::Response::builder().content_type("application/json").body(BODY)
}

/// Serves until it is killed.
pub fn serve(port: &str) -> Result<()> {
    let port: u16 = port.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let route = Route::new().at("/", get(answer));
    Ok(runtime.block_on(Server::new(TcpListener::bind(("127.0.0.1", port))).run(route))?)
}

/// A process that serves it.
pub struct Bare {
    child: Child,
    pub port: u16,
}

impl Bare {
    pub fn start() -> Result<Self> {
        let port = Free::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let child =
            Command::new(std::env::current_exe()?).args([WORD, &port.to_string()]).spawn()?;
        let bare = Self { child, port };
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(began.elapsed() < Duration::from_secs(30), "the bare route does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(bare)
    }
}

impl Bare {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
