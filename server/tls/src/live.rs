//! The certificate in use, which can be replaced without ending a connection.

use crate::pair::Pair;
use crate::{Facts, Source, TlsError};
use arc_swap::ArcSwap;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert, ServerConfig};
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// The certificate in use.
///
/// New connections get the newest one; those that are open keep what they began with.
pub struct Certificates {
    source: Source,
    current: Arc<Current>,
    config: Arc<ServerConfig>,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").field("source", &self.source).finish_non_exhaustive()
    }
}

struct Current(ArcSwap<Pair>);

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Current")
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.load().certified))
    }
}

/// Whether a look at the files brought another certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reloaded {
    /// It is the same.
    Same,
    /// New connections get another one.
    Replaced,
}

impl Certificates {
    /// Reads the certificate, or makes it, and gets ready to serve with it. May block.
    ///
    /// # Errors
    /// The certificate cannot be used.
    pub fn open(source: Source, now_seconds: i64) -> Result<Self, TlsError> {
        let current = Arc::new(Current(ArcSwap::from_pointee(source.take(now_seconds)?)));
        let setup = |error: rustls::Error| TlsError::Setup(error.to_string());
        let provider = Arc::new(ring::default_provider());
        // TLS 1.2 and 1.3: the library has nothing older.
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(setup)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&current) as Arc<dyn ResolvesServerCert>);
        // All of them are strong; scanners ask that the server decides all the same.
        config.ignore_client_order = true;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Resumption without memory per client.
        config.ticketer = ring::Ticketer::new().map_err(setup)?;
        Ok(Self { source, current, config: Arc::new(config) })
    }

    /// What connections are served with.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// Where it comes from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// What the certificate in use says.
    #[must_use]
    pub fn facts(&self) -> Facts {
        self.current.0.load().facts().clone()
    }

    /// Looks at the files again, and renews a certificate where it is due.
    /// May block.
    ///
    /// # Errors
    /// What is there now cannot be used; the certificate in use stays.
    pub fn reload(&self, now_seconds: i64) -> Result<Reloaded, TlsError> {
        let next = self.source.take(now_seconds)?;
        let before = self.current.0.load();
        if before.certified.cert == next.certified.cert {
            return Ok(Reloaded::Same);
        }
        self.current.0.store(Arc::new(next));
        Ok(Reloaded::Replaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SelfSigned;

    #[test]
    fn h13_a_pair_that_does_not_load_leaves_the_old_one_in_use() {
        let tree = tempfile::tempdir().unwrap();
        let make = |dir: &str, now: i64| {
            let dir = tree.path().join(dir);
            let own = SelfSigned { dir, hostnames: vec!["box.example".to_owned()] };
            own.take(now).unwrap();
            own
        };
        let (one, two) = (make("one", 1_800_000_000), make("two", 1_800_000_000));
        let (cert, key) = (tree.path().join("cert.pem"), tree.path().join("key.pem"));
        let install = |own: &SelfSigned| {
            std::fs::copy(own.cert_file(), &cert).unwrap();
            std::fs::copy(own.key_file(), &key).unwrap();
        };
        install(&one);
        let source = Source::Files { cert: cert.clone(), key: key.clone() };
        let live = Certificates::open(source, 0).unwrap();
        let used = || live.current.0.load().certificate().to_vec();
        let first = used();
        assert_eq!(live.reload(0).unwrap(), Reloaded::Same);
        std::fs::copy(two.cert_file(), &cert).unwrap();
        assert!(matches!(live.reload(0), Err(TlsError::Mismatch { .. })));
        assert_eq!(used(), first);
        std::fs::copy(two.key_file(), &key).unwrap();
        assert_eq!(live.reload(0).unwrap(), Reloaded::Replaced);
        assert_ne!(used(), first);
        std::fs::write(&key, "nothing").unwrap();
        assert!(matches!(live.reload(0), Err(TlsError::NoKey(_))));
        std::fs::remove_file(&cert).unwrap();
        assert!(matches!(live.reload(0), Err(TlsError::Unreadable { .. })));
    }
}
