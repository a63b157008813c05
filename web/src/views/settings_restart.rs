//! The restart that saved settings wait for.

use crate::api;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::confirm::Confirm;
use crate::reactive::{dynamic, effect};
use crate::text::settings as words;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::paths;

/// How far the restart is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nobody asked for it.
    Idle,
    /// The page asks whether it is meant.
    Asks,
    /// The service is away.
    Away,
}

/// Says that saved settings are not in use yet, and restarts the service.
///
/// Nothing is shown while none waits. `read` reads them again, and `trouble` is where a refusal is
/// shown.
pub fn waiting(
    is_waiting: Signal<bool>,
    read: Callback<()>,
    trouble: RwSignal<Option<String>>,
) -> AnyView {
    let page = page();
    let stage = RwSignal::new(Stage::Idle);
    // They are read again when another start of the service answers.
    effect(move || {
        page.live.basics.track();
        if stage.get_untracked() == Stage::Away {
            stage.set(Stage::Idle);
            page.say.done(words::IS_BACK.to_owned());
            read.run(());
        }
    });
    let begin = Callback::new(move |()| {
        stage.set(Stage::Away);
        spawn_local(async move {
            let asked = api::request(Method::POST, paths::SERVICE_RESTART, None, None).await;
            if let Err(problem) = asked {
                let _ = stage.try_set(Stage::Idle); // the view may be gone
                let _ = trouble.try_set(Some(problem.words()));
            }
        });
    });
    let keep = Callback::new(move |()| {
        stage.set(Stage::Idle);
        crate::focus::rescue("[data-testid=settings-restart]");
    });
    let can_restart =
        move || page.live.basics.with(|basics| basics.as_ref().is_some_and(|all| all.can_restart));
    dynamic(move || {
        let stage_now = stage.get();
        (is_waiting.get() || stage_now == Stage::Away).then(|| {
            let inside = match stage_now {
                Stage::Away => view! { <p>{words::IS_AWAY}</p> }.into_any(),
                Stage::Asks => view! {
                    <Confirm
                        verb=words::RESTART object=words::SERVICE.to_owned() rest=words::RESTART_REST
                        on_yes=begin on_no=keep
                    />
                }
                .into_any(),
                Stage::Idle => view! {
                    <p>{words::WAITS}</p>
                    {can_restart().then(|| view! {
                        <button
                            type="button" class=ButtonStyle::Secondary.class()
                            data-testid="settings-restart"
                            on:click=move |_| stage.set(Stage::Asks)
                        >{words::RESTART_SVC}</button>
                    })}
                }
                .into_any(),
            };
            view! { <div class="strip tone-info" role="status" data-testid="settings-waits">{inside}</div> }
        })
    })
}
