//! A certificate with its key, and what the certificate says.

use crate::TlsError;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// From when it is valid, seconds since 1970.
    pub not_before: i64,
    /// Until when it is valid, seconds since 1970.
    pub not_after: i64,
    /// The names and addresses it is for: names in lower case.
    pub names: Vec<String>,
}

impl Facts {
    /// What an encoded certificate says; `None` when it cannot be understood.
    #[must_use]
    pub fn of(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let validity = certificate.validity();
        let names = certificate.subject_alternative_name().ok()?;
        let names = names.map(|names| names.value.general_names.as_slice()).unwrap_or_default();
        Some(Self {
            not_before: validity.not_before.timestamp(),
            not_after: validity.not_after.timestamp(),
            names: names.iter().filter_map(name).collect(),
        })
    }

    /// Whether it is for a name or an address.
    #[must_use]
    pub fn covers(&self, host: &str) -> bool {
        let host = canonical(host);
        let is_address = host.parse::<IpAddr>().is_ok();
        self.names.iter().any(|name| match name.strip_prefix("*.") {
            Some(suffix) if !is_address => host
                .split_once('.')
                .is_some_and(|(first, rest)| !first.is_empty() && rest == suffix),
            Some(_) => false,
            None => *name == host,
        })
    }

    /// Seconds until it ends, less than 0 when it has ended.
    #[must_use]
    pub fn left(&self, now_seconds: i64) -> i64 {
        self.not_after - now_seconds
    }
}

/// A name as it is compared: lower case, addresses in their shortest form.
pub(crate) fn canonical(host: &str) -> String {
    let bare = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    match bare.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().to_string(),
        Err(_) => bare.to_ascii_lowercase(),
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(canonical(name)),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from)).ok()?;
            Some(address.to_canonical().to_string())
        }
        _ => None,
    }
}

/// Chains and keys are much smaller.
const LARGEST: u64 = 1 << 20;

/// A certificate with its key, ready to serve.
#[derive(Debug, Clone)]
pub struct Pair {
    pub(crate) certified: Arc<CertifiedKey>,
    facts: Facts,
}

impl Pair {
    /// Reads two PEM files.
    ///
    /// # Errors
    /// They cannot be read, hold something else, or do not belong together.
    pub fn read(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let read = |path: &Path| {
            svc_process::files::read_plain(path, LARGEST)
                .map_err(|cause| TlsError::Unreadable { path: path.to_owned(), cause })
        };
        Self::of_pem(&read(cert)?, &read(key)?, cert, key)
    }

    /// The same from bytes; the paths are for the errors.
    pub(crate) fn of_pem(
        cert_pem: &[u8],
        key_pem: &[u8],
        cert: &Path,
        key: &Path,
    ) -> Result<Self, TlsError> {
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_slice_iter(cert_pem).collect();
        let chain = chain.map_err(|_| TlsError::BadCertificate(cert.to_owned()))?;
        let first = chain.first().ok_or_else(|| TlsError::NoCertificate(cert.to_owned()))?;
        let facts = Facts::of(first).ok_or_else(|| TlsError::BadCertificate(cert.to_owned()))?;
        let no_key = |_| TlsError::NoKey(key.to_owned());
        let der = PrivateKeyDer::from_pem_slice(key_pem).map_err(no_key)?;
        let signing =
            ring::sign::any_supported_type(&der).map_err(|_| TlsError::NoKey(key.to_owned()))?;
        let certified = CertifiedKey::new(chain, signing);
        match certified.keys_match() {
            Ok(()) => Ok(Self { certified: Arc::new(certified), facts }),
            Err(_) => Err(TlsError::Mismatch { cert: cert.to_owned(), key: key.to_owned() }),
        }
    }

    /// What the certificate says.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The encoded certificate itself.
    #[must_use]
    pub fn certificate(&self) -> &[u8] {
        self.certified.cert.first().map(AsRef::as_ref).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_for_its_names_and_one_level_below_a_star() {
        let names = ["box.example", "*.lan.example", "192.0.2.7", "2001:db8::1"];
        let facts = Facts { not_before: 0, not_after: 0, names: names.map(str::to_owned).to_vec() };
        for host in ["BOX.example", "box.example.", "a.lan.example", "192.0.2.7", "[2001:db8::1]"] {
            assert!(facts.covers(host), "{host}");
        }
        for host in ["lan.example", "a.b.lan.example", ".lan.example", "192.0.2.8", "x", ""] {
            assert!(!facts.covers(host), "{host}");
        }
    }
}
