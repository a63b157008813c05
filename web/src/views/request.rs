//! A request of an agent with everything it asks for, and its answer.

use crate::act::Choice;
use crate::api;
use crate::browser;
use crate::model::agent_config::diff::{parts_of, totals};
use crate::model::inbox::RequestRef;
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::time;
use crate::nav::nav;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::{icon, symbol};
use crate::prefs;
use crate::reactive::{derived, dynamic, effect, live, memo};
use crate::store::Asked;
use crate::text::{direct as words, inbox};
use crate::views::copy::Copyable;
use crate::views::diff::table;
use crate::views::question::session_rules;
use crate::views::times::Age;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use std::time::Duration;
use svc_shared::api::approvals::{
    Approval, ApprovalDetail, ApprovalRequest, RequestKind, RequestedEdit,
};
use svc_shared::error::ErrorCode;

/// Buttons take no press for so long after they appear.
///
/// It was meant for what stood there before.
const SETTLING: Duration = Duration::from_millis(500);

/// One request.
#[component]
pub fn RequestCard(
    /// Which one.
    place: RequestRef,
) -> impl IntoView {
    let (page, nav) = (page(), nav());
    let found: RwSignal<Option<Result<Arc<ApprovalDetail>, Problem>>> = RwSignal::new(None);
    let place = StoredValue::new(place);
    let asked = memo(move || {
        page.store
            .questions
            .with(|all| all.iter().find(|one| place.with_value(|at| one.place() == *at)).cloned())
    });
    let is_open = memo(move || asked.with(Option::is_some));
    effect(move || {
        // What became of it is read when it does not wait any more. To be told of that, the
        // value must have been computed once.
        let _ = is_open.get();
        let path = place.with_value(RequestRef::api_path);
        spawn_local(async move {
            let read = api::get::<ApprovalDetail>(&path).await;
            found.try_set(Some(read.map(Arc::new)));
        });
    });
    let back =
        move |_| nav.set_query(&[(RequestRef::SESSION, ""), (RequestRef::REQUEST, "")], false);
    view! {
        <button type="button" class=format!("{} inbox-back", ButtonStyle::Ghost.class()) data-testid="inbox-back" on:click=back>
            {icon("chevron-left", 16)} {inbox::BACK}
        </button>
        <section class="card request" tabindex="-1" data-testid="request" data-request=place.with_value(|at| at.request.clone())>
            {dynamic(move || match found.get() {
                None => view! { <p class="log-empty" aria-busy="true">{inbox::LOADING}</p> }.into_any(),
                Some(Err(problem)) => {
                    let text = match problem.is(ErrorCode::NotFound) {
                        true => inbox::UNKNOWN.to_owned(),
                        false => problem.words(),
                    };
                    view! { <p class="log-empty" role="alert" data-testid="request-failed">{text}</p> }.into_any()
                }
                Some(Ok(detail)) => whole(&detail),
            })}
            {dynamic(move || asked.get().map(|of| view! { <Answers of=of /> }))}
        </section>
    }
}

/// Everything that is known of it.
fn whole(detail: &ApprovalDetail) -> AnyView {
    let of = &detail.approval;
    let request = detail.request.as_ref();
    let name = of.tool.as_deref().unwrap_or(&of.subtype);
    let about = request.and_then(|request| request.host.as_deref().or(request.path.as_deref()));
    let about = about.map(|about| about.rsplit('/').next().unwrap_or(about).to_owned());
    let body = match request {
        Some(request) => asked_for(request),
        None => view! {
            <pre class="request-text" tabindex="0">{shown(&of.summary).into_owned()}</pre>
            {(of.decision.is_none()).then(|| view! { <p class="request-note muted">{inbox::SUMMARY_ONLY}</p> })}
            {(of.truncated && of.decision.is_some()).then(|| view! { <p class="request-note muted">{words::SHORTENED}</p> })}
        }
        .into_any(),
    };
    view! {
        <div class="request-head">
            {symbol("g-question", "glyph tone-warn")}
            <div>
                <h2 tabindex="-1">
                    {shown(name).into_owned()} {about.map(|about| view! { " " <bdi>{shown(&about).into_owned()}</bdi> })}
                </h2>
                {facts(of)}
            </div>
            {leads(of)}
        </div>
        {body}
        {outcome(of)}
    }
    .into_any()
}

/// Whose it is, and since when.
fn facts(of: &Approval) -> AnyView {
    let page = page();
    let since = of.since;
    let until = of.expires_at.filter(|_| of.decision.is_none()).map(|at| {
        words::until(&time::clock_or_date(at, page.clock.now(), prefs::zone(at.as_millis())))
    });
    let is_unmanaged = of.instance_id.is_none();
    view! {
        <p class="muted">
            <bdi>{shown(&of.project).into_owned()}</bdi>
            {is_unmanaged.then(|| view! { " · " {words::THIS_MACHINE} })}
            " · " <Age since=derived(move || since) />
            {until.map(|until| view! { " · " {until} })}
        </p>
    }
    .into_any()
}

/// The way to the session.
fn leads(of: &Approval) -> AnyView {
    let (href, text) = match (&of.instance_id, &of.conversation) {
        (Some(id), _) => (browser::session_href(id.as_str()), words::OPEN),
        (None, Some(conversation)) => (
            browser::conversation_href(&of.project, conversation.as_str()),
            words::OPEN_CONVERSATION,
        ),
        (None, None) => return ().into_any(),
    };
    view! { <a class="request-lead" href=href>{text}</a> }.into_any()
}

/// What the agent asks for.
fn asked_for(request: &ApprovalRequest) -> AnyView {
    let kind = request.kind.known().copied().unwrap_or(RequestKind::Other);
    let body = match kind {
        RequestKind::Edit => request.edits.iter().map(one_edit).collect_view().into_any(),
        RequestKind::Url => view! {
            <p class="request-note">
                <b>{request.host.as_deref().map(|host| shown(host).into_owned())}</b>
            </p>
            {text(&request.text)}
        }
        .into_any(),
        RequestKind::Command | RequestKind::Write | RequestKind::Other => text(&request.text),
    };
    let path = request.path.as_deref().filter(|_| kind != RequestKind::Other);
    let path = path.map(|path| {
        view! { <div class="request-bar">{icon("file", 16)} <Copyable shown=shown(path).into_owned() full=path.to_owned() what="path" /></div> }
    });
    let directory = request.directory.as_deref().map(|at| inbox::in_directory(&shown(at)));
    let note = request.note.as_deref().map(|note| {
        view! { <p class="request-note"><span class="muted">{inbox::NOTE}</span> " " {shown(note).into_owned()}</p> }
    });
    view! {
        {path}
        {body}
        {directory.map(|text| view! { <p class="request-note muted"><bdi>{text}</bdi></p> })}
        {note}
        {(request.left_out > 0).then(|| view! { <p class="request-note tone-warn">{inbox::left_out(request.left_out)}</p> })}
        {request.masked.then(|| view! { <p class="request-note tone-warn" data-testid="request-masked">{inbox::MASKED}</p> })}
        <details class="request-raw">
            <summary>{inbox::RAW}</summary>
            {text(&request.raw)}
        </details>
    }
    .into_any()
}

fn text(text: &str) -> AnyView {
    view! { <pre class="request-text" tabindex="0">{shown(text).into_owned()}</pre> }.into_any()
}

/// What one edit replaces.
fn one_edit(edit: &RequestedEdit) -> AnyView {
    let mut parts = parts_of(&edit.old, &edit.new);
    let (added, deleted) = totals(&parts);
    let before = edit.line.unwrap_or(1).saturating_sub(1);
    for part in &mut parts {
        part.old_start = part.old_start.saturating_add(before);
        part.new_start = part.new_start.saturating_add(before);
    }
    let note = match (edit.everywhere, edit.line) {
        (true, _) => Some(inbox::EVERYWHERE),
        (false, None) => Some(inbox::NO_LINE),
        (false, Some(_)) => None,
    };
    view! {
        <p class="request-note num counts">
            <span class="plus">{format!("+{added}")}</span> " " <span class="minus">{format!("−{deleted}")}</span>
            {note.map(|note| view! { " " <span class="muted">{note}</span> })}
        </p>
        <div class="request-diff" class:no-numbers=edit.line.is_none() tabindex="0">{table(&parts)}</div>
    }
    .into_any()
}

/// What became of it.
fn outcome(of: &Approval) -> AnyView {
    let Some(decision) = &of.decision else { return ().into_any() };
    let page = page();
    let at = of
        .answered_at
        .map(|at| time::clock_or_date(at, page.clock.now(), prefs::zone(at.as_millis())));
    let text = inbox::outcome(decision, of.for_session, of.reason.as_deref(), of.actor.as_deref());
    let message = of.message.as_deref().map(|message| inbox::told(&shown(message)));
    view! {
        <p class="request-note" role="status" data-testid="request-outcome">
            {at.map(|at| view! { <span class="muted num">{at}</span> " " })} {text}
        </p>
        {message.map(|message| view! { <p class="request-note">{message}</p> })}
    }
    .into_any()
}

/// The buttons of a request that waits.
#[component]
fn Answers(of: Asked) -> impl IntoView {
    let page = page();
    let reason = RwSignal::new(String::new());
    let is_settled = RwSignal::new(false);
    set_timeout(
        move || {
            is_settled.try_set(true);
        },
        SETTLING,
    );
    let about = format!("question-{}", of.asked.request_id);
    let is_sending = memo(move || page.pending.has(&about));
    let is_busy = live(move || (is_sending.get() || !is_settled.get()).then_some("true"));
    let is_busy_too = live(move || (is_sending.get() || !is_settled.get()).then_some("true"));
    let rules = session_rules(&of.asked.session_rules);
    let has_rules = !of.asked.session_rules.is_empty();
    let is_busy_session = live(move || (is_sending.get() || !is_settled.get()).then_some("true"));
    let answer = move |choice: Choice| {
        if is_settled.get_untracked() {
            page.answer(&of, choice, &reason.get_untracked());
        }
    };
    let (deny, for_session) = (answer.clone(), answer.clone());
    view! {
        {rules}
        <div class="request-acts">
            <p class="muted" role="status">
                {live(move || match (is_sending.get(), has_rules) {
                    (true, _) => inbox::SENDING,
                    (false, true) => inbox::ONCE_OR_SESSION,
                    (false, false) => inbox::ONCE,
                })}
            </p>
            <input
                class="input"
                aria-label=words::REASON
                placeholder=words::REASON
                maxlength="2000"
                data-unsent=""
                prop:value=reason
                on:input=move |event| reason.set(event_target_value(&event))
            />
            <button type="button" class=ButtonStyle::Secondary.class() data-testid="deny" aria-busy=is_busy on:click=move |_| deny(Choice::Deny)>
                {words::DENY}
            </button>
            {has_rules.then(|| view! {
                <button type="button" class=ButtonStyle::Secondary.class() data-testid="allow-session" aria-busy=is_busy_session on:click=move |_| for_session(Choice::AllowForSession)>
                    {words::ALLOW_SESSION}
                </button>
            })}
            <button type="button" class=ButtonStyle::Primary.class() data-testid="allow" aria-busy=is_busy_too on:click=move |_| answer(Choice::Allow)>
                {words::ALLOW}
            </button>
        </div>
    }
}
