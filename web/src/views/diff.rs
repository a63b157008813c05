//! Changed lines as a table, with their numbers before and after.

use crate::model::changed_words::{MarkedLine, beside, marked};
use crate::model::shown::shown;
use crate::text::changes as words;
use leptos::prelude::*;
use svc_shared::internal::changes::{ChangedPart, LineSign};

/// The lines of changed parts, a new line below the one it replaces.
pub fn table(parts: &[ChangedPart]) -> AnyView {
    let one_part = |part: &ChangedPart| {
        let rows = marked(part).into_iter().map(one_line).collect_view();
        view! { <tbody>{heading(part)} {rows}</tbody> }
    };
    view! {
        <table class="diff" data-testid="diff">
            <thead class="sr-only">
                <tr><th>{words::OLD}</th><th>{words::NEW}</th><th>{words::MARK}</th><th>{words::TEXT}</th></tr>
            </thead>
            {parts.iter().map(one_part).collect_view()}
        </table>
    }
    .into_any()
}

/// The same lines, a new line beside the one it replaces.
pub fn beside_table(parts: &[ChangedPart]) -> AnyView {
    let one_part = |part: &ChangedPart| {
        let row = |(old, new)| view! { <tr>{half(old, true)} {half(new, false)}</tr> };
        let rows = beside(part).into_iter().map(row).collect_view();
        view! { <tbody>{heading(part)} {rows}</tbody> }
    };
    view! {
        <table class="diff diff-beside" data-testid="diff">
            <colgroup><col class="diff-number" /><col /><col class="diff-number" /><col /></colgroup>
            <thead class="sr-only">
                <tr><th>{words::OLD}</th><th>{words::TEXT}</th><th>{words::NEW}</th><th>{words::TEXT}</th></tr>
            </thead>
            {parts.iter().map(one_part).collect_view()}
        </table>
    }
    .into_any()
}

fn heading(part: &ChangedPart) -> AnyView {
    let first = if part.new_lines == 0 { part.old_start } else { part.new_start };
    view! { <tr><th class="changes-part" colspan="4" tabindex="-1">{words::part(first)}</th></tr> }
        .into_any()
}

/// Class, sign and word of a line.
fn look(sign: Option<LineSign>) -> (&'static str, &'static str, Option<&'static str>) {
    match sign {
        Some(LineSign::Added) => ("plus", "+", Some(words::ADDED)),
        Some(LineSign::Deleted) => ("minus", "−", Some(words::DELETED)),
        Some(LineSign::Same) | None => ("", "", None),
    }
}

fn text(line: &MarkedLine) -> AnyView {
    if line.pieces.is_empty() {
        return shown(&line.line.text).into_owned().into_any();
    }
    let piece = |(is_changed, text): &(bool, String)| {
        let text = shown(text).into_owned();
        if *is_changed { view! { <u>{text}</u> }.into_any() } else { text.into_any() }
    };
    line.pieces.iter().map(piece).collect_view().into_any()
}

fn number(number: Option<u64>) -> Option<String> {
    number.map(|number| number.to_string())
}

fn one_line(marked: MarkedLine) -> AnyView {
    let (class, mark, word) = look(marked.line.sign);
    view! {
        <tr class=class>
            <td class="num">{number(marked.line.old)}</td>
            <td class="num">{number(marked.line.new)}</td>
            <td class="mark" aria-label=word>{mark}</td>
            <td class="text">{text(&marked)}</td>
        </tr>
    }
    .into_any()
}

/// One side of a row; nothing stands there when the other side has no counterpart.
fn half(marked: Option<MarkedLine>, is_old: bool) -> AnyView {
    let Some(marked) = marked else {
        return view! { <td class="num none"></td> <td class="text none"></td> }.into_any();
    };
    let (class, mark, word) = look(marked.line.sign);
    let own = if is_old { marked.line.old } else { marked.line.new };
    view! {
        <td class=format!("num {class}")>{number(own)}</td>
        <td class=format!("text {class}")>
            <span class="mark" aria-label=word>{mark}</span>
            {text(&marked)}
        </td>
    }
    .into_any()
}
