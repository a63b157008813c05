//! The base of every black-box test: a private machine and the real `svc`.

mod books;
pub mod canary;
mod cli;
mod client;
mod clock;
mod contract;
mod dice;
mod edge;
mod events;
mod gate;
mod git_server;
mod invariants;
mod log_socket;
mod mail_sink;
mod network;
mod power;
mod processes;
mod proxy;
mod push_service;
mod receiver;
mod scarcity;
mod server;
mod shim;
mod store;
mod witness;
mod world;

pub use books::{Balance, Books};
pub use canary::PLANTED;
pub use cli::Ran;
pub use client::{Client, Reply};
pub use clock::Clock;
pub use contract::seen;
pub use dice::Dice;
pub use edge::{Edge, installed};
pub use events::{Events, Socket, socket, try_socket};
pub use gate::Gate;
pub use git_server::{GitServer, by_hand};
pub use log_socket::LogSocket;
pub use mail_sink::{Handed, MailSink};
pub use network::Network;
pub use power::Power;
pub use processes::{Process, gone, hunt_launcher, of_tree, stat_of};
pub use proxy::Proxy;
pub use push_service::{Browser, claims};
pub use receiver::{Answer, Delivery, Receiver};
pub use scarcity::{SmallDisk, limit, limit_as, open_descriptors};
pub use server::{Server, Start};
pub use store::Row;
pub use witness::Witness;
pub use world::World;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Long enough for a loaded machine; a pass never waits for it.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The program under test.
pub fn service() -> PathBuf {
    program("SVC_BIN", "svc")
}

/// The program under test with fail points compiled in, where it was built.
pub fn service_with_fail_points() -> Option<PathBuf> {
    let named = std::env::var_os("SVC_FAILPOINTS_BIN").map(PathBuf::from);
    named.filter(|path| path.is_file())
}

/// The agent's double.
pub fn simulator() -> PathBuf {
    program("SVC_SIM_BIN", "svc-agent-sim")
}

fn program(variable: &str, name: &str) -> PathBuf {
    if let Some(named) = std::env::var_os(variable) {
        return PathBuf::from(named);
    }
    // Tests lie in `deps`, the program of long runs in `examples`, programs one level above.
    let own = std::env::current_exe().expect("the path of this program");
    let beside = own.parent().and_then(Path::parent).map(|dir| dir.join(name));
    let found = beside.filter(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("`{name}` is not built; run `cargo build -p svc-server` first, or set {variable}")
    })
}

/// Waits for `work` at most [`DEADLINE`].
pub async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    within_limit(what, DEADLINE, work).await
}

/// Waits for `work` at most this long.
pub async fn within_limit<T>(what: &str, limit: Duration, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(limit, work)
        .await
        .unwrap_or_else(|_| panic!("{what} did not come within {limit:?}"))
}
