//! What the page says about its connection and its own age.

use crate::live::{Link, Outdated};
use crate::model::status::Tone;
use crate::model::time;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::{icon, symbol};
use crate::prefs;
use crate::reactive::dynamic;
use crate::text::page::link as words;
use leptos::prelude::*;
use svc_shared::Timestamp;

/// Shown while the connection is lost, from two seconds on.
#[component]
pub fn Banner() -> impl IntoView {
    let page = page();
    let lost = move || match page.live.link.get() {
        Link::Lost { as_of, next_try, .. } if page.live.is_offline.get() => Some((as_of, next_try)),
        _ => None,
    };
    let as_of = move |at: i64| {
        let at = Timestamp::from_millis(at);
        words::as_of(&time::clock(at, prefs::zone(at.as_millis())))
    };
    let next = move |next: Option<i64>| match next {
        Some(at) if at - page.clock.seconds() >= 1_000 => {
            words::next_try(&time::span(at - page.clock.seconds()))
        }
        _ => words::TRYING.to_owned(),
    };
    view! {
        {dynamic(move || {
            lost()
                .map(|(at, at_next)| {
                    view! {
                        <div class=format!("banner {}", Tone::Warn.class()) role="status" data-testid="offline-banner">
                            {symbol("g-ring", "glyph")}
                            <span>
                                <b>{words::RECONNECTING}</b> " · " {as_of(at)}
                                <span class="num">" · " {dynamic(move || next(at_next))}</span>
                            </span>
                            <span class="end">
                                <span class="wide-only">{words::WAIT}</span>
                                <button
                                    type="button"
                                    class=ButtonStyle::Secondary.class()
                                    data-testid="retry-now"
                                    on:click=move |_| page.live.retry_now()
                                >
                                    {words::RETRY}
                                </button>
                            </span>
                        </div>
                    }
                })
        })}
    }
}

/// Shown when the page should be loaded anew.
#[component]
pub fn OutdatedStrip() -> impl IntoView {
    let page = page();
    let reload = move |_| {
        let _ = window().location().reload(); // a click can be repeated
    };
    view! {
        {dynamic(move || {
            page.live
                .outdated
                .get()
                .map(|why| {
                    let text = match why {
                        Outdated::NewVersion => words::NEW_VERSION,
                        Outdated::OtherProtocol => words::OTHER_PROTOCOL,
                    };
                    view! {
                        <div class=format!("strip {}", Tone::Info.class()) role="status" data-testid="outdated">
                            {icon("refresh", 16)} <b>{text}</b> <span class="row-actions strip-end">
                                <button
                                    type="button"
                                    class=ButtonStyle::Ghost.class()
                                    on:click=move |_| page.live.outdated.set(None)
                                >
                                    {words::LATER}
                                </button>
                                <button type="button" class=ButtonStyle::Secondary.class() on:click=reload>
                                    {words::RELOAD}
                                </button>
                            </span>
                        </div>
                    }
                })
        })}
    }
}
