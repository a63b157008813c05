//! The check `tls`: whether browsers take the certificate, and for how long.

use super::verdict::{chain, failed, passed, warned};
use crate::certificates::source;
use svc_config::Config;
use svc_shared::Timestamp;
use svc_shared::internal::Check;
use svc_tls::{Facts, RENEW_BEFORE, Source, TlsError};

const NAME: &str = "tls";

/// Reads the certificate that the configuration names; nothing without `tls`.
pub(super) fn tls(config: &Config, now: Timestamp) -> Option<Check> {
    let source = source(config)?;
    let now_seconds = now.as_millis().div_euclid(1000);
    let (cert, key) = source.files();
    if matches!(source, Source::SelfSigned(_)) && !cert.exists() {
        return Some(passed(NAME, "a certificate is made at the next start"));
    }
    let facts = source.look().map(|pair| pair.facts().clone());
    let is_own = matches!(source, Source::SelfSigned(_));
    let check = judge(facts, now_seconds, is_own, mode_of(&key));
    Some(check)
}

fn judge(
    facts: Result<Facts, TlsError>,
    now_seconds: i64,
    is_own: bool,
    key_mode: Option<u32>,
) -> Check {
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) => {
            let remedy = match is_own {
                true => "restart svc: it makes a new certificate",
                false => "correct tls.cert_file and tls.key_file",
            };
            return failed(NAME, chain(&error), remedy);
        }
    };
    let renew = match is_own {
        true => "svc makes a new one while it runs; start it",
        false => "renew the file of tls.cert_file; svc reads it again by itself",
    };
    let until = Timestamp::from_millis(facts.not_after.saturating_mul(1000));
    let left = facts.left(now_seconds);
    if left <= 0 {
        return failed(NAME, format!("the certificate expired on {until}"), renew);
    }
    if facts.not_before > now_seconds {
        let from = Timestamp::from_millis(facts.not_before.saturating_mul(1000));
        let words = format!("the certificate is valid only from {from}");
        return failed(NAME, words, "correct the clock of this machine, or the certificate");
    }
    if let Some(mode) = key_mode.filter(|mode| mode & 0o077 != 0) {
        return warned(
            NAME,
            format!("others than its owner can use the private key (mode {:04o})", mode & 0o7777),
            "restrict the file of tls.key_file to 0600, and replace the key if others had access",
        );
    }
    let names = match facts.names.is_empty() {
        true => "no name".to_owned(),
        false => facts.names.join(", "),
    };
    if left <= RENEW_BEFORE {
        return warned(NAME, format!("the certificate for {names} expires on {until}"), renew);
    }
    passed(NAME, format!("valid until {until}, for {names}"))
}

#[cfg(unix)]
fn mode_of(path: &std::path::Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|metadata| metadata.mode())
}

#[cfg(not(unix))]
fn mode_of(_path: &std::path::Path) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;
    const DAY: i64 = 24 * 3600;

    fn verdict(days: i64, mode: u32) -> String {
        let facts =
            Facts { not_before: NOW - DAY, not_after: NOW + days * DAY, names: vec!["a.b".into()] };
        judge(Ok(facts), NOW, false, Some(mode)).status.to_string()
    }

    #[test]
    fn h13_an_expired_certificate_fails_and_one_that_ends_soon_warns() {
        assert_eq!(verdict(31, 0o100_600), "ok");
        assert_eq!(verdict(29, 0o100_600), "warn");
        assert_eq!(verdict(-1, 0o100_600), "fail");
        assert_eq!(verdict(90, 0o100_644), "warn");
        let error = TlsError::NoKey("key.pem".into());
        assert_eq!(judge(Err(error), NOW, false, None).status.to_string(), "fail");
    }
}
