//! The launch dialog.

mod draft;
mod fields;
mod later;

pub use draft::reopen;

use crate::api;
use crate::browser;
use crate::model::basics::Basics;
use crate::model::launch::{self as rules, Block, Choice, Form, Ground, Kind};
use crate::model::outcome::{self, Level, Notice, Then};
use crate::model::problem::Problem;
use crate::model::sections::Section;
use crate::model::shown::shown;
use crate::model::status::Tone;
use crate::model::time;
use crate::model::wire::{self, Read};
use crate::nav::{LAUNCH, Nav, nav};
use crate::page::{Page, page};
use crate::parts::button::ButtonStyle;
use crate::parts::dialog::Dialog;
use crate::parts::icon::{icon, symbol};
use crate::prefs;
use crate::reactive::{derived, dynamic, effect, memo};
use crate::text::session::{act, named};
use crate::text::{launch as words, page as page_words, planned};
use crate::views::times::absolute;
use crate::views::trust::{Brings, Gate};
use fields::Fields;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use std::time::Duration;
use svc_shared::api::instances::{Instance, SpawnRequest, SpawnResult};
use svc_shared::api::jobs::DispatchRequest;
use svc_shared::api::planned_launches::{PlanLaunch, PlannedLaunch};
use svc_shared::api::projects::Project;
use svc_shared::error::ErrorCode;
use svc_shared::internal::Preflight;
use svc_shared::paths;

/// Key of the last choice of a project in this browser.
fn memory(project: &str) -> String {
    format!("svc.launch.{project}")
}

fn last_choice(project: &str) -> Choice {
    browser::stored(&memory(project)).map(|kept| Choice::read(&kept)).unwrap_or_default()
}

/// A launch without an answer for this long goes on without its dialog.
const PATIENCE: Duration = Duration::from_secs(3);

/// Shows the dialog while the address asks for it.
#[component]
pub fn LaunchHost() -> impl IntoView {
    let page = page();
    let nav = nav();
    let wanted = memo(move || nav.member(LAUNCH));
    let is_ready =
        memo(move || page.store.is_loaded.get() && page.live.basics.with(Option::is_some));
    view! {
        {dynamic(move || {
            let name = wanted.get();
            if name.is_empty() || !is_ready.get() {
                return ().into_any();
            }
            let project = page.store.project(&name).map(|signal| signal.get_untracked());
            match (project, page.live.basics.get_untracked()) {
                (Some(project), Some(basics)) => {
                    view! { <LaunchDialog project=project basics=basics /> }.into_any()
                }
                _ => view! { <Unknown name=name /> }.into_any(),
            }
        })}
    }
}

#[component]
fn Unknown(name: String) -> impl IntoView {
    let nav = nav();
    let close = Callback::new(move |()| nav.close_launch());
    view! {
        <Dialog title=words::title(&shown(&name)) on_close=close has_address=true testid="launch-dialog">
            <div class="dialog-body"><p class="wide">{words::no_project(&shown(&name))}</p></div>
        </Dialog>
    }
}

/// What the parts of the dialog share.
#[derive(Clone, Copy)]
struct LaunchForm {
    page: Page,
    nav: Nav,
    project: StoredValue<Arc<Project>>,
    basics: StoredValue<Arc<Basics>>,
    preflight: RwSignal<Option<Result<Preflight, Problem>>>,
    form: RwSignal<Form>,
    is_pending: RwSignal<bool>,
    problem: RwSignal<Option<Problem>>,
    /// Before this time (milliseconds) the service takes no further try.
    not_before: RwSignal<i64>,
    key: StoredValue<String>,
    is_gone: StoredValue<bool>,
}

impl LaunchForm {
    /// Asks the rules. Tracks form and preflight where `read` does.
    fn with<T>(self, read: impl FnOnce(&Ground<'_>, &Form) -> T) -> T {
        let project = self.project.get_value();
        let basics = self.basics.get_value();
        let beside = self.page.store.live_beside(&self.name());
        self.preflight.with(|preflight| {
            let preflight = preflight.as_ref().and_then(|p| p.as_ref().ok());
            let ground = Ground { project: &project, basics: &basics, preflight, beside };
            self.form.with(|form| read(&ground, form))
        })
    }

    fn name(self) -> String {
        self.project.with_value(|project| project.name.to_string())
    }

    fn close(self) {
        self.is_gone.set_value(true);
        draft::forget();
        self.nav.close_launch();
    }

    /// Closed by hand, or for want of an answer: what was sent goes on.
    fn leave(self) {
        if self.is_pending.get_untracked() {
            let title = words::goes_on(&self.name());
            self.page.say.notice(Notice::new(Level::Info, title, words::GOES_ON_BODY));
        }
        self.close();
    }

    /// A live bridge of the project: launching would only give it back. Tracked.
    fn live(self) -> Option<Arc<Instance>> {
        if self.form.with(|form| form.kind != Kind::ServerMode) {
            return None;
        }
        let id = self.page.store.live_of(&self.name())?;
        self.page.store.instance(&id).map(|signal| signal.get())
    }

    /// Why nothing can be sent at this moment. Tracked.
    fn waits(self) -> Option<String> {
        let left = self.not_before.get();
        if self.is_pending.get() {
            Some(words::PENDING.to_owned())
        } else if self.page.live.is_offline.get() {
            Some(page_words::link::OFFLINE.to_owned())
        } else if left > 0 && left > self.page.clock.seconds() {
            Some(words::wait(&time::span(left - self.page.clock.seconds())))
        } else {
            None
        }
    }

    fn submit(self) {
        if let Some(why) = untrack(|| self.waits()) {
            self.page.say.politely(&why);
            return;
        }
        if untrack(|| self.live()).is_some() {
            return; // what is offered then is to open it
        }
        let (order, block) = untrack(|| {
            self.with(|ground, form| {
                let order = match form.kind {
                    Kind::ServerMode | Kind::Interactive | Kind::Direct => {
                        Order::Bridge(Box::new(ground.request(form)))
                    }
                    Kind::Background => Order::Job(ground.dispatch(form)),
                };
                let order = if form.waits { order.later() } else { order };
                (order, ground.blocks(form).into_iter().next())
            })
        });
        if let Some(block) = block {
            self.page.say.politely(&block.words());
            block.field().map(browser::focus);
            return;
        }
        let kept = self.form.with_untracked(Choice::kept);
        browser::store(&memory(&self.name()), Some(&kept.text()));
        self.is_pending.set(true);
        self.problem.set(None);
        let (key, name) = (self.key.get_value(), self.name());
        // What was typed must not go with the dialog.
        let choice = self.form.with_untracked(Choice::drafted);
        let opening = key.clone();
        set_timeout(
            move || {
                let is_here = self.is_gone.try_get_value() == Some(false);
                let is_pending = self.is_pending.try_get_untracked() == Some(true);
                if is_here && is_pending && self.key.try_get_value().as_ref() == Some(&opening) {
                    self.leave();
                }
            },
            PATIENCE,
        );
        spawn_local(async move {
            let (path, body) = order.request();
            let answer = api::request(Method::POST, &path, body, Some(&key)).await;
            self.answered(
                answer.and_then(|(status, text)| {
                    order.notices(&name, &text).map_err(|_| Problem::Unreadable { status })
                }),
                &name,
                choice,
            );
        });
    }

    fn answered(self, answer: Result<Vec<Notice>, Problem>, project: &str, choice: Choice) {
        // Closed while the request was on its way: its signals are gone, the messages are not.
        let is_gone = self.is_gone.try_get_value().unwrap_or(true);
        match answer {
            Ok(notices) => {
                if !is_gone {
                    self.close();
                }
                for notice in notices {
                    self.page.notice_of(notice);
                }
            }
            Err(problem) if is_gone => {
                if problem == Problem::NoAnswer {
                    self.page.live.look_again();
                }
                let title = page_words::not_done(words::LAUNCH, project);
                let mut notice = Notice::new(Level::Danger, title, problem.words());
                notice.then.extend(match problem {
                    // It may have started: another launch could be a second agent.
                    Problem::NoAnswer => {
                        choice.get("prompt").map(|prompt| Then::Copy(prompt.to_owned()))
                    }
                    _ => Some(Then::Launch(project.to_owned(), Box::new(choice))),
                });
                self.page.say.notice(notice);
            }
            Err(problem) => {
                self.is_pending.set(false);
                self.page.say.alert(&problem.words());
                if let Some(seconds) = problem.retry_after() {
                    self.not_before.set(self.page.clock.now() + i64::from(seconds) * 1_000);
                }
                if problem.is(ErrorCode::NotTrusted) {
                    self.form.update(|form| form.must_trust = true);
                }
                if problem == Problem::NoAnswer {
                    self.page.live.look_again();
                } else {
                    // Refused for sure: the next try is another launch.
                    self.key.set_value(browser::repeat_key());
                }
                self.problem.set(Some(problem));
            }
        }
    }
}

/// What is sent, by kind.
enum Order {
    Bridge(Box<SpawnRequest>),
    Job(DispatchRequest),
    /// One of them, at the reset of a plan limit.
    Later(Box<PlanLaunch>),
}

impl Order {
    fn later(self) -> Self {
        Self::Later(Box::new(match self {
            Self::Bridge(asked) => PlanLaunch { session: Some(*asked), job: None },
            Self::Job(asked) => PlanLaunch { session: None, job: Some(asked) },
            Self::Later(plan) => *plan,
        }))
    }

    /// Path and body.
    fn request(&self) -> (String, Option<String>) {
        let (path, body) = match self {
            Self::Bridge(asked) => {
                (format!("{}?wait=0", paths::instances()), wire::written(&**asked))
            }
            Self::Job(asked) => (format!("{}/agents", paths::API), wire::written(asked)),
            Self::Later(plan) => (paths::LAUNCHES.to_owned(), wire::written(&**plan)),
        };
        (path, Some(body))
    }

    /// What the answer says.
    fn notices(&self, project: &str, text: &str) -> Read<Vec<Notice>> {
        match self {
            Self::Bridge(asked) => {
                let result = wire::read::<SpawnResult>(text)?;
                let at = result.instance.status_since.as_millis();
                Ok(outcome::launched(&result, asked, prefs::zone(at)))
            }
            Self::Job(_) => Ok(outcome::dispatched(project, wire::read(text)?)),
            Self::Later(_) => {
                let at = absolute(wire::read::<PlannedLaunch>(text)?.due_at);
                let title = planned::planned(project, &at);
                Ok(vec![Notice::new(Level::Success, title, planned::PLANNED_BODY)])
            }
        }
    }
}

#[component]
fn LaunchDialog(project: Arc<Project>, basics: Arc<Basics>) -> impl IntoView {
    let (page, nav) = (page(), nav());
    let name = project.name.to_string();
    let asked = Choice::of(|name| untrack(|| nav.member(name)));
    let address = browser::address();
    let has_sandbox = asked.get(rules::SANDBOX).is_some();
    let first = Ground { project: &project, basics: &basics, preflight: None, beside: 0 }
        .form(&last_choice(&name), &draft::drafted(&address).unwrap_or(asked));
    let launch = LaunchForm {
        page,
        nav,
        project: StoredValue::new(Arc::clone(&project)),
        basics: StoredValue::new(basics),
        preflight: RwSignal::new(None),
        form: RwSignal::new(first),
        is_pending: RwSignal::new(false),
        problem: RwSignal::new(None),
        not_before: RwSignal::new(0),
        key: StoredValue::new(browser::repeat_key()),
        is_gone: StoredValue::new(false),
    };
    let path = format!("{}?facts=true", paths::project_action(&name, "preflight"));
    spawn_local(async move {
        let found = api::get::<Preflight>(&path).await;
        if !launch.is_gone.try_get_value().unwrap_or(true) {
            launch.preflight.set(Some(found));
        }
    });
    let agreed = RwSignal::new(false);
    effect(move || {
        let trusts = agreed.get();
        launch.form.update(|form| form.trusts = trusts);
    });
    effect(move || {
        let choice = launch.form.with(Choice::drafted);
        draft::keep(&address, &choice);
    });
    let needs_trust = memo(move || launch.with(|ground, form| ground.needs_trust(form)));
    let brings = memo(move || launch.preflight.with(|p| Brings::of(p.as_ref())));
    let is_dirty = derived(move || {
        launch.is_pending.get()
            || launch.form.with(|f| {
                [&f.name, &f.typed, &f.prompt, &f.model].iter().any(|text| !text.is_empty())
            })
    });
    let close = Callback::new(move |()| launch.leave());
    view! {
        <Dialog title=words::title(&shown(&name)) on_close=close is_dirty=is_dirty has_address=true testid="launch-dialog">
            <div class="dialog-body">
                // First: without it nothing else in the dialog matters.
                {dynamic(move || needs_trust.get().then(|| view! {
                    <div class="wide"><Gate project=launch.project.get_value() brings=derived(move || brings.get()) agreed=agreed /></div>
                }))}
                <later::Later launch=launch />
                <Fields launch=launch />
                <Bypass launch=launch />
                <Checks launch=launch />
                <LeastUsed launch=launch />
                {has_sandbox.then(|| view! { <p class="wide muted" data-testid="launch-sandbox">{words::SANDBOX_IGNORED}</p> })}
            </div>
            <Foot launch=launch />
        </Dialog>
    }
}

/// A live bridge of the project: a second launch would only give it back.
#[component]
fn Already(launch: LaunchForm) -> impl IntoView {
    let since = memo(move || {
        let bridge = launch.live()?;
        Some(crate::views::times::absolute(bridge.started_at.unwrap_or(bridge.status_since)))
    });
    view! {
        {dynamic(move || since.get().map(|since| view! {
            <p class="wide strip tone-info" data-testid="launch-already"><span>{words::already(&since)}</span></p>
        }))}
    }
}

/// What could be stopped where no further bridge fits.
#[component]
fn LeastUsed(launch: LaunchForm) -> impl IntoView {
    let is_full = memo(move || {
        let is_bridge = launch.form.with(|form| form.kind.is_bridge());
        let found = |p: &Option<Result<Preflight, Problem>>| {
            p.as_ref().and_then(|p| p.as_ref().ok()).is_some_and(rules::is_full)
        };
        is_bridge && launch.preflight.with(found)
    });
    let rows = move || {
        let store = launch.page.store;
        let live = store.section(Section::Live).into_iter().filter_map(|id| {
            let inside = store.inside(&id).with(|inside| inside.len());
            Some((store.instance(&id)?.get(), inside))
        });
        let live: Vec<_> = live.collect();
        rules::least_used(&live)
            .into_iter()
            .map(|id| {
                let bridge = store.instance(&id).map(|bridge| bridge.get());
                let project = bridge.map(|b| b.project.clone()).unwrap_or_default();
                let href = browser::session_href(&id);
                let stop = format!("{href}?ask=stop");
                view! {
                    <li>
                        <a class="grow" href=href><bdi>{shown(&project).into_owned()}</bdi></a>
                        <a class="btn btn-ghost" href=stop aria-label=named(act::STOP, &project)>{act::STOP}"…"</a>
                    </li>
                }
            })
            .collect_view()
    };
    view! {
        {dynamic(move || is_full.get().then(|| view! {
            <div class="wide least-used" data-testid="launch-least-used">
                <p class="muted">{words::LEAST_USED}</p>
                <ul class="least">{dynamic(rows)}</ul>
            </div>
        }))}
    }
}

/// Typing the project's name, where everything would run without asking.
#[component]
fn Bypass(launch: LaunchForm) -> impl IntoView {
    let is_on = memo(move || launch.form.with(rules::is_bypass));
    view! {
        {dynamic(move || is_on.get().then(|| view! {
            <div class=format!("wide gate {}", Tone::Danger.class()) data-testid="bypass-gate">
                <h3>{symbol("g-triangle", "glyph")} {words::BYPASS}</h3>
                <p>{words::type_name(&shown(&launch.name()))}</p>
                <input
                    class="input"
                    aria-label=words::TYPED_NAME
                    autocomplete="off"
                    data-testid="bypass-name"
                    on:input=move |event| {
                        let typed = event_target_value(&event);
                        launch.form.update(|form| form.typed = typed);
                    }
                />
            </div>
        }))}
    }
}

/// What was found beforehand.
#[component]
fn Checks(launch: LaunchForm) -> impl IntoView {
    let found = memo(move || {
        launch.with(|ground, form| {
            let failed: Vec<(String, Option<String>)> = ground
                .blocks(form)
                .into_iter()
                .filter_map(|block| match block {
                    Block::Check { detail, hint } => Some((detail, hint)),
                    Block::Alias(_) | Block::Worktree => Some((block.words(), None)),
                    Block::Trust
                    | Block::Bypass
                    | Block::Name(_)
                    | Block::Prompt
                    | Block::PromptTooLong
                    | Block::Model => None,
                })
                .collect();
            (failed, ground.remarks(form))
        })
    });
    let capacity = move || {
        if launch.form.with(|form| !form.kind.is_bridge()) {
            return None;
        }
        launch.preflight.with(|p| {
            let fact = &p.as_ref()?.as_ref().ok()?.facts.as_ref()?.capacity;
            Some(words::capacity(fact.live, fact.max?))
        })
    };
    let row = |tone: Tone, shape, (detail, hint): (String, Option<String>)| {
        view! {
            <li class=tone.class()>
                {symbol(shape, "glyph")}
                <span>
                    <span class="word">{shown(&detail).into_owned()}</span>
                    {hint.map(|hint| view! { <span class="hint">" " {shown(&hint).into_owned()}</span> })}
                </span>
            </li>
        }
    };
    let unchecked = move || {
        launch.preflight.with(|p| {
            let problem = p.as_ref()?.as_ref().err()?;
            Some((words::unchecked(&problem.words()), None))
        })
    };
    view! {
        <ul class="checks wide" aria-live="polite" data-testid="launch-checks">
            {dynamic(move || launch.preflight.with(Option::is_none).then(|| view! { <li class="muted">{words::CHECKING}</li> }))}
            {dynamic(move || unchecked().map(|text| row(Tone::Warn, "g-triangle", text)))}
            {dynamic(move || {
                let (failed, remarks) = found.get();
                let failed = failed.into_iter().map(|text| row(Tone::Danger, "g-octagon", text));
                let remarks = remarks.into_iter().map(|text| row(Tone::Warn, "g-triangle", text));
                failed.chain(remarks).collect_view()
            })}
            {dynamic(move || capacity().map(|text| view! { <li class="muted">{text}</li> }))}
        </ul>
    }
}

#[component]
fn Foot(launch: LaunchForm) -> impl IntoView {
    let blocked =
        memo(move || launch.with(|ground, form| ground.blocks(form).first().map(Block::words)));
    let summary = memo(move || launch.with(|ground, form| ground.summary(form)));
    let is_bypass = memo(move || launch.form.with(rules::is_bypass));
    let why = move || launch.waits().or_else(|| blocked.get());
    let live = memo(move || {
        let bridge = launch.live()?;
        Some((bridge.instance_id.to_string(), bridge.connect.available))
    });
    let says = dynamic(move || {
        if live.with(Option::is_some) {
            return ().into_any(); // the strip above says it
        }
        match launch.problem.get() {
        Some(problem) if !launch.is_pending.get() => view! {
            <span class="help-error" role="alert" data-testid="launch-problem">{problem.words()} " " {launch.waits()}</span>
        }
        .into_any(),
        _ => why().into_any(),
    }
    });
    let label = derived(move || match launch.problem.get() {
        Some(problem) if problem.may_pass() => words::TRY_AGAIN,
        _ if launch.form.with(|form| form.waits) => planned::LAUNCH_LATER,
        _ => words::LAUNCH,
    });
    let look = derived(move || {
        if is_bypass.get() { ButtonStyle::Danger.class() } else { ButtonStyle::Primary.class() }
    });
    view! {
        <div class="dialog-foot">
            <span class="says" id="launch-says"><b>{summary}</b> {says}</span>
            <button type="button" class=ButtonStyle::Ghost.class() data-testid="launch-cancel" on:click=move |_| launch.leave()>
                {words::CANCEL}
            </button>
            {dynamic(move || match live.get() {
                Some((id, true)) => view! {
                    <a class=ButtonStyle::Primary.class() href=browser::open_href(&id) target="_blank" rel="noopener" data-testid="launch-open">
                        {icon("open", 16)} {act::OPEN}
                    </a>
                }
                .into_any(),
                Some((id, false)) => view! {
                    <a class=ButtonStyle::Primary.class() href=browser::session_href(&id) data-testid="launch-view">{words::VIEW_IT}</a>
                }
                .into_any(),
                None => view! {
                    <button
                        type="button"
                        class=look
                        aria-disabled=crate::reactive::live(move || why().map(|_| "true"))
                        aria-busy=crate::reactive::live(move || launch.is_pending.get().then_some("true"))
                        aria-describedby="launch-says"
                        data-testid="launch-submit"
                        on:click=move |_| launch.submit()
                    >
                        {dynamic(move || launch.is_pending.get().then(|| symbol("g-arc", "icon icon-14 turns")))} {label}
                    </button>
                }
                .into_any(),
            })}
        </div>
    }
}
