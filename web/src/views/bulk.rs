//! Actions on several rows.
//!
//! This is the box of a row, the bar while rows are selected, and the question with its results.

use crate::act::bulk::Results;
use crate::focus;
use crate::model::bulk::Verb;
use crate::model::shown::shown;
use crate::model::status::{Glyph, Tone};
use crate::page::Sheet;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::dialog::Dialog;
use crate::parts::icon::{glyph, symbol};
use crate::reactive::{dynamic, live, memo};
use crate::text::bulk as words;
use crate::text::launch;
use crate::text::page::link;
use crate::text::session::named;
use leptos::prelude::*;

/// The box that selects a row.
///
/// Until a row is selected, it is visible only under the pointer or the focus. The key `x` does the
/// same.
pub fn pick(key: String, name: Memo<String>) -> AnyView {
    let page = page();
    let own = key.clone();
    let is = memo(move || page.store.selected.with(|all| all.contains(&own)));
    let press = move |event: web_sys::MouseEvent| {
        // A click on what is selected takes it out, whatever else is pressed.
        if event.shift_key() && !is.get_untracked() {
            page.select_to(&key);
        } else {
            page.select(&key);
        }
    };
    view! {
        <input
            type="checkbox"
            class="pick"
            aria-label=live(move || named(words::SELECT, &name.get()))
            prop:checked=is
            data-testid="pick"
            on:click=press
        />
    }
    .into_any()
}

/// What can be done to the selected rows.
#[component]
pub fn BulkBar() -> impl IntoView {
    let page = page();
    let many = memo(move || page.store.selected.with(Vec::len));
    let button = move |verb: Verb| {
        let of = memo(move || page.chosen(verb).len());
        dynamic(move || {
            let n = of.get();
            (n > 0).then(|| {
                view! {
                    <button
                        type="button"
                        class=ButtonStyle::Secondary.class()
                        data-testid=format!("bulk-{}", verb.label())
                        on:click=move |_| page.sheet.set(Some(Sheet::Bulk(verb)))
                    >
                        {words::on(verb.label(), n)}
                    </button>
                }
            })
        })
    };
    view! {
        {dynamic(move || page.is_selecting.get().then(|| view! {
            <section class="bulk card" aria-label=words::LABEL data-testid="bulk">
                <b class="num">{dynamic(move || words::selected(many.get()))}</b>
                {Verb::ALL.map(button)}
                <button
                    type="button"
                    class=ButtonStyle::Ghost.class()
                    data-testid="bulk-clear"
                    on:click=move |_| {
                        let last = page.store.selected.with_untracked(|all| all.last().cloned());
                        page.select_none();
                        focus::rescue_row(&last.unwrap_or_default());
                    }
                >
                    {words::CLEAR}
                </button>
            </section>
        }))}
    }
}

/// The question before it is done to all of them; then what came of each.
#[component]
pub fn BulkSheet(
    /// What is done.
    verb: Verb,
) -> impl IntoView {
    let page = page();
    let all = untrack(|| page.chosen(verb));
    let many = all.len();
    let is_sent = RwSignal::new(false);
    let results: Results = RwSignal::new(Vec::new());
    let close = Callback::new(move |()| {
        page.sheet.set(None);
        if is_sent.get_untracked() {
            page.select_none();
        }
    });
    let rows = all
        .iter()
        .map(|(_, target)| {
            let id = target.id.clone();
            let result = move || {
                let found = results.with(|all| all.iter().rev().find(|(of, _)| *of == id).cloned());
                found.map(|(_, notice)| {
                    let (shape, tone) = if notice.level.stays() {
                        (Glyph::Triangle, Tone::Warn)
                    } else {
                        (Glyph::CheckDisc, Tone::Ok)
                    };
                    let text = if notice.body.is_empty() { notice.title } else { notice.body };
                    view! {
                        <span class=format!("bulk-result {}", tone.class()) data-testid="bulk-result">
                            {glyph(shape)} <bdi>{shown(&text).into_owned()}</bdi>
                        </span>
                    }
                    .into_any()
                })
            };
            view! {
                <li data-testid="bulk-row">
                    <b><bdi>{shown(&target.project).into_owned()}</bdi></b>
                    {dynamic(move || match (is_sent.get(), result()) {
                        (_, Some(result)) => result,
                        (true, None) => symbol("g-arc", "icon icon-14 turns").into_any(),
                        (false, None) => ().into_any(),
                    })}
                </li>
            }
        })
        .collect_view();
    let all = StoredValue::new(all);
    let is_offline = page.live.is_offline;
    let send = move |_| {
        if is_offline.get_untracked() {
            page.say.politely(link::OFFLINE);
            return;
        }
        is_sent.set(true);
        page.do_all(verb, all.get_value(), results);
        focus::rescue("[data-testid=bulk-close]");
    };
    let danger = if verb == Verb::Resume { ButtonStyle::Primary } else { ButtonStyle::Danger };
    view! {
        <Dialog title=words::question(verb.label(), many) on_close=close testid="bulk-dialog">
            <div class="dialog-body">
                <p class="wide muted">{verb.effect()}</p>
                <ul class="wide bulk-list" aria-live="polite">{rows}</ul>
            </div>
            <div class="dialog-foot">
                {dynamic(move || if is_sent.get() {
                    view! {
                        <button type="button" class=ButtonStyle::Secondary.class() data-testid="bulk-close" on:click=move |_| close.run(())>
                            {launch::CLOSE}
                        </button>
                    }
                    .into_any()
                } else {
                    view! {
                        <button type="button" class=ButtonStyle::Secondary.class() autofocus data-testid="bulk-no" on:click=move |_| close.run(())>
                            {words::CANCEL}
                        </button>
                        {dynamic(move || is_offline.get().then(|| view! { <span class="reason" id="bulk-why">{link::OFFLINE}</span> }))}
                        <button
                            type="button"
                            class=danger.class()
                            aria-disabled=live(move || is_offline.get().then_some("true"))
                            aria-describedby=live(move || is_offline.get().then_some("bulk-why"))
                            data-testid="bulk-yes"
                            on:click=send
                        >
                            {words::on(verb.label(), many)}
                        </button>
                    }
                    .into_any()
                })}
            </div>
        </Dialog>
    }
}
