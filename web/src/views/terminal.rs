//! The terminal panel: rows of text on a grid.
//!
//! Rows are real text, for selection, search and screen readers. A row is painted again only when
//! it changed. The panel never moves the lines that the user reads.

use crate::browser;
use crate::model::find::Needle;
use crate::model::terminal::{copied, pieces};
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::reactive::{derived, dynamic, effect, live, memo};
use crate::terminal_feed::{Feed, Feeding};
use crate::text::terminal as words;
use crate::views::terminal_bar::{Foot, Head};
use leptos::html;
use leptos::prelude::*;
use std::sync::Arc;
use svc_shared::terminal::Line;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Element, HtmlElement};

/// Closer to the end than this counts as at the end, pixels.
const AT_END_PX: i32 = 24;
/// Room around the text, as the style sheet has it.
const PADDING_PX: i32 = 12;
/// Closer to the start than this reads earlier lines, pixels.
const NEAR_START_PX: i32 = 120;
/// Height of a row in sizes of its text, as the style sheet has it.
const ROW_EM: f64 = 1.25;
/// Where this browser keeps the size of the text.
const SIZE_KEY: &str = "svc.terminal.size";

/// What the parts of the panel share.
#[derive(Clone, Copy)]
pub struct Reader {
    /// The terminal.
    pub feed: Feed,
    /// Size of the text, pixels.
    pub size: RwSignal<u8>,
    /// Size that makes the grid as wide as the panel, instead of `size`.
    pub fit: RwSignal<Option<f64>>,
    /// Covers the whole window.
    pub is_whole: RwSignal<bool>,
    /// Keeps the screen in view.
    pub follows: RwSignal<bool>,
    /// What is looked for.
    pub needle: Memo<Needle>,
    /// As typed.
    pub typed: RwSignal<String>,
    /// Lines with a hit.
    pub hits: Memo<Vec<usize>>,
    /// Which of them is looked at.
    pub current: RwSignal<usize>,
    /// The scrolling part.
    pub body: NodeRef<html::Div>,
    /// How far the view was scrolled, and how high its content and its panel were.
    last: StoredValue<(i32, [i32; 2])>,
}

impl Reader {
    /// Shows the screen, and follows it from now on.
    pub fn to_end(self) {
        self.follows.set(true);
        self.feed.keeps.set(false);
        self.feed.above.set(Arc::default());
        browser::after_paint(move || self.follow());
    }

    fn follow(self) {
        if let Some(body) = self.body.try_get_untracked().flatten() {
            body.set_scroll_top(self.end(&body));
        }
    }

    /// Where the view follows the program.
    /// At the top of the screen if its text has room there.
    fn end(self, body: &HtmlElement) -> i32 {
        let element: &Element = body;
        let screen = element.query_selector(".term-screen").ok().flatten();
        let Some(screen) = screen.and_then(|it| it.dyn_into::<HtmlElement>().ok()) else {
            return body.scroll_height();
        };
        let rows = i32::try_from(self.feed.count.get_untracked()).unwrap_or(1).max(1);
        let used = i32::try_from(self.feed.used()).unwrap_or(rows).min(rows);
        let height = screen.offset_height() * used / rows;
        // The first line stands below the padding of the panel.
        screen.offset_top() - PADDING_PX + (height + 2 * PADDING_PX - body.client_height()).max(0)
    }

    fn scrolled(self) {
        let Some(body) = self.body.get_untracked() else { return };
        let top = body.scroll_top();
        let now = (top, [body.scroll_height(), body.client_height()]);
        let before = self.last.try_update_value(|last| std::mem::replace(last, now));
        if top >= self.end(&body) - AT_END_PX {
            if !self.follows.get_untracked() {
                self.follows.set(true);
                self.feed.keeps.set(false);
            }
        } else if before.is_some_and(|(_, heights)| heights != now.1) {
            // Lines that go away and a window of another size move the view too: that is nobody's
            // wish to read earlier lines.
            if self.follows.get_untracked() {
                self.follow();
            }
        } else if before.is_some_and(|(before, _)| top < before) {
            self.follows.set(false);
            self.feed.keeps.set(true);
            if top < NEAR_START_PX {
                self.older();
            }
        }
    }

    /// Reads earlier lines. The lines that are shown stay where they are.
    pub fn older(self) {
        self.follows.set(false);
        self.feed.read_older();
    }

    /// Moves the view sideways by half of its width.
    pub fn pan(self, right: bool) {
        if let Some(body) = self.body.get_untracked() {
            let half = body.client_width() / 2;
            body.set_scroll_left(body.scroll_left() + if right { half } else { -half });
        }
    }

    /// Makes the grid as wide as the panel.
    pub fn fit(self) {
        let Some(body) = self.body.get_untracked() else { return };
        let element: &Element = &body;
        let Ok(Some(screen)) = element.query_selector(".term-screen") else { return };
        let Ok(screen) = screen.dyn_into::<HtmlElement>() else { return };
        let width = f64::from(screen.offset_width()).max(1.0);
        let now = self.fit.get_untracked().unwrap_or_else(|| f64::from(self.size.get_untracked()));
        let room = f64::from(body.client_width()) - 24.0;
        self.fit.set(Some((now * room / width * 10.0).floor() / 10.0));
    }

    /// Sets the size of the text.
    pub fn resize(self, size: u8) {
        self.fit.set(None);
        self.size.set(size);
        browser::store(SIZE_KEY, Some(&size.to_string()));
    }

    /// The selection, or the whole screen.
    pub fn text(self) -> String {
        let selected = self.selected();
        if selected.is_empty() {
            let lines = self.feed.lines();
            let count = self.feed.count.get_untracked();
            svc_shared::terminal::text_of(lines.iter().skip(lines.len().saturating_sub(count)))
        } else {
            selected
        }
    }

    fn selected(self) -> String {
        let body: Option<Element> = self.body.get_untracked().map(Into::into);
        let raw = body.as_ref().map(browser::selected).unwrap_or_default();
        let Ok(Some(selection)) = window().get_selection() else { return raw };
        let row = |node: Option<web_sys::Node>| -> Option<usize> {
            let node = node?;
            let element = node.dyn_ref::<Element>().cloned().or_else(|| node.parent_element())?;
            let row = element.closest("[data-line]").ok().flatten()?;
            row.get_attribute("data-line")?.parse().ok()
        };
        let ends = [row(selection.anchor_node()), row(selection.focus_node())];
        let first = ends.into_iter().flatten().min().unwrap_or(0);
        let lines = self.feed.lines();
        copied(&raw, first, |at| lines.get(at).is_some_and(|line| line.wrapped))
    }

    /// Goes to the next or the previous hit.
    pub fn step(self, forwards: bool) {
        let count = self.hits.with_untracked(Vec::len);
        if count > 0 {
            let now = self.current.get_untracked().min(count - 1);
            self.current.set(if forwards { (now + 1) % count } else { (now + count - 1) % count });
            self.show_hit();
        }
    }

    /// Brings the current hit into view.
    pub fn show_hit(self) {
        let at = self.current.get_untracked();
        let Some(line) = self.hits.with_untracked(|hits| hits.get(at).copied()) else { return };
        self.follows.set(false);
        self.feed.keeps.set(true);
        browser::after_paint(move || {
            let selector = format!("[data-testid=terminal-rows] [data-line=\"{line}\"]");
            if let Some(row) = browser::element(&selector) {
                row.scroll_into_view_with_bool(false);
            }
        });
    }
}

/// The panel.
#[component]
pub fn TerminalPanel(
    /// Instance id.
    id: String,
) -> impl IntoView {
    let feed = Feed::open(page(), id);
    let is_phone = page().is_phone;
    let stored = browser::stored(SIZE_KEY).and_then(|size| size.parse().ok());
    let usual = if is_phone.get_untracked() { 12 } else { 14 };
    let typed = RwSignal::new(String::new());
    let needle = memo(move || Needle::new(&typed.get()));
    let hits = memo(move || {
        needle.with(|needle| {
            if needle.is_empty() {
                return Vec::new();
            }
            feed.painted.track();
            feed.above.track();
            let lines = feed.lines();
            let numbered = lines.iter().enumerate();
            numbered.filter(|(_, line)| needle.is_in(&line.text())).map(|(at, _)| at).collect()
        })
    });
    let reader = Reader {
        feed,
        size: RwSignal::new(stored.unwrap_or(usual)),
        fit: RwSignal::new(None),
        is_whole: RwSignal::new(false),
        follows: RwSignal::new(true),
        needle,
        typed,
        hits,
        current: RwSignal::new(0),
        body: NodeRef::new(),
        last: StoredValue::new((0, [0; 2])),
    };
    effect(move || {
        feed.painted.track();
        if reader.follows.get_untracked() {
            browser::after_paint(move || reader.follow());
        }
    });
    // Lines in front of those that are read must not move them.
    effect(move || {
        feed.above.track();
        let Some(body) = reader.body.get_untracked() else { return };
        if !reader.follows.get_untracked() {
            let below = body.scroll_height() - body.scroll_top();
            browser::after_paint(move || {
                if body.is_connected() {
                    // Whoever asks for earlier lines at the live screen sees some of them.
                    let near = reader.end(&body) - 2 * AT_END_PX;
                    body.set_scroll_top((body.scroll_height() - below).min(near));
                }
            });
        }
    });
    let resized = window_event_listener_untyped("resize", move |_| {
        if reader.fit.try_get_untracked().flatten().is_some() {
            reader.fit();
        }
    });
    on_cleanup(move || resized.remove());
    let why = memo(move || reason(feed));
    let keys = move |event: web_sys::KeyboardEvent| match event.key().as_str() {
        "f" if event.ctrl_key() || event.meta_key() => {
            event.prevent_default();
            browser::focus("[data-testid=terminal-find]");
        }
        "Escape" if reader.is_whole.get_untracked() => {
            event.stop_propagation();
            reader.is_whole.set(false);
        }
        _ => {}
    };
    view! {
        <section
            class="card term"
            class:term-whole=live(move || reader.is_whole.get())
            aria-label=words::LABEL
            data-testid="terminal"
            on:keydown=keys
        >
            <Head reader=reader />
            {dynamic(move || why.get().map(|why| view! { <p class="term-why" data-testid="terminal-why">{why}</p> }))}
            <Grid reader=reader />
            <Foot reader=reader />
        </section>
    }
}

/// Why there is no screen; nothing while there is one.
fn reason(feed: Feed) -> Option<String> {
    let standing = feed.standing.get();
    let error = standing.error.clone();
    match (feed.feeding.get(), standing.word.as_str()) {
        (Feeding::Off, _) => Some(words::OFF_WHY.to_owned()),
        (Feeding::Gone, _) => Some(words::GONE_WHY.to_owned()),
        (_, "exited") if standing.has_text => Some(words::LAST_SCREEN.to_owned()),
        (_, "exited") => Some(words::EXITED_WHY.to_owned()),
        (_, "unavailable" | "error") => Some(words::sentence(error.as_deref())),
        _ if standing.has_text => None,
        (Feeding::Lost, _) => Some(words::LOST_WHY.to_owned()),
        (Feeding::Open, "running" | "ready") => Some(words::WAITING_WHY.to_owned()),
        (Feeding::Connecting | Feeding::Open, _) => Some(words::CONNECTING_WHY.to_owned()),
    }
}

/// The lines above the screen and the screen.
#[component]
fn Grid(reader: Reader) -> impl IntoView {
    let feed = reader.feed;
    let is_shown = memo(move || {
        let gone = matches!(feed.feeding.get(), Feeding::Off | Feeding::Gone);
        feed.standing.with(|standing| standing.has_text) && !gone
    });
    let size = derived(move || {
        let fit = reader.fit.get();
        Some(fit.map_or_else(|| format!("{}px", reader.size.get()), |fit| format!("{fit}px")))
    });
    let columns = memo(move || feed.standing.with(|standing| standing.size.0));
    let width = derived(move || Some(format!("{}ch", columns.get())));
    let history = move || {
        let above = feed.above.get();
        let first = above.first();
        let lines: Vec<(u64, usize, Line)> = (first..)
            .zip(above.lines().cloned().enumerate())
            .map(|(n, (at, it))| (n, at, it))
            .collect();
        lines
    };
    let before = memo(move || feed.above.with(|above| above.len()));
    let cursor = move || {
        let cursor = feed.cursor.get();
        let is_live = feed.standing.with(|standing| standing.word != "exited");
        (cursor.visible && is_live).then(|| {
            let left = format!("{}ch", cursor.x);
            let top = format!("{}em", f64::from(cursor.y) * ROW_EM);
            view! { <span class="term-cursor" aria-hidden="true" style:left=left style:top=top></span> }
        })
    };
    let row = move |at: usize| {
        feed.row(at).map(|line| {
            let number = derived(move || (before.get() + at).to_string());
            view! {
                <div class="term-row" data-line=number data-y=at.to_string()>
                    {dynamic(move || reader.needle.with(|needle| painted(&line.get(), needle)))}
                </div>
            }
        })
    };
    let copy = move |event: web_sys::ClipboardEvent| {
        let text = reader.selected();
        let get = |of: &JsValue, name: &str| js_sys::Reflect::get(of, &name.into()).ok();
        let data = get(&event, "clipboardData").filter(|data| !data.is_falsy());
        if let Some(data) = data.filter(|_| !text.is_empty())
            && let Some(set) = get(&data, "setData")
            && let Ok(set) = set.dyn_into::<js_sys::Function>()
            && set.call2(&data, &"text/plain".into(), &text.into()).is_ok()
        {
            event.prevent_default();
        }
    };
    view! {
        <div
            class="term-body"
            hidden=live(move || !is_shown.get())
            node_ref=reader.body
            tabindex="0"
            role="group"
            aria-label=words::ROWS
            on:scroll=move |_| reader.scrolled()
            on:copy=copy
        >
            <div class="term-grid" data-testid="terminal-rows" style:font-size=size>
                {dynamic(move || feed.has_older.get().then(|| view! {
                    <button type="button" class="linkish term-older" data-testid="terminal-older" on:click=move |_| reader.older()>
                        {words::OLDER}
                    </button>
                }))}
                <For
                    each=history
                    key=|(number, at, _)| (*number, *at)
                    children=move |(_, at, line)| view! {
                        <div class="term-row term-past" data-line=at.to_string()>
                            {dynamic(move || reader.needle.with(|needle| painted(&line, needle)))}
                        </div>
                    }
                />
                <div class="term-screen" style:width=width>
                    <For each=move || 0..feed.count.get() key=|at| *at children=row />
                    {dynamic(cursor)}
                </div>
            </div>
        </div>
        {dynamic(move || (!reader.follows.get() && is_shown.get()).then(|| view! {
            <button
                type="button"
                class=format!("{} log-pill term-pill", ButtonStyle::Primary.class())
                data-testid="terminal-to-end"
                on:click=move |_| reader.to_end()
            >
                {icon("chevron-down", 16)} {words::TO_END}
            </button>
        }))}
    }
}

/// The pieces of a row. A row without text keeps its height.
fn painted(line: &Line, needle: &Needle) -> AnyView {
    pieces(line, needle)
        .into_iter()
        .map(|piece| match (piece.is_hit, piece.class.is_empty()) {
            (true, _) => view! { <mark class=piece.class>{piece.text}</mark> }.into_any(),
            (false, true) => piece.text.into_any(),
            (false, false) => view! { <span class=piece.class>{piece.text}</span> }.into_any(),
        })
        .collect_view()
        .into_any()
}
