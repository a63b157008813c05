//! The restart that saved settings wait for.

use crate::page::{Sheet, page};
use crate::parts::button::ButtonStyle;
use crate::reactive::dynamic;
use crate::text::restarting;
use crate::text::settings as words;
use leptos::prelude::*;

/// Says that saved settings are not in use yet, and offers the restart.
///
/// Nothing is shown while none waits.
pub fn waiting(is_waiting: Signal<bool>) -> AnyView {
    let page = page();
    let can_restart =
        move || page.live.basics.with(|basics| basics.as_ref().is_some_and(|all| all.can_restart));
    dynamic(move || {
        is_waiting.get().then(|| {
            view! {
                <div class="strip tone-info" role="status" data-testid="settings-waits">
                    <p>{words::WAITS}</p>
                    {can_restart().then(|| view! {
                        <button
                            type="button" class=ButtonStyle::Secondary.class()
                            data-testid="settings-restart"
                            on:click=move |_| page.sheet.set(Some(Sheet::Restart))
                        >{restarting::TITLE}"…"</button>
                    })}
                </div>
            }
        })
    })
}
