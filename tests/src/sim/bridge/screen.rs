//! What the bridge prints for people: the captured output, colours included.

use std::path::Path;

use super::args::{Args, Spawn};
use crate::sim::console::print;
use crate::sim::double::Double;
use crate::sim::trust;

/// The banner at the start of the poll loop and the first state line.
pub(super) fn banner(double: &Double, args: &Args, environment: Option<&str>) {
    let mut text = String::new();
    if args.verbose {
        text.push_str(&format!("\x1b[2mRemote Control\x1b[22m v{}\n", double.profile.version()));
        if args.spawn != Spawn::Session {
            text.push_str(&format!("\x1b[2mSpawn mode: \x1b[22m{}\n", args.spawn.logged()));
            text.push_str(&format!(
                "\x1b[2mMax concurrent sessions: \x1b[22m{}\n",
                args.capacity()
            ));
        }
        if let Some(id) = environment {
            text.push_str(&format!("\x1b[2mEnvironment ID: \x1b[22m{id}\n"));
        }
    }
    let place = place(&double.cwd);
    text.push_str(&format!("\n\x1b[33m·\x1b[39m \x1b[33mConnecting\x1b[39m{place}\n\x1b[1A\x1b[J"));
    let ready = if double.profile.is_future() { "Standing by" } else { "Ready" };
    text.push_str(&format!("\x1b[32m·✔︎·\x1b[39m \x1b[32m{ready}\x1b[39m{place}\n"));
    let sessions = match args.spawn {
        Spawn::Session => "Single session · exits when complete".to_owned(),
        Spawn::SameDir => format!(
            "Capacity: 0/{} · New sessions will be created in the current directory",
            args.capacity()
        ),
        Spawn::Worktree => format!(
            "Capacity: 0/{} · New sessions will be created in an isolated worktree",
            args.capacity()
        ),
    };
    text.push_str(&format!("    \x1b[2m{sessions}\x1b[22m\n"));
    if let Some(id) = environment {
        text.push_str(&format!(
            "\n\x1b[2mContinue coding in the Claude app or \
             https://claude.ai/code?environment={id}\x1b[22m\n\
             \x1b[2m\x1b[3mspace to show QR code\x1b[23m\x1b[22m\n"
        ));
    }
    print(&text);
}

fn place(cwd: &Path) -> String {
    let name = cwd.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    format!(
        "\x1b[2m · \x1b[22m\x1b[2m{name}\x1b[22m\x1b[2m · \x1b[22m\x1b[2m{}\x1b[22m",
        trust::branch(cwd)
    )
}

/// One line of status with the time.
pub(super) fn status(text: &str) {
    print(&format!("\x1b[2m[{}]\x1b[22m {text}\n", clock()));
}

/// One line of an error with the time.
pub(super) fn error(text: &str) {
    print(&format!("\x1b[31m[{}] Error: {text}\x1b[39m\n", clock()));
}

/// Local time is not needed: the captured output shows a clock for people only.
fn clock() -> String {
    let now = time::OffsetDateTime::now_utc();
    format!("{:02}:{:02}:{:02}", now.hour(), now.minute(), now.second())
}
