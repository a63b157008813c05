//! Whether this program would come up on a state directory, without touching it.
//!
//! A service asks the program that is to follow it: that one alone knows which schema it reads.

use rustix::fs::{Access, Mode, OFlags, access, open};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use svc_process::run_lock::RUN_LOCK_FILE;

/// What a program that would start says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartCheck {
    /// Its version.
    pub version: String,
    /// The schema of the registry, where there is one.
    pub found_schema: Option<i64>,
    /// The newest schema that it knows.
    pub known_schema: i64,
}

/// Judges state directory, lock and registry as a start would.
///
/// # Errors
/// What would stop the start, and what to do.
pub async fn start_check(state_dir: &Path) -> Result<StartCheck, String> {
    let of = state_dir.to_owned();
    let places = tokio::task::spawn_blocking(move || places(&of)).await;
    places.map_err(|error| error.to_string())??;
    let schemas = svc_store::schemas(state_dir).await.map_err(|error| error.to_string())?;
    Ok(StartCheck {
        version: crate::VERSION.to_owned(),
        found_schema: schemas.found,
        known_schema: schemas.known,
    })
}

fn places(state_dir: &Path) -> Result<(), String> {
    let shown = state_dir.display();
    let meta = match std::fs::metadata(state_dir) {
        Ok(meta) => meta,
        Err(_) => return creatable(state_dir),
    };
    if !meta.is_dir() {
        return Err(format!("the state directory {shown} is no directory; correct `state_dir`"));
    }
    let user = rustix::process::geteuid().as_raw();
    if meta.uid() != user {
        let owner = meta.uid();
        return Err(format!(
            "the state directory {shown} belongs to user {owner} and not to user {user}, who runs \
             this; correct `state_dir` or its owner"
        ));
    }
    access(state_dir, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
        format!("the state directory {shown} cannot be written ({error}); correct its mode")
    })?;
    let lock = state_dir.join(RUN_LOCK_FILE);
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    match open(&lock, flags, Mode::empty()) {
        Ok(file) => {
            let is_file = std::fs::File::from(file).metadata().is_ok_and(|meta| meta.is_file());
            let refused = || format!("the lock {} is no regular file; remove it", lock.display());
            is_file.then_some(()).ok_or_else(refused)
        }
        Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(format!("the lock {} cannot be used: {error}", lock.display())),
    }
}

/// Whether a directory that is not there could be made.
fn creatable(path: &Path) -> Result<(), String> {
    let above = path.ancestors().skip(1).find(|above| above.exists()).unwrap_or(Path::new("/"));
    access(above, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
        let (shown, above) = (path.display(), above.display());
        format!("the state directory {shown} cannot be made in {above} ({error})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[tokio::test]
    async fn h114_what_would_stop_a_start_is_named_and_nothing_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let absent = dir.path().join("state");
        let fit = start_check(&absent).await.unwrap();
        assert_eq!((fit.found_schema, fit.version.as_str()), (None, crate::VERSION));
        assert!(!absent.exists() && fit.known_schema > 0);
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(start_check(&file).await.unwrap_err().contains("no directory"));
        assert!(start_check(&file.join("below")).await.unwrap_err().contains("cannot be made"));
        fs::create_dir(&absent).unwrap();
        let lock = absent.join(RUN_LOCK_FILE);
        symlink("/dev/null", &lock).unwrap();
        assert!(start_check(&absent).await.unwrap_err().contains("lock"));
        fs::remove_file(&lock).unwrap();
        fs::create_dir(&lock).unwrap();
        assert!(start_check(&absent).await.unwrap_err().contains("lock"));
        fs::remove_dir(&lock).unwrap();
        fs::write(absent.join("svc.db"), "no database").unwrap();
        assert!(start_check(&absent).await.unwrap_err().contains("svc.db"));
    }
}
