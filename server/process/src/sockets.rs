//! What the kernel says about sockets.
//!
//! Who is at the other end, and whether one listens.

#[cfg(target_os = "linux")]
pub use linux::{listens, peer_pid, peer_uid};
#[cfg(target_os = "macos")]
pub use macos::{listens, peer_pid, peer_uid};

#[cfg(target_os = "linux")]
mod linux {
    use rustix::net::sockopt::{socket_acceptconn, socket_peercred};
    use std::io;
    use std::os::fd::AsFd;

    /// The user at the other end of a local socket.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn peer_uid(socket: impl AsFd) -> io::Result<u32> {
        Ok(socket_peercred(socket)?.uid.as_raw())
    }

    /// The process at the other end of a local socket.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn peer_pid(socket: impl AsFd) -> io::Result<i32> {
        Ok(socket_peercred(socket)?.pid.as_raw_pid())
    }

    /// Whether connections to a socket are accepted.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn listens(socket: impl AsFd) -> io::Result<bool> {
        Ok(socket_acceptconn(socket)?)
    }
}

#[cfg(target_os = "macos")]
mod macos {
    use nix::sys::socket::{getsockopt, sockopt};
    use std::io;
    use std::os::fd::AsFd;

    /// The user at the other end of a local socket.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn peer_uid(socket: impl AsFd) -> io::Result<u32> {
        Ok(nix::unistd::getpeereid(socket)?.0.as_raw())
    }

    /// The process at the other end of a local socket.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn peer_pid(socket: impl AsFd) -> io::Result<i32> {
        Ok(getsockopt(&socket, sockopt::LocalPeerPid)?)
    }

    /// Whether connections to a socket are accepted.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn listens(socket: impl AsFd) -> io::Result<bool> {
        Ok(getsockopt(&socket, sockopt::AcceptConn)?)
    }
}
