//! One project in the list.

use crate::act::TrustGate;
use crate::browser;
use crate::model::find::Needle;
use crate::model::launch::Choice;
use crate::model::prefs::{Change, FAVOURITES};
use crate::model::projects::readiness;
use crate::model::shown::shown;
use crate::model::status::Tone;
use crate::nav::{Nav, nav};
use crate::page::{Page, page};
use crate::parts::button::ButtonStyle;
use crate::parts::icon::{glyph, icon, symbol};
use crate::parts::menu::{Does, Entry, Menu};
use crate::parts::window::Listed;
use crate::reactive::{derived, dynamic, live, memo};
use crate::text::{agent_config, launch, page::projects as words, session::named, status::rollup};
use crate::views::act_button::ActButton;
use crate::views::copy::copy;
use crate::views::projects::Chosen;
use crate::views::times::When;
use leptos::prelude::*;
use svc_shared::Timestamp;
use svc_shared::api::projects::Project;
use svc_shared::paths::segment;
use svc_shared::status::TrustState;
use wasm_bindgen::JsCast;
use web_sys::{Element, Event, KeyboardEvent, MouseEvent};

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
    let key = StoredValue::new(name.clone());
    let listed = expect_context::<Listed>();
    let chosen = expect_context::<Chosen>();
    let is_chosen = memo(move || key.with_value(|key| chosen.has(key)));
    // A click on what does nothing by itself selects.
    let click = move |event: MouseEvent| {
        if !is_control(&event) {
            chosen.toggle(&key.get_value(), event.shift_key());
        }
    };
    let press = move |event: KeyboardEvent| {
        let pressed = event.key();
        let does = page.prefs.with_untracked(|prefs| match prefs.are_letters_on() {
            true => prefs.letter_of(&pressed).to_owned(),
            false => String::new(),
        });
        if matches!(does.as_str(), "x" | "X")
            && !(event.ctrl_key() || event.meta_key() || event.alt_key())
        {
            event.prevent_default();
            chosen.toggle(&key.get_value(), does == "X");
        }
    };
    let title = marked(nav, label.clone());
    let path_marked = dynamic(move || marked(nav, path.get())());
    view! {
        <li
            class="project"
            class:chosen=move || is_chosen.get()
            data-testid="project-row"
            data-row=format!("project:{name}")
            data-project=name.clone()
            aria-posinset=live(move || key.with_value(|key| listed.place(key)).to_string())
            aria-setsize=live(move || listed.size().to_string())
            data-trust=live(move || project.get().trust_state.to_string())
            on:click=click
            on:keydown=press
        >
            <Star name=key label=label.clone() />
            <TrustMark is_trusted=is_trusted />
            <div class="project-text">
                <div class="row-line">
                    <a class="name" href=browser::project_href(&name)><bdi>{title}</bdi></a>
                    {dynamic(move || is_chosen.get().then(|| view! { <span class="sr-only">{words::SELECTED}</span> }))}
                    <Marks project=project is_trusted=is_trusted />
                </div>
                <span class="path only-desk"><bdi>{path_marked}</bdi></span>
                <div class="row-facts only-small">
                    {dynamic(move || (!is_trusted.get()).then(|| view! { <b class="fact">{words::NOT_TRUSTED}</b> }))}
                    <span class="fact num">{last_used(page, key)}</span>
                    {dynamic(move || marks(&project.get()).into_iter().map(|mark| view! { <span class="fact">{mark}</span> }).collect_view())}
                </div>
            </div>
            <Rollup project=key />
            <span class="used num" data-testid="last-used">{last_used(page, key)}</span>
            <div class="project-actions">{actions(page, nav, key, is_trusted)}</div>
        </li>
    }
    .into_any()
}

/// Whether an event comes from something that acts by itself.
fn is_control(event: &Event) -> bool {
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    let control = target.and_then(|target| target.closest("a, button, [role=menu]").ok().flatten());
    control.is_some()
}

/// A text with the hits of the search.
fn marked(nav: Nav, text: String) -> impl Fn() -> AnyView + Send {
    move || {
        let needle = Needle::new(&nav.member("q"));
        let pieces = needle.split(&text).into_iter().map(|(piece, hit)| {
            let piece = piece.to_owned();
            if hit { view! { <mark>{piece}</mark> }.into_any() } else { piece.into_any() }
        });
        pieces.collect_view().into_any()
    }
}

/// The switch that makes a project a favourite.
#[component]
pub fn Star(
    /// Project name.
    name: StoredValue<String>,
    /// The same, as it is shown.
    label: String,
) -> impl IntoView {
    let page = page();
    let is_favourite =
        memo(move || page.prefs.with(|prefs| name.with_value(|name| prefs.has(FAVOURITES, name))));
    let toggle = move |_| {
        let next = !is_favourite.get_untracked();
        page.prefs.change(Change::Item(FAVOURITES, name.get_value(), next));
    };
    view! {
        <button
            type="button"
            class="btn btn-ghost btn-icon star"
            aria-label=named(words::FAVOURITE, &label)
            aria-pressed=live(move || is_favourite.get().to_string())
            data-testid="star"
            on:click=toggle
        >
            {icon("star", 16)}
        </button>
    }
}

fn last_used(page: Page, name: StoredValue<String>) -> AnyView {
    let at = memo(move || name.with_value(|name| page.store.last_used(name)));
    dynamic(move || match at.get() {
        Some(at) => view! { <When at=Signal::stored(Timestamp::from_millis(at)) /> }.into_any(),
        None => words::NEVER.into_any(),
    })
    .into_any()
}

fn actions(page: Page, nav: Nav, key: StoredValue<String>, is_trusted: Memo<bool>) -> AnyView {
    let label = key.with_value(|key| shown(key).into_owned());
    let launches = Callback::new(move |()| nav.open_launch(&key.get_value(), &Choice::default()));
    let trusts = Callback::new(move |()| {
        page.trust_gate.set(Some(TrustGate::Project(key.get_value())));
    });
    let is_pending = derived(move || page.pending.has(&key.get_value()));
    let found = memo(move || key.with_value(|key| readiness(&page.store.refused(key))));
    let reason = derived(move || found.with(|found| found.blocks.map(str::to_owned)));
    let names = |verb| named(verb, &label);
    let (launch_name, trust_name) = (names(launch::LAUNCH), names(launch::TRUST_DOTS));
    let entries = Callback::new(move |()| {
        let entry = |label, does, testid| Entry { label, does, testid, class: "" };
        let name = key.get_value();
        let path = page.store.project(&name).map(|record| record.get_untracked().path.clone());
        let copies = Callback::new(move |()| copy(page, path.clone().unwrap_or_default(), None));
        let chosen = expect_context::<Chosen>();
        let selects = Callback::new(move |()| chosen.toggle(&key.get_value(), false));
        let mut all =
            vec![entry(words::OPEN_PAGE, Does::Go(browser::project_href(&name)), "open-page")];
        if !is_trusted.get_untracked() {
            all.push(entry(launch::LAUNCH, Does::Run(launches), "menu-launch"));
        }
        if page.live.basics.with_untracked(|b| b.as_ref().is_some_and(|b| b.can_configure)) {
            let to = browser::href(&format!("/ui/agent-config?project={}", segment(&name)));
            all.push(entry(agent_config::LINK, Does::Go(to), "menu-agent-config"));
        }
        all.push(entry(words::COPY_PATH, Does::Run(copies), "copy-path"));
        all.push(entry(words::SELECT, Does::Run(selects), "select"));
        all
    });
    view! {
        {dynamic(move || found.with(|found| (found.blocks.is_none() && found.count > 0).then(|| view! {
            <span class="reason" data-testid="readiness">{words::checks(found.count)}</span>
        })))}
        {dynamic(move || if is_trusted.get() {
            view! {
                <ActButton
                    label=launch::LAUNCH name=launch_name.clone() on_act=launches look=ButtonStyle::Soft
                    symbol=Some("play") reason=reason testid="act-launch"
                />
            }.into_any()
        } else {
            view! {
                <ActButton
                    label=launch::TRUST_DOTS name=trust_name.clone() on_act=trusts symbol=Some("shield")
                    is_pending=is_pending testid="act-trust"
                />
            }.into_any()
        })}
        <Menu of=Signal::stored(label) entries=entries />
    }
    .into_any()
}

/// The sign of a trusted or untrusted folder, with its word for screen readers.
#[component]
pub fn TrustMark(
    /// Whether it is.
    is_trusted: Memo<bool>,
    /// The word stands beside the sign.
    #[prop(optional)]
    is_said: bool,
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
                    {symbol(shape, "glyph")} <span class=if is_said { "word" } else { "sr-only" }>{word}</span>
                </span>
            }
        })}
    }
}

/// What lies in the folder, in words.
fn marks(project: &Project) -> Vec<String> {
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
}

/// What lies in the folder, as chips.
#[component]
pub fn Marks(
    /// The record.
    project: Signal<std::sync::Arc<Project>>,
    /// Set where the chips also tell that the folder is not trusted.
    #[prop(optional, into)]
    is_trusted: Option<Memo<bool>>,
) -> impl IntoView {
    let marks = memo(move || marks(&project.get()));
    view! {
        {dynamic(move || marks.get().into_iter().map(|mark| view! { <span class="chip">{mark}</span> }).collect_view())}
        {dynamic(move || is_trusted.is_some_and(|is| !is.get()).then(|| view! {
            <span class="below only-desk" aria-hidden="true">{words::NOT_TRUSTED}</span>
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
