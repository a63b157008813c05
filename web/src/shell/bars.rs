//! Rail, top bar and bottom bar.

use crate::browser;
use crate::live::Link;
use crate::model::job::Group;
use crate::model::prefs::{Change, THEME};
use crate::model::route::Route;
use crate::model::shown::shown;
use crate::model::status::Tone;
use crate::nav::nav;
use crate::page::Sheet;
use crate::page::page;
use crate::parts::icon::{icon, symbol};
use crate::prefs;
use crate::reactive::{derived, dynamic, memo};
use crate::text::{direct, keys, launch, page as words, past, ready, settings, spending};
use crate::views::clone::ClonePill;
use leptos::prelude::*;
use svc_shared::paths;
use svc_shared::status::CheckStatus;

/// A place of the navigation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NavItem {
    Home,
    Projects,
    Background,
    Inbox,
    Activity,
    Usage,
    Readiness,
    Settings,
    About,
}

impl NavItem {
    fn of(route: &Route) -> Option<Self> {
        match route {
            Route::Home
            | Route::AgentSignIn
            | Route::Session(_)
            | Route::Open(_)
            | Route::External
            | Route::Restore => Some(Self::Home),
            Route::Jobs(_) => Some(Self::Background),
            Route::Inbox | Route::Request(..) => Some(Self::Inbox),
            Route::Activity => Some(Self::Activity),
            Route::Doctor => Some(Self::Readiness),
            Route::Notifications | Route::Settings | Route::Tokens | Route::AgentConfig(_) => {
                Some(Self::Settings)
            }
            Route::Projects | Route::Project(_) | Route::Launch(_) | Route::Conversation(..) => {
                Some(Self::Projects)
            }
            Route::Usage => Some(Self::Usage),
            Route::About | Route::Maintenance => Some(Self::About),
            Route::Missing => None,
        }
    }

    fn parts(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::Home => ("/ui/", "home", words::nav::HOME, "nav-home"),
            Self::Projects => ("/ui/projects", "folder", words::nav::PROJECTS, "nav-projects"),
            Self::Background => ("/ui/jobs", "layers", words::nav::BACKGROUND, "nav-jobs"),
            Self::Inbox => ("/ui/inbox", "inbox", direct::INBOX, "nav-inbox"),
            Self::Activity => ("/ui/activity", "activity", past::TITLE, "nav-activity"),
            Self::Usage => ("/ui/usage", "bars", spending::TITLE, "nav-usage"),
            Self::Readiness => ("/ui/doctor", "check", ready::TITLE, "nav-doctor"),
            Self::Settings => ("/ui/settings", "sliders", settings::TITLE, "nav-settings"),
            Self::About => ("/ui/about", "info", words::nav::ABOUT, "nav-about"),
        }
    }
}

fn is_here(place: NavItem) -> Signal<Option<&'static str>> {
    let nav = nav();
    derived(move || (nav.route.with(NavItem::of) == Some(place)).then_some("page"))
}

fn rail_item(place: NavItem) -> impl IntoView {
    let (path, symbol, label, testid) = place.parts();
    view! {
        <li>
            <a class="rail-item" href=browser::href(path) aria-current=is_here(place) data-testid=testid>
                {icon(symbol, 20)} <span class="words">{label}</span>
                {(place == NavItem::Background).then(|| view! { <JobCount /> })}
                {(place == NavItem::Inbox).then(|| view! { <QuestionCount /> })}
            </a>
        </li>
    }
}

/// Navigation on wide screens.
#[component]
pub fn Rail() -> impl IntoView {
    let page = page();
    let host = derived(move || {
        let known = page.live.basics.with(|b| b.as_ref().map(|b| b.hostname.clone()));
        known.unwrap_or_default()
    });
    view! {
        <nav class="rail" aria-label=words::nav::LABEL>
            <a class="brand" href=browser::href("/ui/")>
                {symbol("mark", "brand-mark")} <span class="brand-text">
                    <span class="brand-name">{words::PRODUCT}</span>
                    <span class="brand-host" data-testid="host">
                        <bdi>{host}</bdi>
                    </span>
                </span>
            </a>
            <ul class="rail-list">{rail_item(NavItem::Home)} {rail_item(NavItem::Inbox)} {rail_item(NavItem::Projects)} {rail_item(NavItem::Background)} {rail_item(NavItem::Activity)}</ul>
            <ul class="rail-list rail-low">{rail_item(NavItem::Usage)} {rail_item(NavItem::Readiness)} {rail_item(NavItem::Settings)} {rail_item(NavItem::About)} <SignOut /></ul>
        </nav>
    }
}

/// Leads to the question which devices are signed out.
///
/// Nothing where nobody signs in.
#[component]
fn SignOut() -> impl IntoView {
    let page = page();
    let can = memo(move || page.live.basics.with(|b| b.as_ref().is_some_and(|b| b.can_sign_out)));
    view! {
        {dynamic(move || can.get().then(|| view! {
            <li>
                <a class="rail-item" href=browser::href(paths::LOGOUT) data-testid="rail-sign-out" on:click=move |_| prefs::forget()>
                    {icon("leave", 20)} <span class="words">{words::SIGN_OUT}</span>
                </a>
            </li>
        }))}
    }
}

/// How many jobs are at work or wait.
#[component]
fn JobCount() -> impl IntoView {
    let page = page();
    let count = memo(move || page.store.jobs_of(&[Group::Waiting, Group::Live]).len());
    view! {
        {dynamic(move || (count.get() > 0).then(|| view! {
            <span class="count num" data-testid="nav-jobs-count">{count.get()}</span>
        }))}
    }
}

/// How many requests and background sessions wait for a person.
#[component]
fn QuestionCount() -> impl IntoView {
    let page = page();
    let count = memo(move || {
        page.store.questions.with(Vec::len) + page.store.jobs_of(&[Group::Waiting]).len()
    });
    view! {
        {dynamic(move || (count.get() > 0).then(|| view! {
            <span class="count num tone-warn" data-testid="nav-inbox-count">{count.get()}</span>
        }))}
    }
}

fn bottom_item(place: NavItem) -> impl IntoView {
    let (path, symbol, label, _) = place.parts();
    view! {
        <a href=browser::href(path) aria-current=is_here(place)>
            {icon(symbol, 24)} {label}
            {(place == NavItem::Inbox).then(|| view! { <QuestionCount /> })}
        </a>
    }
}

/// Navigation on phones.
#[component]
pub fn BottomBar() -> impl IntoView {
    let page = page();
    view! {
        <nav class="bottombar" aria-label=words::nav::LABEL>
            {bottom_item(NavItem::Home)} {bottom_item(NavItem::Inbox)}
            <button
                type="button"
                class="main"
                aria-haspopup="dialog"
                data-testid="nav-launch"
                on:click=move |_| page.sheet.set(Some(Sheet::Palette(format!("{} ", launch::LAUNCH))))
            >
                {icon("plus", 24)} {launch::LAUNCH}
            </button>
            {bottom_item(NavItem::Projects)}
            <button
                type="button"
                aria-haspopup="dialog"
                data-testid="nav-more"
                on:click=move |_| page.sheet.set(Some(Sheet::More))
            >
                {icon("more", 24)} {words::nav::MORE}
            </button>
        </nav>
    }
}

/// Where the page is, and how it is connected.
#[component]
pub fn TopBar() -> impl IntoView {
    let page = page();
    let nav = nav();
    // On the views of one session the heading stands in the content; here is the way back.
    let above = memo(move || match nav.route.get() {
        Route::Session(_) | Route::Open(_) | Route::Restore => Some(NavItem::Home),
        Route::Project(_) | Route::Conversation(..) => Some(NavItem::Projects),
        Route::AgentConfig(_) => Some(NavItem::Settings),
        _ => None,
    });
    let project = memo(move || match nav.route.get() {
        Route::Conversation(project, _) => Some(project),
        _ => None,
    });
    let is_demo = move || page.live.basics.with(|b| b.as_ref().is_some_and(|b| b.demo));
    view! {
        <header class="topbar">
            {dynamic(move || {
                if let Some(above) = above.get() {
                    let (path, _, label, _) = above.parts();
                    view! {
                        <nav class="crumbs" aria-label=words::nav::BREADCRUMB>
                            <a href=browser::href(path)>{label}</a>
                            {icon("chevron-right", 14)}
                            {project.get().map(|name| view! {
                                <a class="of only-desk" href=browser::project_href(&name)><bdi>{shown(&name).into_owned()}</bdi></a>
                                <span class="only-desk">{icon("chevron-right", 14)}</span>
                            })}
                            <span class="here" aria-current="page">
                                <bdi>{page.view}</bdi>
                            </span>
                        </nav>
                    }
                        .into_any()
                } else {
                    view! { <h1 tabindex="-1">{page.view}</h1> }.into_any()
                }
            })} <div class="topbar-end">
                {dynamic(move || {
                    is_demo()
                        .then(|| {
                            view! {
                                <span class="demo" title=words::DEMO_HELP data-testid="demo">
                                    {words::DEMO}
                                </span>
                            }
                        })
                })} <ClonePill /> <LinkLight /> <ReadyPill />
                <button
                    type="button"
                    class="btn btn-secondary palette-open"
                    aria-haspopup="dialog"
                    data-testid="palette-open"
                    on:click=move |_| page.sheet.set(Some(Sheet::Palette(String::new())))
                >
                    {icon("search", 16)} <span>{keys::PALETTE}</span> <kbd>"Ctrl"</kbd> <kbd>"K"</kbd>
                </button>
                <ThemeButton />
                <button
                    type="button"
                    class="btn btn-ghost btn-icon only-wide"
                    aria-label=keys::HELP
                    title=keys::HELP
                    data-testid="help"
                    on:click=move |_| page.sheet.set(Some(Sheet::Keys))
                >
                    {icon("help", 20)}
                </button>
            </div>
        </header>
    }
}

/// What stands in the way of launches; nothing when all is well.
#[component]
fn ReadyPill() -> impl IntoView {
    let page = page();
    let worst = memo(move || {
        match (page.ready.count(CheckStatus::Fail), page.ready.count(CheckStatus::Warn)) {
            (0, 0) => None,
            (0, n) => Some((Tone::Warn, "g-triangle", n, ready::checks(n))),
            (n, _) => Some((Tone::Danger, "g-octagon", n, ready::blocking(n))),
        }
    });
    view! {
        {dynamic(move || worst.get().map(|(tone, shape, count, text)| view! {
            <a class=format!("pill {}", tone.class()) href=browser::href("/ui/doctor") data-testid="ready-pill">
                {symbol(shape, "glyph")} <span class="words">{text}</span>
                <span class="only-phone num" aria-hidden="true">{count}</span>
            </a>
        }))}
    }
}

#[component]
fn LinkLight() -> impl IntoView {
    let page = page();
    let face = move || match page.live.link.get() {
        Link::Live => (Tone::Ok, "g-dot", words::link::LIVE, "live"),
        Link::Connecting => (Tone::Info, "g-ring", words::link::CONNECTING, "connecting"),
        // Shorter losses are not worth a word.
        Link::Lost { .. } if !page.live.is_offline.get() => {
            (Tone::Ok, "g-dot", words::link::LIVE, "live")
        }
        Link::Lost { .. } => (Tone::Warn, "g-ring", words::link::RECONNECTING, "lost"),
    };
    let face = memo(face);
    view! {
        {dynamic(move || {
            let (tone, shape, word, state) = face.get();
            view! {
                <span class=format!("link-light {}", tone.class()) data-testid="link" data-link=state>
                    {symbol(shape, "glyph")} <span class="words">{word}</span>
                </span>
            }
        })}
    }
}

#[component]
fn ThemeButton() -> impl IntoView {
    let page = page();
    let label = derived(move || {
        page.prefs.with(|prefs| match prefs.word(THEME) {
            "light" => words::theme::LIGHT,
            "dark" => words::theme::DARK,
            _ => words::theme::SYSTEM,
        })
    });
    let next = move |_| {
        let next = page.prefs.with_untracked(|prefs| match prefs.word(THEME) {
            "light" => "dark",
            "dark" => "",
            _ => "light",
        });
        page.prefs.change(Change::Word(THEME, next));
    };
    view! {
        <button
            type="button"
            class="btn btn-ghost btn-icon"
            aria-label=label
            title=label
            data-testid="theme"
            on:click=next
        >
            {icon("theme", 20)}
        </button>
    }
}
