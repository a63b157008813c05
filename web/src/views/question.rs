//! A question of an agent with its answers.

use crate::act::Choice;
use crate::browser;
use crate::model::shown::shown;
use crate::model::time;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::prefs;
use crate::reactive::derived;
use crate::store::Asked;
use crate::text::direct as words;
use crate::views::times::Age;
use leptos::prelude::*;

/// What the agent offers to allow for its session; nothing where it offers nothing.
pub fn session_rules(rules: &[String]) -> AnyView {
    if rules.is_empty() {
        return ().into_any();
    }
    let all = rules
        .iter()
        .map(|rule| view! { " " <code>{shown(rule).into_owned()}</code> })
        .collect_view();
    view! { <p class="muted session-rules" data-testid="session-rules">{words::SESSION_RULES} {all}</p> }.into_any()
}

/// A question with its answers.
#[component]
pub fn Question(
    /// What is asked, and by whom.
    of: Asked,
    /// It stands in the row of its session.
    #[prop(optional)]
    is_inside: bool,
    /// It leads to its session.
    #[prop(optional)]
    has_link: bool,
) -> impl IntoView {
    let page = page();
    let reason = RwSignal::new(String::new());
    let about = format!("question-{}", of.asked.request_id);
    let href = match (&of.id, &of.conversation) {
        (Some(id), _) => Some((browser::session_href(id), words::OPEN)),
        (None, Some(conversation)) => {
            Some((browser::conversation_href(&of.project, conversation), words::OPEN_CONVERSATION))
        }
        (None, None) => None,
    };
    let (asked, project, is_unmanaged) = (of.asked.clone(), of.project.clone(), of.id.is_none());
    let rules = session_rules(&of.asked.session_rules);
    let has_rules = !of.asked.session_rules.is_empty();
    let answer = move |choice: Choice| page.answer(&of, choice, &reason.get_untracked());
    let (allow, deny, for_session) = (answer.clone(), answer.clone(), answer);
    let is_busy = derived(move || page.pending.has(&about).then_some("true"));
    let since = asked.since;
    let since = derived(move || since);
    let until = asked.expires_at.map(|at| {
        words::until(&time::clock_or_date(at, page.clock.now(), prefs::zone(at.as_millis())))
    });
    let tool = asked.tool.clone().unwrap_or_else(|| asked.subtype.clone());
    view! {
        <section class="card question tone-warn" class:inside=is_inside data-testid="question" data-request=asked.request_id.clone()>
            <div class="question-head">
                <p>
                    <strong>{shown(&tool).into_owned()}</strong>
                    {(!is_inside).then(|| view! { " · " <bdi>{shown(&project).into_owned()}</bdi> })}
                    {is_unmanaged.then(|| view! { " · " {words::THIS_MACHINE} })}
                    {(!is_inside).then(|| view! { " · " <Age since=since /> })}
                    {(!is_inside).then(|| until.map(|until| view! { " · " {until} }))} {(!has_rules).then(|| view! { " · " {words::ONCE} })}
                </p>
                {href.filter(|_| has_link).map(|(href, text)| view! { <a href=href>{text}</a> })}
            </div>
            <pre class="output" tabindex="0">{shown(&asked.summary).into_owned()}</pre>
            {asked.truncated.then(|| view! { <p class="muted">{words::SHORTENED}</p> })}
            {rules}
            <div class="question-acts">
                <input
                    class="input"
                    aria-label=words::REASON
                    placeholder=words::REASON
                    maxlength="2000"
                    data-unsent=""
                    prop:value=reason
                    on:input=move |event| reason.set(event_target_value(&event))
                />
                <button type="button" class=ButtonStyle::Secondary.class() data-testid="deny" aria-disabled=is_busy on:click=move |_| deny(Choice::Deny)>
                    {words::DENY}
                </button>
                {has_rules.then(|| view! {
                    <button type="button" class=ButtonStyle::Secondary.class() data-testid="allow-session" aria-disabled=is_busy on:click=move |_| for_session(Choice::AllowForSession)>
                        {words::ALLOW_SESSION}
                    </button>
                })}
                <button type="button" class=ButtonStyle::Primary.class() data-testid="allow" aria-disabled=is_busy on:click=move |_| allow(Choice::Allow)>
                    {words::ALLOW}
                </button>
            </div>
        </section>
    }
}
