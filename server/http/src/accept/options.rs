//! The limits of the accept loop, of connections and of requests.

use std::time::Duration;

/// Limits of the accept loop and of requests, by default those of `http-api` §0.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeOptions {
    /// Most connections.
    pub max_connections: usize,
    /// Most connections of one peer (of IPv6 a network of 64 bits); loopback is exempt.
    pub max_per_peer: usize,
    /// Most open `WebSocket`s.
    pub max_sockets: usize,
    /// A request head must be complete this long after its first byte.
    pub head: Duration,
    /// A connection without a request ends after this.
    pub idle: Duration,
    /// A body that stops arriving ends the request after this.
    pub body_idle: Duration,
    /// A body must be complete this long after its head.
    pub body_total: Duration,
    /// The same for a caller that nobody knows: such bodies are a few words.
    pub body_anonymous: Duration,
    /// A peer that takes nothing is dropped after this.
    pub stall: Duration,
    /// Requests under way at shutdown have this long.
    pub grace: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            max_connections: 2048,
            max_per_peer: 256,
            max_sockets: 512,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            body_idle: Duration::from_secs(30),
            // 1 MiB at 140 kbit/s.
            body_total: Duration::from_secs(60),
            body_anonymous: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            grace: Duration::from_secs(10),
        }
    }
}

/// Descriptors that connections leave to everything else, whatever the limit is.
///
/// The database, locks and logs take about forty; a stop and a launch need a few more.
const KEPT_DESCRIPTORS: usize = 64;

impl ServeOptions {
    /// The same limits where this process may have only so many descriptors (H79).
    ///
    /// Connections leave some to stop a bridge with, and sockets, which nobody drops, leave some
    /// connections to ask for it.
    #[must_use]
    pub fn within(self, descriptors: u64) -> Self {
        let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
        let kept = KEPT_DESCRIPTORS.saturating_add(descriptors / 16);
        let max_connections = descriptors.saturating_sub(kept).max(8).min(self.max_connections);
        let max_sockets = (max_connections / 4 * 3).min(self.max_sockets);
        Self { max_connections, max_sockets, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h79_descriptors_are_left_for_a_stop() {
        let options = |descriptors| ServeOptions::default().within(descriptors);
        assert_eq!(options(u64::MAX), ServeOptions::default());
        let few = options(128);
        assert!(few.max_connections <= 64 && few.max_sockets < few.max_connections);
        assert!(few.max_sockets >= 16);
        let usual = options(1024);
        assert!(usual.max_connections >= 800 && usual.max_sockets == 512);
        assert!(options(0).max_connections > options(0).max_sockets);
    }
}
