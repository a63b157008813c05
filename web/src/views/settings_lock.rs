//! The second list of settings, behind the password.

use crate::api;
use crate::model::problem::Problem;
use crate::model::settings::sections;
use crate::model::time;
use crate::model::wire;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::dialog::Dialog;
use crate::parts::icon::{icon, symbol};
use crate::reactive::{derived, dynamic, effect, live, memo};
use crate::text::session::act;
use crate::text::settings as words;
use crate::views::settings::section;
use crate::views::settings_form::SettingsForm;
use crate::views::settings_places;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::Deserialize;
use std::collections::BTreeMap;
use svc_shared::internal::settings::ConfigReport;
use svc_shared::paths;

/// The answer to a password that was confirmed.
#[derive(Deserialize)]
struct Proof {
    /// Seconds until it ends.
    expires_in: i64,
}

/// The card that is locked, or the list.
pub fn advanced(form: SettingsForm) -> AnyView {
    view! {
        <section class="settings-advanced" id=settings_places::ADVANCED tabindex="-1" aria-label=words::ADVANCED>
            {dynamic(move || match form.advanced.get() {
                None => locked(form),
                Some(report) => unlocked(form, &report),
            })}
        </section>
        {dynamic(move || form.asks.get().then(|| view! { <Confirm form=form /> }))}
    }
    .into_any()
}

fn locked(form: SettingsForm) -> AnyView {
    let page = page();
    // While nothing is known yet the service is asked: it says what is missing.
    let has_password =
        page.live.basics.with_untracked(|b| b.as_ref().is_none_or(|b| b.has_password));
    let button = has_password.then(|| {
        view! {
            <button
                type="button" class=ButtonStyle::Secondary.class() data-testid="settings-unlock"
                on:click=move |_| form.asks.set(true)
            >{words::CONFIRM_PASSWORD} "…"</button>
        }
    });
    let why = if has_password { words::ADVANCED_WHY } else { words::ADVANCED_NO_PASSWORD };
    view! {
        <div class="card settings-locked" data-testid="settings-locked">
            {symbol("g-padlock", "glyph")}
            <p><b>{words::ADVANCED}</b> <span class="muted">{why}</span></p>
            {button}
        </div>
    }
    .into_any()
}

fn unlocked(form: SettingsForm, report: &ConfigReport) -> AnyView {
    let rows = sections(report).iter().map(|one| section(form, report, one)).collect::<Vec<_>>();
    let keys: Vec<String> = report.specs.keys().cloned().collect();
    let of_list = keys.clone();
    let page = page();
    let left_ms =
        move || form.open_until.get().map_or(0, |until| (until - page.clock.seconds()).max(0));
    let is_over = memo(move || form.open_until.with(Option::is_some) && left_ms() == 0);
    // Nothing typed is lost when the time is over: then the list stays, and saving asks again.
    effect(move || {
        let is_edited =
            form.edits.with_untracked(|edits| of_list.iter().any(|key| edits.contains_key(key)));
        if is_over.get() && !is_edited {
            form.advanced.set(None);
        }
    });
    let left = move || match is_over.get() {
        true => words::PROOF_OVER.to_owned(),
        false => words::open_for(&time::span(left_ms())),
    };
    let lock = move |_| {
        form.edits.update(|edits| edits.retain(|key, _| !keys.contains(key)));
        form.wrong.update(|wrong| wrong.retain(|key, _| !keys.contains(key)));
        form.advanced.set(None);
        spawn_local(async {
            // Where nobody can be reached, the time of the proof runs out by itself.
            let _ = api::request(Method::DELETE, paths::REAUTH, None, None).await;
        });
    };
    view! {
        <div class="settings-open" data-testid="settings-open">
            {rows}
            <p class="settings-proof">
                <button type="button" class=ButtonStyle::Ghost.class() data-testid="settings-lock" on:click=lock>
                    {icon("key", 16)} {words::LOCK}
                </button>
                <span class="num muted" data-testid="settings-left">{live(left)}</span>
            </p>
        </div>
    }
    .into_any()
}

/// Asks for the password, and opens the list.
#[component]
fn Confirm(form: SettingsForm) -> impl IntoView {
    let page = page();
    let password = RwSignal::new(String::new());
    let problem = RwSignal::new(None::<Problem>);
    let is_pending = RwSignal::new(false);
    let close = Callback::new(move |()| form.asks.set(false));
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        if is_pending.get_untracked() {
            return;
        }
        is_pending.set(true);
        problem.set(None);
        let proof = wire::written(&BTreeMap::from([("password", password.get_untracked())]));
        spawn_local(async move {
            let answer = async {
                let proven = api::request(Method::POST, paths::REAUTH, Some(proof), None).await;
                let proven = api::understood::<Proof>(proven)?;
                let report = api::get::<ConfigReport>(paths::CONFIG_ADVANCED).await?;
                Ok::<_, Problem>((proven, report))
            };
            let answer = answer.await;
            let _ = is_pending.try_set(false); // the dialog may be gone by now
            match answer {
                Ok((proven, report)) => {
                    let until = untrack(|| page.clock.seconds()) + proven.expires_in * 1_000;
                    let _ = form.open_until.try_set(Some(until)); // the view may be gone by now
                    drop(form.advanced.try_set(Some(report)));
                    let _ = form.asks.try_set(false); // the dialog may be gone by now
                }
                Err(said) => drop(problem.try_set(Some(said))),
            }
        });
    };
    let is_dirty = derived(move || !password.with(String::is_empty));
    view! {
        <Dialog title=words::CONFIRM_PASSWORD.to_owned() on_close=close is_dirty=is_dirty testid="settings-password-dialog">
            <form on:submit=submit>
                <div class="dialog-body">
                    <p class="wide">{words::ADVANCED_WHY}</p>
                    // Password managers look for a name beside a password.
                    <input type="text" autocomplete="username" hidden=true />
                    <label for="settings-password">{words::PASSWORD}</label>
                    <input
                        class="input" id="settings-password" type="password" autofocus=true
                        autocomplete="current-password" data-testid="settings-password"
                        on:input=move |event| password.set(event_target_value(&event))
                    />
                    {dynamic(move || problem.get().map(|problem| view! {
                        <p class="wide strip tone-danger" role="alert">{problem.words()}</p>
                    }))}
                </div>
                <div class="dialog-foot">
                    <span class="says"></span>
                    <button type="button" class=ButtonStyle::Secondary.class() on:click=move |_| close.run(())>{act::CANCEL}</button>
                    <button
                        type="submit" class=ButtonStyle::Primary.class() data-testid="settings-confirm"
                        aria-disabled=live(move || is_pending.get().then_some("true"))
                    >{words::CONFIRM_PASSWORD}</button>
                </div>
            </form>
        </Dialog>
    }
}
