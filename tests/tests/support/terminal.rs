//! A terminal of the tests: a pseudo-terminal whose output is drawn by an emulator.

#![expect(clippy::expect_used, reason = "what a helper of tests cannot do fails the test")]

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::stage::Process;

/// Long enough for a loaded machine; a pass never waits for it.
const DEADLINE: Duration = Duration::from_secs(120);

/// Everything that came so far.
struct Shown {
    parser: vt100::Parser,
    bytes: Vec<u8>,
    over: bool,
}

/// A program on a terminal of its own.
pub struct Terminal {
    pub process: Process,
    pty: File,
    shown: Arc<(Mutex<Shown>, Condvar)>,
}

impl Terminal {
    /// Runs `command` on a terminal of 120 columns and 40 rows.
    pub fn start(command: &Command) -> Self {
        Self::sized(command, 40, 120)
    }

    pub fn sized(command: &Command, rows: u16, cols: u16) -> Self {
        let (pty, pts) = pty_process::blocking::open().expect("a pseudo-terminal");
        pty.resize(pty_process::Size::new(rows, cols)).expect("a size");
        let mut on_it = pty_process::blocking::Command::new(command.get_program())
            .args(command.get_args())
            .env_clear()
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env("TERM", "xterm-256color");
        if let Some(dir) = command.get_current_dir() {
            on_it = on_it.current_dir(dir);
        }
        let child = on_it.spawn(pts).expect("the program runs");
        let pty = File::from(OwnedFd::from(pty));
        let shown = Arc::new((
            Mutex::new(Shown {
                parser: vt100::Parser::new(cells(rows), cells(cols), 1000),
                bytes: Vec::new(),
                over: false,
            }),
            Condvar::new(),
        ));
        let reader = pty.try_clone().expect("a second descriptor");
        let drawn = Arc::clone(&shown);
        std::thread::spawn(move || draw(reader, &drawn));
        Self { process: Process::of(child), pty, shown }
    }

    /// Waits until the screen holds `part`, and returns its text.
    #[track_caller]
    pub fn until(&self, part: &str) -> String {
        self.until_screen(part, |text| text.contains(part))
    }

    /// Waits until `look` accepts the screen: its rows, separated by line feeds.
    #[track_caller]
    pub fn until_screen(&self, what: &str, look: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + DEADLINE;
        let (lock, changed) = &*self.shown;
        let mut shown = lock.lock().expect("no reader panics");
        loop {
            let text = shown.parser.screen().contents();
            if look(&text) {
                return text;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !shown.over, "{what:?} did not come:\n{text}");
            shown = changed.wait_timeout(shown, left).expect("no reader panics").0;
        }
    }

    /// Waits until the program has written `part`.
    #[track_caller]
    pub fn until_bytes(&self, part: &str) {
        let (lock, changed) = &*self.shown;
        let shown = lock.lock().expect("no reader panics");
        let absent = |shown: &mut Shown| {
            let found = shown.bytes.windows(part.len()).any(|at| at == part.as_bytes());
            !found && !shown.over
        };
        let (shown, late) =
            changed.wait_timeout_while(shown, DEADLINE, absent).expect("no reader panics");
        assert!(!late.timed_out() && !shown.over, "{part:?} did not come");
    }

    /// Waits until the program has closed the terminal; returns all bytes it wrote.
    #[track_caller]
    pub fn until_over(&self) -> Vec<u8> {
        let (lock, changed) = &*self.shown;
        let shown = lock.lock().expect("no reader panics");
        let over = |shown: &mut Shown| !shown.over;
        let (shown, late) =
            changed.wait_timeout_while(shown, DEADLINE, over).expect("no reader panics");
        assert!(!late.timed_out(), "the terminal stays open");
        shown.bytes.clone()
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.shown.0.lock().expect("no reader panics").bytes.clone()
    }

    pub fn text(&self) -> String {
        self.shown.0.lock().expect("no reader panics").parser.screen().contents()
    }

    pub fn send(&self, text: &str) {
        (&self.pty).write_all(text.as_bytes()).expect("the program reads");
    }

    pub fn resize(&self, rows: u16, cols: u16) {
        let size =
            rustix::termios::Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.pty, size).expect("a terminal");
        let mut shown = self.shown.0.lock().expect("no reader panics");
        shown.parser.screen_mut().set_size(cells(rows), cells(cols));
    }
}

fn draw(mut from: File, shown: &(Mutex<Shown>, Condvar)) {
    let mut buffer = [0; 4096];
    loop {
        // The terminal reports an error once its last user is gone.
        let length = from.read(&mut buffer).unwrap_or(0);
        let part = buffer.get(..length).unwrap_or_default();
        let mut shown_now = shown.0.lock().expect("no waiter panics");
        shown_now.parser.process(part);
        shown_now.bytes.extend_from_slice(part);
        shown_now.over = part.is_empty();
        shown.1.notify_all();
        if part.is_empty() {
            return;
        }
    }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a terminal has rows and columns")
}
