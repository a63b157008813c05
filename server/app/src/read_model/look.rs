//! Use-cases that only look: nothing is written, no event leaves.

use crate::agent::Agent;
use crate::bridges::lookup::{Lookup, Wanted};
use crate::log_files;
use crate::read_model::records::Records;
use crate::tasks::blocking;
use crate::{AppError, Class};
use std::sync::Arc;
use svc_domain::agent_log::evidence::Readiness;
use svc_domain::bridge::{Bridge, Stage};
use svc_domain::effect::Step;
use svc_domain::identity::{GoneBecause, Verdict};
use svc_domain::observe::{Cause, Fact, observe};
use svc_ports::{Clock, ProcessHost};
use svc_shared::api::instances::Instance;
use svc_shared::error::ErrorCode;
use svc_shared::internal::Connect;
use svc_shared::status::{BridgeStatus, ConnectKind, ExitReason};
use svc_store::{Content, Stored};

/// Where links of the agent's remote client lead (agent 2.1.197).
const CLIENT: &str = "https://claude.ai/code";

/// The records of bridges, for whoever asks for them.
pub struct Instances {
    pub(crate) lookup: Arc<Lookup>,
    pub(crate) records: Arc<Records>,
    pub(crate) agent: Arc<Agent>,
    pub(crate) host: Arc<dyn ProcessHost>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Instances {
    /// One record, as this process last saw it.
    ///
    /// # Errors
    /// Nothing or several match the reference.
    pub async fn get(&self, reference: &str) -> Result<Instance, AppError> {
        let rows = self.lookup.registry.copies.rows();
        let id = self.lookup.resolve(reference, Wanted::Live, &rows)?;
        if let Some(session) = id.parse().ok().and_then(|id| self.lookup.hosted.get(&id)) {
            return Ok(self.lookup.hosted.record(&session));
        }
        let record = match rows.into_iter().find(|stored| stored.id() == id) {
            Some(stored) => self.records.of_stored(stored).await?,
            None => None,
        };
        record.ok_or_else(|| crate::bridges::lookup::unknown_instance(reference))
    }

    /// The link for the remote client. A credential: it leaves by this way only.
    ///
    /// # Errors
    /// The bridge is not running or has registered nothing that could be linked.
    pub async fn connect(self: &Arc<Self>, reference: &str) -> Result<Connect, AppError> {
        let bridge = self.lookup.bridge(reference, Wanted::Live).await?;
        let bridge = if self.lookup.registry.has_readers() {
            bridge
        } else {
            self.bridge_as_it_is(bridge).await?
        };
        let none = || {
            AppError::new(
                ErrorCode::InvalidValue,
                Class::Conflict,
                format!(
                    "bridge {} is {} and has no link; wait until it runs or resume it",
                    bridge.id.short(),
                    bridge.status()
                ),
            )
        };
        if bridge.status() != BridgeStatus::Running {
            return Err(none());
        }
        match (&bridge.anchor.session_id, &bridge.anchor.environment_id) {
            (Some(session), _) => Ok(Connect {
                url: format!("{CLIENT}/{session}?from=cli"),
                kind: ConnectKind::Session.into(),
            }),
            (None, Some(environment)) => Ok(Connect {
                url: format!("{CLIENT}?environment={environment}"),
                kind: ConnectKind::Environment.into(),
            }),
            (None, None) => Err(none()),
        }
    }

    /// All records as the processes are now, without writing what was found.
    /// For commands that look while no service may be running.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn reconciled(self: &Arc<Self>) -> Result<Vec<Instance>, AppError> {
        let rows = self.lookup.registry.store.bridges().await?;
        let this = Arc::clone(self);
        let (rows, needs_probe) = blocking(move || {
            let rows: Vec<Stored> = rows.into_iter().map(|stored| this.as_it_is(stored)).collect();
            this.lookup.registry.copies.replace(rows.clone());
            let needs_probe = rows.iter().filter_map(Stored::bridge).any(|bridge| {
                this.records
                    .facts
                    .process_of(bridge)
                    .is_some_and(|facts| this.agent.needs_probe(&facts))
            });
            (rows, needs_probe)
        })
        .await?;
        if needs_probe {
            // Without an answer the version stays unknown, which a record may say.
            let _ = self.agent.cli().version_now().await;
        }
        let records = Arc::clone(&self.records);
        let mut all = blocking(move || records.of_all(&rows)).await?;
        all.extend(self.hosted().await?);
        Ok(all)
    }

    async fn hosted(&self) -> Result<Vec<Instance>, AppError> {
        let rows = &self.lookup.hosted;
        rows.refresh().await?;
        Ok(rows.all().iter().map(|session| rows.record(session)).collect())
    }

    /// All records as they are written, for who must answer at once.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn written(&self) -> Result<Vec<Instance>, AppError> {
        let rows = self.lookup.registry.store.bridges().await?;
        let records = Arc::clone(&self.records);
        let mut all = blocking(move || records.of_all(&rows)).await?;
        all.extend(self.hosted().await?);
        Ok(all)
    }

    /// Nobody supervises in a command, so the record may be behind its process.
    pub(crate) async fn bridge_as_it_is(
        self: &Arc<Self>,
        bridge: Bridge,
    ) -> Result<Bridge, AppError> {
        let this = Arc::clone(self);
        blocking(move || match this.as_seen(&bridge) {
            Some(next) => *next,
            None => bridge,
        })
        .await
    }

    fn as_it_is(&self, stored: Stored) -> Stored {
        let Content::Bridge(bridge) = &stored.content else { return stored };
        match self.as_seen(bridge) {
            Some(next) => Stored { content: Content::Bridge(next), ..stored },
            None => stored,
        }
    }

    /// What the record would become if what can be seen now were written.
    fn as_seen(&self, bridge: &Bridge) -> Option<Box<Bridge>> {
        let fact = self.seen_fact(bridge)?;
        match observe(bridge, fact, self.clock.now()) {
            Step::Becomes { next, .. } => Some(next),
            Step::Unchanged => None,
        }
    }

    fn seen_fact(&self, bridge: &Bridge) -> Option<Fact> {
        let live = bridge.live()?;
        match self.host.probe(bridge.process.as_ref()?) {
            Verdict::Gone(GoneBecause::OtherBoot) => Some(Fact::HostRestarted),
            Verdict::Gone(GoneBecause::NoProcess | GoneBecause::Reused) => {
                Some(Fact::FoundGone(Cause::plain(ExitReason::DiedUnsupervised)))
            }
            Verdict::Unknown => None,
            Verdict::Same => match live.stage {
                Stage::Ready | Stage::Launching { .. } => None,
                Stage::Registering { .. } => {
                    let set = log_files::set_of(&self.records.view.config, bridge)?;
                    let evidence = svc_agent::debug_watch::scan(&set);
                    (evidence.readiness() == Readiness::Ready)
                        .then(|| Fact::Registered(evidence.anchor()))
                }
            },
        }
    }
}
