//! One hook: its question is parked, and it is told what was decided.

use super::socket::{decline, is_own, line};
use super::{Answered, Asked, Question};
use crate::AppError;
use crate::requested;
use crate::tasks::blocking;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::collections::btree_map::Entry;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_agent::answered_call::AnsweredCall;
use svc_domain::approval_hook::PATIENCE;
use svc_domain::hosted::prompt;
use svc_domain::session_rules::SessionRules;
use svc_shared::Timestamp;
use svc_shared::api::approvals::ApprovalRequest;
use svc_shared::events::Event;
use svc_shared::ids::InstanceId;
use svc_store::{NewBridgePrompt, PromptEnd, PromptRow, StoreError};
use svc_watch::{Pace, Subscription};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

/// Most bytes of a question. A hook passes on at most half of it.
const LONGEST: u64 = 2 * 1024 * 1024;
/// How long a hook may take to say its question, and to take its answer.
const SAID: Duration = Duration::from_secs(5);
/// Between two tries to record what became of a question.
const PAUSE: Duration = Duration::from_secs(5);

type Heard = Lines<BufReader<tokio::io::Take<OwnedReadHalf>>>;

/// Whose question it is.
struct Asker {
    /// The bridge, if the session belongs to one.
    bridge: Option<InstanceId>,
    project: String,
}

/// How the wait for an answer ended.
enum End {
    /// With a decision.
    Decided(Box<PromptRow>),
    /// It was withdrawn by somebody else.
    Gone,
    /// It is to be withdrawn.
    Withdraw(PromptEnd),
    /// The service ends, and the hook asks the next one.
    Shutdown,
}

/// A question whose hook is connected. One hook at a time may wait for it.
struct Connected<'a> {
    of: &'a Asked,
    id: &'a str,
}

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.of.connected().remove(self.id);
    }
}

impl Asked {
    /// Parks what a hook asks, and tells it what was decided.
    pub(super) async fn serve(&self, stream: UnixStream) -> Result<(), AppError> {
        if !is_own(&stream) {
            tracing::warn!("a question was refused, because a process of another user sent it");
            decline(&stream);
            return Ok(());
        }
        let (read, mut write) = stream.into_split();
        let mut heard = BufReader::new(read.take(LONGEST)).lines();
        let said = timeout(SAID, heard.next_line()).await;
        let Ok(Ok(Some(said))) = said else { return tell(&mut write, &Answered::none()).await };
        let question = serde_json::from_str::<Question>(&said).ok();
        let question = question.filter(|asked| asked.request_id.parse::<uuid::Uuid>().is_ok());
        let Some(question) = question else { return tell(&mut write, &Answered::none()).await };
        let size = u32::try_from(said.len() / 1024 + 1).unwrap_or(u32::MAX);
        drop(said);
        let Ok(_room) = self.room.try_acquire_many(size) else {
            tracing::warn!("a question was left to its agent, because too much waits already");
            return tell(&mut write, &Answered::none()).await;
        };
        let (id, asker) = (question.request_id.clone(), self.asker(&question));
        let input = question.tool_input.clone();
        let request = requested::read(&question.tool_name, input, question.cwd.clone()).await?;
        let Some(connected) = self.connect(&id, request) else {
            return tell(&mut write, &Answered::none()).await;
        };
        let Some(asker) = asker else { return tell(&mut write, &Answered::none()).await };
        let mut elsewhere = self.elsewhere(&question);
        if let Some(elsewhere) = &mut elsewhere {
            // Before anybody hears of the question: what is there now is about earlier calls.
            // A disk that hangs holds no question back.
            let _ = timeout(SAID, elsewhere.read_once()).await;
        }
        let expires_at = self.park(&question, &asker).await?;
        drop(question);
        let end = self.wait(&id, expires_at, &mut heard, elsewhere.as_mut()).await;
        let (store, clock) = (&self.parts.registry.store, &self.parts.clock);
        match end {
            End::Decided(row) => {
                let answered = Answered {
                    decision: row.decision.unwrap_or_default(),
                    message: row.message,
                    for_session: row.for_session,
                };
                let told = tell(&mut write, &answered).await;
                // The hook says that it has read the answer.
                let has_arrived = told.is_ok()
                    && matches!(timeout(SAID, heard.next_line()).await, Ok(Ok(Some(_))));
                let record = || store.bridge_prompt_delivered(&id, has_arrived, clock.now());
                self.recorded(record).await;
                if !has_arrived {
                    tracing::warn!(
                        "a session of `{}` stopped waiting before its answer arrived",
                        asker.project
                    );
                }
            }
            End::Gone => tell(&mut write, &Answered::none()).await?,
            End::Withdraw(why) => {
                // A hook that is gone hears nothing.
                let _ = tell(&mut write, &Answered::none()).await;
                self.withdraw(&id, why).await;
            }
            End::Shutdown => return Ok(()),
        }
        drop(connected);
        self.refresh().await
    }

    /// Takes back a question whose hook has been sent away.
    async fn withdraw(&self, id: &str, why: PromptEnd) {
        let (store, clock) = (&self.parts.registry.store, &self.parts.clock);
        let is_withdrawn = self.recorded(|| store.cancel_bridge_prompt(id, why, clock.now())).await;
        if is_withdrawn == Some(false) {
            // It was answered a moment before, and nobody was there to hear the answer.
            self.recorded(|| store.bridge_prompt_delivered(id, false, clock.now())).await;
        }
    }

    /// Records what became of a question, as soon as it can be.
    ///
    /// Nobody else does it while the service runs: the question would be shown for ever. `None`
    /// when the service ends before.
    async fn recorded<F>(&self, record: impl Fn() -> F) -> Option<bool>
    where
        F: Future<Output = Result<bool, StoreError>>,
    {
        loop {
            match record().await {
                Ok(is_done) => return Some(is_done),
                Err(error) => tracing::warn!(error = %error, "the end of a question is not \
                    recorded yet, and is tried again"),
            }
            tokio::select! {
                () = self.parts.tasks.shutdown().cancelled() => return None,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    /// One hook at a time waits for a question.
    fn connect<'a>(&'a self, id: &'a str, request: ApprovalRequest) -> Option<Connected<'a>> {
        let mut all = self.connected();
        let Entry::Vacant(place) = all.entry(id.to_owned()) else { return None };
        place.insert(Arc::new(request));
        Some(Connected { of: self, id })
    }

    /// Whose question it is; `None` where it is none of ours.
    fn asker(&self, question: &Question) -> Option<Asker> {
        // Asked again after a restart: it was ours, whatever is known by now.
        if let Some(row) = self.rows.get(&question.request_id) {
            return Some(Asker { bridge: row.instance_id.parse().ok(), project: row.project });
        }
        let launch = question.launch.as_deref();
        let bridge = self.parts.registry.copies.live().into_iter().find(|bridge| {
            bridge.launch.as_ref().is_some_and(|own| Some(own.id.as_str()) == launch)
        });
        if let Some(bridge) = bridge {
            let project = bridge.project.to_string();
            return Some(Asker { bridge: Some(bridge.id.clone()), project });
        }
        let project =
            self.parts.catalog.holding(is_plain(&question.cwd).then_some(&question.cwd))?;
        Some(Asker { bridge: None, project })
    }

    /// Records a question before anybody is told of it. Returns until when it waits.
    async fn park(&self, question: &Question, asker: &Asker) -> Result<Timestamp, AppError> {
        let id = question.request_id.as_str();
        let input = json!({ "tool_name": question.tool_name, "input": question.tool_input });
        let words = prompt::describe("can_use_tool", &input);
        let now = self.parts.clock.now();
        let conversation = self.parts.refs.session(&question.session_id);
        let offered = SessionRules::offered(&question.suggestions);
        let new = NewBridgePrompt {
            request_id: id,
            instance_id: asker.bridge.as_ref(),
            project: &asker.project,
            conversation: conversation.as_ref(),
            tool: words.tool.as_deref(),
            summary: &words.summary,
            truncated: words.truncated,
            expires_at: now.plus(Duration::from_secs(PATIENCE)),
            session_rules: offered.words(),
        };
        let is_new = self.parts.registry.store.park_bridge_prompt(&new, now).await?;
        self.refresh().await?;
        if is_new {
            let process = asker.bridge.as_ref().map(ToString::to_string).unwrap_or_default();
            let (bridge, id) = (asker.bridge.clone(), id.to_owned());
            let event = Event::permission_needed(bridge, process, "can_use_tool", id);
            self.parts.read_model.happened(&event);
        }
        let row = self.rows.get(id);
        Ok(row.and_then(|row| row.expires_at).unwrap_or(new.expires_at))
    }

    async fn wait(
        &self,
        id: &str,
        expires_at: Timestamp,
        heard: &mut Heard,
        mut elsewhere: Option<&mut Elsewhere>,
    ) -> End {
        let mut changes = self.rows.changes();
        let left = expires_at.as_millis().saturating_sub(self.parts.clock.now().as_millis());
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
        let expiry = tokio::time::sleep(left.min(Duration::from_secs(PATIENCE)));
        tokio::pin!(expiry);
        loop {
            match self.rows.get(id) {
                Some(row) if row.decision.is_none() => {}
                Some(row) => return End::Decided(Box::new(row)),
                None => return End::Gone,
            }
            tokio::select! {
                // The rows live as long as this.
                _ = changes.changed() => {}
                // The hook says nothing while it waits: it has ended.
                _ = heard.next_line() => return End::Withdraw(PromptEnd::AskerGone),
                () = answered(&mut elsewhere) => {
                    return End::Withdraw(PromptEnd::AnsweredElsewhere);
                }
                () = &mut expiry => return End::Withdraw(PromptEnd::Expired),
                () = self.parts.tasks.shutdown().cancelled() => return End::Shutdown,
            }
        }
    }

    /// The conversation of the session, if it is one of the agent's own.
    fn elsewhere(&self, question: &Question) -> Option<Elsewhere> {
        let file = question.transcript.clone().filter(|file| self.is_conversation(file))?;
        let watch = self.parts.watcher.file(&file, Pace::VIEW);
        let (tool, input) = (question.tool_name.clone(), question.tool_input.clone());
        // Asked again after a restart, it may have been answered meanwhile.
        let before = self.rows.get(&question.request_id).map(|row| row.since);
        let asked_at = before.unwrap_or_else(|| self.parts.clock.now());
        let call = AnsweredCall::new(file, tool, input, question.call.clone(), asked_at);
        Some(Elsewhere { watch, call: Some(call), idle: None, reading: None, is_answered: false })
    }

    fn is_conversation(&self, file: &Path) -> bool {
        let home = self.parts.agent.home().ok().map(|home| home.dir().join("projects"));
        home.is_some_and(|home: PathBuf| file.starts_with(home))
            && is_plain(file)
            && file.extension().is_some_and(|end| end == "jsonl")
    }
}

/// Whether a path leads nowhere else than it seems to.
fn is_plain(path: &Path) -> bool {
    path.components().all(|part| part != Component::ParentDir)
}

/// The conversation that shows an answer of another client.
struct Elsewhere {
    watch: Subscription,
    /// To be read now.
    call: Option<AnsweredCall>,
    /// To be read when the file has changed.
    idle: Option<AnsweredCall>,
    /// What is being read.
    reading: Option<BoxFuture<'static, io::Result<(bool, AnsweredCall)>>>,
    is_answered: bool,
}

impl Elsewhere {
    /// Reads what is to be read now. Losing the future loses nothing.
    async fn read_once(&mut self) {
        if let Some(mut call) = self.call.take() {
            let read = async move {
                let read = blocking(move || call.read_on().map(|is_answered| (is_answered, call)));
                read.await.map_err(io::Error::other).flatten()
            };
            self.reading = Some(read.boxed());
        }
        let Some(reading) = &mut self.reading else { return };
        let read = reading.await;
        self.reading = None;
        match read {
            Ok((is_answered, call)) => {
                self.is_answered = is_answered;
                self.idle = Some(call);
            }
            Err(error) => tracing::debug!(%error, "a conversation cannot be watched"),
        }
    }

    /// Waits until the conversation shows that the call was answered.
    ///
    /// Losing the future loses nothing.
    async fn answered(&mut self) {
        loop {
            self.read_once().await;
            if self.is_answered {
                return;
            }
            if self.idle.is_none() {
                return std::future::pending().await;
            }
            self.watch.changed().await;
            self.call = self.idle.take();
        }
    }
}

/// Waits until another client has answered.
///
/// Where no conversation is known it waits for ever.
async fn answered(elsewhere: &mut Option<&mut Elsewhere>) {
    match elsewhere {
        Some(elsewhere) => elsewhere.answered().await,
        None => std::future::pending().await,
    }
}

async fn tell(write: &mut OwnedWriteHalf, answered: &Answered) -> Result<(), AppError> {
    let line = line(answered).map_err(AppError::internal)?;
    let written = timeout(SAID, write.write_all(&line)).await;
    written.map_err(AppError::internal)?.map_err(AppError::internal)
}
