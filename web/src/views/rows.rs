//! A section of rows with its heading, on Home and on the pages of one kind.

use crate::live::Link;
use crate::model::sections::Section;
use crate::model::time;
use crate::page::page;
use crate::parts::window::Windowed;
use crate::prefs;
use crate::reactive::{derived, dynamic, memo};
use crate::store::{EXTERNAL, JOB, PLANNED};
use crate::text::page::link;
use crate::views::external_row::external_row;
use crate::views::job_row::job_row;
use crate::views::planned_row::planned_row;
use crate::views::session_row::session_row;
use leptos::prelude::*;
use svc_shared::Timestamp;

/// Height of a row with its border, pixels.
///
/// A row can be higher; rows outside the window count as if they were not.
const ROW_PX: usize = 65;
/// Height of a row of one line, pixels.
const DENSE_PX: usize = 41;
/// The same where its facts stand in a second line, pixels.
const NARROW_PX: usize = 57;
/// Height of a card on phones, with what is between two, pixels.
const CARD_PX: usize = 136;

/// The row of a key.
pub fn any_row(key: String, section: Section) -> AnyView {
    if let Some(id) = key.strip_prefix(JOB) {
        job_row(id.to_owned(), None)
    } else if let Some(project) = key.strip_prefix(EXTERNAL) {
        external_row(project.to_owned())
    } else if let Some(id) = key.strip_prefix(PLANNED) {
        planned_row(id.to_owned())
    } else {
        session_row(key, section)
    }
}

/// A section; nothing while it has no rows.
#[component]
pub fn Rows(
    /// Heading.
    title: &'static str,
    /// For tests and automation.
    testid: &'static str,
    /// Keys of the rows, in order.
    keys: Memo<Vec<String>>,
    /// How many there are, shown or not.
    total: Memo<Vec<String>>,
    /// One line per row.
    #[prop(optional)]
    dense: bool,
    /// The row of a key.
    row: Callback<String, AnyView>,
    /// At the end of the heading.
    #[prop(optional, into)]
    more: ViewFn,
) -> impl IntoView {
    let page = page();
    let is_empty = memo(move || keys.with(Vec::is_empty));
    let class = if dense { "card list rows dense" } else { "card list rows" };
    let row_px = derived(move || match (page.is_phone.get(), dense, page.is_narrow.get()) {
        (true, ..) => CARD_PX,
        (false, true, true) => NARROW_PX,
        (false, true, false) => DENSE_PX,
        (false, false, _) => ROW_PX,
    });
    view! {
        {dynamic(move || (!is_empty.get()).then(|| view! {
            <section aria-label=title data-testid=testid>
                <div class="section-head">
                    <h2>{title}</h2>
                    <span class="count num">{dynamic(move || total.with(Vec::len))}</span>
                    <AsOf />
                    <span class="end">{more.run()}</span>
                </div>
                <Windowed items=keys row_px=row_px row=row class=class label=title />
            </section>
        }))}
    }
}

/// How old the data is, beside the headings while the connection is lost.
#[component]
pub fn AsOf() -> impl IntoView {
    let page = page();
    view! {
        {dynamic(move || match page.live.link.get() {
            Link::Lost { as_of, .. } if page.live.is_offline.get() => {
                let at = time::clock(Timestamp::from_millis(as_of), prefs::zone(as_of));
                Some(view! { <span class="count num">{link::as_of_offline(&at)}</span> })
            }
            _ => None,
        })}
    }
}
