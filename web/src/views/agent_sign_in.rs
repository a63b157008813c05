//! The dialog that signs the agent in. Where it stands is kept by the service.

use crate::api;
use crate::browser;
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::{time, wire};
use crate::page::{Page, Sheet, page};
use crate::parts::button::ButtonStyle;
use crate::parts::dialog::Dialog;
use crate::reactive::{dynamic, effect, live, memo};
use crate::text::agent_sign_in as words;
use crate::text::{launch, session::act};
use crate::views::copy::Copyable;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::collections::BTreeMap;
use svc_shared::error::ErrorCode;
use svc_shared::internal::agent_sign_in::{
    SignInCode, SignInMode, SignInResult, SignInStage, SignInState, StartSignIn,
};
use svc_shared::paths;

/// A request that may need the password first.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ask {
    Start(SignInMode),
    Code(String),
    Status,
}

/// What the dialog knows.
#[derive(Clone, Copy)]
struct Flow {
    /// As the service told last; none before that.
    state: RwSignal<Option<SignInState>>,
    /// How it went.
    end: RwSignal<Option<SignInResult>>,
    /// It is over, and nobody can say how.
    is_gone: RwSignal<bool>,
    problem: RwSignal<Option<String>>,
    /// Waits for the password.
    held: RwSignal<Option<Ask>>,
    is_pending: RwSignal<bool>,
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Off,
    Begin,
    Starting,
    Password,
    Code,
    Checking,
    Done,
    Failed,
    Gone,
}

impl Flow {
    fn new() -> Self {
        Self {
            state: RwSignal::new(None),
            end: RwSignal::new(None),
            is_gone: RwSignal::new(false),
            problem: RwSignal::new(None),
            held: RwSignal::new(None),
            is_pending: RwSignal::new(false),
        }
    }

    fn step(self, is_on: bool) -> Step {
        let has_url = |state: &SignInState| state.authorize_url.is_some();
        let (is_active, has_url, is_checking) = self.state.with(|state| {
            state.as_ref().map_or((false, false, false), |state| {
                let is_checking = state.stage.as_ref().is_some_and(|stage| {
                    stage.is(&SignInStage::Checking) || stage.is(&SignInStage::Over)
                });
                (state.active, has_url(state), is_checking)
            })
        });
        match self.end.with(|end| end.as_ref().map(|end| end.ok)) {
            _ if !is_on => Step::Off,
            Some(true) => Step::Done,
            Some(false) => Step::Failed,
            None if self.is_gone.get() => Step::Gone,
            None if self.held.with(Option::is_some) => Step::Password,
            None if is_active && is_checking => Step::Checking,
            None if is_active && has_url => Step::Code,
            None if is_active || self.is_pending.get() => Step::Starting,
            None => Step::Begin,
        }
    }

    /// Asks where it stands; one that is over is asked how it went.
    fn read(self) {
        spawn_local(async move {
            let path = format!("{}/state", paths::AGENT_SIGN_IN);
            let Ok(state) = api::get::<SignInState>(&path).await else { return };
            let is_over = state.stage.as_ref().is_some_and(|stage| stage.is(&SignInStage::Over));
            let was_active = self
                .state
                .try_with_untracked(|before| before.as_ref().is_some_and(|before| before.active));
            let is_asked = self.is_pending.try_get_untracked().unwrap_or(true);
            if was_active == Some(true) && !state.active && !is_asked {
                let has_end = self.end.try_with_untracked(Option::is_some);
                let _ = self.is_gone.try_set(has_end == Some(false));
            }
            let _ = self.state.try_set(Some(state)); // the dialog may be closed by now
            if is_over && !is_asked {
                self.ask(Ask::Status);
            }
        });
    }

    fn ask(self, ask: Ask) {
        if self.is_pending.try_get_untracked() != Some(false) {
            return;
        }
        self.is_pending.set(true);
        self.problem.set(None);
        self.is_gone.set(false);
        spawn_local(async move {
            let answer = send(&ask).await;
            // The dialog may be closed by now: the service keeps where it stands.
            if self.is_pending.try_set(false).is_some() {
                return;
            }
            match answer {
                Ok(Some(end)) if end.ok || !end.active => self.end.set(Some(end)),
                Ok(Some(again)) if !again.pending => self.problem.set(Some(again.message)),
                Ok(_) => {}
                Err(problem) if problem.is(ErrorCode::ReauthRequired) => {
                    self.held.set(Some(ask));
                }
                Err(problem) => self.problem.set(Some(problem.words())),
            }
            self.read();
        });
    }

    fn begin_again(self) {
        self.end.set(None);
        self.is_gone.set(false);
        self.problem.set(None);
        self.state.set(Some(SignInState::default()));
    }
}

/// Sends a request. A start has no outcome yet.
async fn send(ask: &Ask) -> Result<Option<SignInResult>, Problem> {
    let (verb, body) = match ask {
        Ask::Start(mode) => {
            ("start", Some(wire::written(&StartSignIn { mode: mode.as_str().to_owned() })))
        }
        Ask::Code(code) => ("code", Some(wire::written(&SignInCode { code: code.clone() }))),
        Ask::Status => ("status", None),
    };
    let path = format!("{}/{verb}", paths::AGENT_SIGN_IN);
    let answer = api::request(Method::POST, &path, body, None).await;
    match ask {
        Ask::Start(_) => answer.map(|_| None),
        Ask::Code(_) | Ask::Status => api::understood::<SignInResult>(answer).map(Some),
    }
}

/// The button that opens the dialog, while somebody should go on with the sign-in.
pub fn open_button(page: Page) -> AnyView {
    let is_on = move || page.live.basics.with(|b| b.as_ref().is_some_and(|b| b.can_sign_agent_in));
    let label = move || match page.store.sign_in.with(Option::is_some) {
        true => words::GO_ON,
        false => words::OPEN,
    };
    dynamic(move || {
        is_on().then(|| {
            view! {
                <button
                    type="button" class=ButtonStyle::Soft.class() aria-haspopup="dialog"
                    data-testid="agent-sign-in"
                    on:click=move |_| page.sheet.set(Some(Sheet::AgentSignIn))
                >{live(label)}</button>
            }
        })
    })
}

/// The dialog.
#[component]
pub fn AgentSignIn() -> impl IntoView {
    let page = page();
    let flow = Flow::new();
    let close = Callback::new(move |()| page.sheet.set(None));
    let is_on =
        memo(move || page.live.basics.with(|b| b.as_ref().is_none_or(|b| b.can_sign_agent_in)));
    // First at once, then whenever the service says that it has moved.
    let moved = memo(move || page.store.sign_in.with(|now| now.as_ref().map(|n| n.stage.clone())));
    effect(move || {
        let _ = moved.get();
        if is_on.get() {
            flow.read();
        }
    });
    let step = memo(move || flow.step(is_on.get()));
    effect(move || {
        if step.get() == Step::Done {
            page.ready.ask_anew();
        }
    });
    let token = memo(move || flow.end.with(|end| end.as_ref().and_then(|end| end.token.clone())));
    view! {
        {dynamic(move || match token.get() {
            Some(token) => view! { <Secret token=token /> }.into_any(),
            None => view! {
                <Dialog title=words::TITLE.to_owned() on_close=close testid="agent-sign-in-dialog">
                    {dynamic(move || body(step.get(), flow, close))}
                </Dialog>
            }.into_any(),
        })}
    }
}

fn body(step: Step, flow: Flow, close: Callback<()>) -> AnyView {
    match step {
        Step::Off => off(close),
        Step::Begin => view! { <Begin flow=flow close=close /> }.into_any(),
        Step::Starting => message(flow, close, words::STARTING, "starting", None),
        Step::Password => view! { <Password flow=flow /> }.into_any(),
        Step::Code => view! { <Code flow=flow close=close /> }.into_any(),
        Step::Checking => message(flow, close, words::CHECKING, "checking", Some(words::RECHECK)),
        Step::Done => done(close),
        Step::Failed | Step::Gone => failed(flow, close),
    }
}

fn problem(flow: Flow) -> AnyView {
    dynamic(move || {
        flow.problem.get().map(|text| {
            view! {
                <p class="wide strip tone-danger" role="alert" data-testid="agent-sign-in-problem">
                    <bdi>{shown(&text).into_owned()}</bdi>
                </p>
            }
        })
    })
}

fn close_button(close: Callback<()>) -> AnyView {
    view! {
        <button type="button" class=ButtonStyle::Secondary.class() on:click=move |_| close.run(())>{launch::CLOSE}</button>
    }
    .into_any()
}

fn cancel_button(close: Callback<()>) -> AnyView {
    let cancel = move |_| {
        close.run(());
        spawn_local(async move {
            let path = format!("{}/cancel", paths::AGENT_SIGN_IN);
            let _ = api::request(Method::POST, &path, None, None).await; // Home shows what is left
        });
    };
    view! {
        <button type="button" class=ButtonStyle::Secondary.class() data-testid="agent-sign-in-cancel" on:click=cancel>{words::CANCEL}</button>
    }
    .into_any()
}

fn off(close: Callback<()>) -> AnyView {
    view! {
        <div class="dialog-body" data-testid="agent-sign-in-off">
            <p class="wide">{words::OFF}</p>
            <p class="wide command"><Copyable shown=words::COMMAND full=words::COMMAND what=words::COMMAND_WORD /></p>
            <p class="wide muted">{words::OFF_HOW}</p>
        </div>
        <div class="dialog-foot"><span class="says"></span> {close_button(close)}</div>
    }
    .into_any()
}

#[component]
fn Begin(flow: Flow, close: Callback<()>) -> impl IntoView {
    let page = page();
    let mode = RwSignal::new(SignInMode::Login);
    // By its address the dialog may be there before the facts of the service.
    let can_choose =
        memo(move || page.live.basics.with(|b| b.as_ref().is_some_and(|b| b.can_make_token)));
    let kinds = [(SignInMode::Login, words::LOGIN), (SignInMode::SetupToken, words::TOKEN)];
    let choice = move |(kind, label): (SignInMode, &'static str)| {
        view! {
            <label class="radio-line">
                <input
                    type="radio" name="sign-in-mode" data-testid=format!("sign-in-mode-{kind}")
                    prop:checked=live(move || mode.get() == kind)
                    on:change=move |_| mode.set(kind)
                />
                {label}
            </label>
        }
    };
    view! {
        <div class="dialog-body" data-testid="agent-sign-in-begin">
            <p class="wide">{words::WHAT}</p>
            {dynamic(move || can_choose.get().then(|| view! {
                <span class="label" id="sign-in-mode">{words::MODE}</span>
                <div role="radiogroup" aria-labelledby="sign-in-mode">{kinds.map(choice)}</div>
            }))}
            {problem(flow)}
        </div>
        <div class="dialog-foot">
            <span class="says"></span>
            {close_button(close)}
            <button
                type="button" class=ButtonStyle::Primary.class() data-testid="agent-sign-in-start"
                on:click=move |_| flow.ask(Ask::Start(mode.get_untracked()))
            >{words::START}</button>
        </div>
    }
}

/// A step in which nobody has to do anything.
fn message(
    flow: Flow,
    close: Callback<()>,
    text: &'static str,
    at: &'static str,
    again: Option<&'static str>,
) -> AnyView {
    let again = again.map(|label| {
        view! {
            <button
                type="button" class=ButtonStyle::Secondary.class() data-testid="agent-sign-in-recheck"
                on:click=move |_| flow.ask(Ask::Status)
            >{label}</button>
        }
    });
    view! {
        <div class="dialog-body">
            <p class="wide" role="status" data-testid="agent-sign-in-waits" data-step=at>{text}</p>
            {problem(flow)}
        </div>
        <div class="dialog-foot"><span class="says"></span> {cancel_button(close)} {again}</div>
    }
    .into_any()
}

#[component]
fn Code(flow: Flow, close: Callback<()>) -> impl IntoView {
    let page = page();
    let url = flow.state.with_untracked(|state| {
        state.as_ref().and_then(|state| state.authorize_url.clone()).unwrap_or_default()
    });
    let host = url.trim_start_matches("https://").split('/').next().unwrap_or_default().to_owned();
    let typed = RwSignal::new(String::new());
    let is_shown = RwSignal::new(false);
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        let code = typed.with_untracked(|typed| typed.trim().to_owned());
        if code.is_empty() {
            browser::focus("#sign-in-code");
            return;
        }
        flow.ask(Ask::Code(code));
    };
    let left = move || {
        let ends_at = page.store.sign_in.with(|now| now.as_ref().map(|now| now.ends_at));
        let left = ends_at.map_or(0, |at| at.as_millis() - page.clock.seconds());
        if left > 0 { words::ends_in(&time::span(left)) } else { String::new() }
    };
    let picture = browser::href(&format!("{}/qr", paths::AGENT_SIGN_IN));
    view! {
        <form class="sign-in" on:submit=submit>
            <div class="dialog-body" data-testid="agent-sign-in-code">
                <span class="label">{words::ADDRESS}</span>
                <div>
                    <a
                        class=ButtonStyle::Soft.class() href=url.clone() target="_blank"
                        rel="noopener noreferrer" data-testid="agent-sign-in-link"
                    >{words::open(&host)}</a>
                    <p class="command sign-in-address"><Copyable shown=url.clone() full=url what=words::ADDRESS_WORD /></p>
                    <details on:toggle=move |_| is_shown.set(true)>
                        <summary>{words::PICTURE}</summary>
                        {dynamic(move || is_shown.get().then(|| view! {
                            <img class="qr" src=picture.clone() alt=words::PICTURE_ALT data-testid="agent-sign-in-qr" />
                        }))}
                    </details>
                </div>
                <label for="sign-in-code">{words::CODE}</label>
                <div>
                    <input
                        class="input" id="sign-in-code" autocomplete="one-time-code" autofocus=true
                        spellcheck="false" autocapitalize="off" aria-describedby="sign-in-code-help"
                        data-testid="agent-sign-in-field"
                        on:input=move |event| typed.set(event_target_value(&event))
                    />
                    <p class="help" id="sign-in-code-help">{words::CODE_HELP}</p>
                </div>
                {problem(flow)}
            </div>
            <div class="dialog-foot">
                <span class="says muted num">{live(left)}</span>
                {cancel_button(close)}
                <button
                    type="submit" class=ButtonStyle::Primary.class() data-testid="agent-sign-in-send"
                    aria-disabled=live(move || flow.is_pending.get().then_some("true"))
                >{words::SEND}</button>
            </div>
        </form>
    }
}

#[component]
fn Password(flow: Flow) -> impl IntoView {
    let typed = RwSignal::new(String::new());
    let is_pending = RwSignal::new(false);
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        if is_pending.get_untracked() {
            return;
        }
        is_pending.set(true);
        flow.problem.set(None);
        let proof = wire::written(&BTreeMap::from([("password", typed.get_untracked())]));
        spawn_local(async move {
            let answer = api::request(Method::POST, paths::REAUTH, Some(proof), None).await;
            let _ = is_pending.try_set(false); // the dialog may be closed by now
            match answer {
                Ok(_) => {
                    if let Some(Some(ask)) = flow.held.try_update(Option::take) {
                        flow.ask(ask);
                    }
                }
                Err(problem) => drop(flow.problem.try_set(Some(problem.words()))),
            }
        });
    };
    view! {
        <form on:submit=submit>
            <div class="dialog-body">
                <label for="sign-in-password">{words::PASSWORD}</label>
                <div>
                    <input
                        class="input" id="sign-in-password" type="password" autofocus=true
                        autocomplete="current-password" aria-describedby="sign-in-password-help"
                        data-testid="agent-sign-in-password"
                        on:input=move |event| typed.set(event_target_value(&event))
                    />
                    <p class="help" id="sign-in-password-help">{words::PASSWORD_WHY}</p>
                </div>
                {problem(flow)}
            </div>
            <div class="dialog-foot">
                <span class="says"></span>
                <button type="button" class=ButtonStyle::Secondary.class() on:click=move |_| flow.held.set(None)>{act::CANCEL}</button>
                <button
                    type="submit" class=ButtonStyle::Primary.class() data-testid="agent-sign-in-prove"
                    aria-disabled=live(move || is_pending.get().then_some("true"))
                >{words::PROVE}</button>
            </div>
        </form>
    }
}

fn done(close: Callback<()>) -> AnyView {
    view! {
        <div class="dialog-body">
            <div class="wide gate tone-ok" role="status" data-testid="agent-sign-in-done">
                <h3>{words::DONE}</h3>
                <p>{words::DONE_HOW}</p>
            </div>
        </div>
        <div class="dialog-foot"><span class="says"></span> {close_button(close)}</div>
    }
    .into_any()
}

fn failed(flow: Flow, close: Callback<()>) -> AnyView {
    let why = flow.end.with_untracked(|end| end.as_ref().map(|end| end.message.clone()));
    let (title, tone, why) = match why {
        Some(why) => (words::FAILED, "tone-danger", why),
        None => (words::GONE, "tone-neutral", words::GONE_HOW.to_owned()),
    };
    view! {
        <div class="dialog-body">
            <div
                class=format!("wide gate {tone}") role="alert" data-testid="agent-sign-in-failed"
            >
                <h3>{title}</h3>
                <p><bdi>{shown(&why).into_owned()}</bdi></p>
            </div>
        </div>
        <div class="dialog-foot">
            <span class="says"></span>
            {close_button(close)}
            <button
                type="button" class=ButtonStyle::Primary.class() data-testid="agent-sign-in-again"
                on:click=move |_| flow.begin_again()
            >{words::AGAIN}</button>
        </div>
    }
    .into_any()
}

/// A token, which goes only when somebody says that it is stored.
#[component]
fn Secret(token: String) -> impl IntoView {
    let page = page();
    view! {
        <Dialog title=words::SECRET.to_owned() on_close=Callback::new(|()| ()) is_firm=true testid="agent-token">
            <div class="dialog-body">
                <p class="wide command secret"><Copyable shown=token.clone() full=token what=words::SECRET_WORD /></p>
                <p class="wide muted">{words::SECRET_ONCE}</p>
            </div>
            <div class="dialog-foot">
                <span class="says"></span>
                <button
                    type="button" class=ButtonStyle::Primary.class() data-testid="agent-token-stored"
                    on:click=move |_| page.sheet.set(None)
                >{words::STORED}</button>
            </div>
        </Dialog>
    }
}
