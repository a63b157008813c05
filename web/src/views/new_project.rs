//! The sheet that makes a project: an empty one, or a clone.

use crate::api;
use crate::browser;
use crate::model::new_project::{self as rules, Making, Way};
use crate::model::problem::Problem;
use crate::model::wire;
use crate::page::{Page, Sheet, page};
use crate::parts::button::ButtonStyle;
use crate::parts::dialog::Dialog;
use crate::parts::icon::icon;
use crate::reactive::{derived, dynamic, live, memo};
use crate::text::{launch, new_project as words};
use crate::views::clone::{CloneView, Review};
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::api::projects::Project;
use svc_shared::internal::clones::{CloneAccepted, CloneRequest, CreateProject};
use svc_shared::paths;

/// The two buttons that open it; nothing where the service makes no projects.
#[component]
pub fn NewButtons(
    /// On an empty page the first is the main action.
    #[prop(optional)]
    is_empty: bool,
) -> impl IntoView {
    let page = page();
    let can = memo(move || page.live.basics.with(|b| b.as_ref().is_some_and(|b| b.can_clone)));
    let open = move |way| page.sheet.set(Some(Sheet::New(Making::Form(way))));
    let (clone, create) = match is_empty {
        true => (words::CLONE_TITLE, words::CREATE_EMPTY),
        false => (words::CLONE, words::CREATE),
    };
    let first = if is_empty { ButtonStyle::Primary } else { ButtonStyle::Secondary };
    view! {
        {dynamic(move || can.get().then(|| view! {
            <span class="new-buttons">
                <button type="button" class=first.class() aria-haspopup="dialog" data-testid="new-clone" on:click=move |_| open(Way::Clone)>
                    {icon("download", 16)} {clone}
                </button>
                <button type="button" class=ButtonStyle::Secondary.class() aria-haspopup="dialog" data-testid="new-create" on:click=move |_| open(Way::Create)>
                    {icon("plus", 16)} {create}
                </button>
            </span>
        }))}
    }
}

/// What the form holds.
#[derive(Clone, Copy)]
struct NewForm {
    page: Page,
    way: Way,
    url: RwSignal<String>,
    name: RwSignal<String>,
    /// Somebody typed a name: the address suggests none any more.
    is_named: RwSignal<bool>,
    extra: RwSignal<bool>,
    is_pending: RwSignal<bool>,
    problem: RwSignal<Option<Problem>>,
    /// Nothing is marked as wrong before it was sent once.
    is_sent: RwSignal<bool>,
}

impl NewForm {
    fn new(way: Way) -> Self {
        Self {
            page: page(),
            way,
            url: RwSignal::new(String::new()),
            name: RwSignal::new(String::new()),
            is_named: RwSignal::new(false),
            extra: RwSignal::new(false),
            is_pending: RwSignal::new(false),
            problem: RwSignal::new(None),
            is_sent: RwSignal::new(false),
        }
    }

    /// What is wrong with the address. Tracked.
    fn url_trouble(self) -> Option<String> {
        let found = self.url.with(|url| rules::bad_url(url.trim()));
        let empty = self.is_sent.get() && self.url.with(|url| url.trim().is_empty());
        found
            .map(|why| words::bad_url(why).to_owned())
            .or_else(|| empty.then(|| words::URL_WANTED.to_owned()))
    }

    /// What is wrong with the name. Tracked.
    fn name_trouble(self) -> Option<String> {
        let name = self.name.get();
        let is_taken = self.page.store.project(&name).is_some();
        let empty = self.is_sent.get() && name.is_empty();
        rules::bad_name(&name)
            .or_else(|| is_taken.then(|| words::TAKEN.to_owned()))
            .or_else(|| empty.then(|| words::NAME_WANTED.to_owned()))
    }

    fn typed_url(self, url: String) {
        if !self.is_named.get_untracked() {
            self.name.set(rules::suggested(url.trim()));
        }
        self.url.set(url);
        self.problem.set(None);
    }

    fn submit(self, making: RwSignal<Stage>) {
        if self.is_pending.get_untracked() {
            return;
        }
        self.is_sent.set(true);
        self.problem.set(None);
        let has_url = self.way == Way::Clone;
        if has_url && untrack(move || self.url_trouble()).is_some() {
            browser::focus("#new-url");
            return;
        }
        if untrack(move || self.name_trouble()).is_some() {
            browser::focus("#new-name");
            return;
        }
        self.is_pending.set(true);
        spawn_local(async move {
            let done = match self.way {
                Way::Create => self.create().await,
                Way::Clone => self.clone_it().await,
            };
            // The sheet may be closed by now.
            if self.is_pending.try_set(false).is_some() {
                return;
            }
            match done {
                Ok(next) => making.set(next),
                Err(problem) => {
                    // Read out: the focus moves to the field, not to the text.
                    self.page.say.alert(&problem.words());
                    self.problem.set(Some(problem));
                    browser::focus(if has_url { "#new-url" } else { "#new-name" });
                }
            }
        });
    }

    async fn create(self) -> Result<Stage, Problem> {
        let request =
            CreateProject { name: self.name.get_untracked(), git_init: self.extra.get_untracked() };
        let body = Some(wire::written(&request));
        let answer = api::request(Method::POST, &paths::projects(), body, None).await;
        let made: Project = api::understood(answer)?;
        Ok(Stage::Made(made.name.to_string()))
    }

    async fn clone_it(self) -> Result<Stage, Problem> {
        let request = CloneRequest {
            name: self.name.get_untracked(),
            url: self.url.with_untracked(|url| url.trim().to_owned()),
            shallow: self.extra.get_untracked(),
        };
        let body = Some(wire::written(&request));
        let answer = api::request(Method::POST, &paths::clones(), body, None).await;
        let accepted: CloneAccepted = api::understood(answer)?;
        Ok(Stage::Clone(accepted.job_id))
    }
}

/// Where the sheet is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    Form,
    Clone(String),
    Made(String),
}

/// The sheet.
#[component]
pub fn NewProject(making: Making) -> impl IntoView {
    let page = page();
    let (way, begin) = match making {
        Making::Form(way) => (way, Stage::Form),
        Making::Clone(job) => (Way::Clone, Stage::Clone(job)),
    };
    let form = NewForm::new(way);
    let stage = RwSignal::new(begin);
    let close = Callback::new(move |()| page.sheet.set(None));
    let title = match way {
        Way::Create => words::CREATE_TITLE,
        Way::Clone => words::CLONE_TITLE,
    };
    let is_dirty = Signal::derive(move || {
        stage.with(|stage| *stage == Stage::Form) && !form.url.with(String::is_empty)
    });
    let again = Callback::new(move |()| stage.set(Stage::Form));
    view! {
        <Dialog title=title.to_owned() on_close=close is_dirty=is_dirty testid="new-project">
            {dynamic(move || match stage.get() {
                Stage::Form => view! { <Form form=form stage=stage on_close=close /> }.into_any(),
                Stage::Clone(job) => view! { <CloneView job=job on_close=close on_again=again /> }.into_any(),
                Stage::Made(name) => view! {
                    <Review name=name.clone() says=words::created(&name) on_close=close />
                }.into_any(),
            })}
        </Dialog>
    }
}

#[component]
fn Form(form: NewForm, stage: RwSignal<Stage>, on_close: Callback<()>) -> impl IntoView {
    let page = page();
    let is_clone = form.way == Way::Clone;
    let root = move || {
        let known = page.live.basics.with(|b| b.as_ref().map(|b| b.projects_root.clone()));
        known.unwrap_or_default()
    };
    let url_trouble = memo(move || form.url_trouble());
    let name_trouble = memo(move || form.name_trouble());
    let url_help = derived(move || url_trouble.get().unwrap_or_else(|| words::URL_HELP.to_owned()));
    let name_help = derived(move || match name_trouble.get() {
        Some(why) => why,
        None => words::goes_to(&root(), &form.name.get()),
    });
    let name_typed = Callback::new(move |name: String| {
        form.is_named.set(!name.is_empty());
        form.name.set(name);
        form.problem.set(None);
    });
    let url_typed = Callback::new(move |url| form.typed_url(url));
    let (extra, extra_help) = match form.way {
        Way::Create => (words::GIT_INIT, words::GIT_INIT_HELP),
        Way::Clone => (words::SHALLOW, words::SHALLOW_HELP),
    };
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        form.submit(stage);
    };
    let verb = if is_clone { words::CLONE } else { words::CREATE };
    view! {
        <form novalidate=true on:submit=submit>
            <div class="dialog-body">
                {is_clone.then(|| super::clone::steps(0))}
                {is_clone.then(|| line(Line {
                    id: "new-url",
                    label: words::REPOSITORY,
                    placeholder: words::EXAMPLE,
                    value: form.url,
                    typed: url_typed,
                    help: url_help,
                    is_bad: memo(move || url_trouble.with(Option::is_some)),
                }))}
                {line(Line {
                    id: "new-name",
                    label: words::NAME,
                    placeholder: "",
                    value: form.name,
                    typed: name_typed,
                    help: name_help,
                    is_bad: memo(move || name_trouble.with(Option::is_some)),
                })}
                <label class="check wide">
                    <input
                        type="checkbox"
                        data-testid="new-extra"
                        prop:checked=form.extra
                        on:change=move |event| form.extra.set(event_target_checked(&event))
                    />
                    <span>{extra} <span class="muted">{extra_help}</span></span>
                </label>
                {dynamic(move || form.problem.get().map(|problem| view! {
                    <p class="wide help help-error" data-testid="new-problem">{problem.words()}</p>
                }))}
            </div>
            <div class="dialog-foot">
                <span class="says"></span>
                <button type="button" class=ButtonStyle::Ghost.class() on:click=move |_| on_close.run(())>{launch::CANCEL}</button>
                <button
                    type="submit"
                    class=ButtonStyle::Primary.class()
                    aria-disabled=live(move || (form.is_pending.get() || page.live.is_offline.get()).then_some("true"))
                    data-testid="new-submit"
                >
                    {verb}
                </button>
            </div>
        </form>
    }
}

/// A line of the form.
struct Line {
    id: &'static str,
    label: &'static str,
    placeholder: &'static str,
    value: RwSignal<String>,
    typed: Callback<String>,
    help: Signal<String>,
    is_bad: Memo<bool>,
}

fn line(line: Line) -> AnyView {
    let Line { id, label, placeholder, value, typed, help, is_bad } = line;
    let help_id = format!("{id}-help");
    view! {
        <label for=id>{label}</label>
        <div>
            <input
                id=id
                class="input mono"
                type="text"
                inputmode=if id == "new-url" { "url" } else { "text" }
                autocomplete="off"
                autocapitalize="off"
                spellcheck="false"
                placeholder=placeholder
                aria-describedby=help_id.clone()
                aria-invalid=live(move || is_bad.get().then_some("true"))
                data-testid=id
                prop:value=value
                on:input=move |event| typed.run(event_target_value(&event))
            />
            <p class="help" class:help-error=is_bad id=help_id>{help}</p>
        </div>
    }
    .into_any()
}
