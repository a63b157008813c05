//! The text that a Prometheus server scrapes (format 0.0.4, `http-api` §6.2).

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{GaugeVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder};
use std::collections::BTreeMap;
use svc_app::{Figures, VERSION};

/// Media type of the text.
pub(crate) const MEDIA: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The families in the order of the specification, samples by label.
///
/// # Errors
/// A defect: names and labels are ours.
pub(crate) fn text(figures: &Figures) -> prometheus::Result<String> {
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
        let (crashes, restarts, usage) = Default::default();
        let quiet = Figures { crashes, restarts, usage, ..figures };
        assert!(!text(&quiet).unwrap().contains("svc_bridge_"));
        let hosted = Some(HostedFigures { sessions: 3, is_up: false });
        let text = text(&Figures { hosted, ..quiet }).unwrap();
        assert!(text.contains("svc_hosted_sessions 3\n") && text.contains("svc_hosted_up 0\n"));
    }
}
