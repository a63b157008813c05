//! The choice to start when a plan limit is reset.

use super::LaunchForm;
use crate::model::status::Tone;
use crate::parts::icon::symbol;
use crate::reactive::{dynamic, effect, live, memo};
use crate::text::planned as words;
use crate::views::remote::limit_words;
use crate::views::times::clock_or_date;
use leptos::prelude::*;

/// Shown while a limit is known; the choice goes with it.
#[component]
pub fn Later(launch: LaunchForm) -> impl IntoView {
    let limit = launch.page.store.plan_limit;
    let is_known = memo(move || limit.with(Option::is_some));
    effect(move || {
        if !is_known.get() {
            launch.form.update(|form| form.waits = false);
        }
    });
    let waits = memo(move || launch.form.with(|form| form.waits));
    let told = memo(move || limit.get().map(|limit| limit_words(&limit)));
    let help = move || {
        let resets = limit.get().and_then(|limit| limit.resets_at).filter(|_| waits.get());
        match resets {
            Some(resets) => words::choice_help(&clock_or_date(resets)),
            None => words::NOW_HELP.to_owned(),
        }
    };
    let turn = move |_| launch.form.update(|form| form.waits = !form.waits);
    dynamic(move || {
        is_known.get().then(|| {
            view! {
                <p class=format!("wide strip {}", Tone::Warn.class()) data-testid="launch-limit">
                    {symbol("g-clock", "glyph")} <span>{dynamic(move || told.get())}</span>
                </p>
                <span class="label">{words::LABEL}</span>
                <div>
                    <button
                        type="button"
                        role="switch"
                        class="switch"
                        aria-checked=live(move || waits.get().to_string())
                        aria-describedby="launch-later-help"
                        data-testid="launch-later"
                        on:click=turn
                    >
                        {words::CHOICE}
                    </button>
                    <p class="help" id="launch-later-help">{dynamic(help)}</p>
                </div>
            }
        })
    })
}
