//! Conversations as they are listed, read and followed, and what they used.
//!
//! Each transcript has an index that is read on, never read again ([`svc_agent::conversation`]).
//! The supervisor keeps the indexes up to date (`scan.rs`) and in the store; a question only reads
//! what was added since.

mod files;
mod follow;
mod scan;
mod usage;

pub use follow::{Followed, Follower};
pub use usage::{FileUsage, usage_of_file};

use crate::agent::Agent;
use crate::auth::refs::SessionRefs;
use crate::projects::catalog::Catalog;
use crate::read_model::ReadModel;
use crate::read_model::signs::Signs;
use crate::registry::copies::Copies;
use crate::tasks::{Tasks, blocking};
use crate::{AppError, Class};
use files::{File, Files};
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use svc_agent::conversation::{Index, Pages};
use svc_config::Config;
use svc_domain::bridge::Bridge;
use svc_ports::Clock;
use svc_projects::Project;
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;
use svc_shared::ids::{InstanceId, SessionRef};
use svc_shared::internal::conversations::{
    Conversation, ConversationList, ConversationPage, ConversationTail,
};
use svc_store::Store;
use svc_watch::Watcher;

/// Bytes that one list reads of files that grew; the supervisor reads the rest.
const LIST_BUDGET: u64 = 64 * 1024 * 1024;

/// Bytes of a file that one page waits for.
const PAGE_BUDGET: u64 = 1024 * 1024 * 1024;

/// Which turns are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageQuery {
    /// Turns from the start in the order that is asked for.
    pub cursor: u64,
    /// Most turns.
    pub limit: usize,
    /// Oldest first; otherwise newest first.
    pub is_ascending: bool,
    /// Only turns that contain this, in any case.
    pub find: Option<String>,
}

/// The conversations of projects.
pub struct Transcripts {
    pub(crate) config: Arc<Config>,
    pub(crate) agent: Arc<Agent>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) refs: Arc<SessionRefs>,
    pub(crate) copies: Arc<Copies>,
    pub(crate) read_model: Arc<ReadModel>,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) watcher: Watcher,
    pub(crate) tasks: Tasks,
    pub(crate) files: Files,
    pub(crate) sums: usage::Sums,
    pub(crate) signs: Arc<Signs>,
}

impl Transcripts {
    /// The conversations of a project: live ones first, then the newest.
    ///
    /// # Errors
    /// No such project.
    pub async fn list(self: &Arc<Self>, project: &str) -> Result<ConversationList, AppError> {
        let (this, project) = (Arc::clone(self), self.catalog.named(project)?);
        let live = this.live();
        blocking(move || {
            let (mut sessions, mut pending_files, mut budget) = (Vec::new(), 0, LIST_BUDGET);
            for file in this.scan(&project) {
                let listed = file.listed();
                let mut index = file.index();
                if !index.is_current(&listed) {
                    let before = index.offset();
                    let is_more = match file.read_on(&mut index, budget) {
                        Ok(updated) => updated.is_more,
                        Err(error) => {
                            tracing::debug!(%error, "a transcript cannot be read");
                            continue;
                        }
                    };
                    budget = budget.saturating_sub(index.offset().saturating_sub(before));
                    pending_files += u64::from(is_more);
                }
                if index.turns > 0 && is_of(&index, &project) {
                    sessions.extend(this.about(&project, &file, &index, &live));
                }
            }
            sessions.sort_by_cached_key(|one| {
                let last = one.last_ts.map(Timestamp::as_millis);
                Reverse((one.live, last, one.conversation.to_string()))
            });
            ConversationList { project: project.name.to_string(), sessions, pending_files }
        })
        .await
    }

    /// A page of turns.
    ///
    /// # Errors
    /// No such project or conversation, or the file cannot be read.
    pub async fn page(
        self: &Arc<Self>,
        project: &str,
        reference: &str,
        query: PageQuery,
    ) -> Result<ConversationPage, AppError> {
        let this = Arc::clone(self);
        let (project, reference) = (self.catalog.named(project)?, parse(reference)?);
        let live = this.live();
        blocking(move || {
            let file = this.find(&project, &reference)?;
            let open = file.open().map_err(unreadable)?;
            let mut index = file.index();
            if file.update(&mut index, &open, PAGE_BUDGET).map_err(unreadable)?.is_more {
                return Err(AppError::busy(
                    "this conversation is large and still being read; try again in a moment",
                ));
            }
            let pages = Pages { file: &open, index: &index };
            let find = query.find.as_deref();
            let span = if query.is_ascending {
                pages.forwards(query.cursor, query.limit, find)
            } else {
                pages.backwards(query.cursor, query.limit, find)
            }
            .map_err(unreadable)?;
            Ok(ConversationPage {
                project: project.name.to_string(),
                turns: span.turns,
                next_cursor: span.next,
                total: index.turns,
                offset: index.offset(),
                about: this.about(&project, &file, &index, &live).ok_or_else(unknown)?,
                conversation: reference,
            })
        })
        .await?
    }

    /// What a conversation has gained since an offset.
    ///
    /// # Errors
    /// No such project or conversation, or the file cannot be read.
    pub async fn tail(
        self: &Arc<Self>,
        project: &str,
        reference: &str,
        offset: u64,
    ) -> Result<ConversationTail, AppError> {
        let this = Arc::clone(self);
        let (project, reference) = (self.catalog.named(project)?, parse(reference)?);
        blocking(move || {
            let file = this.find(&project, &reference)?;
            this.tail_of(&project, &file, reference, offset, None).map(|(tail, _)| tail)
        })
        .await?
    }

    /// Reads a file on; `resets` is how often it was replaced before. Blocks.
    fn tail_of(
        &self,
        project: &Project,
        file: &Arc<File>,
        conversation: SessionRef,
        offset: u64,
        resets: Option<u64>,
    ) -> Result<(ConversationTail, u64), AppError> {
        let open = file.open().map_err(unreadable)?;
        let mut index = file.index();
        if file.update(&mut index, &open, PAGE_BUDGET).map_err(unreadable)?.is_more {
            return Err(AppError::busy(
                "this conversation is large and still being read; try again in a moment",
            ));
        }
        let is_other = resets.is_some_and(|resets| resets != index.resets());
        let reset = is_other || offset > index.offset();
        let pages = Pages { file: &open, index: &index };
        let (turns, next) = pages.since(if reset { 0 } else { offset }).map_err(unreadable)?;
        let tail = ConversationTail {
            project: project.name.to_string(),
            turns,
            offset: next,
            reset,
            live: self.is_live(file, &conversation),
            total: index.turns,
            conversation,
        };
        Ok((tail, index.resets()))
    }

    /// The file of a conversation. Blocks.
    fn find(&self, project: &Project, reference: &SessionRef) -> Result<Arc<File>, AppError> {
        let fits = |file: &&Arc<File>| file.reference.as_ref() == Some(reference);
        let known = self.files.of(project.name.as_str());
        let found = known.iter().find(fits).cloned();
        let is_there = |file: &Arc<File>| file.open().is_ok();
        let found =
            found.filter(is_there).or_else(|| self.scan(project).iter().find(fits).cloned());
        let file = found.ok_or_else(unknown)?;
        let index = file.index();
        if index.cwd.is_some() && !is_of(&index, project) {
            return Err(unknown());
        }
        drop(index);
        Ok(file)
    }

    fn about(
        &self,
        project: &Project,
        file: &File,
        index: &Index,
        live: &Live,
    ) -> Option<Conversation> {
        let conversation = file.reference.clone()?;
        let listed = file.listed();
        let holder = live.holder(file, &conversation);
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of any year fit")]
        let mtime = listed.written_at.as_millis() as f64 / 1000.0;
        Some(Conversation {
            mtime,
            turn_count: index.turns,
            live: holder.is_some(),
            first_prompt: index.first_prompt.clone(),
            first_ts: index.first_at,
            last_ts: index.last_at,
            is_subagent: index.is_subagent(),
            size_bytes: listed.size.max(index.offset()),
            worktree: index.cwd.as_deref().and_then(|cwd| worktree(&project.path, cwd)),
            instance_id: match holder {
                Some(by) => by,
                None => live.left(&self.copies, file),
            },
            skipped_lines: index.skipped,
            conversation,
        })
    }

    /// Whether somebody works on a conversation now.
    fn is_live(&self, file: &File, conversation: &SessionRef) -> bool {
        // Without the token of each row: a follower asks this at every change of anything.
        let id = file.listed().id;
        let holds = |bridge: &Bridge| {
            bridge.conversation.as_ref().is_some_and(|held| held.expose() == id.expose())
        };
        let state = self.read_model.snapshot();
        let mut working =
            state.state.tracked.values().chain(state.state.external.values()).flatten();
        self.copies.count_live(holds) > 0
            || working.any(|session| session.session_ref.as_ref() == Some(conversation))
    }

    /// Who works on conversations now.
    fn live(&self) -> Live {
        let held = self.copies.live().into_iter().filter_map(|bridge| {
            Some((self.refs.session(bridge.conversation.as_ref()?.expose())?, Some(bridge.id)))
        });
        let state = self.read_model.snapshot();
        let sessions = state.state.tracked.values().chain(state.state.external.values()).flatten();
        let working = sessions.filter_map(|session| {
            Some((session.session_ref.clone()?, session.parent_instance.clone()))
        });
        Live { held: held.chain(working).collect(), left: OnceCell::new() }
    }
}

/// Who holds which conversation.
struct Live {
    /// Those that are worked on, with the instance where it is known.
    held: Vec<(SessionRef, Option<InstanceId>)>,
    /// The ended instance that held one last, by the id of the conversation.
    ///
    /// Made when one is asked for: a page of a conversation at work needs none of it.
    left: OnceCell<HashMap<String, (Option<Timestamp>, InstanceId)>>,
}

impl Live {
    #[expect(clippy::option_option, reason = "nobody, somebody unknown, an instance")]
    fn holder(&self, file: &File, reference: &SessionRef) -> Option<Option<InstanceId>> {
        debug_assert_eq!(file.reference.as_ref(), Some(reference), "the file of another one");
        let mut found = self.held.iter().filter(|(held, _)| held == reference).map(|(_, by)| by);
        let first = found.next()?.clone();
        Some(first.or_else(|| found.find_map(Clone::clone)))
    }

    /// The ended instance that held a conversation last. Looks at all rows once.
    fn left(&self, copies: &Copies, file: &File) -> Option<InstanceId> {
        let left = self.left.get_or_init(|| {
            let mut left: HashMap<String, (Option<Timestamp>, InstanceId)> = HashMap::new();
            copies.each(|bridge| {
                // By its own id: a token for each of all rows takes long.
                let Some(held) = bridge.conversation.as_ref().filter(|_| !bridge.is_live()) else {
                    return;
                };
                let this = (bridge.started_at, bridge.id.clone());
                match left.get_mut(held.expose()) {
                    Some(before) if before.0 < this.0 => *before = this,
                    Some(_) => {}
                    None => drop(left.insert(held.expose().to_owned(), this)),
                }
            });
            left
        });
        left.get(file.listed().id.expose()).map(|(_, by)| by.clone())
    }
}

/// Whether a conversation works in the project, or does not say where.
fn is_of(index: &Index, project: &Project) -> bool {
    index.cwd.as_deref().is_none_or(|cwd| cwd.starts_with(&project.path))
}

/// The name of the worktree that a directory is in.
fn worktree(project: &Path, cwd: &Path) -> Option<String> {
    let inside = cwd.strip_prefix(project.join(".claude/worktrees")).ok()?;
    let name = inside.components().next()?.as_os_str().to_str()?;
    Some(svc_domain::redact::redact_text(&svc_domain::log_escape::strip_controls(name)))
}

fn parse(reference: &str) -> Result<SessionRef, AppError> {
    reference.parse().map_err(|_| unknown())
}

fn unknown() -> AppError {
    AppError::new(
        ErrorCode::NotFound,
        Class::NotFound,
        "no such conversation in this project; open the list of its conversations again",
    )
}

fn unreadable(cause: io::Error) -> AppError {
    if cause.kind() == io::ErrorKind::NotFound {
        return unknown();
    }
    AppError::busy(
        "this conversation cannot be read; look at the rights of the agent's directory `projects`",
    )
    .because(cause)
}
