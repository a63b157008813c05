//! Tokens and money as they are shown.

use svc_shared::internal::usage::{TokenUsage, UsageDisplay, UsageMode, UsageReport};

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Days that can be asked for, with the word in the address.
pub const RANGES: [(&str, Option<i64>); 4] =
    [("7", Some(7)), ("", Some(30)), ("90", Some(90)), ("all", None)];

/// The first moment that counts; `None` for everything.
#[must_use]
pub fn since(range: &str, now: i64) -> Option<i64> {
    let found = RANGES.iter().find(|(word, _)| *word == range);
    let days = found.map_or(Some(30), |(_, days)| *days)?;
    Some(now - days * DAY_MS)
}

/// A number of tokens: `1.4 M`, `977 k`, `12`.
#[must_use]
pub fn tokens(n: u64) -> String {
    let tenths = |unit: u64, word: &str| {
        let tenths = (n + unit / 20) / (unit / 10);
        format!("{}.{} {word}", tenths / 10, tenths % 10)
    };
    match n {
        0..1_000 => n.to_string(),
        1_000..999_500 => format!("{} k", (n + 500) / 1_000),
        999_500..999_950_000 => tenths(1_000_000, "M"),
        _ => tenths(1_000_000_000, "G"),
    }
}

/// An amount in the configured currency: `≈ $26.66`.
#[must_use]
pub fn money(dollars: f64, display: &UsageDisplay) -> String {
    // A sum of nothing may be a negative zero.
    let amount = (dollars * display.fx_rate).max(0.0) + 0.0;
    if amount > 0.0 && amount < 0.005 {
        return format!("< {}0.01", display.currency_symbol);
    }
    format!("≈ {}{amount:.2}", display.currency_symbol)
}

/// Money is shown, not only tokens.
#[must_use]
pub fn has_money(display: &UsageDisplay) -> bool {
    display.mode.is(&UsageMode::Cost)
}

/// Nothing is shown, and nothing is fetched.
#[must_use]
pub fn is_off(display: &UsageDisplay) -> bool {
    display.mode.is(&UsageMode::Off)
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Project or model.
    pub name: String,
    /// What was used.
    pub usage: TokenUsage,
    /// Length of the bar in percent of the longest.
    pub share: u32,
}

/// Projects, the most expensive first; without prices the one with most tokens.
#[must_use]
pub fn rows(report: &UsageReport, by_money: bool) -> Vec<Row> {
    #[expect(clippy::cast_precision_loss, reason = "a length on a screen")]
    let weight = |usage: &TokenUsage| match by_money {
        true => usage.cost_usd,
        false => usage.total_tokens as f64,
    };
    let most = report.projects.values().map(weight).fold(0.0, f64::max);
    let mut rows: Vec<Row> = report
        .projects
        .iter()
        .map(|(name, usage)| Row {
            name: name.clone(),
            usage: usage.clone(),
            share: percent(weight(usage), most),
        })
        .collect();
    rows.sort_by(|one, other| weight(&other.usage).total_cmp(&weight(&one.usage)));
    rows
}

/// Models, the most used first.
/// With tokens, cost, share of tokens and length of the bar.
#[must_use]
pub fn models(report: &UsageReport) -> Vec<(String, u64, f64, u32)> {
    let all = report.totals.total_tokens;
    let mut models: Vec<_> = report.totals.by_model.iter().collect();
    models.sort_by_key(|(_, usage)| std::cmp::Reverse(usage.total_tokens));
    #[expect(clippy::cast_precision_loss, reason = "a share on a screen")]
    let share = |tokens: u64| percent(tokens as f64, all as f64);
    models
        .into_iter()
        .map(|(name, usage)| {
            (name.clone(), usage.total_tokens, usage.cost_usd, share(usage.total_tokens))
        })
        .collect()
}

fn percent(part: f64, whole: f64) -> u32 {
    if whole <= 0.0 {
        return 0;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
    let percent = (part / whole * 100.0).round().clamp(0.0, 100.0) as u32;
    percent
}

/// The table for a spreadsheet.
#[must_use]
pub fn csv(report: &UsageReport, display: &UsageDisplay) -> String {
    let mut text = String::from("project,input,output,cache_write,cache_read");
    let has_money = has_money(display);
    if has_money {
        text.push_str(&format!(",cost_{}", display.currency.to_ascii_lowercase()));
    }
    text.push_str("\r\n");
    for row in rows(report, has_money) {
        let tokens = row.usage.token_breakdown;
        let (read, written) = (tokens.cache_read, tokens.cache_creation);
        text.push_str(&format!(
            "{},{},{},{written},{read}",
            cell(&row.name),
            tokens.input,
            tokens.output
        ));
        if has_money {
            text.push_str(&format!(",{:.4}", row.usage.cost_usd * display.fx_rate));
        }
        text.push_str("\r\n");
    }
    text
}

/// A text of a cell. One that a spreadsheet would compute is made a text.
fn cell(text: &str) -> String {
    let mark = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{mark}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_shared::Word;
    use svc_shared::internal::usage::TokenBreakdown;

    fn display(symbol: &str, fx_rate: f64) -> UsageDisplay {
        UsageDisplay {
            mode: Word::from(UsageMode::Cost),
            currency_symbol: symbol.to_owned(),
            fx_rate,
            ..UsageDisplay::default()
        }
    }

    #[test]
    fn numbers_are_short() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1_499, "1 k"),
            (977_000, "977 k"),
            (999_499, "999 k"),
            (999_500, "1.0 M"),
            (1_449_000, "1.4 M"),
            (102_900_000, "102.9 M"),
            (2_000_000_000, "2.0 G"),
        ] {
            assert_eq!(tokens(n), text);
        }
        assert_eq!(money(26.66, &display("$", 1.0)), "≈ $26.66");
        assert_eq!(money(2.0, &display("€", 0.5)), "≈ €1.00");
        assert_eq!(money(0.001, &display("$", 1.0)), "< $0.01");
        assert_eq!(money(0.0, &display("$", 1.0)), "≈ $0.00");
        assert_eq!(money(-0.0, &display("$", 1.0)), "≈ $0.00");
    }

    #[test]
    fn projects_come_by_cost_and_a_spreadsheet_computes_none_of_their_names() {
        let usage = |cost_usd: f64, input: u64| TokenUsage {
            cost_usd,
            total_tokens: input,
            token_breakdown: TokenBreakdown { input, ..TokenBreakdown::default() },
            ..TokenUsage::default()
        };
        let report = UsageReport {
            as_of: None,
            complete: true,
            pending_files: 0,
            totals: TokenUsage::default(),
            projects: [("=1+1".to_owned(), usage(1.0, 9)), ("b".to_owned(), usage(4.0, 3))].into(),
        };
        let named: Vec<_> =
            rows(&report, true).into_iter().map(|row| (row.name, row.share)).collect();
        assert_eq!(named, [("b".to_owned(), 100), ("=1+1".to_owned(), 25)]);
        assert_eq!(rows(&report, false).first().map(|row| row.name.as_str()), Some("=1+1"));
        let text = csv(&report, &display("$", 1.0));
        assert!(text.contains("\"'=1+1\",9,0,0,0,1.0000\r\n"), "{text}");
    }

    #[test]
    fn a_range_begins_so_many_days_ago() {
        assert_eq!(since("7", 10 * DAY_MS), Some(3 * DAY_MS));
        assert_eq!(since("", 30 * DAY_MS), Some(0));
        assert_eq!(since("all", 5), None);
    }
}
