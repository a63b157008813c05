//! The changed lines of one file, and what can be done with them.

use crate::model::changed_words::patch;
use crate::model::changes::FileLines;
use crate::model::prefs::DIFF;
use crate::model::shown::shown;
use crate::nav::nav;
use crate::page::page;
use crate::parts::icon::{icon, symbol};
use crate::reactive::{dynamic, live, memo};
use crate::text::changes as words;
use crate::views::changes::{BESIDE, FILE, Reader, Reading, counts, step};
use crate::views::copy::copy;
use crate::views::diff::{beside_table, table};
use leptos::prelude::*;
use std::sync::Arc;
use svc_shared::error::ErrorCode;
use svc_shared::internal::changes::ChangeKind;

/// The chosen file.
pub fn changed_file(reader: Reader) -> AnyView {
    let nav = nav();
    let chosen = reader.chosen.get();
    if chosen.is_empty() {
        return view! { <p class="log-empty changes-choose">{words::CHOOSE}</p> }.into_any();
    }
    let back = move |_| nav.set_query(&[(FILE, "")], true);
    let page = page();
    let path = StoredValue::new(chosen);
    let facts = move || {
        let (letter, word) = words::status(reader.entry()?.status.known());
        Some(view! {
            <span class="changes-status">
                <span class=format!("letter letter-{word}") aria-hidden="true">{letter}</span>
                <span class="muted">{word}</span>
            </span>
        })
    };
    // What was read in parts is no patch before its last part is there.
    let whole = move || match reader.file.get() {
        Reading::Done(file) if file.next_from.is_none() && !file.hunks.is_empty() => Some(file),
        Reading::Done(_) | Reading::Under | Reading::Failed(_) => None,
    };
    let is_whole = memo(move || whole().is_some());
    let copy_patch = move |_| {
        let Some(file) = untrack(whole) else { return };
        let old = untrack(|| reader.entry()).and_then(|entry| entry.old_path);
        copy(page, patch(&file.path, old.as_deref(), &file.hunks), None);
    };
    let is_viewed = memo(move || reader.entry().is_some_and(|file| reader.has_viewed(&file)));
    let content = move || match reader.file.get() {
        Reading::Under => {
            view! { <p class="log-empty" aria-busy="true">{words::LOADING}</p> }.into_any()
        }
        Reading::Failed(problem) => {
            let text = match problem.is(ErrorCode::NotFound) {
                true => words::GONE.to_owned(),
                false => problem.words(),
            };
            view! { <p class="log-empty" role="alert" data-testid="file-failed">{text}</p> }
                .into_any()
        }
        Reading::Done(file) => lines(reader, &file),
    };
    view! {
        <div class="changes-head">
            <button type="button" class="btn btn-ghost changes-back" data-testid="changes-back" on:click=back>
                {icon("chevron-left", 16)} {words::ALL_FILES}
            </button>
            {dynamic(facts)}
            <h3><bdi>{move || shown(&path.get_value()).into_owned()}</bdi></h3>
            {dynamic(move || reader.entry().map(|file| counts(file.additions, file.deletions)))}
            <span class="end">
                <button
                    type="button" class="btn btn-ghost btn-icon" aria-label=words::PREVIOUS
                    data-testid="change-previous" on:click=move |_| step(".changes-part", -1)
                >
                    {icon("chevron-up", 16)}
                </button>
                <button
                    type="button" class="btn btn-ghost btn-icon" aria-label=words::NEXT
                    data-testid="change-next" on:click=move |_| step(".changes-part", 1)
                >
                    {icon("chevron-down", 16)}
                </button>
                <button
                    type="button" class="btn btn-ghost btn-icon" aria-label=words::COPY_PATH
                    title=words::COPY_PATH on:click=move |_| copy(page, path.get_value(), None)
                >
                    {icon("copy", 16)}
                </button>
                <button
                    type="button" class="btn btn-ghost" data-testid="copy-patch"
                    disabled=live(move || !is_whole.get())
                    title=live(move || (!is_whole.get()).then_some(words::NOT_WHOLE))
                    on:click=copy_patch
                >
                    {words::COPY_PATCH}
                </button>
                <label class="changes-viewed">
                    <input
                        type="checkbox" data-testid="viewed"
                        prop:checked=move || is_viewed.get()
                        on:change=move |_| reader.turn_viewed()
                    />
                    {words::VIEWED}
                </label>
            </span>
        </div>
        {dynamic(content)}
    }
    .into_any()
}

fn lines(reader: Reader, file: &Arc<FileLines>) -> AnyView {
    let remark = match file.kind.known() {
        Some(ChangeKind::Binary) => Some(words::BINARY),
        Some(ChangeKind::Submodule) => Some(words::SUBMODULE),
        Some(ChangeKind::Symlink) => Some(words::SYMLINK),
        Some(ChangeKind::Text) | None if !file.hunks.is_empty() || file.too_large => None,
        Some(ChangeKind::Text) | None => {
            let (_, word) = words::status(file.status.known());
            Some(if matches!(word, "untracked" | "added") {
                words::EMPTY_FILE
            } else {
                words::NO_LINES
            })
        }
    };
    let after = Arc::clone(file);
    let more = file.next_from.map(|_| {
        view! {
            <p class="changes-note">
                <button
                    type="button"
                    class="linkish"
                    data-testid="changes-more"
                    on:click=move |_| reader.read_file(Some(Arc::clone(&after)))
                >
                    {words::MORE}
                </button>
            </p>
        }
    });
    view! {
        {(file.masked > 0).then(|| view! {
            <p class="changes-note tone-warn" data-testid="changes-masked">
                {symbol("g-triangle", "glyph")} {words::masked(file.masked)}
            </p>
        })}
        {file.too_large.then(|| view! { <p class="changes-note tone-warn">{words::TOO_LARGE}</p> })}
        {remark.map(|remark| view! { <p class="log-empty" data-testid="file-remark">{remark}</p> })}
        {(!file.hunks.is_empty()).then(|| shown_lines(Arc::clone(file)))}
        {more}
    }
    .into_any()
}

/// The lines in the layout that the person likes.
fn shown_lines(file: Arc<FileLines>) -> AnyView {
    let page = page();
    let is_beside =
        memo(move || !page.is_small.get() && page.prefs.with(|prefs| prefs.word(DIFF) == BESIDE));
    dynamic(move || match is_beside.get() {
        true => beside_table(&file.hunks),
        false => table(&file.hunks),
    })
}
