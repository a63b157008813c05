//! Points in time, as wire and database have them. There is no `now()` here.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds since the Unix epoch, UTC. On the wire RFC 3339 with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the Unix epoch; values outside years 0–9999 are clamped.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        // The RFC 3339 form has four year digits.
        Self(millis.clamp(-62_167_219_200_000, 253_402_300_799_999))
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// This time plus a duration, clamped at the end of year 9999.
    #[must_use]
    pub fn plus(self, duration: std::time::Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// Time since `earlier`; zero when `earlier` lies in the future (a clock step).
    #[must_use]
    pub fn since(self, earlier: Self) -> std::time::Duration {
        std::time::Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute(),
            at.second(),
            at.millisecond()
        )
    }
}

impl std::str::FromStr for Timestamp {
    type Err = time::error::Parse;
    fn from_str(raw: &str) -> Result<Self, Self::Err> {
        let at = OffsetDateTime::parse(raw, &Rfc3339)?;
        let millis = at.unix_timestamp_nanos() / 1_000_000;
        Ok(Self::from_millis(i64::try_from(millis).unwrap_or(0)))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = String::deserialize(from)?;
        raw.parse().map_err(|_| de::Error::custom("not an RFC 3339 time"))
    }
}

#[cfg(feature = "openapi")]
crate::text::string_schema!(Timestamp, "string", "date-time");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_with_milliseconds_and_z() {
        let at = Timestamp::from_millis(1_795_254_455_007);
        assert_eq!(at.to_string(), "2026-11-21T09:47:35.007Z");
        assert_eq!(at.to_string().parse::<Timestamp>().unwrap(), at);
    }

    #[test]
    fn a_time_in_another_zone_is_read_as_the_same_instant() {
        let at: Timestamp = "2026-11-21T10:47:35.007+01:00".parse().unwrap();
        assert_eq!(at.to_string(), "2026-11-21T09:47:35.007Z");
    }

    #[test]
    fn f77_durations_are_never_negative() {
        let early = Timestamp::from_millis(5);
        let late = Timestamp::from_millis(9);
        assert_eq!(early.since(late).as_millis(), 0);
        assert_eq!(late.since(early).as_millis(), 4);
    }
}
