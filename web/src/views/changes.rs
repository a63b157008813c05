//! What changed where a session works: the files, and the lines of the chosen one.

use crate::api;
use crate::browser;
use crate::model::changes::{AROUND, FAR_AROUND, FileLines, Folder, file_path, folders, totals};
use crate::model::prefs::{Change, DIFF, Prefs};
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::time;
use crate::model::viewed;
use crate::model::wire;
use crate::nav::nav;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::prefs;
use crate::reactive::{dynamic, effect, live, memo};
use crate::socket::{Heard, Reconnecting, Socket};
use crate::text::changes as words;
use crate::views::changed_file::changed_file;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use svc_shared::Timestamp;
use svc_shared::internal::changes::{ChangedFile, Changes, ChangesNotice};
use svc_shared::stream::close;

/// Query member that names the file.
pub(super) const FILE: &str = "file";
/// Both versions beside each other.
pub(super) const BESIDE: &str = "side";

/// Where this tab keeps the marks of viewed files.
const VIEWED: &str = "svc.viewed.";

/// What came of a reading.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reading<T> {
    Under,
    Done(Arc<T>),
    Failed(Problem),
}

/// Reads the list and one file of it.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    path: StoredValue<String>,
    list: RwSignal<Reading<Changes>>,
    read_at: RwSignal<i64>,
    pub(super) file: RwSignal<Reading<FileLines>>,
    pub(super) chosen: Memo<String>,
    /// Files that the person has marked.
    viewed: RwSignal<Vec<String>>,
    /// Unchanged lines far from a change are left out.
    hides_same: RwSignal<bool>,
    /// Something changed since the list was read.
    is_old: RwSignal<bool>,
    /// Counts readings of the list.
    reloads: RwSignal<u32>,
    /// Counts readings of files: an answer that comes late is not shown.
    asked: StoredValue<u64>,
}

impl Reader {
    fn of(path: String) -> Self {
        let nav = nav();
        let kept = browser::drafted(&format!("{VIEWED}{path}"));
        let viewed = kept.and_then(|kept| wire::read(&kept).ok()).unwrap_or_default();
        Self {
            path: StoredValue::new(path),
            list: RwSignal::new(Reading::Under),
            read_at: RwSignal::new(0),
            file: RwSignal::new(Reading::Under),
            chosen: memo(move || nav.member(FILE)),
            viewed: RwSignal::new(viewed),
            hides_same: RwSignal::new(true),
            is_old: RwSignal::new(false),
            reloads: RwSignal::new(0),
            asked: StoredValue::new(0),
        }
    }

    /// Reads the list again, and the chosen file.
    fn reload(self) {
        let (path, page) = (self.path.get_value(), page());
        self.is_old.set(false);
        self.reloads.update(|count| *count += 1);
        spawn_local(async move {
            let found = api::get::<Changes>(&path).await;
            self.read_at.try_set(page.clock.now());
            self.list.try_set(match found {
                Ok(found) => Reading::Done(Arc::new(found)),
                Err(problem) => Reading::Failed(problem),
            });
        });
        self.read_file(None);
    }

    /// Reads the chosen file from its begin, or the lines after those that are there.
    pub(super) fn read_file(self, after: Option<Arc<FileLines>>) {
        let chosen = self.chosen.get_untracked();
        if chosen.is_empty() {
            return;
        }
        let from = after.as_ref().and_then(|after| after.next_from).unwrap_or_default();
        let around = if self.hides_same.get_untracked() { AROUND } else { FAR_AROUND };
        let path = file_path(&self.path.get_value(), &chosen, around, from);
        let own = self.asked.try_update_value(|asked| {
            *asked += 1;
            *asked
        });
        spawn_local(async move {
            let found = api::get::<FileLines>(&path).await;
            if self.asked.try_get_value() != own {
                return;
            }
            self.file.try_set(match (found, after) {
                (Ok(more), Some(before)) => {
                    let mut all = (*before).clone();
                    all.join(more);
                    Reading::Done(Arc::new(all))
                }
                (Ok(found), None) => Reading::Done(Arc::new(found)),
                (Err(problem), _) => Reading::Failed(problem),
            });
        });
    }

    /// The chosen file as the list has it.
    pub(super) fn entry(self) -> Option<ChangedFile> {
        let chosen = self.chosen.get();
        self.list.with(|list| match list {
            Reading::Done(found) => found.files.iter().find(|file| file.path == chosen).cloned(),
            Reading::Under | Reading::Failed(_) => None,
        })
    }

    /// Whether a file was viewed as it is now.
    pub(super) fn has_viewed(self, file: &ChangedFile) -> bool {
        self.viewed.with(|marks| viewed::has(marks, file))
    }

    /// Marks the chosen file as viewed, or takes the mark away.
    pub(super) fn turn_viewed(self) {
        let Some(file) = untrack(|| self.entry()) else { return };
        self.viewed.update(|marks| viewed::turn(marks, &file));
        let kept = self.viewed.with_untracked(wire::written);
        browser::draft(&format!("{VIEWED}{}", self.path.get_value()), Some(&kept));
    }
}

/// Hears of changes, as long as the panel exists.
#[derive(Clone, Copy)]
struct Notices {
    reader: Reader,
    path: StoredValue<String>,
    line: StoredValue<Line, LocalStorage>,
}

/// The connection of [`Notices`].
#[derive(Default)]
struct Line {
    line: Reconnecting,
    /// It was there before: nothing is known of what changed meanwhile.
    was_lost: bool,
    /// There was nothing to watch, such as the worktree of a session that only starts.
    had_nothing: bool,
}

impl Notices {
    fn connect(self) {
        let Some(path) = self.path.try_get_value() else { return }; // closed meanwhile
        let socket = Socket::open(&path, move |heard| match heard {
            Heard::Open => {}
            Heard::Text(text) => self.told(&text),
            // Only a person's next look says whether there is something by now.
            Heard::Closed(close::UNKNOWN | close::AMBIGUOUS | close::WRONG_KIND) => {
                self.line.try_update_value(|it| {
                    it.line.close();
                    it.had_nothing = true;
                });
            }
            Heard::Closed(_) => self.again(),
        });
        let is_refused = socket.is_none();
        self.line.try_update_value(|it| it.line.hold(socket));
        if is_refused {
            self.again();
        }
    }

    /// Connects once more where there was nothing to watch.
    fn look_again(self) {
        let had_nothing =
            self.line.try_update_value(|it| std::mem::take(&mut it.had_nothing)).unwrap_or(false);
        if had_nothing {
            self.connect();
        }
    }

    fn told(self, text: &str) {
        let Ok(notice) = wire::read::<ChangesNotice>(text) else { return };
        let was_lost = self.line.try_update_value(|it| {
            it.line.works();
            std::mem::take(&mut it.was_lost)
        });
        if notice.changed || was_lost == Some(true) {
            self.reader.is_old.try_set(true);
        }
    }

    fn again(self) {
        self.line.try_update_value(|it| {
            it.was_lost = true;
            it.line.connect_later(move || self.connect());
        });
    }
}

/// The panel.
#[component]
pub fn ChangesPanel(
    /// Path of the list at the service.
    path: String,
    /// Path of the socket that tells of changes.
    #[prop(optional)]
    notices: Option<String>,
) -> impl IntoView {
    let reader = Reader::of(path);
    // Nothing is drawn anew under the reader: a note says that something is new.
    if let Some(path) = notices {
        let notices = Notices {
            reader,
            path: StoredValue::new(path),
            line: StoredValue::new_local(Line::default()),
        };
        notices.connect();
        effect(move || {
            reader.reloads.track();
            notices.look_again();
        });
    }
    reader.reload();
    effect(move || {
        reader.chosen.track();
        reader.hides_same.track();
        reader.file.set(Reading::Under);
        reader.read_file(None);
    });
    let has_file = memo(move || !reader.chosen.with(String::is_empty));
    let keys = move |event: web_sys::KeyboardEvent| {
        let is_plain = !event.ctrl_key() && !event.meta_key() && !event.alt_key();
        if event.key() == "v" && is_plain && prefs::look(Prefs::are_letters_on) {
            event.prevent_default();
            reader.turn_viewed();
        }
    };
    view! {
        <section
            class="card changes"
            class:has-file=has_file
            aria-label=words::LABEL
            data-testid="changes"
            on:keydown=keys
        >
            {dynamic(move || match reader.list.get() {
                Reading::Under => view! { <p class="log-empty" aria-busy="true">{words::LOADING}</p> }.into_any(),
                Reading::Failed(problem) => failed(reader, &problem),
                Reading::Done(found) => view! {
                    <Bar reader=reader found=Arc::clone(&found) />
                    {body(reader, &found)}
                }.into_any(),
            })}
        </section>
    }
}

fn failed(reader: Reader, problem: &Problem) -> AnyView {
    view! {
        <p class="log-empty" role="alert" data-testid="changes-failed">{problem.words()}</p>
        <p class="changes-note">
            <button type="button" class=ButtonStyle::Secondary.class() on:click=move |_| reader.reload()>
                {words::RELOAD}
            </button>
        </p>
    }
    .into_any()
}

/// Counts, base, time and the way to read again.
#[component]
fn Bar(reader: Reader, found: Arc<Changes>) -> impl IntoView {
    let (added, deleted) = totals(&found);
    let all = Arc::clone(&found);
    let viewed = move || {
        let done = reader.viewed.with(|marks| viewed::count(marks, &all.files));
        words::viewed(done, all.files.len())
    };
    let at = move || {
        let at = reader.read_at.get();
        words::read_at(&time::clock(Timestamp::from_millis(at), prefs::zone(at)))
    };
    let since = move || {
        let at = reader.read_at.get();
        words::changed_since(&time::clock(Timestamp::from_millis(at), prefs::zone(at)))
    };
    view! {
        <div class="changes-bar">
            <b data-testid="changes-count">{words::count(found.files.len())}</b>
            {counts(Some(added), Some(deleted))}
            <span class="muted">{words::against(&found.base)}</span>
            <span class="end">
                <span class="muted num" data-testid="changes-viewed">{dynamic(viewed)}</span>
                <Layout reader=reader />
                <span class="muted num changes-at">{dynamic(at)}</span>
                <button
                    type="button"
                    class=ButtonStyle::Ghost.class()
                    data-testid="changes-reload"
                    on:click=move |_| reader.reload()
                >
                    {icon("refresh", 16)} {words::RELOAD}
                </button>
            </span>
        </div>
        {dynamic(move || reader.is_old.get().then(|| view! {
            <p class="changes-note tone-info" role="status" data-testid="changes-old">
                {dynamic(since)}
            </p>
        }))}
        {found.truncated.then(|| view! { <p class="changes-note tone-warn">{words::TRUNCATED}</p> })}
    }
}

/// How the lines are shown.
#[component]
fn Layout(reader: Reader) -> impl IntoView {
    let page = page();
    let is_beside = memo(move || page.prefs.with(|prefs| prefs.word(DIFF) == BESIDE));
    let way = move |value: &'static str, label: &'static str, testid: &'static str| {
        view! {
            <button
                type="button"
                class=ButtonStyle::Ghost.class()
                aria-pressed=live(move || (is_beside.get() == (value == BESIDE)).to_string())
                data-testid=testid
                on:click=move |_| page.prefs.change(Change::Word(DIFF, value))
            >
                {label}
            </button>
        }
    };
    view! {
        <button
            type="button"
            class=ButtonStyle::Ghost.class()
            aria-pressed=live(move || reader.hides_same.get().to_string())
            title=words::HIDE_SAME_MEANS
            data-testid="changes-hide-same"
            on:click=move |_| reader.hides_same.update(|hides| *hides = !*hides)
        >
            {words::HIDE_SAME}
        </button>
        <span class="changes-layout only-desk" role="group" aria-label=words::LAYOUT>
            {way("", words::UNIFIED, "changes-unified")}
            {way(BESIDE, words::BESIDE, "changes-beside")}
        </span>
    }
}

pub(super) fn counts(added: Option<u64>, deleted: Option<u64>) -> AnyView {
    view! {
        <span class="num counts">
            {added.filter(|n| *n > 0).map(|n| view! { <span class="plus">{format!("+{n}")}</span> })}
            {deleted.filter(|n| *n > 0).map(|n| view! { <span class="minus">{format!("−{n}")}</span> })}
        </span>
    }
    .into_any()
}

fn body(reader: Reader, found: &Changes) -> AnyView {
    if found.files.is_empty() {
        return view! { <p class="log-empty" data-testid="changes-none">{words::NONE}</p> }
            .into_any();
    }
    let keys = move |event: web_sys::KeyboardEvent| {
        let by = match event.key().as_str() {
            "ArrowDown" => 1,
            "ArrowUp" => -1,
            _ => return,
        };
        event.prevent_default();
        step(".changes-file", by);
    };
    view! {
        <div class="changes-body">
            <nav class="changes-files" aria-label=words::FILES on:keydown=keys>
                {folders(found).into_iter().map(|folder| one_folder(reader, folder)).collect_view()}
            </nav>
            <div class="changes-diff">{dynamic(move || changed_file(reader))}</div>
        </div>
    }
    .into_any()
}

/// Moves the focus among the elements of a selector.
pub(super) fn step(selector: &str, by: i32) {
    let Ok(all) = document().query_selector_all(selector) else { return };
    let all: Vec<web_sys::HtmlElement> = (0..all.length())
        .filter_map(|at| wasm_bindgen::JsCast::dyn_into(all.get(at)?).ok())
        .collect();
    let focused = document().active_element();
    let at =
        all.iter().position(|one| focused.as_ref().is_some_and(|at| at.is_same_node(Some(one))));
    let last = i32::try_from(all.len()).unwrap_or(i32::MAX) - 1;
    let next = match at.and_then(|at| i32::try_from(at).ok()) {
        Some(at) => (at + by).clamp(0, last.max(0)),
        None if by > 0 => 0,
        None => last.max(0),
    };
    if let Some(one) = usize::try_from(next).ok().and_then(|next| all.get(next)) {
        let _ = one.focus(); // only fails for elements that cannot have it
        one.scroll_into_view_with_bool(true);
    }
}

fn one_folder(reader: Reader, folder: Folder) -> AnyView {
    let head = (!folder.path.is_empty()).then(|| {
        let path = shown(&folder.path).into_owned();
        view! { <h3 class="changes-folder">{icon("folder", 16)} <bdi>{path}</bdi></h3> }
    });
    let files = folder.files.into_iter().map(|(name, file)| one_file(reader, &name, &file));
    view! { {head} <ul>{files.collect_view()}</ul> }.into_any()
}

fn one_file(reader: Reader, name: &str, file: &ChangedFile) -> AnyView {
    let nav = nav();
    let (letter, word) = words::status(file.status.known());
    let path = StoredValue::new(file.path.clone());
    let is_chosen = memo(move || reader.chosen.get() == path.get_value());
    let choose = move |_| {
        // One step back leads from a file to the list, however many files were looked at.
        let replace = !reader.chosen.with_untracked(String::is_empty);
        nav.set_query(&[(FILE, &path.get_value())], replace);
    };
    let kind = words::kind(file.kind.known());
    let own = file.clone();
    let is_viewed = memo(move || reader.has_viewed(&own));
    let title = file.old_path.as_deref().map(|old| words::was(&shown(old)));
    view! {
        <li>
            <button
                type="button"
                class="changes-file"
                aria-current=live(move || is_chosen.get().then_some("true"))
                title=title
                data-testid="changes-file"
                data-path=file.path.clone()
                on:click=choose
            >
                <span class=format!("letter letter-{word}") aria-hidden="true">{letter}</span>
                <span class="name"><bdi>{shown(name).into_owned()}</bdi></span>
                <span class="sr-only">{word}</span>
                {dynamic(move || is_viewed.get().then(|| view! {
                    {icon("check", 16)} <span class="sr-only">{words::VIEWED}</span>
                }))}
                {kind.map(|kind| view! { <span class="muted">{kind}</span> })}
                {counts(file.additions, file.deletions)}
            </button>
        </li>
    }
    .into_any()
}
