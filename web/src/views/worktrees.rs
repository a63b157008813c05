//! The git worktrees of a project, and the one that an ended session left.

use crate::api;
use crate::browser;
use crate::model::outcome::{Level, Notice};
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::reactive::{derived, dynamic, effect, live, memo};
use crate::text::changes::tree as words;
use crate::text::session::named;
use crate::views::act_button::ActButton;
use crate::views::row::fact;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use svc_shared::api::instances::Instance;
use svc_shared::internal::changes::{RemoveWorktree, RemovedWorktree, Worktree, Worktrees};
use svc_shared::paths;

/// What came of a reading.
#[derive(Debug, Clone, PartialEq)]
enum Reading {
    Under,
    Done(Worktrees),
    Failed(Problem),
}

/// Reads the worktrees of a project.
#[derive(Clone, Copy)]
struct Reader {
    project: StoredValue<String>,
    found: RwSignal<Reading>,
}

impl Reader {
    fn of(project: String) -> Self {
        Self { project: StoredValue::new(project), found: RwSignal::new(Reading::Under) }
    }

    fn reload(self) {
        let path = paths::project_action(&self.project.get_value(), "worktrees");
        spawn_local(async move {
            self.found.try_set(match api::get::<Worktrees>(&path).await {
                Ok(found) => Reading::Done(found),
                Err(problem) => Reading::Failed(problem),
            });
        });
    }

    /// Removes one. `loses` is what the person saw and confirmed.
    fn remove(self, name: String, loses: Vec<String>) {
        let page = page();
        let path = paths::remove_worktree(&self.project.get_value(), &name);
        let confirm = (!loses.is_empty()).then(|| name.clone());
        let request = RemoveWorktree { confirm, loses: Some(loses) };
        let body = serde_json::to_string(&request).ok();
        spawn_local(async move {
            let answer = api::request(Method::POST, &path, body, None).await;
            let notice = match api::understood::<RemovedWorktree>(answer) {
                Ok(removed) => {
                    let kept = removed.kept_branch.map(|branch| words::kept_branch(&branch));
                    let left = removed.files_left.map(|place| words::files_left(&place));
                    let level = if left.is_some() { Level::Warning } else { Level::Success };
                    let text: Vec<String> = left.into_iter().chain(kept).collect();
                    Notice::new(level, words::removed(&name), text.join(" "))
                }
                Err(problem) => {
                    Notice::new(Level::Danger, words::not_removed(&name), problem.words())
                }
            };
            page.say.notice(notice);
            self.reload();
        });
    }
}

/// All worktrees of a project.
#[component]
pub fn ProjectWorktrees(
    /// Its name.
    project: String,
) -> impl IntoView {
    let page = page();
    let reader = Reader::of(project);
    // A session that came, went or ended has changed what is in use.
    effect(move || {
        page.store.places.track();
        reader.reload();
    });
    // The same list again is not drawn anew: a question that is open stays.
    let found = memo(move || reader.found.get());
    view! {
        <section class="worktrees" aria-label=words::LABEL data-testid="worktrees">
            {dynamic(move || match found.get() {
                Reading::Under => view! { <p class="log-empty" aria-busy="true">{words::LOADING}</p> }.into_any(),
                Reading::Failed(problem) => view! {
                    <p class="strip tone-danger" role="alert">{problem.words()}</p>
                }.into_any(),
                Reading::Done(found) if found.worktrees.is_empty() => view! {
                    <div class="card empty"><p>{words::NONE}</p></div>
                }.into_any(),
                Reading::Done(found) => view! {
                    <ul class="card list plain">
                        {found.worktrees.iter().map(|one| view! {
                            <li class="worktree" data-testid="worktree" data-name=one.name.clone()>
                                {described(one, true)} <Removal reader=reader one=one.clone() />
                            </li>
                        }).collect_view()}
                    </ul>
                    {found.truncated.then(|| view! { <p class="changes-note">{words::TRUNCATED}</p> })}
                }.into_any(),
            })}
        </section>
    }
}

/// The worktree that an ended session left, with the way to remove it.
#[component]
pub fn LeftWorktree(
    /// The record.
    bridge: Signal<Arc<Instance>>,
) -> impl IntoView {
    let reader = Reader::of(bridge.get_untracked().project.clone());
    let name = memo(move || {
        let bridge = bridge.get();
        (!bridge.is_live()).then(|| bridge.worktree_name.clone()).flatten()
    });
    effect(move || {
        if name.get().is_some() {
            reader.reload();
        }
    });
    let left = memo(move || {
        let name = name.get()?;
        let Reading::Done(found) = reader.found.get() else { return None };
        found.worktrees.into_iter().find(|one| one.name == name)
    });
    dynamic(move || {
        let one = left.get()?;
        Some(view! {
            <section class="card worktree" aria-label=words::LABEL data-testid="left-worktree">
                <div class="worktree-text"><p>{words::STAYS}</p> {described(&one, false)}</div>
                <Removal reader=reader one=one />
            </section>
        })
    })
}

/// Name, branch and what is in it.
fn described(one: &Worktree, with_link: bool) -> AnyView {
    let name = shown(&one.name).into_owned();
    let href = one.instance_id.as_ref().filter(|_| with_link);
    let name = match href {
        Some(id) => {
            let href = browser::session_href(id.as_str());
            view! { <a class="name" href=href><bdi>{name}</bdi></a> }.into_any()
        }
        None => view! { <b class="name"><bdi>{name}</bdi></b> }.into_any(),
    };
    let mut facts = Vec::new();
    facts.extend(one.branch.as_deref().map(|branch| shown(branch).into_owned()));
    if one.in_use {
        facts.push(words::IN_USE.to_owned());
    }
    facts.extend(one.problem.as_deref().map(|problem| shown(problem).into_owned()));
    facts.extend(one.changed.map(|files| match files {
        0 => words::CLEAN.to_owned(),
        files => words::changed(files),
    }));
    if let (Some(ahead), Some(base)) = (one.ahead, &one.base) {
        facts.push(words::ahead(ahead, base));
    }
    if one.locked {
        facts.push(words::LOCKED.to_owned());
    }
    facts.extend(one.size_bytes.map(words::size));
    view! {
        <div class="worktree-facts">
            {icon("branch", 16)} {name}
            <span class="facts">{facts.iter().map(|text| fact(text)).collect_view()}</span>
        </div>
    }
    .into_any()
}

/// The button, and the question in its place.
#[component]
fn Removal(reader: Reader, one: Worktree) -> impl IntoView {
    let asks = RwSignal::new(false);
    let typed = RwSignal::new(String::new());
    let name = StoredValue::new(one.name.clone());
    let reason = one.in_use.then(|| words::RUNS.to_owned()).or(one.problem.clone());
    let reason = derived(move || reason.clone());
    let lost = StoredValue::new(one.loses);
    let must_type = !lost.with_value(Vec::is_empty);
    let may_go = memo(move || !must_type || typed.get().trim() == name.get_value());
    let focus = move |what: &'static str| {
        browser::after_paint(move || {
            browser::focus(what);
        });
    };
    let ask = Callback::new(move |()| {
        typed.set(String::new());
        asks.set(true);
        focus(if must_type {
            "[data-testid=worktree-name]"
        } else {
            "[data-testid=worktree-keep]"
        });
    });
    let keep = move || {
        asks.set(false);
        focus("[data-testid=act-remove-worktree]");
    };
    let go = move || {
        if may_go.get_untracked() {
            asks.set(false);
            reader.remove(name.get_value(), lost.get_value());
        }
    };
    let keys = move |event: web_sys::KeyboardEvent| match event.key().as_str() {
        "Escape" => {
            event.prevent_default();
            keep();
        }
        "Enter" if must_type => go(),
        _ => {}
    };
    let question = move || {
        let name = name.get_value();
        let text = lost.with_value(|lost| match lost.is_empty() {
            true => format!("{}?", named(words::REMOVE, &name)),
            false => words::loses(&name, lost),
        });
        view! {
            <div class="confirm worktree-ask" role="group" aria-label=text.clone() on:keydown=keys>
                <span class="confirm-text">{shown(&text).into_owned()}</span>
                {must_type.then(|| view! {
                    <input
                        type="text"
                        class="field-box"
                        aria-label=words::type_name(&name)
                        placeholder=name.clone()
                        autocomplete="off"
                        data-testid="worktree-name"
                        prop:value=typed
                        on:input=move |event| typed.set(event_target_value(&event))
                    />
                })}
                <button
                    type="button"
                    class=ButtonStyle::Danger.class()
                    aria-disabled=live(move || (!may_go.get()).then_some("true"))
                    data-testid="worktree-yes"
                    on:click=move |_| go()
                >
                    {words::REMOVE}
                </button>
                <button type="button" class=ButtonStyle::Secondary.class() data-testid="worktree-keep" on:click=move |_| keep()>
                    {words::CANCEL}
                </button>
            </div>
        }
        .into_any()
    };
    view! {
        <div class="end">
            {dynamic(move || if asks.get() {
                question()
            } else {
                view! {
                    <ActButton
                        label=words::REMOVE_DOTS name=derived(move || named(words::REMOVE_DOTS, &name.get_value()))
                        on_act=ask reason=reason testid="act-remove-worktree"
                    />
                }.into_any()
            })}
        </div>
    }
}
