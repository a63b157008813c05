//! Why a certificate cannot be used.

use std::io;
use std::path::PathBuf;
use svc_process::files::FileError;

/// Why a certificate cannot be used.
/// The words name the file and never what is in it.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{} cannot be read", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// No certificate is in the file.
    #[error("{} holds no certificate; it must be a PEM file with BEGIN CERTIFICATE", .0.display())]
    NoCertificate(PathBuf),
    /// A certificate cannot be understood.
    #[error("the certificate in {} cannot be understood; it is damaged or of another format", .0.display())]
    BadCertificate(PathBuf),
    /// No private key is in the file.
    #[error(
        "{} holds no private key that can be used; it must be an unencrypted PEM file with BEGIN \
         PRIVATE KEY", .0.display()
    )]
    NoKey(PathBuf),
    /// Certificate and key do not belong together.
    #[error(
        "the key in {} does not belong to the certificate in {}; both must come from the same \
         request", .key.display(), .cert.display()
    )]
    Mismatch {
        /// File of the certificate.
        cert: PathBuf,
        /// File of the key.
        key: PathBuf,
    },
    /// A certificate cannot be made for such names.
    #[error("no certificate can be made for the name `{0}`; correct `tls.hostnames`")]
    BadName(String),
    /// A certificate could not be made.
    #[error("no certificate could be made: {0}")]
    NotMade(String),
    /// A certificate that was made cannot be kept.
    #[error("the certificate cannot be kept")]
    NotKept(#[from] FileError),
    /// The library refuses its own defaults.
    #[error("TLS cannot be set up: {0}")]
    Setup(String),
}
