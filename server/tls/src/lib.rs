//! The certificate of the service: read, made, judged and replaced.
//!
//! Nothing here knows the configuration or waits for anything: callers say which files, which names
//! and what time it is, on a thread that may block. Key bytes appear in no error.

mod client;
mod error;
mod live;
mod pair;
mod self_signed;

pub use client::{Seen, recording_client};
pub use error::TlsError;
pub use live::{Certificates, Reloaded};
pub use pair::{Facts, Pair};
pub use self_signed::{RENEW_BEFORE, SelfSigned};

use std::path::PathBuf;

/// Where the certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Two PEM files of the operator.
    Files {
        /// The certificate and those between it and the authority.
        cert: PathBuf,
        /// The private key.
        key: PathBuf,
    },
    /// Made here, and made anew before it ends.
    SelfSigned(SelfSigned),
}

impl Source {
    /// The certificate as it lies there. Makes nothing.
    ///
    /// # Errors
    /// The files cannot be used.
    pub fn look(&self) -> Result<Pair, TlsError> {
        let (cert, key) = self.files();
        Pair::read(&cert, &key)
    }

    /// The files of certificate and key.
    #[must_use]
    pub fn files(&self) -> (PathBuf, PathBuf) {
        match self {
            Self::Files { cert, key } => (cert.clone(), key.clone()),
            Self::SelfSigned(own) => (own.cert_file(), own.key_file()),
        }
    }

    /// The certificate to serve with; one of our own is made where it is due.
    fn take(&self, now_seconds: i64) -> Result<Pair, TlsError> {
        match self {
            Self::Files { cert, key } => Pair::read(cert, key),
            Self::SelfSigned(own) => own.take(now_seconds),
        }
    }
}
