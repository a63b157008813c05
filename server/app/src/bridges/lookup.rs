//! Which row a reference means.

use crate::hosted::HostedRows;
use crate::projects::catalog::Catalog;
use crate::registry::Registry;
use crate::{AppError, Class};
use std::borrow::Borrow;
use std::sync::Arc;
use svc_domain::bridge::Bridge;
use svc_domain::hosted::HostedSession;
use svc_domain::log_escape::quoted;
pub(crate) use svc_domain::prefix::Wanted;
use svc_domain::prefix::{Ambiguous, Named, Resolved, resolve};
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_store::{Content, Stored};

/// A row that a reference names.
pub(crate) enum Row {
    /// A readable one.
    Bridge(Box<Bridge>),
    /// One that cannot be understood.
    Corrupt { id: String },
    /// A Direct Session.
    Hosted(InstanceId),
}

/// Finds the row that a caller names.
pub(crate) struct Lookup {
    pub registry: Arc<Registry>,
    pub catalog: Arc<Catalog>,
    pub hosted: Arc<HostedRows>,
}

impl Lookup {
    /// The row that `reference` means, read from the registry itself.
    pub(crate) async fn row(&self, reference: &str, wanted: Wanted) -> Result<Row, AppError> {
        if let Ok(id) = reference.parse::<InstanceId>()
            && let Some(stored) = self.registry.store.bridge(&id).await?
        {
            return Ok(self.learned(stored).await);
        }
        let rows = self.registry.store.bridges().await?;
        self.hosted.refresh().await?;
        let id = self.resolve(reference, wanted, &rows)?;
        if let Some(session) = id.parse().ok().and_then(|id| self.hosted.get(&id)) {
            return Ok(Row::Hosted(session.id));
        }
        match rows.into_iter().find(|stored| stored.id() == id) {
            Some(stored) => Ok(self.learned(stored).await),
            None => Err(unknown_instance(reference)),
        }
    }

    async fn learned(&self, stored: Stored) -> Row {
        match stored.content.clone() {
            Content::Bridge(bridge) => {
                self.registry.learn(stored).await;
                Row::Bridge(bridge)
            }
            Content::Corrupt { id, .. } => Row::Corrupt { id },
        }
    }

    /// The readable row that `reference` means.
    pub(crate) async fn bridge(&self, reference: &str, wanted: Wanted) -> Result<Bridge, AppError> {
        match self.row(reference, wanted).await? {
            Row::Bridge(bridge) => Ok(*bridge),
            Row::Corrupt { id } => Err(corrupt(&id)),
            Row::Hosted(id) => Err(direct(&id)),
        }
    }

    /// The Direct Session that `reference` means; `None` when it means something else.
    /// What it means otherwise is left to whoever looks for it next.
    pub(crate) async fn hosted(
        &self,
        reference: &str,
        wanted: Wanted,
    ) -> Result<Option<InstanceId>, AppError> {
        self.hosted.refresh().await?;
        if self.hosted.all().is_empty() {
            return Ok(None);
        }
        match self.row(reference, wanted).await? {
            Row::Hosted(id) => Ok(Some(id)),
            Row::Bridge(_) | Row::Corrupt { .. } => Ok(None),
        }
    }

    /// The id that `reference` means among `rows`.
    pub(crate) fn resolve<R: Borrow<Stored>>(
        &self,
        reference: &str,
        wanted: Wanted,
        rows: &[R],
    ) -> Result<String, AppError> {
        let projects = self.catalog.all();
        let sessions = self.hosted.all();
        let hosted = sessions.iter().map(named_session);
        let named = rows.iter().map(|stored| match &stored.borrow().content {
            Content::Bridge(bridge) => Named {
                id: bridge.id.as_str(),
                process_id: None,
                project: bridge.project.as_str(),
                is_live: bridge.is_live(),
                began: bridge.started_at.map_or(0, Timestamp::as_millis),
            },
            // Its process may live.
            Content::Corrupt { id, project, .. } => {
                Named { id, process_id: None, project, is_live: true, began: 0 }
            }
        });
        let named = named.chain(hosted);
        let is_project =
            |name: &str| name.parse::<ProjectName>().is_ok_and(|n| projects.get(&n).is_some());
        match resolve(reference, wanted, named, is_project) {
            Resolved::Found(id) => Ok(id.to_owned()),
            Resolved::Ambiguous(ambiguous) => Err(ambiguity(ambiguous)),
            Resolved::NotFound => Err(unknown_instance(reference)),
        }
    }
}

fn named_session(session: &HostedSession) -> Named<'_> {
    Named {
        id: session.id.as_str(),
        process_id: Some(&session.process_id),
        project: session.project.as_str(),
        // An orphan is what a Stop means.
        is_live: session.is_live() || session.is_orphan(),
        began: session.started_at.map_or(0, Timestamp::as_millis),
    }
}

/// The row is a Direct Session, for which there is no such thing.
fn direct(id: &InstanceId) -> AppError {
    AppError::new(
        ErrorCode::CapabilityDisabled,
        Class::Conflict,
        format!("{} is a Direct Session, and this is for bridges only", id.short()),
    )
}

fn ambiguity(ambiguous: Ambiguous) -> AppError {
    let mut error = AppError::new(ErrorCode::Ambiguous, Class::Conflict, ambiguous.to_string());
    error.candidates = ambiguous.candidates;
    error
}

/// Nothing has this id, name or prefix.
pub(crate) fn unknown_instance(reference: &str) -> AppError {
    AppError::new(
        ErrorCode::UnknownInstance,
        Class::NotFound,
        format!("no session matches {}; the page and `svc status` list them", quoted(reference)),
    )
}

/// The row cannot be understood.
pub(crate) fn corrupt(id: &str) -> AppError {
    AppError::new(
        ErrorCode::Quarantined,
        Class::Conflict,
        format!(
            "instance {id} is held (row_corrupt): its record holds a value this version does not \
             understand; it was probably written by another version, so restart with that one"
        ),
    )
}
