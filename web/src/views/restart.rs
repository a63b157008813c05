//! Automatic restarts of a bridge, and the policy that asks for them.

use crate::act::Target;
use crate::browser;
use crate::model::restart::{self as rules, Stage};
use crate::model::status::{Glyph, Tone};
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
use svc_shared::status::RestartPolicy;
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
    let policy = memo(move || bridge.get().restart.policy.to_string());
    let option = move |word: &'static str, label: &str| {
        let is_on = derived(move || policy.get() == word);
        view! { <option value=word selected=is_on>{label.to_owned()}</option> }.into_any()
    };
    let mut options = vec![option("", words::INHERIT)];
    options.extend(RestartPolicy::ALL.iter().map(|one| {
        let word = one.as_str();
        option(word, launch::restart(word))
    }));
    let change = move |event: web_sys::Event| {
        let chosen = event_target_value(&event);
        // The record says what the policy is; it changes when the service has changed it.
        if let Some(select) = event.target().and_then(|at| at.dyn_into::<HtmlSelectElement>().ok())
        {
            select.set_value(&policy.get_untracked());
        }
        if page.live.is_offline.get_untracked() {
            page.say.politely(link::OFFLINE);
            return;
        }
        let target = Target::of(&bridge.get_untracked());
        page.set_restart(target, Some(chosen).filter(|word| !word.is_empty()));
    };
    view! {
        <span class="select policy">
            <select
                id="restart-policy"
                aria-label=field::RESTART
                aria-describedby="restart-policy-help"
                data-testid="restart-policy"
                prop:value=policy
                on:change=change
            >
                {options}
            </select>
            {icon("chevron-down", 16)}
        </span>
        <p class="help" id="restart-policy-help">
            {dynamic(move || launch::restart_effect(&policy.get()))}
        </p>
    }
}
