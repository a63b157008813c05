//! One live generation of one bridge.
//! Its log until it is ready, its deadline, its exit.

use crate::bridges::ends::Noticed;
use crate::bridges::terminator::Ended;
use crate::failpoint::hit;
use crate::supervise::link_watch::LinkWatch;
use crate::supervise::session_watch::{News, Session};
use crate::supervise::watchers::Watchers;
use crate::{AppError, log_files};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use svc_agent::debug_watch::DebugWatch;
use svc_agent::log_set::LogSet;
use svc_agent::rotation::Trouble;
use svc_domain::agent_log::evidence::{Evidence, Readiness, Refusal};
use svc_domain::bridge::{Anchor, Bridge, Stage};
use svc_domain::effect::Step;
use svc_domain::identity::{ProcessIdentity, Verdict};
use svc_domain::observe::{Fact, observe};
use svc_ports::process::ExitReport;
use svc_shared::ids::InstanceId;
use svc_shared::status::{BridgeStatus, Origin};
use tracing::{error, warn};

/// After a reattach the session may turn out to be gone.
/// How long that is waited for before the bridge counts as ready (agent 2.1.201).
const POISON_WATCH: Duration = Duration::from_secs(4);

const NO_SPACE: &str = "the log of this bridge is incomplete: the file system of the state \
                        directory is full; free some space";

const SPARSE: &str = "the log of this bridge cannot be kept small: its writer does not append to \
                      it; resume the bridge to begin a new log";

type Timer = Pin<Box<dyn Future<Output = ()> + Send>>;

fn never() -> Timer {
    Box::pin(std::future::pending())
}

fn after(duration: Duration) -> Timer {
    Box::pin(tokio::time::sleep(duration))
}

/// Watches until the generation ends, another one begins, or the service ends.
pub(super) async fn run(this: Arc<Watchers>, id: InstanceId, generation: u32) {
    let mark = super::watchers::Mark { watchers: &this, id: &id };
    match watch(&this, &id, generation).await {
        Ok(()) => {}
        // It goes on from the row and the log, which have everything.
        Err(error) if error.may_pass() => warn!(
            bridge.id = %id,
            error = %error,
            "watching bridge {} is interrupted, and begins again",
            id.short()
        ),
        Err(error) => {
            error!(bridge.id = %id, error = %error, "watching bridge {} failed", id.short());
        }
    }
    // Whatever happened, the reconciler looks at the row once more, and finds it watched by nobody.
    drop(mark);
    this.registry().wake.notify_one();
}

async fn watch(this: &Arc<Watchers>, id: &InstanceId, generation: u32) -> Result<(), AppError> {
    let Some(bridge) =
        this.registry().copies.bridge(id).filter(|bridge| bridge.generation == generation)
    else {
        return Ok(());
    };
    let Some(identity) = &bridge.process else { return Ok(()) };
    // Its session and its children are ended with it only if it is what was launched.
    this.terminator.families.claim(&bridge, identity).await;
    let exited = this.launcher.host.exited(identity);
    tokio::pin!(exited);
    let set =
        bridge.launch.as_ref().and_then(|launch| log_files::set(&this.config, &launch.log_stem));
    let Some(set) = set else {
        // An adopted bridge that logs elsewhere: only its exit can be seen.
        tokio::select! {
            report = exited => return on_exit(this, &bridge, report, None, None).await,
            () = this.tasks.shutdown().cancelled() => return Ok(()),
        }
    };
    let before = rotated_away(&bridge, &set).await;
    let log = DebugWatch::start(&this.watcher, &set, before, this.retention.limits());
    let followed = follow(this, &bridge, identity, exited, &log).await;
    // Also after an error: the next watch of this log copies and truncates the same files.
    log.end().await;
    followed
}

/// Follows a generation whose log is read, until it ends or is no longer watched.
async fn follow(
    this: &Arc<Watchers>,
    bridge: &Bridge,
    identity: &ProcessIdentity,
    mut exited: Pin<&mut (impl Future<Output = ExitReport> + Send)>,
    log: &DebugWatch,
) -> Result<(), AppError> {
    let (id, generation) = (&bridge.id, bridge.generation);
    let mut changes = log.changes();
    let mut trouble = log.trouble();
    let mut link = LinkWatch::new(this, bridge, log.report());
    let mut grace = grace(this, bridge);
    let mut reattached = never();
    let mut is_patient = false;
    let mut session = this.session(bridge);
    this.conversations.learn(bridge).await?;
    let mut hang_up = never();
    loop {
        let mut evidence = log.evidence();
        let mut refusal = None;
        if let Some(known) = this.registry().copies.bridge(id)
            && let Some(session) = &session
        {
            if session.readiness(&known, &evidence) == Ok(true) && !evidence.attached {
                // The screen may quote a link: a refusal that is written already counts more.
                evidence = log.caught_up().await;
            }
            refusal = session.readiness(&known, &evidence).err();
        }
        if let Some(refusal) = refusal
            && this.refused(bridge, refusal).await?
        {
            return Ok(());
        }
        match this.registry().copies.bridge(id).filter(|bridge| bridge.generation == generation) {
            None => return Ok(()),
            Some(bridge) => match judge(&bridge, &evidence, session.as_ref()) {
                Judgement::Wait => {}
                Judgement::Ready => {
                    let anchor = anchor_of(&evidence, session.as_ref());
                    on_ready(this, &bridge, identity, anchor).await?;
                }
                Judgement::ReadyUnlessPoisoned if is_patient => {}
                Judgement::ReadyUnlessPoisoned => {
                    is_patient = true;
                    reattached = after(POISON_WATCH);
                }
                Judgement::Poisoned => {
                    this.relaunch_in_background(bridge);
                    return Ok(());
                }
                Judgement::PoisonedAtWork => {
                    // Whoever finds it runs must know that before the advice.
                    let anchor = anchor_of(&evidence, session.as_ref());
                    on_ready(this, &bridge, identity, anchor).await?;
                    this.transitions().observe(id, generation, Fact::Poisoned).await?;
                }
            },
        }
        let known =
            this.registry().copies.bridge(id).filter(|bridge| bridge.generation == generation);
        if known.is_some_and(|bridge| bridge.status() == BridgeStatus::Running) {
            // Nothing is decided by it any more: a hundred bridges would be asked at once.
            grace = never();
        }
        tokio::select! {
            report = &mut exited => {
                if let Some(session) = &mut session {
                    session.concluded().await;
                }
                return on_exit(this, bridge, report, Some(log), session.as_ref()).await;
            }
            news = news_of(session.as_mut()) => match news {
                News::Keeper => {
                    let known = this.registry().copies.bridge(id);
                    if let (Some(known), Some(session)) = (known, &session) {
                        this.judge_keeper(&known, session).await?;
                        if known.keeper.is_some() && session.has_lost_its_keeper() {
                            hang_up = after(Session::hang_up());
                        }
                    }
                }
                News::Entry => this.conversations.learn(bridge).await?,
            },
            () = &mut hang_up => {
                hang_up = never();
                this.terminal_lost(bridge).await?;
            }
            changed = changes.changed() => {
                if changed.is_err() {
                    warn!(bridge.id = %id, "the log of bridge {} is not read any more", id.short());
                    changes = log.changes();
                    changes.mark_unchanged();
                    tokio::time::sleep(Duration::from_secs(2)).await;
                }
            }
            () = link.due() => link.judge(this).await,
            Ok(()) = trouble.changed() => {
                let trouble = *trouble.borrow_and_update();
                advise_about_log(this, id, generation, trouble).await?;
            }
            () = &mut reattached => {
                reattached = never();
                let evidence = log.evidence();
                if evidence.readiness() == Readiness::ReadyAfterReattach {
                    on_ready(this, bridge, identity, evidence.anchor()).await?;
                }
            }
            () = &mut grace => {
                grace = never();
                // It registered in time; what is still waited for is how that turns out.
                if log.evidence().readiness() == Readiness::ReadyAfterReattach {
                    continue;
                }
                if this.grace_over(bridge).await? {
                    return Ok(());
                }
            }
            () = this.tasks.shutdown().cancelled() => return Ok(()),
        }
    }
}

/// What the log said before it was rotated.
/// A bridge that is ready has that in its record.
async fn rotated_away(bridge: &Bridge, set: &LogSet) -> Evidence {
    if bridge.live().is_none_or(|live| live.stage == Stage::Ready) {
        return Evidence::default();
    }
    let set = set.clone();
    tokio::task::spawn_blocking(move || svc_agent::debug_watch::rotated(&set))
        .await
        .unwrap_or_default()
}

/// The deadline counts on the monotonic clock.
/// Neither a corrected clock nor a suspended host ends a start early.
fn grace(this: &Arc<Watchers>, bridge: &Bridge) -> Timer {
    match bridge.deadline() {
        Some(deadline) => after(deadline.since(this.launcher.transitions.clock.now())),
        None => never(),
    }
}

enum Judgement {
    Wait,
    Ready,
    ReadyUnlessPoisoned,
    Poisoned,
    /// It may have sessions: it is not touched.
    PoisonedAtWork,
}

/// Waits for the next change around a session; for ever without one.
async fn news_of(session: Option<&mut Session>) -> News {
    match session {
        Some(session) => session.changed().await,
        None => std::future::pending().await,
    }
}

/// What the agent registered, from its log or from its terminal.
fn anchor_of(evidence: &Evidence, session: Option<&Session>) -> Anchor {
    let anchor = evidence.anchor();
    let shown = || session.and_then(Session::remote_session);
    Anchor { session_id: anchor.session_id.or_else(shown), ..anchor }
}

fn judge(bridge: &Bridge, evidence: &Evidence, session: Option<&Session>) -> Judgement {
    let Some(live) = bridge.live() else { return Judgement::Wait };
    if let Some(session) = session {
        return match session.readiness(bridge, evidence) {
            Ok(true) if evidence.poisoned && live.stage == Stage::Ready => {
                Judgement::PoisonedAtWork
            }
            Ok(true) => Judgement::Ready,
            // A refusal is carried out with the lock of the project in hand.
            Ok(false) | Err(_) => Judgement::Wait,
        };
    }
    let is_ready = match live.stage {
        Stage::Ready => true,
        Stage::Launching { .. } | Stage::Registering { .. } => false,
    };
    match evidence.readiness() {
        Readiness::Waiting => Judgement::Wait,
        Readiness::Ready => Judgement::Ready,
        Readiness::ReadyAfterReattach if is_ready => Judgement::Ready,
        Readiness::ReadyAfterReattach => Judgement::ReadyUnlessPoisoned,
        Readiness::Refused(Refusal::Poisoned) if is_ready => Judgement::PoisonedAtWork,
        Readiness::Refused(Refusal::Poisoned) if live.stop_requested => Judgement::Wait,
        // The line may be days old: it was found at work, not started just now.
        Readiness::Refused(Refusal::Poisoned)
            if bridge.origin != Origin::Spawned && bridge.deadline().is_none() =>
        {
            if evidence.has_registered() { Judgement::PoisonedAtWork } else { Judgement::Wait }
        }
        Readiness::Refused(Refusal::Poisoned) => Judgement::Poisoned,
        // The agent ends by itself and its exit carries the cause; the deadline is the backstop.
        Readiness::Refused(
            Refusal::TrustRequired | Refusal::RemoteControlUnavailable | Refusal::LoginRequired,
        ) => Judgement::Wait,
    }
}

pub(super) async fn on_ready(
    this: &Arc<Watchers>,
    bridge: &Bridge,
    identity: &ProcessIdentity,
    mut anchor: Anchor,
) -> Result<(), AppError> {
    // A log can outlive its process; only the very process of this generation can be ready.
    if this.launcher.host.probe(identity) != Verdict::Same {
        return Ok(());
    }
    let is_known = anchor.session_id.is_some() || bridge.anchor.session_id.is_some();
    if !is_known && !bridge.is_interactive() {
        anchor.session_id = session_of_pointer(this, bridge, &anchor).await;
    }
    let registered = Fact::Registered(anchor);
    if bridge.status() == BridgeStatus::Running && is_no_news(this, bridge, &registered) {
        return Ok(());
    }
    this.transitions().observe(&bridge.id, bridge.generation, registered).await?;
    hit("spawn.after_ready").await;
    Ok(())
}

/// Whether a bridge that is known to run has all this in its record already.
/// After a restart that is so for all bridges at once, and none of them needs the database. What
/// another process writes to the row reaches the copy by itself.
fn is_no_news(this: &Arc<Watchers>, bridge: &Bridge, fact: &Fact) -> bool {
    let now = this.transitions().clock.now();
    matches!(observe(bridge, fact.clone(), now), Step::Unchanged)
}

/// After a reattach the log does not name the session; the agent's pointer does.
async fn session_of_pointer(
    this: &Arc<Watchers>,
    bridge: &Bridge,
    anchor: &Anchor,
) -> Option<String> {
    let (agent, cwd) = (Arc::clone(&this.agent), bridge.cwd.clone());
    let environment = anchor.environment_id.clone()?;
    tokio::task::spawn_blocking(move || {
        let pointer = agent.pointer(&cwd)?;
        let same = pointer.environment_id.as_deref() == Some(environment.as_str());
        pointer.session_id.filter(|session| same && !session.is_empty())
    })
    .await
    .ok()?
}

async fn on_exit(
    this: &Arc<Watchers>,
    bridge: &Bridge,
    report: ExitReport,
    log: Option<&DebugWatch>,
    session: Option<&Session>,
) -> Result<(), AppError> {
    let (id, generation) = (&bridge.id, bridge.generation);
    if let Some(log) = log {
        // A bridge may have been ready for an instant: `ready` comes before `crashed`.
        let evidence = log.caught_up().await;
        if let Some(bridge) =
            this.registry().copies.bridge(id).filter(|bridge| bridge.generation == generation)
            && let Judgement::Ready | Judgement::ReadyUnlessPoisoned =
                judge(&bridge, &evidence, session)
            && !bridge.intentional_stop()
        {
            let anchor = anchor_of(&evidence, session);
            this.transitions().observe(id, generation, Fact::Registered(anchor)).await?;
        }
    }
    if this.terminator.under_way.contains(id) {
        // The stop records how it ended it.
        return Ok(());
    }
    let Some(current) = this.registry().live_generation(bridge).await? else { return Ok(()) };
    this.ends.record(&current, Noticed::Exited(report)).await?;
    Ok(())
}

/// Tells on the row what is wrong with its log, and takes it back.
async fn advise_about_log(
    this: &Arc<Watchers>,
    id: &InstanceId,
    generation: u32,
    trouble: Option<Trouble>,
) -> Result<(), AppError> {
    let words = match trouble {
        Some(Trouble::NoSpace) => Some(NO_SPACE),
        Some(Trouble::Sparse) => Some(SPARSE),
        None => None,
    };
    let said = this.registry().copies.bridge(id).and_then(|bridge| bridge.notice);
    let is_ours = said.as_deref().is_none_or(|said| [NO_SPACE, SPARSE].contains(&said));
    // Other advice is not overwritten.
    if is_ours && said.as_deref() != words {
        let fact = Fact::Notice(words.map(str::to_owned));
        this.transitions().observe(id, generation, fact).await?;
    }
    Ok(())
}

impl Watchers {
    /// The grace of a start is over.
    /// Unless it became ready or was taken over meanwhile, its process is stopped first and only
    /// then is the failure recorded. Tells whether the generation has ended.
    async fn grace_over(&self, bridge: &Bridge) -> Result<bool, AppError> {
        let _lock = self.locks.project(&bridge.cwd).await?;
        let Some(current) = self.registry().live_generation(bridge).await? else {
            return Ok(true);
        };
        let expires = match current.live().map(|live| live.stage) {
            Some(Stage::Registering { deadline: Some(_) }) => true,
            Some(
                Stage::Registering { deadline: None } | Stage::Launching { .. } | Stage::Ready,
            )
            | None => false,
        };
        let Some(identity) = current.process.clone().filter(|_| expires) else {
            return Ok(false);
        };
        let _mark = self.terminator.under_way.mark(&bridge.id);
        let (noticed, is_over) = match self.terminator.end(&current, &identity).await {
            Ended::Gone { report, forced } => (Noticed::GraceOver { report, forced }, true),
            Ended::Alive(code) => (Noticed::Alive(code), false),
        };
        self.ends.record(&current, noticed).await?;
        Ok(is_over)
    }
}
