//! Use-cases that look back.
//! What happened to bridges, and when a project was last used.

use crate::AppError;
use crate::projects::catalog::Catalog;
use crate::transcripts::Transcripts;
use std::collections::BTreeMap;
use std::sync::Arc;
use svc_config::{Config, UsageMode};
use svc_shared::internal::{HistoryEvent, HistoryPage, SortData};
use svc_shared::{Timestamp, Word};
use svc_store::{HistoryFilter, PastEvent, Store};

/// What is kept of the past.
pub struct History {
    config: Arc<Config>,
    store: Store,
    catalog: Arc<Catalog>,
    transcripts: Arc<Transcripts>,
}

impl History {
    /// Looks back through these records, projects and conversations.
    pub(crate) fn new(
        config: &Arc<Config>,
        store: &Store,
        catalog: &Arc<Catalog>,
        transcripts: &Arc<Transcripts>,
    ) -> Self {
        Self {
            config: Arc::clone(config),
            store: store.clone(),
            catalog: Arc::clone(catalog),
            transcripts: Arc::clone(transcripts),
        }
    }

    /// A page of the history, newest first.
    ///
    /// # Errors
    /// The registry cannot be read: an error is not an empty history.
    pub async fn page(&self, filter: HistoryFilter) -> Result<HistoryPage, AppError> {
        let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        // One more than is shown tells whether there is a next page.
        let wanted = HistoryFilter { limit: filter.limit.saturating_add(1), ..filter };
        let mut found = self.store.history(&wanted).await?;
        let is_more = found.len() > limit;
        found.truncate(limit);
        let next_before = found.last().map(|event| event.id).filter(|_| is_more);
        Ok(HistoryPage { events: found.into_iter().map(event).collect(), next_before })
    }

    /// What the projects of today may be sorted by.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn sort_data(&self) -> Result<BTreeMap<String, SortData>, AppError> {
        let last_used = self.store.last_used().await?;
        let costs = match self.config.usage.mode {
            UsageMode::Cost => self.transcripts.costs().await,
            UsageMode::Tokens | UsageMode::Off => BTreeMap::new(),
        };
        let projects = self.catalog.all();
        Ok(projects
            .iter()
            .map(|project| {
                let last_used = last_used.get(project.name.as_str()).copied();
                let cost_usd = costs.get(project.name.as_str()).copied();
                (project.name.to_string(), SortData { last_used, cost_usd })
            })
            .collect())
    }
}

fn event(past: PastEvent) -> HistoryEvent {
    HistoryEvent {
        id: past.id,
        at: Timestamp::from_millis(past.at),
        project: past.project,
        instance_id: Some(past.instance_id),
        kind: Word::of(&past.kind),
        mode: Word::of(&past.mode),
        session_ref: past.session_ref,
        exit_reason: past.exit_reason.as_deref().map(Word::of),
        detail: past.detail,
        cost_usd: None,
    }
}
