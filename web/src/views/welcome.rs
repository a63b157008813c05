//! Home of somebody who has no project yet: how to begin, in steps that tick themselves off.

use crate::app::page;
use crate::dom::prelude::*;
use crate::parts::icon::{icon, symbol};
use crate::parts::reactive::dynamic;
use crate::text::page::home as words;

/// The steps.
#[component]
pub fn Welcome() -> impl IntoView {
    let page = page();
    let root = move || {
        let known = page.live.basics.with(|b| b.as_ref().map(|b| b.projects_root.clone()));
        known.unwrap_or_default()
    };
    let signed_in = move || {
        page.store.health.with(|h| h.as_ref().is_some_and(|h| h.claude_ok && h.claude_login_ok))
    };
    let steps = move || {
        let done = [signed_in(), false, false, false];
        let next = done.iter().position(|done| !done);
        let texts = [
            (words::STEP_SIGN_IN, words::STEP_SIGN_IN_HOW.to_owned()),
            (words::STEP_ADD, words::step_add_how(&root())),
            (words::STEP_LAUNCH, words::STEP_LAUNCH_HOW.to_owned()),
            (words::STEP_OPEN, words::STEP_OPEN_HOW.to_owned()),
        ];
        texts
            .into_iter()
            .zip(done)
            .enumerate()
            .map(|(at, ((title, how), done))| {
                let is_next = next == Some(at);
                view! {
                    <li class="step" class:done=done class:next=is_next>
                        <span class="step-mark" aria-hidden="true">
                            {if done { icon("check", 16).into_any() } else { (at + 1).into_any() }}
                        </span>
                        <span class="step-text"><b>{title}</b><span>{how}</span></span>
                        <span class="state">
                            {done.then_some(words::DONE)} {is_next.then_some(words::NEXT)}
                        </span>
                    </li>
                }
            })
            .collect_view()
    };
    view! {
        <div class="welcome" data-testid="welcome">
            {symbol("mark", "mark")} <h2>{words::NO_PROJECTS}</h2>
            <p>{words::BECOMES_A} <code>{root}</code> {words::BECOMES_B}</p>
            <p>{words::BEGIN}</p>
            <section class="card steps" aria-label=words::STEPS>
                <div class="steps-head">
                    <b>{words::STEPS}</b>
                    <span class="muted">{dynamic(move || words::steps_done(usize::from(signed_in()), 4))}</span>
                </div>
                <ol>{steps}</ol>
            </section>
        </div>
    }
}
