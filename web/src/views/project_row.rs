//! One project in the list.

use crate::act::TrustGate;
use crate::app::page;
use crate::browser;
use crate::dom::prelude::*;
use crate::model::find::Needle;
use crate::model::launch::Choice;
use crate::model::shown::shown;
use crate::model::status::Tone;
use crate::parts::button::{ActButton, Look};
use crate::parts::icon::{glyph, icon, symbol};
use crate::parts::reactive::{Cached, derived, dynamic, live, memo};
use crate::parts::window::Listed;
use crate::shell::nav::nav;
use crate::text::{launch, page::projects as words, session::named, status::rollup};
use svc_shared::status::TrustState;

/// A row; nothing when the record is gone.
#[component]
pub fn ProjectRow(
    /// Project name.
    name: String,
) -> impl IntoView {
    let page = page();
    let nav = nav();
    let Some(record) = page.store.project(&name) else {
        return ().into_any();
    };
    let project = derived(move || record.get());
    let is_trusted = memo(move || project.get().trust_state.is(&TrustState::Trusted));
    let path = memo(move || shown(&project.get().path).into_owned());
    let label = shown(&name).into_owned();
    let href = browser::project_href(&name);
    let title = {
        let label = label.clone();
        move || {
            let needle = Needle::new(&nav.member("q"));
            needle
                .split(&label)
                .into_iter()
                .map(|(piece, hit)| {
                    let piece = piece.to_owned();
                    if hit { view! { <mark>{piece}</mark> }.into_any() } else { piece.into_any() }
                })
                .collect_view()
        }
    };
    let key = StoredValue::new(name.clone());
    let open = move |_| nav.open_launch(&key.get_value(), &Choice::default());
    let launch_name = named(launch::LAUNCH, &label);
    let ask = Callback::new(move |()| {
        page.trust_gate.set(Some(TrustGate::Project(key.get_value())));
    });
    let trust_name = named(launch::TRUST_DOTS, &label);
    let is_pending = derived(move || page.pending.has(&key.get_value()));
    let listed = expect_context::<Listed>().0;
    let position = live(move || {
        let at = listed.with(|names| names.iter().position(|name| *name == key.get_value()));
        at.map_or(0, |at| at + 1).to_string()
    });
    let size = live(move || listed.with(Vec::len).to_string());
    view! {
        <li
            class="project"
            data-testid="project-row"
            data-project=name
            aria-posinset=position
            aria-setsize=size
            data-trust=live(move || project.get().trust_state.to_string())
        >
            <TrustMark is_trusted=is_trusted />
            <div class="project-text">
                <div class="row-line">
                    <a class="name" href=href><bdi>{title}</bdi></a> <Marks project=project />
                </div>
                <span class="path"><bdi>{path.live()}</bdi></span>
            </div>
            <Rollup project=key />
            <div class="project-actions">
                {dynamic(move || (!is_trusted.get()).then(|| view! {
                    <ActButton
                        label=launch::TRUST_DOTS name=trust_name.clone() on_act=ask look=Look::Ghost
                        is_pending=is_pending testid="act-trust"
                    />
                }))}
                <button
                    type="button"
                    class=Look::Soft.class()
                    aria-label=launch_name
                    data-testid="act-launch"
                    on:click=open
                >
                    {icon("play", 16)} {launch::LAUNCH}
                </button>
            </div>
        </li>
    }
    .into_any()
}

/// Whether the folder is trusted, as a sign with its word for those who do not see it.
#[component]
pub fn TrustMark(
    /// Whether it is.
    is_trusted: Cached<bool>,
) -> impl IntoView {
    view! {
        {dynamic(move || {
            let (shape, word, tone) = if is_trusted.get() {
                ("g-shield-ok", words::TRUSTED, Tone::Ok)
            } else {
                ("g-shield", words::NOT_TRUSTED, Tone::Neutral)
            };
            view! {
                <span class=tone.class() title=word>
                    {symbol(shape, "glyph")} <span class="sr-only">{word}</span>
                </span>
            }
        })}
    }
}

/// What lies in the folder.
#[component]
pub fn Marks(
    /// The record.
    project: Signal<std::sync::Arc<svc_shared::api::projects::Project>>,
) -> impl IntoView {
    let marks = memo(move || {
        let project = project.get();
        let mut marks: Vec<String> = Vec::new();
        let mut mark = |is: bool, word: &str| {
            if is {
                marks.push(word.to_owned());
            }
        };
        mark(project.is_git_repo, words::IS_GIT);
        mark(project.has_claude_md, words::HAS_CLAUDE_MD);
        mark(project.has_claude_dir, words::HAS_CLAUDE_DIR);
        if let Some(of) = &project.alias_of {
            marks.push(words::alias(of.as_str()));
        }
        marks
    });
    let is_trusted = memo(move || project.get().trust_state.is(&TrustState::Trusted));
    view! {
        {dynamic(move || marks.get().into_iter().map(|mark| view! { <span class="chip">{mark}</span> }).collect_view())}
        {dynamic(move || (!is_trusted.get()).then(|| view! {
            <span class="below only-wide" aria-hidden="true">{words::NOT_TRUSTED}</span>
        }))}
    }
}

#[component]
fn Rollup(project: StoredValue<String>) -> impl IntoView {
    let page = page();
    let parts = memo(move || {
        let all = page.store.rollups.get();
        all.get(&project.get_value()).map(crate::model::projects::Rollup::parts).unwrap_or_default()
    });
    view! {
        <div class="rollup" data-testid="rollup">
            {dynamic(move || {
                let parts = parts.get();
                if parts.is_empty() {
                    return view! { <span class="muted">{rollup::NONE}</span> }.into_any();
                }
                parts
                    .into_iter()
                    .map(|(shape, tone, words)| view! { <span class=tone.class()>{glyph(shape)} {words}</span> })
                    .collect_view()
                    .into_any()
            })}
        </div>
    }
}
