//! The command palette: everything that can be reached or done, found by typing.

use crate::act::Target;
use crate::browser;
use crate::model::launch::Choice;
use crate::model::offers::{Offer, offers};
use crate::model::palette::{Does, Item, Offered};
use crate::model::prefs::{Change, THEME};
use crate::model::projects::Query;
use crate::model::sections::Section;
use crate::model::shown::shown;
use crate::nav::{Nav, nav};
use crate::page::{Page, Sheet, page};
use crate::parts::dialog::Dialog;
use crate::reactive::{dynamic, live, memo};
use crate::text::page::{nav as places, theme};
use crate::text::session::act;
use crate::text::{
    access, agent_config, direct, job::external, keys as words, launch, past, ready, restarting,
};
use crate::views::copy::copy;
use leptos::prelude::*;
use svc_shared::paths::segment;

/// Projects offered while nothing is typed.
const FEW: usize = 8;

/// The palette.
#[component]
pub fn Palette(
    /// What is typed already.
    typed: String,
) -> impl IntoView {
    let (page, nav) = (page(), nav());
    let typed = RwSignal::new(typed);
    let at = RwSignal::new(0_usize);
    let items: Memo<Vec<Item>> = memo(move || offered(page, &typed.get()));
    let close = Callback::new(move |()| page.sheet.set(None));
    let run = move |index: usize| {
        if let Some(item) = items.with_untracked(|items| items.get(index).cloned()) {
            run(page, nav, item);
        }
    };
    let keys = move |event: web_sys::KeyboardEvent| {
        let last = items.with_untracked(Vec::len).saturating_sub(1);
        let now = at.get_untracked();
        match event.key().as_str() {
            "ArrowDown" => at.set(if now >= last { 0 } else { now + 1 }),
            "ArrowUp" => at.set(now.checked_sub(1).unwrap_or(last)),
            "Enter" => run(now),
            _ => return,
        }
        event.prevent_default();
        browser::after_paint(|| {
            if let Some(option) = browser::element("#palette [aria-selected=true]") {
                option.scroll_into_view_with_bool(false);
            }
        });
    };
    let input = move |event| {
        typed.set(event_target_value(&event));
        at.set(0);
    };
    let rows = move || {
        let rows = items.get().into_iter().enumerate().map(|(own, item)| {
            let refused = matches!(item.does, Does::Refuses(_));
            view! {
                <li
                    role="option"
                    id=format!("palette-{own}")
                    aria-selected=live(move || (at.get() == own).to_string())
                    aria-disabled=refused.then_some("true")
                    on:click=move |_| run(own)
                >
                    <bdi>{item.title}</bdi> <span class="muted"><bdi>{item.note}</bdi></span>
                </li>
            }
        });
        rows.collect_view()
    };
    view! {
        <Dialog title=words::PALETTE.to_owned() on_close=close testid="palette">
            <div class="dialog-body palette">
                <input
                    class="input wide"
                    role="combobox"
                    aria-label=words::PALETTE
                    aria-expanded="true"
                    aria-controls="palette"
                    aria-autocomplete="list"
                    aria-activedescendant=live(move || format!("palette-{}", at.get()))
                    autocomplete="off"
                    autofocus=true
                    data-testid="palette-field"
                    prop:value=typed.get_untracked()
                    on:input=input
                    on:keydown=keys
                />
                <ul class="wide" role="listbox" id="palette" aria-label=words::PALETTE>{dynamic(rows)}</ul>
                {dynamic(move || items.with(Vec::is_empty).then(|| view! { <p class="wide muted">{words::NOTHING}</p> }))}
            </div>
        </Dialog>
    }
}

fn offered(page: Page, typed: &str) -> Vec<Item> {
    let mut all = Offered::new(typed);
    let view = |path: &str| (words::VIEW.to_owned(), Does::Go(path.to_owned()));
    for (label, path) in [
        (places::HOME, "/ui/"),
        (places::PROJECTS, "/ui/projects"),
        (direct::INBOX, "/ui/inbox"),
        (places::BACKGROUND, "/ui/jobs"),
        (external::TITLE, "/ui/external"),
        (past::TITLE, "/ui/activity"),
        (crate::text::spending::TITLE, "/ui/usage"),
        (ready::TITLE, "/ui/doctor"),
        (access::TITLE, "/ui/tokens"),
        (crate::text::notifications::TITLE, "/ui/notifications"),
        (crate::text::settings::TITLE, "/ui/settings"),
        (agent_config::TITLE, "/ui/agent-config"),
        (places::ABOUT, "/ui/about"),
    ] {
        all.offer(label, "", || view(path));
    }
    let is_offline = page.live.is_offline.get();
    for section in [Section::Waiting, Section::NeedsLook, Section::Live, Section::Ended] {
        if section == Section::Ended && all.is_blank() {
            continue;
        }
        for id in page.store.section(section) {
            let Some(bridge) = page.store.instance(&id).map(|signal| signal.get_untracked()) else {
                continue;
            };
            let path = format!("/ui/s/{}", segment(&id));
            let name = if bridge.label == bridge.project {
                shown(&bridge.project).into_owned()
            } else {
                shown(&format!("{} {}", bridge.project, bridge.label)).into_owned()
            };
            all.offer("", &name, || (bridge.status.to_string(), Does::Go(path.clone())));
            if all.is_blank() {
                continue;
            }
            let sibling = page.store.live_sibling(&bridge);
            let can = offers(&bridge, sibling.as_deref());
            let refused = |why: String| (why.clone(), Does::Refuses(why));
            match can.stop {
                Offer::Absent => {}
                Offer::Ready => {
                    all.offer(act::STOP, &name, || {
                        (String::new(), Does::Go(format!("{path}?ask=stop")))
                    });
                }
                Offer::Refused(why) => all.offer(act::STOP, &name, || refused(why)),
            }
            match can.resume {
                Offer::Absent => {}
                Offer::Ready if is_offline => {
                    all.offer(act::RESUME, &name, || {
                        refused(crate::text::page::link::OFFLINE.to_owned())
                    });
                }
                Offer::Ready => {
                    let does = Does::Resume(id.clone(), bridge.project.clone());
                    all.offer(act::RESUME, &name, || (String::new(), does));
                }
                Offer::Refused(why) => all.offer(act::RESUME, &name, || refused(why)),
            }
            all.offer(words::COPY_ID, &name, || (String::new(), Does::Copy(id.clone())));
        }
    }
    let can_configure = page.live.basics.with(|b| b.as_ref().is_some_and(|b| b.can_configure));
    let mut projects = page.store.list_projects(&Query::default());
    if all.is_blank() {
        projects.truncate(FEW);
    }
    for name in projects {
        let label = shown(&name).into_owned();
        let path = format!("/ui/projects/{}", segment(&name));
        all.offer(launch::LAUNCH, &label, || (String::new(), Does::Launch(name.clone())));
        all.offer("", &label, || (words::PROJECT.to_owned(), Does::Go(path)));
        if can_configure && !all.is_blank() {
            let path = format!("/ui/agent-config?project={}", segment(&name));
            all.offer(agent_config::LINK, &label, || (String::new(), Does::Go(path)));
        }
    }
    if page.live.basics.with(|b| b.as_ref().is_some_and(|b| b.can_restart)) {
        all.offer(restarting::TITLE, "", || (String::new(), Does::Restart));
    }
    for (label, word) in [(theme::LIGHT, "light"), (theme::DARK, "dark"), (theme::SYSTEM, "")] {
        all.offer(label, "", || (String::new(), Does::Theme(word)));
    }
    all.best()
}

fn run(page: Page, nav: Nav, item: Item) {
    if let Does::Refuses(why) = item.does {
        return page.say.politely(&format!("{}: {why}", item.title));
    }
    page.sheet.set(None);
    match item.does {
        Does::Go(path) => nav.to(&browser::href(&path)),
        Does::Launch(project) => nav.open_launch(&project, &Choice::default()),
        Does::Resume(id, project) => page.resume(Target { id, project }, false),
        Does::Restart => page.sheet.set(Some(Sheet::Restart)),
        Does::Copy(text) => copy(page, text, None),
        Does::Theme(theme) => page.prefs.change(Change::Word(THEME, theme)),
        Does::Refuses(_) => {}
    }
}
