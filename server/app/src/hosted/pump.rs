//! Follows one process of a session: frames become events, questions and facts.
//!
//! The frames of a process are read from the daemon's buffer, from the first one that is kept after
//! a start of the service and from the last one seen after a lost connection. Reading them again is
//! harmless: a question is recorded once by its name, and an end is recorded once.

use crate::AppError;
use crate::hosted::HostedParts;
use crate::hosted::ring::EventRing;
use crate::hosted::rows::Changed;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use svc_domain::activity::of_frame;
use svc_domain::hosted::frame::{self, Lines, Output};
use svc_domain::hosted::prompt::{self, Answer, Treatment};
use svc_domain::hosted::{Fact, HostedSession, State};
use svc_domain::identity::{GoneBecause, Pid, ProcessIdentity, Verdict};
use svc_domain::redact::redact_text;
use svc_domain::session_rules::SessionRules;
use svc_hosted::client::Client;
use svc_hosted::protocol::{Listed, Reattached, StreamFrame, StreamName};
use svc_shared::events::Event;
use svc_shared::ids::InstanceId;
use svc_store::NewPrompt;
use tokio::sync::Notify;

/// Lines of standard error that are kept as last words.
const LAST_WORDS: usize = 20;
/// Most characters of them.
const LONGEST_DETAIL: usize = 2000;
/// Between two tries to follow a process.
const PAUSE: Duration = Duration::from_secs(1);

/// What a pump shares with whoever answers.
#[derive(Default)]
pub(super) struct Shared {
    /// What the agent asks, unredacted: it takes no permission without its own words.
    inputs: Mutex<HashMap<String, Wanted>>,
    /// Questions whose end was told to viewers.
    told: Mutex<HashSet<String>>,
    /// An answer may be there to be sent.
    pub answered: Notify,
}

/// What an agent wants, in its own words.
#[derive(Clone)]
struct Wanted {
    input: Value,
    /// What it offers to allow for the session.
    offered: SessionRules,
}

impl Shared {
    fn inputs(&self) -> std::sync::MutexGuard<'_, HashMap<String, Wanted>> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a question asks for, unredacted.
    pub(super) fn input(&self, id: &str) -> Option<Value> {
        self.inputs().get(id).map(|wanted| wanted.input.clone())
    }

    /// Tells viewers what became of a question, once.
    fn resolved(&self, ring: &EventRing, id: &str, behavior: &str) {
        if self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned()) {
            let event =
                json!({ "type": "control_resolved", "request_id": id, "behavior": behavior });
            ring.push(event);
        }
    }
}

/// Follows one process.
pub(super) struct Pump {
    pub parts: Arc<HostedParts>,
    pub id: InstanceId,
    pub process: String,
    pub shared: Arc<Shared>,
    pub ring: Arc<EventRing>,
    cursor: u64,
    out: Lines,
    err: Lines,
    last_words: VecDeque<String>,
    is_named: bool,
    /// What was read and is not done yet; the first one is done next.
    steps: VecDeque<Step>,
}

/// What a frame leads to. A step that fails is done again: nothing read is lost.
enum Step {
    /// A line of standard output.
    Line(String),
    /// A line of standard error.
    Complaint(String),
    /// The end.
    Exit(StreamFrame),
}

/// Why following a connection ended.
enum Followed {
    /// The process ended, or nobody knows it any more.
    Over,
    /// The connection is gone.
    Lost,
    /// Frames are missing: ask for them.
    Again,
}

impl Pump {
    pub fn new(parts: Arc<HostedParts>, session: &HostedSession, shared: Arc<Shared>) -> Self {
        let ring = parts.rows.rings.of(&session.id, &session.process_id);
        Self {
            parts,
            id: session.id.clone(),
            process: session.process_id.clone(),
            shared,
            ring,
            cursor: 0,
            out: Lines::default(),
            err: Lines::default(),
            last_words: VecDeque::new(),
            is_named: false,
            steps: VecDeque::new(),
        }
    }

    /// Runs until the process has ended or the service ends.
    pub async fn run(mut self) {
        let mut connections = self.parts.link.changes();
        let shutdown = self.parts.tasks.shutdown().clone();
        loop {
            let client = connections.borrow_and_update().clone();
            let live = client.filter(|client| !client.closed().is_cancelled());
            if let Some(client) = live {
                let followed = tokio::select! {
                    followed = self.follow(&client) => followed,
                    () = shutdown.cancelled() => return,
                };
                match followed {
                    Ok(Followed::Over) => break,
                    Ok(Followed::Again) => continue,
                    Ok(Followed::Lost) => {
                        self.ring.push(json!({ "type": "lost", "reason": "daemon_unreachable" }));
                        self.parts.rows.show();
                    }
                    Err(error) => {
                        tracing::warn!(bridge.id = %self.id, "a Direct Session is not followed: \
                            {error}; it is tried again");
                        tokio::select! {
                            () = tokio::time::sleep(PAUSE) => continue,
                            () = shutdown.cancelled() => return,
                        }
                    }
                }
            }
            tokio::select! {
                changed = connections.changed() => if changed.is_err() { return },
                () = shutdown.cancelled() => return,
            }
        }
        self.ring.finish();
    }

    async fn follow(&mut self, client: &Arc<Client>) -> Result<Followed, AppError> {
        if self.take_steps().await? {
            return Ok(Followed::Over);
        }
        // Frames that are on their way come before this answer, and nobody hears them: what is
        // read below begins with the frame that is missed.
        if let Err(error) = client.call("process.detach", json!({ "id": self.process })).await {
            return lost(client, &error);
        }
        let mut frames = client.subscribe(&self.process);
        let params = json!({ "id": self.process, "fromSeq": self.cursor });
        let asking = client.call("process.reattach", params);
        let mut asking = std::pin::pin!(asking);
        let mut is_attached = false;
        loop {
            tokio::select! {
                answer = &mut asking, if !is_attached => {
                    let answer = match answer {
                        Ok(answer) => answer,
                        Err(error) => return lost(client, &error),
                    };
                    is_attached = true;
                    let answer: Reattached = match serde_json::from_value(answer) {
                        Ok(answer) => answer,
                        Err(error) => return lost(client, &error),
                    };
                    if !answer.found {
                        return self.not_found(client).await;
                    }
                    self.attached(client).await?;
                }
                frame = frames.recv() => {
                    let Some(frame) = frame else {
                        return lost(client, &"somebody else reads its frames");
                    };
                    if frame.seq <= self.cursor {
                        continue;
                    }
                    if frame.seq > self.cursor + 1 {
                        if is_attached {
                            return Ok(Followed::Again);
                        }
                        // The replay begins with what is kept: what is before that is lost for good.
                        let (from, to) = (self.cursor + 1, frame.seq - 1);
                        self.ring.push(json!({ "type": "gap", "from_seq": from, "to_seq": to }));
                        self.out = Lines::default();
                        self.err = Lines::default();
                    }
                    self.read(frame);
                    if self.take_steps().await? {
                        return Ok(Followed::Over);
                    }
                }
                () = self.shared.answered.notified(), if is_attached => {
                    self.deliver(client);
                }
                () = client.closed().cancelled() => return Ok(Followed::Lost),
            }
        }
    }

    /// The daemon holds the process.
    /// The row says so, and what was decided is carried out.
    async fn attached(&self, client: &Arc<Client>) -> Result<(), AppError> {
        let Some(session) = self.parts.rows.get(&self.id) else { return Ok(()) };
        match session.state {
            State::Starting => {
                let agent = self.identity(client).await;
                self.parts.rows.observe(&self.id, &self.process, Fact::Running(agent)).await?;
            }
            // Whoever began the stop died.
            State::Stopping => {
                let (parts, id) = (Arc::clone(&self.parts), self.id.clone());
                self.parts.tasks.spawn(async move {
                    if let Err(error) = parts.finish_stop_later(&id).await {
                        tracing::warn!(bridge.id = %id, "a stop is not finished: {error}");
                    }
                });
            }
            State::Running | State::Ended(_) => {}
        }
        self.parts.rows.show();
        self.deliver(client);
        Ok(())
    }

    async fn identity(&self, client: &Client) -> Option<ProcessIdentity> {
        let list = client.call("process.list", json!({})).await.ok()?;
        let mut listed = list.get("processes")?.as_array()?.iter().filter_map(|one| {
            let one: Listed = serde_json::from_value(one.clone()).ok()?;
            (one.id == self.process).then_some(one)
        });
        let one = listed.next()?;
        Some(ProcessIdentity {
            pid: Pid::new(one.pid)?,
            start_ticks: one.start_time,
            boot_id: self.parts.host.boot_id().clone(),
        })
    }

    /// The daemon does not know the process: what became of the agent?
    async fn not_found(&self, client: &Client) -> Result<Followed, AppError> {
        let Some(session) = self.parts.rows.get(&self.id) else { return Ok(Followed::Over) };
        if session.process_id != self.process || !session.is_live() {
            return Ok(Followed::Over);
        }
        // Whoever starts it holds the lock until the daemon has answered.
        let _lock = self.parts.locks.project(&session.cwd).await?;
        self.parts.rows.refresh().await?;
        let Some(session) = self.parts.rows.get(&self.id) else { return Ok(Followed::Over) };
        if session.process_id != self.process || !session.is_live() {
            return Ok(Followed::Over);
        }
        let params = json!({ "id": self.process, "fromSeq": 0 });
        let answer = client.call("process.reattach", params).await;
        match answer.ok().and_then(|answer| serde_json::from_value::<Reattached>(answer).ok()) {
            None => return lost(client, &"what it said is not understood"),
            Some(answer) if answer.found => return Ok(Followed::Again),
            Some(_) => {}
        }
        let fact = match session.agent.as_ref().map(|agent| self.parts.host.probe(agent)) {
            Some(Verdict::Same) => Fact::Orphaned,
            Some(Verdict::Gone(GoneBecause::OtherBoot)) => Fact::HostRestarted,
            Some(Verdict::Gone(GoneBecause::NoProcess | GoneBecause::Reused)) | None => Fact::Lost,
            // Nothing is authorised by what cannot be read.
            Some(Verdict::Unknown) => {
                return Err(AppError::busy("the process table is unreadable"));
            }
        };
        self.parts.rows.observe(&self.id, &self.process, fact).await?;
        self.ring.push(json!({ "type": "lost", "reason": "process_unknown" }));
        Ok(Followed::Over)
    }

    /// Reads a frame: what it leads to is to be done.
    fn read(&mut self, frame: StreamFrame) {
        self.cursor = frame.seq;
        let data = frame.data.as_deref().unwrap_or_default();
        // What is no base64 is skipped, and the stream goes on.
        let data = STANDARD.decode(data).unwrap_or_default();
        match frame.stream {
            StreamName::Stdout => {
                self.steps.extend(self.out.feed(&data).into_iter().map(Step::Line));
            }
            StreamName::Stderr => {
                self.steps.extend(self.err.feed(&data).into_iter().map(Step::Complaint));
            }
            StreamName::Exit => {
                self.steps.extend(self.out.finish().map(Step::Line));
                self.steps.extend(self.err.finish().map(Step::Complaint));
                self.steps.push_back(Step::Exit(frame));
            }
        }
    }

    /// Does what is to be done; `true` after the end.
    async fn take_steps(&mut self) -> Result<bool, AppError> {
        while let Some(step) = self.steps.pop_front() {
            let done = match &step {
                Step::Line(line) => self.line(line).await,
                Step::Complaint(line) => {
                    self.complaint(line);
                    Ok(())
                }
                Step::Exit(frame) => self.exited(frame).await,
            };
            let is_last = matches!(step, Step::Exit(_));
            if let Err(error) = done {
                self.steps.push_front(step);
                return Err(error);
            }
            if is_last {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn complaint(&mut self, line: &str) {
        let text = redact_text(line);
        if self.last_words.len() == LAST_WORDS {
            self.last_words.pop_front();
        }
        self.last_words.push_back(text.clone());
        self.ring.push(json!({ "type": "stderr", "text": text }));
    }

    async fn exited(&mut self, frame: &StreamFrame) -> Result<(), AppError> {
        let words = self.last_words.make_contiguous().join("\n");
        let skipped = words.chars().count().saturating_sub(LONGEST_DETAIL);
        let detail: String = words.chars().skip(skipped).collect();
        let fact = Fact::Exited {
            code: frame.exit_code,
            signal: frame.signal,
            detail: Some(detail).filter(|detail| !detail.is_empty()),
        };
        let session = self.parts.rows.get(&self.id);
        if let Some(stopping) = session.filter(|session| session.state == State::Stopping) {
            // Whoever stops it may have died, and an end that is recorded is not stopped again.
            self.parts.end_leftovers(&stopping, Vec::new()).await;
        }
        self.parts.rows.observe(&self.id, &self.process, fact).await?;
        for id in std::mem::take(&mut *self.shared.inputs()).into_keys() {
            self.shared.resolved(&self.ring, &id, "interrupted");
        }
        let (code, signal) = (frame.exit_code, frame.signal);
        self.ring.push(json!({ "type": "exit", "exit_code": code, "signal": signal }));
        Ok(())
    }

    async fn line(&mut self, line: &str) -> Result<(), AppError> {
        match frame::read(line) {
            Output::Frame(frame) => {
                if !self.is_named
                    && let Some(uuid) = frame::session_of(&frame)
                {
                    let fact = Fact::Named(uuid.to_owned());
                    self.parts.rows.observe(&self.id, &self.process, fact).await?;
                    self.is_named = true;
                }
                self.does(&frame);
                let frame = self.redacted(frame);
                self.ring.push(json!({ "type": "frame", "frame": frame }));
            }
            Output::Request { id, subtype, request } => self.asked(id, &subtype, request).await?,
            Output::Cancel { id } => {
                let now = self.parts.rows.clock.now();
                let is_open =
                    self.parts.rows.store.withdraw_prompt(&self.process, &id, now).await?;
                if self.shared.inputs().remove(&id).is_some() && is_open {
                    self.show_questions().await;
                    self.shared.resolved(&self.ring, &id, "cancelled");
                }
            }
            Output::Text(text) => {
                self.ring.push(json!({ "type": "text", "text": redact_text(&text) }));
            }
            Output::Answer | Output::Nothing => {}
        }
        Ok(())
    }

    /// Shows what the agent does, when that changes.
    ///
    /// Nothing is known of the time of frames that are read again: they are of this moment or
    /// before.
    fn does(&self, frame: &Value) {
        let rows = &self.parts.rows;
        let kind = frame.get("type").and_then(Value::as_str).unwrap_or_default();
        let Some(said) = of_frame(kind, rows.clock.now()) else { return };
        if rows.view.signs.set_stream(&self.id, &self.process, said) {
            rows.show();
        }
    }

    fn redacted(&self, value: Value) -> Value {
        let refs = &self.parts.rows.refs;
        frame::redacted(value, &|raw: &str| refs.session(raw).map(|token| token.to_string()))
    }

    async fn asked(&mut self, id: String, subtype: &str, request: Value) -> Result<(), AppError> {
        let session = self.parts.rows.get(&self.id);
        let is_current =
            session.is_some_and(|session| session.is_live() && session.process_id == self.process);
        if prompt::treatment(subtype) == Treatment::Acknowledge {
            if is_current {
                self.send(prompt::acknowledge_line(&id));
            }
            let event = json!({ "type": "control_ack", "request_id": id, "subtype": subtype });
            self.ring.push(event);
            return Ok(());
        }
        let words = prompt::describe(subtype, &request);
        let input = request.get("input").cloned().unwrap_or_else(|| json!({}));
        let suggestions = request.get("permission_suggestions").unwrap_or(&Value::Null);
        let offered = SessionRules::offered(suggestions);
        let shown = self.redacted(request);
        let event = json!({ "type": "control_request", "request_id": id, "subtype": subtype,
            "request": shown });
        if !is_current {
            self.ring.push(event);
            return Ok(());
        }
        let new = NewPrompt {
            instance_id: &self.id,
            process_id: &self.process,
            request_id: &id,
            subtype,
            tool: words.tool.as_deref(),
            summary: &words.summary,
            truncated: words.truncated,
            session_rules: offered.words(),
        };
        let now = self.parts.rows.clock.now();
        let parked = self.parts.rows.store.park_prompt(&new, now).await?;
        // After the last failure: a step that is done again shows nothing twice.
        self.ring.push(event);
        if parked.is_over {
            // Read again after a restart of the service.
            self.shared.resolved(&self.ring, &id, parked.decision.as_deref().unwrap_or_default());
            return Ok(());
        }
        // A name that waits already replaces nothing.
        self.shared
            .inputs()
            .entry(id.clone())
            .or_insert(Wanted { input, offered: offered.clone() });
        self.show_questions().await;
        match parked.decision {
            None => {
                // The daemon tells it again after a restart of the service.
                if let Some(readers) = self.parts.rows.readers().filter(|_| parked.is_new) {
                    let (session, process) = (self.id.clone(), self.process.clone());
                    readers.happened(&Event::permission_needed(
                        Some(session),
                        process,
                        subtype,
                        id,
                    ));
                }
            }
            // Decided before the service was restarted, perhaps without the agent being told.
            Some(_) => self.shared.answered.notify_one(),
        }
        Ok(())
    }

    /// Shows what was just recorded.
    ///
    /// A failure loses nothing: the rows are read again at the next change.
    async fn show_questions(&self) {
        if let Err(error) = self.parts.rows.refresh().await {
            tracing::warn!("the rows of Direct Sessions cannot be read: {error}");
            self.parts.wake.notify_one();
        }
    }

    /// Sends a line without waiting: whoever waits for an answer must go on reading.
    fn send(&self, line: String) {
        let Some(client) = self.parts.link.connected() else { return };
        let (parts, process) = (Arc::clone(&self.parts), self.process.clone());
        self.parts.tasks.spawn(async move {
            if let Err(error) = parts.write(&client, &process, line.as_bytes()).await {
                tracing::warn!("an acknowledgement was not sent: {error}");
            }
        });
    }

    /// Carries out what was decided and has not reached the agent.
    fn deliver(&self, client: &Arc<Client>) {
        let (parts, client) = (Arc::clone(&self.parts), Arc::clone(client));
        let (process, shared, ring) =
            (self.process.clone(), Arc::clone(&self.shared), Arc::clone(&self.ring));
        self.parts.tasks.spawn(async move {
            if let Err(error) = parts.deliver(&client, &process, &shared, &ring).await {
                tracing::warn!("an answer is not delivered yet: {error}");
            }
        });
    }
}

impl HostedParts {
    /// Sends every decision about a process that its agent was not told.
    ///
    /// The decision is recorded before; here it is carried out. When this process dies between the
    /// two, the next one sends the same answer to the same question again, which changes nothing.
    async fn deliver(
        &self,
        client: &Client,
        process: &str,
        shared: &Shared,
        ring: &EventRing,
    ) -> Result<(), AppError> {
        let _turn = self.delivering.lock().await;
        for row in self.rows.store.open_prompts().await? {
            let is_allowed = row.decision.as_deref() == Some("allow");
            if row.process_id != process || row.decision.is_none() || row.delivered_at.is_some() {
                continue;
            }
            let Some(wanted) = shared.inputs().get(&row.request_id).cloned() else { continue };
            let answer = match (is_allowed, row.for_session) {
                (true, true) => Answer::AllowForSession(wanted.offered),
                (true, false) => Answer::Allow,
                (false, _) => Answer::Deny(row.message.clone()),
            };
            let line = prompt::answer_line(&row.request_id, &answer, &wanted.input);
            // Before what the agent does with it.
            let behavior = if is_allowed { "allow" } else { "deny" };
            shared.resolved(ring, &row.request_id, behavior);
            self.write(client, process, line.as_bytes()).await?;
            let now = self.rows.clock.now();
            self.rows.store.prompt_delivered(process, &row.request_id, now).await?;
            shared.inputs().remove(&row.request_id);
        }
        self.rows.refresh().await
    }
}

/// Why a process is not followed any more.
///
/// Only a connection that is gone is waited for; everything else is tried again.
fn lost(client: &Client, why: &dyn std::fmt::Display) -> Result<Followed, AppError> {
    match client.closed().is_cancelled() {
        true => Ok(Followed::Lost),
        false => Err(AppError::busy(format!("the daemon did not answer: {why}"))),
    }
}

/// Whether a change of a row went through.
pub(super) fn applied(changed: Changed) -> Option<HostedSession> {
    match changed {
        Changed::Now(session) => Some(*session),
        Changed::Late | Changed::Refused(_) => None,
    }
}
