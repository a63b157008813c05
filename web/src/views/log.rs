//! The log panel.
//!
//! It follows the end until the user scrolls up, and never moves the lines that the user reads.

use crate::browser;
use crate::log_feed::{Feed, Feeding};
use crate::model::find::Needle;
use crate::model::log::Older;
use crate::model::shown::shown;
use crate::model::time;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::prefs;
use crate::reactive::{dynamic, effect, live, memo};
use crate::text::log as words;
use crate::views::log_bar::Bar;
use crate::views::log_lines::ChunkView;
use leptos::html;
use leptos::prelude::*;
use std::time::Duration;
use svc_shared::Timestamp;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

/// Closer to the end than this counts as at the end, pixels.
const AT_END_PX: i32 = 24;
/// Closer to the start than this reads the page before, pixels.
const NEAR_START_PX: i32 = 200;
/// New output is read out at most this often.
const READ_OUT: Duration = Duration::from_secs(3);

/// What the parts of the panel share.
#[derive(Clone, Copy)]
pub struct Reader {
    /// The log.
    pub feed: Feed,
    /// Keeps the end in view.
    pub follows: RwSignal<bool>,
    /// Breaks long lines.
    pub wraps: RwSignal<bool>,
    /// Numbers the lines.
    pub numbers: RwSignal<bool>,
    /// The least weight of the lines shown: empty, `warn` or `error`.
    pub least: RwSignal<String>,
    /// Reads new output out.
    pub announces: RwSignal<bool>,
    /// What is looked for.
    pub needle: Memo<Needle>,
    /// As typed.
    pub typed: RwSignal<String>,
    /// Where it was found.
    pub hits: Memo<Vec<(i64, usize)>>,
    /// Which of the hits is looked at.
    pub current: RwSignal<usize>,
    /// The scrolling part.
    pub lines: NodeRef<html::Div>,
    seen: RwSignal<usize>,
    is_keeping: StoredValue<bool>,
    /// Where the visible part began when it was last moved, by whomever.
    last_top: StoredValue<i32>,
}

impl Reader {
    /// The hit looked at. Tracked.
    pub fn hit(self) -> Option<(i64, usize)> {
        self.hits.with(|hits| hits.get(self.current.get()).copied())
    }

    /// Goes to the end and stays there.
    pub fn to_end(self) {
        self.follows.set(true);
        self.seen.set(self.feed.arrived.get_untracked());
        browser::after_paint(move || self.follow());
    }

    /// Goes to the end, unless the reader has scrolled up meanwhile.
    fn follow(self) {
        if self.follows.try_get_untracked() == Some(true) {
            self.scroll_to(i32::MAX);
        }
    }

    fn scroll_to(self, top: i32) {
        if let Some(lines) = self.lines.try_get_untracked().flatten() {
            lines.set_scroll_top(top);
            // The event comes with the next frame: a reader who moves before it moves from here.
            self.last_top.try_set_value(lines.scroll_top());
        }
    }

    /// Goes to another hit: one step forwards or backwards, around the ends.
    pub fn step(self, forwards: bool) {
        let count = self.hits.with_untracked(Vec::len);
        if count == 0 {
            return;
        }
        self.current.update(|at| {
            *at = match (forwards, *at) {
                (true, at) if at + 1 < count => at + 1,
                (true, _) => 0,
                (false, 0) => count - 1,
                (false, at) => at - 1,
            };
        });
        self.show_hit();
    }

    /// Brings the hit into view. Its chunk has elements as long as it is looked at.
    pub fn show_hit(self) {
        self.follows.set(false);
        browser::after_paint(move || {
            let lines = self.lines.try_get_untracked().flatten();
            if let (Some(line), Some(lines)) = (browser::element(".log-line.hit"), lines) {
                self.scroll_to(line.offset_top() - lines.client_height() / 2);
            }
        });
    }

    /// Keeps the scroll position over a change of height elsewhere.
    ///
    /// It is called before the change. Afterwards the same lines are visible, or the end when the
    /// panel follows it.
    pub fn keep_place(self) {
        let Some(lines) = self.lines.try_get_untracked().flatten() else {
            return;
        };
        if self.is_keeping.try_update_value(|is| std::mem::replace(is, true)) != Some(false) {
            return;
        }
        let mut anchor = None;
        if !self.follows.get_untracked() {
            let top = lines.scroll_top();
            let mut next = lines.first_element_child();
            while let Some(element) = next {
                next = element.next_element_sibling();
                if let Ok(part) = element.dyn_into::<HtmlElement>()
                    && part.has_attribute("data-chunk")
                    && part.offset_top() + part.offset_height() > top
                {
                    anchor = Some((part.offset_top() - top, part));
                    break;
                }
            }
        }
        browser::after_paint(move || {
            self.is_keeping.try_update_value(|is| *is = false);
            match anchor {
                Some((above, part)) if part.is_connected() => {
                    self.scroll_to(part.offset_top() - above);
                }
                _ => self.follow(),
            }
        });
    }

    fn scrolled(self) {
        let Some(lines) = self.lines.get_untracked() else {
            return;
        };
        let top = lines.scroll_top();
        let before = self.last_top.try_update_value(|last| std::mem::replace(last, top));
        let is_at_end = lines.scroll_height() - top - lines.client_height() <= AT_END_PX;
        if is_at_end {
            self.follows.set(true);
            self.seen.set(self.feed.arrived.get_untracked());
        } else if before.is_some_and(|before| top < before) {
            self.follows.set(false);
            if top < NEAR_START_PX {
                self.older();
            }
        }
    }

    /// Reads the page before.
    pub fn older(self) {
        self.feed.read_older();
    }

    /// Reads the newest line out, and how many came with it.
    fn read_out(self, since: StoredValue<usize>) {
        let Some(arrived) = self.feed.arrived.try_get_untracked() else {
            return;
        };
        let begin = since.try_update_value(|since| std::mem::replace(since, arrived));
        let many = arrived.saturating_sub(begin.unwrap_or(arrived));
        if many > 0 && self.announces.get_untracked() {
            let last = self.feed.with(|log| log.tail(1));
            self.feed.page.say.politely(&words::read_out(many, &shown(&last)));
        }
    }
}

/// The panel.
#[component]
pub fn LogPanel(
    /// Instance id.
    id: String,
) -> impl IntoView {
    let page = page();
    let feed = Feed::open(page, id);
    let typed = RwSignal::new(String::new());
    let needle = memo(move || Needle::new(&typed.get()));
    let hits =
        memo(move || {
            feed.arrived.track();
            feed.chunks.track();
            needle.with(|needle| {
                if needle.is_empty() { Vec::new() } else { feed.with(|log| log.hits(needle)) }
            })
        });
    let reader = Reader {
        feed,
        follows: RwSignal::new(true),
        wraps: RwSignal::new(true),
        numbers: RwSignal::new(false),
        least: RwSignal::new(String::new()),
        announces: RwSignal::new(false),
        needle,
        typed,
        hits,
        current: RwSignal::new(0),
        lines: NodeRef::new(),
        seen: RwSignal::new(0),
        is_keeping: StoredValue::new(false),
        last_top: StoredValue::new(0),
    };
    feed.before_change.set_value(Some(Callback::new(move |()| reader.keep_place())));
    let read_until = StoredValue::new(0);
    let is_waiting = StoredValue::new(false);
    effect(move || {
        let arrived = feed.arrived.get();
        if !reader.announces.get() {
            read_until.set_value(arrived);
            return;
        }
        if is_waiting.try_update_value(|is| std::mem::replace(is, true)) == Some(false) {
            set_timeout(
                move || {
                    is_waiting.try_update_value(|is| *is = false);
                    reader.read_out(read_until);
                },
                READ_OUT,
            );
        }
    });
    effect(move || {
        let arrived = feed.arrived.get();
        feed.chunks.track();
        if reader.follows.get_untracked() {
            reader.seen.set(arrived);
            browser::after_paint(move || reader.follow());
        }
    });
    let keys = move |event: web_sys::KeyboardEvent| {
        if (event.ctrl_key() || event.meta_key()) && event.key() == "f" {
            event.prevent_default();
            browser::focus("[data-testid=log-find]");
        }
    };
    let unread = memo(move || feed.arrived.get().saturating_sub(reader.seen.get()));
    view! {
        <section class="card log" aria-label=words::LABEL data-testid="log" on:keydown=keys>
            <Bar reader=reader />
            <div
                class="log-lines"
                class:wrap=live(move || reader.wraps.get())
                class:numbered=live(move || reader.numbers.get())
                class:least-warn=live(move || reader.least.get() == "warn")
                class:least-error=live(move || reader.least.get() == "error")
                node_ref=reader.lines
                tabindex="0"
                role="region"
                aria-label=words::LABEL
                on:scroll=move |_| reader.scrolled()
            >
                <Top reader=reader />
                <For each=move || feed.chunks.get() key=|id| *id let:id>
                    <ChunkView reader=reader id=id />
                </For>
                <Empty feed=feed />
                <p class="log-empty log-none">{words::NONE_OF_LEVEL}</p>
            </div>
            {dynamic(move || (!reader.follows.get() && unread.get() > 0).then(|| view! {
                <button
                    type="button"
                    class=format!("{} log-pill", ButtonStyle::Primary.class())
                    data-testid="log-pill"
                    on:click=move |_| reader.to_end()
                >
                    {icon("chevron-down", 16)} {dynamic(move || words::new_lines(unread.get()))}
                </button>
            }))}
        </section>
    }
}

/// The start of what is kept, with the way further back.
#[component]
fn Top(reader: Reader) -> impl IntoView {
    view! {
        {dynamic(move || match reader.feed.older.get() {
            Older::Unknown => ().into_any(),
            Older::Start => view! { <p class="log-top">{words::START}</p> }.into_any(),
            Older::Full => view! { <p class="log-top">{words::FULL}</p> }.into_any(),
            Older::Before { .. } => view! {
                <p class="log-top">
                    <button type="button" class="linkish" data-testid="log-older" on:click=move |_| reader.older()>
                        {words::OLDER}
                    </button>
                </p>
            }.into_any(),
        })}
    }
}

/// Words in the place of lines, and below them when the socket is gone.
#[component]
fn Empty(feed: Feed) -> impl IntoView {
    let is_empty = memo(move || feed.chunks.with(Vec::is_empty));
    let text = move || match feed.feeding.get() {
        Feeding::Connecting => is_empty.get().then(|| words::CONNECTING.to_owned()),
        Feeding::Open(since) => is_empty
            .get()
            .then(|| words::empty(&time::clock(Timestamp::from_millis(since), prefs::zone(since)))),
        Feeding::Lost => Some(words::RECONNECTING.to_owned()),
        Feeding::NoLog => Some(words::NONE.to_owned()),
        Feeding::Gone => Some(words::GONE.to_owned()),
    };
    view! {
        {dynamic(move || text().map(|text| view! { <p class="log-empty" data-testid="log-empty">{text}</p> }))}
    }
}
