//! Devices that are notified while the page is closed.
//!
//! The switch of this one, and all of them.

use crate::model::outcome::{Level, Notice};
use crate::model::push::Standing;
use crate::model::shown::shown;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::push::{self, Failure};
use crate::reactive::{derived, effect, live};
use crate::text::notifications as list;
use crate::text::push as words;
use crate::text::session::named;
use crate::views::act_button::ActButton;
use crate::views::notifications::{made, outcome};
use crate::views::times::Age;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::internal::push::PushDevice;
use svc_shared::paths;

/// The switch of this device, and what it does or why it does nothing.
#[component]
pub fn PushSwitch(
    /// The devices changed.
    on_change: Callback<()>,
) -> impl IntoView {
    let page = page();
    let is_offered = derived(move || {
        page.live
            .basics
            .with(|basics| basics.as_ref().is_some_and(|basics| basics.notifications.push_enabled))
    });
    let now = RwSignal::new(Standing::Asking);
    let is_busy = RwSignal::new(false);
    let look = move |is_offered: bool| {
        spawn_local(async move {
            let found = push::look(is_offered).await;
            let _ = now.try_set(found); // the view may be gone by now
        });
    };
    effect(move || look(is_offered.get()));
    let switch = move |_| {
        if is_busy.get_untracked() {
            return;
        }
        is_busy.set(true);
        let was_on = now.get_untracked() == Standing::On;
        spawn_local(async move {
            let done = if was_on { push::switch_off().await } else { push::switch_on().await };
            match done {
                Ok(()) => {}
                Err(Failure::Service(problem)) => {
                    page.say.notice(Notice::new(Level::Danger, problem.words(), String::new()));
                }
                Err(Failure::Browser) => page.say.notice(Notice::new(
                    Level::Danger,
                    words::NO_SUBSCRIPTION.to_owned(),
                    words::NO_SUBSCRIPTION_WHY,
                )),
            }
            let found = push::look(true).await;
            // The view may be gone by now.
            let _ = now.try_set(found);
            let _ = is_busy.try_set(false);
            on_change.try_run(());
        });
    };
    view! {
        <button
            type="button"
            class="switch wide"
            role="switch"
            aria-checked=live(move || (now.get() == Standing::On).to_string())
            aria-describedby="push-standing"
            disabled=live(move || !now.get().can_change() || is_busy.get())
            data-testid="push-switch"
            on:click=switch
        >
            {words::SWITCH}
        </button>
        <p class="muted" id="push-standing" data-testid="push-standing">
            {live(move || words::standing(now.get()))}
        </p>
    }
}

/// The devices. `None` where nothing can be switched on.
pub fn devices(all: Option<&[PushDevice]>, on_change: Callback<()>) -> AnyView {
    let busy = RwSignal::new(None::<String>);
    let body = match all {
        None => view! { <p class="card none muted">{words::OFF}</p> }.into_any(),
        Some([]) => view! { <p class="card none muted">{words::NO_DEVICE}</p> }.into_any(),
        Some(all) => {
            let rows: Vec<_> = all.iter().map(|one| row(one, busy, on_change)).collect();
            view! {
                <table class="card grid-table" data-testid="push-devices">
                    <thead><tr>
                        <th scope="col">{words::DEVICE}</th>
                        <th scope="col">{list::LAST}</th>
                        <th scope="col">{list::STATE}</th>
                        <td></td>
                    </tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            }
            .into_any()
        }
    };
    view! {
        <section aria-labelledby="push-devices">
            <div class="section-head"><h2 id="push-devices">{words::DEVICES}</h2></div>
            {body}
        </section>
    }
    .into_any()
}

fn row(device: &PushDevice, busy: RwSignal<Option<String>>, on_change: Callback<()>) -> AnyView {
    let label = shown(&device.label).into_owned();
    let path = format!("{}/{}", paths::PUSH_SUBSCRIPTIONS, paths::segment(&device.id));
    let act = move |method: Method, path: String, said: Option<String>| {
        if busy.get_untracked().is_some() {
            return;
        }
        let page = page();
        busy.set(Some(path.clone()));
        spawn_local(async move {
            match (api_call(method, &path).await, said) {
                (Ok(()), Some(said)) => page.say.done(said),
                (Ok(()), None) => {} // the row shows what came of it
                (Err(words), _) => {
                    page.say.notice(Notice::new(Level::Danger, words, String::new()));
                }
            }
            // The view may be gone by now.
            let _ = busy.try_set(None);
            on_change.try_run(());
        });
    };
    let (test, removed) = (format!("{path}/test"), words::removed(&label));
    let is_busy = derived(move || busy.try_get().flatten().is_some());
    let (last, state) = match device.deliveries.first() {
        Some(delivery) => (made(delivery), outcome(delivery)),
        None => {
            let last = match device.last_delivery_at {
                Some(at) => view! {
                    <span class="muted">{words::REACHED} " " <Age since=Signal::stored(at) /></span>
                }
                .into_any(),
                None => view! { <span class="muted">{words::NEVER}</span> }.into_any(),
            };
            let error = device.last_error.as_ref().map(|why| {
                view! { <span class="also"><bdi>{shown(why).into_owned()}</bdi></span> }
            });
            (last, error.into_any())
        }
    };
    let current = device.current.then(|| view! { <span class="chip">{words::THIS}</span> });
    let (test_name, remove_name) = (named(list::TEST, &label), named(words::REMOVE, &label));
    view! {
        <tr data-testid="push-device" data-id=device.id.clone()>
            <th scope="row">
                <bdi>{label}</bdi> " " {current}
                <span class="also muted"><bdi>{shown(&device.host).into_owned()}</bdi></span>
                <span class="also muted">{words::told(&device.events)}</span>
            </th>
            <td data-label=list::LAST>{last}</td>
            <td data-label=list::STATE>{state}</td>
            <td class="acts">
                <ActButton
                    label=list::TEST name=Signal::stored(test_name)
                    on_act=Callback::new(move |()| act(Method::POST, test.clone(), None))
                    is_pending=is_busy testid="test-device"
                />
                <ActButton
                    label=words::REMOVE name=Signal::stored(remove_name) look=ButtonStyle::Ghost
                    on_act=Callback::new(move |()| {
                        act(Method::DELETE, path.clone(), Some(removed.clone()));
                    })
                    is_pending=is_busy testid="remove-device"
                />
            </td>
        </tr>
    }
    .into_any()
}

async fn api_call(method: Method, path: &str) -> Result<(), String> {
    let answer = crate::api::request(method, path, None, None).await;
    answer.map(drop).map_err(|problem| problem.words())
}
