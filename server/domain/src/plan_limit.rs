//! Usage limits of the account's plan: what the agent says, and when to go on.
//!
//! The agent tells a limit in words, in a reply that it makes up itself. Forms that were seen:
//! `You've hit your session limit · resets 4:20pm (Asia/Tbilisi)`,
//! `You've hit your weekly limit · resets Oct 3 at 9am (Europe/Rome)`,
//! `Claude usage limit reached. Your limit will reset at 9am (America/Chicago).` and
//! `Claude AI usage limit reached|1766502000`.

use crate::restart::Chance;
use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use regex::{Captures, Regex};
use std::sync::LazyLock;
use std::time::Duration;
use svc_shared::Timestamp;
use svc_shared::api::limits::PlanLimit;
use svc_shared::status::{EvidenceSource, PlanLimitKind};

/// Only the start of a reply is looked at: a limit is told in one sentence.
const LONGEST: usize = 400;

/// Why nobody goes on with a session of a bridge.
pub const NOT_BY_BRIDGE: &str =
    "a Server Mode bridge takes no text from here; go on in the remote client after the reset";

/// Why nobody goes on with a job whose process runs.
pub const NOT_BY_JOB: &str = "the process of this job still runs and takes no text from here; \
    attach to it with the agent after the reset";

/// Why nobody goes on with a session in a terminal that nobody types into.
pub const NOT_BY_TERMINAL: &str = "`claude.terminal_input` is off, so this session takes no text \
    from here; go on in the session itself after the reset";

/// A conversation goes on this long after the reset: clocks differ.
const MARGIN: Duration = Duration::from_secs(60);

/// Conversations that wait for the same reset go on within this time.
const SPREAD: Duration = Duration::from_secs(120);

/// After a reset that was so long ago nobody goes on by itself any more.
const TOO_LATE: Duration = Duration::from_secs(12 * 3600);

/// A reset that is farther away than this was misread.
const FARTHEST: Duration = Duration::from_secs(40 * 24 * 3600);

static TELLS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:hit|reached) your (?:(\w+) )?limit|(\w+) limit reached|limit reached\|")
        .ok()
});

static SECONDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\|(\d{9,11})\b").ok());

static RESET: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?xi) resets? \s+ (?:at\s+)?
          (?: (?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \s+ (?P<day>\d{1,2})
              (?:\s+at|,)? \s+
            | (?P<weekday>mon|tue|wed|thu|fri|sat|sun)[a-z]* (?:\s+at|,)? \s+ )?
          (?P<hour>\d{1,2}) (?: :(?P<minute>\d{2}) )? \s* (?P<half>am|pm)?
          \s* \( (?P<zone>[A-Za-z0-9_+\-/]{1,64}) \)",
    )
    .ok()
});

/// Reads what a made-up reply says about a limit.
///
/// `None` when it is about something else.
/// `at` is when it was written. A time of day means the next one after that, in the zone that the
/// reply names.
#[must_use]
pub fn told(text: &str, at: Timestamp) -> Option<PlanLimit> {
    let text: String = text.chars().take(LONGEST).collect();
    let tells = TELLS.as_ref()?.captures(&text)?;
    let name = tells.get(1).or_else(|| tells.get(2)).map(|name| name.as_str().to_lowercase());
    let kind = match name.as_deref() {
        Some("session") => PlanLimitKind::Session,
        Some("weekly") => PlanLimitKind::Weekly,
        Some(_) | None => PlanLimitKind::Other,
    };
    let resets_at = in_seconds(&text).or_else(|| next(&RESET.as_ref()?.captures(&text)?, at));
    Some(PlanLimit {
        kind: kind.into(),
        resets_at: resets_at.filter(|reset| reset.since(at) <= FARTHEST),
        since: at,
        source: EvidenceSource::Transcript.into(),
        continues_at: None,
        hint: None,
    })
}

fn in_seconds(text: &str) -> Option<Timestamp> {
    let digits = SECONDS.as_ref()?.captures(text)?.get(1)?.as_str();
    Some(Timestamp::from_millis(digits.parse::<i64>().ok()?.checked_mul(1000)?))
}

/// The next time that looks like this, after `at`.
fn next(reset: &Captures<'_>, at: Timestamp) -> Option<Timestamp> {
    let number = |name: &str| reset.name(name)?.as_str().parse::<i8>().ok();
    let word = |name: &str| Some(reset.name(name)?.as_str().to_lowercase());
    let hour = match (number("hour")?, word("half").as_deref()) {
        (12, Some("am")) => 0,
        (12, Some("pm")) => 12,
        (hour @ 1..=11, Some("pm")) => hour + 12,
        (1..=11, Some("am")) | (0..=23, None) => number("hour")?,
        _ => return None,
    };
    let time = Time::new(hour, number("minute").unwrap_or(0), 0, 0).ok()?;
    let zone = TimeZone::get(reset.name("zone")?.as_str()).ok()?;
    let now = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?.to_zoned(zone.clone());
    let instant = |date: Date| {
        let at = date.to_datetime(time).to_zoned(zone.clone()).ok()?;
        Some(at.timestamp())
    };
    let dates: Vec<Date> = if let Some(month) = word("month") {
        let year = now.date().year();
        let on = |year: i16| Date::new(year, month_number(&month)?, number("day")?).ok();
        [year, year.saturating_add(1)].into_iter().filter_map(on).collect()
    } else {
        let wanted = word("weekday").as_deref().and_then(weekday);
        now.date()
            .series(jiff::Span::new().try_days(1).ok()?)
            .take(9)
            .filter(|date| wanted.is_none_or(|wanted| date.weekday() == wanted))
            .collect()
    };
    let after = now.timestamp();
    let found = dates.into_iter().filter_map(instant).find(|instant| *instant > after)?;
    Some(Timestamp::from_millis(found.as_millisecond()))
}

fn month_number(name: &str) -> Option<i8> {
    let names =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let at = names.iter().position(|one| *one == name)?;
    i8::try_from(at + 1).ok()
}

fn weekday(name: &str) -> Option<Weekday> {
    match name {
        "mon" => Some(Weekday::Monday),
        "tue" => Some(Weekday::Tuesday),
        "wed" => Some(Weekday::Wednesday),
        "thu" => Some(Weekday::Thursday),
        "fri" => Some(Weekday::Friday),
        "sat" => Some(Weekday::Saturday),
        "sun" => Some(Weekday::Sunday),
        _ => None,
    }
}

/// When a conversation goes on by itself.
///
/// `None` when nobody knows the reset, or it is long past.
/// `chance` is its place among those that wait for the same reset.
#[must_use]
pub fn due(limit: &PlanLimit, now: Timestamp, chance: Chance) -> Option<Timestamp> {
    let reset = limit.resets_at?;
    if is_too_late(reset, now) {
        return None;
    }
    Some(reset.plus(MARGIN).plus(chance.part_of(SPREAD)))
}

/// Whether a time to go on is so long ago that nobody goes on by itself.
///
/// The machine may have slept since.
#[must_use]
pub fn is_too_late(due: Timestamp, now: Timestamp) -> bool {
    now.since(due) > TOO_LATE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// The kind, and when the limit is reset.
    fn read(text: &str, written: &str) -> Option<(String, Option<String>)> {
        let limit = told(text, at(written))?;
        Some((limit.kind.to_string(), limit.resets_at.map(|reset| reset.to_string())))
    }

    #[test]
    fn a_time_of_day_is_the_next_one_in_the_named_zone() {
        let cases = [
            // The same evening, west and east of Greenwich.
            (
                "You've hit your session limit · resets 4:20pm (Asia/Tbilisi)",
                "2026-11-20T10:00:00Z",
                ("session", "2026-11-20T12:20:00.000Z"),
            ),
            (
                "You've hit your limit · resets 12:50am (America/Los_Angeles)",
                "2026-11-20T05:00:00Z",
                ("other", "2026-11-20T08:50:00.000Z"),
            ),
            // Already past today: tomorrow's.
            (
                "Claude usage limit reached. Your limit will reset at 9am (America/Chicago).",
                "2026-11-20T16:00:00Z",
                ("other", "2026-11-21T15:00:00.000Z"),
            ),
            // Over the night in which the clocks are put forward.
            (
                "You've hit your weekly limit · resets 3am (Europe/London)",
                "2026-03-28T22:00:00Z",
                ("weekly", "2026-03-29T02:00:00.000Z"),
            ),
            (
                "You've hit your weekly limit · resets Jan 2 at 3pm (Europe/Rome)",
                "2026-12-30T22:00:00Z",
                ("weekly", "2027-01-02T14:00:00.000Z"),
            ),
            (
                "You've hit your weekly limit · resets Oct 3, 9:30am (Asia/Calcutta)",
                "2026-10-01T00:00:00Z",
                ("weekly", "2026-10-03T04:00:00.000Z"),
            ),
            (
                "You've hit your weekly limit · resets Mon 9am (UTC)",
                "2026-11-20T10:00:00Z",
                ("weekly", "2026-11-23T09:00:00.000Z"),
            ),
            (
                "You've hit your session limit · resets 18:00 (UTC)",
                "2026-11-20T10:00:00Z",
                ("session", "2026-11-20T18:00:00.000Z"),
            ),
        ];
        for (text, written, (kind, reset)) in cases {
            let wanted = Some((kind.to_owned(), Some(reset.to_owned())));
            assert_eq!(read(text, written), wanted, "{text}");
        }
    }

    #[test]
    fn a_reset_in_seconds_is_read_as_it_stands() {
        let found = read("Claude AI usage limit reached|1795254455", "2026-11-21T09:00:00Z");
        assert_eq!(found, Some(("other".to_owned(), Some("2026-11-21T09:47:35.000Z".to_owned()))));
    }

    #[test]
    fn a_time_that_cannot_be_read_is_not_guessed() {
        for text in [
            "You've hit your session limit",
            "You've hit your session limit · resets 4pm",
            "You've hit your session limit · resets 4pm (Nowhere/Atlantis)",
            "You've hit your session limit · resets 27:00 (UTC)",
            "You've hit your session limit · resets 13pm (UTC)",
            "You've hit your session limit · resets Feb 30 at 3pm (UTC)",
            "Claude AI usage limit reached|99999999999",
        ] {
            assert_eq!(
                read(text, "2026-11-20T10:00:00Z").map(|found| found.1),
                Some(None),
                "{text}"
            );
        }
    }

    #[test]
    fn other_refusals_are_no_limit() {
        for text in [
            "",
            "API Error: 529 Overloaded",
            "Invalid API key · Please run /login",
            "Your credit balance is too low",
            "The speed limit is 50, resets at 9am (UTC)",
        ] {
            assert_eq!(told(text, at("2026-11-20T10:00:00Z")), None, "{text}");
        }
    }

    #[test]
    fn who_waits_goes_on_after_the_reset_and_not_all_at_once() {
        let text = "You've hit your session limit · resets 4:00pm (UTC)";
        let limit = told(text, at("2026-11-20T10:00:00Z")).unwrap();
        let now = at("2026-11-20T12:00:00Z");
        let reset = limit.resets_at.unwrap();
        let (first, last) = (
            due(&limit, now, Chance::of(0)).unwrap(),
            due(&limit, now, Chance::of(u32::MAX)).unwrap(),
        );
        assert!(first > reset && last > first, "{first} {last}");
        // Somebody who comes back after days finds everything as it was.
        assert_eq!(due(&limit, at("2026-11-21T12:00:00Z"), Chance::of(7)), None);
        assert_eq!(due(&PlanLimit { resets_at: None, ..limit }, now, Chance::of(7)), None);
    }

    proptest::proptest! {
        #[test]
        fn no_reply_panics(text in "(You've hit your |limit reached\\||resets )?.{0,60}( \\((UTC|[A-Z/a-z]{0,12})\\))?", millis in proptest::num::i64::ANY) {
            let written = Timestamp::from_millis(millis);
            if let Some(limit) = told(&text, written) {
                let _ = due(&limit, written, Chance::of(7));
            }
        }
    }
}
