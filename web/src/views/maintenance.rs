//! Maintenance: remote environments that are left over, and their removal.

use crate::api;
use crate::appear::enter;
use crate::browser;
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::wire;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::dialog::Dialog;
use crate::parts::icon::icon;
use crate::reactive::{derived, dynamic, live, memo};
use crate::text::maintenance as words;
use crate::text::session::act;
use crate::views::copy::Copyable;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::collections::{BTreeMap, BTreeSet};
use svc_shared::internal::environments::{Ghost, Ghosts, ReapRequest, Reaped};
use svc_shared::paths;

/// What is asked before a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    Archive,
    Delete,
}

/// The list, what is chosen of it, and what became of it.
#[derive(Clone, Copy)]
struct List {
    found: RwSignal<Option<Result<Ghosts, Problem>>>,
    chosen: RwSignal<BTreeSet<String>>,
    outcomes: RwSignal<BTreeMap<String, String>>,
    problem: RwSignal<Option<Problem>>,
    asks: RwSignal<Option<Asks>>,
    is_pending: RwSignal<bool>,
}

impl List {
    fn new() -> Self {
        Self {
            found: RwSignal::new(None),
            chosen: RwSignal::new(BTreeSet::new()),
            outcomes: RwSignal::new(BTreeMap::new()),
            problem: RwSignal::new(None),
            asks: RwSignal::new(None),
            is_pending: RwSignal::new(false),
        }
    }

    fn scan(self) {
        if self.is_pending.get_untracked() {
            return;
        }
        self.is_pending.set(true);
        self.problem.set(None);
        spawn_local(async move {
            let found = api::get::<Ghosts>(paths::GHOSTS).await;
            // The view may be gone by now.
            if self.is_pending.try_set(false).is_none() {
                self.chosen.set(BTreeSet::new());
                self.outcomes.set(BTreeMap::new());
                self.found.set(Some(found));
            }
        });
    }

    fn remove(self, what: Asks) {
        if self.is_pending.get_untracked() {
            return;
        }
        self.asks.set(None);
        self.is_pending.set(true);
        self.problem.set(None);
        let (action, confirm, done) = match what {
            Asks::Archive => ("archive", "archive", words::ARCHIVED),
            Asks::Delete => ("delete", "DELETE", words::DELETED),
        };
        let ids = self.chosen.with_untracked(|chosen| chosen.iter().cloned().collect());
        let body = wire::written(&ReapRequest {
            action: action.to_owned(),
            ids,
            confirm: confirm.to_owned(),
        });
        spawn_local(async move {
            let answer = api::request(Method::POST, paths::REAP, Some(body), None).await;
            if self.is_pending.try_set(false).is_some() {
                return; // the view is gone
            }
            match api::understood::<Reaped>(answer) {
                Ok(reaped) => {
                    self.chosen.set(BTreeSet::new());
                    self.outcomes.update(|all| {
                        all.extend(reaped.reaped.into_iter().map(|id| (id, done.to_owned())));
                        let skipped = reaped.skipped.into_iter();
                        all.extend(skipped.map(|id| (id, words::SKIPPED.to_owned())));
                        let failed = reaped.errors.into_iter();
                        all.extend(failed.map(|(id, why)| (id, words::failed(&shown(&why)))));
                    });
                }
                Err(problem) => self.problem.set(Some(problem)),
            }
        });
    }

    fn choose(self, id: String, is_chosen: bool) {
        self.chosen.update(|chosen| {
            if is_chosen {
                chosen.insert(id)
            } else {
                chosen.remove(&id)
            };
        });
    }
}

/// The view.
#[component]
pub fn Maintenance() -> impl IntoView {
    let page = page();
    enter(words::TITLE);
    let list = List::new();
    let is_on = memo(move || page.live.basics.with(|b| b.as_ref().map(|b| b.can_reap)));
    view! {
        <section aria-labelledby="environments" data-testid="environments">
            <div class="section-head"><h2 id="environments">{words::ENVIRONMENTS}</h2></div>
            <p class="muted">{words::WHAT} " " {words::PROTECTED}</p>
            {dynamic(move || match is_on.get() {
                None => ().into_any(),
                Some(false) => view! {
                    <p>{words::OFF}</p>
                    <p class="command"><Copyable shown=words::COMMAND full=words::COMMAND what=words::COMMAND_WORD /></p>
                }.into_any(),
                Some(true) => view! { <Leftovers list=list /> }.into_any(),
            })}
        </section>
        <p class="muted below"><a href=browser::href("/ui/doctor")>{words::OTHERS}</a></p>
    }
}

#[component]
fn Leftovers(list: List) -> impl IntoView {
    list.scan();
    let count = memo(move || list.chosen.with(BTreeSet::len));
    let problem = move |problem: &Problem| {
        view! {
            <p class="strip tone-danger" role="alert" data-testid="environments-problem">
                <bdi>{shown(&problem.words()).into_owned()}</bdi>
            </p>
        }
    };
    let act = move |what: Asks, style: ButtonStyle, testid: &'static str| {
        let label = move || match what {
            Asks::Archive => words::archive(count.get()),
            Asks::Delete => words::delete(count.get()),
        };
        let press = move |_| {
            if count.get_untracked() > 0 {
                list.asks.set(Some(what));
            }
        };
        let is_idle = move || count.get() == 0 || list.is_pending.get();
        view! {
            <button
                type="button" class=style.class() data-testid=testid aria-haspopup="dialog"
                aria-disabled=live(move || is_idle().then_some("true")) on:click=press
            >{live(label)}</button>
        }
    };
    view! {
        <div class="toolbar">
            <button
                type="button" class=ButtonStyle::Secondary.class() data-testid="environments-scan"
                aria-disabled=live(move || list.is_pending.get().then_some("true"))
                on:click=move |_| list.scan()
            >{icon("refresh", 16)} {words::SCAN}</button>
            {act(Asks::Archive, ButtonStyle::Secondary, "environments-archive")}
            {act(Asks::Delete, ButtonStyle::Ghost, "environments-delete")}
            <span class="muted" role="status">
                {dynamic(move || list.is_pending.get().then_some(words::SCANNING))}
            </span>
        </div>
        {dynamic(move || list.problem.get().map(|found| problem(&found)))}
        {dynamic(move || match list.found.get() {
            None => ().into_any(),
            Some(Err(found)) => problem(&found).into_any(),
            Some(Ok(found)) => table(list, &found),
        })}
        {dynamic(move || list.asks.get().map(|what| view! { <Question list=list what=what /> }))}
    }
}

fn table(list: List, found: &Ghosts) -> AnyView {
    let summary = words::count(found.ghosts.len(), found.total, found.live_dirs);
    if found.ghosts.is_empty() {
        return view! {
            <p class="card none muted" data-testid="environments-none">{words::NONE}</p>
            <p class="muted below">{summary}</p>
        }
        .into_any();
    }
    let rows: Vec<_> = found.ghosts.iter().map(|one| row(list, one)).collect();
    let all: BTreeSet<String> =
        found.ghosts.iter().map(|one| one.environment_ref.to_string()).collect();
    let length = all.len();
    let choose_all = move |event| {
        let is_chosen = event_target_checked(&event);
        list.chosen.set(if is_chosen { all.clone() } else { BTreeSet::new() });
    };
    let is_all = live(move || list.chosen.with(BTreeSet::len) == length);
    view! {
        <table class="card grid-table environments">
            <thead><tr>
                <th scope="col"><input type="checkbox" aria-label=words::CHOOSE_ALL prop:checked=is_all data-testid="environments-all" on:change=choose_all /></th>
                <th scope="col">{words::DIRECTORY}</th>
                <th scope="col">{words::NAME}</th>
                <th scope="col">{words::REF}</th>
                <th scope="col">{words::OUTCOME}</th>
            </tr></thead>
            <tbody>{rows}</tbody>
        </table>
        <p class="muted below">{summary}</p>
    }
    .into_any()
}

fn row(list: List, ghost: &Ghost) -> AnyView {
    let id = StoredValue::new(ghost.environment_ref.to_string());
    let outcome =
        derived(move || id.with_value(|id| list.outcomes.with(|all| all.get(id).cloned())));
    let directory = shown(&ghost.directory).into_owned();
    view! {
        <tr data-testid="environment" data-ref=id.get_value()>
            <td>{dynamic({
                let name = words::choose(&directory);
                move || outcome.with(Option::is_none).then(|| view! {
                    <input
                        type="checkbox" aria-label=name.clone() data-testid="environment-choose"
                        prop:checked=live(move || id.with_value(|id| list.chosen.with(|all| all.contains(id))))
                        on:change=move |event| list.choose(id.get_value(), event_target_checked(&event))
                    />
                })
            })}</td>
            <th scope="row" data-label=words::DIRECTORY><bdi>{directory.clone()}</bdi></th>
            <td data-label=words::NAME><bdi>{shown(&ghost.name).into_owned()}</bdi></td>
            <td data-label=words::REF><code>{id.get_value()}</code></td>
            <td data-label=words::OUTCOME data-testid="environment-outcome">{live(move || outcome.get())}</td>
        </tr>
    }
    .into_any()
}

#[component]
fn Question(list: List, what: Asks) -> impl IntoView {
    let count = list.chosen.with_untracked(BTreeSet::len);
    let typed = RwSignal::new(String::new());
    let close = Callback::new(move |()| list.asks.set(None));
    let is_ready = move || what == Asks::Archive || typed.with(|typed| typed.trim() == "DELETE");
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        if untrack(is_ready) {
            list.remove(what);
        }
    };
    let (title, text, verb, style) = match what {
        Asks::Archive => (
            words::ENVIRONMENTS,
            words::archive_question(count),
            words::ARCHIVE,
            ButtonStyle::Primary,
        ),
        Asks::Delete => {
            (words::DELETE_TITLE, words::delete_question(count), words::DELETE, ButtonStyle::Danger)
        }
    };
    view! {
        <Dialog title=title.to_owned() on_close=close testid="environments-question">
            <form on:submit=submit>
                <div class="dialog-body">
                    <p class="wide">{text}</p>
                    {(what == Asks::Delete).then(|| view! {
                        <label for="type-delete">{words::TYPE}</label>
                        <input
                            class="input" id="type-delete" autocomplete="off" autofocus=true
                            autocapitalize="off" data-testid="environments-typed"
                            on:input=move |event| typed.set(event_target_value(&event))
                        />
                    })}
                </div>
                <div class="dialog-foot">
                    <span class="says"></span>
                    <button type="button" class=ButtonStyle::Secondary.class() on:click=move |_| close.run(())>{act::CANCEL}</button>
                    <button
                        type="submit" class=style.class() data-testid="environments-yes"
                        aria-disabled=live(move || (!is_ready()).then_some("true"))
                    >{verb}</button>
                </div>
            </form>
        </Dialog>
    }
}
