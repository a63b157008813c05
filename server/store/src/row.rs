//! Rows of `bridges` as the database holds them, and as the domain knows them.

use crate::error::StoreError;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{FromRow, Row, Sqlite};
use std::path::PathBuf;
use std::str::FromStr;
use svc_domain::bridge::{Anchor, Bridge, Ended, Launch, Live, Outcome, Stage, State};
use svc_domain::identity::{Pid, ProcessIdentity};
use svc_domain::restart::{Reboot, Restarts};
use svc_shared::Timestamp;
use svc_shared::status::{
    AfterReboot, BridgeStatus, ExitReason, OnLimit, Phase, QuarantineCode, RestartPolicy,
};

/// Declares the row of a bridge and every statement that names all of its columns.
///
/// The key stands apart, because an update does not write it. `number` and the revision belong to
/// the reader ([`crate::Stored`]), the two times of the row itself to the statements.
macro_rules! bridge_row {
    ($key:ident: $key_type:ty; $($column:ident: $type:ty,)+) => {
        /// A bridge in columns.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) struct BridgeRow {
            pub $key: $key_type,
            $(pub $column: $type,)+
        }

        impl FromRow<'_, SqliteRow> for BridgeRow {
            fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
                Ok(Self {
                    $key: row.try_get(stringify!($key))?,
                    $($column: row.try_get(stringify!($column))?,)+
                })
            }
        }

        impl BridgeRow {
            /// Inserts the row with revision 1.
            pub(crate) fn insert(self, now: i64) -> Query {
                sqlx::query(INSERT).bind(self.$key)$(.bind(self.$column))+.bind(now).bind(now)
            }

            /// Replaces the row that still has this revision.
            pub(crate) fn update(self, revision: i64, now: i64) -> Query {
                let query = sqlx::query(UPDATE)$(.bind(self.$column))+;
                query.bind(now).bind(self.$key).bind(revision)
            }
        }

        pub(crate) const INSERT: &str = concat!(
            "INSERT INTO bridges (", stringify!($key), $(", ", stringify!($column),)+
            ", revision, created_at, updated_at) VALUES (?", $(placeholder!($column),)+
            ", 1, ?, ?)"
        );
        pub(crate) const UPDATE: &str = concat!(
            "UPDATE bridges SET ", $(stringify!($column), " = ?, ",)+
            "updated_at = ?, revision = revision + 1 WHERE ",
            stringify!($key), " = ? AND revision = ?"
        );
        macro_rules! select {
            ($rest:literal) => {
                concat!(
                    "SELECT number, revision, ", stringify!($key),
                    $(", ", stringify!($column),)+
                    ", (SELECT COUNT(*) FROM stranded_sessions AS stranded \
                     WHERE stranded.instance_id = bridges.instance_id \
                     AND stranded.state = 'stranded') AS stranded FROM bridges ", $rest
                )
            };
        }
    };
}

macro_rules! placeholder {
    ($column:ident) => {
        ", ?"
    };
}

bridge_row! {
    instance_id: String;
    project: String,
    cwd: String,
    custom_name: Option<String>,
    resume_mode: String,
    spawn_mode: String,
    permission_mode: String,
    origin: String,
    generation: i64,
    status: String,
    phase: String,
    stop_requested: bool,
    intentional_stop: bool,
    forced: bool,
    grace_deadline: Option<i64>,
    status_since: i64,
    started_at: Option<i64>,
    ended_at: Option<i64>,
    launch_id: Option<String>,
    argv: Option<String>,
    log_stem: Option<String>,
    relaunched: bool,
    bridge_pid: Option<i64>,
    bridge_start_ticks: Option<i64>,
    bridge_boot_id: Option<String>,
    worktree_name: Option<String>,
    conversation_id: Option<String>,
    keeper_pid: Option<i64>,
    keeper_start_ticks: Option<i64>,
    keeper_boot_id: Option<String>,
    environment_id: Option<String>,
    session_id: Option<String>,
    exit_reason: Option<String>,
    exit_code: Option<i32>,
    exit_signal: Option<i32>,
    error_detail: Option<String>,
    notice: Option<String>,
    quarantine_code: Option<String>,
    restart_policy: Option<String>,
    restart_attempt: i64,
    next_restart_at: Option<i64>,
    restart_quarantined_at: Option<i64>,
    crash_times: String,
    after_reboot: Option<String>,
    restore_declined: bool,
    on_limit: Option<String>,
}

pub(crate) const SELECT_ALL: &str = select!("ORDER BY number");
pub(crate) const SELECT_ONE: &str = select!("WHERE instance_id = ?");
pub(crate) const SELECT_THESE: &str =
    select!("WHERE number IN (SELECT value FROM json_each(?)) ORDER BY number");

/// A statement with its values.
pub(crate) type Query = sqlx::query::Query<'static, Sqlite, SqliteArguments<'static>>;

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
        let keeper = row.keeper()?;
        let launch = row.launch()?;
        let restarts = row.restarts()?;
        let reboot = Reboot {
            choice: maybe::<AfterReboot>("after_reboot", row.after_reboot.as_deref())?,
            declined: row.restore_declined,
        };
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
            keeper,
            worktree: maybe("worktree_name", row.worktree_name.as_deref())?,
            conversation: maybe("conversation_id", row.conversation_id.as_deref())?,
            anchor: Anchor { environment_id: row.environment_id, session_id: row.session_id },
            notice: row.notice,
            quarantine: maybe::<QuarantineCode>("quarantine_code", row.quarantine_code.as_deref())?,
            restarts,
            reboot,
            on_limit: maybe::<OnLimit>("on_limit", row.on_limit.as_deref())?,
        })
    }
}

/// A recorded identity. An impossible pid counts as none (F7).
/// An incomplete identity is an error, because the service never writes one.
fn identity(
    columns: [&'static str; 3],
    pid: Option<i64>,
    start_ticks: Option<i64>,
    boot_id: Option<&str>,
) -> Result<Option<ProcessIdentity>, Corrupt> {
    let [pid_column, ticks_column, boot_column] = columns;
    match (pid, start_ticks, boot_id) {
        (None, None, None) => Ok(None),
        (Some(pid), Some(ticks), Some(boot)) => {
            let start_ticks = u64::try_from(ticks).map_err(|_| Corrupt(ticks_column))?;
            let boot_id = word(boot_column, boot)?;
            Ok(Pid::new(pid).map(|pid| ProcessIdentity { pid, start_ticks, boot_id }))
        }
        (None, ..) => Err(Corrupt(pid_column)),
        (_, None, _) => Err(Corrupt(ticks_column)),
        (_, _, None) => Err(Corrupt(boot_column)),
    }
}

fn ticks(process: &ProcessIdentity) -> i64 {
    i64::try_from(process.start_ticks).unwrap_or(i64::MAX)
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

    /// The recorded process.
    /// Without one it is never signalled, and the process is found by its launch id.
    fn process(&self) -> Result<Option<ProcessIdentity>, Corrupt> {
        let columns = ["bridge_pid", "bridge_start_ticks", "bridge_boot_id"];
        let boot_id = self.bridge_boot_id.as_deref();
        identity(columns, self.bridge_pid, self.bridge_start_ticks, boot_id)
    }

    /// The recorded process that holds the terminal.
    fn keeper(&self) -> Result<Option<ProcessIdentity>, Corrupt> {
        let columns = ["keeper_pid", "keeper_start_ticks", "keeper_boot_id"];
        let boot_id = self.keeper_boot_id.as_deref();
        identity(columns, self.keeper_pid, self.keeper_start_ticks, boot_id)
    }

    fn restarts(&self) -> Result<Restarts, Corrupt> {
        let crashes: Vec<i64> =
            serde_json::from_str(&self.crash_times).map_err(|_| Corrupt("crash_times"))?;
        Ok(Restarts {
            policy: maybe::<RestartPolicy>("restart_policy", self.restart_policy.as_deref())?,
            attempt: u32::try_from(self.restart_attempt).map_err(|_| Corrupt("restart_attempt"))?,
            next_at: self.next_restart_at.map(Timestamp::from_millis),
            quarantined_at: self.restart_quarantined_at.map(Timestamp::from_millis),
            crashes: crashes.into_iter().map(Timestamp::from_millis).collect(),
        })
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
        let (process, keeper) = (bridge.process.as_ref(), bridge.keeper.as_ref());
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
            bridge_start_ticks: process.map(ticks),
            bridge_boot_id: process.map(|process| process.boot_id.as_str().to_owned()),
            worktree_name: bridge.worktree.as_ref().map(ToString::to_string),
            conversation_id: bridge.conversation.as_ref().map(|id| id.expose().to_owned()),
            keeper_pid: keeper.map(|keeper| i64::from(keeper.pid.get())),
            keeper_start_ticks: keeper.map(ticks),
            keeper_boot_id: keeper.map(|keeper| keeper.boot_id.as_str().to_owned()),
            environment_id: bridge.anchor.environment_id.clone(),
            session_id: bridge.anchor.session_id.clone(),
            exit_reason: ended.and_then(|ended| ended.reason).map(|reason| reason.to_string()),
            exit_code: ended.and_then(|ended| ended.exit_code),
            exit_signal: ended.and_then(|ended| ended.exit_signal),
            error_detail: ended.and_then(|ended| ended.detail.clone()),
            notice: bridge.notice.clone(),
            quarantine_code: bridge.quarantine.map(|code| code.to_string()),
            restart_policy: bridge.restarts.policy.map(|policy| policy.to_string()),
            restart_attempt: i64::from(bridge.restarts.attempt),
            next_restart_at: bridge.restarts.next_at.map(Timestamp::as_millis),
            restart_quarantined_at: bridge.restarts.quarantined_at.map(Timestamp::as_millis),
            crash_times: {
                let times = bridge.restarts.crashes.iter().map(|at| at.as_millis());
                serde_json::json!(times.collect::<Vec<_>>()).to_string()
            },
            after_reboot: bridge.reboot.choice.map(|choice| choice.to_string()),
            restore_declined: bridge.reboot.declined,
            on_limit: bridge.on_limit.map(|choice| choice.to_string()),
        })
    }
}
