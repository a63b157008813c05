//! The questions of a first start: the theme, and trust in the directory.

use std::sync::mpsc::Receiver;

use serde_json::{Map, Value, json};
use signal_hook::consts::SIGWINCH;

use super::keys::{Key, Keys};
use super::screen::{Block, Line, Screen};
use super::session::Event;
use crate::sim::double::Double;
use crate::sim::files;

/// A question that stands before the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialog {
    Theme,
    Trust,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Accepted,
    Leave(u8),
}

/// Asks until somebody answers or the process is told to end.
pub(super) fn ask(
    double: &Double,
    dialog: Dialog,
    screen: &mut Screen,
    receiver: &Receiver<Event>,
) -> Answer {
    screen.print(lines(double, dialog));
    let mut keys = Keys::default();
    for event in receiver {
        let typed = match event {
            // Agent 2.1.197 leaves at once, with 0.
            Event::Signal(SIGWINCH) => {
                screen.resize();
                continue;
            }
            Event::Signal(_) => return Answer::Leave(0),
            Event::Fed(_) | Event::Decided(..) => continue,
            Event::Typed(bytes) if bytes.is_empty() => return Answer::Leave(1),
            Event::Typed(bytes) => keys.feed(&bytes),
        };
        for key in typed {
            match key {
                Key::Enter => {
                    accept(double, dialog);
                    screen.show(Block::default());
                    return Answer::Accepted;
                }
                Key::Text(text) if text == "1" => {
                    accept(double, dialog);
                    return Answer::Accepted;
                }
                Key::Text(text) if text == "2" && dialog == Dialog::Trust => {
                    return Answer::Leave(1);
                }
                Key::Escape | Key::Interrupt => return Answer::Leave(1),
                Key::Text(_)
                | Key::Backspace
                | Key::Clear
                | Key::FocusIn
                | Key::FocusOut
                | Key::Attributes(_)
                | Key::Version(_) => {}
            }
        }
    }
    Answer::Leave(1)
}

/// The words of agent 2.1.197.
fn lines(double: &Double, dialog: Dialog) -> Vec<Line> {
    let rule = "\x1b[38;5;220m";
    let plain = |text: &str| Line::new("", 1, text);
    match dialog {
        Dialog::Theme => vec![
            Line::new(rule, 0, format!("Welcome to Claude Code v{}", double.profile.version())),
            plain("Let's get started."),
            Line::new("\x1b[1m", 1, "Choose the text style that looks best with your terminal"),
            plain("To change this later, run /theme"),
            plain("❯ 1. Dark mode ✔"),
            plain("  2. Light mode"),
        ],
        Dialog::Trust => vec![
            Line::new(rule, 0, "────────────────────"),
            Line::new("\x1b[38;5;220m\x1b[1m", 1, "Accessing workspace:"),
            plain(""),
            Line::new("\x1b[1m", 1, double.cwd.to_string_lossy()),
            plain(""),
            plain(
                "Quick safety check: Is this a project you created or one you trust? (Like your \
                 own code, a well-known open source project, or work from your team). If not, \
                 take a moment to review what's in this folder first.",
            ),
            plain(""),
            plain("Claude Code'll be able to read, edit, and execute files here."),
            plain(""),
            plain("❯ 1. Yes, I trust this folder"),
            plain("  2. No, exit"),
            plain(""),
            Line::new("\x1b[38;5;246m", 1, "Enter to confirm · Esc to cancel"),
        ],
    }
}

/// Writes the answer to the agent's configuration.
fn accept(double: &Double, dialog: Dialog) {
    let config = double.home.config().unwrap_or_default();
    let mut fields = match config {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    match dialog {
        Dialog::Theme => {
            fields.insert("hasCompletedOnboarding".into(), json!(true));
        }
        Dialog::Trust => {
            let projects = fields.entry("projects").or_insert_with(|| json!({}));
            let key = double.cwd.to_string_lossy().into_owned();
            if let Some(projects) = projects.as_object_mut() {
                projects.insert(key, json!({ "hasTrustDialogAccepted": true }));
            }
        }
    }
    // Best effort, as in the agent: the question comes again.
    let _ = files::replace(
        double.home.config_file(),
        format!("{:#}", Value::Object(fields)).as_bytes(),
    );
}
