//! The page of one project: what runs there, what ended, what happened.

use crate::act::TrustGate;
use crate::appear::enter;
use crate::browser;
use crate::model::job::Group;
use crate::model::launch::Choice;
use crate::model::sections::Section;
use crate::model::shown::shown;
use crate::nav::nav;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::reactive::{derived, dynamic, memo};
use crate::store::EXTERNAL;
use crate::text::page::{home, nav as nav_words, project as words, projects};
use crate::text::{
    agent_config, changes, conversation, instructions, job as job_words, launch, past,
    planned as planned_words, session::named,
};
use crate::views::act_button::ActButton;
use crate::views::activity::Timeline;
use crate::views::changes::ChangesPanel;
use crate::views::conversations::Conversations;
use crate::views::copy::Copyable;
use crate::views::home::{Loading, section_rows};
use crate::views::instructions::InstructionsEditor;
use crate::views::project_row::{Marks, TrustMark};
use crate::views::rows::Rows;
use crate::views::tabs::{self, Tab, Tabs};
use crate::views::worktrees::ProjectWorktrees;
use leptos::prelude::*;
use svc_shared::paths;
use svc_shared::status::TrustState;

const TALKS: Tab = Tab {
    value: "conversations",
    id: "tab-conversations",
    symbol: "list",
    label: conversation::TITLE,
};

const INSTRUCTIONS: Tab = Tab {
    value: "instructions",
    id: "tab-instructions",
    symbol: "pencil",
    label: instructions::LABEL,
};

const TABS: &[Tab] = &[
    Tab { value: "", id: "tab-sessions", symbol: "layers", label: projects::SESSIONS },
    TALKS,
    INSTRUCTIONS,
    Tab { value: "activity", id: "tab-activity", symbol: "activity", label: past::TITLE },
];

/// The same with what changed in a repository.
const GIT_TABS: &[Tab] = &[
    Tab { value: "", id: "tab-sessions", symbol: "layers", label: projects::SESSIONS },
    TALKS,
    Tab { value: "changes", id: "tab-changes", symbol: "branch", label: changes::LABEL },
    Tab { value: "worktrees", id: "tab-worktrees", symbol: "folder", label: changes::tree::LABEL },
    INSTRUCTIONS,
    Tab { value: "activity", id: "tab-activity", symbol: "activity", label: past::TITLE },
];

/// The view.
#[component]
pub fn ProjectPage(
    /// Its name.
    name: String,
) -> impl IntoView {
    let page = page();
    enter(shown(&name).into_owned());
    let name = StoredValue::new(name);
    let is_known = memo(move || {
        let is_there = page.store.has_project(&name.get_value());
        page.store.is_loaded.get().then_some(is_there)
    });
    view! {
        {dynamic(move || match is_known.get() {
            None => view! { <h1 tabindex="-1" class="sr-only">{page.view}</h1> <Loading /> }.into_any(),
            Some(true) => view! { <Known name=name.get_value() /> }.into_any(),
            Some(false) => view! {
                <div class="card page-card" data-testid="not-found">
                    <h1 tabindex="-1">{launch::no_project(&shown(&name.get_value()))}</h1>
                    <a class="btn btn-secondary" href=browser::href("/ui/projects")>{home::ALL_PROJECTS}</a>
                </div>
            }.into_any(),
        })}
    }
}

#[component]
fn Known(name: String) -> impl IntoView {
    let page = page();
    let nav = nav();
    let Some(record) = page.store.project(&name) else {
        return ().into_any();
    };
    let project = derived(move || record.get());
    let is_trusted = memo(move || project.get().trust_state.is(&TrustState::Trusted));
    let label = shown(&name).into_owned();
    let path = project.get_untracked().path.clone();
    let key = StoredValue::new(name.clone());
    let all = if project.get_untracked().is_git_repo { GIT_TABS } else { TABS };
    let at = tabs::chosen(all);
    let open = move |_| nav.open_launch(&key.get_value(), &Choice::default());
    let ask = Callback::new(move |()| {
        page.trust_gate.set(Some(TrustGate::Project(key.get_value())));
    });
    let is_pending = derived(move || page.pending.has(&key.get_value()));
    let can_configure =
        memo(move || page.live.basics.with(|b| b.as_ref().is_some_and(|b| b.can_configure)));
    view! {
        <article class="session-view" data-testid="project" data-project=name>
            <div class="session-head">
                <div class="session-line">
                    <h1 tabindex="-1"><bdi>{label.clone()}</bdi></h1>
                    <span class="trust-word"><TrustMark is_trusted=is_trusted is_said=true /></span> <Marks project=project />
                    <div class="end">
                        {dynamic(move || (!is_trusted.get()).then(|| view! {
                            <ActButton
                                label=launch::TRUST_DOTS name=named(launch::TRUST_DOTS, &key.get_value()) on_act=ask
                                is_pending=is_pending testid="act-trust"
                            />
                        }))}
                        <button
                            type="button"
                            class=ButtonStyle::Primary.class()
                            aria-label=named(launch::LAUNCH, &label)
                            data-testid="act-launch"
                            on:click=open
                        >
                            {icon("play", 16)} {launch::LAUNCH}
                        </button>
                    </div>
                </div>
                <div class="session-line session-facts">
                    <Copyable shown=shown(&path) full=path.as_str() what=words::PATH />
                    {dynamic(move || can_configure.get().then(|| view! {
                        <a
                            class="btn btn-ghost" data-testid="agent-config-link"
                            href=browser::href(&key.with_value(|name| format!("/ui/agent-config?project={}", paths::segment(name))))
                        >{icon("sliders", 16)} {agent_config::LINK}</a>
                    }))}
                </div>
            </div>
            <Tabs tabs=all at=at label=nav_words::PROJECTS />
            {dynamic(move || {
                let tab = all.get(at.get());
                let panel = match tab.map_or("", |tab| tab.value) {
                    "changes" => view! { <ChangesPanel path=paths::changes_of_project(&key.get_value(), None) /> }.into_any(),
                    "worktrees" => view! { <ProjectWorktrees project=key.get_value() /> }.into_any(),
                    "instructions" => view! { <InstructionsEditor project=key.get_value() is_trusted=is_trusted /> }.into_any(),
                    "conversations" => view! { <Conversations project=key.get_value() /> }.into_any(),
                    "activity" => view! { <Timeline about=key.get_value() kind="project" /> }.into_any(),
                    _ => view! { <Sessions name=key.get_value() /> }.into_any(),
                };
                let named = tab.map(|tab| tab.id);
                view! { <div class="panel" role="tabpanel" id="panel" aria-labelledby=named>{panel}</div> }
            })}
        </article>
    }
    .into_any()
}

#[component]
fn Sessions(name: String) -> impl IntoView {
    let page = page();
    let name = StoredValue::new(name);
    let of = move |section: Option<Section>, group: Option<Group>| {
        memo(move || name.with_value(|name| page.store.rows_of(name, section, group)))
    };
    let waiting = of(Some(Section::Waiting), Some(Group::Waiting));
    let look = of(Some(Section::NeedsLook), Some(Group::NeedsLook));
    let running = of(Some(Section::Live), Some(Group::Live));
    let live = memo(move || {
        let mut keys = running.get();
        name.with_value(|name| {
            if !page.store.external_of(name).0.is_empty() {
                keys.push(format!("{EXTERNAL}{name}"));
            }
        });
        keys
    });
    let planned = memo(move || name.with_value(|name| page.store.planned_of(Some(name))));
    let ended = of(Some(Section::Ended), Some(Group::Ended));
    let is_empty = memo(move || {
        [waiting, look, live, planned, ended].iter().all(|keys| keys.with(Vec::is_empty))
    });
    view! {
        <Rows title=job_words::WAITING testid="section-waiting" keys=waiting total=waiting row=section_rows(Section::Waiting) />
        <Rows title=home::NEEDS_LOOK testid="section-needs-look" keys=look total=look row=section_rows(Section::NeedsLook) />
        <Rows title=home::LIVE testid="section-live" keys=live total=live row=section_rows(Section::Live) />
        <Rows title=planned_words::TITLE testid="section-planned" keys=planned total=planned row=section_rows(Section::Waiting) />
        <Rows title=home::ENDED testid="section-ended" keys=ended total=ended dense=true row=section_rows(Section::Ended) />
        {dynamic(move || is_empty.get().then(|| view! {
            <div class="card empty" data-testid="project-empty"><p>{words::EMPTY}</p></div>
        }))}
    }
}
