//! Moving between views, and what a change of view means for focus, title and screen readers.

use crate::app::page;
use crate::browser;
use crate::model::launch::Choice;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate};
use leptos_router::params::ParamsMap;
use std::sync::Arc;

type Go = Arc<dyn Fn(&str, NavigateOptions) + Send + Sync>;

/// Query member that names the project whose launch dialog is open.
pub const LAUNCH: &str = "launch";

/// Moves between addresses.
#[derive(Clone, Copy)]
pub struct Nav {
    go: StoredValue<Go>,
    /// Path with prefix.
    pub path: Memo<String>,
    /// Query.
    pub query: Memo<ParamsMap>,
}

/// The navigation of this page.
pub fn nav() -> Nav {
    expect_context()
}

impl Nav {
    /// Inside the router only.
    pub fn new() -> Self {
        let location = use_location();
        let navigate = use_navigate();
        Self {
            go: StoredValue::new(Arc::new(move |to: &str, options| navigate(to, options))),
            path: location.pathname,
            query: location.query,
        }
    }

    /// Goes to an address of this page (with prefix); the one left is forgotten.
    pub fn replace(self, href: &str) {
        let go = self.go.get_value();
        go(href, options(true, true));
    }

    /// Changes members of the query; an empty value removes one.
    pub fn set_query(self, members: &[(&'static str, &str)], replace: bool) {
        let mut query = self.query.get_untracked();
        for (name, value) in members {
            query.remove(name);
            if !value.is_empty() {
                query.insert(*name, (*value).to_owned());
            }
        }
        let to = format!("{}{}", self.path.get_untracked(), query.to_query_string());
        let go = self.go.get_value();
        go(&to, options(replace, false));
    }

    /// One member of the query; empty when absent. Tracked.
    pub fn member(self, name: &str) -> String {
        self.query.with(|query| query.get(name)).unwrap_or_default()
    }

    /// Opens the launch dialog over this view.
    pub fn open_launch(self, project: &str, choice: &Choice) {
        self.set_query(
            &[
                (LAUNCH, project),
                ("permission_mode", choice.permission_mode.as_deref().unwrap_or("")),
                ("spawn_mode", choice.spawn_mode.as_deref().unwrap_or("")),
                ("name", choice.name.as_deref().unwrap_or("")),
            ],
            false,
        );
    }

    /// Closes the launch dialog.
    pub fn close_launch(self) {
        let none = [(LAUNCH, ""), ("permission_mode", ""), ("spawn_mode", ""), ("name", "")];
        self.set_query(&none, true);
    }
}

fn options(replace: bool, scroll: bool) -> NavigateOptions {
    NavigateOptions {
        // Addresses here are complete: the router must not put the prefix in front again.
        resolve: false,
        replace,
        scroll,
        ..NavigateOptions::default()
    }
}

/// Called by every view when it appears: names it, and brings the focus to its heading.
pub fn enter(name: impl Into<String>) {
    let page = page();
    let name = name.into();
    let first = page.view.with_untracked(String::is_empty);
    page.view.set(name.clone());
    if first {
        return; // the browser has just announced the page itself
    }
    page.say.politely(&crate::text::page::opened(&name));
    browser::after_paint(|| {
        if browser::element("dialog[open]").is_none() {
            browser::focus("h1");
        }
    });
}
