//! The text that a Prometheus server scrapes (`http-api` §6.2).
//!
//! Format 0.0.4 for everybody, `OpenMetrics` 1.0 for who prefers it.

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{GaugeVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder};
use std::collections::BTreeMap;
use svc_app::{Figures, VERSION};

/// Media type of the text.
const MEDIA: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Media type of the `OpenMetrics` text.
const OPEN_MEDIA: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What a scrape answers: the media type and the text.
///
/// `accept` is the header of that name.
///
/// # Errors
/// As [`text`].
pub(crate) fn answer(
    figures: &Figures,
    accept: Option<&str>,
) -> prometheus::Result<(&'static str, String)> {
    let text = text(figures)?;
    Ok(match accept.is_some_and(prefers_open_metrics) {
        true => (OPEN_MEDIA, open_metrics(&text)),
        false => (MEDIA, text),
    })
}

/// Whether `OpenMetrics` is named, and as welcome as plain text.
fn prefers_open_metrics(accept: &str) -> bool {
    let weight = |wanted: &[&str]| {
        let ranges = accept.split(',').filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next()?.to_ascii_lowercase();
            let quality = parts.find_map(|part| part.strip_prefix("q="));
            let quality = quality.map_or(Some(1.0), |quality| quality.parse::<f64>().ok())?;
            wanted.contains(&media.as_str()).then_some(quality)
        });
        ranges.fold(0.0, f64::max)
    };
    let open = weight(&["application/openmetrics-text"]);
    open > 0.0 && open >= weight(&["text/plain", "text/*"])
}

/// The same families as `OpenMetrics` names them.
///
/// There a family of counters has no suffix, and its samples have one.
fn open_metrics(text: &str) -> String {
    let mut open = String::with_capacity(text.len() + 8);
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(what @ ("HELP" | "TYPE")), Some(name), Some(rest)) => {
                let (family, rest) = match name.strip_suffix("_info") {
                    Some(family) if what == "TYPE" => (family, "info"),
                    Some(family) => (family, rest),
                    None => (name.strip_suffix("_total").unwrap_or(name), rest),
                };
                open.push_str(&format!("# {what} {family} {rest}\n"));
            }
            _ => {
                open.push_str(line);
                open.push('\n');
            }
        }
    }
    open.push_str("# EOF\n");
    open
}

/// The families in the order of the specification, samples by label.
///
/// # Errors
/// A defect: names and labels are ours.
fn text(figures: &Figures) -> prometheus::Result<String> {
    let info = IntGaugeVec::new(
        Opts::new("svc_build_info", "Version of the service; always 1."),
        &["version"],
    )?;
    info.with_label_values(&[VERSION]).set(1);
    let bridges = IntGaugeVec::new(Opts::new("svc_bridges", "Bridges by status."), &["status"])?;
    for (status, count) in &figures.bridges {
        bridges.with_label_values(&[*status]).set(whole(*count));
    }
    let projects = IntGauge::new("svc_projects", "Discovered projects.")?;
    projects.set(whole(figures.projects));
    let mut families = family(info)?;
    families.extend(family(bridges)?);
    families.extend(family(projects)?);
    let crashes = Opts::new("svc_bridge_crashes_total", "Crashes since the service started.");
    families.extend(by_project(crashes, &figures.crashes)?);
    let restarts =
        Opts::new("svc_bridge_restarts_total", "Automatic restarts since the service started.");
    families.extend(by_project(restarts, &figures.restarts)?);
    if let Some(hosted) = &figures.hosted {
        let sessions = IntGauge::new("svc_hosted_sessions", "Direct Sessions that start or run.")?;
        sessions.set(whole(hosted.sessions));
        let up = IntGauge::new("svc_hosted_up", "1 while the daemon is connected, else 0.")?;
        up.set(i64::from(hosted.is_up));
        families.extend(family(sessions)?);
        families.extend(family(up)?);
    }
    if !figures.usage.is_empty() {
        let cpu = GaugeVec::new(
            Opts::new(
                "svc_bridge_cpu_percent",
                "Processor time of live bridges with everything they started; 100 is one core.",
            ),
            &["project"],
        )?;
        let memory = IntGaugeVec::new(
            Opts::new("svc_bridge_rss_bytes", "Resident memory of the same processes."),
            &["project"],
        )?;
        for (project, usage) in &figures.usage {
            cpu.with_label_values(&[project]).set((usage.cpu_percent * 10.0).round() / 10.0);
            memory.with_label_values(&[project]).set(whole(usage.rss_bytes));
        }
        families.extend(family(cpu)?);
        families.extend(family(memory)?);
    }
    TextEncoder::new().encode_to_string(&families)
}

/// A counter of each project; no family without a project.
fn by_project(
    options: Opts,
    counts: &BTreeMap<String, u64>,
) -> prometheus::Result<Vec<MetricFamily>> {
    if counts.is_empty() {
        return Ok(Vec::new());
    }
    let counter = IntCounterVec::new(options, &["project"])?;
    for (project, count) in counts {
        counter.with_label_values(&[project]).inc_by(*count);
    }
    family(counter)
}

/// One family with its samples in order.
///
/// Each family has a registry of its own, because a common registry would sort the families.
fn family(metric: impl Collector + 'static) -> prometheus::Result<Vec<MetricFamily>> {
    let registry = Registry::new();
    registry.register(Box::new(metric))?;
    Ok(registry.gather())
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_app::{HostedFigures, Usage};

    #[test]
    fn open_metrics_is_for_who_prefers_it() {
        for (accept, is_open) in [
            ("application/openmetrics-text;version=1.0.0", true),
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,\
                 */*;q=0.1",
                true,
            ),
            ("text/plain;q=0.9, Application/OpenMetrics-Text;q=0.2", false),
            ("application/openmetrics-text;q=0", false),
            ("application/openmetrics-text;q=x", false),
            ("*/*", false),
            ("text/html", false),
            ("", false),
        ] {
            assert_eq!(prefers_open_metrics(accept), is_open, "{accept}");
        }
    }

    #[test]
    fn families_and_samples_are_in_order_and_labels_are_escaped() {
        let used = Usage { cpu_percent: 12.34, rss_bytes: 4096, ..Usage::default() };
        let figures = Figures {
            bridges: [("running", 2), ("crashed", 1)].into(),
            projects: 500,
            crashes: [("b \"x\"".to_owned(), 3), ("a\\".to_owned(), 1)].into(),
            restarts: [("api".to_owned(), 2)].into(),
            hosted: None,
            usage: [("api".to_owned(), used)].into(),
        };
        let expected = format!(
            "# HELP svc_build_info Version of the service; always 1.\n\
             # TYPE svc_build_info gauge\n\
             svc_build_info{{version=\"{VERSION}\"}} 1\n\
             # HELP svc_bridges Bridges by status.\n\
             # TYPE svc_bridges gauge\n\
             svc_bridges{{status=\"crashed\"}} 1\n\
             svc_bridges{{status=\"running\"}} 2\n\
             # HELP svc_projects Discovered projects.\n\
             # TYPE svc_projects gauge\n\
             svc_projects 500\n\
             # HELP svc_bridge_crashes_total Crashes since the service started.\n\
             # TYPE svc_bridge_crashes_total counter\n\
             svc_bridge_crashes_total{{project=\"a\\\\\"}} 1\n\
             svc_bridge_crashes_total{{project=\"b \\\"x\\\"\"}} 3\n\
             # HELP svc_bridge_restarts_total Automatic restarts since the service started.\n\
             # TYPE svc_bridge_restarts_total counter\n\
             svc_bridge_restarts_total{{project=\"api\"}} 2\n\
             # HELP svc_bridge_cpu_percent Processor time of live bridges with everything they \
             started; 100 is one core.\n\
             # TYPE svc_bridge_cpu_percent gauge\n\
             svc_bridge_cpu_percent{{project=\"api\"}} 12.3\n\
             # HELP svc_bridge_rss_bytes Resident memory of the same processes.\n\
             # TYPE svc_bridge_rss_bytes gauge\n\
             svc_bridge_rss_bytes{{project=\"api\"}} 4096\n"
        );
        assert_eq!(text(&figures).unwrap(), expected);
        let open = answer(&figures, Some("application/openmetrics-text")).unwrap();
        assert_eq!(open.0, OPEN_MEDIA);
        for part in [
            "# HELP svc_build Version of the service; always 1.\n# TYPE svc_build info\n\
             svc_build_info{",
            "# TYPE svc_bridge_crashes counter\nsvc_bridge_crashes_total{project=\"a\\\\\"} 1\n",
            "# TYPE svc_projects gauge\nsvc_projects 500\n",
        ] {
            assert!(open.1.contains(part), "{part}\n{}", open.1);
        }
        assert!(open.1.ends_with("4096\n# EOF\n"), "{}", open.1);
        let (crashes, restarts, usage) = Default::default();
        let quiet = Figures { crashes, restarts, usage, ..figures };
        assert!(!text(&quiet).unwrap().contains("svc_bridge_"));
        let hosted = Some(HostedFigures { sessions: 3, is_up: false });
        let text = text(&Figures { hosted, ..quiet }).unwrap();
        assert!(text.contains("svc_hosted_sessions 3\n") && text.contains("svc_hosted_up 0\n"));
    }
}
