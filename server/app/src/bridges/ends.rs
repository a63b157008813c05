//! Records the end of a bridge, whoever noticed it.
//! A stop, the watcher of its process, the reconciler, or a start that failed.

use crate::AppError;
use crate::bridges::attached::Attached;
use crate::bridges::family::Families;
use crate::bridges::keepers::{Keepers, Left, left_of};
use crate::bridges::transition::{Changed, Transitions};
use crate::log_files;
use std::sync::Arc;
use svc_config::Config;
use svc_domain::bridge::Bridge;
use svc_domain::exit_cause::{Ended, LastWords, exit_cause};
use svc_domain::observe::{Cause, Fact};
use svc_ports::process::ExitReport;
use svc_shared::status::{ExitReason, QuarantineCode};

/// How the end of a bridge was noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Noticed {
    /// A stop ended its process.
    Stopped { report: ExitReport, forced: bool },
    /// Its process exited.
    Exited(ExitReport),
    /// Its process is gone, and nobody was watching.
    FoundGone,
    /// Its machine was restarted.
    HostRestarted,
    /// Its launch did not complete.
    LaunchInterrupted,
    /// It did not register within the grace of a start and was ended.
    GraceOver { report: ExitReport, forced: bool },
    /// The agent said that it cannot become ready, and was ended.
    Refused { reason: ExitReason, detail: Option<String>, report: ExitReport },
    /// Its remote session is gone, and it was started once without it already.
    Poisoned,
    /// It did not end.
    Alive(QuarantineCode),
}

/// Records ends.
pub(crate) struct EndRecorder {
    pub config: Arc<Config>,
    pub transitions: Arc<Transitions>,
    pub families: Arc<Families>,
    pub attached: Arc<Attached>,
    pub keepers: Arc<Keepers>,
}

impl EndRecorder {
    /// Records the end of this generation with its cause.
    /// Everything that the bridge left behind is ended first.
    ///
    /// # Errors
    /// The row cannot be written.
    pub async fn record(&self, bridge: &Bridge, noticed: Noticed) -> Result<Changed, AppError> {
        let is_death = match noticed {
            Noticed::Exited(_) | Noticed::FoundGone | Noticed::HostRestarted => {
                !bridge.intentional_stop()
            }
            Noticed::Stopped { .. }
            | Noticed::LaunchInterrupted
            | Noticed::GraceOver { .. }
            | Noticed::Refused { .. }
            | Noticed::Poisoned
            | Noticed::Alive(_) => false,
        };
        // Before anything that the bridge left behind is ended: ending it clears its traces.
        let stranded = match is_death {
            true => self.attached.of(bridge, self.transitions.clock.now()).await,
            false => Vec::new(),
        };
        let fact = self.fact(bridge, noticed).await;
        let (id, generation) = (&bridge.id, bridge.generation);
        let changed = self.transitions.observe_end(id, generation, fact, stranded).await;
        if changed.is_ok() {
            self.attached.seen.forget(id);
        }
        changed
    }

    async fn fact(&self, bridge: &Bridge, noticed: Noticed) -> Fact {
        match noticed {
            Noticed::Stopped { report, forced } => {
                let (report, _) = self.seen_by_keeper(bridge, report).await;
                // The keeper kills, too, what does not end in time.
                let forced = forced || bridge.is_interactive() && report.signal == Some(9);
                Fact::Exited(Cause {
                    exit_code: report.code,
                    exit_signal: report.signal.or(forced.then_some(9)),
                    forced,
                    ..Cause::plain(ExitReason::OperatorStop)
                })
            }
            Noticed::Exited(report) => {
                let stopped = bridge.intentional_stop();
                let (report, is_lost) = self.seen_by_keeper(bridge, report).await;
                let cause = self.cause(bridge, report, stopped).await;
                self.families.kill_leftovers(bridge).await;
                let reason = if is_lost { ExitReason::KeeperLost } else { cause.reason };
                let forced = stopped && report.signal == Some(9);
                Fact::Exited(Cause { reason, forced, ..cause })
            }
            Noticed::FoundGone => {
                let (report, is_lost) = self.seen_by_keeper(bridge, ExitReport::default()).await;
                let cause = self.cause(bridge, report, false).await;
                self.families.kill_leftovers(bridge).await;
                let reason =
                    if is_lost { ExitReason::KeeperLost } else { ExitReason::DiedUnsupervised };
                Fact::FoundGone(Cause { reason, ..cause })
            }
            Noticed::HostRestarted => Fact::HostRestarted,
            Noticed::LaunchInterrupted => {
                self.families.kill_leftovers(bridge).await;
                Fact::LaunchInterrupted(self.cause_of(bridge, ExitReason::LaunchInterrupted).await)
            }
            Noticed::GraceOver { report, forced } => {
                let cause = self.cause(bridge, report, true).await;
                Fact::GraceExpired(Cause { reason: ExitReason::NotRegistered, forced, ..cause })
            }
            Noticed::Refused { reason, detail, report } => {
                let (report, _) = self.seen_by_keeper(bridge, report).await;
                let cause = self.cause(bridge, report, true).await;
                Fact::Refused(Cause { reason, detail: detail.or(cause.detail), ..cause })
            }
            Noticed::Poisoned => {
                let cause = self.cause_of(bridge, ExitReason::PoisonedSession).await;
                Fact::Exited(Cause { exit_code: None, exit_signal: None, ..cause })
            }
            Noticed::Alive(code) => Fact::Doubt(code),
        }
    }

    /// How an agent ended as its keeper saw it, and whether the keeper was lost.
    /// The agent is the keeper's child: nobody else can collect its exit status.
    async fn seen_by_keeper(&self, bridge: &Bridge, report: ExitReport) -> (ExitReport, bool) {
        if !bridge.is_interactive() {
            return (report, false);
        }
        match left_of(&self.keepers, bridge).await {
            Left::Seen(seen) => (ExitReport { oom_kill: report.oom_kill, ..seen }, false),
            Left::Nothing => (report, true),
            Left::Unknown => (report, false),
        }
    }

    /// What the exit status and the last words say.
    async fn cause(&self, bridge: &Bridge, report: ExitReport, our_signal: bool) -> Cause {
        let words = self.last_words(bridge).await;
        let ExitReport { code, signal, oom_kill } = report;
        let ended = Ended { code, signal, our_signal, oom_kill };
        let last = LastWords { debug: words.0.as_bytes(), output: words.1.as_bytes() };
        let cause = exit_cause(ended, last);
        Cause {
            reason: cause.reason,
            exit_code: report.code,
            exit_signal: report.signal,
            forced: false,
            detail: cause.detail,
        }
    }

    /// A given reason, with the last words as its detail.
    async fn cause_of(&self, bridge: &Bridge, reason: ExitReason) -> Cause {
        Cause { reason, ..self.cause(bridge, ExitReport::default(), false).await }
    }

    async fn last_words(&self, bridge: &Bridge) -> (String, String) {
        let Some(set) = log_files::set_of(&self.config, bridge) else { return Default::default() };
        let (keepers, bridge) = (Arc::clone(&self.keepers), bridge.clone());
        tokio::task::spawn_blocking(move || {
            let printed = match bridge.is_interactive() {
                true => keepers.last_lines(&bridge),
                false => set.output_tail(),
            };
            (set.debug_tail(), printed)
        })
        .await
        .unwrap_or_default()
    }
}
