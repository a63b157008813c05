//! The named tokens: issued, given a new secret, revoked.

use crate::api;
use crate::browser;
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::wire;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::confirm::Confirm;
use crate::parts::dialog::Dialog;
use crate::parts::icon::{icon, symbol};
use crate::reactive::{derived, dynamic, live};
use crate::text::access as words;
use crate::text::session::{act, named};
use crate::views::access::Lists;
use crate::views::copy::Copyable;
use crate::views::times::{When, absolute};
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::Timestamp;
use svc_shared::internal::access::{
    IssueTokenRequest, IssuedToken, NamedToken, RotateTokenRequest,
};
use svc_shared::paths;

const DAY_MS: i64 = 24 * 3600 * 1000;
/// A token that was not used for so long is worth a look (dashboard §2.11).
const UNUSED_DAYS: i64 = 90;

/// What is open over the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Open {
    /// The form of a new token.
    Issue,
    /// The password before a new secret of this token.
    Rotate(String),
    /// A new secret.
    Secret(String),
}

/// The section.
///
/// `asks` is the label of the token that a question is about.
pub fn tokens(
    lists: Lists,
    tokens: &[NamedToken],
    open: RwSignal<Option<Open>>,
    asks: RwSignal<Option<String>>,
) -> AnyView {
    let count = tokens.len();
    let rows: Vec<_> = tokens.iter().map(|one| row(lists, one, open, asks)).collect();
    let body = match rows.is_empty() {
        true => view! { <p class="card none muted">{words::NO_TOKEN}</p> }.into_any(),
        false => view! {
            <table class="card grid-table tokens">
                <thead><tr>
                    <th scope="col">{words::TOKEN}</th>
                    <th scope="col">{words::MAY_DO}</th>
                    <th scope="col">{words::EXPIRES}</th>
                    <th scope="col">{words::ISSUED}</th>
                    <th scope="col">{words::LAST_USED}</th>
                    <td></td>
                </tr></thead>
                <tbody>{rows}</tbody>
            </table>
        }
        .into_any(),
    };
    view! {
        <section aria-labelledby="tokens" data-testid="tokens">
            <div class="section-head">
                <h2 id="tokens">{words::TOKENS}</h2> <span class="count num">{count}</span>
                <span class="end">
                    <button
                        type="button"
                        class=ButtonStyle::Secondary.class()
                        data-testid="issue-token"
                        on:click=move |_| open.set(Some(Open::Issue))
                    >
                        {icon("plus", 16)} {words::ISSUE} "…"
                    </button>
                </span>
            </div>
            {body}
            <p class="muted below">{words::FILE_MANAGED}</p>
        </section>
    }
    .into_any()
}

/// The dialog that is open, if any.
pub fn dialogs(lists: Lists, open: RwSignal<Option<Open>>) -> AnyView {
    dynamic(move || {
        open.get().map(|what| match what {
            Open::Secret(secret) => {
                view! { <Secret secret=secret open=open lists=lists /> }.into_any()
            }
            what => view! { <Form what=what open=open /> }.into_any(),
        })
    })
}

fn row(
    lists: Lists,
    token: &NamedToken,
    open: RwSignal<Option<Open>>,
    asks: RwSignal<Option<String>>,
) -> AnyView {
    let page = page();
    let now = page.clock.now();
    let scopes = match &token.scopes {
        None => view! { <span class="chip chip-all">{words::EVERYTHING}</span> }.into_any(),
        Some(scopes) => {
            let chips =
                scopes.iter().map(|word| view! { <span class="chip">{word.clone()}</span> });
            chips.collect_view().into_any()
        }
    };
    let expires = match token.expires_at {
        None => words::NEVER.into_any(),
        Some(at) if at.as_millis() <= now => {
            view! { <span class="late">{symbol("g-triangle", "glyph")} {words::EXPIRED}</span> }
                .into_any()
        }
        Some(at) => absolute(at).into_any(),
    };
    let unused_days = (now - token.created.as_millis()) / DAY_MS;
    let used = match token.last_used {
        Some(at) => view! { <When at=Signal::stored(at) /> }.into_any(),
        None if unused_days > UNUSED_DAYS => view! {
            <span class="late">{symbol("g-triangle", "glyph")} {words::never_in(unused_days)}</span>
        }
        .into_any(),
        None => words::NEVER.into_any(),
    };
    let label = StoredValue::new(token.label.clone());
    let close = Callback::new(move |()| {
        asks.set(None);
        browser::after_paint(|| {
            browser::focus("[data-testid=issue-token]");
        });
    });
    let on_yes = Callback::new(move |()| {
        asks.set(None);
        let label = label.get_value();
        let path = paths::token(&label);
        let said = move |_: &str| words::revoked(&shown(&label));
        lists.write(Method::DELETE, path, said, "[data-testid=issue-token]");
    });
    let name = shown(&token.label).into_owned();
    view! {
        <tr data-testid="token" data-token=token.label.clone()>
            <th scope="row"><span class="who">{icon("key", 20)} <bdi>{name}</bdi></span></th>
            <td data-label=words::MAY_DO><span class="chips">{scopes}</span></td>
            <td data-label=words::EXPIRES class="num">{expires}</td>
            <td data-label=words::ISSUED><When at=Signal::stored(token.created) /></td>
            <td data-label=words::LAST_USED>{used}</td>
            <td class="acts">
                {dynamic(move || {
                    let label = label.get_value();
                    if asks.with(|asks| asks.as_ref() == Some(&label)) {
                        return view! {
                            <Confirm
                                verb=words::REVOKE object=label rest=words::REVOKE_QUESTION
                                on_yes=on_yes on_no=close
                            />
                        }
                        .into_any();
                    }
                    let (rotated, revoked) = (label.clone(), label.clone());
                    let shown = shown(&label).into_owned();
                    view! {
                        <button
                            type="button" class=ButtonStyle::Ghost.class() data-testid="rotate-token"
                            aria-label=named(words::ROTATE, &shown)
                            on:click=move |_| open.set(Some(Open::Rotate(rotated.clone())))
                        >{words::ROTATE}</button>
                        <button
                            type="button" class=ButtonStyle::Ghost.class() data-testid="revoke-token"
                            aria-label=named(words::REVOKE, &shown)
                            on:click=move |_| asks.set(Some(revoked.clone()))
                        >{words::REVOKE}</button>
                    }
                    .into_any()
                })}
            </td>
        </tr>
    }
    .into_any()
}

/// The fields of a form as they are typed.
#[derive(Debug, Clone, Copy)]
struct Typed {
    label: RwSignal<String>,
    /// One of the words of a scope; empty is everything.
    scope: RwSignal<&'static str>,
    days: RwSignal<i64>,
    password: RwSignal<String>,
    problem: RwSignal<Option<Problem>>,
    is_pending: RwSignal<bool>,
}

/// The form of a new token, or only the password before a new secret.
#[component]
fn Form(what: Open, open: RwSignal<Option<Open>>) -> impl IntoView {
    let page = page();
    let typed = Typed {
        label: RwSignal::new(String::new()),
        scope: RwSignal::new("read"),
        days: RwSignal::new(90),
        password: RwSignal::new(String::new()),
        problem: RwSignal::new(None),
        is_pending: RwSignal::new(false),
    };
    let close = Callback::new(move |()| open.set(None));
    let rotated = match &what {
        Open::Rotate(label) => Some(label.clone()),
        Open::Issue | Open::Secret(_) => None,
    };
    let (title, verb) = match &rotated {
        Some(label) => (words::rotate(&shown(label)), words::ROTATE),
        None => (words::ISSUE.to_owned(), words::ISSUE),
    };
    // While nothing is known yet the service is asked: it says what is missing.
    let has_password =
        page.live.basics.with_untracked(|b| b.as_ref().is_none_or(|b| b.has_password));
    let command = match &rotated {
        Some(label) => format!("svc api-token rotate {label}"),
        None => "svc api-token issue NAME --scope read --expires 90d".to_owned(),
    };
    let is_issue = rotated.is_none();
    let rotated = StoredValue::new(rotated);
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        send(typed, rotated.get_value(), page.clock.now(), open);
    };
    let is_dirty = derived(move || !typed.label.with(String::is_empty));
    view! {
        <Dialog title=title on_close=close is_dirty=is_dirty testid="token-dialog">
            {if has_password {
                view! {
                    <form on:submit=submit>
                        <div class="dialog-body">
                            {is_issue.then(|| fields(typed))}
                            {(!is_issue).then(|| view! { <p class="wide">{words::ROTATE_WHY}</p> })}
                            <label for="token-password">{words::PASSWORD}</label>
                            <div>
                                <input
                                    class="input" id="token-password" type="password"
                                    autocomplete="current-password" data-testid="token-password"
                                    aria-describedby="token-password-help"
                                    on:input=move |event| typed.password.set(event_target_value(&event))
                                />
                                <p class="help" id="token-password-help">{words::PASSWORD_WHY}</p>
                            </div>
                            {dynamic(move || typed.problem.get().map(|problem| view! {
                                <p class="wide strip tone-danger" role="alert" data-testid="token-problem">{problem.words()}</p>
                            }))}
                        </div>
                        <div class="dialog-foot">
                            <span class="says"></span>
                            <button type="button" class=ButtonStyle::Secondary.class() on:click=move |_| close.run(())>{act::CANCEL}</button>
                            <button
                                type="submit" class=ButtonStyle::Primary.class() data-testid="token-submit"
                                aria-disabled=live(move || typed.is_pending.get().then_some("true"))
                            >{verb}</button>
                        </div>
                    </form>
                }.into_any()
            } else {
                view! {
                    <div class="dialog-body">
                        <p class="wide">{words::NO_PASSWORD}</p>
                        <p class="wide command"><Copyable shown=command.clone() full=command what=words::SECRET_WORD /></p>
                    </div>
                }.into_any()
            }}
        </Dialog>
    }
}

/// Name, scope and lifetime of a new token.
fn fields(typed: Typed) -> AnyView {
    let scopes = [
        ("read", words::READ),
        ("operate", words::OPERATE),
        ("approve", words::APPROVE),
        ("", words::ALL),
    ]
    .map(|(word, label)| {
        view! {
            <label class="radio-line">
                <input
                    type="radio" name="token-scope" data-testid=format!("token-scope-{word}")
                    prop:checked=live(move || typed.scope.get() == word)
                    on:change=move |_| typed.scope.set(word)
                />
                {label}
            </label>
        }
    });
    let lifetimes = words::LIFETIMES.map(|(label, days)| {
        let is_chosen = live(move || typed.days.get() == days);
        view! { <option value=days.to_string() prop:selected=is_chosen>{label}</option> }
    });
    view! {
        <label for="token-label">{words::LABEL}</label>
        <input
            class="input" id="token-label" autocomplete="off" maxlength="255" autofocus=true
            data-testid="token-label"
            on:input=move |event| typed.label.set(event_target_value(&event))
        />
        <span class="label" id="token-may">{words::MAY_DO}</span>
        <div role="radiogroup" aria-labelledby="token-may">{scopes}</div>
        <label for="token-expires">{words::EXPIRES}</label>
        <span class="select">
            <select
                id="token-expires" data-testid="token-expires"
                on:change=move |event| typed.days.set(event_target_value(&event).parse().unwrap_or(0))
            >{lifetimes}</select>
            {icon("chevron-down", 16)}
        </span>
    }
    .into_any()
}

/// Proves the password, and then asks for the secret.
fn send(typed: Typed, rotated: Option<String>, now: i64, open: RwSignal<Option<Open>>) {
    if typed.is_pending.get_untracked() {
        return;
    }
    typed.is_pending.set(true);
    typed.problem.set(None);
    let proof = wire::written(&std::collections::BTreeMap::from([(
        "password",
        typed.password.get_untracked(),
    )]));
    let (path, body) = match rotated {
        Some(label) => (paths::ROTATE_TOKEN, wire::written(&RotateTokenRequest { label })),
        None => {
            let (scope, days) = (typed.scope.get_untracked(), typed.days.get_untracked());
            let request = IssueTokenRequest {
                label: typed.label.get_untracked(),
                scopes: (!scope.is_empty()).then(|| vec![scope.to_owned()]),
                expires_at: (days > 0)
                    .then(|| Timestamp::from_millis(now + days * DAY_MS).to_string()),
            };
            (paths::TOKENS, wire::written(&request))
        }
    };
    spawn_local(async move {
        let answer = async {
            api::request(Method::POST, paths::REAUTH, Some(proof), None).await?;
            let answer = api::request(Method::POST, path, Some(body), None).await;
            api::understood::<IssuedToken>(answer)
        };
        let answer = answer.await;
        // The dialog may be gone by now; a secret that was made is shown all the same.
        let _ = typed.is_pending.try_set(false);
        match answer {
            Ok(issued) => drop(open.try_set(Some(Open::Secret(issued.token)))),
            Err(problem) => drop(typed.problem.try_set(Some(problem))),
        }
    });
}

/// A new secret, which goes only when somebody says that it is stored.
#[component]
fn Secret(secret: String, open: RwSignal<Option<Open>>, lists: Lists) -> impl IntoView {
    let stored = move |_| {
        open.set(None);
        lists.read();
    };
    view! {
        <Dialog title=words::SECRET.to_owned() on_close=Callback::new(|()| ()) is_firm=true testid="token-secret">
            <div class="dialog-body">
                <p class="wide command secret"><Copyable shown=secret.clone() full=secret what=words::SECRET_WORD /></p>
                <p class="wide muted">{words::SECRET_ONCE}</p>
            </div>
            <div class="dialog-foot">
                <span class="says"></span>
                <button type="button" class=ButtonStyle::Primary.class() data-testid="token-stored" on:click=stored>{words::STORED}</button>
            </div>
        </Dialog>
    }
}
