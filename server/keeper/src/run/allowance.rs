//! How much processor time drawing may use.
//!
//! An agent that prints without pause is read more slowly, as by any terminal, so that it does not
//! take a core from the other sessions of the machine.

use std::time::{Duration, Instant};

/// Share of one core that drawing may use for long, in percent.
const SHARE: u32 = 22;
/// Processor time that may be used at once after a pause: about 8 MB of output.
const BURST: Duration = Duration::from_millis(250);

/// Most processor time that is made up for.
/// A terminal stands still for five seconds at most.
const MOST_OWED: Duration = Duration::from_millis(1100);

/// Processor time that drawing may still use.
#[derive(Debug)]
pub(super) struct Allowance {
    left: Duration,
    /// What was used beyond it.
    owed: Duration,
    since: Instant,
    /// Processor time used when it was last asked.
    used: Duration,
}

impl Allowance {
    /// `used` is the processor time that was used before.
    pub(super) const fn new(now: Instant, used: Duration) -> Self {
        Self { left: BURST, owed: Duration::ZERO, since: now, used }
    }

    /// Takes off what was used since the last call.
    ///
    /// `used` is all processor time so far.
    pub(super) fn settle(&mut self, now: Instant, used: Duration) {
        let earned = now.saturating_duration_since(self.since) * SHARE / 100;
        self.since = now;
        let owed = self.owed.saturating_add(used.saturating_sub(self.used));
        self.used = used;
        let has = self.left.saturating_add(earned);
        self.left = has.saturating_sub(owed).min(BURST);
        self.owed = owed.saturating_sub(has).min(MOST_OWED);
    }

    /// When reading may go on; nothing if it may now.
    pub(super) fn pauses_until(&self) -> Option<Instant> {
        let pause = self.owed * 100 / SHARE;
        (!pause.is_zero()).then(|| self.since + pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Duration = Duration::from_millis(8);

    #[test]
    fn a_burst_is_read_without_a_pause() {
        let now = Instant::now();
        let mut allowance = Allowance::new(now, Duration::ZERO);
        for turn in 1..=30 {
            allowance.settle(now + TURN * turn, TURN * turn);
            assert_eq!(allowance.pauses_until(), None, "turn {turn}");
        }
    }

    #[test]
    fn a_flood_gets_its_share_and_no_more() {
        let begin = Instant::now();
        let (mut now, mut used) = (begin, Duration::ZERO);
        let mut allowance = Allowance::new(now, used);
        while now < begin + Duration::from_secs(60) {
            now += TURN;
            used += TURN;
            allowance.settle(now, used);
            if let Some(until) = allowance.pauses_until() {
                assert!(until > now && until - now < TURN * 5, "no screen is old for long");
                now = until;
            }
        }
        let share = used.as_secs_f64() / (now - begin).as_secs_f64() * 100.0;
        assert!((21.0..24.0).contains(&share), "{share} %");
    }

    #[test]
    fn what_took_minutes_to_draw_does_not_stop_the_terminal_for_longer() {
        let now = Instant::now();
        let mut allowance = Allowance::new(now, Duration::ZERO);
        allowance.settle(now, Duration::from_secs(300));
        assert_eq!(allowance.pauses_until(), Some(now + Duration::from_secs(5)));
    }

    #[test]
    fn a_long_silence_earns_one_burst() {
        let begin = Instant::now();
        let mut allowance = Allowance::new(begin, Duration::ZERO);
        let later = begin + Duration::from_secs(3600);
        allowance.settle(later, Duration::ZERO);
        allowance.settle(later, BURST + Duration::from_millis(22));
        assert_eq!(allowance.pauses_until(), Some(later + Duration::from_millis(100)));
    }
}
