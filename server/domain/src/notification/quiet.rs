//! Quiet hours: `notifications.quiet_hours`.

use std::str::FromStr;

const DAY: u32 = 24 * 60;

/// A part of every day, in minutes since midnight. It may pass midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    from: u32,
    to: u32,
}

/// A text that is no part of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be two times of day with a hyphen between them, such as 22:00-07:00")]
pub struct NoHours;

impl QuietHours {
    /// How many minutes are left at this minute of the day; `None` outside.
    #[must_use]
    pub fn left(self, minute: u32) -> Option<u32> {
        let length = (self.to + DAY - self.from) % DAY;
        let gone = (minute + DAY - self.from) % DAY;
        (gone < length).then(|| length - gone)
    }
}

impl FromStr for QuietHours {
    type Err = NoHours;

    fn from_str(raw: &str) -> Result<Self, NoHours> {
        let (from, to) = raw.split_once('-').ok_or(NoHours)?;
        let (from, to) = (minute(from)?, minute(to)?);
        if from == to { Err(NoHours) } else { Ok(Self { from, to }) }
    }
}

fn minute(raw: &str) -> Result<u32, NoHours> {
    let (hours, minutes) = raw.trim().split_once(':').ok_or(NoHours)?;
    let number = |text: &str, most: u32| {
        let is_two = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
        let value: Option<u32> = is_two.then(|| text.parse().ok()).flatten();
        value.filter(|value| *value <= most).ok_or(NoHours)
    };
    Ok(number(hours, 23)? * 60 + number(minutes, 59)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_passes_midnight() {
        let night: QuietHours = "22:00-07:30".parse().unwrap();
        for (minute, left) in [
            (21 * 60 + 59, None),
            (22 * 60, Some(9 * 60 + 30)),
            (0, Some(7 * 60 + 30)),
            (7 * 60 + 29, Some(1)),
            (7 * 60 + 30, None),
            (12 * 60, None),
        ] {
            assert_eq!(night.left(minute), left, "{minute}");
        }
        let noon: QuietHours = "12:00-13:00".parse().unwrap();
        assert_eq!((noon.left(12 * 60), noon.left(13 * 60), noon.left(0)), (Some(60), None, None));
    }

    #[test]
    fn anything_else_is_refused() {
        for raw in ["", "22:00", "22-7", "24:00-07:00", "22:60-07:00", "7:00-8:00", "08:00-08:00"] {
            assert_eq!(raw.parse::<QuietHours>(), Err(NoHours), "{raw}");
        }
    }
}
