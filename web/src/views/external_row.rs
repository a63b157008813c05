//! Row of sessions that were started elsewhere in one project.
//!
//! Its bridge can be adopted.

use crate::browser;
use crate::model::external::{face, line};
use crate::model::shown::shown;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::confirm::Confirm;
use crate::reactive::{derived, dynamic, memo};
use crate::store::EXTERNAL;
use crate::text::job::external as words;
use crate::text::session::named;
use crate::views::act_button::ActButton;
use crate::views::row::{Inside, Row, fact};
use leptos::prelude::*;

/// The row of a project.
pub fn external_row(project: String) -> AnyView {
    let page = page();
    let name = StoredValue::new(project.clone());
    let found = memo(move || page.store.external_of(&name.get_value()));
    let can_manage = memo(move || found.with(|(_, adoptable)| *adoptable));
    let sessions = derived(move || found.with(|(sessions, _)| sessions.clone()));
    let only = memo(move || {
        found.with(|(sessions, _)| match sessions.as_slice() {
            [one] => Some(shown(&line(one).1).into_owned()),
            _ => None,
        })
    });
    let inside = Inside::new(sessions);
    Row {
        key: format!("{EXTERNAL}{project}"),
        testid: "external-row",
        instance: None,
        project: derived(move || name.get_value()),
        status: Signal::stored("external".to_owned()),
        href: browser::project_href(&project),
        face: memo(face),
        name: memo(move || shown(&name.get_value()).into_owned()),
        label: only,
        kind: memo(|| words::KIND.to_owned()),
        chips: ().into_any(),
        facts: view! {
            {dynamic(move || fact(if can_manage.get() { words::CAN_MANAGE } else { words::OBSERVE }))}
            {inside.fact(words::sessions)}
        }
        .into_any(),
        used: ().into_any(),
        actions: view! { <Manage project=project /> }.into_any(),
        below: view! { {inside.warning()} {inside.list()} }.into_any(),
    }
    .view()
}

#[component]
fn Manage(project: String) -> impl IntoView {
    let page = page();
    let asks = RwSignal::new(false);
    let project = StoredValue::new(project);
    let can = memo(move || page.store.external_of(&project.get_value()).1);
    let ask = Callback::new(move |()| asks.set(true));
    let close = Callback::new(move |()| {
        asks.set(false);
        browser::after_paint(|| {
            browser::focus("[data-testid=act-manage]");
        });
    });
    let on_yes = Callback::new(move |()| {
        asks.set(false);
        page.manage(project.get_value());
    });
    let is_pending = derived(move || page.pending.has(&project.get_value()));
    let name = derived(move || named(words::MANAGE, &project.get_value()));
    view! {
        {dynamic(move || match (can.get(), asks.get()) {
            (false, _) => view! { <span class="reason">{words::NOT_ADOPTABLE}</span> }.into_any(),
            (true, false) => view! {
                <ActButton
                    label=words::MANAGE name=name on_act=ask look=ButtonStyle::Soft is_pending=is_pending
                    testid="act-manage"
                />
            }
            .into_any(),
            (true, true) => view! {
                <Confirm
                    verb=words::MANAGE object=project.get_value() rest=words::QUESTION on_yes=on_yes
                    on_no=close
                />
            }
            .into_any(),
        })}
    }
}
