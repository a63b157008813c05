//! The actions of one bridge: buttons of its row and page, and the menu.

use crate::act::{Target, TrustGate};
use crate::browser;
use crate::model::launch::Choice;
use crate::model::offers::{Instead, Offer, Offers, offers};
use crate::model::restart::{self, Stage};
use crate::model::status::is_direct;
use crate::nav::{Nav, nav};
use crate::page::Sheet;
use crate::page::{Page, page};
use crate::parts::button::ButtonStyle;
use crate::parts::confirm::Confirm;
use crate::parts::icon::icon;
use crate::parts::menu::{Does, Entry, Menu};
use crate::reactive::{derived, dynamic, live, memo};
use crate::text::page::{qr as page_qr, session as page_words};
use crate::text::session::{act, named, stop_question};
use crate::text::{bulk, launch as launch_words, restart as restart_words};
use crate::views::act_button::ActButton;
use crate::views::copy::copy;
use leptos::html;
use leptos::prelude::*;
use std::sync::Arc;
use svc_shared::api::instances::Instance;
use svc_shared::api::sessions::WorkingSession;
use svc_shared::text::session_name;
use web_sys::{KeyboardEvent, SubmitEvent};

/// What is being asked in the place of the buttons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Stop,
    Heal,
    Rename,
}

/// Where the actions stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionLayout {
    /// In a list.
    Row,
    /// In the list of what ended badly.
    NeedsLook,
    /// In a list of ended bridges, one line high.
    Dense,
    /// In the head of the session page.
    Head,
}

/// The actions of one bridge.
#[component]
pub fn Actions(
    /// Its record.
    #[prop(into)]
    bridge: Signal<Arc<Instance>>,
    /// The sessions inside.
    #[prop(into)]
    inside: Signal<Arc<Vec<WorkingSession>>>,
    /// Where they stand.
    layout: ActionLayout,
) -> impl IntoView {
    let page = page();
    // The address may ask, as the palette makes it do.
    let asks_stop = layout == ActionLayout::Head
        && untrack(|| nav().member("ask")) == "stop"
        && offers(&bridge.get_untracked(), None).stop == Offer::Ready;
    let ask = RwSignal::new(asks_stop.then_some(Ask::Stop));
    let target = memo(move || Target::of(&bridge.get()));
    let offered = memo(move || {
        let bridge = bridge.get();
        let sibling = page.store.live_sibling(&bridge);
        offers(&bridge, sibling.as_deref())
    });
    let close = Callback::new(move |()| {
        // With its row gone there is nothing to go back to.
        let Some(Target { id, .. }) = target.try_get_untracked() else { return };
        ask.set(None);
        browser::after_paint(move || {
            browser::focus(&format!("[data-instance=\"{id}\"] [data-testid=act-more]"));
        });
    });
    view! {
        {dynamic(move || match ask.get() {
            Some(Ask::Stop) => {
                let run = Callback::new(move |()| {
                    ask.set(None);
                    page.stop(target.get_untracked());
                });
                let rest = stop_question(inside.with_untracked(|inside| inside.len()));
                view! { <Confirm verb=act::STOP object=target.get_untracked().project rest=rest on_yes=run on_no=close /> }
                    .into_any()
            }
            Some(Ask::Heal) => {
                let run = Callback::new(move |()| {
                    ask.set(None);
                    page.heal(target.get_untracked());
                });
                view! { <Confirm verb=act::HEAL object=target.get_untracked().project rest=act::HEAL_QUESTION on_yes=run on_no=close /> }
                    .into_any()
            }
            Some(Ask::Rename) => view! { <Rename bridge=bridge on_done=close /> }.into_any(),
            None => view! { <Buttons bridge=bridge target=target offered=offered layout=layout ask=ask /> }.into_any(),
        })}
    }
}

#[component]
fn Buttons(
    bridge: Signal<Arc<Instance>>,
    target: Memo<Target>,
    offered: Memo<Offers>,
    layout: ActionLayout,
    ask: RwSignal<Option<Ask>>,
) -> impl IntoView {
    let page = page();
    let nav = nav();
    let project = move || target.with(|target| target.project.clone());
    let id = move || target.with_untracked(|target| target.id.clone());
    let is_pending = derived(move || page.pending.has(&target.get().id));
    let name_of = move |verb: &'static str| derived(move || named(verb, &project()));
    let can = move |pick: fn(&Offers) -> &Offer| {
        memo(move || offered.with(|offers| *pick(offers) != Offer::Absent))
    };
    let why = move |pick: fn(&Offers) -> &Offer| {
        derived(move || match offered.with(|offers| pick(offers).clone()) {
            Offer::Refused(why) => Some(why),
            Offer::Absent | Offer::Ready => None,
        })
    };
    let (can_stop, can_resume) = (can(|o| &o.stop), can(|o| &o.resume));
    let can_heal = can(|o| &o.heal);
    let on_heal = Callback::new(move |()| ask.set(Some(Ask::Heal)));
    let has_log = memo(move || {
        matches!(layout, ActionLayout::Row | ActionLayout::Dense) && offered.with(|o| o.log)
    });
    let can_dismiss = memo(move || layout == ActionLayout::NeedsLook && can_dismiss(&bridge.get()));
    let can_open = memo(move || offered.with(|o| o.open));
    let can_view = memo(move || {
        let bridge = bridge.get();
        layout == ActionLayout::Row && bridge.is_live() && is_direct(&bridge)
    });
    // On its own page it stands beside the reason, below.
    let instead = memo(move || match layout {
        ActionLayout::Head => Instead::Nothing,
        ActionLayout::Row | ActionLayout::NeedsLook | ActionLayout::Dense => {
            offered.with(|o| o.instead.clone())
        }
    });
    let on_stop = Callback::new(move |()| ask.set(Some(Ask::Stop)));
    let on_resume = Callback::new(move |()| page.resume(target.get_untracked(), false));
    let quiet =
        if layout == ActionLayout::Head { ButtonStyle::Secondary } else { ButtonStyle::Ghost };
    let main = match layout {
        ActionLayout::Head => ButtonStyle::Primary,
        ActionLayout::Row | ActionLayout::NeedsLook => ButtonStyle::Soft,
        ActionLayout::Dense => ButtonStyle::Ghost,
    };
    let entries = Callback::new(move |()| {
        menu(page, nav, layout, &bridge.get_untracked(), &offered.get_untracked(), ask)
    });
    view! {
        {dynamic(move || has_log.get().then(|| view! {
            <a
                class="btn btn-ghost only-desk"
                href=browser::session_href(&id())
                aria-label=live(move || named(act::LOG, &project()))
                data-testid="act-log"
            >
                {act::LOG}
            </a>
        }))}
        {dynamic(move || can_dismiss.get().then(|| view! {
            <button
                type="button"
                class="btn btn-ghost only-desk"
                aria-label=live(move || named(act::DISMISS, &project()))
                data-testid="act-dismiss"
                on:click=move |_| page.dismiss(&bridge.get_untracked())
            >
                {act::DISMISS}
            </button>
        }))}
        {(layout == ActionLayout::NeedsLook).then(|| view! {
            <a
                class="btn btn-ghost only-desk"
                href=format!("{}?tab=details", browser::session_href(&id()))
                aria-label=live(move || named(act::DETAILS, &project()))
                data-testid="act-details"
            >
                {act::DETAILS}
            </a>
        })}
        {dynamic(move || can_stop.get().then(|| view! {
            <ActButton
                label=act::STOP name=name_of(act::STOP) on_act=on_stop look=quiet symbol=(layout == ActionLayout::Head).then_some("stop")
                reason=why(|o| &o.stop) is_pending=is_pending testid="act-stop"
            />
        }))}
        {dynamic(move || can_heal.get().then(|| view! {
            <ActButton
                label=act::HEAL name=name_of(act::HEAL) on_act=on_heal look=quiet symbol=Some("resume")
                reason=why(|o| &o.heal) is_pending=is_pending testid="act-heal" class="only-desk"
            />
        }))}
        {dynamic(move || view_instead(instead.get(), target))}
        {dynamic(move || (layout == ActionLayout::Head && can_open.get()).then(|| view! {
            <button
                type="button"
                class="btn btn-secondary only-wide"
                aria-label=live(move || page_qr::title(&project()))
                aria-disabled=live(move || page.live.is_offline.get().then_some("true"))
                data-testid="act-qr"
                on:click=move |_| {
                    if page.live.is_offline.get_untracked() {
                        page.say.politely(crate::text::page::link::OFFLINE);
                    } else {
                        page.sheet.set(Some(Sheet::Qr(target.get_untracked())));
                    }
                }
            >
                {icon("qr", 16)} {page_qr::LABEL}
            </button>
        }))}
        {dynamic(move || can_resume.get().then(|| view! {
            <ActButton
                label=act::RESUME name=name_of(act::RESUME) on_act=on_resume look=main symbol=Some("resume")
                reason=why(|o| &o.resume) is_pending=is_pending testid="act-resume"
            />
        }))}
        {dynamic(move || can_open.get().then(|| view! {
            <a
                class=main.class()
                aria-disabled=live(move || page.live.is_offline.get().then_some("true"))
                on:click=move |event: web_sys::MouseEvent| {
                    if page.live.is_offline.get_untracked() {
                        event.prevent_default();
                        page.say.politely(crate::text::page::link::OFFLINE);
                    } else {
                        super::welcome::opened(page);
                    }
                }
                href=browser::open_href(&id())
                target="_blank"
                rel="noopener"
                aria-label=live(move || named(act::OPEN, &project()))
                data-testid="act-open"
            >
                {icon("open", 16)} {act::OPEN}
            </a>
        }))}
        {dynamic(move || can_view.get().then(|| view! {
            <a
                class=main.class()
                href=browser::session_href(&id())
                aria-label=live(move || named(act::VIEW_HERE, &project()))
                data-testid="act-view"
            >
                {icon("eye", 16)} {act::VIEW_HERE}
            </a>
        }))}
        <Menu of=derived(project) entries=entries />
    }
}

/// A bad end that is over; what is held is not.
fn can_dismiss(bridge: &Instance) -> bool {
    !bridge.is_live() && bridge.quarantined.is_none() && !bridge.is_orphan
}

/// What helps where Resume would not work.
pub fn view_instead(instead: Instead, target: Memo<Target>) -> AnyView {
    let (page, nav) = (page(), nav());
    match instead {
        Instead::Nothing => ().into_any(),
        Instead::ViewLive(id) => view! {
            <a class="btn btn-ghost only-desk" href=browser::session_href(&id)>{act::VIEW_LIVE}</a>
        }
        .into_any(),
        Instead::TrustAndResume => {
            let ask = Callback::new(move |()| {
                page.trust_gate.set(Some(TrustGate::Resume(target.get_untracked())));
            });
            view! {
                <ActButton
                    label=act::TRUST_RESUME
                    name=derived(move || named(act::TRUST_RESUME, &target.get().project))
                    on_act=ask
                    testid="act-trust-resume"
                />
            }
            .into_any()
        }
        Instead::LaunchNew => {
            let open =
                move |_| nav.open_launch(&target.get_untracked().project, &Choice::default());
            view! {
                <button type="button" class="btn btn-secondary" data-testid="act-launch-new" on:click=open>
                    {act::LAUNCH_NEW}
                </button>
            }
            .into_any()
        }
    }
}

fn menu(
    page: Page,
    nav: Nav,
    layout: ActionLayout,
    bridge: &Instance,
    offers: &Offers,
    ask: RwSignal<Option<Ask>>,
) -> Vec<Entry> {
    let entry = |label, does, testid, class| Entry { label, does, testid, class };
    let offline = page.live.is_offline.get_untracked();
    let write = |does: Does| {
        if offline { Does::Refuses(crate::text::page::link::OFFLINE.to_owned()) } else { does }
    };
    let copies = |text: String| Does::Run(Callback::new(move |()| copy(page, text.clone(), None)));
    let asks = |what| Does::Run(Callback::new(move |()| ask.set(Some(what))));
    let id = bridge.instance_id.to_string();
    let project = bridge.project.clone();
    let mut entries = Vec::new();
    if offers.open {
        let target = Target::of(bridge);
        let qr =
            Does::Run(Callback::new(move |()| page.sheet.set(Some(Sheet::Qr(target.clone())))));
        let class = if layout == ActionLayout::Head { "only-phone" } else { "" };
        entries.push(entry(page_qr::LABEL, write(qr), "menu-qr", class));
    }
    if layout != ActionLayout::Head {
        let href = browser::session_href(&id);
        if offers.log {
            let class = if layout == ActionLayout::NeedsLook { "" } else { "only-small" };
            entries.push(entry(act::LOG, Does::Go(href.clone()), "menu-log", class));
        }
        let class = if layout == ActionLayout::NeedsLook { "only-small" } else { "" };
        let href = format!("{href}?tab=details");
        entries.push(entry(act::DETAILS, Does::Go(href), "menu-details", class));
        if layout == ActionLayout::NeedsLook && can_dismiss(bridge) {
            let record = bridge.clone();
            let dismiss = Does::Run(Callback::new(move |()| page.dismiss(&record)));
            entries.push(entry(act::DISMISS, dismiss, "menu-dismiss", "only-small"));
        }
        let key = id.clone();
        let select = Does::Run(Callback::new(move |()| page.select(&key)));
        entries.push(entry(bulk::SELECT, select, "menu-select", "only-touch"));
        entries.push(entry(act::RENAME, write(asks(Ask::Rename)), "menu-rename", ""));
    }
    entries.push(entry(act::COPY_ID, copies(id), "menu-copy-id", ""));
    if let Some(session) = &bridge.session_ref {
        entries.push(entry(act::COPY_REF, copies(session.to_string()), "menu-copy-ref", ""));
    }
    entries.push(entry(act::COPY_COMMAND, copies(command(bridge)), "menu-copy-command", ""));
    if offers.heal == Offer::Ready {
        entries.push(entry(act::HEAL, write(asks(Ask::Heal)), "menu-heal", "only-small"));
    }
    if !bridge.is_live() {
        let launch = Does::Run(Callback::new(move |()| {
            nav.open_launch(&project, &Choice::default());
        }));
        entries.push(entry(act::LAUNCH_NEW, launch, "menu-launch", ""));
    }
    let target = Target::of(bridge);
    match restart::stage(bridge) {
        Some(Stage::Waiting) => {
            let stop = Does::Run(Callback::new(move |()| page.stop_trying(target.clone())));
            entries.push(entry(restart_words::STOP_TRYING, write(stop), "menu-stop-trying", ""));
        }
        Some(Stage::GaveUp) => {
            let start = Does::Run(Callback::new(move |()| page.release(target.clone(), true)));
            entries.push(entry(restart_words::RELEASE_START, write(start), "menu-release", ""));
        }
        None => {}
    }
    let policy = format!("{}?tab=details", browser::session_href(bridge.instance_id.as_str()));
    entries.push(entry(restart_words::POLICY, Does::Go(policy), "menu-restart-policy", ""));
    match &offers.forget {
        Offer::Absent => {}
        Offer::Ready => {
            let target = Target::of(bridge);
            let forget = Does::Run(Callback::new(move |()| {
                page.forget(target.clone());
                if layout == ActionLayout::Head {
                    nav.to(&browser::href("/ui/"));
                }
            }));
            entries.push(entry(act::FORGET, write(forget), "menu-forget", ""));
        }
        Offer::Refused(why) => {
            entries.push(entry(act::FORGET, Does::Refuses(why.clone()), "menu-forget", ""));
        }
    }
    entries
}

/// The command that does on this machine what the row's main action does here.
fn command(bridge: &Instance) -> String {
    let verb = if bridge.is_live() { "logs -f" } else { "resume" };
    format!("svc {verb} {}", bridge.instance_id.short())
}

/// The field with the session name.
#[component]
pub fn Rename(
    /// The record.
    bridge: Signal<Arc<Instance>>,
    /// Saved or given up.
    on_done: Callback<()>,
) -> impl IntoView {
    let page = page();
    let field = NodeRef::<html::Input>::new();
    let now = bridge.get_untracked();
    let refusal = RwSignal::new(None::<String>);
    browser::after_paint(move || {
        if let Some(field) = field.try_get_untracked().flatten() {
            field.select();
        }
    });
    let save = move |event: SubmitEvent| {
        event.prevent_default();
        let typed = field.get_untracked().map(|field| field.value()).unwrap_or_default();
        match session_name(&typed) {
            Ok(name) => {
                on_done.run(());
                page.rename(Target::of(&bridge.get_untracked()), name.unwrap_or_default());
            }
            Err(why) => refusal.set(Some(launch_words::name_refused(&why.to_string()))),
        }
    };
    let escape = move |event: KeyboardEvent| {
        if event.key() == "Escape" {
            event.stop_propagation();
            on_done.run(());
        }
    };
    view! {
        <form class="rename" on:submit=save on:keydown=escape>
            {dynamic(move || refusal.get().map(|why| view! { <span class="reason help-error" role="alert">{why}</span> }))}
            <input
                node_ref=field
                class="input"
                aria-label=page_words::NEW_NAME
                aria-invalid=live(move || refusal.get().map(|_| "true"))
                autocomplete="off"
                prop:value=now.label.clone()
                data-testid="rename-field"
            />
            <button type="submit" class=ButtonStyle::Soft.class() data-testid="rename-save">{page_words::SAVE}</button>
            <button type="button" class=ButtonStyle::Ghost.class() on:click=move |_| on_done.run(())>
                {launch_words::CANCEL}
            </button>
        </form>
    }
}
