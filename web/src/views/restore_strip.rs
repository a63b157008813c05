//! The offer on Home to restore what a restart of the machine ended.

use crate::browser;
use crate::model::restore as rules;
use crate::model::status::Tone;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::reactive::{dynamic, memo};
use crate::text::restore as words;
use leptos::prelude::*;

/// Address of the view.
const PATH: &str = "/ui/restore";
/// One line on Home while something can be restored, or is.
#[component]
pub fn RestoreStrip() -> impl IntoView {
    let page = page();
    page.restores.follow(page.store);
    let running = memo(move || {
        let job = page.store.restore.get().filter(rules::is_running)?;
        Some(rules::progress(&job))
    });
    let offered = memo(move || page.restores.offered());
    let strip = |text: String, act: &'static str, more: AnyView| {
        view! {
            <div class=format!("strip offer {}", Tone::Info.class()) data-testid="restore-strip">
                {icon("resume", 16)} <p><b>{text}</b></p>
                <a class="btn btn-soft" href=browser::href(PATH) data-testid="restore-open">{act}</a>
                {more}
            </div>
        }
        .into_any()
    };
    dynamic(move || match (running.get(), offered.get()) {
        (Some((done, all)), _) => strip(words::under_way(done, all), words::VIEW, ().into_any()),
        (None, 0) => ().into_any(),
        (None, n) => {
            let later = view! {
                <button
                    type="button"
                    class=ButtonStyle::Ghost.class()
                    data-testid="restore-later"
                    on:click=move |_| page.restores.put_off()
                >
                    {words::LATER}
                </button>
            };
            strip(words::ended(n), words::OPEN, later.into_any())
        }
    })
}
