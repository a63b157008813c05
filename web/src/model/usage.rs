//! Processor time and memory of a bridge, as words and as a curve.

use crate::text::usage as words;
use serde::Deserialize;
use std::collections::BTreeMap;
use svc_shared::internal::metrics::{InstanceMetrics, Metrics};

/// Samples of a curve.
pub const POINTS: usize = 60;
/// Width of the drawing, tenths of a pixel.
///
/// Whole numbers need no code that writes fractions.
pub const WIDTH: i64 = 960;
/// Height of the drawing, tenths of a pixel.
pub const HEIGHT: i64 = 240;
/// Where the hatch begins while nothing new is known.
pub const HATCH_FROM: i64 = 800;
/// Distance of two samples as long as it is not seen, milliseconds.
const USUAL_STEP_MS: i64 = 4_000;
/// A gap of more than so many steps interrupts the curve.
///
/// A service that nobody looks at samples every two and a half steps.
const GAP: i64 = 3;
/// How much older a sample is when the clock was set back, milliseconds.
const SET_BACK_MS: i64 = 60_000;
/// Least height of the scale, tenths of a percent.
///
/// Without it the noise of an idle process would fill the drawing.
const LEAST_TOP: i64 = 200;

/// One measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Use {
    /// Tenths of a percent of processor time.
    pub cpu: i64,
    /// A share of the whole machine; otherwise 100 % is one busy core.
    pub is_share: bool,
    /// Resident memory, bytes.
    pub memory: u64,
}

/// The last measurements of one bridge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Curve {
    /// Time in milliseconds and tenths of a percent, oldest first.
    points: Vec<(i64, i64)>,
    /// The newest.
    pub now: Use,
}

/// A curve as paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    /// The line.
    pub line: String,
    /// What is below it.
    pub area: String,
    /// Where it ends.
    pub end: (i64, i64),
}

impl Curve {
    /// Adds a sample.
    ///
    /// A sample that is not newer than the last is left out, unless the clock was set back: then
    /// the curve starts again.
    pub fn add(&mut self, at: i64, now: Use) {
        match self.points.last() {
            Some((last, _)) if at < last - SET_BACK_MS => self.points.clear(),
            Some((last, _)) if at <= *last => return,
            _ => {}
        }
        if self.points.len() >= POINTS {
            self.points.remove(0);
        }
        self.points.push((at, now.cpu));
        self.now = now;
    }

    /// The time between two samples now.
    ///
    /// The service samples more slowly while nobody looks. The result is the smallest step that at
    /// least a quarter of the steps do not exceed: a few early samples do not count, and a new pace
    /// is soon taken over.
    fn step(&self) -> i64 {
        let later = self.points.iter().skip(1);
        let steps: Vec<i64> =
            later.zip(&self.points).map(|((to, _), (from, _))| to - from).collect();
        let is_long = |step: &i64| steps.iter().filter(|s| *s <= step).count() * 4 > steps.len();
        steps.iter().copied().filter(is_long).min().unwrap_or(USUAL_STEP_MS)
    }

    /// Draws it, `width` wide. Where samples are missing, so is the line.
    #[must_use]
    pub fn draw(&self, width: i64) -> Drawn {
        let step = self.step();
        let span = step * (POINTS as i64 - 1);
        let newest = self.points.last().map_or(0, |(at, _)| *at);
        let peak = self.points.iter().map(|(_, cpu)| *cpu).max().unwrap_or(0).max(LEAST_TOP);
        let mut drawn = Drawn { line: String::new(), area: String::new(), end: (0, 0) };
        // Samples are never exactly a step apart. In whole halves of one, a curve of which nothing
        // changed is drawn by the same words again, and the browser has nothing to do.
        let grain = (step / 2).max(1);
        let mut before = None;
        for (at, cpu) in &self.points {
            let age = (newest - at + grain / 2) / grain * grain;
            // A dot has a radius, which the drawing has room for.
            let x = (width - 20 - age * (width - 20) / span.max(1)).max(0);
            let y = HEIGHT - 20 - cpu.clamp(&0, &peak) * (HEIGHT - 40) / peak;
            let goes_on = before.is_some_and(|(last, _)| at - last <= step * GAP);
            let verb = if goes_on { 'L' } else { 'M' };
            drawn.line.push_str(&format!("{verb}{x} {y}"));
            if goes_on {
                drawn.area.push_str(&format!("L{x} {y}"));
            } else {
                close(&mut drawn.area, before.map(|(_, x)| x));
                drawn.area.push_str(&format!("M{x} {HEIGHT}L{x} {y}"));
            }
            before = Some((*at, x));
            drawn.end = (x, y);
        }
        close(&mut drawn.area, before.map(|(_, x)| x));
        drawn
    }

    /// The same in words.
    #[must_use]
    pub fn words(&self) -> String {
        let peak = self.points.iter().map(|(_, cpu)| *cpu).max().unwrap_or(0);
        let spans = self.points.first().zip(self.points.last()).map_or(0, |(a, b)| b.0 - a.0);
        words::curve(
            &percent(self.now.cpu),
            &percent(peak),
            &crate::model::time::span(spans),
            &memory(self.now.memory),
            self.now.is_share,
        )
    }
}

fn close(area: &mut String, x: Option<i64>) {
    if let Some(x) = x {
        area.push_str(&format!("L{x} {HEIGHT}Z"));
    }
}

/// Tenths of a percent in words.
#[must_use]
pub fn percent(tenths: i64) -> String {
    words::percent((tenths + 5) / 10)
}

/// Bytes in words.
#[must_use]
pub fn memory(bytes: u64) -> String {
    let mib = (bytes + (1 << 19)) >> 20;
    if mib < 1024 { words::mib(mib) } else { words::gib(mib / 1024, mib % 1024 * 10 / 1024) }
}

fn tenths(percent: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "a percentage")]
    let tenths = (percent * 10.0).round() as i64;
    tenths
}

impl From<&Metrics> for Use {
    fn from(now: &Metrics) -> Self {
        Self { cpu: tenths(now.cpu_percent), is_share: now.cpu_normalized, memory: now.rss_bytes }
    }
}

/// The curves the service has kept, by id.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<String, InstanceMetrics>")]
pub struct Kept(pub Vec<(String, Curve)>);

impl From<BTreeMap<String, InstanceMetrics>> for Kept {
    fn from(all: BTreeMap<String, InstanceMetrics>) -> Self {
        let curve = |(id, kept): (String, InstanceMetrics)| {
            let points = kept.history.unwrap_or_default();
            let points = points.iter().map(|s| (s.time.as_millis(), tenths(s.cpu_percent)));
            (id, Curve { now: Use::from(&kept.now), points: points.collect() })
        };
        Self(all.into_iter().map(curve).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::wire::read;
    use svc_shared::Timestamp;
    use svc_shared::internal::metrics::Sample;

    fn used(percent: i64) -> Use {
        Use { cpu: percent * 10, is_share: false, memory: 512 << 20 }
    }

    fn curve(samples: &[(i64, i64)]) -> Curve {
        let mut curve = Curve::default();
        samples.iter().for_each(|(seconds, percent)| curve.add(seconds * 1000, used(*percent)));
        curve
    }

    #[test]
    fn a_curve_keeps_the_last_sixty_samples_and_no_repeats() {
        let mut long = Curve::default();
        (0..70).for_each(|n| long.add(n * 4000, used(n)));
        long.add(69 * 4000, used(99));
        assert_eq!(long.points.len(), POINTS);
        assert_eq!((long.points[0].1, long.now.cpu), (100, 690));
    }

    #[test]
    fn a_clock_that_is_set_back_begins_a_new_curve() {
        let mut back = curve(&[(7_200, 10), (7_204, 20), (7_203, 99)]);
        assert_eq!((back.points.len(), back.now.cpu), (2, 200));
        back.add(3_604_000, used(30));
        assert_eq!((back.points.len(), back.now.cpu), (1, 300));
    }

    #[test]
    fn it_ends_now_and_grows_to_the_left() {
        let drawn = curve(&[(0, 0), (4, 100), (8, 50)]).draw(WIDTH);
        assert_eq!(drawn.line, "M909 220L925 20L940 120");
        assert_eq!(drawn.area, "M909 240L909 220L925 20L940 120L940 240Z");
        assert_eq!(drawn.end, (940, 120));
    }

    #[test]
    fn missing_samples_are_gaps_and_not_zeros() {
        let drawn = curve(&[(0, 100), (4, 100), (8, 100), (28, 100), (32, 100)]).draw(WIDTH);
        assert_eq!(drawn.line.matches('M').count(), 2, "{}", drawn.line);
        assert_eq!(drawn.area.matches('Z').count(), 2, "{}", drawn.area);
        assert!(!drawn.line.contains(" 220"), "{}", drawn.line);
    }

    #[test]
    fn what_was_sampled_while_nobody_looked_belongs_to_the_curve() {
        let unwatched = (0..12).map(|n| (n * 10, 1));
        let watched = (1..=5).map(|n| (110 + n * 4, 1));
        let drawn = curve(&unwatched.chain(watched).collect::<Vec<_>>()).draw(WIDTH);
        assert_eq!(drawn.line.matches('M').count(), 1, "{}", drawn.line);
        let four_minutes_ago = curve(&[(0, 1), (4, 1), (236, 1)]).draw(WIDTH);
        assert!(four_minutes_ago.line.starts_with("M0 "), "{}", four_minutes_ago.line);
        let two_minutes_ago = drawn.line.split([' ', 'M']).nth(1).and_then(|x| x.parse().ok());
        assert!(two_minutes_ago > Some(WIDTH / 3), "the window is the watched one: {}", drawn.line);
    }

    #[test]
    fn one_early_sample_is_no_reason_to_see_gaps_everywhere() {
        let drawn = curve(&[(0, 1), (1, 1), (5, 1), (9, 1), (13, 1)]).draw(WIDTH);
        assert_eq!(drawn.line.matches('M').count(), 1, "{}", drawn.line);
    }

    #[test]
    fn a_quiet_curve_is_drawn_the_same_whatever_the_milliseconds() {
        let quiet = |jitter: fn(i64) -> i64| {
            let mut quiet = Curve::default();
            (0..60).for_each(|n| quiet.add(n * 4000 + jitter(n), used(0)));
            quiet.draw(WIDTH)
        };
        assert_eq!(quiet(|n| (n * 37) % 50), quiet(|n| (n * 11) % 70));
    }

    #[test]
    fn a_stale_curve_leaves_room_for_the_hatch() {
        let drawn = curve(&[(0, 1), (4, 1)]).draw(HATCH_FROM);
        assert!(drawn.end.0 < HATCH_FROM);
    }

    #[test]
    fn an_idle_process_stays_at_the_bottom_and_a_busy_one_inside_the_drawing() {
        assert_eq!(curve(&[(0, 0), (4, 2)]).draw(WIDTH).end.1, 200);
        assert_eq!(curve(&[(0, 0), (4, 790)]).draw(WIDTH).end.1, 20);
    }

    #[test]
    fn the_words_say_the_same_as_the_drawing_and_what_a_hundred_percent_is() {
        let mut shown = curve(&[(0, 48), (240, 12)]);
        assert_eq!(
            shown.words(),
            "CPU now 12 %, max 48 % in 4 min, where 100 % is one core; 512 MiB"
        );
        shown.now.is_share = true;
        assert_eq!(shown.words(), "CPU now 12 %, max 48 % in 4 min, of all cores; 512 MiB");
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(percent(4), "0 %");
        assert_eq!(percent(1234), "123 %");
        assert_eq!(memory(318 << 20), "318 MiB");
        assert_eq!(memory(1300 << 20), "1.2 GiB");
        assert_eq!(memory(400), "0 MiB");
    }

    #[test]
    fn what_the_service_has_kept_is_read_as_it_was_written() {
        let now = Metrics {
            running: true,
            procs: 2,
            cpu_percent: 34.0,
            cpu_normalized: true,
            rss_bytes: 7,
            disk_read_bps: None,
            disk_write_bps: None,
        };
        let sample = |at, cpu_percent| Sample {
            time: Timestamp::from_millis(at),
            cpu_percent,
            rss_bytes: 7,
        };
        let history = Some(vec![sample(1000, 6.25), sample(5000, 34.0)]);
        let all = std::collections::BTreeMap::from([("1", InstanceMetrics { now, history })]);
        let kept: Kept = read(&serde_json::to_string(&all).unwrap()).unwrap();
        let curve = Curve {
            points: vec![(1000, 63), (5000, 340)],
            now: Use { cpu: 340, is_share: true, memory: 7 },
        };
        assert_eq!(kept, Kept(vec![("1".into(), curve)]));
    }
}
