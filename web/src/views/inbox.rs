//! The inbox: everything that waits for a person.

use crate::appear::enter;
use crate::model::job::Group;
use crate::model::sections::Section;
use crate::page::page;
use crate::reactive::{dynamic, memo};
use crate::text::direct as words;
use crate::text::page::nav as nav_words;
use crate::views::question::Question;
use crate::views::rows::{Rows, any_row};
use leptos::prelude::*;

/// Everything that waits for a person, the oldest first.
#[component]
pub fn Inbox() -> impl IntoView {
    let page = page();
    enter(words::INBOX);
    let asked = page.store.questions;
    let jobs = memo(move || page.store.jobs_of(&[Group::Waiting]));
    view! {
        {dynamic(move || {
            let count = asked.with(Vec::len) + jobs.with(Vec::len);
            if count == 0 {
                return view! {
                    <div class="card page-card" data-testid="inbox-empty">
                        <p>{words::EMPTY}</p>
                        <p class="muted">{words::EMPTY_WHY}</p>
                    </div>
                }
                .into_any();
            }
            view! { <p class="muted" role="status">{words::waiting(count)}</p> }.into_any()
        })}
        <For
            each=move || asked.get()
            key=|one| (one.id.clone(), one.asked.request_id.clone())
            children=|one| view! { <Question of=one has_link=true /> }
        />
        <Rows
            title=nav_words::BACKGROUND testid="inbox-jobs" keys=jobs total=jobs
            row=Callback::new(|key| any_row(key, Section::Waiting))
        />
    }
}
