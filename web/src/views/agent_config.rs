//! The agent's own configuration: a list of parts by scope, and the editor of one.

mod editor;
mod fields;
mod forms;
mod hooks;
mod one;
mod plugins;
mod review;
mod skills;
mod texts;
mod values;

use crate::api;
use crate::appear::enter;
use crate::browser;
use crate::model::agent_config::{Scope, Subject, Surface, address};
use crate::model::projects;
use crate::model::shown::shown;
use crate::nav::nav;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::reactive::{dynamic, effect, live, memo};
use crate::text::agent_config as words;
use editor::{Answer, Editor, Writes};
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::Value;
use svc_shared::internal::agent_config::{ConfigOverview, ServerApprovals};
use svc_shared::paths::{CONFIG_WRITE, segment};

/// Query member that names the scope.
const SCOPE: &str = "scope";
/// Query member that names the project.
const PROJECT: &str = "project";

/// The view.
#[component]
pub fn AgentConfig(
    /// The part that is edited; none: the list of them.
    surface: Option<Surface>,
) -> impl IntoView {
    let page = page();
    enter(words::TITLE);
    let is_on = memo(move || page.live.basics.with(|b| b.as_ref().map(|b| b.can_configure)));
    let content = move || {
        match is_on.get() {
        None => view! { <h1 tabindex="-1" class="sr-only">{words::TITLE}</h1> }.into_any(),
        Some(true) => view! { <Parts surface=surface /> }.into_any(),
        Some(false) => view! {
            <div class="card page-card" data-testid="config-off">
                <h1 tabindex="-1">{words::TITLE}</h1>
                <p>{words::OFF}</p>
                <a class="btn btn-secondary" href=browser::href("/ui/settings")>{words::TO_SETTINGS}</a>
            </div>
        }
        .into_any(),
    }
    };
    dynamic(content)
}

fn symbol_of(surface: Surface) -> &'static str {
    match surface {
        Surface::Instructions => "file",
        Surface::Settings => "sliders",
        Surface::Permissions => "shield",
        Surface::Hooks => "bolt",
        Surface::Servers => "plug",
        Surface::Approvals => "check",
        Surface::Subagents => "user",
        Surface::Skills => "book",
        Surface::Plugins => "puzzle",
        Surface::Marketplaces => "store",
    }
}

#[component]
fn Parts(surface: Option<Surface>) -> impl IntoView {
    let (page, nav) = (page(), nav());
    let may_user =
        memo(move || page.live.basics.with(|b| b.as_ref().is_some_and(|b| b.can_configure_user)));
    let projects = memo(move || page.store.list_projects(&projects::Query::default()));
    // Without one in the address the first project is meant: its files are the usual ones.
    let project = memo(move || match nav.member(PROJECT) {
        named if named.is_empty() => projects.with(|all| all.first().cloned().unwrap_or_default()),
        named => named,
    });
    let shown_part = surface.unwrap_or(Surface::Instructions);
    let subject = memo(move || {
        let scope = match Scope::of(&nav.member(SCOPE)) {
            scope if shown_part.has(scope) => scope,
            _ => Scope::Project,
        };
        Subject {
            surface: shown_part,
            scope,
            project: project.get(),
            name: nav.member(one::NAME),
            file: nav.member(one::FILE),
        }
    });
    let scopes = move || -> Vec<Scope> {
        Scope::ALL.into_iter().filter(|scope| *scope != Scope::User || may_user.get()).collect()
    };
    let choose = move |event| {
        nav.set_query(
            &[(PROJECT, &event_target_value(&event)), (one::NAME, ""), (one::FILE, "")],
            true,
        )
    };
    let options = move || {
        let all = projects.get();
        all.into_iter()
            .map(|name| {
                let own = name.clone();
                let is_chosen = live(move || project.get() == own);
                view! { <option value=name.clone() prop:selected=is_chosen>{shown(&name).into_owned()}</option> }
            })
            .collect_view()
    };
    // Counted anew for each project, and after each write.
    // With the project that they are of: those of another one are not shown.
    let counts = RwSignal::new(None::<(String, ConfigOverview)>);
    let writes = RwSignal::new(0);
    provide_context(Writes(writes));
    effect(move || {
        writes.track();
        let asked = project.get();
        let path = match asked.as_str() {
            "" => format!("{CONFIG_WRITE}/overview"),
            name => format!("{CONFIG_WRITE}/overview?project={}", segment(name)),
        };
        spawn_local(async move {
            let found = api::get::<ConfigOverview>(&path).await;
            // Another project may be shown by now.
            if let Ok(found) = found
                && project.try_get_untracked().as_ref() == Some(&asked)
            {
                let _ = counts.try_set(Some((asked, found)));
            }
        });
    });
    let rows = move || {
        let scopes = scopes();
        Surface::ALL
            .into_iter()
            .map(|own| {
                let cells = scopes.iter().map(|&scope| {
                    let at = move || {
                        address(&Subject { surface: own, scope, project: project.get(), name: String::new(), file: String::new() })
                    };
                    let is_here = move || surface == Some(own) && subject.with(|it| it.scope) == scope;
                    let label = format!("{}, {}", words::label(own), words::scope(scope));
                    let cell = own.has(scope).then(|| view! {
                        <a
                            href=live(move || browser::href(&at())) aria-label=label
                            aria-current=live(move || is_here().then_some("page"))
                        >{dynamic(move || counts.with(|found| {
                                let own_counts = found.as_ref().filter(|(of, _)| project.with(|name| name == of));
                                count_of(own_counts.map(|(_, counts)| counts), own, scope)
                            }))}</a>
                    });
                    view! { <td>{cell}</td> }
                });
                let cells = cells.collect_view();
                let home = move || {
                    address(&Subject { surface: own, scope: subject.with(|it| it.scope), project: project.get(), name: String::new(), file: String::new() })
                };
                view! {
                    <tr class:here=surface == Some(own)>
                        <th scope="row">
                            <a href=live(move || browser::href(&home())) data-testid="config-part" data-part=own.word()>
                                {icon(symbol_of(own), 20)} {words::label(own)}
                            </a>
                        </th>
                        {cells}
                    </tr>
                }
            })
            .collect_view()
    };
    let heads = move || {
        scopes()
            .into_iter()
            .map(|scope| view! { <th scope="col">{words::scope(scope)}</th> })
            .collect_view()
    };
    let is_ready = memo(move || page.store.is_loaded.get());
    view! {
        <div class="agent-config" class:has-part=surface.is_some() data-testid="agent-config">
            <div class="config-side">
                <div class="config-project">
                    <label for="config-project">{words::PROJECT}</label>
                    <span class="select">
                        <select id="config-project" data-testid="config-project" on:change=choose>{dynamic(options)}</select>
                        {icon("chevron-down", 16)}
                    </span>
                </div>
                <table class="card config-parts">
                    <thead><tr><th scope="col">{words::SURFACE}</th>{dynamic(heads)}</tr></thead>
                    <tbody>{dynamic(rows)}</tbody>
                </table>
                <p class="config-note">{words::COUNTS}</p>
            </div>
            <div class="config-main">
                {dynamic(move || is_ready.get().then(|| {
                    let subject = subject.get();
                    let scopes = scopes();
                    part(subject, &scopes)
                }))}
            </div>
        </div>
    }
}

/// How much there is of a part in a scope.
fn count_of(found: Option<&ConfigOverview>, surface: Surface, scope: Scope) -> String {
    let count = found.and_then(|found| found.parts.get(surface.word())?.get(scope.word()).copied());
    match (count, surface) {
        (None, _) => "…".to_owned(),
        (Some(None), _) => words::UNREADABLE.to_owned(),
        (Some(Some(0)), _) => "–".to_owned(),
        (Some(Some(_)), Surface::Instructions) => words::SET.to_owned(),
        (Some(Some(count)), _) => count.to_string(),
    }
}

/// The editor of a part in a scope.
fn part(subject: Subject, scopes: &[Scope]) -> AnyView {
    let nav = nav();
    let (surface, scope) = (subject.surface, subject.scope);
    let file = surface.file(scope, !subject.name.is_empty());
    let file = match (surface, subject.skill_file()) {
        (_, Some(inside)) => format!("{file}/{}/{inside}", subject.name),
        (Surface::Subagents, None) if !subject.name.is_empty() => {
            format!("{file}/{}.md", subject.name)
        }
        (_, None) => file.to_owned(),
    };
    let list = address(&Subject { name: String::new(), file: String::new(), ..subject.clone() });
    let back = list.replacen(&format!("/{}", surface.word()), "", 1);
    let switch = scopes
        .iter()
        .filter(|scope| surface.has(**scope))
        .map(|&own| {
            view! {
                <button
                    type="button" aria-pressed=(own == scope).to_string() data-testid="config-scope" data-scope=own.word()
                    on:click=move |_| {
                        let word = if own == Scope::Project { "" } else { own.word() };
                        nav.set_query(&[(SCOPE, word), (one::NAME, ""), (one::FILE, "")], true);
                    }
                >{words::scope(own)}</button>
            }
        })
        .collect_view();
    let project = subject.project.clone();
    let is_known = scope == Scope::User || page().store.has_project(&project);
    let body = match (is_known, project.is_empty()) {
        (true, _) => body_of(subject),
        (false, true) => view! { <p class="config-none">{words::CHOOSE}</p> }.into_any(),
        (false, false) => {
            view! { <p class="config-none" role="alert" data-testid="config-no-project">{words::NO_PROJECT}</p> }.into_any()
        }
    };
    view! {
        <section class="card config-card" data-testid="config" data-part=surface.word() data-scope=scope.word()>
            <div class="config-head">
                <a class="btn btn-ghost config-all" href=browser::href(&back)>{icon("chevron-left", 16)} {words::ALL}</a>
                <h1 tabindex="-1">{words::label(surface)}</h1>
                <p class="muted">
                    {words::scope(scope)} " " {words::SCOPE_WORD} " · " <code><bdi>{shown(&file).into_owned()}</bdi></code> " · " {words::NEW_SESSIONS}
                </p>
            </div>
            <div class="config-scopes" role="group" aria-label=words::SCOPE>{switch}</div>
            {body}
        </section>
    }
    .into_any()
}

fn body_of(subject: Subject) -> AnyView {
    let about = view! { <p class="config-about">{icon(symbol_of(subject.surface), 20)} {words::about(subject.surface)}</p> };
    match subject.surface {
        Surface::Plugins | Surface::Marketplaces => {
            view! { {about} <div class="config-body">{plugins::plugins(subject)}</div> }.into_any()
        }
        Surface::Subagents if subject.name.is_empty() => {
            view! { {about} <div class="config-body">{texts::subagents(&subject)}</div> }.into_any()
        }
        _ => edited(Editor::of(subject), about.into_any()),
    }
}

/// What is shown in the place of the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    Form,
    Raw,
    Effective,
}

fn edited(editor: Editor, about: AnyView) -> AnyView {
    let surface = editor.surface();
    let shows = RwSignal::new(Shows::Form);
    let is_text = editor.subject.with_value(Subject::is_text);
    let can_raw = matches!(
        surface,
        Surface::Settings | Surface::Permissions | Surface::Hooks | Surface::Servers
    );
    let toggle = move |to: Shows| {
        // What is typed and is no JSON is given up with the field that it stands in.
        editor.local.update(|local| local.retain(|at, _| at != "/"));
        shows.update(|now| *now = if *now == to { Shows::Form } else { to });
    };
    let button = move |to: Shows, label: &'static str, testid: &'static str| {
        view! {
            <button
                type="button" class=ButtonStyle::Ghost.class() data-testid=testid
                aria-pressed=live(move || (shows.get() == to).to_string())
                on:click=move |_| toggle(to)
            >{live(move || if shows.get() == to { words::FORM } else { label })}</button>
        }
        .into_any()
    };
    let keeps = editor.subject.with_value(Subject::kept_as).is_some();
    let of_project = editor.subject.with_value(|subject| subject.scope != Scope::User);
    let actions = view! {
        <div class="config-head-actions">
            {can_raw.then(|| button(Shows::Raw, words::RAW, "config-raw-open"))}
            {(surface == Surface::Settings && of_project).then(|| button(Shows::Effective, words::EFFECTIVE, "config-effective-open"))}
            {keeps.then(|| view! {
                <button type="button" class=ButtonStyle::Ghost.class() data-testid="config-versions-open" on:click=move |_| editor.list_versions()>{words::VERSIONS}</button>
            })}
        </div>
    };
    let brought = RwSignal::new((Vec::new(), Vec::new()));
    if surface == Surface::Approvals {
        decided(editor, brought);
    }
    let is_known = memo(move || editor.known.with(Option::is_some));
    let form = move || {
        editor.shape.track();
        match (surface, shows.get()) {
            (_, Shows::Raw) => values::raw(editor),
            (_, Shows::Effective) => editor.subject.with_value(plugins::effective),
            (Surface::Permissions, _) => forms::permissions(editor),
            (Surface::Hooks, _) => hooks::form(editor),
            (Surface::Settings, _) => values::settings(editor),
            (Surface::Servers, _) => values::servers(editor),
            (Surface::Skills, _) if !is_text => forms::overrides(editor),
            (Surface::Approvals, _) => {
                brought.with(|(brought, locked)| forms::decisions(editor, brought, locked))
            }
            (_, _) => texts::text(editor),
        }
    };
    let body = move || {
        if is_known.get() {
            return dynamic(form);
        }
        match editor.unread.get() {
            None => view! { <p class="muted" role="status">{words::READING}</p> }.into_any(),
            // Without what is there, an empty form could replace it.
            Some(problem) => view! {
                <div class="strip tone-danger" role="alert" data-testid="config-unread">
                    <p>{shown(&problem.words()).into_owned()}</p>
                    <button type="button" class=ButtonStyle::Secondary.class() on:click=move |_| editor.read()>{words::RETRY}</button>
                </div>
            }
            .into_any(),
        }
    };
    let head = match (surface, is_text) {
        (Surface::Subagents, _) => one::head(editor),
        (Surface::Skills, true) => {
            let files = editor.subject.with_value(skills::files);
            view! { {one::head(editor)} {files} }.into_any()
        }
        (Surface::Skills, false) => {
            let list = editor.subject.with_value(skills::list);
            view! { <div class="config-body">{list}</div> }.into_any()
        }
        (_, _) => ().into_any(),
    };
    view! {
        <div class="config-edited" class:reviewing=editor.is_reviewing>
            {review::notice(editor)}
            {actions}
            {about}
            {head}
            <div class="config-body">{dynamic(body)}</div>
            {review::versions(editor)}
            {review::review(editor)}
        </div>
    }
    .into_any()
}

/// Reads which servers a project brings, and which of them a file decides about.
fn decided(editor: Editor, brought: RwSignal<(Vec<String>, Vec<String>)>) {
    let subject = editor.subject.get_value();
    let (servers, approvals) = (subject.read_at("mcp", &[]), subject.read());
    spawn_local(async move {
        let found = api::get::<Answer>(&servers).await.unwrap_or_default();
        let names = found.get("servers").and_then(Value::as_object).into_iter().flatten();
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        let locked = api::get::<ServerApprovals>(&approvals).await.map(|found| found.locked);
        let _ = brought.try_set((names, locked.unwrap_or_default()));
    });
}
