//! The secret that service and daemon share.
//!
//! It is 64 hexadecimal digits in a private file.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;
use svc_process::files;

const LENGTH: usize = 64;
/// Whoever loses the race to create the file waits so long for the winner's bytes.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Reads the token of this installation, or makes it. Blocks.
///
/// A file that stays blank for a second is replaced: its writer died.
///
/// # Errors
/// The file can neither be read nor written.
pub fn read_or_create(path: &Path) -> io::Result<String> {
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let token = random()?;
            file.write_all(token.as_bytes())?;
            file.sync_all()?;
            return Ok(token);
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    for _ in 0..TRIES {
        if let Some(token) = read(path)? {
            return Ok(token);
        }
        std::thread::sleep(PAUSE);
    }
    let token = random()?;
    files::replace(path, token.as_bytes()).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(token)
}

/// The token in the file; `None` when there is none in it.
fn read(path: &Path) -> io::Result<Option<String>> {
    let bytes = files::read_plain(path, 1024)?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    let token = text.trim();
    let fits = token.len() == LENGTH && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    Ok(fits.then(|| token.to_owned()))
}

fn random() -> io::Result<String> {
    let mut bytes = [0; LENGTH / 2];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_a_blank_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let first = read_or_create(&path).unwrap();
        assert_eq!(first.len(), LENGTH);
        assert_eq!(read_or_create(&path).unwrap(), first);
        std::fs::write(&path, "").unwrap();
        let second = read_or_create(&path).unwrap();
        assert!(second.len() == LENGTH && second != first);
    }
}
