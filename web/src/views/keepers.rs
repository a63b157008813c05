//! The processes that hold terminals, below their check on Readiness.

use crate::act;
use crate::browser;
use crate::model::shown::shown;
use crate::page::page;
use crate::parts::confirm::Confirm;
use crate::reactive::{derived, dynamic};
use crate::text::keepers as words;
use crate::text::session::named;
use crate::views::act_button::ActButton;
use crate::views::row::fact;
use crate::views::times::Age;
use leptos::prelude::*;
use svc_shared::internal::keepers::Keeper;

/// The list; nothing where no terminal is held.
///
/// `asks` is the process that a question is about.
pub fn list(asks: RwSignal<Option<i32>>) -> AnyView {
    let page = page();
    dynamic(move || {
        // With the records comes the way to the session of each.
        page.store.is_loaded.track();
        let found = page.ready.keepers.get();
        (!found.is_empty()).then(|| {
            let rows: Vec<_> = found.iter().map(|one| row(one, asks)).collect();
            view! { <ul class="strays" aria-label=words::LIST data-testid="keepers">{rows}</ul> }
        })
    })
    .into_any()
}

fn row(one: &Keeper, asks: RwSignal<Option<i32>>) -> AnyView {
    let page = page();
    let pid = one.keeper_pid;
    let object = StoredValue::new(words::object(pid));
    let button = format!("[data-pid=\"{pid}\"] [data-testid=act-end-keeper]");
    let close = Callback::new(move |()| {
        asks.set(None);
        let button = button.clone();
        browser::after_paint(move || {
            browser::focus(&button);
        });
    });
    let on_yes = Callback::new(move |()| {
        close.run(());
        page.end_keeper(pid, object.get_value());
    });
    let on_act = Callback::new(move |()| asks.set(Some(pid)));
    let is_pending = derived(move || page.pending.has(&act::keeper(pid)));
    let name = derived(move || named(words::END, &object.get_value()));
    let is_known = one.instance_id.clone().filter(|id| page.store.instance(id.as_str()).is_some());
    let project = shown(&one.project).into_owned();
    let session = match is_known {
        Some(id) => {
            let href = browser::session_href(id.as_str());
            view! { <a href=href><bdi>{project}</bdi></a> }.into_any()
        }
        None => view! { <bdi>{project}</bdi> }.into_any(),
    };
    let end = one.orphan.then(|| {
        dynamic(move || {
            if asks.get() == Some(pid) {
                view! {
                    <Confirm
                        verb=words::END object=object.get_value() rest=words::QUESTION on_yes=on_yes
                        on_no=close
                    />
                }
                .into_any()
            } else {
                view! {
                    <ActButton
                        label=words::END name=name on_act=on_act is_pending=is_pending
                        testid="act-end-keeper"
                    />
                }
                .into_any()
            }
        })
    });
    let agent = one.bridge_pid.map(words::agent);
    view! {
        <li data-testid="keeper" data-pid=pid.to_string()>
            <span>
                <b>{object.get_value()}</b>
                {one.orphan.then(|| view! { <span class="chip tone-warn" data-testid="keeper-orphan">{words::ORPHAN}</span> })}
                <span class="fact">{session}</span>
                {one.damaged.then(|| view! { <span class="fact fact-notice">{words::DAMAGED}</span> })}
                {(!one.damaged).then(|| fact(words::state(&one.state)))}
                {agent.as_deref().map(fact)}
                {one.outdated.then(|| fact(words::OUTDATED))}
                {one.started_at.map(|at| view! { <span class="fact"><Age since=Signal::stored(at) /></span> })}
            </span>
            {end}
        </li>
    }
    .into_any()
}
