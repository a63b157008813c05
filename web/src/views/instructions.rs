//! The editor of what a project tells its agents: `CLAUDE.md`.

use crate::api;
use crate::model::line_ends;
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::wire;
use crate::nav::nav;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::reactive::{derived, dynamic, live, memo};
use crate::text::instructions as words;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::error::ErrorCode;
use svc_shared::internal::instructions::{Instructions, MOST_BYTES, WriteInstructions};
use svc_shared::paths;

/// The file, and what is typed.
#[derive(Clone, Copy)]
struct Editor {
    path: StoredValue<String>,
    /// The file as it was read last; none before that.
    known: RwSignal<Option<Instructions>>,
    text: RwSignal<String>,
    /// The file as somebody else has written it meanwhile.
    other: RwSignal<Option<Instructions>>,
    problem: RwSignal<Option<Problem>>,
    is_pending: RwSignal<bool>,
}

impl Editor {
    fn of(project: &str) -> Self {
        Self {
            path: StoredValue::new(paths::project_action(project, "claude-md")),
            known: RwSignal::new(None),
            text: RwSignal::new(String::new()),
            other: RwSignal::new(None),
            problem: RwSignal::new(None),
            is_pending: RwSignal::new(false),
        }
    }

    fn type_in(self, typed: String) {
        let text = self.known.with_untracked(|known| {
            let read = known.as_ref().map(|known| known.content.as_str()).unwrap_or_default();
            line_ends::as_in(read, typed)
        });
        self.text.set(text);
    }

    fn read(self) {
        let path = self.path.get_value();
        spawn_local(async move {
            match api::get::<Instructions>(&path).await {
                Ok(found) => self.take(found),
                Err(problem) => drop(self.problem.try_set(Some(problem))),
            }
        });
    }

    /// The file is as it is shown now. The view may be gone by then.
    fn take(self, found: Instructions) {
        let _ = self.text.try_set(found.content.clone());
        self.know(found);
    }

    /// The file is as it is told; what was typed meanwhile stays.
    fn know(self, found: Instructions) {
        let _ = self.other.try_set(None);
        let _ = self.known.try_set(Some(found));
    }

    fn is_dirty(self) -> bool {
        self.known.with(|known| {
            known.as_ref().is_some_and(|known| self.text.with(|text| *text != known.content))
        })
    }

    fn is_too_large(self) -> bool {
        self.text.with(String::len) > MOST_BYTES
    }

    /// Replaces the file, if it is still the one that `base` tells.
    fn save(self, base: Option<String>) {
        let page = page();
        if self.is_pending.get_untracked() || untrack(|| self.is_too_large()) {
            return;
        }
        let content = self.text.get_untracked();
        let body = wire::written(&WriteInstructions { content, base_sha256: base });
        let path = self.path.get_value();
        self.is_pending.set(true);
        self.problem.set(None);
        spawn_local(async move {
            let answer = api::request(Method::PUT, &path, Some(body), None).await;
            match api::understood::<Instructions>(answer) {
                Ok(found) => {
                    self.know(found);
                    page.say.done(words::SAVED.to_owned());
                }
                Err(problem) if problem.is(ErrorCode::Stale) => {
                    match api::get::<Instructions>(&path).await {
                        Ok(found) => drop(self.other.try_set(Some(found))),
                        Err(problem) => drop(self.problem.try_set(Some(problem))),
                    }
                }
                Err(problem) => drop(self.problem.try_set(Some(problem))),
            }
            let _ = self.is_pending.try_set(false);
        });
    }
}

/// The editor.
#[component]
pub fn InstructionsEditor(
    /// Name of the project.
    project: String,
    /// Its directory is trusted.
    is_trusted: Memo<bool>,
) -> impl IntoView {
    let editor = Editor::of(&project);
    editor.read();
    nav().guard(derived(move || editor.is_dirty()));
    let is_known = memo(move || editor.known.with(Option::is_some));
    let is_new = memo(move || editor.known.with(|it| it.as_ref().is_some_and(|it| !it.exists)));
    let runs =
        memo(move || editor.known.with(|it| it.as_ref().is_some_and(|it| it.bridge_running)));
    let failed = move || {
        editor.problem.get().map(|problem| {
            view! {
                <p class="strip tone-danger" role="alert" data-testid="instructions-problem">{shown(&problem.words()).into_owned()}</p>
            }
        })
    };
    view! {
        <section class="instructions" data-testid="instructions">
            <p class="muted">{words::WHAT}</p>
            {dynamic(move || runs.get().then(|| view! { <p class="strip tone-info">{words::RUNNING}</p> }))}
            {dynamic(move || is_new.get().then(|| view! { <p class="muted" data-testid="instructions-none">{words::NONE}</p> }))}
            {dynamic(failed)}
            {dynamic(move || if is_known.get() {
                view! { <Text editor=editor is_trusted=is_trusted /> }.into_any()
            } else if editor.problem.with(Option::is_none) {
                view! { <p class="muted" role="status">{words::READING}</p> }.into_any()
            } else {
                ().into_any()
            })}
            {dynamic(move || editor.other.get().map(|other| view! { <Other editor=editor other=other /> }))}
        </section>
    }
}

#[component]
fn Text(editor: Editor, is_trusted: Memo<bool>) -> impl IntoView {
    let why_not = derived(move || {
        if !is_trusted.get() {
            Some(words::NOT_TRUSTED.to_owned())
        } else if editor.is_too_large() {
            Some(words::too_large())
        } else if editor.is_dirty() {
            None
        } else {
            Some(words::UNCHANGED.to_owned())
        }
    });
    let is_off = move || {
        let is_off = why_not.with(Option::is_some)
            || editor.is_pending.get()
            || editor.other.with(Option::is_some);
        is_off.then_some("true")
    };
    let save = move |_| {
        if why_not.with_untracked(Option::is_none) && editor.other.with_untracked(Option::is_none) {
            editor.save(editor.known.with_untracked(|known| known.as_ref()?.sha256.clone()));
        }
    };
    let is_bad = move || editor.is_too_large().then_some("true");
    let size = move || editor.text.with(|text| words::size(text.len()));
    view! {
        <label class="sr-only" for="instructions-text">{words::TEXT}</label>
        <textarea
            class="input mono"
            id="instructions-text"
            spellcheck="false"
            aria-describedby="instructions-size"
            aria-invalid=live(is_bad)
            prop:value=editor.text
            on:input=move |event| editor.type_in(event_target_value(&event))
        ></textarea>
        <div class="instructions-foot">
            <span class="muted" id="instructions-size"><span class="num">{live(size)}</span> {dynamic(move || why_not.get().map(|why| format!(" · {why}")))}</span>
            <button
                type="button"
                class=ButtonStyle::Primary.class()
                aria-disabled=live(is_off)
                data-testid="instructions-save"
                on:click=save
            >{words::SAVE}</button>
        </div>
    }
}

/// What is on disk, beside what was typed.
#[component]
fn Other(editor: Editor, other: Instructions) -> impl IntoView {
    let base = StoredValue::new(other.sha256.clone());
    let content = other.content.clone();
    let theirs = StoredValue::new(other);
    let keep = move |_| {
        editor.other.set(None);
        editor.save(base.get_value());
    };
    view! {
        <section class="card gate tone-warn" role="alert" data-testid="instructions-conflict">
            <p>{words::CONFLICT}</p>
            <pre class="plain-text" tabindex="0">{shown(&content).into_owned()}</pre>
            <div class="instructions-foot">
                <button type="button" class=ButtonStyle::Secondary.class() data-testid="instructions-theirs" on:click=move |_| editor.take(theirs.get_value())>{words::TAKE_THEIRS}</button>
                <button type="button" class=ButtonStyle::Primary.class() data-testid="instructions-mine" on:click=keep>{words::KEEP_MINE}</button>
            </div>
        </section>
    }
}
