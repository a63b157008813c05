//! The address that opens the launch dialog of a project, for bookmarks.

use crate::browser;
use crate::shell::nav::{LAUNCH, nav};
use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};

/// Shows the project list with the dialog over it.
#[component]
pub fn LaunchLink() -> impl IntoView {
    let nav = nav();
    let name = use_params_map().with_untracked(|p| p.get("name")).unwrap_or_default();
    let mut query = use_query_map().get_untracked();
    query.remove(LAUNCH);
    query.insert(LAUNCH, name);
    let to = format!("{}{}", browser::href("/ui/projects"), query.to_query_string());
    // After this view is there: a router does not take a change while it makes one.
    browser::after_paint(move || nav.replace(&to));
}
