//! The values of our cookies.
//! Signed, opaque to browsers, checked before anything else is looked at (`http-api` §5.3, H19).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Bytes of a signed payload.
const PAYLOAD: usize = 8 + 8 + 16 + 8;
/// A clock may be this far ahead of the one that signed, milliseconds.
const SKEW_MILLIS: i64 = 60_000;

/// Keys of this installation, one for each kind of cookie.
/// One can never be read as the other.
#[derive(Clone)]
pub(crate) struct Keys {
    session: [u8; 32],
    elevation: [u8; 32],
    fingerprint: [u8; 32],
    probe: [u8; 32],
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

/// What a cookie is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Session,
    Elevation,
    /// Not a cookie: the pass of `svc doctor --probe`.
    Probe,
}

/// What a cookie says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Milliseconds since the epoch.
    pub(crate) issued: i64,
    /// The session epoch it belongs to.
    pub(crate) epoch: u64,
    /// The session, or what an elevation is bound to.
    pub(crate) id: [u8; 16],
    /// Of the password hash it was given for.
    pub(crate) fingerprint: [u8; 8],
}

impl Keys {
    /// Keys from the secret of this installation.
    pub(crate) fn from_secret(secret: &[u8]) -> Self {
        let derive = |info: &[u8]| {
            let mut key = [0; 32];
            // 32 bytes are far below the limit of the derivation, so it cannot fail.
            let _ = Hkdf::<Sha256>::new(None, secret).expand(info, &mut key);
            key
        };
        Self {
            session: derive(b"svc/session-cookie/v1"),
            elevation: derive(b"svc/elevation-cookie/v1"),
            fingerprint: derive(b"svc/password-fingerprint/v1"),
            probe: derive(b"svc/doctor-probe/v1"),
        }
    }

    fn mac(&self, purpose: Purpose, payload: &[u8]) -> Option<Hmac<Sha256>> {
        let key = match purpose {
            Purpose::Session => &self.session,
            Purpose::Elevation => &self.elevation,
            Purpose::Probe => &self.probe,
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
        mac.update(payload);
        Some(mac)
    }

    /// Tells password hashes apart without telling anything about them.
    pub(crate) fn fingerprint(&self, password_hash: Option<&str>) -> [u8; 8] {
        let mut short = [0; 8];
        if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.fingerprint) {
            mac.update(password_hash.unwrap_or_default().as_bytes());
            for (to, from) in short.iter_mut().zip(mac.finalize().into_bytes()) {
                *to = from;
            }
        }
        short
    }

    /// The value of a cookie.
    pub(crate) fn seal(&self, purpose: Purpose, ticket: &Ticket) -> Option<String> {
        let payload = ticket.to_bytes();
        let mac = self.mac(purpose, &payload)?.finalize().into_bytes();
        Some(format!("{}.{}", URL_SAFE_NO_PAD.encode(payload), URL_SAFE_NO_PAD.encode(mac)))
    }

    /// Reads a value that was sealed here for this purpose.
    /// Constant in time over the signature.
    pub(crate) fn open(&self, purpose: Purpose, raw: &str) -> Option<Ticket> {
        let (payload, mac) = raw.split_once('.')?;
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
        self.mac(purpose, &payload)?.verify_slice(&mac).ok()?;
        Ticket::from_bytes(&payload)
    }
}

impl Ticket {
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PAYLOAD);
        bytes.extend_from_slice(&self.issued.to_be_bytes());
        bytes.extend_from_slice(&self.epoch.to_be_bytes());
        bytes.extend_from_slice(&self.id);
        bytes.extend_from_slice(&self.fingerprint);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (issued, rest) = bytes.split_first_chunk()?;
        let (epoch, rest) = rest.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        Some(Self {
            issued: i64::from_be_bytes(*issued),
            epoch: u64::from_be_bytes(*epoch),
            id: *id,
            fingerprint: rest.try_into().ok()?,
        })
    }

    /// Whether it is as old as it may be and not from the future.
    pub(crate) fn is_current(&self, now_millis: i64, max_age_millis: i64) -> bool {
        let age = now_millis.saturating_sub(self.issued);
        (-SKEW_MILLIS..max_age_millis).contains(&age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TICKET: Ticket = Ticket { issued: 1000, epoch: 7, id: [3; 16], fingerprint: [4; 8] };

    fn keys() -> Keys {
        Keys::from_secret(&[9; 32])
    }

    #[test]
    fn h19_a_value_is_read_back_only_with_its_key_and_for_its_purpose() {
        let value = keys().seal(Purpose::Session, &TICKET).unwrap();
        assert_eq!(keys().open(Purpose::Session, &value), Some(TICKET));
        assert_eq!(keys().open(Purpose::Elevation, &value), None);
        assert_eq!(Keys::from_secret(&[8; 32]).open(Purpose::Session, &value), None);
        let (payload, mac) = value.split_once('.').unwrap();
        let other = keys().seal(Purpose::Session, &Ticket { epoch: 8, ..TICKET }).unwrap();
        let (other_payload, other_mac) = other.split_once('.').unwrap();
        for forged in [
            format!("{payload}.{other_mac}"),
            format!("{other_payload}.{mac}"),
            format!("{mac}.{payload}"),
            format!("{value}="),
            format!("{value}."),
            payload.to_owned(),
            String::new(),
        ] {
            assert_eq!(keys().open(Purpose::Session, &forged), None, "{forged}");
        }
    }

    #[test]
    fn h19_h25_age_is_bounded_on_both_sides() {
        for (now, is_current) in [
            (1000, true),
            (1999, true),
            (2000, false),
            (-58_000, true),
            (-59_001, false),
            (i64::MIN, false),
            (i64::MAX, false),
        ] {
            assert_eq!(TICKET.is_current(now, 1000), is_current, "{now}");
        }
    }

    #[test]
    fn another_password_has_another_fingerprint() {
        assert_ne!(keys().fingerprint(Some("a")), keys().fingerprint(Some("b")));
        assert_ne!(keys().fingerprint(None), keys().fingerprint(Some("b")));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn h19_no_changed_bit_survives(bit in 0_usize..104 * 8) {
            let value = keys().seal(Purpose::Session, &TICKET).unwrap();
            let mut bytes = value.clone().into_bytes();
            let place = (bit / 8) % bytes.len();
            bytes[place] ^= 1 << (bit % 8);
            let opened = String::from_utf8(bytes).ok().and_then(|raw| keys().open(Purpose::Session, &raw));
            prop_assert_eq!(opened, None);
        }

        #[test]
        fn h19_no_text_is_a_cookie(raw in "[A-Za-z0-9_.-]{0,120}") {
            prop_assert_eq!(keys().open(Purpose::Session, &raw), None);
        }
    }
}
