//! Automatic restarts of a bridge, and the policy that asks for them.

use crate::act::Target;
use crate::browser;
use crate::model::restart::{self as rules, Stage};
use crate::model::status::{Glyph, Tone, is_direct};
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::confirm::Confirm;
use crate::parts::icon::{glyph, icon};
use crate::reactive::{derived, dynamic, memo};
use crate::text::page::session::field;
use crate::text::session::named;
use crate::text::{launch, page::link, restart as words};
use crate::views::act_button::ActButton;
use leptos::prelude::*;
use std::sync::Arc;
use svc_shared::api::instances::Instance;
use svc_shared::status::{OnLimit, RestartPolicy, ResumeMode};
use wasm_bindgen::JsCast as _;
use web_sys::HtmlSelectElement;

/// The countdown of a scheduled restart, on a row.
#[component]
pub fn RestartFacts(
    /// The record.
    bridge: Signal<Arc<Instance>>,
) -> impl IntoView {
    let page = page();
    let waits = memo(move || rules::stage(&bridge.get()) == Some(Stage::Waiting));
    // The one clock of the page: it stands still while nobody sees the page.
    let text = memo(move || match waits.get() {
        true => rules::fact(&bridge.get(), page.clock.seconds()),
        false => None,
    });
    dynamic(move || {
        waits.get().then(|| {
            view! { <span class="fact fact-notice num" data-testid="restart-waits">{text}</span> }
        })
    })
}

/// The card of a restart that is scheduled, or of restarts that were given up.
#[component]
pub fn RestartCard(
    /// The record.
    bridge: Signal<Arc<Instance>>,
) -> impl IntoView {
    let page = page();
    let stage = memo(move || rules::stage(&bridge.get()));
    let text = memo(move || match stage.get() {
        Some(Stage::Waiting) => rules::sentence(&bridge.get(), page.clock.seconds()),
        Some(Stage::GaveUp) => rules::sentence(&bridge.get(), 0),
        None => None,
    });
    view! {
        {dynamic(move || stage.get().map(|stage| {
            let (tone, shape, buttons) = match stage {
                Stage::Waiting => {
                    (Tone::Info, Glyph::Clock, view! { <Scheduled bridge=bridge /> }.into_any())
                }
                Stage::GaveUp => (
                    Tone::Danger,
                    Glyph::ShieldAlert,
                    view! { <GivenUp bridge=bridge /> }.into_any(),
                ),
            };
            view! {
                <section class=format!("card decline {}", tone.class()) aria-label=words::CARD data-testid="restart-card">
                    {glyph(shape)}
                    <span class="says num">{text}</span>
                    <span class="end">{buttons}</span>
                </section>
            }
        }))}
    }
}

#[component]
fn Scheduled(bridge: Signal<Arc<Instance>>) -> impl IntoView {
    let page = page();
    let target = memo(move || Target::of(&bridge.get()));
    let is_pending = derived(move || page.pending.has(&target.get().id));
    let name_of = move |verb| derived(move || named(verb, &target.get().project));
    let stop = Callback::new(move |()| page.stop_trying(target.get_untracked()));
    let now = Callback::new(move |()| page.resume(target.get_untracked(), false));
    view! {
        <ActButton
            label=words::STOP_TRYING name=name_of(words::STOP_TRYING) on_act=stop
            look=ButtonStyle::Secondary is_pending=is_pending testid="act-stop-trying"
        />
        <ActButton
            label=words::NOW name=name_of(words::NOW) on_act=now look=ButtonStyle::Primary
            is_pending=is_pending testid="act-restart-now"
        />
    }
}

#[component]
fn GivenUp(bridge: Signal<Arc<Instance>>) -> impl IntoView {
    let page = page();
    let target = memo(move || Target::of(&bridge.get()));
    let is_pending = derived(move || page.pending.has(&target.get().id));
    let name_of = move |verb| derived(move || named(verb, &target.get().project));
    let asks = RwSignal::new(false);
    let ask = Callback::new(move |()| asks.set(true));
    let close = Callback::new(move |()| {
        asks.set(false);
        browser::after_paint(|| {
            browser::focus("[data-testid=act-release]");
        });
    });
    let release = Callback::new(move |()| {
        asks.set(false);
        page.release(target.get_untracked(), false);
    });
    let start = Callback::new(move |()| page.release(target.get_untracked(), true));
    dynamic(move || {
        if asks.get() {
            return view! {
                <Confirm
                    verb=words::RELEASE object=target.get_untracked().project
                    rest=words::RELEASE_QUESTION on_yes=release on_no=close
                />
            }
            .into_any();
        }
        view! {
            <ActButton
                label=words::RELEASE name=name_of(words::RELEASE) on_act=ask
                look=ButtonStyle::Secondary is_pending=is_pending testid="act-release"
            />
            <ActButton
                label=words::RELEASE_START name=name_of(words::RELEASE_START) on_act=start
                look=ButtonStyle::Primary is_pending=is_pending testid="act-release-start"
            />
        }
        .into_any()
    })
}

/// The policy of a row, and its change.
#[component]
pub fn PolicyField(
    /// The record.
    bridge: Signal<Arc<Instance>>,
) -> impl IntoView {
    let page = page();
    let words = RestartPolicy::ALL.iter().map(|one| one.as_str());
    view! {
        <Choice
            id="restart-policy" label=field::RESTART
            chosen=memo(move || bridge.get().restart.policy.to_string())
            options=words.map(|word| (word, launch::restart(word))).collect()
            effect=launch::restart_effect
            on_change=Callback::new(move |word| {
                page.set_restart(Target::of(&bridge.get_untracked()), word);
            })
        />
    }
}

/// What a session does after a plan limit, and its change.
#[component]
pub fn OnLimitField(
    /// The record.
    bridge: Signal<Arc<Instance>>,
) -> impl IntoView {
    let page = page();
    let takes_text = memo(move || {
        let bridge = bridge.get();
        is_direct(&bridge) || bridge.resume_mode.is(&ResumeMode::Pty)
    });
    dynamic(move || {
        if !takes_text.get() {
            return view! { <p class="help">{launch::ON_LIMIT_NONE}</p> }.into_any();
        }
        let words = OnLimit::ALL.iter().map(|one| one.as_str());
        view! {
            <Choice
                id="on-limit" label=field::ON_LIMIT
                chosen=memo(move || bridge.get().on_limit.to_string())
                options=words.map(|word| (word, launch::on_limit(word))).collect()
                effect=launch::on_limit_effect
                on_change=Callback::new(move |word| {
                    page.set_on_limit(Target::of(&bridge.get_untracked()), word);
                })
            />
        }
        .into_any()
    })
}

/// A choice of a row that may follow the configuration.
#[component]
fn Choice(
    id: &'static str,
    label: &'static str,
    /// The word in force.
    chosen: Memo<String>,
    /// Words with what they are called.
    options: Vec<(&'static str, &'static str)>,
    /// What a word means.
    effect: fn(&str) -> &'static str,
    /// Told of another word; none follows the configuration.
    on_change: Callback<Option<String>>,
) -> impl IntoView {
    let page = page();
    let option = move |word: &'static str, label: &str| {
        let is_on = derived(move || chosen.get() == word);
        view! { <option value=word selected=is_on>{label.to_owned()}</option> }.into_any()
    };
    let mut all = vec![option("", words::INHERIT)];
    all.extend(options.into_iter().map(|(word, label)| option(word, label)));
    let change = move |event: web_sys::Event| {
        let wanted = event_target_value(&event);
        // The record says what is in force; it changes when the service has changed it.
        if let Some(select) = event.target().and_then(|at| at.dyn_into::<HtmlSelectElement>().ok())
        {
            select.set_value(&chosen.get_untracked());
        }
        if page.live.is_offline.get_untracked() {
            page.say.politely(link::OFFLINE);
            return;
        }
        on_change.run(Some(wanted).filter(|word| !word.is_empty()));
    };
    let help = format!("{id}-help");
    view! {
        <span class="select policy">
            <select
                id=id
                aria-label=label
                aria-describedby=help.clone()
                data-testid=id
                prop:value=chosen
                on:change=change
            >
                {all}
            </select>
            {icon("chevron-down", 16)}
        </span>
        <p class="help" id=help>
            {dynamic(move || effect(&chosen.get()))}
        </p>
    }
}
