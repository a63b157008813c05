//! What is due when: the timers of the bridge's one loop.

use crate::sim::console::later;
use std::time::Instant;

/// Pending actions; equal times come out in the order they were added.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    entries: Vec<(Instant, T)>,
}

impl<T: Copy + PartialEq> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self { entries: Vec::new() }
    }

    pub(crate) fn at(&mut self, time: Instant, action: T) {
        let place = self.entries.partition_point(|(due, _)| *due <= time);
        self.entries.insert(place, (time, action));
    }

    pub(crate) fn after_ms(&mut self, ms: u64, action: T) {
        self.at(later(ms), action);
    }

    pub(crate) fn remove(&mut self, action: T) {
        self.entries.retain(|(_, other)| *other != action);
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// When the next action is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.entries.first().map(|(due, _)| *due)
    }

    /// Takes the next action if its time has come.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<T> {
        (self.next()? <= now).then(|| self.entries.remove(0).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn actions_come_out_by_time_and_then_by_order() {
        let now = Instant::now();
        let second = now + Duration::from_secs(1);
        let mut agenda = Agenda::new();
        agenda.at(second, 'c');
        agenda.at(now, 'a');
        agenda.at(now, 'b');
        agenda.at(second, 'x');
        agenda.remove('x');
        assert_eq!(agenda.take_due(now), Some('a'));
        assert_eq!(agenda.take_due(now), Some('b'));
        assert_eq!(agenda.take_due(now), None);
        assert_eq!(agenda.take_due(second), Some('c'));
        assert_eq!(agenda.next(), None);
    }
}
