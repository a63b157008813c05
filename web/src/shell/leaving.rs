//! The question before a view with unsaved edits is left.

use crate::nav::nav;
use crate::parts::button::ButtonStyle;
use crate::parts::dialog::Dialog;
use crate::reactive::dynamic;
use crate::text::page::unsaved as words;
use leptos::prelude::*;

/// Asks while a way to another view waits for the answer.
#[component]
pub fn Leaving() -> impl IntoView {
    let nav = nav();
    let stay = Callback::new(move |()| nav.stay());
    view! {
        {dynamic(move || nav.is_asked().then(|| view! {
            <Dialog title=words::TITLE.to_owned() on_close=stay has_address=true testid="unsaved">
                <div class="dialog-body"><p class="wide">{words::TEXT}</p></div>
                <div class="dialog-foot">
                    <span class="says"></span>
                    <button type="button" class=ButtonStyle::Danger.class() data-testid="unsaved-leave" on:click=move |_| nav.leave()>{words::LEAVE}</button>
                    <button type="button" class=ButtonStyle::Primary.class() data-testid="unsaved-stay" autofocus=true on:click=move |_| nav.stay()>{words::STAY}</button>
                </div>
            </Dialog>
        }))}
    }
}
