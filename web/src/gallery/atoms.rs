//! The small ones: buttons, status words, chips, fields, type and colour.

use crate::model::status::{Face, Glyph, Tone};
use crate::parts::button::ButtonStyle;
use crate::parts::icon::{glyph, icon, symbol};
use crate::parts::status::pill;
use crate::text::gallery::{self as words, field};
use crate::text::job::{self, external};
use crate::text::page::projects;
use crate::text::session::{ADOPTED, act};
use crate::text::status;
use crate::views::act_button::ActButton;
use leptos::prelude::*;

/// Weights in their states.
pub fn buttons() -> AnyView {
    let looks = [
        ButtonStyle::Primary,
        ButtonStyle::Soft,
        ButtonStyle::Secondary,
        ButtonStyle::Ghost,
        ButtonStyle::Danger,
    ];
    let rows: Vec<_> = looks.into_iter().zip(words::LOOKS).map(weight).collect();
    view! {
        <div class="grid-buttons">
            <span></span>
            <span class="muted">{words::AT_REST}</span>
            <span class="muted">{words::PENDING}</span>
            <span class="muted">{words::REFUSED}</span>
            {rows}
        </div>
        <div class="line">
            <button type="button" class="btn btn-primary btn-big">{act::OPEN}</button>
            <button type="button" class="btn btn-secondary btn-big">{act::KEEP_RUNNING}</button>
            <button type="button" class="btn btn-ghost btn-icon" aria-label=act::MORE>{icon("more", 20)}</button>
            <button type="button" class="linkish">{act::VIEW}</button>
        </div>
    }
    .into_any()
}

fn weight((look, label): (ButtonStyle, &'static str)) -> AnyView {
    let nothing = Callback::new(|()| ());
    let button = move |is_pending: bool, reason: Option<String>| {
        view! {
            <ActButton
                label=label name=label on_act=nothing look=look symbol=Some("resume")
                reason=reason is_pending=is_pending testid="gallery-button"
            />
        }
    };
    view! {
        <span class="muted">{label}</span>
        <span>{button(false, None)}</span>
        <span>{button(true, None)}</span>
        <span class="line">{button(false, Some(words::A_REASON.to_owned()))}</span>
    }
    .into_any()
}

/// Status words, kinds, chips.
pub fn badges() -> AnyView {
    let faces = [
        (Glyph::Arc, status::STARTING, Tone::Info),
        (Glyph::Dot, status::RUNNING, Tone::Ok),
        (Glyph::DotBar, status::RUNNING_WORKING, Tone::Ok),
        (Glyph::Half, status::STOPPING, Tone::Neutral),
        (Glyph::Square, status::STOPPED, Tone::Neutral),
        (Glyph::Bars, status::INTERRUPTED, Tone::Warn),
        (Glyph::Triangle, status::CRASHED, Tone::Danger),
        (Glyph::Octagon, status::FAILED, Tone::Danger),
        (Glyph::BrokenRing, status::ORPHANED, Tone::Warn),
        (Glyph::ShieldAlert, status::QUARANTINED, Tone::Danger),
        (Glyph::Padlock, status::HELD, Tone::Danger),
        (Glyph::Clock, status::RESTARTING, Tone::Info),
        (Glyph::Diamond, external::WORD, Tone::Violet),
        (Glyph::CheckDisc, job::DONE, Tone::Ok),
        (Glyph::Question, job::BLOCKED, Tone::Warn),
        (Glyph::DottedRing, job::UNKNOWN, Tone::Neutral),
    ]
    .map(|(glyph, word, tone)| Face::new(glyph, word, tone));
    let pills: Vec<_> = faces.iter().map(pill).collect();
    let large: Vec<_> = faces
        .iter()
        .map(|face| view! { <span class=format!("large {}", face.tone.class())>{glyph(face.glyph)}</span> })
        .collect();
    let trust = [
        ("g-shield-ok", projects::TRUSTED, Tone::Ok),
        ("g-shield", projects::NOT_TRUSTED, Tone::Neutral),
    ]
    .map(|(shape, word, tone)| {
        view! { <span class=format!("pill {}", tone.class())>{symbol(shape, "glyph")} {word}</span> }
    });
    view! {
        <div class="line">{pills} {trust}</div>
        <div class="line">{large}</div>
        <div class="line">
            <span class="badge">{status::kind("remote-control", "standard")}</span>
            <span class="badge">{job::KIND}</span>
            <span class="badge">{external::KIND}</span>
        </div>
        <div class="line">
            <span class="chip">{status::spawn_mode_chip("standard", "worktree")}</span>
            <span class="chip">{ADOPTED}</span>
            <span class="chip">{job::REMOTE}</span>
            <span class="chip chip-danger">"bypasses permissions"</span>
            <kbd>"Ctrl"</kbd> <kbd>"K"</kbd>
        </div>
        <div class="line">
            <button type="button" class="filter" aria-pressed="true">{projects::ALL} <span class="num">"4"</span></button>
            <button type="button" class="filter" aria-pressed="false">{projects::LIVE} <span class="num">"1"</span></button>
        </div>
    }
    .into_any()
}

/// Fields.
pub fn fields() -> AnyView {
    view! {
        <div class="grid-fields">
            <label>{field::NAME} <input class="input" placeholder="web-frontend" /> <span class="help">{field::HELP}</span></label>
            <label>{field::FILLED} <input class="input" prop:value=field::NIGHTLY /></label>
            <label>
                {field::BAD} <input class="input" prop:value=field::BAD_TEXT aria-invalid="true" />
                <span class="help help-error">{field::WHY}</span>
            </label>
            <label>{field::PROMPT} <textarea class="input" rows="4"></textarea></label>
            <label>
                {field::CHOICE}
                <span class="select"><select><option>{field::OPTION}</option></select> {icon("chevron-down", 16)}</span>
            </label>
            <label>
                {field::SEARCH}
                <span class="field-box">{icon("search", 16)} <input type="search" placeholder=field::SEARCH_IN /></span>
            </label>
        </div>
        <div class="line">
            <button type="button" class="switch" role="switch" aria-checked="true">{field::ON}</button>
            <button type="button" class="switch" role="switch" aria-checked="false">{field::OFF}</button>
            <label class="line"><input type="checkbox" checked=true /> {field::CHECKED}</label>
            <label class="line"><input type="checkbox" /> {field::UNCHECKED}</label>
            <label class="line"><input type="radio" name="gallery" checked=true /> {field::CHOSEN}</label>
            <label class="line"><input type="radio" name="gallery" /> {field::OTHER}</label>
        </div>
    }
    .into_any()
}

/// Type and colour.
pub fn tokens() -> AnyView {
    let types: Vec<_> =
        words::TYPES.iter().map(|(class, text)| view! { <p class=*class>{*text}</p> }).collect();
    let colours: Vec<_> = words::COLOURS
        .iter()
        .map(|name| view! { <li><span class=format!("swatch swatch-{name}")></span> {*name}</li> })
        .collect();
    view! { <div>{types}</div> <ul class="swatches">{colours}</ul> }.into_any()
}
