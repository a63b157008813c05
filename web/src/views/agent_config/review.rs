//! What a save would change, what changed meanwhile, and the confirmation.

use super::editor::{Earlier, Editor, Meanwhile};
use crate::model::agent_config::diff::{parts, totals};
use crate::model::agent_config::merge::count;
use crate::model::agent_config::{REVIEWED, Subject};
use crate::model::shown::shown;
use crate::model::time;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::symbol;
use crate::prefs;
use crate::reactive::{derived, dynamic, live, memo};
use crate::text::agent_config::{self as words, review};
use crate::views::diff::table;
use leptos::prelude::*;
use serde_json::Value;
use svc_shared::internal::agent_config::ConfigCopy;

/// The notice that the file has changed meanwhile.
pub fn notice(editor: Editor) -> AnyView {
    let is_shown = RwSignal::new(false);
    let strip = move |meanwhile: Meanwhile| {
        let same = meanwhile.before == meanwhile.now;
        let rest = match (meanwhile.is_open, same) {
            (true, _) => review::CONFLICT_REST,
            (false, true) => review::OTHER_PART,
            (false, false) => review::MERGED_REST,
        };
        let decide = meanwhile.is_open.then(|| {
            view! {
                <button
                    type="button" class=ButtonStyle::Secondary.class() data-testid="config-theirs"
                    on:click=move |_| editor.discard()
                >{review::THEIRS}</button>
                <button
                    type="button" class=ButtonStyle::Secondary.class() data-testid="config-mine"
                    on:click=move |_| editor.meanwhile.update(|it| if let Some(it) = it { it.is_open = false })
                >{review::MINE}</button>
            }
        });
        let show = (!same).then(|| {
            view! {
                <button
                    type="button" class=ButtonStyle::Secondary.class() data-testid="config-show-change"
                    aria-expanded=live(move || is_shown.get().to_string())
                    on:click=move |_| is_shown.update(|is_shown| *is_shown = !*is_shown)
                >{live(move || if is_shown.get() { review::HIDE } else { review::SHOW })}</button>
            }
        });
        view! {
            <div class="config-notice tone-warn" role="alert" data-testid="config-meanwhile" data-open=meanwhile.is_open.to_string()>
                {symbol("g-triangle", "glyph")}
                <p><b>{review::MERGED}</b> " " {rest}</p>
                <span class="end">{show} {decide}</span>
            </div>
            {dynamic(move || is_shown.get().then(|| view! {
                <div class="config-diff" data-testid="config-their-change">{table(&parts(&meanwhile.before, &meanwhile.now))}</div>
            }))}
        }
    };
    dynamic(move || editor.meanwhile.get().map(strip))
}

/// The earlier versions, once they are asked for.
pub fn versions(editor: Editor) -> AnyView {
    let one = move |copy: ConfigCopy| {
        let id = StoredValue::new(copy.id.clone());
        let at = time::date_time(copy.at, prefs::zone(copy.at.as_millis()));
        let is_chosen = memo(move || {
            editor.earlier.with(|it| it.as_ref().is_some_and(|it| id.with_value(|id| *id == it.id)))
        });
        view! {
            <li>
                <time datetime=copy.at.to_string()>{at}</time>
                <button
                    type="button" class=ButtonStyle::Secondary.class() data-testid="config-compare"
                    aria-pressed=live(move || is_chosen.get().to_string())
                    on:click=move |_| editor.look_at(id.get_value())
                >{review::COMPARE}</button>
            </li>
        }
    };
    dynamic(move || {
        editor.versions.get().map(|found| {
            view! {
                <section class="config-versions" aria-label=words::VERSIONS data-testid="config-versions">
                    {if found.is_empty() {
                        view! { <p class="muted" role="status">{review::NO_VERSIONS}</p> }.into_any()
                    } else {
                        view! {
                            <h3>{review::VERSIONS}</h3>
                            <ul>{found.into_iter().map(one).collect_view()}</ul>
                        }.into_any()
                    }}
                </section>
            }
        })
    })
}

/// The differences and the confirmation; nothing while nothing was changed.
pub fn review(editor: Editor) -> AnyView {
    let is_wanted = memo(move || editor.is_dirty() || editor.earlier.with(Option::is_some));
    dynamic(move || is_wanted.get().then(|| body(editor)))
}

fn body(editor: Editor) -> AnyView {
    let values = move || -> Option<(Value, Value, bool)> {
        let before = editor.known.get()?.value;
        match editor.earlier.get() {
            Some(Earlier { value, .. }) => Some((before, value, true)),
            None => Some((before, editor.draft.get(), false)),
        }
    };
    let head = move || {
        values().map(|(before, after, is_earlier)| {
            let changed = parts(&before, &after);
            let (added, deleted) = totals(&changed);
            let title = match (is_earlier, changed.is_empty()) {
                (true, true) => review::SAME.to_owned(),
                (true, false) => review::WILL_RETURN.to_owned(),
                (false, _) => review::will_be_written(count(&before, &after)),
            };
            view! {
                <div class="config-review-head">
                    <h3 data-testid="config-review-title">{title}</h3>
                    <span class="num counts">
                        <span class="plus">{format!("+{added}")}</span> <span class="minus">{format!("−{deleted}")}</span>
                    </span>
                </div>
                <div class="config-diff">{table(&changed)}</div>
            }
        })
    };
    view! {
        <section class="config-review" data-testid="config-review" role="region" aria-live="off" aria-label=review::REVIEW>
            {dynamic(head)}
            {dynamic(move || editor.refused.get().map(|said| view! {
                <p class="config-refused tone-danger" role="alert" data-testid="config-refused">{shown(&said).into_owned()}</p>
            }))}
            {confirm(editor)}
        </section>
        {bar(editor)}
    }
    .into_any()
}

/// What is missing of the word that confirms; empty when it is there.
pub fn missing(typed: &str, wanted: &str) -> Option<String> {
    if typed == wanted {
        return None;
    }
    Some(match wanted.strip_prefix(typed) {
        Some(rest) => review::missing(rest.chars().count()),
        None => review::DIFFERS.to_owned(),
    })
}

fn confirm(editor: Editor) -> AnyView {
    let wanted = StoredValue::new(editor.confirmation());
    let is_earlier = memo(move || editor.earlier.with(Option::is_some));
    let is_script = editor.subject.with_value(Subject::is_script);
    let why_not = derived(move || {
        let is_open = editor.meanwhile.with(|it| it.as_ref().is_some_and(|it| it.is_open));
        match is_earlier.get() {
            false if is_open => Some(review::DECIDE.to_owned()),
            false if editor.is_faulty() => Some(review::REPAIR.to_owned()),
            is_earlier => {
                let word =
                    editor.typed.with(|typed| wanted.with_value(|wanted| missing(typed, wanted)));
                let reviewed = || editor.reviewed.with(|typed| missing(typed, REVIEWED));
                word.or_else(|| if is_script && !is_earlier { reviewed() } else { None })
            }
        }
    });
    let go = move || {
        if why_not.get_untracked().is_some() || editor.is_pending.get_untracked() {
            return;
        }
        match is_earlier.get_untracked() {
            true => editor.put_back(),
            false => editor.save(),
        }
    };
    let press = move |event: web_sys::KeyboardEvent| {
        if event.key() == "Enter" {
            event.prevent_default();
            go();
        }
    };
    let back = move |_| {
        if is_earlier.get_untracked() {
            editor.earlier.set(None);
            editor.typed.set(String::new());
            editor.is_reviewing.set(false);
        } else {
            editor.discard();
        }
    };
    let verb = words::label(editor.surface());
    let page = page();
    let is_off = move || (why_not.get().is_some() || editor.is_pending.get()).then_some("true");
    view! {
        <div class="config-confirm">
            <label for="config-typed">
                {review::TYPE} " " <b><bdi>{shown(&wanted.get_value()).into_owned()}</bdi></b> " "
                {live(move || if is_earlier.get() { review::TO_RESTORE } else { review::TO_SAVE })}
            </label>
            <input
                class="input mono" id="config-typed" type="text" autocomplete="off" autocapitalize="off" spellcheck="false"
                data-testid="config-typed" aria-describedby="config-why"
                prop:value=editor.typed
                on:input=move |event| editor.typed.set(event_target_value(&event))
                on:keydown=press
            />
            {dynamic(move || (is_script && !is_earlier.get()).then(|| view! {
                <label for="config-reviewed">{review::REVIEW_SCRIPT} " " <b>{REVIEWED}</b></label>
                <input
                    class="input mono" id="config-reviewed" autocomplete="off" spellcheck="false" data-testid="config-reviewed"
                    prop:value=editor.reviewed
                    on:input=move |event| editor.reviewed.set(event_target_value(&event))
                />
            }))}
            <span class="end">
                <button type="button" class="btn btn-ghost config-to-form" on:click=move |_| editor.is_reviewing.set(false)>{review::BACK}</button>
                <button type="button" class=ButtonStyle::Ghost.class() data-testid="config-discard" on:click=back>
                    {live(move || if is_earlier.get() { review::CANCEL } else { review::DISCARD })}
                </button>
                <span class="muted" id="config-why" aria-live="polite">{dynamic(move || why_not.get())}</span>
                <button
                    type="button" class=ButtonStyle::Primary.class() data-testid="config-save"
                    aria-disabled=live(is_off)
                    aria-busy=live(move || editor.is_pending.get().then_some("true"))
                    on:click=move |_| if let Some(why) = why_not.get_untracked() { page.say.politely(&why) } else { go() }
                >{live(move || if is_earlier.get() { review::PUT_BACK.to_owned() } else { review::save(&verb_of(verb)) })}</button>
            </span>
        </div>
    }
    .into_any()
}

/// A name within a sentence.
fn verb_of(label: &str) -> String {
    match label.chars().nth(1) {
        Some(second) if second.is_lowercase() => label.to_lowercase(),
        _ => label.to_owned(),
    }
}

/// On a phone: how much is changed, and the way to the differences.
fn bar(editor: Editor) -> AnyView {
    let changed = move || {
        let known = editor.known.get()?.value;
        Some(review::changes(editor.draft.with(|draft| count(&known, draft))))
    };
    view! {
        <div class="config-bar" data-testid="config-bar">
            <p><b>{dynamic(changed)}</b> <span class="muted">{review::WHEN}</span></p>
            <button type="button" class=ButtonStyle::Ghost.class() on:click=move |_| editor.discard()>{review::DISCARD}</button>
            <button
                type="button" class=ButtonStyle::Primary.class() data-testid="config-to-review"
                on:click=move |_| {
                    editor.is_reviewing.set(true);
                    crate::browser::after_paint(|| if let Some(review) = crate::browser::element("[data-testid=config-review]") {
                        review.scroll_into_view();
                    });
                }
            >{review::REVIEW}</button>
        </div>
    }
    .into_any()
}
