//! The gate before a folder is trusted: what it is, and what trusting means.

use crate::act::TrustGate;
use crate::api;
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::status::Tone;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::dialog::Dialog;
use crate::parts::icon::{icon, symbol};
use crate::reactive::{dynamic, live, memo};
use crate::text::launch as words;
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use svc_shared::api::projects::Project;
use svc_shared::internal::{Facts, Preflight};
use svc_shared::paths;

/// What a folder brings besides its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Brings {
    /// The service is looking.
    Asking,
    /// Hooks and MCP servers.
    Known(Facts),
    /// The service could not tell.
    Unreadable,
}

impl Brings {
    /// From the answer of the service, once there is one.
    pub fn of(found: Option<&Result<Preflight, Problem>>) -> Self {
        match found {
            None => Self::Asking,
            Some(Ok(Preflight { facts: Some(facts), .. })) => Self::Known(facts.clone()),
            Some(_) => Self::Unreadable,
        }
    }
}

/// Asks what the folder of a project brings.
pub fn brings(project: &str) -> RwSignal<Brings> {
    let brings = RwSignal::new(Brings::Asking);
    let project = project.to_owned();
    spawn_local(async move {
        look(&project, brings).await;
    });
    brings
}

/// Waits for what the folder of a project brings.
///
/// False once the view that asks is gone.
pub async fn look(project: &str, brings: RwSignal<Brings>) -> bool {
    let path = format!("{}?facts=true", paths::project_action(project, "preflight"));
    let found = api::get::<Preflight>(&path).await;
    // The dialog may be closed by now.
    brings.try_set(Brings::of(Some(&found))).is_none()
}

/// What trusting the folder would let run: the symbol and the words of each mark.
pub fn marks(project: &Project, brings: &Brings) -> Vec<(&'static str, String)> {
    let mut marks = Vec::new();
    if project.has_claude_md {
        marks.push(("file", words::CLAUDE_MD.to_owned()));
    }
    if project.has_claude_dir {
        marks.push(("folder", words::CLAUDE_DIR.to_owned()));
    }
    match brings {
        Brings::Asking => marks.push(("search", words::LOOKS.to_owned())),
        Brings::Unreadable => marks.push(("help", words::UNREADABLE.to_owned())),
        Brings::Known(facts) => {
            if !facts.hooks.is_empty() {
                marks.push(("bolt", words::hooks(&facts.hooks)));
            }
            let servers = facts.mcp_servers.iter();
            marks.extend(servers.map(|server| ("plug", words::mcp_server(&server.name))));
        }
    }
    marks
}

/// Shows the gate when something asks for it.
#[component]
pub fn TrustHost() -> impl IntoView {
    let page = page();
    view! {
        {dynamic(move || page.trust_gate.get().map(|gate| view! { <TrustDialog gate=gate /> }))}
    }
}

#[component]
fn TrustDialog(gate: TrustGate) -> impl IntoView {
    let page = page();
    let name = gate.project().to_owned();
    let project = page.store.project(&name).map(|signal| signal.get_untracked());
    let (title, verb) = match &gate {
        TrustGate::Project(_) => (words::trust_title(&shown(&name)), words::TRUST),
        TrustGate::Resume(_) | TrustGate::ResumeJob(_) => {
            (words::trust_resume_title(&shown(&name)), words::TRUST_AND_RESUME)
        }
    };
    let agreed = RwSignal::new(false);
    let found = brings(&name);
    let is_known = move || found.with(|found| *found != Brings::Asking);
    let close = Callback::new(move |()| page.trust_gate.set(None));
    let grant = move |_| {
        if !agreed.get_untracked() || !untrack(is_known) || page.live.is_offline.get_untracked() {
            page.say.politely(words::WAITS_FOR_BOX);
            return;
        }
        page.trust_gate.set(None);
        match gate.clone() {
            TrustGate::Project(project) => page.trust(project),
            TrustGate::Resume(target) => page.resume(target, true),
            TrustGate::ResumeJob(target) => page.resume_job(target, true),
        }
    };
    let is_ready = move || agreed.get() && is_known() && !page.live.is_offline.get();
    view! {
        <Dialog title=title on_close=close testid="trust-dialog">
            <div class="dialog-body">
                <div class="wide">
                    {match project {
                        Some(project) => view! { <Gate project=project brings=found agreed=agreed /> }.into_any(),
                        None => view! { <p>{words::no_project(&name)}</p> }.into_any(),
                    }}
                </div>
            </div>
            <div class="dialog-foot">
                <span class="says">{words::TRUST_LASTS}</span>
                <button type="button" class=ButtonStyle::Ghost.class() on:click=move |_| close.run(())>{words::CANCEL}</button>
                <button
                    type="button"
                    class=ButtonStyle::Primary.class()
                    aria-disabled=live(move || (!is_ready()).then_some("true"))
                    data-testid="trust-confirm"
                    on:click=grant
                >
                    {verb}
                </button>
            </div>
        </Dialog>
    }
}

/// The gate itself, also part of the launch dialog.
#[component]
pub fn Gate(
    /// The project.
    project: Arc<Project>,
    /// What it brings, once known.
    #[prop(into)]
    brings: Signal<Brings>,
    /// The box.
    agreed: RwSignal<bool>,
) -> impl IntoView {
    let path = shown(&project.path).into_owned();
    let marks = memo(move || brings.with(|brings| marks(&project, brings)));
    let allows = move || {
        if marks.with(Vec::is_empty) { words::TRUST_ALLOWS_PLAIN } else { words::TRUST_ALLOWS }
    };
    let field = NodeRef::<html::Input>::new();
    let change = move |_| {
        agreed.set(field.get_untracked().is_some_and(|field| field.checked()));
    };
    view! {
        <div class=format!("gate {}", Tone::Warn.class()) data-testid="trust-gate">
            <h3>{symbol("g-triangle", "glyph")} {words::NOT_TRUSTED}</h3>
            <code data-testid="trust-path"><bdi>{path}</bdi></code>
            <p>{allows}</p>
            <ul>
                {dynamic(move || marks
                    .get()
                    .into_iter()
                    .map(|(symbol, text)| view! { <li>{icon(symbol, 16)} <bdi>{shown(&text).into_owned()}</bdi></li> })
                    .collect_view())}
            </ul>
            <label class="check">
                <input type="checkbox" node_ref=field autofocus=true data-testid="trust-box" on:change=change />
                {words::I_TRUST}
            </label>
        </div>
    }
}
