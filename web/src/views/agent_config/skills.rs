//! Skills: their list, and the files of one.

use super::fields::new_name;
use super::one::{FILE, NAME};
use crate::api;
use crate::model::agent_config::{MAIN_FILE, Scope, Subject};
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::nav::nav;
use crate::reactive::{dynamic, live};
use crate::text::agent_config::{READING, skills as words};
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::internal::agent_config::{SkillItem, Skills};

type Found = RwSignal<Option<Result<Skills, Problem>>>;

fn read(subject: &Subject) -> Found {
    let found = RwSignal::new(None);
    let path = subject.read_at("skills", &[]);
    spawn_local(async move {
        let answer = api::get::<Skills>(&path).await;
        let _ = found.try_set(Some(answer));
    });
    found
}

/// The skills of a scope; nothing in the one that has none.
pub fn list(subject: &Subject) -> AnyView {
    if subject.scope == Scope::Local {
        return ().into_any();
    }
    let found = read(subject);
    let nav = nav();
    let is_taken = Callback::new(move |name: String| {
        found.with_untracked(|found| match found {
            Some(Ok(found)) => found.skills.iter().any(|skill| skill.name == name),
            _ => false,
        })
    });
    let add = Callback::new(move |name: String| nav.set_query(&[(NAME, &name)], false));
    view! {
        <section class="config-group" aria-label=words::FILES>
            <div class="config-group-head"><h3>{words::FILES}</h3></div>
            {dynamic(move || match found.get() {
                None => view! { <p class="muted" role="status">{READING}</p> }.into_any(),
                Some(Err(problem)) => view! {
                    <p class="strip tone-danger" role="alert">{shown(&problem.words()).into_owned()}</p>
                }.into_any(),
                Some(Ok(list)) => {
                    let is_empty = list.skills.is_empty();
                    view! {
                        {is_empty.then(|| view! { <p class="config-none">{words::NO_FILES}</p> })}
                        <ul class="config-choices">{list.skills.into_iter().map(one).collect_view()}</ul>
                        {new_name(words::NEW_SKILL, words::check_name, is_taken, add)}
                    }.into_any()
                }
            })}
        </section>
    }
    .into_any()
}

fn one(skill: SkillItem) -> AnyView {
    let nav = nav();
    let name = StoredValue::new(skill.name.clone());
    let label = shown(&skill.name).into_owned();
    let title = match skill.editable {
        true => view! {
            <button
                type="button" class="linkish" data-testid="skill" data-name=skill.name.clone()
                on:click=move |_| name.with_value(|name| nav.set_query(&[(NAME, name)], false))
            ><b><bdi>{label}</bdi></b></button>
        }
        .into_any(),
        false => view! { <b><bdi>{label}</bdi></b> }.into_any(),
    };
    let remarks: Vec<String> = [
        skill.description,
        skill.frontmatter_error,
        skill.files_error,
        (!skill.has_skill_md && skill.editable).then(|| words::NO_MAIN.to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    let facts = match skill.disable_model_invocation {
        Some(true) => format!("{} · {}", words::files(skill.files.len()), words::BY_HAND),
        Some(false) | None => words::files(skill.files.len()),
    };
    view! {
        <li class="config-choice">
            <span>
                {title}
                {remarks.into_iter().map(|said| view! { <span class="muted config-clip">{shown(&said).into_owned()}</span> }).collect_view()}
            </span>
            <span class="muted">{facts}</span>
        </li>
    }
    .into_any()
}

/// The files of a skill, with the one that is edited.
pub fn files(subject: &Subject) -> AnyView {
    let found = read(subject);
    let nav = nav();
    let (name, here) = (subject.name.clone(), subject.skill_file().unwrap_or(MAIN_FILE).to_owned());
    let (name, here) = (StoredValue::new(name), StoredValue::new(here));
    let there = move || -> Vec<String> {
        let mut files = found.with(|found| match found {
            Some(Ok(found)) => name
                .with_value(|name| found.skills.iter().find(|skill| skill.name == *name))
                .map(|skill| skill.files.clone())
                .unwrap_or_default(),
            _ => Vec::new(),
        });
        let here = here.get_value();
        for wanted in [MAIN_FILE.to_owned(), here] {
            if !files.contains(&wanted) {
                files.push(wanted);
            }
        }
        files.sort();
        files
    };
    let open = move |file: &str| {
        nav.set_query(&[(FILE, if file == MAIN_FILE { "" } else { file })], true);
    };
    let rows = move || {
        let rows = there().into_iter().map(|file| {
            let (own, path) = (file.clone(), StoredValue::new(file.clone()));
            view! {
                <li>
                    <button
                        type="button" class="filter mono" data-testid="skill-file" data-file=own.clone()
                        aria-pressed=live(move || here.with_value(|here| *here == own).to_string())
                        on:click=move |_| path.with_value(|file| open(file))
                    ><bdi>{shown(&file).into_owned()}</bdi></button>
                </li>
            }
        });
        rows.collect_view()
    };
    let is_taken = Callback::new(move |file: String| untrack(there).contains(&file));
    let add = Callback::new(move |file: String| open(&file));
    view! {
        <div class="config-files">
            <ul aria-label=words::FILE_LIST>{dynamic(rows)}</ul>
            {new_name(words::NEW_FILE, words::check_file, is_taken, add)}
        </div>
    }
    .into_any()
}
