//! The fields of the launch dialog.

use super::LaunchForm;
use crate::model::launch::{self as rules, Block, Form, Kind};
use crate::parts::icon::icon;
use crate::reactive::{derived, dynamic, live, memo};
use crate::text::{launch as words, status as status_words};
use leptos::prelude::*;
use svc_shared::api::jobs::PROMPT_BYTES;
use svc_shared::status::{OnLimit, RestartPolicy, SpawnMode};

/// Every field, those of the chosen kind only.
#[component]
pub fn Fields(launch: LaunchForm) -> impl IntoView {
    let kind = memo(move || launch.form.with(|form| form.kind));
    let is_job = memo(move || kind.get() == Kind::Background);
    let has_name = memo(move || launch.form.with(rules::has_name));
    view! {
        <How launch=launch />
        {dynamic(move || is_job.get().then(|| view! { <FirstPrompt launch=launch /> }))}
        {dynamic(move || (!is_job.get()).then(|| view! { <super::Already launch=launch /> }))}
        <Permission launch=launch />
        {dynamic(move || {
            let kind = kind.get();
            kind.is_bridge().then(|| view! { <RunsIn launch=launch kind=kind /> <Collision launch=launch /> })
        })}
        {dynamic(move || has_name.get().then(|| view! { <SessionName launch=launch kind=kind.get() /> }))}
        {dynamic(move || (kind.get().is_bridge() || kind.get().takes_text())
            .then(|| view! { <More launch=launch /> }))}
        {dynamic(move || is_job.get().then(|| view! { <Model launch=launch /> }))}
    }
}

#[component]
fn How(launch: LaunchForm) -> impl IntoView {
    let cards = Kind::ALL.map(|kind| {
        let is_on = memo(move || launch.form.with(|form| form.kind == kind));
        let off = memo(move || launch.with(|ground, _| ground.kind_off(kind)));
        let choose = move |_| {
            launch.form.update(|form| form.choose(kind));
            launch.problem.set(None);
        };
        let refuse = move |event: web_sys::MouseEvent| {
            if let Some(why) = off.get_untracked() {
                event.prevent_default();
                launch.page.say.politely(&why);
            }
        };
        let is_off = move || off.with(Option::is_some);
        view! {
            <label class="radio-card" class:on=is_on class:off=is_off>
                <input
                    type="radio"
                    name="launch-kind"
                    autofocus=is_on.get_untracked()
                    prop:checked=is_on
                    aria-disabled=live(move || is_off().then_some("true"))
                    data-testid=format!("launch-kind-{}", kind.word())
                    on:click=refuse
                    on:change=choose
                />
                <span>
                    <b>{kind.label()}</b>
                    <span>{dynamic(move || off.get().unwrap_or_else(|| kind.effect().to_owned()))}</span>
                </span>
            </label>
        }
    });
    view! {
        <span class="label" id="launch-how">{words::HOW}</span>
        <div class="radios" role="radiogroup" aria-labelledby="launch-how">
            {cards}
        </div>
    }
}

#[component]
fn FirstPrompt(launch: LaunchForm) -> impl IntoView {
    let size = memo(move || launch.form.with(|form| form.prompt.len()));
    let is_bad = memo(move || size.get() > PROMPT_BYTES);
    let help = derived(move || words::prompt_size(size.get()));
    let registers = memo(move || launch.form.with(|form| form.registers));
    view! {
        {text_field(launch, Field {
            id: "launch-prompt",
            label: words::PROMPT,
            rows: "4",
            placeholder: String::new(),
            text: |form| &mut form.prompt,
            help,
            is_bad,
        })}
        <span class="label">{words::REMOTE}</span>
        <div>
            <button
                type="button"
                role="switch"
                class="switch"
                aria-checked=live(move || registers.get().to_string())
                aria-describedby="launch-register-help"
                data-testid="launch-register"
                on:click=move |_| launch.form.update(|form| form.registers = !form.registers)
            >
                {words::REGISTER}
            </button>
            <p class="help" id="launch-register-help">{words::REGISTER_HELP}</p>
        </div>
    }
}

#[component]
fn Model(launch: LaunchForm) -> impl IntoView {
    let is_bad =
        memo(move || launch.with(|ground, form| ground.blocks(form).contains(&Block::Model)));
    let help = derived(move || {
        if is_bad.get() { words::MODEL_REFUSED } else { words::MODEL_HELP }.to_owned()
    });
    text_field(
        launch,
        Field {
            id: "launch-model",
            label: words::MODEL,
            rows: "1",
            placeholder: words::MODEL_DEFAULT.to_owned(),
            text: |form| &mut form.model,
            help,
            is_bad,
        },
    )
}

#[component]
fn Permission(launch: LaunchForm) -> impl IntoView {
    let modes = untrack(|| launch.with(|ground, _| ground.permission_modes()));
    let options = modes.iter().map(|(m, label)| (m.as_str(), label.long.clone(), false)).collect();
    let effects = modes
        .iter()
        .map(|(_, label)| view! { <dt>{label.short.clone()}</dt> <dd>{label.effect.clone()}</dd> })
        .collect_view();
    let effect = derived(move || {
        let mode = launch.form.with(|form| form.permission_mode.clone());
        let found = modes.iter().find(|(m, _)| m.as_str() == mode);
        let effect = found.map(|(_, label)| label.effect.clone()).unwrap_or_default();
        let inherits = launch.preflight.with(|p| {
            let fact = &p.as_ref()?.as_ref().ok()?.facts.as_ref()?.inherit;
            (mode == "inherit").then(|| words::inherits(&fact.mode, fact.source.as_deref()))
        });
        match inherits {
            Some(now) => format!("{effect} {now}"),
            None => effect,
        }
    });
    let more = view! {
        <details class="effects"><summary>{words::ALL_MODES}</summary><dl>{effects}</dl></details>
    };
    let choose = |form: &mut Form, mode| {
        form.permission_mode = mode;
        form.typed.clear();
    };
    let chosen = |form: &Form| form.permission_mode.clone();
    select_field(
        launch,
        "launch-permission",
        words::MAY_DO,
        options,
        chosen,
        choose,
        effect,
        more.into_any(),
    )
}

#[component]
fn RunsIn(launch: LaunchForm, kind: Kind) -> impl IntoView {
    let is_git = launch.project.with_value(|project| project.is_git_repo);
    let options = kind
        .places()
        .iter()
        .map(|mode| {
            let off = *mode == SpawnMode::Worktree && !is_git;
            let word = mode.as_str();
            let usual = status_words::spawn_mode(kind.word(), word);
            let label = if off { words::WORKTREE_OFF } else { usual };
            (word, label.to_owned(), off)
        })
        .collect();
    let effect = derived(move || {
        launch
            .form
            .with(|form| status_words::spawn_mode_effect(kind.word(), &form.spawn_mode).to_owned())
    });
    let choose = |form: &mut Form, mode| form.spawn_mode = mode;
    let chosen = |form: &Form| form.spawn_mode.clone();
    select_field(
        launch,
        "launch-spawn",
        words::RUNS_IN,
        options,
        chosen,
        choose,
        effect,
        ().into_any(),
    )
}

/// Others work on the files that the session would work on.
#[component]
fn Collision(launch: LaunchForm) -> impl IntoView {
    let others = memo(move || launch.with(|ground, form| ground.collision(form)));
    let is_git = launch.project.with_value(|project| project.is_git_repo);
    let separate = move |_| {
        let word = SpawnMode::Worktree.as_str();
        launch.form.update(|form| form.spawn_mode = word.to_owned());
    };
    view! {
        {dynamic(move || others.get().map(|text| view! {
            <p class="wide strip tone-warn" data-testid="launch-collision">
                <span>{text}</span>
                {is_git.then(|| view! {
                    <button type="button" class="linkish strip-end" data-testid="launch-use-worktree" on:click=separate>
                        {words::USE_WORKTREE}
                    </button>
                })}
            </p>
        }))}
    }
}

/// What few need to choose.
#[component]
fn More(launch: LaunchForm) -> impl IntoView {
    let is_open = RwSignal::new(
        launch.form.with_untracked(|form| !form.restart.is_empty() || !form.on_limit.is_empty()),
    );
    let kind = memo(move || launch.form.with(|form| form.kind));
    view! {
        <button
            type="button"
            class="linkish in-field"
            aria-expanded=live(move || is_open.get().to_string())
            data-testid="launch-more"
            on:click=move |_| is_open.update(|open| *open = !*open)
        >
            {icon("chevron-right", 14)} {words::MORE}
        </button>
        {dynamic(move || (is_open.get() && kind.get().is_bridge())
            .then(|| view! { <RestartChoice launch=launch /> }))}
        {dynamic(move || (is_open.get() && kind.get().takes_text())
            .then(|| on_limit_choice(launch)))}
    }
}

#[component]
fn RestartChoice(launch: LaunchForm) -> impl IntoView {
    let configured = derived(move || {
        launch.preflight.with(|p| {
            let facts = p.as_ref()?.as_ref().ok()?.facts.as_ref()?;
            facts.restart.as_ref().map(ToString::to_string)
        })
    });
    let mut options =
        vec![("", words::restart_inherit(configured.get_untracked().as_deref()), false)];
    options.extend(RestartPolicy::ALL.iter().map(|policy| {
        let word = policy.as_str();
        (word, words::restart(word).to_owned(), false)
    }));
    let effect = derived(move || {
        let chosen = launch.form.with(|form| form.restart.clone());
        let word = if chosen.is_empty() { configured.get().unwrap_or_default() } else { chosen };
        words::restart_effect(&word).to_owned()
    });
    select_field(
        launch,
        "launch-restart",
        words::RESTART,
        options,
        |form| form.restart.clone(),
        |form, policy| form.restart = policy,
        effect,
        ().into_any(),
    )
}

/// What the session does after a plan limit.
fn on_limit_choice(launch: LaunchForm) -> impl IntoView {
    let mut options = vec![("", words::ON_LIMIT_INHERIT.to_owned(), false)];
    options.extend(OnLimit::ALL.iter().map(|choice| {
        let word = choice.as_str();
        (word, words::on_limit(word).to_owned(), false)
    }));
    select_field(
        launch,
        "launch-on-limit",
        words::ON_LIMIT,
        options,
        |form| form.on_limit.clone(),
        |form, choice| form.on_limit = choice,
        derived(move || launch.form.with(|form| words::on_limit_effect(&form.on_limit).to_owned())),
        ().into_any(),
    )
}

#[component]
fn SessionName(launch: LaunchForm, kind: Kind) -> impl IntoView {
    let refusal = memo(move || {
        let name = launch.form.with(|form| form.name.clone());
        svc_shared::text::session_name(&name).err().map(|why| words::name_refused(&why.to_string()))
    });
    let rule = match kind {
        Kind::Interactive => words::OWN_NAME_HELP,
        Kind::Direct => words::LOCAL_NAME_HELP,
        Kind::ServerMode | Kind::Background => words::NAME_HELP,
    };
    let is_job = kind == Kind::Background;
    let help = derived(move || refusal.get().unwrap_or_else(|| rule.to_owned()));
    text_field(
        launch,
        Field {
            id: "launch-name",
            label: if is_job { words::REMOTE_NAME } else { words::SESSION_NAME },
            rows: "1",
            placeholder: launch.name(),
            text: |form| &mut form.name,
            help,
            is_bad: memo(move || refusal.with(Option::is_some)),
        },
    )
}

/// A select field with a text that explains the chosen option.
///
/// `options` are value, label, and whether the option is disabled.
#[expect(clippy::too_many_arguments, reason = "two callers, each naming what it hands over")]
fn select_field(
    launch: LaunchForm,
    id: &'static str,
    label: &'static str,
    options: Vec<(&'static str, String, bool)>,
    chosen: fn(&Form) -> String,
    choose: fn(&mut Form, String),
    help: Signal<String>,
    more: AnyView,
) -> AnyView {
    let options = options
        .into_iter()
        .map(|(word, label, off)| {
            let is_on = derived(move || launch.form.with(|form| chosen(form) == word));
            let option = view! { <option value=word selected=is_on disabled=off>{label}</option> };
            if word == SpawnMode::Session.as_str() {
                view! { <optgroup label=words::ADVANCED>{option}</optgroup> }.into_any()
            } else {
                option.into_any()
            }
        })
        .collect_view();
    let change = move |event| {
        let word = event_target_value(&event);
        launch.form.update(|form| choose(form, word));
    };
    let help_id = format!("{id}-help");
    view! {
        <label for=id>{label}</label>
        <div>
            <span class="select">
                <select id=id aria-describedby=help_id.clone() data-testid=id on:change=change>
                    {options}
                </select>
                {icon("chevron-down", 16)}
            </span>
            <p class="help" id=help_id>{help}</p>
            {more}
        </div>
    }
    .into_any()
}

/// A text of the form.
struct Field {
    id: &'static str,
    label: &'static str,
    rows: &'static str,
    placeholder: String,
    text: fn(&mut Form) -> &mut String,
    help: Signal<String>,
    is_bad: Memo<bool>,
}

fn text_field(launch: LaunchForm, field: Field) -> AnyView {
    let Field { id, text, is_bad, .. } = field;
    let typed = launch
        .form
        .try_with_untracked(Form::clone)
        .map(|mut form| text(&mut form).clone())
        .unwrap_or_default();
    let input = move |event| {
        let typed = event_target_value(&event);
        launch.form.update(|form| *text(form) = typed);
    };
    let keys = move |event: web_sys::KeyboardEvent| {
        if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) {
            event.prevent_default();
            launch.submit();
        }
    };
    let help_id = format!("{id}-help");
    view! {
        <label for=id>{field.label}</label>
        <div>
            // A text area: password managers put user names into one-line fields.
            <textarea
                id=id
                class="input"
                rows=field.rows
                autocomplete="off"
                placeholder=field.placeholder
                aria-describedby=help_id.clone()
                aria-invalid=live(move || is_bad.get().then_some("true"))
                data-testid=id
                prop:value=typed
                on:input=input
                on:keydown=keys
            ></textarea>
            <p class="help" class:help-error=is_bad id=help_id>{field.help}</p>
        </div>
    }
    .into_any()
}
