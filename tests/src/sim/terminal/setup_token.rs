//! `setup-token`: a sign-in drawn on a terminal, ended by knob `login`.

use std::sync::mpsc::{Receiver, sync_channel};

use super::tty;
use crate::sim::console::{hang, pause};
use crate::sim::double::Double;
use crate::sim::failure::Failure;
use crate::sim::ids::Draw;
use crate::sim::login;
use crate::sim::values::Login;

/// Runs the sign-in to its end. The token is printed and kept nowhere.
pub(crate) fn run(double: &Double) -> Result<u8, Failure> {
    let kind = double.knobs.login;
    let (sender, typed) = sync_channel(16);
    let raw = tty::Raw::enter();
    tty::read(sender, |bytes| bytes);
    let (columns, _) = tty::size();
    draw("\u{1b}[?25l\u{1b}[2J\u{1b}[H Opening browser to sign in…");
    if let Login::SlowUrl(ms) = kind {
        pause(ms);
    }
    let mut screen = String::new();
    if kind == Login::DecoyUrl {
        screen.push_str(" Trouble? Read https://docs.example.invalid/oauth/authorize first.\n\n");
    }
    if kind != Login::NoUrl {
        screen.push_str(" Browser didn't open? Use the url below to sign in:\n\n");
        screen.push_str(&broken(&login::url(double), columns));
        screen.push_str("\n\n");
    }
    if kind == Login::UrlThenExit {
        show(&format!("{screen} OAuth error: the callback server could not be started\n"));
        return Ok(1);
    }
    let code = loop {
        let prompt = " Paste code here if prompted > ";
        show(&format!("{screen}{prompt}"));
        let code = line(&typed, &format!("{screen}{prompt}"));
        if code.contains('#') || code.is_empty() {
            break code;
        }
        show(&format!("{screen} OAuth error: Invalid code. Press Enter to retry.\n"));
        line(&typed, &screen);
    };
    match kind {
        // Agent 2.1.197 waits for the browser when nobody can type.
        _ if code.is_empty() => hang(),
        Login::HangAfterCode => hang(),
        Login::Reject => {
            show(" OAuth error: Request failed with status code 400\n\n Press Enter to retry.\n");
            line(&typed, "");
            return Ok(1);
        }
        _ => {}
    }
    let mut draw_token = Draw::new(double.knobs.seed, &["setup-token"]);
    let token = format!("sk-ant-oat01-{}{}AA", draw_token.hex(), draw_token.hex());
    show(&format!(
        " ✓ Long-lived authentication token created successfully!\n\n Your OAuth token (valid for \
         1 year):\n\n{}\n\n Store this token securely. You won't be able to see it again.\n",
        broken(&token, columns)
    ));
    drop(raw);
    draw("\u{1b}[?25h");
    Ok(0)
}

/// Breaks a long word at the edge, as the agent does itself.
fn broken(word: &str, columns: usize) -> String {
    let bytes = word.as_bytes().chunks(columns.max(1));
    let rows: Vec<_> = bytes.map(String::from_utf8_lossy).collect();
    rows.join("\n")
}

fn show(screen: &str) {
    draw(&format!("\u{1b}[2J\u{1b}[H{}", screen.replace('\n', "\r\n")));
}

fn draw(text: &str) {
    tty::write(text.as_bytes());
}

/// What is typed up to Enter; empty when nobody can type.
///
/// A piece that holds more than Enter is something pasted, with its line ends.
fn line(typed: &Receiver<Vec<u8>>, screen: &str) -> String {
    let mut line = String::new();
    loop {
        match typed.recv() {
            Ok(piece) if piece == b"\r" => return line.trim().to_owned(),
            Ok(piece) if !piece.is_empty() => {
                line.push_str(&String::from_utf8_lossy(&piece));
                show(&format!("{screen}{}", "*".repeat(line.trim().chars().count())));
            }
            Ok(_) | Err(_) => return String::new(),
        }
    }
}
