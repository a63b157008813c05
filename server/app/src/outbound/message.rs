//! One event as it is posted: its body, its id and its signature.

use crate::AppError;
use bytes::Bytes;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use svc_config::Secret;
use svc_domain::redact::redact_text;
use svc_shared::Timestamp;
use svc_shared::events::{Event, Payload};
use svc_store::OutboxEvent;
use uuid::Builder;

/// Longest label and longest id, in bytes.
const SHORT: usize = 1024;
/// Longest explanation in bytes.
///
/// Escaped as JSON it is at most six times as long: below 64 KiB.
const LONG: usize = 8 * 1024;
/// Stands where a text was cut.
const CUT: &str = "… (cut)";

/// A post that is the same for all targets.
#[derive(Debug)]
pub(super) struct Message {
    /// The name of the event.
    pub event: String,
    /// Unique per event.
    pub delivery: String,
    /// Unix seconds of the event.
    pub seconds: i64,
    /// JSON.
    pub body: Bytes,
    /// The header `X-Svc-Signature`, if there is a key.
    pub signature: Option<String>,
}

impl Message {
    /// The post of an event.
    pub fn of(event: &Event, now: Timestamp, key: Option<&Secret>) -> Result<Self, AppError> {
        let payload = fit(event.payload.clone());
        let body = serde_json::to_vec(&payload).map_err(AppError::internal)?;
        Self::new(event.name().as_str(), body, now, key)
    }

    /// The post of an event that the outbox kept.
    ///
    /// It is signed now: a receiver takes only what is recent.
    pub fn kept(event: &OutboxEvent, now: Timestamp, key: Option<&Secret>) -> Self {
        let (delivery, body) = (event.delivery.clone(), event.body.clone().into_bytes());
        let signature = key.map(|key| signature(key.expose(), seconds(now), &delivery, &body));
        let (event, seconds) = (event.event.clone(), seconds(event.at));
        Self { event, delivery, seconds, body: body.into(), signature }
    }

    /// A post that says only that it is a test.
    pub fn test(now: Timestamp, key: Option<&Secret>) -> Result<Self, AppError> {
        Self::new("test", br#"{"event":"test"}"#.to_vec(), now, key)
    }

    fn new(
        event: &str,
        body: Vec<u8>,
        now: Timestamp,
        key: Option<&Secret>,
    ) -> Result<Self, AppError> {
        let (delivery, seconds) = (delivery_id(now)?, seconds(now));
        let signature = key.map(|key| signature(key.expose(), seconds, &delivery, &body));
        Ok(Self { event: event.to_owned(), delivery, seconds, body: body.into(), signature })
    }
}

fn seconds(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(1000)
}

/// A UUID of version 7.
pub(super) fn delivery_id(now: Timestamp) -> Result<String, AppError> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|error| AppError::internal(error.to_string()))?;
    let stamp = u64::try_from(now.as_millis()).unwrap_or_default();
    Ok(Builder::from_unix_timestamp_millis(stamp, &random).into_uuid().to_string())
}

/// The header that proves who posted a body, and when.
fn signature(key: &str, seconds: i64, delivery: &str, body: &[u8]) -> String {
    // A key of any length is good for HMAC.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.as_bytes()) else { return String::new() };
    mac.update(format!("{seconds}.{delivery}.").as_bytes());
    mac.update(body);
    format!("t={seconds},v1={}", hex::encode(mac.finalize().into_bytes()))
}

/// Redacts foreign texts, and cuts long ones (H49).
fn fit(payload: Payload) -> Payload {
    let long = |text: Option<String>| text.map(|text| fitted(&text, LONG));
    match payload {
        Payload::Bridge(told) => {
            let label = fitted(&told.label, SHORT);
            Payload::Bridge(svc_shared::events::BridgeEvent { label, ..told })
        }
        Payload::BgSettled(told) => {
            let (id, detail) = (fitted(&told.id, SHORT), long(told.detail.clone()));
            Payload::BgSettled(svc_shared::events::BgSettled { id, detail, ..told })
        }
        Payload::PermissionNeeded(told) => {
            // Ours: it is no raw id of the agent, although it has the form of one.
            let process_id = cut(&told.process_id, SHORT);
            let subtype = fitted(&told.subtype, SHORT);
            Payload::PermissionNeeded(svc_shared::events::PermissionNeeded {
                process_id,
                subtype,
                ..told
            })
        }
        Payload::CloneDone(told) => {
            let error = long(told.error.clone());
            Payload::CloneDone(svc_shared::events::CloneDone { error, ..told })
        }
    }
}

pub(super) fn fitted(text: &str, most: usize) -> String {
    cut(&redact_text(text), most)
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most - CUT.len()).rev().find(|at| text.is_char_boundary(*at));
    format!("{}{CUT}", text.get(..end.unwrap_or_default()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_millis(1_700_000_000_123)
    }

    #[test]
    fn the_signature_is_hmac_over_time_delivery_and_body() {
        // openssl dgst -sha256 -hmac key, of `1700000000.d1.{}`.
        let expected = "47725199cee6f328756009dff436d7c5e00a0f454e464dec23b21454cc805109";
        assert_eq!(
            signature("key", 1_700_000_000, "d1", b"{}"),
            format!("t=1700000000,v1={expected}")
        );
    }

    #[test]
    fn h49_what_people_choose_adds_no_field_and_long_texts_are_cut() {
        let detail = "\u{1}x\r\nX-A: b\"".repeat(40_000);
        let event = Event::bg_settled("0a1b2c3d".into(), true, true, Some(detail));
        let message = Message::of(&event, now(), None).unwrap();
        assert!(message.body.len() <= 64 * 1024, "{}", message.body.len());
        let body: serde_json::Value = serde_json::from_slice(&message.body).unwrap();
        assert_eq!(body.as_object().unwrap().len(), 6);
        assert!(body["detail"].as_str().unwrap().ends_with(CUT));
        assert!(message.body.starts_with(br#"{"event":"bg-settled""#));
        assert!(message.signature.is_none());
    }

    #[test]
    fn the_id_of_a_delivery_is_of_version_7() {
        let key = Secret::new("key".into());
        let message = Message::test(now(), Some(&key)).unwrap();
        let id: uuid::Uuid = message.delivery.parse().unwrap();
        assert_eq!(id.get_version_num(), 7);
        assert_eq!(message.seconds, 1_700_000_000);
        assert!(message.signature.unwrap().starts_with("t=1700000000,v1="));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let text = "ä".repeat(SHORT);
        let short = cut(&text, SHORT);
        assert!(short.len() <= SHORT && short.ends_with(CUT), "{}", short.len());
    }
}
