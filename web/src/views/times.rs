//! Points in time and ages that keep themselves up to date.

use crate::model::time;
use crate::page::page;
use crate::prefs;
use crate::reactive::{live, memo};
use crate::text::page::link;
use leptos::prelude::*;
use svc_shared::Timestamp;

/// How long something has been so: `18 min`. Absolute while the connection is lost.
#[component]
pub fn Age(
    /// Since when.
    #[prop(into)]
    since: Signal<Timestamp>,
) -> impl IntoView {
    let page = page();
    let text = memo(move || {
        let at = since.get();
        let millis = at.as_millis();
        if page.live.is_offline.get() {
            let zone = prefs::zone(millis);
            return link::since(&time::clock_or_date(at, page.clock.now(), zone));
        }
        time::span(page.clock.for_age(millis) - millis)
    });
    view! { <time datetime=live(move || since.get().to_string()) title=live(move || absolute(since.get()))>{text}</time> }
}

/// When something happened.
///
/// The time is relative under a day, and absolute otherwise or while the connection is lost.
#[component]
pub fn When(
    /// When.
    #[prop(into)]
    at: Signal<Timestamp>,
) -> impl IntoView {
    let page = page();
    let text = memo(move || {
        let at = at.get();
        let millis = at.as_millis();
        let zone = prefs::zone(millis);
        if page.live.is_offline.get() {
            return time::clock_or_date(at, page.clock.now(), zone);
        }
        let text = time::ago(at, page.clock.for_age(millis), zone);
        if time::is_relative(&text) { text } else { text + &prefs::zone_mark() }
    });
    view! { <time datetime=live(move || at.get().to_string()) title=live(move || absolute(at.get()))>{text}</time> }
}

/// The time of day within a day, else date and time, in the chosen zone.
///
/// Tracked.
pub fn clock_or_date(at: Timestamp) -> String {
    let zone = prefs::zone(at.as_millis());
    time::clock_or_date(at, page().clock.now(), zone) + &prefs::zone_mark()
}

/// Date and time in the zone that is chosen.
pub fn absolute(at: Timestamp) -> String {
    time::date_time(at, prefs::zone(at.as_millis())) + &prefs::zone_mark()
}
