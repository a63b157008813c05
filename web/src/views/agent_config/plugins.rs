//! Plugins and marketplaces, which the agent's own commands change.

use super::editor::Writes;
use super::fields::{Kind, labelled};
use super::review::missing;
use crate::api;
use crate::model::agent_config::place::text;
use crate::model::agent_config::{Subject, Surface};
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::wire;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::reactive::{derived, dynamic, live};
use crate::text::agent_config::{self as all, plugins as words, review};
use crate::text::session::named;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::Value;
use svc_shared::internal::agent_config::{ConfigList, PluginChanged, PluginDetails};
use svc_shared::paths::{CONFIG_WRITE, segment};

/// What is about to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    op: &'static str,
    verb: &'static str,
    /// The plugin, the marketplace or its source.
    what: String,
}

/// Everything that the view holds. Cheap to copy.
#[derive(Clone, Copy)]
struct Lists {
    subject: StoredValue<Subject>,
    listed: RwSignal<Option<Result<ConfigList, Problem>>>,
    /// What the settings file of the scope says.
    said: RwSignal<Option<ConfigList>>,
    asked: RwSignal<Option<Asked>>,
    refused: RwSignal<Option<String>>,
    /// The agent's own words.
    output: RwSignal<Option<String>>,
    is_pending: RwSignal<bool>,
    writes: Writes,
}

impl Lists {
    fn is_plugins(self) -> bool {
        self.subject.with_value(|subject| subject.surface == Surface::Plugins)
    }

    fn member(self) -> &'static str {
        if self.is_plugins() { "plugins" } else { "marketplaces" }
    }

    fn read(self) {
        let subject = self.subject.get_value();
        let said = if self.is_plugins() { "plugins/enabled" } else { "marketplaces/declared" };
        let (list, said) = (subject.read_at(self.member(), &[]), subject.read_at(said, &[]));
        spawn_local(async move {
            let found = api::get::<ConfigList>(&said).await;
            let _ = self.said.try_set(found.ok());
            let found = api::get::<ConfigList>(&list).await;
            let _ = self.listed.try_set(Some(found));
        });
    }

    fn items(self) -> Vec<Value> {
        let member = self.member();
        self.listed.with(|listed| match listed {
            Some(Ok(found)) => {
                found.list.get(member).and_then(Value::as_array).cloned().unwrap_or_default()
            }
            _ => Vec::new(),
        })
    }

    fn ask(self, op: &'static str, verb: &'static str, what: &str) {
        self.refused.set(None);
        self.output.set(None);
        self.asked.set(Some(Asked { op, verb, what: what.to_owned() }));
    }

    fn go(self, asked: Asked, typed: &str, again: String) {
        let subject = self.subject.get_value();
        let mut body = subject.body(typed);
        body.insert("op".to_owned(), asked.op.into());
        let key = match (self.is_plugins(), asked.op) {
            (true, _) => "plugin",
            (false, "add") => "source",
            (false, _) => "name",
        };
        body.insert(key.to_owned(), asked.what.into());
        if asked.op == "install" {
            body.insert("confirm_plugin".to_owned(), again.into());
        }
        let path = format!("{CONFIG_WRITE}/{}/action", self.member());
        self.is_pending.set(true);
        self.refused.set(None);
        spawn_local(async move {
            let body = wire::written(&body);
            let answer = api::request(Method::POST, &path, Some(body), None).await;
            let outcome = api::understood::<PluginChanged>(answer);
            if self.is_pending.try_set(false).is_some() {
                return;
            }
            match outcome {
                Ok(done) => {
                    self.asked.set(None);
                    self.output.set(Some(done.output));
                    self.writes.tell();
                    self.read();
                }
                Err(problem) => self.refused.set(Some(problem.words())),
            }
        });
    }

    fn details(self, id: &str) {
        let tail = format!("plugins/{}", segment(id));
        let path = self.subject.with_value(|subject| subject.read_at(&tail, &[]));
        spawn_local(async move {
            match api::get::<PluginDetails>(&path).await {
                Ok(found) => drop(self.output.try_set(Some(found.details))),
                Err(problem) => drop(self.refused.try_set(Some(problem.words()))),
            }
        });
    }
}

/// The lists and what can be done.
pub fn plugins(subject: Subject) -> AnyView {
    let lists = Lists {
        subject: StoredValue::new(subject),
        listed: RwSignal::new(None),
        said: RwSignal::new(None),
        asked: RwSignal::new(None),
        refused: RwSignal::new(None),
        output: RwSignal::new(None),
        is_pending: RwSignal::new(false),
        writes: expect_context(),
    };
    lists.read();
    let content = move || {
        match lists.listed.get() {
        None => view! { <p class="muted" role="status">{words::ASKING}</p> }.into_any(),
        Some(Err(problem)) => view! {
            <p class="strip tone-danger" role="alert" data-testid="config-unread">{shown(&problem.words()).into_owned()}</p>
        }
        .into_any(),
        Some(Ok(_)) => {
            let items = lists.items();
            let is_empty = items.is_empty();
            let rows = items.into_iter().map(|item| row(lists, &item)).collect_view();
            view! {
                {is_empty.then(|| view! { <p class="config-none" data-testid="config-none">{words::NONE}</p> })}
                <ul class="config-choices">{rows}</ul>
                {new(lists)}
            }
            .into_any()
        }
    }
    };
    view! {
        {dynamic(content)}
        {dynamic(move || lists.asked.get().map(|asked| question(lists, asked)))}
        {dynamic(move || lists.refused.get().map(|said| view! {
            <p class="config-refused tone-danger" role="alert" data-testid="config-refused">{shown(&said).into_owned()}</p>
        }))}
        {dynamic(move || lists.output.get().map(|said| view! {
            <pre class="plain-text config-output" tabindex="0" role="status" data-testid="config-output">{shown(&said).into_owned()}</pre>
        }))}
    }
    .into_any()
}

fn row(lists: Lists, item: &Value) -> AnyView {
    let is_plugins = lists.is_plugins();
    let id = text(item, if is_plugins { "/id" } else { "/name" });
    let scope = text(item, "/scope");
    let is_on = item.get("enabled").and_then(Value::as_bool);
    let key = StoredValue::new(id.clone());
    let button = move |op: &'static str, verb: &'static str| {
        let ask = move |_| key.with_value(|id| lists.ask(op, verb, id));
        view! {
            <button
                type="button" class="btn btn-ghost" data-testid=format!("plugin-{op}")
                aria-label=key.with_value(|id| named(verb, &shown(id))) on:click=ask
            >{verb}</button>
        }
        .into_any()
    };
    let mut buttons = Vec::new();
    if is_plugins {
        let details = move |_| key.with_value(|id| lists.details(id));
        buttons.push(
            view! {
                <button type="button" class="btn btn-ghost" data-testid="plugin-details"
                    aria-label=key.with_value(|id| named(words::DETAILS, &shown(id))) on:click=details
                >{words::DETAILS}</button>
            }
            .into_any(),
        );
        buttons.push(match is_on {
            Some(true) => button("disable", words::DISABLE),
            Some(false) | None => button("enable", words::ENABLE),
        });
        buttons.push(button("update", words::UPDATE));
        buttons.push(button("uninstall", words::UNINSTALL));
    } else {
        buttons.push(button("update", words::UPDATE));
        buttons.push(button("remove", words::UNINSTALL));
    }
    let own = move || {
        let found = lists.said.get()?;
        let on = key.with_value(|id| found.list.get("enabled")?.get(id)?.as_bool())?;
        Some(words::said(on))
    };
    let state = is_on.map(|on| if on { words::ON } else { words::OFF });
    let facts: Vec<String> = [state.unwrap_or_default().to_owned(), scope, text(item, "/version")]
        .into_iter()
        .filter(|fact| !fact.is_empty())
        .collect();
    view! {
        <li class="config-choice" data-testid="plugin" data-name=id.clone()>
            <span>
                <b><bdi>{shown(&id).into_owned()}</bdi></b> " "
                <span class="muted">{shown(&facts.join(" · ")).into_owned()} " " {dynamic(own)}</span>
            </span>
            <span class="config-actions">{buttons}</span>
        </li>
    }
    .into_any()
}

fn new(lists: Lists) -> AnyView {
    let typed = RwSignal::new(String::new());
    let (label, op, verb) = match lists.is_plugins() {
        true => (words::ID, "install", words::INSTALL),
        false => (words::SOURCE, "add", words::ADD),
    };
    let ask = move || {
        let what = typed.get_untracked().trim().to_owned();
        if !what.is_empty() {
            lists.ask(op, verb, &what);
        }
    };
    let set = Callback::new(move |what| typed.set(what));
    view! {
        <div class="config-new" data-testid="config-new">
            {labelled(label, "new", Kind::Line, typed.into(), set, derived(|| None), None)}
            <button type="button" class="btn btn-secondary" data-testid="config-new-add" on:click=move |_| ask()>{verb}</button>
        </div>
    }
    .into_any()
}

fn question(lists: Lists, asked: Asked) -> AnyView {
    let wanted = StoredValue::new(lists.subject.with_value(Subject::confirmation));
    let (typed, again) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let what = StoredValue::new(asked.what.clone());
    let is_install = asked.op == "install";
    let why_not = derived(move || {
        let scope = typed.with(|typed| wanted.with_value(|wanted| missing(typed, wanted)));
        let plugin = || {
            again.with(|again| what.with_value(|what| missing(again, what))).filter(|_| is_install)
        };
        scope.or_else(plugin)
    });
    let title = words::question(asked.verb, &shown(&asked.what));
    let page = page();
    let own = StoredValue::new(asked);
    let go = move |_| match why_not.get_untracked() {
        Some(why) => page.say.politely(&why),
        None if lists.is_pending.get_untracked() => {}
        None => lists.go(own.get_value(), &typed.get_untracked(), again.get_untracked()),
    };
    crate::browser::after_paint(|| {
        crate::browser::focus("[data-testid=plugin-typed]");
    });
    view! {
        <div class="config-ask" role="group" aria-label=title.clone() data-testid="plugin-ask">
            <b class="config-ask-title">{title.clone()}</b>
            <label for="config-plugin">
                {review::TYPE} " " <b><bdi>{shown(&wanted.get_value()).into_owned()}</bdi></b> " " {words::TO_GO_ON}
            </label>
            <input
                class="input mono" id="config-plugin" autocomplete="off" spellcheck="false" data-testid="plugin-typed"
                prop:value=typed on:input=move |event| typed.set(event_target_value(&event))
            />
            {is_install.then(|| view! {
                <label for="config-plugin-id">{words::TYPE_ID}</label>
                <input
                    class="input mono" id="config-plugin-id" autocomplete="off" spellcheck="false" data-testid="plugin-again"
                    prop:value=again on:input=move |event| again.set(event_target_value(&event))
                />
            })}
            <span class="muted" aria-live="polite">{dynamic(move || why_not.get())}</span>
            <button type="button" class=ButtonStyle::Secondary.class() on:click=move |_| lists.asked.set(None)>{review::CANCEL}</button>
            <button
                type="button" class=ButtonStyle::Danger.class() data-testid="plugin-yes"
                aria-disabled=live(move || (why_not.get().is_some() || lists.is_pending.get()).then_some("true"))
                aria-busy=live(move || lists.is_pending.get().then_some("true"))
                on:click=go
            >{own.with_value(|asked| asked.verb)}</button>
            {dynamic(move || lists.is_pending.get().then(|| view! { <p class="muted" role="status">{words::ASKING}</p> }))}
        </div>
    }
    .into_any()
}

/// What is in force in a project, key by key.
pub fn effective(subject: &Subject) -> AnyView {
    let found = RwSignal::new(
        None::<Result<svc_shared::internal::agent_config::EffectiveSettings, Problem>>,
    );
    let path = subject.read_at("settings/effective", &[]);
    spawn_local(async move {
        let answer = api::get(&path).await;
        let _ = found.try_set(Some(answer));
    });
    dynamic(move || {
        match found.get() {
        None => view! { <p class="muted" role="status">{all::READING}</p> }.into_any(),
        Some(Err(problem)) => {
            view! { <p class="strip tone-danger" role="alert">{shown(&problem.words()).into_owned()}</p> }.into_any()
        }
        Some(Ok(found)) if found.effective.is_empty() => {
            view! { <p class="config-none">{all::settings::NOTHING}</p> }.into_any()
        }
        Some(Ok(found)) => {
            let rows = found.effective.into_iter().map(|(key, entry)| {
                let value = entry.get("value").map(ToString::to_string).unwrap_or_default();
                view! {
                    <tr>
                        <th scope="row"><code>{shown(&key).into_owned()}</code></th>
                        <td><code>{shown(&value).into_owned()}</code></td>
                        <td>{text(&entry, "/source")}</td>
                    </tr>
                }
            });
            view! {
                <table class="config-effective" data-testid="config-effective">
                    <thead><tr><th scope="col">{all::settings::KEY}</th><th scope="col">{all::VALUE}</th><th scope="col">{all::settings::SOURCE}</th></tr></thead>
                    <tbody>{rows.collect_view()}</tbody>
                </table>
            }
            .into_any()
        }
    }
    })
}
