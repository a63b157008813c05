//! The frame of a row.
//!
//! Bridges, background jobs and external sessions share it.

use crate::model::external::{is_blocked, line, same_session};
use crate::model::shown::shown;
use crate::model::status::Face;
use crate::model::window::ALL_UP_TO;
use crate::page::page;
use crate::parts::icon::{glyph, icon};
use crate::parts::window::Listed;
use crate::reactive::{dynamic, effect, live, memo};
use crate::store::{EXTERNAL, PLANNED};
use crate::views::bulk::pick;
use crate::views::remote::provenance;
use crate::views::times::Age;
use leptos::prelude::*;
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
    pub project: Signal<String>,
    /// Status as written, for tests and automation.
    pub status: Signal<String>,
    /// Where the name leads.
    pub href: String,
    /// How it stands.
    pub face: Memo<Face>,
    /// Name.
    pub name: Memo<String>,
    /// Further name.
    pub label: Memo<Option<String>>,
    /// Kind.
    pub kind: Memo<String>,
    /// Chips after the kind.
    pub chips: AnyView,
    /// Facts after the status word.
    pub facts: AnyView,
    /// What it uses.
    pub used: AnyView,
    /// Buttons.
    pub actions: AnyView,
    /// Lines below.
    pub below: AnyView,
}

impl Row {
    /// The row.
    pub fn view(self) -> AnyView {
        let Self { face, name, label, kind, .. } = self;
        let page = page();
        let own = self.key.clone();
        let has_box = ![EXTERNAL, PLANNED].iter().any(|kind| own.starts_with(kind));
        let pick = has_box.then(|| pick(own.clone(), name));
        // Of a long list only a part exists.
        let listed = leptos::prelude::use_context::<Listed>();
        let key = own.clone();
        let at = memo(move || {
            let list = listed.filter(|list| list.size() > ALL_UP_TO)?;
            Some((list.place(&key), list.size())).filter(|(at, _)| *at > 0)
        });
        let position = live(move || at.get().map(|(at, _)| at.to_string()));
        let size = live(move || at.get().map(|(_, of)| of.to_string()));
        view! {
            <li
                class=live(move || {
                    let selected = page.store.selected.with(|all| all.contains(&own)).then_some("selected");
                    format!("row {} {}", face.with(|face| face.tone.class()), selected.unwrap_or_default())
                })
                aria-posinset=position
                aria-setsize=size
                data-testid=self.testid
                data-row=self.key
                data-project=self.project
                data-instance=self.instance
                data-status=self.status
                aria-label=live(move || format!("{}, {}", name.get(), face.get().word))
            >
                {pick}
                <span class="glyphs">
                    {dynamic(move || face.with(|face| (glyph(face.glyph), face.under.map(glyph))))}
                </span>
                <div class="row-text">
                    <div class="row-line">
                        <a class="name" href=self.href><bdi>{name}</bdi></a>
                        {dynamic(move || label.get().map(|label| view! { <span class="label"><bdi>{label}</bdi></span> }))}
                        <span class="badge">{kind}</span> {self.chips}
                    </div>
                    <span class="word" data-testid="status-word">{dynamic(move || face.with(|face| face.word.clone()))}</span>
                    <div class="row-facts">
                        <span class="fact only-phone">{kind}</span>
                        {self.facts}
                    </div>
                </div>
                <div class="row-end">{self.used} <div class="row-actions">{self.actions}</div></div>
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
#[derive(Clone, Copy)]
pub struct Inside {
    sessions: Signal<Arc<Vec<WorkingSession>>>,
    is_open: Memo<bool>,
    /// What a person wants, as long as it is about the same need.
    wanted: RwSignal<Option<bool>>,
}

impl Inside {
    /// Of these sessions.
    pub fn new(sessions: Signal<Arc<Vec<WorkingSession>>>) -> Self {
        let wanted = RwSignal::new(None::<bool>);
        let blocked = memo(move || is_blocked(&sessions.get()));
        effect(move || {
            blocked.get();
            wanted.set(None);
        });
        let is_open = memo(move || wanted.get().unwrap_or_else(|| blocked.get()));
        Self { sessions, is_open, wanted }
    }

    /// The fact that folds and unfolds them; `count` says how many.
    pub fn fact(self, count: fn(usize) -> String) -> AnyView {
        let Self { sessions, is_open, wanted } = self;
        let many = memo(move || sessions.get().len());
        dynamic(move || {
            let many = many.get();
            (many > 0).then(|| {
                view! {
                    <span class="fact">
                        <button
                            type="button"
                            class="fold"
                            aria-expanded=live(move || is_open.get().to_string())
                            data-testid="inside-toggle"
                            on:click=move |_| wanted.set(Some(!is_open.get_untracked()))
                        >
                            {icon("chevron-right", 14)} {count(many)}
                        </button>
                    </span>
                }
            })
        })
        .into_any()
    }

    /// A warning while other processes work on one of them.
    pub fn warning(self) -> AnyView {
        let Self { sessions, .. } = self;
        let told = memo(move || same_session(&sessions.get()));
        dynamic(move || {
            let told = told.get().into_iter();
            told.map(|text| view! { <p class="below-row fact-notice" data-testid="same-session">{text}</p> })
                .collect_view()
        })
        .into_any()
    }

    /// The sessions, while they are unfolded.
    pub fn list(self) -> AnyView {
        let Self { sessions, is_open, .. } = self;
        let some = memo(move || is_open.get() && !sessions.get().is_empty());
        let rows = move || {
            let sessions = sessions.get();
            let rows = sessions.iter().map(|session| {
                let (face, name, waits) = line(session);
                let since = Timestamp::from_millis(session.started_at);
                view! {
                    <li class=face.tone.class() title=session.activity.as_ref().map(provenance) data-testid="inside-session">
                        {glyph(face.glyph)} <bdi>{shown(&name).into_owned()}</bdi>
                        <span><span class="word">{face.word}</span> {waits.as_deref().map(fact)}
                        <span class="fact"><Age since=Signal::stored(since) /></span></span>
                    </li>
                }
            });
            rows.collect_view()
        };
        dynamic(move || {
            some.get().then(|| {
                view! {
                    <ul class="below-row" data-testid="inside">{dynamic(rows)}</ul>
                }
            })
        })
        .into_any()
    }
}
