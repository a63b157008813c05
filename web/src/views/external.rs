//! Everything that was started elsewhere on this machine.

use crate::appear::enter;
use crate::model::sections::Section;
use crate::page::page;
use crate::reactive::{dynamic, memo};
use crate::text::job::external as words;
use crate::views::home::Loading;
use crate::views::rows::{Rows, any_row};
use leptos::prelude::*;

/// The view.
#[component]
pub fn External() -> impl IntoView {
    let page = page();
    enter(words::TITLE);
    let keys = memo(move || page.store.externals());
    let is_empty = memo(move || keys.with(Vec::is_empty));
    let row = Callback::new(|key| any_row(key, Section::Live));
    view! {
        {dynamic(move || match (page.store.is_loaded.get(), is_empty.get()) {
            (false, _) => view! { <Loading /> }.into_any(),
            (true, true) => view! {
                <div class="card empty" data-testid="external-empty"><p>{words::EMPTY}</p></div>
            }.into_any(),
            (true, false) => view! {
                <Rows title=words::TITLE testid="section-external" keys=keys total=keys row=row />
            }.into_any(),
        })}
    }
}
