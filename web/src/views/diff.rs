//! Changed lines as a table, with their numbers before and after.

use crate::model::changes::{NumberedLine, numbered};
use crate::model::shown::shown;
use crate::text::changes as words;
use leptos::prelude::*;
use svc_shared::internal::changes::{ChangedPart, LineSign};

/// The lines of changed parts.
pub fn table(parts: &[ChangedPart]) -> AnyView {
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

fn one_part(part: &ChangedPart) -> AnyView {
    let rows = numbered(part).into_iter().map(one_line).collect_view();
    let first = if part.new_lines == 0 { part.old_start } else { part.new_start };
    view! {
        <tbody>
            <tr><th class="changes-part" colspan="4" tabindex="-1">{words::part(first)}</th></tr>
            {rows}
        </tbody>
    }
    .into_any()
}

fn one_line(line: NumberedLine) -> AnyView {
    let (class, mark, word) = match line.sign {
        Some(LineSign::Added) => ("plus", "+", Some(words::ADDED)),
        Some(LineSign::Deleted) => ("minus", "−", Some(words::DELETED)),
        Some(LineSign::Same) | None => ("", "", None),
    };
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    view! {
        <tr class=class>
            <td class="num">{number(line.old)}</td>
            <td class="num">{number(line.new)}</td>
            <td class="mark" aria-label=word>{mark}</td>
            <td class="text">{shown(&line.text).into_owned()}</td>
        </tr>
    }
    .into_any()
}
