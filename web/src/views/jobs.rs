//! Background sessions: what waits, what failed, what works, what ended.

use crate::appear::enter;
use crate::browser;
use crate::model::job::Group;
use crate::model::launch::{Choice, Kind};
use crate::model::projects::Query;
use crate::model::shown::shown;
use crate::nav::nav;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::reactive::{dynamic, memo};
use crate::store::JOB;
use crate::text::job as words;
use crate::text::page::{home, nav as nav_words};
use crate::views::home::Loading;
use crate::views::job_row::job_row;
use crate::views::rows::Rows;
use leptos::prelude::*;

fn heading(group: Group) -> (&'static str, &'static str) {
    match group {
        Group::Waiting => (words::WAITING, "jobs-waiting"),
        Group::NeedsLook => (home::NEEDS_LOOK, "jobs-needs-look"),
        Group::Live => (home::LIVE, "jobs-live"),
        Group::Ended => (home::ENDED, "jobs-ended"),
    }
}

/// The view.
#[component]
pub fn Jobs(
    /// The job whose prompt and result are unfolded; blank for none.
    open: String,
) -> impl IntoView {
    let page = page();
    enter(nav_words::BACKGROUND);
    let open = StoredValue::new(open);
    let is_empty = memo(move || page.store.jobs_of(&Group::ALL).is_empty());
    let is_gone = memo(move || {
        let id = open.get_value();
        !id.is_empty() && page.store.is_loaded.get() && page.store.job(&id).is_none()
    });
    let row = Callback::new(move |key: String| {
        let id = key.strip_prefix(JOB).unwrap_or_default().to_owned();
        let is_open = open.with_value(|open| *open == id);
        if is_open {
            let name = format!("[data-row=\"{key}\"] .name");
            browser::after_paint(move || {
                browser::focus(&name);
            });
        }
        job_row(id, Some(is_open))
    });
    let section = move |group| {
        let (title, testid) = heading(group);
        let keys = memo(move || page.store.jobs_of(&[group]));
        view! { <Rows title=title testid=testid keys=keys total=keys row=row /> }
    };
    view! {
        {dynamic(move || is_gone.get().then(|| view! {
            <p class="strip tone-info" data-testid="job-gone">{words::GONE}</p>
        }))}
        {dynamic(move || match (page.store.is_loaded.get(), is_empty.get()) {
            (false, _) => view! { <Loading /> }.into_any(),
            (true, true) => view! {
                <div class="card empty" data-testid="jobs-empty"><p>{words::EMPTY}</p><Start /></div>
            }.into_any(),
            (true, false) => view! {
                <div class="toolbar"><Start /></div>
                {Group::ALL.map(section)}
            }.into_any(),
        })}
    }
}

/// Starts one where it is likeliest to be wanted.
#[component]
fn Start() -> impl IntoView {
    let page = page();
    let nav = nav();
    let first = memo(move || page.store.list_projects(&Query::default()).into_iter().next());
    view! {
        {dynamic(move || first.get().map(|name| {
            let label = words::start_in(&shown(&name));
            let choice = Choice::of_kind(Kind::Background);
            let start = move |_| nav.open_launch(&name, &choice);
            view! {
                <button type="button" class=ButtonStyle::Primary.class() data-testid="act-dispatch" on:click=start>
                    {icon("play", 16)} {label}
                </button>
                <a class=ButtonStyle::Ghost.class() href=browser::href("/ui/projects")>{words::ELSEWHERE}</a>
            }
        }))}
    }
}
