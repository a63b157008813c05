//! What changed where a session works: the files, and the lines of the chosen one.

use crate::api;
use crate::model::changes::{FileLines, Folder, file_path, folders, totals};
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::time;
use crate::model::wire;
use crate::nav::nav;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::{icon, symbol};
use crate::prefs;
use crate::reactive::{dynamic, effect, live, memo};
use crate::socket::{Heard, Socket};
use crate::text::changes as words;
use crate::views::copy::copy;
use crate::views::diff::table;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;
use svc_shared::internal::changes::{ChangeKind, ChangedFile, Changes, ChangesNotice};

/// Query member that names the file.
const FILE: &str = "file";

/// What came of a reading.
#[derive(Debug, Clone, PartialEq)]
enum Reading<T> {
    Under,
    Done(Arc<T>),
    Failed(Problem),
}

/// Reads the list and one file of it.
#[derive(Clone, Copy)]
struct Reader {
    path: StoredValue<String>,
    list: RwSignal<Reading<Changes>>,
    read_at: RwSignal<i64>,
    file: RwSignal<Reading<FileLines>>,
    chosen: Memo<String>,
    /// Something changed since the list was read.
    is_old: RwSignal<bool>,
    /// Counts readings of files: an answer that comes late is not shown.
    asked: StoredValue<u64>,
}

impl Reader {
    fn of(path: String) -> Self {
        let nav = nav();
        Self {
            path: StoredValue::new(path),
            list: RwSignal::new(Reading::Under),
            read_at: RwSignal::new(0),
            file: RwSignal::new(Reading::Under),
            chosen: memo(move || nav.member(FILE)),
            is_old: RwSignal::new(false),
            asked: StoredValue::new(0),
        }
    }

    /// Reads the list again, and the chosen file.
    fn reload(self) {
        let (path, page) = (self.path.get_value(), page());
        self.is_old.set(false);
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
    fn read_file(self, after: Option<Arc<FileLines>>) {
        let chosen = self.chosen.get_untracked();
        if chosen.is_empty() {
            return;
        }
        let from = after.as_ref().and_then(|after| after.next_from).unwrap_or_default();
        let path = file_path(&self.path.get_value(), &chosen, from);
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
    let socket = notices.and_then(|path| {
        Socket::open(&path, move |heard| {
            if let Heard::Text(text) = heard
                && wire::read::<ChangesNotice>(&text).is_ok_and(|notice| notice.changed)
            {
                reader.is_old.try_set(true);
            }
        })
    });
    let socket = StoredValue::new_local(socket);
    on_cleanup(move || drop(socket.try_update_value(Option::take)));
    reader.reload();
    effect(move || {
        reader.chosen.track();
        reader.file.set(Reading::Under);
        reader.read_file(None);
    });
    let has_file = memo(move || !reader.chosen.with(String::is_empty));
    view! {
        <section class="card changes" class:has-file=has_file aria-label=words::LABEL data-testid="changes">
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
    let text = match problem.is(ErrorCode::NotFound) {
        true => words::NO_GIT.to_owned(),
        false => problem.words(),
    };
    view! {
        <p class="log-empty" role="alert" data-testid="changes-failed">{text}</p>
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
                <span class="muted num">{dynamic(at)}</span>
                <button
                    type="button"
                    class=ButtonStyle::Ghost.class()
                    data-testid="changes-reload"
                    on:click=move |_| reader.reload()
                >
                    {icon("resume", 16)} {words::RELOAD}
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

fn counts(added: Option<u64>, deleted: Option<u64>) -> AnyView {
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
            <div class="changes-diff">{dynamic(move || diff(reader))}</div>
        </div>
    }
    .into_any()
}

/// Moves the focus among the elements of a selector.
fn step(selector: &str, by: i32) {
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
                {kind.map(|kind| view! { <span class="muted">{kind}</span> })}
                {counts(file.additions, file.deletions)}
            </button>
        </li>
    }
    .into_any()
}

/// The chosen file.
fn diff(reader: Reader) -> AnyView {
    let nav = nav();
    let chosen = reader.chosen.get();
    if chosen.is_empty() {
        return view! { <p class="log-empty changes-choose">{words::CHOOSE}</p> }.into_any();
    }
    let back = move |_| nav.set_query(&[(FILE, "")], true);
    let page = page();
    let path = StoredValue::new(chosen);
    let content = move || match reader.file.get() {
        Reading::Under => {
            view! { <p class="log-empty" aria-busy="true">{words::LOADING}</p> }.into_any()
        }
        Reading::Failed(problem) => {
            let text = match problem.is(ErrorCode::NotFound) {
                true => words::GONE.to_owned(),
                false => problem.words(),
            };
            view! { <p class="log-empty" role="alert" data-testid="file-failed">{text}</p> }
                .into_any()
        }
        Reading::Done(file) => lines(reader, &file),
    };
    view! {
        <div class="changes-head">
            <button type="button" class="btn btn-ghost changes-back" data-testid="changes-back" on:click=back>
                {icon("chevron-left", 16)} {words::ALL_FILES}
            </button>
            <h3><bdi>{move || shown(&path.get_value()).into_owned()}</bdi></h3>
            <span class="end">
                <button
                    type="button" class="btn btn-ghost btn-icon" aria-label=words::PREVIOUS
                    data-testid="change-previous" on:click=move |_| step(".changes-part", -1)
                >
                    {icon("chevron-up", 16)}
                </button>
                <button
                    type="button" class="btn btn-ghost btn-icon" aria-label=words::NEXT
                    data-testid="change-next" on:click=move |_| step(".changes-part", 1)
                >
                    {icon("chevron-down", 16)}
                </button>
                <button
                    type="button" class="btn btn-ghost btn-icon" aria-label=words::COPY_PATH
                    title=words::COPY_PATH on:click=move |_| copy(page, path.get_value(), None)
                >
                    {icon("copy", 16)}
                </button>
            </span>
        </div>
        {dynamic(content)}
    }
    .into_any()
}

fn lines(reader: Reader, file: &Arc<FileLines>) -> AnyView {
    let remark = match file.kind.known() {
        Some(ChangeKind::Binary) => Some(words::BINARY),
        Some(ChangeKind::Submodule) => Some(words::SUBMODULE),
        Some(ChangeKind::Symlink) => Some(words::SYMLINK),
        Some(ChangeKind::Text) | None if !file.hunks.is_empty() || file.too_large => None,
        Some(ChangeKind::Text) | None => {
            let (_, word) = words::status(file.status.known());
            Some(if matches!(word, "untracked" | "added") {
                words::EMPTY_FILE
            } else {
                words::NO_LINES
            })
        }
    };
    let after = Arc::clone(file);
    let more = file.next_from.map(|_| {
        view! {
            <p class="changes-note">
                <button
                    type="button"
                    class="linkish"
                    data-testid="changes-more"
                    on:click=move |_| reader.read_file(Some(Arc::clone(&after)))
                >
                    {words::MORE}
                </button>
            </p>
        }
    });
    view! {
        {(file.masked > 0).then(|| view! {
            <p class="changes-note tone-warn" data-testid="changes-masked">
                {symbol("g-triangle", "glyph")} {words::masked(file.masked)}
            </p>
        })}
        {file.too_large.then(|| view! { <p class="changes-note tone-warn">{words::TOO_LARGE}</p> })}
        {remark.map(|remark| view! { <p class="log-empty" data-testid="file-remark">{remark}</p> })}
        {(!file.hunks.is_empty()).then(|| table(&file.hunks))}
        {more}
    }
    .into_any()
}
