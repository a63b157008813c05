//! Views that are fetched after the first one is shown.
//!
//! The page's module holds Home and what is launched from there. The other views are in modules of
//! their own, made by `#[wasm_split]`. They are fetched when the first view has come to rest, or
//! when one of them is opened before that.

use crate::appear::enter;
use crate::model::status::Tone;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::symbol;
use crate::reactive::dynamic;
use crate::text::page::lazy as words;
use futures_util::FutureExt as _;
use leptos::prelude::*;
use leptos::wasm_split::SplitLoaderError;
use std::future::Future;
use std::pin::Pin;

/// What a function of another module answers.
pub type Built = Result<AnyView, SplitLoaderError>;

/// Work that fetches a module first, if it is not here yet.
pub type Fetching<T> = Pin<Box<dyn Future<Output = Result<T, SplitLoaderError>>>>;

/// Whether a module is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nobody asked for it.
    Absent,
    /// It is on its way.
    Fetching,
    /// Its views can be built at once.
    Here,
    /// It could not be fetched.
    Failed,
}

/// A module with some of the views.
#[derive(Clone, Copy)]
pub struct Part {
    state: RwSignal<State>,
    fetch: fn() -> Fetching<()>,
}

impl Part {
    /// A module that `fetch` brings.
    pub fn new(fetch: fn() -> Fetching<()>) -> Self {
        Self { state: RwSignal::new(State::Absent), fetch }
    }

    /// Fetches the module, unless it is here or on its way.
    pub fn fetch(self) {
        match self.state.get_untracked() {
            State::Fetching | State::Here => return,
            State::Absent | State::Failed => self.state.set(State::Fetching),
        }
        leptos::task::spawn_local(async move {
            let came = (self.fetch)().await.is_ok();
            self.state.set(if came { State::Here } else { State::Failed });
        });
    }

    /// Fetches the module once more, if that failed before.
    pub fn retry(self) {
        if self.state.get_untracked() == State::Failed {
            self.fetch();
        }
    }

    /// Shows what `build` makes as soon as the module is here.
    ///
    /// `build` is called with the module here, so its future is ready at once and what it makes
    /// belongs to the view around it.
    pub fn show(self, build: impl Fn() -> Fetching<AnyView> + Send + 'static) -> AnyView {
        self.fetch();
        dynamic(move || match self.state.get() {
            State::Absent | State::Fetching => view! { <Waiting /> }.into_any(),
            State::Here => match build().now_or_never() {
                Some(Ok(view)) => view,
                Some(Err(_)) | None => view! { <Failed part=self /> }.into_any(),
            },
            State::Failed => view! { <Failed part=self /> }.into_any(),
        })
    }
}

/// Stands where a view will be.
#[component]
fn Waiting() -> impl IntoView {
    view! {
        <div class="card" aria-busy="true" data-testid="view-waits">
            <div class="skeleton-row"></div>
            <div class="skeleton-row"></div>
            <div class="skeleton-row"></div>
        </div>
    }
}

/// Says that a view could not be fetched.
#[component]
fn Failed(part: Part) -> impl IntoView {
    enter(words::TITLE);
    let reload = move |_| {
        let _ = window().location().reload(); // nothing is left to say it to
    };
    view! {
        <div class=format!("card page-card {}", Tone::Danger.class()) role="alert" data-testid="view-failed">
            <h2>{symbol("g-octagon", "glyph")} {words::TITLE}</h2>
            <p>{words::WHY}</p>
            <div class="actions">
                <button
                    type="button" class=ButtonStyle::Primary.class() data-testid="view-again"
                    on:click=move |_| part.fetch()
                >
                    {words::RETRY}
                </button>
                <button type="button" class=ButtonStyle::Ghost.class() on:click=reload>{words::RELOAD}</button>
            </div>
        </div>
    }
}
