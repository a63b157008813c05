//! What a browser gives so that it can be notified.
//!
//! It is judged before anything is kept of it.

use crate::AppError;
use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use p256::PublicKey;
use std::collections::BTreeSet;
use svc_domain::log_escape::escape;
use svc_shared::internal::push::{PushEvent, PushKeys, SubscribePush};
use url::Url;
use web_push_native::Auth;

/// Longest address of a push service.
///
/// Those that are known have a few hundred characters.
const LONGEST: usize = 2_048;
/// Longest name of a device, in characters.
const LABEL: usize = 80;
/// Bytes of a point of P-256 that is written out.
const POINT: usize = 65;
/// Bytes of the browser's secret.
const SECRET: usize = 16;

/// What was checked. Has no debug form: nearly all of it is secret.
pub(super) struct Checked {
    pub url: Url,
    pub label: Option<String>,
    pub events: BTreeSet<PushEvent>,
}

/// Judges everything but the addresses of the host.
pub(super) fn checked(wanted: &SubscribePush) -> Result<Checked, AppError> {
    let url =
        address(&wanted.endpoint).map_err(|why| AppError::invalid(format!("`endpoint` {why}")))?;
    public_key(&wanted.keys).ok_or_else(|| {
        AppError::invalid(
            "`keys.p256dh` is no public key of a browser: 65 bytes of a point of P-256 in \
             base64url; pass on what the browser gave",
        )
    })?;
    secret(&wanted.keys).ok_or_else(|| {
        AppError::invalid(
            "`keys.auth` is no secret of a browser: 16 bytes in base64url; pass on what the \
             browser gave",
        )
    })?;
    let label = wanted.label.as_deref().map(named).filter(|label| !label.is_empty());
    let events = match &wanted.events {
        None => PushEvent::USUAL.into(),
        Some(words) => {
            let read = words.iter().map(|word| word.parse::<PushEvent>());
            read.collect::<Result<BTreeSet<PushEvent>, _>>()
                .map_err(|error| AppError::invalid(format!("`events` has another word; {error}")))?
        }
    };
    if events.is_empty() {
        return Err(AppError::invalid(
            "`events` is empty; name what to tell, leave it out for what needs somebody, or \
             remove the subscription",
        ));
    }
    Ok(Checked { url, label, events })
}

/// The address of a push service. Never quoted: whoever knows it can notify.
fn address(raw: &str) -> Result<Url, &'static str> {
    if raw.len() > LONGEST {
        return Err("is longer than 2,048 characters; pass on what the browser gave");
    }
    let url = Url::parse(raw).map_err(|_| "is no URL; pass on what the browser gave")?;
    if url.scheme() != "https" {
        return Err("must begin with https://; pass on what the browser gave");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user or a password; pass on what the browser gave");
    }
    if !url.has_host() || url.fragment().is_some() {
        return Err("is no address of a push service; pass on what the browser gave");
    }
    Ok(url)
}

/// A name in one line, cut.
fn named(label: &str) -> String {
    escape(label.trim()).chars().take(LABEL).collect()
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    // Some libraries pad.
    let mode = DecodePaddingMode::Indifferent;
    let config: GeneralPurposeConfig = NO_PAD.with_decode_padding_mode(mode);
    (text.len() <= 200).then(|| GeneralPurpose::new(&URL_SAFE, config).decode(text).ok())?
}

/// The browser's public key.
pub(super) fn public_key(keys: &PushKeys) -> Option<PublicKey> {
    let bytes = decoded(&keys.p256dh).filter(|bytes| bytes.len() == POINT)?;
    PublicKey::from_sec1_bytes(&bytes).ok()
}

/// The browser's secret.
pub(super) fn secret(keys: &PushKeys) -> Option<Auth> {
    let bytes: [u8; SECRET] = decoded(&keys.auth)?.try_into().ok()?;
    Some(bytes.into())
}

/// Host and port: the rest is never shown.
pub(super) fn shown(endpoint: &str) -> String {
    let url = Url::parse(endpoint).ok();
    let shown = url.as_ref().and_then(|url| {
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        Some(format!("{}{port}", url.host_str()?))
    });
    shown.unwrap_or_default()
}

/// Words of a push service without the secrets of the address.
pub(super) fn masked(endpoint: &Url, text: &str) -> String {
    let segments = endpoint.path_segments().into_iter().flatten().map(str::to_owned);
    let query = endpoint.query_pairs().map(|(_, value)| value.into_owned());
    let mut secrets: Vec<String> =
        segments.chain(query).filter(|part| part.len() >= SECRET / 2).collect();
    secrets.sort_by_key(|part| std::cmp::Reverse(part.len()));
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "********"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The receiver of RFC 8291, appendix A.
    const KEY: &str =
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";

    fn asked(endpoint: &str) -> SubscribePush {
        SubscribePush {
            endpoint: endpoint.to_owned(),
            keys: PushKeys { p256dh: KEY.to_owned(), auth: AUTH.to_owned() },
            label: None,
            events: None,
        }
    }

    #[track_caller]
    fn refused(wanted: &SubscribePush) -> String {
        match checked(wanted) {
            Ok(_) => panic!("it was taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_a_browser_gives_is_taken() {
        let mut wanted = asked("https://push.example/wpush/v2/CANARY");
        wanted.keys.p256dh.push('=');
        wanted.label = Some(" My\nphone ".to_owned());
        let taken = checked(&wanted).unwrap();
        assert_eq!(taken.url.host_str(), Some("push.example"));
        assert_eq!(taken.label.as_deref(), Some("My\\x0aphone"));
        assert_eq!(taken.events, PushEvent::USUAL.into());
        assert_eq!(shown(&wanted.endpoint), "push.example");
    }

    #[test]
    fn hostile_addresses_are_refused_without_being_quoted() {
        for endpoint in [
            "http://push.example/CANARY".to_owned(),
            "https://me:CANARY@push.example/x".to_owned(),
            "https://CANARY@push.example/x".to_owned(),
            "file:///CANARY".to_owned(),
            "CANARY".to_owned(),
            String::new(),
            "https://push.example/x#CANARY".to_owned(),
            format!("https://push.example/CANARY{}", "x".repeat(LONGEST)),
        ] {
            let said = refused(&asked(&endpoint));
            assert!(said.contains("`endpoint`") && !said.contains("CANARY"), "{said}");
        }
    }

    #[test]
    fn keys_that_are_none_are_refused() {
        let off_curve = format!("BA{}", "A".repeat(85));
        for (p256dh, auth) in [
            ("", AUTH),
            ("CANARY!", AUTH),
            (AUTH, AUTH),
            (off_curve.as_str(), AUTH),
            (&"A".repeat(100_000), AUTH),
            (KEY, ""),
            (KEY, "CANARY"),
            (KEY, KEY),
        ] {
            let keys = PushKeys { p256dh: p256dh.to_owned(), auth: auth.to_owned() };
            let said = refused(&SubscribePush { keys, ..asked("https://push.example/x") });
            assert!(said.contains("`keys.") && !said.contains("CANARY"), "{said}");
        }
    }

    #[test]
    fn events_are_known_words() {
        for events in [vec![], vec!["spawn".to_owned()], vec!["CANARY".to_owned()]] {
            let said =
                refused(&SubscribePush { events: Some(events), ..asked("https://a.example/x") });
            assert!(said.contains("`events`") && !said.contains("CANARY"), "{said}");
        }
    }

    #[test]
    fn what_a_service_says_is_shown_without_the_address() {
        let url = Url::parse("https://push.example/send/abcdefghij?k=0123456789").unwrap();
        assert_eq!(masked(&url, "no abcdefghij, 0123456789"), "no ********, ********");
    }
}
