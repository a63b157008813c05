//! A certificate that the service makes for itself (`configuration` §9).

use crate::TlsError;
use crate::pair::{Pair, canonical};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, SerialNumber,
};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use svc_process::files;
use time::{Duration, OffsetDateTime};

/// A new certificate is valid for so long: browsers accept no more.
const LIFETIME: Duration = Duration::days(825);
/// It is valid from a little earlier, for clients whose clock is late.
const BACKDATED: Duration = Duration::minutes(5);
/// It is made anew when it has so many seconds left: 30 days.
pub const RENEW_BEFORE: i64 = 30 * 24 * 3600;
/// Longest common name that X.509 allows, in characters.
const COMMON_NAME: usize = 64;

/// Where a certificate of our own is kept, and for which names it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfSigned {
    /// The directory for both files.
    pub dir: PathBuf,
    /// Names and addresses; the first is the subject.
    pub hostnames: Vec<String>,
}

impl SelfSigned {
    /// File of the certificate.
    #[must_use]
    pub fn cert_file(&self) -> PathBuf {
        self.dir.join("self-signed.crt")
    }

    /// File of the key.
    #[must_use]
    pub fn key_file(&self) -> PathBuf {
        self.dir.join("self-signed.key")
    }

    /// The kept certificate, or a new one where the kept one does not do.
    pub(crate) fn take(&self, now_seconds: i64) -> Result<Pair, TlsError> {
        files::private_directory(&self.dir)?;
        match Pair::read(&self.cert_file(), &self.key_file()) {
            Ok(kept) if self.does(&kept, now_seconds) => Ok(kept),
            Ok(_) | Err(_) => self.make(now_seconds),
        }
    }

    /// Whether a certificate is for exactly our names, and for long enough.
    fn does(&self, kept: &Pair, now_seconds: i64) -> bool {
        let facts = kept.facts();
        let wanted: BTreeSet<String> = self.hostnames.iter().map(|name| canonical(name)).collect();
        let has: BTreeSet<String> = facts.names.iter().cloned().collect();
        wanted == has && facts.left(now_seconds) > RENEW_BEFORE && facts.not_before <= now_seconds
    }

    fn make(&self, now_seconds: i64) -> Result<Pair, TlsError> {
        let not_made = |error: rcgen::Error| TlsError::NotMade(error.to_string());
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(not_made)?;
        let certificate = self.params(now_seconds)?.self_signed(&key).map_err(not_made)?;
        let (cert_pem, key_pem) = (certificate.pem(), key.serialize_pem());
        // The key first: who dies between the two leaves a pair that is found not to match.
        files::replace_with_mode(&self.key_file(), key_pem.as_bytes(), 0o600)?;
        files::replace_with_mode(&self.cert_file(), cert_pem.as_bytes(), 0o644)?;
        Pair::of_pem(cert_pem.as_bytes(), key_pem.as_bytes(), &self.cert_file(), &self.key_file())
    }

    fn params(&self, now_seconds: i64) -> Result<CertificateParams, TlsError> {
        let now = OffsetDateTime::from_unix_timestamp(now_seconds)
            .map_err(|error| TlsError::NotMade(error.to_string()))?;
        let mut serial = [0; 16];
        getrandom::fill(&mut serial).map_err(|error| TlsError::NotMade(error.to_string()))?;
        // Positive, and never so short that its length tells anything.
        serial[0] = (serial[0] & 0x7f) | 0x40;
        let first = self.hostnames.first().map(String::as_str).unwrap_or_default();
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, first.chars().take(COMMON_NAME).collect::<String>());
        let mut params = CertificateParams::default();
        params.subject_alt_names =
            self.hostnames.iter().map(|name| alternative(name)).collect::<Result<_, _>>()?;
        params.distinguished_name = subject;
        params.not_before = now - BACKDATED;
        // Some clients take nothing that is valid for longer.
        params.not_after = params.not_before + LIFETIME;
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        Ok(params)
    }
}

fn alternative(name: &str) -> Result<SanType, TlsError> {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address.to_canonical()));
    }
    let text = canonical(name);
    match text.clone().try_into() {
        Ok(name) => Ok(SanType::DnsName(name)),
        Err(_) => Err(TlsError::BadName(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const NOW: i64 = 1_800_000_000;
    const DAY: i64 = 24 * 3600;

    fn own(dir: &std::path::Path, names: &[&str]) -> SelfSigned {
        let hostnames = names.iter().map(|name| (*name).to_owned()).collect();
        SelfSigned { dir: dir.join("tls"), hostnames }
    }

    #[test]
    fn h13_a_certificate_is_kept_until_a_month_before_its_end() {
        let tree = tempfile::tempdir().unwrap();
        let own = own(tree.path(), &["box.example", "192.0.2.7", "::1"]);
        let first = own.take(NOW).unwrap();
        assert_eq!(first.facts().not_after, NOW + 825 * DAY - 300);
        assert_eq!(first.facts().not_before, NOW - 300);
        assert_eq!(first.facts().names, ["box.example", "192.0.2.7", "::1"]);
        let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(own.key_file()), mode(own.cert_file())), (0o600, 0o644));
        assert_eq!(mode(own.dir.clone()), 0o700);
        let later = own.take(NOW + 794 * DAY).unwrap();
        assert_eq!(later.certificate(), first.certificate());
        let renewed = own.take(NOW + 796 * DAY).unwrap();
        assert_ne!(renewed.certificate(), first.certificate());
        assert_eq!(own.take(NOW + 796 * DAY).unwrap().certificate(), renewed.certificate());
    }

    #[test]
    fn h13_another_set_of_names_or_a_damaged_file_makes_a_new_certificate() {
        let tree = tempfile::tempdir().unwrap();
        let one = own(tree.path(), &["a.example", "B.example"]).take(NOW).unwrap();
        let turned = own(tree.path(), &["b.example", "a.example"]);
        assert_eq!(turned.take(NOW).unwrap().certificate(), one.certificate(), "order is nothing");
        let fewer = own(tree.path(), &["a.example"]);
        let two = fewer.take(NOW).unwrap();
        assert_ne!(two.certificate(), one.certificate());
        for spoil in [fewer.key_file(), fewer.cert_file()] {
            std::fs::write(&spoil, "-----BEGIN NOTHING-----").unwrap();
            fewer.take(NOW).unwrap();
            assert!(Pair::read(&fewer.cert_file(), &fewer.key_file()).is_ok(), "{spoil:?}");
        }
        let other = own(tree.path().join("other").as_path(), &["a.example"]);
        other.take(NOW).unwrap();
        std::fs::copy(other.key_file(), fewer.key_file()).unwrap();
        let error = Pair::read(&fewer.cert_file(), &fewer.key_file()).unwrap_err();
        assert!(matches!(error, TlsError::Mismatch { .. }), "{error}");
        assert!(fewer.take(NOW).is_ok());
    }

    #[test]
    fn an_impossible_name_is_named() {
        let tree = tempfile::tempdir().unwrap();
        let error = own(tree.path(), &["übung.example"]).take(NOW).unwrap_err().to_string();
        assert!(error.contains("übung.example") && error.contains("tls.hostnames"), "{error}");
    }
}
