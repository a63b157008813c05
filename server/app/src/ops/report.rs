//! Use-case: the report of why a session stopped, from what is recorded.

mod timeline;

use crate::bridges::keepers::Keepers;
use crate::bridges::lookup::{Row, Wanted, corrupt};
use crate::jobs::Jobs;
use crate::logs::{LogQuery, Logs};
use crate::read_model::look::Instances;
use crate::tasks::blocking;
use crate::{AppError, Class};
use std::sync::Arc;
use svc_config::Config;
use svc_domain::bridge::Bridge;
use svc_domain::exit_cause::printed;
use svc_domain::redact::redact_text;
use svc_domain::report::{self, Choices, Facts};
use svc_shared::Timestamp;
use svc_shared::api::instances::Instance;
use svc_shared::api::jobs::BackgroundJob;
use svc_shared::error::ErrorCode;
use svc_shared::ids::JobId;
use svc_shared::internal::report::{Asked, EndReport, LastOutput, LastUse, ReportEvent};
use svc_shared::status::{Channel, ExitReason, ResumeMode};
use svc_store::EndFacts;
use timeline::Timeline;

/// Most lines of each source.
const LINES: usize = 40;
/// Bytes of the log that its last lines are taken from.
const LOG_TAIL: u64 = 16 * 1024;

/// Tells why sessions stopped.
pub struct Reports {
    config: Arc<Config>,
    instances: Arc<Instances>,
    logs: Arc<Logs>,
    keepers: Arc<Keepers>,
    jobs: Arc<Jobs>,
}

impl Reports {
    /// Reports from these records, logs, terminals and jobs.
    pub(crate) fn new(
        config: &Arc<Config>,
        instances: &Arc<Instances>,
        logs: &Arc<Logs>,
        keepers: &Arc<Keepers>,
        jobs: &Arc<Jobs>,
    ) -> Arc<Self> {
        Arc::new(Self {
            config: Arc::clone(config),
            instances: Arc::clone(instances),
            logs: Arc::clone(logs),
            keepers: Arc::clone(keepers),
            jobs: Arc::clone(jobs),
        })
    }

    /// The report of an ended session or background job.
    ///
    /// # Errors
    /// Nothing or several match the reference, or it still runs.
    pub async fn of(&self, reference: &str) -> Result<EndReport, AppError> {
        let row = match self.instances.lookup.row(reference, Wanted::Ended).await {
            Err(error) if error.code == ErrorCode::UnknownInstance => {
                let job = self.job(reference).await?.ok_or(error)?;
                return Ok(self.finished(self.of_job(&job)?));
            }
            row => row?,
        };
        let report = match row {
            Row::Corrupt { id } => return Err(corrupt(&id)),
            Row::Bridge(bridge) => {
                let bridge = self.instances.bridge_as_it_is(*bridge).await?;
                let record = self.instances.records.of(&bridge).await?;
                let output = self.shown_by(&bridge).await?;
                let forced = bridge.ended().is_some_and(|ended| ended.forced);
                self.of_record(&record, forced, output).await?
            }
            Row::Hosted(id) => {
                let record = self.instances.get(id.as_str()).await?;
                let detail = record.error_detail.clone().unwrap_or_default();
                let output = tail("output", detail.lines().map(str::to_owned).collect());
                self.of_record(&record, false, output.into_iter().collect()).await?
            }
        };
        Ok(self.finished(report))
    }

    /// The report as it may be passed on, with its text.
    fn finished(&self, mut report: EndReport) -> EndReport {
        self.without_places(&mut report);
        report.markdown = report::markdown(&report);
        report
    }

    /// Takes out where this machine keeps its things: a report is made to be passed on.
    fn without_places(&self, report: &mut EndReport) {
        let home = std::env::var("HOME").unwrap_or_default();
        let state_dir = self.config.state_dir.to_string_lossy();
        let places = [(&*state_dir, "<state_dir>"), (home.trim_end_matches('/'), "~")];
        let lines = report.output.iter_mut().flat_map(|output| &mut output.lines);
        for text in lines.chain(&mut report.evidence).chain([&mut report.cause]) {
            for (place, name) in places.iter().filter(|(place, _)| place.len() > 1) {
                *text = text.replace(place, name);
            }
        }
    }

    /// The reports of the sessions that ended last, the newest first.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn newest(&self, most: usize) -> Result<Vec<EndReport>, AppError> {
        let mut ended: Vec<Instance> = self.instances.written().await?;
        ended.retain(|record| record.ended_at.is_some());
        ended.sort_by_key(|record| std::cmp::Reverse(record.ended_at));
        let mut reports = Vec::new();
        for record in ended.into_iter().take(most) {
            // One that was resumed or forgotten meanwhile has no report any more.
            if let Ok(report) = self.of(record.instance_id.as_str()).await {
                reports.push(report);
            }
        }
        Ok(reports)
    }

    async fn job(&self, reference: &str) -> Result<Option<BackgroundJob>, AppError> {
        let Ok(id) = reference.parse::<JobId>() else { return Ok(None) };
        Ok(self.jobs.list().await?.into_iter().find(|job| job.id == id))
    }

    fn of_job(&self, job: &BackgroundJob) -> Result<EndReport, AppError> {
        let is_over = matches!(job.state.as_str(), "done" | "failed" | "stopped" | "lost");
        if !is_over {
            return Err(still_runs(&format!("background job {}", job.id), "svc jobs list"));
        }
        let is_lost = job.state == "lost";
        let (cause, evidence, next) =
            report::of_job(&job.state, job.id.as_str(), &job.detail, is_lost);
        let (started_at, ended_at) = (job.created_at.parse().ok(), job.updated_at.parse().ok());
        let event = |at: Option<Timestamp>, kind: &str, says: String| {
            Some(ReportEvent { at: at?, kind: kind.to_owned(), says })
        };
        let timeline = [
            event(started_at, "spawned", "Launched.".to_owned()),
            event(ended_at, "ended", format!("Last change of its record: {}.", job.state)),
        ];
        let result = job.result.as_deref().unwrap_or_default();
        Ok(EndReport {
            id: job.id.to_string(),
            kind: "job".to_owned(),
            project: job.project.clone(),
            label: job.name.clone().unwrap_or_else(|| job.id.to_string()),
            generation: 1,
            status: job.state.clone(),
            started_at,
            ended_at,
            reason: None,
            cause,
            evidence,
            next,
            exit_code: None,
            exit_signal: None,
            out_of_memory: false,
            forced: false,
            asked: None,
            last_use: None,
            output: tail("result", result.lines().map(str::to_owned).collect())
                .into_iter()
                .collect(),
            timeline: timeline.into_iter().flatten().collect(),
            markdown: String::new(),
        })
    }

    /// What a bridge showed last: its screen or its output, and the end of its log.
    async fn shown_by(&self, bridge: &Bridge) -> Result<Vec<LastOutput>, AppError> {
        let mut found = Vec::new();
        if bridge.is_interactive() {
            let (keepers, bridge) = (Arc::clone(&self.keepers), bridge.clone());
            let screen = blocking(move || keepers.last_lines(&bridge)).await?;
            found.extend(tail("screen", printed(screen.as_bytes(), LINES)));
        }
        let query = LogQuery { tail: LOG_TAIL, cursor: None, before: None };
        // An end without a readable log is still an end.
        if let Ok(page) = self.logs.page(bridge.id.as_str(), query).await {
            if !bridge.is_interactive() {
                found.extend(tail("output", page.output));
            }
            found.extend(tail("log", page.lines));
        }
        Ok(found)
    }

    async fn of_record(
        &self,
        record: &Instance,
        forced: bool,
        output: Vec<LastOutput>,
    ) -> Result<EndReport, AppError> {
        let id = &record.instance_id;
        let status = match record.status.known() {
            Some(status) if !status.is_live() => *status,
            _ => {
                let name = format!("session {}", id.short());
                return Err(still_runs(&name, &format!("svc logs -f {}", id.short())));
            }
        };
        let store = &self.instances.lookup.registry.store;
        let noted = store.end_facts(id).await?;
        let timeline = Timeline::of(store, record, &noted).await?;
        let EndFacts { asked, last } =
            of_generation(&noted, record.generation).cloned().unwrap_or_default();
        let asked = asked.map(|(by, at)| Asked { by: redact_text(&by), at });
        let last_use = last.map(|last| LastUse {
            at: last.at,
            cpu_percent: (last.cpu_percent * 10.0).round() / 10.0,
            rss_bytes: last.rss_bytes,
            processes: last.processes,
            peak_rss_bytes: last.peak_rss_bytes,
            peak_at: last.peak_at,
        });
        let reason = record.exit_reason.as_ref().and_then(|reason| reason.known().copied());
        let ceiling = self.config.ceilings.memory_mb;
        let gave_up = record.quarantined.as_ref().is_some_and(|held| held.is_crash_loop());
        let facts = Facts {
            status,
            reason,
            code: record.exit_code,
            signal: record.exit_signal,
            forced,
            started_at: record.started_at,
            ready_at: timeline.ready_at,
            ended_at: record.ended_at,
            asked: asked.as_ref(),
            last_use: last_use.as_ref(),
            memory_ceiling: (ceiling > 0).then_some(u64::from(ceiling) << 20),
            notice: record.notice.as_deref(),
            detail: record.error_detail.as_deref(),
            link_lost: timeline.link_lost.as_deref(),
            gave_up_after: gave_up.then_some(record.restart.crashes_in_window),
        };
        let choices = choices(record);
        Ok(EndReport {
            id: id.to_string(),
            kind: kind(record).to_owned(),
            project: Some(record.project.clone()),
            label: redact_text(&record.label),
            generation: record.generation,
            status: record.status.to_string(),
            started_at: record.started_at,
            ended_at: record.ended_at,
            reason: record.exit_reason.clone(),
            cause: report::cause(&facts),
            evidence: report::evidence(&facts),
            next: report::next_steps(&facts, &choices),
            exit_code: record.exit_code,
            exit_signal: record.exit_signal,
            out_of_memory: reason == Some(ExitReason::OutOfMemory),
            forced,
            last_use: last_use.clone(),
            output,
            timeline: timeline.events,
            markdown: String::new(),
            asked: asked.clone(),
        })
    }
}

fn of_generation(noted: &[(u32, EndFacts)], generation: u32) -> Option<&EndFacts> {
    noted.iter().find(|(of, _)| *of == generation).map(|(_, facts)| facts)
}

fn choices(record: &Instance) -> Choices<'_> {
    Choices {
        id: record.instance_id.short(),
        project: &record.project,
        blocked: record.resume_blocked.as_ref().and_then(|blocked| blocked.known().copied()),
        has_log: record.has_log,
        stranded: record.stranded,
    }
}

fn kind(record: &Instance) -> &'static str {
    if record.channel.is(&Channel::Hosted) {
        "direct"
    } else if record.resume_mode.is(&ResumeMode::Pty) {
        "interactive"
    } else {
        "server-mode"
    }
}

/// The last lines of a source; `None` when there are none.
fn tail(source: &str, mut lines: Vec<String>) -> Option<LastOutput> {
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    lines.drain(..lines.len().saturating_sub(LINES));
    (!lines.is_empty()).then(|| LastOutput { source: source.to_owned(), lines })
}

fn still_runs(name: &str, look: &str) -> AppError {
    AppError::new(
        ErrorCode::StillLive,
        Class::Conflict,
        format!("{name} has not ended, so there is no report of its end; look at it with `{look}`"),
    )
}
