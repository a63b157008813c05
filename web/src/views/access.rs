//! Devices and tokens: who can reach the service, and who may come in.

use crate::api;
use crate::appear::enter;
use crate::model::outcome::{Level, Notice};
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::status::Tone;
use crate::page::page;
use crate::parts::icon::symbol;
use crate::reactive::dynamic;
use crate::text::access as words;
use crate::views::devices::devices;
use crate::views::times::When;
use crate::views::tokens::{Open, dialogs, tokens};
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::internal::access::{Access, Device, Finding, NamedToken};
use svc_shared::paths;
use svc_shared::status::CheckStatus;

/// Everything that the view shows, as it was read last.
#[derive(Debug, Clone)]
pub struct Known {
    /// Who can reach the service.
    pub access: Access,
    /// The signed-in browsers.
    pub devices: Vec<Device>,
    /// The named tokens.
    pub tokens: Vec<NamedToken>,
}

/// The lists, and how they are read again.
#[derive(Clone, Copy)]
pub struct Lists(pub RwSignal<Option<Result<Known, Problem>>>);

impl Lists {
    /// Reads the lists again; what is shown stays until they are there.
    pub fn read(self) {
        spawn_local(async move {
            let found = read().await;
            // The view may be gone by now.
            let _ = self.0.try_set(Some(found));
        });
    }

    /// Sends a request without a body, says what came of it, and reads the lists again.
    pub fn write(
        self,
        method: Method,
        path: String,
        said: impl FnOnce(&str) -> String + 'static,
        focus: &'static str,
    ) {
        let page = page();
        spawn_local(async move {
            match api::request(method, &path, None, None).await {
                Ok((_, text)) => page.say.done(said(&text)),
                Err(problem) => {
                    page.say.notice(Notice::new(Level::Danger, problem.words(), String::new()));
                }
            }
            let found = read().await;
            let _ = self.0.try_set(Some(found)); // the view may be gone by now
            crate::focus::rescue(focus);
        });
    }
}

async fn read() -> Result<Known, Problem> {
    Ok(Known {
        access: api::get(paths::ACCESS).await?,
        devices: api::get(paths::DEVICES).await?,
        tokens: api::get(paths::TOKENS).await?,
    })
}

/// The view.
#[component]
pub fn DevicesAndTokens() -> impl IntoView {
    enter(words::TITLE);
    let lists = Lists(RwSignal::new(None));
    lists.read();
    // Kept outside the lists, which are drawn again while a dialog or a question is open.
    let open = RwSignal::new(None::<Open>);
    let (of_device, of_token) = (RwSignal::new(None), RwSignal::new(None));
    view! {
        {dynamic(move || match lists.0.get() {
            None => view! { <p class="muted" role="status">{words::ASKING}</p> }.into_any(),
            Some(Err(problem)) => view! {
                <p class="strip tone-danger" role="alert">{problem.words()}</p>
            }.into_any(),
            Some(Ok(known)) => view! {
                {reach(&known.access)}
                {devices(lists, &known, of_device)}
                {tokens(lists, &known.tokens, open, of_token)}
            }.into_any(),
        })}
        {dialogs(lists, open)}
    }
}

fn reach(access: &Access) -> AnyView {
    let findings: Vec<_> = access.findings.iter().map(finding).collect();
    view! {
        <section aria-labelledby="reach" data-testid="reach">
            <div class="section-head">
                <h2 id="reach">{words::REACH}</h2>
                <span class="end muted">{words::CHECKED} " " <When at=Signal::stored(access.at) /></span>
            </div>
            <ul class="card list plain reach">{findings}</ul>
        </section>
    }
    .into_any()
}

fn finding(finding: &Finding) -> AnyView {
    let (shape, tone) = match finding.level.known() {
        Some(CheckStatus::Ok) => ("g-check-disc", Tone::Ok),
        Some(CheckStatus::Warn) => ("g-triangle", Tone::Warn),
        Some(CheckStatus::Fail) | None => ("g-octagon", Tone::Danger),
    };
    let key = finding.key.as_ref().map(|key| {
        view! { <span class="muted change">{words::CHANGE} " " <code>{shown(key).into_owned()}</code></span> }
    });
    view! {
        <li class=tone.class() data-testid="finding" data-code=finding.code.clone()>
            {symbol(shape, "glyph")}
            <span>
                <b><bdi>{shown(&finding.title).into_owned()}</bdi></b>
                <span class="means"><bdi>{shown(&finding.detail).into_owned()}</bdi></span>
            </span>
            {key}
        </li>
    }
    .into_any()
}
