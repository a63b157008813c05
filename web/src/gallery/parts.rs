//! The larger ones: cards, messages, questions, dialogs.

use super::back_to_top;
use crate::act::{Target, TrustGate};
use crate::model::cause::{cause as cause_of, uptime};
use crate::model::outcome::{Level, Notice};
use crate::model::problem::Problem;
use crate::model::status::face;
use crate::model::time;
use crate::nav::nav;
use crate::page::Sheet;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::confirm::Confirm;
use crate::parts::menu::{Does, Entry, Menu};
use crate::reactive::{derived, dynamic};
use crate::text::gallery::message;
use crate::text::session::{act, after, stop_question};
use crate::text::{keys, launch, page as words};
use crate::views::cause::CauseCard;
use crate::views::missing::{Missing, NoStart, WrongAddress};
use crate::views::terminal::TerminalPanel;
use leptos::prelude::*;

/// The sample that crashed.
const CRASHED: &str = "a1c25d38";
/// A project of the samples.
const PROJECT: &str = "web-frontend";

/// A button that opens or says something.
fn opener(label: &'static str, run: impl Fn() + 'static) -> AnyView {
    let run: Box<dyn Fn()> = Box::new(run);
    view! {
        <button type="button" class=ButtonStyle::Secondary.class() data-opens=label on:click=move |_| run()>{label}</button>
    }
    .into_any()
}

/// Cards and messages.
pub fn notices() -> AnyView {
    let page = page();
    let says = [
        (Level::Success, message::SUCCESS),
        (Level::Info, message::INFO),
        (Level::Warning, message::WARNING),
        (Level::Danger, message::DANGER),
    ]
    .map(|(level, (title, body))| {
        opener(title, move || page.say.notice(Notice::new(level, title.to_owned(), body)))
    });
    view! {
        <div class="cards">
            <NoStart problem=Problem::NoAnswer />
            <WrongAddress />
            <Missing />
        </div>
        <div class="line">{says}</div>
    }
    .into_any()
}

/// What opens, and the question in the place of a button.
pub fn dialogs() -> AnyView {
    let page = page();
    let nav = nav();
    let nothing = Callback::new(|()| ());
    let entries = Callback::new(|()| {
        let entry = |label, does| Entry { label, does, testid: "gallery-entry", class: "" };
        vec![
            entry(act::RENAME, Does::Run(Callback::new(|()| ()))),
            entry(act::FORGET, Does::Refuses(words::link::OFFLINE.to_owned())),
        ]
    });
    let trust = move || page.trust_gate.set(Some(TrustGate::Project("scratch".to_owned())));
    let link = Target { id: CRASHED.to_owned(), project: PROJECT.to_owned() };
    back_to_top();
    view! {
        <div class="line">
            {opener(launch::LAUNCH, move || nav.open_launch(PROJECT, &Default::default()))}
            {opener(launch::TRUST_DOTS, trust)}
            {opener(keys::PALETTE, move || page.sheet.set(Some(Sheet::Palette(String::new()))))}
            {opener(keys::HELP, move || page.sheet.set(Some(Sheet::Keys)))}
            {opener(words::nav::MORE, move || page.sheet.set(Some(Sheet::More)))}
            {opener(words::qr::LABEL, move || page.sheet.set(Some(Sheet::Qr(link.clone()))))}
            <Menu of=derived(|| PROJECT.to_owned()) entries=entries />
        </div>
        <div class="line">
            <Confirm verb=act::STOP object=PROJECT.to_owned() rest=stop_question(2) on_yes=nothing on_no=nothing />
        </div>
    }
    .into_any()
}

/// The terminal in each of its states.
pub fn terminals() -> AnyView {
    let states = ["live", "connecting", "waiting", "exited", "unavailable", "asks", "off"];
    states
        .map(|state| {
            let id = format!("sample-{state}");
            view! { <TerminalPanel id=id /> }
        })
        .into_any()
}

/// The card above the tabs of a session that ended badly.
pub fn cause() -> AnyView {
    let page = page();
    dynamic(move || {
        page.store.is_loaded.track();
        let id = page.store.find(CRASHED);
        let crate::model::link::Found::Prefix(id) = id else {
            return ().into_any();
        };
        let Some(bridge) = page.store.instance(&id).map(|signal| signal.get()) else {
            return ().into_any();
        };
        let lived = uptime(&bridge).map(|lived| after(&time::span(lived)));
        let seen = face(&bridge, &[]);
        cause_of(&bridge)
            .map(|cause| view! { <CauseCard cause=cause face=seen after=lived /> })
            .into_any()
    })
    .into_any()
}
