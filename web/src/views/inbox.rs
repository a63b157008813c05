//! The inbox: everything that waits for a person.

use crate::api;
use crate::appear::enter;
use crate::browser;
use crate::model::inbox::{ANSWERED, RequestRef};
use crate::model::job::Group;
use crate::model::problem::Problem;
use crate::model::sections::Section;
use crate::model::shown::shown;
use crate::nav::{Nav, nav};
use crate::page::page;
use crate::parts::icon::symbol;
use crate::reactive::{dynamic, effect, live, memo};
use crate::store::Asked;
use crate::text::page::nav as nav_words;
use crate::text::{direct as words, inbox};
use crate::views::request::RequestCard;
use crate::views::rows::{Rows, any_row};
use crate::views::times::Age;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use svc_shared::Timestamp;
use svc_shared::api::approvals::{Approval, ApprovalList};
use svc_shared::paths;

/// Everything that waits for a person, the oldest first.
#[component]
pub fn Inbox() -> impl IntoView {
    let (page, nav) = (page(), nav());
    enter(words::INBOX);
    let asked = page.store.questions;
    let jobs = memo(move || page.store.jobs_of(&[Group::Waiting]));
    let is_answered = memo(move || nav.member(RequestRef::STATE) == ANSWERED);
    let chosen = memo(move || RequestRef::of(|name| nav.member(name)));
    // A wide screen shows one at once.
    let current = memo(move || {
        let first = || asked.with(|all| all.first().map(Asked::place));
        chosen.get().or_else(|| (!is_answered.get()).then(first).flatten())
    });
    // Jobs that wait have rows of their own below, and no request that could be shown.
    let has_request = memo(move || {
        is_answered.get() || chosen.with(Option::is_some) || !asked.with(Vec::is_empty)
    });
    let count = move || words::waiting(asked.with(Vec::len) + jobs.with(Vec::len));
    view! {
        <Tabs is_answered=is_answered />
        <p class="sr-only" role="status">{live(count)}</p>
        {dynamic(move || {
            if !has_request.get() {
                if !jobs.with(Vec::is_empty) {
                    return ().into_any();
                }
                return view! {
                    <div class="card page-card" data-testid="inbox-empty">
                        <p>{words::EMPTY}</p>
                        <p class="muted">{words::EMPTY_WHY}</p>
                    </div>
                }
                .into_any();
            }
            view! {
                <div class="inbox" class:has-request=live(move || chosen.with(Option::is_some))>
                    <div class="inbox-list">
                        {dynamic(move || match is_answered.get() {
                            true => view! { <Answered current=current /> }.into_any(),
                            false => view! { <Open current=current /> }.into_any(),
                        })}
                    </div>
                    <div class="inbox-request">
                        {dynamic(move || match current.get() {
                            Some(place) => view! { <RequestCard place=place /> }.into_any(),
                            None => view! { <p class="log-empty">{inbox::CHOOSE}</p> }.into_any(),
                        })}
                    </div>
                </div>
            }
            .into_any()
        })}
        {dynamic(move || (!is_answered.get()).then(|| view! {
            <Rows
                title=nav_words::BACKGROUND testid="inbox-jobs" keys=jobs total=jobs
                row=Callback::new(|key| any_row(key, Section::Waiting))
            />
        }))}
    }
}

/// Open or answered.
#[component]
fn Tabs(is_answered: Memo<bool>) -> impl IntoView {
    let (page, nav) = (page(), nav());
    let count = move || page.store.questions.with(Vec::len);
    let go = move |state: &'static str| {
        let none =
            [(RequestRef::STATE, state), (RequestRef::SESSION, ""), (RequestRef::REQUEST, "")];
        nav.set_query(&none, false);
    };
    let pressed = move |of: bool| live(move || (is_answered.get() == of).to_string());
    view! {
        <div class="filters inbox-tabs" role="group" aria-label=inbox::TABS>
            <button type="button" class="filter" aria-pressed=pressed(false) data-testid="inbox-open" on:click=move |_| go("")>
                {inbox::OPEN} " " <span class="num muted">{live(count)}</span>
            </button>
            <button type="button" class="filter" aria-pressed=pressed(true) data-testid="inbox-answered" on:click=move |_| go(ANSWERED)>
                {inbox::ANSWERED}
            </button>
        </div>
    }
}

/// What waits.
#[component]
fn Open(current: Memo<Option<RequestRef>>) -> impl IntoView {
    let (page, nav) = (page(), nav());
    let asked = page.store.questions;
    view! {
        <ul class="card inbox-items" aria-label=inbox::LIST data-testid="inbox-items">
            <For
                each=move || asked.get()
                key=|one| (one.id.clone(), one.asked.request_id.clone())
                children=move |one| {
                    let tool = one.asked.tool.clone().unwrap_or_else(|| one.asked.subtype.clone());
                    let item = Item {
                        place: one.place(),
                        project: one.project,
                        tool,
                        summary: one.asked.summary,
                        since: one.asked.since,
                        outcome: None,
                    };
                    item.view(nav, current)
                }
            />
        </ul>
    }
}

/// The last ones that are over.
#[component]
fn Answered(current: Memo<Option<RequestRef>>) -> impl IntoView {
    let (page, nav) = (page(), nav());
    let found: RwSignal<Option<Result<Arc<Vec<Approval>>, Problem>>> = RwSignal::new(None);
    effect(move || {
        // Whatever does not wait any more is in this list.
        page.store.questions.track();
        spawn_local(async move {
            let path = format!("{}?state={ANSWERED}", paths::APPROVALS);
            let read = api::get::<ApprovalList>(&path).await;
            found.try_set(Some(read.map(|list| Arc::new(list.approvals))));
        });
    });
    let item = move |one: &Approval| {
        let item = Item {
            place: RequestRef {
                session: one.instance_id.as_ref().map(ToString::to_string),
                request: one.request_id.clone(),
            },
            project: one.project.clone(),
            tool: one.tool.clone().unwrap_or_else(|| one.subtype.clone()),
            summary: one.summary.clone(),
            since: one.answered_at.unwrap_or(one.since),
            outcome: one.decision.as_deref().map(inbox::outcome_word),
        };
        item.view(nav, current)
    };
    view! {
        {dynamic(move || match found.get() {
            None => view! { <p class="log-empty" aria-busy="true">{inbox::LOADING}</p> }.into_any(),
            Some(Err(problem)) => {
                view! { <p class="log-empty" role="alert">{problem.words()}</p> }.into_any()
            }
            Some(Ok(list)) if list.is_empty() => {
                view! { <p class="log-empty" data-testid="none-answered">{inbox::NONE_ANSWERED}</p> }.into_any()
            }
            Some(Ok(list)) => {
                let items = list.iter().map(item).collect_view();
                view! { <ul class="card inbox-items" aria-label=inbox::LIST data-testid="inbox-items">{items}</ul> }.into_any()
            }
        })}
    }
}

/// One line of a list.
struct Item {
    place: RequestRef,
    project: String,
    tool: String,
    summary: String,
    since: Timestamp,
    outcome: Option<&'static str>,
}

impl Item {
    fn view(self, nav: Nav, current: Memo<Option<RequestRef>>) -> AnyView {
        let place = StoredValue::new(self.place.clone());
        let href = browser::href(&self.place.path());
        let is_current = memo(move || current.with(|now| now.as_ref() == Some(&place.get_value())));
        let since = self.since;
        let choose = move |event: web_sys::MouseEvent| {
            if event.ctrl_key() || event.meta_key() || event.shift_key() {
                return; // the browser opens the link elsewhere
            }
            event.prevent_default();
            place.with_value(|place| nav.set_query(&place.members(), false));
            browser::after_paint(|| {
                browser::focus(".request");
            });
        };
        view! {
            <li>
                <a
                    class="inbox-item"
                    href=href
                    aria-current=live(move || is_current.get().then_some("true"))
                    data-testid="inbox-item"
                    data-request=self.place.request.clone()
                    on:click=choose
                >
                    {symbol("g-question", "glyph tone-warn")}
                    <span class="inbox-what">
                        <b><bdi>{shown(&self.project).into_owned()}</bdi></b>
                        <span class="muted">
                            {shown(&self.tool).into_owned()} {self.outcome.map(|word| format!(" · {word}"))}
                        </span>
                        <span class="inbox-summary">{shown(&self.summary).into_owned()}</span>
                    </span>
                    <span class="muted num"><Age since=Signal::derive(move || since) /></span>
                </a>
            </li>
        }
        .into_any()
    }
}
