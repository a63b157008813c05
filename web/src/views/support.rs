//! The support bundle: what is in it, then the file.

use crate::api;
use crate::browser;
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::reactive::{dynamic, live};
use crate::text::support as words;
use crate::views::row::fact;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::internal::support::{BundleListing, BundleMember};
use svc_shared::paths::{SUPPORT_ARCHIVE, SUPPORT_BUNDLE};

/// How far the reader came.
#[derive(Clone)]
pub(super) enum Stage {
    Closed,
    Asking,
    Known(Result<BundleListing, Problem>),
}

/// The button that shows what would be in the bundle.
pub(super) fn button(stage: RwSignal<Stage>) -> AnyView {
    let press = move |_| {
        stage.set(Stage::Asking);
        spawn_local(async move {
            let found = api::get::<BundleListing>(SUPPORT_BUNDLE).await;
            let _ = stage.try_set(Stage::Known(found)); // the page may have left
        });
    };
    view! {
        <button
            type="button"
            class=ButtonStyle::Ghost.class()
            aria-disabled=live(move || matches!(stage.try_get(), Some(Stage::Asking)).then_some("true"))
            data-testid="support-bundle"
            on:click=press
        >
            {icon("download", 16)} {words::BUTTON}
        </button>
    }
    .into_any()
}

/// The list of what is in it, with the link that saves it.
pub(super) fn card(stage: RwSignal<Stage>) -> AnyView {
    dynamic(move || match stage.try_get()? {
        Stage::Closed => None,
        Stage::Asking => Some(view! { <p role="status">{words::GATHERING}</p> }.into_any()),
        Stage::Known(Err(problem)) => Some(
            view! { <p class="strip tone-danger" role="alert">{problem.words()}</p> }.into_any(),
        ),
        Stage::Known(Ok(listing)) => Some(listed(&listing, stage)),
    })
}

fn listed(listing: &BundleListing, stage: RwSignal<Stage>) -> AnyView {
    let members: Vec<AnyView> = listing.members.iter().map(member).collect();
    view! {
        <section class="card report-card" aria-labelledby="support-title" data-testid="support-card">
            <h2 id="support-title">{words::TITLE}</h2>
            <p>{words::WHY}</p>
            <ul class="support-list">{members}</ul>
            <p class="support-acts">
                <a
                    class=ButtonStyle::Primary.class()
                    href=browser::href(SUPPORT_ARCHIVE)
                    download=listing.name.clone()
                    target="_self"
                    data-testid="support-save"
                >
                    {icon("download", 16)} {words::SAVE}
                </a>
                <button type="button" class=ButtonStyle::Ghost.class() on:click=move |_| stage.set(Stage::Closed)>
                    {words::CLOSE}
                </button>
            </p>
        </section>
    }
    .into_any()
}

fn member(member: &BundleMember) -> AnyView {
    view! {
        <li>
            <code>{shown(&member.name).into_owned()}</code> " " {fact(&member.says)}
            {fact(&words::size(member.bytes))}
        </li>
    }
    .into_any()
}
