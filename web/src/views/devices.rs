//! The signed-in browsers, each with its sign-out.

use crate::browser;
use crate::model::shown::shown;
use crate::model::wire;
use crate::parts::button::ButtonStyle;
use crate::parts::confirm::Confirm;
use crate::parts::icon::icon;
use crate::reactive::dynamic;
use crate::text::access as words;
use crate::text::session::named;
use crate::views::access::{Known, Lists};
use crate::views::times::{When, absolute};
use gloo_net::http::Method;
use leptos::prelude::*;
use svc_shared::internal::access::{Device, SignedOutOthers};
use svc_shared::paths;

/// What stands for all other devices where the id of one is expected.
const OTHERS: &str = "others";

/// The section.
///
/// `asks` is the id of the device that a question is about.
pub fn devices(lists: Lists, known: &Known, asks: RwSignal<Option<String>>) -> AnyView {
    let rows: Vec<_> = known.devices.iter().map(|one| row(lists, one, asks)).collect();
    let has_others = known.devices.iter().any(|one| !one.current);
    let body = match (rows.is_empty(), known.access.auth.enabled) {
        (true, true) => view! { <p class="card none muted">{words::NO_DEVICE}</p> }.into_any(),
        (true, false) => view! { <p class="card none muted">{words::NOBODY_ASKED}</p> }.into_any(),
        (false, _) => view! {
            <table class="card grid-table devices">
                <thead><tr>
                    <th scope="col">{words::DEVICE}</th>
                    <th scope="col">{words::FROM}</th>
                    <th scope="col">{words::SIGNED_IN}</th>
                    <th scope="col">{words::LAST_SEEN}</th>
                    <th scope="col">{words::UNTIL}</th>
                    <td></td>
                </tr></thead>
                <tbody>{rows}</tbody>
            </table>
        }
        .into_any(),
    };
    let count = known.devices.len();
    view! {
        <section aria-labelledby="devices" data-testid="devices">
            <div class="section-head">
                <h2 id="devices">{words::DEVICES}</h2> <span class="count num">{count}</span>
                {has_others.then(|| view! {
                    <span class="end">{sign_out(
                        lists, OTHERS.to_owned(), words::SIGN_OUT_OTHERS, words::ALL_OTHERS.to_owned(),
                        words::ALL_OTHERS_QUESTION, asks,
                    )}</span>
                })}
            </div>
            {body}
        </section>
    }
    .into_any()
}

fn row(lists: Lists, device: &Device, asks: RwSignal<Option<String>>) -> AnyView {
    let plain = match device.user_agent.is_empty() {
        true => words::NAMELESS,
        false => device.user_agent.as_str(),
    };
    let name = shown(device.name.as_deref().unwrap_or(plain)).into_owned();
    let from = device.forwarded_for.as_deref().unwrap_or(&device.peer).to_owned();
    let elsewhere: Vec<&str> = device
        .addresses
        .iter()
        .map(|seen| seen.address.as_str())
        .filter(|address| *address != from && *address != device.peer)
        .collect();
    let elsewhere = (!elsewhere.is_empty()).then(|| {
        view! { <span class="muted also">{words::also_from(&shown(&elsewhere.join(", ")))}</span> }
    });
    let symbol = if device.mobile { "phone" } else { "laptop" };
    let title = shown(&device.user_agent).into_owned();
    view! {
        <tr data-testid="device" data-device=device.id.clone()>
            <th scope="row" title=title>
                <span class="who">
                    {icon(symbol, 20)} <bdi>{name.clone()}</bdi>
                    {device.current.then(|| view! { <span class="badge own">{words::THIS_ONE}</span> })}
                </span>
            </th>
            <td data-label=words::FROM><code>{shown(&from).into_owned()}</code> {elsewhere}</td>
            <td data-label=words::SIGNED_IN><When at=Signal::stored(device.created) /></td>
            <td data-label=words::LAST_SEEN><When at=Signal::stored(device.last_seen) /></td>
            <td data-label=words::UNTIL class="num">{absolute(device.expires_at)}</td>
            <td class="acts">{sign_out(
                lists, device.id.clone(), words::SIGN_OUT, name, words::SIGN_OUT_QUESTION, asks,
            )}</td>
        </tr>
    }
    .into_any()
}

/// The button, or the question in its place.
fn sign_out(
    lists: Lists,
    id: String,
    verb: &'static str,
    object: String,
    rest: &'static str,
    asks: RwSignal<Option<String>>,
) -> AnyView {
    let own = StoredValue::new((id, object));
    let close = Callback::new(move |()| {
        asks.set(None);
        let button = own.with_value(|(id, _)| format!("[data-sign-out=\"{id}\"]"));
        browser::after_paint(move || {
            browser::focus(&button);
        });
    });
    let on_yes = Callback::new(move |()| {
        asks.set(None);
        let (id, object) = own.get_value();
        match id.as_str() {
            OTHERS => lists.write(
                Method::POST,
                paths::SIGN_OUT_OTHERS.to_owned(),
                |text| {
                    let done = wire::read::<SignedOutOthers>(text);
                    words::signed_out_others(done.map_or(0, |done| done.revoked))
                },
                "[data-sign-out]",
            ),
            id => lists.write(
                Method::DELETE,
                paths::device(id),
                move |_| words::signed_out(&object),
                "[data-sign-out]",
            ),
        }
    });
    view! {
        {dynamic(move || {
            let (id, object) = own.get_value();
            if asks.with(|asks| asks.as_ref() == Some(&id)) {
                let verb = words::SIGN_OUT;
                view! { <Confirm verb=verb object=object rest=rest on_yes=on_yes on_no=close /> }.into_any()
            } else {
                let name = if id == OTHERS { verb.to_owned() } else { named(verb, &object) };
                let asked = id.clone();
                view! {
                    <button
                        type="button"
                        class=ButtonStyle::Ghost.class()
                        aria-label=name
                        data-sign-out=id
                        on:click=move |_| asks.set(Some(asked.clone()))
                    >
                        {verb}
                    </button>
                }
                .into_any()
            }
        })}
    }
    .into_any()
}
