//! The frame of a row: one shape for bridges, background jobs and what was started elsewhere.

use crate::dom::prelude::*;
use crate::model::external::{is_blocked, line};
use crate::model::shown::shown;
use crate::model::status::Face;
use crate::parts::icon::glyph;
use crate::parts::reactive::{Cached, Live, dynamic, live, memo};
use crate::parts::times::Age;
use std::sync::Arc;
use svc_shared::Timestamp;
use svc_shared::api::sessions::WorkingSession;

/// What stands in the frame.
pub struct Row {
    /// Key of the row, for the focus.
    pub key: String,
    /// For tests and automation.
    pub testid: &'static str,
    /// The bridge, if it is one.
    pub instance: Option<String>,
    /// Project as written, for tests and automation.
    pub project: Live<String>,
    /// Status as written, for tests and automation.
    pub status: Live<String>,
    /// Where the name leads.
    pub href: String,
    /// How it stands.
    pub face: Cached<Face>,
    /// Name.
    pub name: Cached<String>,
    /// Further name.
    pub label: Cached<Option<String>>,
    /// Kind.
    pub kind: Cached<String>,
    /// Chips after the kind.
    pub chips: AnyView,
    /// Facts after the status word.
    pub facts: AnyView,
    /// Buttons.
    pub actions: AnyView,
    /// Lines below.
    pub below: AnyView,
}

impl Row {
    /// The row.
    pub fn view(self) -> AnyView {
        let Self { face, name, label, kind, .. } = self;
        view! {
            <li
                class=live(move || format!("row {}", face.with(|face| face.tone.class())))
                data-testid=self.testid
                data-row=self.key
                data-project=self.project
                data-instance=self.instance
                data-status=self.status
                aria-label=live(move || format!("{}, {}", name.get(), face.get().word))
            >
                <span class="glyphs">
                    {dynamic(move || face.with(|face| (glyph(face.glyph), face.under.map(glyph))))}
                </span>
                <div class="row-text">
                    <div class="row-line">
                        <a class="name" href=self.href><bdi>{name.live()}</bdi></a>
                        {dynamic(move || label.get().map(|label| view! { <span class="label"><bdi>{label}</bdi></span> }))}
                        <span class="badge">{kind.live()}</span> {self.chips}
                    </div>
                    <span class="word" data-testid="status-word">{dynamic(move || face.with(|face| face.word.clone()))}</span>
                    <div class="row-facts">
                        <span class="fact only-phone">{kind.live()}</span>
                        {self.facts}
                    </div>
                </div>
                <div class="row-actions">{self.actions}</div>
                {self.below}
            </li>
        }
        .into_any()
    }
}

/// One fact.
pub fn fact(text: &str) -> AnyView {
    view! { <span class="fact"><bdi>{shown(text).into_owned()}</bdi></span> }.into_any()
}

/// The working sessions below a row: folded, unless one of them waits for a person.
#[component]
pub fn Inside(
    /// The sessions.
    sessions: Signal<Arc<Vec<WorkingSession>>>,
    /// How many, in words.
    count: fn(usize) -> String,
) -> impl IntoView {
    let some = memo(move || !sessions.get().is_empty());
    let blocked = memo(move || is_blocked(&sessions.get()));
    let rows = move || {
        sessions
            .get()
            .iter()
            .map(|session| {
                let (face, name, waits) = line(session);
                let since = Timestamp::from_millis(session.started_at);
                view! {
                    <li class=face.tone.class() data-testid="inside-session">
                        {glyph(face.glyph)} <bdi>{shown(&name).into_owned()}</bdi>
                        <span><span class="word">{face.word}</span> {waits.as_deref().map(fact)}
                        <span class="fact"><Age since=Signal::stored(since) /></span></span>
                    </li>
                }
            })
            .collect_view()
    };
    view! {
        {dynamic(move || some.get().then(|| view! {
            <details class="below-row" data-testid="inside" open=blocked.live()>
                <summary>{dynamic(move || count(sessions.get().len()))}</summary>
                <ul>{dynamic(rows)}</ul>
            </details>
        }))}
    }
}
