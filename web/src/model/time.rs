//! Spans and points in time as the page writes them.
//!
//! Times are milliseconds since the Unix epoch; `zone` is the browser's offset from UTC in
//! minutes (east is positive) at that time, asked from the platform by the caller.

use svc_shared::Timestamp;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A span in its two largest units; never negative (a clock may step back).
#[must_use]
pub fn span(millis: i64) -> String {
    let ms = millis.max(0);
    match ms {
        _ if ms < MINUTE => format!("{} s", ms / SECOND),
        _ if ms < HOUR => format!("{} min", ms / MINUTE),
        _ if ms < DAY => two(ms / HOUR, "h", ms % HOUR / MINUTE, "min"),
        _ => two(ms / DAY, "d", ms % DAY / HOUR, "h"),
    }
}

fn two(big: i64, big_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{big} {big_unit}")
    } else {
        format!("{big} {big_unit} {small} {small_unit}")
    }
}

/// A time allowed: in seconds up to two minutes, as people set it.
#[must_use]
pub fn limit(millis: i64) -> String {
    if millis <= 2 * MINUTE { format!("{} s", millis.max(0) / SECOND) } else { span(millis) }
}

/// Whether a span is still written in seconds, so that it changes every second.
#[must_use]
pub fn counts_seconds(millis: i64) -> bool {
    millis < MINUTE
}

/// How long ago: relative under 24 h, else the date and time.
#[must_use]
pub fn ago(at: Timestamp, now: i64, zone: i32) -> String {
    let age = now - at.as_millis();
    if age < 5 * SECOND {
        "just now".to_owned()
    } else if age < DAY {
        // The second unit adds nothing to "3 h ago".
        let coarse = if age < HOUR { age } else { age - age % HOUR };
        format!("{} ago", span(coarse))
    } else {
        date_time(at, zone)
    }
}

/// Whether [`ago`] wrote an age.
#[must_use]
pub fn is_relative(text: &str) -> bool {
    !text.contains(':')
}

/// Time of day: `08:07:35`.
#[must_use]
pub fn clock(at: Timestamp, zone: i32) -> String {
    local(at, zone).get(11..19).unwrap_or_default().to_owned()
}

/// Date and time: `2026-11-21 08:07:35`.
#[must_use]
pub fn date_time(at: Timestamp, zone: i32) -> String {
    let text = local(at, zone);
    format!("{} {}", text.get(..10).unwrap_or_default(), text.get(11..19).unwrap_or_default())
}

/// The time of day when it is within a day of `now`, else date and time.
#[must_use]
pub fn clock_or_date(at: Timestamp, now: i64, zone: i32) -> String {
    if (now - at.as_millis()).abs() < DAY { clock(at, zone) } else { date_time(at, zone) }
}

/// Minutes east of UTC of a wall clock that shows `2026-11-21 08:07:35` at a time.
#[must_use]
pub fn offset(wall: &str, at: i64) -> Option<i32> {
    let shown: Timestamp = format!("{}Z", wall.replace(' ', "T")).parse().ok()?;
    // The wall shows whole seconds only.
    let east = shown.as_millis() - at.div_euclid(SECOND) * SECOND;
    i32::try_from(east / MINUTE).ok()
}

/// The RFC 3339 text of the wall clock at `zone`.
fn local(at: Timestamp, zone: i32) -> String {
    Timestamp::from_millis(at.as_millis() + i64::from(zone) * MINUTE).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_names_its_two_largest_units() {
        for (millis, text) in [
            (-5, "0 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (18 * MINUTE + 59_000, "18 min"),
            (3 * HOUR + 12 * MINUTE, "3 h 12 min"),
            (3 * HOUR, "3 h"),
            (2 * DAY + 4 * HOUR + MINUTE, "2 d 4 h"),
        ] {
            assert_eq!(span(millis), text);
        }
    }

    #[test]
    fn a_limit_of_a_minute_is_said_in_seconds() {
        assert_eq!(limit(60_000), "60 s");
        assert_eq!(limit(10 * MINUTE), "10 min");
    }

    #[test]
    fn recent_times_are_relative_and_old_ones_are_dates() {
        let at: Timestamp = "2026-11-21T08:07:35Z".parse().unwrap();
        let then = at.as_millis();
        assert_eq!(ago(at, then - HOUR, 0), "just now");
        assert_eq!(ago(at, then + 4 * MINUTE + 30_000, 0), "4 min ago");
        assert_eq!(ago(at, then + 3 * HOUR + 59 * MINUTE, 0), "3 h ago");
        assert_eq!(ago(at, then + DAY, 60), "2026-11-21 09:07:35");
    }

    #[test]
    fn the_wall_clock_follows_the_zone_over_midnight() {
        let at: Timestamp = "2026-11-21T23:30:00Z".parse().unwrap();
        assert_eq!(clock(at, 60), "00:30:00");
        assert_eq!(date_time(at, 60), "2026-11-22 00:30:00");
        assert_eq!(date_time(at, -330), "2026-11-21 18:00:00");
    }
    #[test]
    fn a_wall_clock_elsewhere_tells_its_zone() {
        let at = "2026-11-21T23:30:00.999Z".parse::<Timestamp>().unwrap().as_millis();
        assert_eq!(offset("2026-11-22 05:15:00", at), Some(345));
        assert_eq!(offset("2026-11-21 14:30:00", at), Some(-540));
        assert_eq!(offset("yesterday", at), None);
    }
}
