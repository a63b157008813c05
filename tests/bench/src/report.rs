//! The results: figures with their samples, a table for people, JSON for programs.

use anyhow::{Context as _, Result, bail};
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// One measured quantity.
#[derive(Debug)]
pub struct Figure {
    /// Which measure it belongs to; what `--only` asks for.
    pub measure: &'static str,
    pub name: String,
    pub unit: &'static str,
    pub samples: Samples,
    pub budgets: Vec<Budget>,
    /// Load average of the machine over the last minute, when it was taken.
    pub load: f64,
    /// What a reader must know beside the numbers.
    pub note: String,
}

/// Every sample, or a histogram where there are too many.
#[derive(Debug)]
pub enum Samples {
    Raw(Vec<f64>),
    /// Nanoseconds; shown in milliseconds.
    Histogram(Histogram<u64>),
}

/// What a figure must keep to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    pub of: Of,
    pub must: Must,
    pub bound: f64,
}

/// Which statistic is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Median,
    P99,
    Worst,
}

/// In which direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Must {
    AtMost,
    AtLeast,
}

/// An empty histogram over everything up to minutes, three digits exact.
#[expect(clippy::expect_used, reason = "constant bounds, accepted once and for all")]
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000_000, 3).expect("bounds of a histogram")
}

impl Figure {
    pub fn new(name: impl Into<String>, unit: &'static str, samples: Vec<f64>) -> Self {
        Self::of(name.into(), unit, Samples::Raw(samples))
    }

    /// Latencies, recorded in nanoseconds and shown in milliseconds.
    pub fn latencies(name: impl Into<String>, histogram: Histogram<u64>) -> Self {
        Self::of(name.into(), "ms", Samples::Histogram(histogram))
    }

    fn of(name: String, unit: &'static str, samples: Samples) -> Self {
        let (budgets, note) = (Vec::new(), String::new());
        Self { measure: "", name, unit, samples, budgets, load: 0.0, note }
    }

    pub fn at_most(mut self, of: Of, bound: f64) -> Self {
        self.budgets.push(Budget { of, must: Must::AtMost, bound });
        self
    }

    pub fn at_least(mut self, of: Of, bound: f64) -> Self {
        self.budgets.push(Budget { of, must: Must::AtLeast, bound });
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    pub fn count(&self) -> u64 {
        match &self.samples {
            Samples::Raw(all) => all.len() as u64,
            Samples::Histogram(histogram) => histogram.len(),
        }
    }

    /// The value that so much of all samples do not exceed.
    pub fn quantile(&self, quantile: f64) -> f64 {
        match &self.samples {
            Samples::Raw(all) => {
                let mut sorted = all.clone();
                sorted.sort_by(f64::total_cmp);
                // A hair less: a hundredth of a hundred is not one and a bit.
                let rank = (sorted.len() as f64 * quantile - 1e-6).ceil().max(1.0) as usize;
                sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
            }
            Samples::Histogram(histogram) => histogram.value_at_quantile(quantile) as f64 / 1e6,
        }
    }

    /// The statistics in the direction that hurts: for rates the low end.
    fn bad(&self, quantile: f64) -> f64 {
        let is_rate = self.budgets.iter().any(|b| b.must == Must::AtLeast) || self.unit == "req/s";
        self.quantile(if is_rate { 1.0 - quantile } else { quantile })
    }

    fn statistic(&self, of: Of) -> f64 {
        match of {
            Of::Median => self.quantile(0.5),
            Of::P99 => self.bad(0.99),
            Of::Worst => self.bad(1.0),
        }
    }

    fn keeps(&self, budget: Budget) -> bool {
        let value = self.statistic(budget.of);
        match budget.must {
            Must::AtMost => value <= budget.bound,
            Must::AtLeast => value >= budget.bound,
        }
    }

    fn verdict(&self) -> String {
        let mut words = String::new();
        for budget in &self.budgets {
            let of = match budget.of {
                Of::Median => "p50",
                Of::P99 => "p99",
                Of::Worst => "worst",
            };
            let sign = if budget.must == Must::AtMost { "≤" } else { "≥" };
            let outcome = if self.keeps(*budget) { "met" } else { "MISSED" };
            let gap = if words.is_empty() { "" } else { "; " };
            let _ = write!(words, "{gap}{of} {sign} {} {outcome}", shown(budget.bound));
        }
        words
    }

    /// Budgets that are not kept.
    pub fn missed(&self) -> usize {
        self.budgets.iter().filter(|budget| !self.keeps(**budget)).count()
    }

    /// The table's row.
    pub fn row(&self) -> String {
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {:.1} | {} |",
            self.name,
            self.unit,
            self.count(),
            shown(self.quantile(0.5)),
            shown(self.bad(0.95)),
            shown(self.bad(0.99)),
            self.verdict(),
            self.load,
            self.note,
        )
    }

    fn json(&self) -> Value {
        let samples = match &self.samples {
            Samples::Raw(all) => json!(all),
            Samples::Histogram(histogram) => buckets(histogram),
        };
        json!({
            "measure": self.measure,
            "name": self.name,
            "unit": self.unit,
            "n": self.count(),
            "median": self.quantile(0.5),
            "p95": self.bad(0.95),
            "p99": self.bad(0.99),
            "verdict": self.verdict(),
            "load_average": self.load,
            "note": self.note,
            "samples": samples,
        })
    }

    /// Samples for a comparison: of a histogram a thousand quantiles stand for all.
    pub fn comparable(&self) -> Vec<f64> {
        match &self.samples {
            Samples::Raw(all) => all.clone(),
            Samples::Histogram(histogram) => quantiles(histogram),
        }
    }
}

const QUANTILES: u64 = 1000;

fn quantiles(histogram: &Histogram<u64>) -> Vec<f64> {
    let most = QUANTILES.min(histogram.len());
    let at = |n: u64| (n as f64 + 0.5) / most as f64;
    (0..most).map(|n| histogram.value_at_quantile(at(n)) as f64 / 1e6).collect()
}

/// Milliseconds and how many there were, for every bucket that is not empty.
fn buckets(histogram: &Histogram<u64>) -> Value {
    let buckets = histogram.iter_recorded().map(|step| {
        json!([step.value_iterated_to() as f64 / 1e6, step.count_since_last_iteration()])
    });
    json!({ "buckets": buckets.collect::<Vec<_>>() })
}

/// Three digits where they say something.
pub fn shown(value: f64) -> String {
    match value.abs() {
        size if size.is_nan() => "–".into(),
        size if size >= 1000.0 => thousands(value.round()),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The head of the table.
pub const HEAD: &str = "| What | Unit | n | median | p95 | p99 | Budget | Load | Note |\n\
                        |---|---|---|---|---|---|---|---|---|";

/// Writes everything that was measured, and the table beside it.
pub fn write(path: &Path, machine: &Value, figures: &[Figure]) -> Result<()> {
    let rows: Vec<String> = figures.iter().map(Figure::row).collect();
    let table = path.with_extension("md");
    fs::write(&table, format!("{HEAD}\n{}\n", rows.join("\n")))
        .with_context(|| format!("cannot write {}", table.display()))?;
    let figures: Vec<Value> = figures.iter().map(Figure::json).collect();
    let document = json!({ "machine": machine, "figures": figures });
    let text = serde_json::to_string_pretty(&document)?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Samples of an earlier run, by name.
pub fn read(path: &Path) -> Result<Vec<(String, Vec<f64>)>> {
    let text = fs::read_to_string(path).with_context(|| {
        format!("cannot read {}; name the JSON of an earlier run", path.display())
    })?;
    let document: Value = serde_json::from_str(&text)?;
    let Some(figures) = document.get("figures").and_then(Value::as_array) else {
        bail!("{} holds no figures; name the JSON of an earlier run", path.display());
    };
    let sample = |figure: &Value| {
        let name = figure.get("name")?.as_str()?.to_owned();
        let samples = figure.get("samples")?;
        if let Some(raw) = samples.as_array() {
            return Some((name, raw.iter().filter_map(Value::as_f64).collect()));
        }
        let mut histogram = histogram();
        for bucket in samples.get("buckets")?.as_array()? {
            let value = (bucket.get(0)?.as_f64()? * 1e6) as u64;
            histogram.record_n(value.max(1), bucket.get(1)?.as_u64()?).ok()?;
        }
        Some((name, quantiles(&histogram)))
    };
    Ok(figures.iter().filter_map(sample).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_rates_are_taken_from_the_low_end() {
        let rates: Vec<f64> = (1..=100).map(f64::from).collect();
        let figure = Figure::new("a", "req/s", rates.clone()).at_least(Of::P99, 2.0);
        assert_eq!(figure.missed(), 1);
        let times = Figure::new("b", "ms", rates).at_most(Of::P99, 99.0);
        assert_eq!((times.missed(), times.quantile(0.5)), (0, 50.0));
    }

    #[test]
    fn what_is_written_can_be_compared_with() {
        let mut histogram = histogram();
        for millis in 1..=50 {
            histogram.record(millis * 1_000_000).unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.json");
        let figures =
            [Figure::latencies("slow", histogram), Figure::new("fast", "ms", vec![1.0, 2.0])];
        write(&file, &json!({}), &figures).unwrap();
        let back = read(&file).unwrap();
        assert_eq!(back[1], ("fast".to_owned(), vec![1.0, 2.0]));
        assert_eq!((back[0].0.as_str(), back[0].1.len()), ("slow", 50));
        let median = back[0].1[24];
        assert!((24.5..25.6).contains(&median), "{median}");
    }

    #[test]
    fn numbers_are_shown_with_the_digits_that_say_something() {
        for (value, text) in
            [(0.0, "0.00"), (0.0123, "0.012"), (12.34, "12.3"), (1234567.0, "1,234,567")]
        {
            assert_eq!(shown(value), text);
        }
    }
}
