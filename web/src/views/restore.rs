//! Restoring what a restart of the machine ended: the choice, and the progress.

use crate::act::{TrustGate, restore::PENDING};
use crate::appear::enter;
use crate::browser;
use crate::model::cause::uptime;
use crate::model::restore as rules;
use crate::model::sections::Section;
use crate::model::shown::shown;
use crate::model::status::{Face, Glyph, Tone, face};
use crate::model::time;
use crate::nav::nav;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::{glyph, icon, symbol};
use crate::reactive::{derived, dynamic, effect, live, memo};
use crate::text::{page::link, restore as words, status};
use crate::views::act_button::ActButton;
use crate::views::home::Loading;
use crate::views::row::fact;
use crate::views::times::When;
use leptos::prelude::*;
use std::collections::BTreeSet;
use svc_shared::internal::restore::{RestoreCandidate, RestoreItem, RestoreJob};

/// Most sessions that start at the same time.
const MOST: u64 = 4;

/// The view.
#[component]
pub fn Restore() -> impl IntoView {
    let page = page();
    enter(words::TITLE);
    page.restores.follow(page.store);
    // What was seen running here is shown to its end.
    let watched = RwSignal::new(None::<String>);
    effect(move || {
        if let Some(job) = page.store.restore.get().filter(rules::is_running) {
            watched.set(Some(job.job_id));
        }
    });
    let job = memo(move || {
        let watched = watched.get();
        let is_ours = |job: &RestoreJob| watched.as_ref() == Some(&job.job_id);
        page.store.restore.get().filter(is_ours)
    });
    let is_job = memo(move || job.with(Option::is_some));
    dynamic(move || {
        if is_job.get() {
            return view! { <Progress job=job watched=watched /> }.into_any();
        }
        match page.restores.found.get() {
            None => view! { <Loading /> }.into_any(),
            Some(Err(problem)) => view! {
                <p class="strip tone-danger" role="alert">{words::unread(&problem.words())}</p>
            }
            .into_any(),
            Some(Ok(all)) if all.is_empty() => view! {
                <div class="card empty" data-testid="restore-nothing">
                    <p><b>{words::NOTHING}</b></p>
                    <p>{words::NOTHING_WHY}</p>
                    <a class="btn btn-secondary" href=browser::href("/ui/")>{words::HOME}</a>
                </div>
            }
            .into_any(),
            Some(Ok(all)) => view! { <Choice all=all /> }.into_any(),
        }
    })
}

#[component]
fn Choice(all: Vec<RestoreCandidate>) -> impl IntoView {
    let (page, nav) = (page(), nav());
    let left_out = RwSignal::new(BTreeSet::<String>::new());
    let parallel = RwSignal::new(2_u64);
    let count = all.len();
    let rows = all.iter().map(|one| candidate(one, left_out)).collect_view();
    let possible = rules::chosen(&all, &BTreeSet::new());
    let all = StoredValue::new(all);
    let chosen =
        memo(move || left_out.with(|left_out| all.with_value(|all| rules::chosen(all, left_out))));
    let number = memo(move || chosen.with(Vec::len));
    let every = possible.len();
    let is_all = memo(move || every != 0 && number.get() == every);
    let toggle = move |_| {
        let next = match number.get_untracked() == every {
            true => possible.iter().cloned().collect(),
            false => BTreeSet::new(),
        };
        left_out.set(next);
    };
    let is_pending = derived(move || page.pending.has(PENDING));
    let why = move || match (page.live.is_offline.get(), number.get()) {
        (true, _) => Some(link::OFFLINE),
        (false, 0) => Some(words::SELECT_FIRST),
        (false, _) => None,
    };
    let begin = move |_| match untrack(why) {
        Some(why) => page.say.politely(why),
        None if is_pending.get_untracked() => {}
        None => page.restore(chosen.get_untracked(), parallel.get_untracked()),
    };
    let decline = Callback::new(move |()| {
        // What cannot be restored can still be put away: all of the list when nothing is chosen.
        let mut ids = chosen.get_untracked();
        if ids.is_empty() {
            ids = all.with_value(|all| all.iter().map(|a| a.instance_id.to_string()).collect());
        }
        page.decline_restore(ids);
    });
    let later = move |_| {
        page.restores.put_off();
        nav.to(&browser::href("/ui/"));
    };
    view! {
        <div class="restore-head">
            <div><h1 tabindex="-1">{words::heading(count)}</h1><p class="muted">{words::WHY}</p></div>
            <span class="end">
                <ActButton
                    label=words::DISMISS name=derived(|| words::DISMISS.to_owned()) on_act=decline
                    look=ButtonStyle::Ghost is_pending=is_pending testid="restore-dismiss"
                />
                <button type="button" class=ButtonStyle::Secondary.class() data-testid="restore-later" on:click=later>
                    {words::LATER}
                </button>
                <button
                    type="button"
                    class=ButtonStyle::Primary.class()
                    aria-disabled=live(move || (is_pending.get() || why().is_some()).then_some("true"))
                    aria-busy=live(move || is_pending.get().then_some("true"))
                    data-testid="restore-begin"
                    on:click=begin
                >
                    {icon("resume", 16)} {dynamic(move || words::restore(number.get()))}
                </button>
            </span>
        </div>
        <div class="restore">
            <div class="card list" data-testid="restore-list">
                <label class="restore-top">
                    <input
                        type="checkbox"
                        prop:checked=is_all
                        aria-label=words::ALL
                        data-testid="restore-all"
                        on:change=toggle
                    />
                    <span>{dynamic(move || words::selected(number.get(), count))}</span>
                    <span class="comes-back only-wide">{words::COMES_BACK}</span>
                </label>
                <ul aria-label=words::LIST>{rows}</ul>
            </div>
            <Next parallel=parallel number=number />
        </div>
    }
}

/// How many start at once, and what that leads to.
#[component]
fn Next(parallel: RwSignal<u64>, number: Memo<usize>) -> impl IntoView {
    let page = page();
    let afterwards = move || {
        let running = page.store.section(Section::Live).len() + number.get();
        let max = page.live.basics.with(|basics| basics.as_ref().and_then(|b| b.max_bridges));
        words::of_limit(running, max)
    };
    let options = (1..=MOST)
        .map(|n| view! { <option value=n.to_string() selected=n == parallel.get_untracked()>{n}</option> })
        .collect_view();
    let change = move |event| {
        if let Ok(n) = event_target_value(&event).parse() {
            parallel.set(n);
        }
    };
    view! {
        <aside class="card restore-next">
            <h2>{words::NEXT}</h2>
            <p>{words::NEXT_TEXT}</p>
            <p class="restore-fact">
                <label for="restore-parallel">{words::PARALLEL}</label>
                <span class="select">
                    <select id="restore-parallel" data-testid="restore-parallel" on:change=change>{options}</select>
                    {icon("chevron-down", 16)}
                </span>
            </p>
            <p class="restore-fact"><span>{words::AFTERWARDS}</span> <span class="num">{dynamic(afterwards)}</span></p>
        </aside>
    }
}

fn candidate(one: &RestoreCandidate, left_out: RwSignal<BTreeSet<String>>) -> AnyView {
    let page = page();
    let id = one.instance_id.to_string();
    let record = page.store.instance(&id).map(|signal| signal.get_untracked());
    let blocked = rules::blocked(one);
    let is_possible = blocked.is_none();
    let key = StoredValue::new(id.clone());
    let is_on =
        memo(move || is_possible && left_out.with(|out| key.with_value(|id| !out.contains(id))));
    let toggle = move |_| {
        left_out.update(|out| {
            let id = key.get_value();
            if !out.remove(&id) {
                out.insert(id);
            }
        });
    };
    let name = shown(&one.project).into_owned();
    let label = record.as_ref().filter(|row| row.label != row.project);
    let label = label.map(|row| shown(&row.label).into_owned());
    let worktree = record.as_ref().and_then(|row| row.worktree_name.clone());
    let word = record.as_ref().map(|row| face(row, &[]));
    let lived = record.as_ref().and_then(|row| uptime(row));
    let kind = status::kind("", &one.resume_mode.to_string());
    let project = StoredValue::new(one.project.clone());
    let trust = move |_| page.trust_gate.set(Some(TrustGate::Project(project.get_value())));
    let back = match blocked {
        None => rules::comes_back(&one.restores).into_any(),
        Some((why, is_trust)) => view! {
            <b class="tone-warn word">{words::CANNOT}</b>
            <span class="muted">{why} " "
                {is_trust.then(|| view! {
                    <button type="button" class="linkish" data-testid="restore-trust" on:click=trust>{words::TRUST_IT}</button>
                })}
            </span>
        }
        .into_any(),
    };
    view! {
        <li class=Tone::Warn.class() data-testid="restore-candidate" data-instance=id.clone() data-project=one.project.clone()>
            <label>
                <input
                    type="checkbox"
                    prop:checked=is_on
                    disabled=!is_possible
                    aria-label=name.clone()
                    data-testid="restore-box"
                    on:change=toggle
                />
                {glyph(Glyph::Bars)}
                <span class="restore-what">
                    <span><b><bdi>{name}</bdi></b> {label.map(|label| view! { <bdi>{label}</bdi> })}
                        <span class="badge">{kind}</span>
                        {worktree.map(|worktree| view! { <span class="chip"><bdi>{worktree}</bdi></span> })}
                    </span>
                    <span class="facts">
                        {word.map(|face| view! { <span class=format!("word {}", face.tone.class())>{face.word}</span> })}
                        {one.ended_at.map(|at| view! {
                            <span class="fact">{words::ENDED} <When at=Signal::stored(at) /></span>
                        })}
                        {lived.map(|lived| fact(&words::had_run(&time::span(lived))))}
                    </span>
                </span>
            </label>
            <span class="comes-back" data-testid="comes-back">{back}</span>
        </li>
    }
    .into_any()
}

/// How far a restore is, and what became of each session.
#[component]
fn Progress(job: Memo<Option<RestoreJob>>, watched: RwSignal<Option<String>>) -> impl IntoView {
    let page = page();
    let is_running = memo(move || job.with(|job| job.as_ref().is_some_and(rules::is_running)));
    let title = memo(move || {
        let (done, all) = job.with(|job| job.as_ref().map(rules::progress)).unwrap_or_default();
        if is_running.get() { words::under_way(done, all) } else { words::summary(done, all) }
    });
    let is_pending = derived(move || page.pending.has(PENDING));
    let cancel = Callback::new(move |()| page.cancel_restore());
    let rest = memo(move || {
        page.restores
            .found
            .with(|f| f.as_ref().is_some_and(|f| f.as_ref().is_ok_and(|a| !a.is_empty())))
    });
    let rows = move || {
        let job = job.get();
        job.into_iter().flat_map(|job| job.items).map(|item| step(&item)).collect_view()
    };
    view! {
        <div class="restore-head" data-testid="restore-progress" data-state=live(move || if is_running.get() { "running" } else { "done" })>
            <h1 tabindex="-1" role="status" aria-live="polite" data-testid="restore-summary">{title}</h1>
            <span class="end">
                {dynamic(move || if is_running.get() {
                    view! {
                        <ActButton
                            label=words::CANCEL name=derived(|| words::CANCEL.to_owned()) on_act=cancel
                            look=ButtonStyle::Secondary is_pending=is_pending testid="restore-cancel"
                        />
                    }
                    .into_any()
                } else {
                    view! {
                        {dynamic(move || rest.get().then(|| view! {
                            <button
                                type="button"
                                class=ButtonStyle::Secondary.class()
                                data-testid="restore-rest"
                                on:click=move |_| watched.set(None)
                            >
                                {words::REST}
                            </button>
                        }))}
                        <a class=ButtonStyle::Primary.class() href=browser::href("/ui/") data-testid="restore-home">{words::HOME}</a>
                    }
                    .into_any()
                })}
            </span>
        </div>
        <div class="restore">
            <ul class="card list" aria-label=words::LIST data-testid="restore-steps">{dynamic(rows)}</ul>
        </div>
    }
}

fn step(item: &RestoreItem) -> AnyView {
    let page = page();
    let id = item.instance_id.to_string();
    let record = page.store.instance(&id).map(|signal| signal.get_untracked());
    let name = record.as_ref().map_or_else(
        || item.instance_id.short().to_owned(),
        |row| shown(&row.project).into_owned(),
    );
    let kind = record.as_ref().map(|row| status::kind("", &row.resume_mode.to_string()));
    let Face { glyph: shape, word, tone, .. } = rules::face(item);
    let detail = item.detail.as_deref().map(|text| shown(text).into_owned());
    view! {
        <li class=tone.class() data-testid="restore-step" data-state=item.state.to_string()>
            {symbol(shape.symbol(), "glyph")}
            <span class="restore-what">
                <span><a class="name" href=browser::session_href(&id)><bdi>{name}</bdi></a>
                    {kind.map(|kind| view! { <span class="badge">{kind}</span> })}
                </span>
                {detail.map(|detail| view! { <span class="muted"><bdi>{detail}</bdi></span> })}
            </span>
            <span class="comes-back word">{word}</span>
        </li>
    }
    .into_any()
}
