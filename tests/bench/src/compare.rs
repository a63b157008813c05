//! Whether two runs differ: by their samples, never by two medians alone.

use crate::report::{Figure, shown};
use statrs::stats_tests::Alternative;
use statrs::stats_tests::mannwhitneyu::{MannWhitneyUMethod, mannwhitneyu};

/// How sure a difference must be before it is called one.
const SURE: f64 = 0.01;
/// A smaller difference counts as none, however significant it is.
/// With thousands of samples every small change is significant.
const SMALL: f64 = 0.05;

/// One line per figure that both runs have.
pub fn table(now: &[Figure], before: &[(String, Vec<f64>)]) -> Vec<String> {
    let mut lines = vec![
        "| What | Unit | before | now | ratio | p | Verdict |".to_owned(),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    for figure in now {
        let Some((_, old)) = before.iter().find(|(name, _)| *name == figure.name) else { continue };
        let earlier = Figure::new("", figure.unit, old.clone()).quantile(0.5);
        let median = figure.quantile(0.5);
        let (p, verdict) = verdict(&figure.comparable(), old);
        lines.push(format!(
            "| {} | {} | {} | {} | {:.2} | {} | {verdict} |",
            figure.name,
            figure.unit,
            shown(earlier),
            shown(median),
            median / earlier,
            p.map_or_else(|| "–".to_owned(), |p| format!("{p:.3}")),
        ));
    }
    lines
}

/// How likely so great a difference is by chance, and what follows.
fn verdict(now: &[f64], before: &[f64]) -> (Option<f64>, &'static str) {
    if now.len().min(before.len()) < 5 {
        return (None, "too few samples to say");
    }
    let test = mannwhitneyu(
        now,
        before,
        MannWhitneyUMethod::AsymptoticInclContinuityCorrection,
        Alternative::TwoSided,
    );
    let Ok((_, p)) = test else { return (None, "cannot be compared") };
    let middle = |all: &[f64]| Figure::new("", "", all.to_vec()).quantile(0.5);
    let ratio = middle(now) / middle(before);
    let verdict = match (p < SURE, ratio) {
        (false, _) => "no difference shown",
        (true, ratio) if (ratio - 1.0).abs() < SMALL => "differs by less than 5 %",
        (true, ratio) if ratio > 1.0 => "higher",
        (true, _) => "lower",
    };
    (Some(p), verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_is_found_and_noise_is_not() {
        let noise = |base: f64, step: usize| -> Vec<f64> {
            (0..40).map(|n| base + ((n * step) % 13) as f64).collect()
        };
        assert_eq!(verdict(&noise(100.0, 5), &noise(100.0, 7)).1, "no difference shown");
        assert_eq!(verdict(&noise(130.0, 5), &noise(100.0, 7)).1, "higher");
        assert_eq!(verdict(&noise(100.0, 5), &noise(130.0, 7)).1, "lower");
        assert_eq!(verdict(&[1.0, 2.0], &[3.0]).1, "too few samples to say");
        assert_eq!(verdict(&[2.0; 9], &[2.0; 9]).1, "no difference shown");
    }
}
