//! What conversations used, from the indexes alone: no file is read for it.

use super::files::File;
use super::{Transcripts, is_of};
use crate::AppError;
use crate::tasks::blocking;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use svc_agent::conversation::Index;
use svc_domain::token_cost::{Tokens, cost, to_four_decimals};
use svc_projects::Project;
use svc_shared::Timestamp;
use svc_shared::internal::usage::{
    ModelUsage, ProjectUsage, TokenBreakdown, TokenUsage, UsageReport,
};

/// Milliseconds of a day.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// What projects used, each until one of its transcripts is read on.
#[derive(Default)]
pub(crate) struct Sums(Mutex<HashMap<String, (Vec<ReadTo>, Sum)>>);

impl Sums {
    fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|name, _| is_there(name));
    }
}

/// How far a transcript was read.
#[derive(PartialEq, Eq)]
struct ReadTo {
    path: PathBuf,
    offset: u64,
    resets: u64,
}

/// Use of some conversations, by model.
#[derive(Clone, Default)]
struct Sum {
    transcripts: u64,
    messages: u64,
    models: BTreeMap<String, Tokens>,
}

impl Sum {
    /// Adds what a conversation used since a day.
    ///
    /// A conversation that went on from another one begins with a copy of its messages: what was
    /// seen is not added again.
    fn add(&mut self, file: &File, project: &Project, since: Option<i64>, seen: &mut HashSet<u64>) {
        let index = file.index();
        if index.turns == 0 || !is_of(&index, project) {
            return;
        }
        let mut is_counted = since.is_none();
        let mut models: BTreeMap<&str, Tokens> = BTreeMap::new();
        for used in index.used() {
            if since.is_some_and(|since| used.day < since) {
                continue;
            }
            is_counted = true;
            if seen.insert(used.message) {
                self.messages += 1;
                let tokens = models.entry(used.model).or_default();
                *tokens = tokens.plus(used.tokens);
            }
        }
        for (model, tokens) in models {
            let sum = self.models.entry(model.to_owned()).or_default();
            *sum = sum.plus(tokens);
        }
        self.transcripts += u64::from(is_counted);
    }

    fn join(&mut self, other: &Self) {
        self.transcripts += other.transcripts;
        self.messages += other.messages;
        for (model, tokens) in &other.models {
            let sum = self.models.entry(model.clone()).or_default();
            *sum = sum.plus(*tokens);
        }
    }

    fn told(&self, with_cache: bool) -> TokenUsage {
        let all = self.models.values().fold(Tokens::default(), |sum, one| sum.plus(*one));
        let dollars = |model: &str, tokens: &Tokens| cost(model, *tokens).unwrap_or(0.0);
        let sum: f64 = self.models.iter().map(|(model, tokens)| dollars(model, tokens)).sum();
        let unpriced = self.models.iter().filter(|(model, _)| cost(model, all).is_none());
        TokenUsage {
            transcripts: self.transcripts,
            messages: self.messages,
            total_tokens: all.total(with_cache),
            token_breakdown: TokenBreakdown {
                input: all.input,
                output: all.output,
                cache_creation: all.cache_creation,
                cache_read: all.cache_read,
            },
            cost_usd: to_four_decimals(sum),
            approximate: true,
            unpriced_models: unpriced.map(|(model, _)| shown(model)).collect(),
            by_model: self
                .models
                .iter()
                .map(|(model, tokens)| {
                    let cost_usd = to_four_decimals(dollars(model, tokens));
                    let total_tokens = tokens.total(with_cache);
                    (shown(model), ModelUsage { total_tokens, cost_usd })
                })
                .collect(),
        }
    }
}

/// The name of a model, which stands in a file that anybody may have written.
fn shown(model: &str) -> String {
    svc_domain::redact::redact_text(&svc_domain::log_escape::strip_controls(model))
}

/// What one transcript used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileUsage {
    /// Turns of the conversation.
    pub turns: u64,
    /// Lines that could not be read.
    pub skipped: u64,
    /// Messages of models.
    pub messages: u64,
    /// Tokens by model.
    pub models: BTreeMap<String, Tokens>,
}

/// Reads what one transcript used. Blocks.
///
/// # Errors
/// The file is missing, unreadable or no regular file.
pub fn usage_of_file(path: &Path) -> io::Result<FileUsage> {
    let mut index = Index::default();
    index.update(&Index::open(path)?, u64::MAX)?;
    let mut usage =
        FileUsage { turns: index.turns, skipped: index.skipped, ..FileUsage::default() };
    for used in index.used() {
        usage.messages += 1;
        let tokens = usage.models.entry(shown(used.model)).or_default();
        *tokens = tokens.plus(used.tokens);
    }
    Ok(usage)
}

impl Transcripts {
    /// Tokens and cost of all projects, since a time. Whole days count.
    ///
    /// # Errors
    /// The service ends.
    pub async fn usage(
        self: &Arc<Self>,
        since: Option<Timestamp>,
    ) -> Result<UsageReport, AppError> {
        let this = Arc::clone(self);
        let since = since.map(|since| since.as_millis().div_euclid(DAY));
        blocking(move || {
            let with_cache = this.config.usage.token_total_includes_cache;
            let catalog = this.catalog.all();
            let (mut totals, mut projects) = (Sum::default(), BTreeMap::new());
            let mut pending_files = 0;
            for (name, files) in this.files.by_project() {
                let Some(project) = catalog.iter().find(|one| one.name.as_str() == name) else {
                    continue;
                };
                if project.alias_of.is_some() {
                    continue;
                }
                for file in &files {
                    pending_files += u64::from(!file.is_done());
                }
                let sum = this.sum_of(project, &files, since);
                totals.join(&sum);
                if sum.transcripts > 0 {
                    projects.insert(name, sum.told(with_cache));
                }
            }
            this.sums.retain(|name| catalog.iter().any(|project| project.name.as_str() == name));
            let as_of = this.files.as_of();
            UsageReport {
                complete: as_of.is_some() && pending_files == 0,
                as_of,
                pending_files,
                totals: totals.told(with_cache),
                projects,
            }
        })
        .await
    }

    /// Tokens and cost of one project.
    ///
    /// # Errors
    /// No such project.
    pub async fn usage_of(self: &Arc<Self>, project: &str) -> Result<ProjectUsage, AppError> {
        let (this, project) = (Arc::clone(self), self.catalog.named(project)?);
        blocking(move || {
            let sum = this.sum_of(&project, &this.files_of(&project), None);
            let with_cache = this.config.usage.token_total_includes_cache;
            ProjectUsage { project: project.name.to_string(), usage: sum.told(with_cache) }
        })
        .await
    }

    /// What each project cost in US dollars, where anything is known.
    pub(crate) async fn costs(self: &Arc<Self>) -> BTreeMap<String, f64> {
        let report = self.usage(None).await;
        let projects = report.map(|report| report.projects).unwrap_or_default();
        projects.into_iter().map(|(name, usage)| (name, usage.cost_usd)).collect()
    }

    /// What a project used since a day. Blocks.
    fn sum_of(&self, project: &Project, files: &[Arc<File>], since: Option<i64>) -> Sum {
        let read_to = |file: &Arc<File>| {
            let index = file.index();
            let path = file.path().to_owned();
            ReadTo { path, offset: index.offset(), resets: index.resets() }
        };
        let read_to: Vec<ReadTo> = files.iter().map(read_to).collect();
        let sums = || self.sums.0.lock().unwrap_or_else(PoisonError::into_inner);
        if since.is_none()
            && let Some((known, sum)) = sums().get(project.name.as_str())
            && *known == read_to
        {
            return sum.clone();
        }
        let (mut sum, mut seen) = (Sum::default(), HashSet::new());
        for file in files {
            sum.add(file, project, since, &mut seen);
        }
        if since.is_none() {
            sums().insert(project.name.to_string(), (read_to, sum.clone()));
        }
        sum
    }

    /// The files of a project as they were seen last, or as they are. Blocks.
    fn files_of(&self, project: &Project) -> Vec<Arc<File>> {
        let known = self.files.of(project.name.as_str());
        if known.is_empty() { self.scan(project) } else { known }
    }
}
