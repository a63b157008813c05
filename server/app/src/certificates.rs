//! Which certificate the configuration names.

use svc_config::{Config, TlsProvision};
use svc_tls::{SelfSigned, Source};

/// Directory of a self-signed certificate, in the state directory.
const DIRECTORY: &str = "tls";

/// Where the certificate comes from; `None` without `tls`.
#[must_use]
pub fn source(config: &Config) -> Option<Source> {
    let tls = config.tls.as_ref()?;
    Some(match (tls.provision, &tls.cert_file, &tls.key_file) {
        (TlsProvision::Off, Some(cert), Some(key)) => {
            Source::Files { cert: cert.clone(), key: key.clone() }
        }
        // A configuration with anything between the two is refused when it is loaded.
        (TlsProvision::Off | TlsProvision::SelfSigned, _, _) => Source::SelfSigned(SelfSigned {
            dir: config.state_dir.join(DIRECTORY),
            hostnames: tls.hostnames.clone(),
        }),
    })
}
