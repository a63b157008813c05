//! The terminal itself: raw mode, its size, and what comes from it.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Raw mode, for as long as it is held.
#[derive(Debug)]
pub(super) struct Raw(Option<Termios>);

impl Raw {
    /// Bytes come as they are typed; Ctrl-C is a byte and no signal.
    pub(super) fn enter() -> Self {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut termios) = before.clone() {
            termios.make_raw();
            // A terminal that hung up is noticed when it is read.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &termios);
        }
        Self(before)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before); // as above
        }
    }
}

/// Columns and rows; 80 by 24 where the terminal does not say.
pub(super) fn size() -> (usize, usize) {
    let size = tcgetwinsize(io::stdout()).map(|size| (size.ws_col.into(), size.ws_row.into()));
    match size {
        Ok((cols, rows)) if cols > 0 && rows > 0 => (cols, rows),
        _ => (80, 24),
    }
}

/// Writes all of `bytes` in as few writes as the terminal takes.
pub(super) fn write(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::write(io::stdout(), bytes) {
            Ok(done) => bytes = bytes.get(done..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return, // hung up: the reading side ends the session
        }
    }
}

/// Sends what is typed, and at last nothing, to the loop of `sender`.
pub(super) fn read<E: Send + 'static>(sender: SyncSender<E>, typed: fn(Vec<u8>) -> E) {
    std::thread::spawn(move || forward(io::stdin(), &sender, typed));
}

/// Sends what is written to the named pipe at `path`, again for each writer.
pub(super) fn follow<E: Send + 'static>(
    path: PathBuf,
    sender: SyncSender<E>,
    fed: fn(Vec<u8>) -> E,
) {
    std::thread::spawn(move || {
        // Opening waits for a writer.
        while let Ok(pipe) = File::open(&path) {
            if !forward(pipe, &sender, fed) {
                return;
            }
        }
    });
}

/// False when nobody receives any more.
fn forward<E>(mut from: impl Read, sender: &SyncSender<E>, event: fn(Vec<u8>) -> E) -> bool {
    let mut buffer = [0; 4096];
    loop {
        let part = match from.read(&mut buffer) {
            Ok(length) => buffer.get(..length).unwrap_or_default().to_vec(),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => Vec::new(),
        };
        let over = part.is_empty();
        if sender.send(event(part)).is_err() {
            return false;
        }
        if over {
            return true;
        }
    }
}
