//! The bridge pointer: the agent's note of a directory's remote environment.

use serde_json::{Map, Value, json};
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use svc_domain::identity::Pid;
use svc_process::files::{FileError, replace};
use svc_shared::Timestamp;

/// Largest pointer file. Real ones have some hundred bytes.
const SIZE_CAP: u64 = 64 * 1024;

/// Deepest nesting of a pointer file.
const DEPTH_CAP: u32 = 32;

/// Larger integers are not exact in the agent's own language.
const INTEGER_CAP: u64 = 1 << 53;

/// How long after its last write the agent reuses a pointer (agent 2.1.197).
pub const REUSE_WINDOW: Duration = Duration::from_secs(4 * 60 * 60);

/// Age after which the pointer of an ended bridge may be removed.
pub const GARBAGE_AGE: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// The content of a pointer file.
#[derive(Clone, PartialEq, Eq)]
pub struct Pointer {
    /// The remote session; `None` after a strip. A credential: never shown.
    pub session_id: Option<String>,
    /// The remote environment. A credential: never shown.
    pub environment_id: Option<String>,
    /// `standalone` for Server Mode, `repl` for the flag form, or a newer agent's word.
    pub source: String,
    /// The bridge process; `None` when the pid is missing or impossible.
    pub pid: Option<Pid>,
    /// Start of that process in clock ticks since boot.
    pub start_ticks: Option<u64>,
    /// When the file was last written.
    pub written_at: Timestamp,
}

/// Leaves out session and environment.
impl std::fmt::Debug for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pointer")
            .field("source", &self.source)
            .field("pid", &self.pid)
            .field("start_ticks", &self.start_ticks)
            .field("written_at", &self.written_at)
            .finish_non_exhaustive()
    }
}

impl Pointer {
    /// Until when the agent offers the environment for reuse.
    #[must_use]
    pub fn reuse_expires_at(&self) -> Timestamp {
        self.written_at.plus(REUSE_WINDOW)
    }

    /// Whether the pointer is older than the boot at `boot`.
    /// Then its pid and ticks mean nothing now (F49).
    #[must_use]
    pub fn is_before(&self, boot: Timestamp) -> bool {
        self.written_at < boot
    }

    /// Whether it may be removed if its bridge does not live.
    #[must_use]
    pub fn is_garbage(&self, now: Timestamp) -> bool {
        now.since(self.written_at) > GARBAGE_AGE
    }
}

/// What is at the path of a pointer.
#[derive(Debug)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A pointer.
    Pointer(Pointer),
    /// Something that is no pointer. It counts as none.
    Malformed(&'static str),
    /// It exists but cannot be read. It is not deleted, and reported (F51).
    Unreadable(io::Error),
}

/// Reads a pointer file, bounded in size, depth and numbers.
/// Never waits for a pipe. Blocks.
#[must_use]
pub fn read(path: &Path) -> Found {
    let file = match crate::regular_file::open_regular(path) {
        Ok(file) => file,
        Err(error) => return not_opened(error),
    };
    let mut bytes = Vec::new();
    let facts = match file.metadata() {
        Ok(facts) => facts,
        Err(error) => return Found::Unreadable(error),
    };
    if let Err(error) = file.take(SIZE_CAP + 1).read_to_end(&mut bytes) {
        return Found::Unreadable(error);
    }
    let written = facts.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let millis = written.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(0);
    match parse(&bytes, Timestamp::from_millis(millis)) {
        Ok(pointer) => Found::Pointer(pointer),
        Err(why) => {
            tracing::debug!(path = %path.display(), "ignored a bridge pointer: {why}");
            Found::Malformed(why)
        }
    }
}

fn not_opened(error: io::Error) -> Found {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Found::Nothing,
        io::ErrorKind::InvalidInput => Found::Malformed("it is not a regular file"),
        // A link, which the agent never creates.
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            Found::Malformed("it is a link")
        }
        _ => Found::Unreadable(error),
    }
}

fn parse(bytes: &[u8], written_at: Timestamp) -> Result<Pointer, &'static str> {
    if bytes.len() as u64 > SIZE_CAP {
        return Err("it is too large");
    }
    let document: Value = serde_json::from_slice(bytes).map_err(|_| "it is not JSON")?;
    check(&document, DEPTH_CAP)?;
    let fields = document.as_object().ok_or("it is not an object")?;
    Ok(Pointer {
        session_id: text(fields, "sessionId")?,
        environment_id: text(fields, "environmentId")?,
        source: fields.get("source").and_then(Value::as_str).ok_or("it has no source")?.to_owned(),
        // With invalid values no process can be found, but its environment can still be used.
        pid: fields.get("pid").and_then(Value::as_i64).and_then(Pid::new),
        start_ticks: fields
            .get("procStart")
            .and_then(Value::as_str)
            .and_then(|raw| raw.parse().ok()),
        written_at,
    })
}

/// A text that is not empty.
fn text(fields: &Map<String, Value>, key: &str) -> Result<Option<String>, &'static str> {
    match fields.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok((!text.is_empty()).then(|| text.clone())),
        Some(_) => Err("an identifier in it is not a text"),
    }
}

fn check(value: &Value, depth: u32) -> Result<(), &'static str> {
    let deeper = depth.checked_sub(1).ok_or("it is nested too deep")?;
    match value {
        Value::Number(number) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            if size.is_some_and(|size| size > INTEGER_CAP) {
                return Err("a number in it is too large");
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| check(item, deeper)),
        Value::Object(fields) => fields.values().try_for_each(|field| check(field, deeper)),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

/// Whether a strip keeps a copy of the first pointer it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backup {
    /// `<file>.bak`, once.
    Once,
    /// Keeps no copy.
    None,
}

/// The result of a strip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stripped {
    /// There was no pointer, or it named no session any more.
    Nothing,
    /// It now names only its environment.
    Rewritten,
    /// It had no environment, so it was removed.
    Deleted,
}

/// Why a pointer was not stripped.
#[derive(Debug, thiserror::Error)]
pub enum StripError {
    /// The agent wrote it meanwhile. The caller must check again whether it is live.
    #[error("the bridge pointer changed while it was judged; nothing was done to it")]
    Changed,
    /// It could not be read, replaced or removed.
    #[error("the bridge pointer cannot be changed; check the permissions of the agent home")]
    File(#[source] io::Error),
    /// It could not be replaced.
    #[error(transparent)]
    Replace(#[from] FileError),
}

/// Removes the session from a pointer and keeps the environment.
/// The next bridge of the directory then reuses it with a new session. If the pointer were deleted,
/// agent 2.1.280 and later would refuse the directory. A malformed file is deleted.
///
/// `judged` is the pointer that the caller found not live. If the file has another one by now, nothing
/// is done. Blocks.
///
/// # Errors
/// See [`StripError`].
pub fn strip(path: &Path, judged: &Pointer, backup: Backup) -> Result<Stripped, StripError> {
    let current = match read(path) {
        Found::Nothing => return Ok(Stripped::Nothing),
        Found::Unreadable(error) => return Err(StripError::File(error)),
        Found::Malformed(_) => {
            save(path, backup)?;
            fs::remove_file(path).map_err(StripError::File)?;
            return Ok(Stripped::Deleted);
        }
        Found::Pointer(pointer) => pointer,
    };
    if current != *judged {
        return Err(StripError::Changed);
    }
    if current.session_id.is_none() && current.environment_id.is_some() {
        return Ok(Stripped::Nothing);
    }
    save(path, backup)?;
    let Some(environment) = &current.environment_id else {
        fs::remove_file(path).map_err(StripError::File)?;
        return Ok(Stripped::Deleted);
    };
    let mut stripped = json!({
        "sessionId": "",
        "environmentId": environment,
        "source": current.source,
    });
    if let (Some(fields), Some(pid)) = (stripped.as_object_mut(), current.pid) {
        fields.insert("pid".to_owned(), pid.get().into());
        let ticks = current.start_ticks.map(|ticks| Value::from(ticks.to_string()));
        fields.extend(ticks.map(|ticks| ("procStart".to_owned(), ticks)));
    }
    replace(path, stripped.to_string().as_bytes())?;
    Ok(Stripped::Rewritten)
}

/// Removes a malformed pointer file that is old enough to be removed.
/// Links and everything else that is no plain file stay. Blocks.
///
/// # Errors
/// It could not be removed.
pub fn remove_malformed(path: &Path, now: Timestamp) -> Result<Stripped, StripError> {
    let Ok(facts) = crate::regular_file::open_regular(path).and_then(|file| file.metadata()) else {
        return Ok(Stripped::Nothing);
    };
    let written = facts.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let written = written.and_then(|since| i64::try_from(since.as_millis()).ok());
    let is_old = written.is_some_and(|at| now.since(Timestamp::from_millis(at)) > GARBAGE_AGE);
    if !is_old || !matches!(read(path), Found::Malformed(_)) {
        return Ok(Stripped::Nothing);
    }
    fs::remove_file(path).map_err(StripError::File)?;
    Ok(Stripped::Deleted)
}

fn save(path: &Path, backup: Backup) -> Result<(), StripError> {
    let mut copy = path.as_os_str().to_owned();
    copy.push(".bak");
    let copy = Path::new(&copy);
    if backup == Backup::None || fs::symlink_metadata(copy).is_ok() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    let read = crate::regular_file::open_regular(path)
        .and_then(|file| file.take(SIZE_CAP).read_to_end(&mut bytes));
    if read.is_ok() {
        replace(copy, &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs::File;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::PathBuf;

    const LIVE: &str = r#"{"sessionId":"session_01A","environmentId":"env_01A","source":"standalone",
        "pid":4242,"procStart":"77010","future":[1]}"#;

    fn bench(text: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("bridge-pointer.json");
        fs::write(&path, text).unwrap();
        (root, path)
    }

    /// Runs one test of this program as a user who is bound by the modes of files.
    fn run_again_as_nobody(test: &str) {
        use std::os::unix::fs::chown;
        use std::os::unix::process::CommandExt as _;
        const NOBODY: u32 = 65_534;
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("tests");
        // A copy, because the build's folder may be closed to other users.
        svc_programs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        let mut command = std::process::Command::new(&program);
        command.args(["--exact", test]).env("TMPDIR", dir.path());
        let ran = command.uid(NOBODY).gid(NOBODY).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    }

    fn pointer(text: &[u8]) -> Option<Pointer> {
        let (_root, path) = bench(text);
        match read(&path) {
            Found::Pointer(pointer) => Some(pointer),
            Found::Malformed(_) => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_pointer_names_process_session_and_environment() {
        let found = pointer(LIVE.as_bytes()).unwrap();
        assert_eq!(found.pid, Pid::new(4242));
        assert_eq!(found.start_ticks, Some(77_010));
        assert_eq!(found.environment_id.as_deref(), Some("env_01A"));
        assert_eq!(found.reuse_expires_at().since(found.written_at), REUSE_WINDOW);
        assert!(!format!("{found:?}").contains("01A"));
        let bare = pointer(br#"{"sessionId":"","environmentId":"env_1","source":"next"}"#).unwrap();
        assert_eq!((bare.pid, bare.session_id, bare.source.as_str()), (None, None, "next"));
    }

    /// F7.
    #[test]
    fn f7_impossible_pids_leave_a_pointer_unattributable() {
        for pid in ["-1", "0", "1", "2147483648", "true", "\"12\"", "1e3", "null", "{}"] {
            let found = pointer(LIVE.replace("4242", pid).as_bytes()).unwrap();
            assert_eq!(found.pid, None, "{pid}");
        }
        for ticks in ["77010", "\"-1\"", "\"\"", "\"7e3\""] {
            let found = pointer(LIVE.replace("\"77010\"", ticks).as_bytes()).unwrap();
            assert_eq!(found.start_ticks, None, "{ticks}");
        }
    }

    /// F50.
    #[test]
    fn f50_hostile_files_are_no_pointers() {
        let deep = |n| LIVE.replace("[1]", &format!("{}{}", "[".repeat(n), "]".repeat(n)));
        let number = |digits: &str| LIVE.replace("[1]", digits);
        for text in [
            b"\xff\xfe".to_vec(),
            b"".to_vec(),
            b"[]".to_vec(),
            b"{}".to_vec(),
            LIVE.as_bytes()[..40].to_vec(),
            deep(33).into_bytes(),
            deep(5000).into_bytes(),
            number(&"9".repeat(5000)).into_bytes(),
            number("9007199254740993").into_bytes(),
            LIVE.replace("\"env_01A\"", "5").into_bytes(),
            LIVE.replace("\"standalone\"", "null").into_bytes(),
        ] {
            assert_eq!(pointer(&text), None, "{}", String::from_utf8_lossy(&text));
        }
        let (_root, path) = bench(b"");
        File::create(&path).unwrap().set_len(100 << 20).unwrap();
        assert!(matches!(read(&path), Found::Malformed("it is too large")));
        fs::remove_file(&path).unwrap();
        assert!(matches!(read(&path), Found::Nothing));
        symlink("/dev/zero", &path).unwrap();
        assert!(matches!(read(&path), Found::Malformed(_)));
    }

    #[test]
    fn a_pointer_of_an_earlier_boot_is_recognised() {
        let found = pointer(LIVE.as_bytes()).unwrap();
        let (before, after) = (found.written_at.as_millis() - 1, found.written_at.as_millis() + 1);
        assert!(!found.is_before(Timestamp::from_millis(before)));
        assert!(found.is_before(Timestamp::from_millis(after)));
        let days = |days: u64| found.written_at.plus(Duration::from_secs(days * 24 * 60 * 60));
        assert!(!found.is_garbage(days(14)));
        assert!(found.is_garbage(days(15)));
    }

    #[test]
    fn a_strip_keeps_the_environment_and_one_copy() {
        let (root, path) = bench(LIVE.as_bytes());
        let Found::Pointer(judged) = read(&path) else { panic!("a pointer") };
        assert_eq!(strip(&path, &judged, Backup::Once).unwrap(), Stripped::Rewritten);
        let Found::Pointer(left) = read(&path) else { panic!("a pointer") };
        assert_eq!(left.session_id, None);
        assert_eq!(left.environment_id, judged.environment_id);
        assert_eq!((left.pid, left.start_ticks), (judged.pid, judged.start_ticks));
        let copy = root.path().join("bridge-pointer.json.bak");
        assert_eq!(fs::read_to_string(&copy).unwrap(), LIVE);

        let before = fs::read(&path).unwrap();
        assert_eq!(strip(&path, &left, Backup::Once).unwrap(), Stripped::Nothing);
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_pointer_that_changed_since_it_was_judged_is_left_alone() {
        let (_root, path) = bench(LIVE.as_bytes());
        let Found::Pointer(judged) = read(&path) else { panic!("a pointer") };
        fs::write(&path, LIVE.replace("4242", "4243")).unwrap();
        assert!(matches!(strip(&path, &judged, Backup::Once), Err(StripError::Changed)));
        assert!(fs::read_to_string(&path).unwrap().contains("session_01A"));

        fs::write(&path, "{").unwrap();
        assert_eq!(strip(&path, &judged, Backup::None).unwrap(), Stripped::Deleted);
        assert_eq!(strip(&path, &judged, Backup::None).unwrap(), Stripped::Nothing);
    }

    /// F51.
    ///
    /// As root every file is readable, so the test runs itself again as another user.
    #[test]
    fn f51_an_unreadable_pointer_is_reported_and_stays() {
        let (_root, path) = bench(LIVE.as_bytes());
        let Found::Pointer(judged) = read(&path) else { panic!("a pointer") };
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        if rustix::process::geteuid().is_root() {
            return run_again_as_nobody(
                "pointer::tests::f51_an_unreadable_pointer_is_reported_and_stays",
            );
        }
        assert!(matches!(read(&path), Found::Unreadable(_)));
        assert!(strip(&path, &judged, Backup::Once).is_err());
        assert!(path.exists());
    }

    proptest! {
        #[test]
        fn f50_a_pointer_with_broken_bytes_names_no_dangerous_process_and_shows_no_session(
            at in any::<prop::sample::Index>(),
            cut in 0_usize..6,
            put in prop::collection::vec(any::<u8>(), 0..6),
        ) {
            let mut bytes = LIVE.as_bytes().to_vec();
            let from = at.index(bytes.len());
            let to = (from + cut).min(bytes.len());
            bytes.splice(from..to, put);
            if let Ok(found) = parse(&bytes, Timestamp::from_millis(0)) {
                prop_assert!(found.pid.is_none_or(|pid| pid.get() > 1));
                let shown = format!("{found:?}");
                for id in [&found.session_id, &found.environment_id].into_iter().flatten() {
                    prop_assert!(!id.is_empty());
                    prop_assert!(id.len() < 8 || !shown.contains(id.as_str()));
                }
            }
        }

        #[test]
        fn what_a_strip_leaves_is_the_same_pointer_without_its_session(
            environment in "\\PC{1,20}", source in "\\PC{0,8}",
            pid in prop::option::of(2_i32..), ticks: u64,
        ) {
            let text = match pid {
                Some(pid) => json!({
                    "sessionId": "session_1", "environmentId": environment, "source": source,
                    "pid": pid, "procStart": ticks.to_string(),
                }),
                None => json!({"environmentId": environment, "source": source}),
            };
            let (_root, path) = bench(text.to_string().as_bytes());
            let Found::Pointer(judged) = read(&path) else { panic!("a pointer") };
            strip(&path, &judged, Backup::None).unwrap();
            let Found::Pointer(left) = read(&path) else { panic!("a pointer") };
            let expected = Pointer { session_id: None, written_at: left.written_at, ..judged };
            prop_assert!(left == expected, "{:?}", left);
        }
    }
}
