//! The socket that hooks ask at: for this user alone.

use crate::asked::Answered;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener as BlockingListener;
use std::path::{Path, PathBuf};
use svc_process::files;
use tokio::net::{UnixListener, UnixStream};

/// The socket; `None` where there cannot be one, which is told.
pub(super) async fn listen(path: PathBuf) -> Option<UnixListener> {
    let bound = tokio::task::spawn_blocking(move || bind(&path)).await;
    match bound.map_err(io::Error::other).flatten().and_then(UnixListener::from_std) {
        Ok(listener) => Some(listener),
        Err(error) => {
            tracing::warn!(
                error = %error,
                "no socket for questions of sessions; they are asked in their own client alone"
            );
            None
        }
    }
}

fn bind(path: &Path) -> io::Result<BlockingListener> {
    if let Some(dir) = path.parent() {
        files::private_directory(dir).map_err(|error| io::Error::other(error.to_string()))?;
    }
    remove(path)?;
    // The directory lets nobody else in before the mode is set.
    let listener = BlockingListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Removes the socket. Blocks.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    files::remove_socket(path)
}

/// Whether the process at the other end is one of this user.
pub(super) fn is_own(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

/// Has the agent ask by itself, without waiting for it to hear that.
pub(super) fn decline(stream: &UnixStream) {
    if let Ok(line) = line(&Answered::none()) {
        // One that does not take a short line asks by itself as well.
        let _ = stream.try_write(&line);
    }
}

/// An answer as it is written.
pub(super) fn line(answered: &Answered) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(answered)?;
    line.push(b'\n');
    Ok(line)
}
