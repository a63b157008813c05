//! Rows of `bridges` as the database holds them, and as the domain knows them.

use crate::StoreError;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row};
use std::path::PathBuf;
use std::str::FromStr;
use svc_domain::bridge::{Anchor, Bridge, Ended, Launch, Live, Outcome, Stage, State};
use svc_domain::identity::{Pid, ProcessIdentity};
use svc_shared::Timestamp;
use svc_shared::status::{BridgeStatus, ExitReason, Phase, QuarantineCode};

/// A query of rows with every column of a bridge, and the given end.
macro_rules! select_bridges {
    ($rest:literal) => {
        concat!(
            "SELECT number, revision, instance_id, project, cwd, custom_name, resume_mode, \
             spawn_mode, permission_mode, origin, generation, status, phase, stop_requested, \
             intentional_stop, forced, grace_deadline, status_since, started_at, ended_at, \
             launch_id, argv, log_stem, relaunched, bridge_pid, bridge_start_ticks, \
             bridge_boot_id, environment_id, session_id, exit_reason, exit_code, exit_signal, \
             error_detail, notice, quarantine_code FROM bridges ",
            $rest
        )
    };
}
pub(crate) use select_bridges;

/// A bridge in columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BridgeRow {
    pub instance_id: String,
    pub project: String,
    pub cwd: String,
    pub custom_name: Option<String>,
    pub resume_mode: String,
    pub spawn_mode: String,
    pub permission_mode: String,
    pub origin: String,
    pub generation: i64,
    pub status: String,
    pub phase: String,
    pub stop_requested: bool,
    pub intentional_stop: bool,
    pub forced: bool,
    pub grace_deadline: Option<i64>,
    pub status_since: i64,
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub launch_id: Option<String>,
    pub argv: Option<String>,
    pub log_stem: Option<String>,
    pub relaunched: bool,
    pub bridge_pid: Option<i64>,
    pub bridge_start_ticks: Option<i64>,
    pub bridge_boot_id: Option<String>,
    pub environment_id: Option<String>,
    pub session_id: Option<String>,
    pub exit_reason: Option<String>,
    pub exit_code: Option<i32>,
    pub exit_signal: Option<i32>,
    pub error_detail: Option<String>,
    pub notice: Option<String>,
    pub quarantine_code: Option<String>,
}

impl FromRow<'_, SqliteRow> for BridgeRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            instance_id: row.try_get("instance_id")?,
            project: row.try_get("project")?,
            cwd: row.try_get("cwd")?,
            custom_name: row.try_get("custom_name")?,
            resume_mode: row.try_get("resume_mode")?,
            spawn_mode: row.try_get("spawn_mode")?,
            permission_mode: row.try_get("permission_mode")?,
            origin: row.try_get("origin")?,
            generation: row.try_get("generation")?,
            status: row.try_get("status")?,
            phase: row.try_get("phase")?,
            stop_requested: row.try_get("stop_requested")?,
            intentional_stop: row.try_get("intentional_stop")?,
            forced: row.try_get("forced")?,
            grace_deadline: row.try_get("grace_deadline")?,
            status_since: row.try_get("status_since")?,
            started_at: row.try_get("started_at")?,
            ended_at: row.try_get("ended_at")?,
            launch_id: row.try_get("launch_id")?,
            argv: row.try_get("argv")?,
            log_stem: row.try_get("log_stem")?,
            relaunched: row.try_get("relaunched")?,
            bridge_pid: row.try_get("bridge_pid")?,
            bridge_start_ticks: row.try_get("bridge_start_ticks")?,
            bridge_boot_id: row.try_get("bridge_boot_id")?,
            environment_id: row.try_get("environment_id")?,
            session_id: row.try_get("session_id")?,
            exit_reason: row.try_get("exit_reason")?,
            exit_code: row.try_get("exit_code")?,
            exit_signal: row.try_get("exit_signal")?,
            error_detail: row.try_get("error_detail")?,
            notice: row.try_get("notice")?,
            quarantine_code: row.try_get("quarantine_code")?,
        })
    }
}

/// Which column cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column `{0}` holds something unexpected")]
pub(crate) struct Corrupt(pub &'static str);

fn word<T: FromStr>(column: &'static str, raw: &str) -> Result<T, Corrupt> {
    raw.parse().map_err(|_| Corrupt(column))
}

fn maybe<T: FromStr>(column: &'static str, raw: Option<&str>) -> Result<Option<T>, Corrupt> {
    raw.map(|raw| word(column, raw)).transpose()
}

impl TryFrom<BridgeRow> for Bridge {
    type Error = Corrupt;

    fn try_from(row: BridgeRow) -> Result<Self, Corrupt> {
        let state = row.state()?;
        let process = row.process()?;
        let launch = row.launch()?;
        Ok(Self {
            id: word("instance_id", &row.instance_id)?,
            project: word("project", &row.project)?,
            cwd: PathBuf::from(row.cwd),
            custom_name: row.custom_name,
            resume_mode: word("resume_mode", &row.resume_mode)?,
            spawn_mode: word("spawn_mode", &row.spawn_mode)?,
            permission_mode: word("permission_mode", &row.permission_mode)?,
            origin: word("origin", &row.origin)?,
            generation: u32::try_from(row.generation).map_err(|_| Corrupt("generation"))?,
            state,
            status_since: Timestamp::from_millis(row.status_since),
            started_at: row.started_at.map(Timestamp::from_millis),
            launch,
            process,
            anchor: Anchor { environment_id: row.environment_id, session_id: row.session_id },
            notice: row.notice,
            quarantine: maybe::<QuarantineCode>("quarantine_code", row.quarantine_code.as_deref())?,
        })
    }
}

impl BridgeRow {
    fn state(&self) -> Result<State, Corrupt> {
        let deadline = self.grace_deadline.map(Timestamp::from_millis);
        let status = word::<BridgeStatus>("status", &self.status)?;
        let outcome = match status {
            BridgeStatus::Starting | BridgeStatus::Running => {
                let stage = match word::<Phase>("phase", &self.phase)? {
                    Phase::Launching => Stage::Launching { deadline },
                    Phase::Registering => Stage::Registering { deadline },
                    Phase::Ready => Stage::Ready,
                    Phase::Stopping | Phase::Exited => return Err(Corrupt("phase")),
                };
                if (stage == Stage::Ready) != (status == BridgeStatus::Running) {
                    return Err(Corrupt("phase"));
                }
                return Ok(State::Live(Live { stage, stop_requested: self.stop_requested }));
            }
            BridgeStatus::Stopped => Outcome::Stopped,
            BridgeStatus::Crashed => Outcome::Crashed,
            BridgeStatus::Error => Outcome::Failed,
            BridgeStatus::Stopping => return Err(Corrupt("status")),
        };
        if word::<Phase>("phase", &self.phase)? != Phase::Exited {
            return Err(Corrupt("phase"));
        }
        Ok(State::Ended(Ended {
            outcome,
            at: Timestamp::from_millis(self.ended_at.ok_or(Corrupt("ended_at"))?),
            intentional: self.intentional_stop,
            forced: self.forced,
            reason: maybe::<ExitReason>("exit_reason", self.exit_reason.as_deref())?,
            exit_code: self.exit_code,
            exit_signal: self.exit_signal,
            detail: self.error_detail.clone(),
        }))
    }

    /// The recorded process. An impossible pid counts as none (F7).
    /// It is then never signalled, and the process is found by its launch id. An incomplete
    /// identity is an error, because the service never writes one.
    fn process(&self) -> Result<Option<ProcessIdentity>, Corrupt> {
        match (self.bridge_pid, self.bridge_start_ticks, &self.bridge_boot_id) {
            (None, None, None) => Ok(None),
            (Some(pid), Some(ticks), Some(boot)) => {
                let start_ticks =
                    u64::try_from(ticks).map_err(|_| Corrupt("bridge_start_ticks"))?;
                let boot_id = word("bridge_boot_id", boot)?;
                Ok(Pid::new(pid).map(|pid| ProcessIdentity { pid, start_ticks, boot_id }))
            }
            (None, ..) => Err(Corrupt("bridge_pid")),
            (_, None, _) => Err(Corrupt("bridge_start_ticks")),
            (_, _, None) => Err(Corrupt("bridge_boot_id")),
        }
    }

    fn launch(&self) -> Result<Option<Launch>, Corrupt> {
        let Some(id) = &self.launch_id else {
            let nothing = self.argv.is_none() && self.log_stem.is_none();
            return if nothing { Ok(None) } else { Err(Corrupt("launch_id")) };
        };
        let argv = self.argv.as_deref().ok_or(Corrupt("argv"))?;
        let argv: Vec<String> = serde_json::from_str(argv).map_err(|_| Corrupt("argv"))?;
        Ok(Some(Launch {
            id: word("launch_id", id)?,
            argv: argv.into_iter().collect(),
            log_stem: self.log_stem.clone().ok_or(Corrupt("log_stem"))?,
            relaunched: self.relaunched,
        }))
    }
}

impl TryFrom<&Bridge> for BridgeRow {
    type Error = StoreError;

    fn try_from(bridge: &Bridge) -> Result<Self, StoreError> {
        let (live, ended) = (bridge.live(), bridge.ended());
        let phase = match &bridge.state {
            State::Live(live) => match live.stage {
                Stage::Launching { .. } => Phase::Launching,
                Stage::Registering { .. } => Phase::Registering,
                Stage::Ready => Phase::Ready,
            },
            State::Ended(_) => Phase::Exited,
        };
        let launch = bridge.launch.as_ref();
        let process = bridge.process.as_ref();
        Ok(Self {
            instance_id: bridge.id.to_string(),
            project: bridge.project.to_string(),
            cwd: bridge.cwd.to_str().ok_or(StoreError::PathNotText)?.to_owned(),
            custom_name: bridge.custom_name.clone(),
            resume_mode: bridge.resume_mode.to_string(),
            spawn_mode: bridge.spawn_mode.to_string(),
            permission_mode: bridge.permission_mode.to_string(),
            origin: bridge.origin.to_string(),
            generation: i64::from(bridge.generation),
            status: bridge.status().to_string(),
            phase: phase.to_string(),
            stop_requested: live.is_some_and(|live| live.stop_requested),
            intentional_stop: ended.is_some_and(|ended| ended.intentional),
            forced: ended.is_some_and(|ended| ended.forced),
            grace_deadline: bridge.deadline().map(Timestamp::as_millis),
            status_since: bridge.status_since.as_millis(),
            started_at: bridge.started_at.map(Timestamp::as_millis),
            ended_at: ended.map(|ended| ended.at.as_millis()),
            launch_id: launch.map(|launch| launch.id.as_str().to_owned()),
            argv: launch.map(|launch| {
                let argv: Vec<&str> = launch.argv.iter().collect();
                serde_json::json!(argv).to_string()
            }),
            log_stem: launch.map(|launch| launch.log_stem.clone()),
            relaunched: launch.is_some_and(|launch| launch.relaunched),
            bridge_pid: process.map(|process| i64::from(process.pid.get())),
            bridge_start_ticks: process
                .map(|process| i64::try_from(process.start_ticks).unwrap_or(i64::MAX)),
            bridge_boot_id: process.map(|process| process.boot_id.as_str().to_owned()),
            environment_id: bridge.anchor.environment_id.clone(),
            session_id: bridge.anchor.session_id.clone(),
            exit_reason: ended.and_then(|ended| ended.reason).map(|reason| reason.to_string()),
            exit_code: ended.and_then(|ended| ended.exit_code),
            exit_signal: ended.and_then(|ended| ended.exit_signal),
            error_detail: ended.and_then(|ended| ended.detail.clone()),
            notice: bridge.notice.clone(),
            quarantine_code: bridge.quarantine.map(|code| code.to_string()),
        })
    }
}
