//! Archives written and read again, cut short, and larger than allowed.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is how they fail")]

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::rc::Rc;
use svc_archive::{
    Added, Area, FORMAT, Facts, FileEntry, HasRoom, Limits, Manifest, MemberPath, ReadError,
    SCHEMA_VERSION, Sink, Source, Stop, Writer, read,
};
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

const FACTS: Facts = Facts { mode: 0o600, mtime: 1_700_000_000 };

/// Keeps the names and contents that it is given.
#[derive(Default)]
struct Kept(Vec<(String, Vec<u8>)>);

impl Sink for Kept {
    fn directory(&mut self, path: &MemberPath) -> io::Result<()> {
        self.0.push((format!("{path}/"), Vec::new()));
        Ok(())
    }

    fn file(&mut self, path: &MemberPath, facts: Facts, content: &mut dyn Read) -> io::Result<()> {
        assert_eq!(facts, FACTS);
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        self.0.push((path.to_string(), bytes));
        Ok(())
    }
}

fn manifest() -> Manifest {
    Manifest {
        created: "2025-01-31T23:59:59.000Z".to_owned(),
        schema_version: SCHEMA_VERSION,
        format: FORMAT,
        has_state_dir: true,
        has_config: false,
        svc_version: "0.1.0".to_owned(),
        db_user_version: None,
        host_os: "linux".to_owned(),
        state_dir: "state".to_owned(),
        files: Vec::new(),
    }
}

fn endless() -> HasRoom {
    Box::new(|| Ok(true))
}

/// Writes these files as `a.tar.gz` and returns how the last one was added.
fn written(dir: &Path, files: &[(&str, &[u8], u64)]) -> Added {
    let mut writer = Writer::begin(dir, Stop::default(), endless()).unwrap();
    writer.area(Area::State, FACTS).unwrap();
    let mut added = Added::Whole;
    for (name, content, size) in files {
        let name = MemberPath::new(name.as_bytes()).unwrap();
        let mut content = *content;
        let source = Source { content: &mut content, size: *size, facts: FACTS };
        added = writer.file(&name, source).unwrap();
    }
    let mut finished = writer.finish(manifest()).unwrap();
    finished.verify(&Limits::default(), &Stop::default()).unwrap();
    finished.publish(&dir.join("a.tar.gz"), false).unwrap();
    added
}

fn opened(dir: &Path) -> File {
    File::open(dir.join("a.tar.gz")).unwrap()
}

#[test]
fn h119_what_is_written_is_read_and_the_file_is_private() {
    let dir = TempDir::new().unwrap();
    let long = format!("state/logs/{}.log", "n".repeat(200));
    let files: [(&str, &[u8], u64); 3] =
        [("state/a", b"one", 3), (&long, b"two", 3), ("config/svc.yml", b"", 0)];
    assert_eq!(written(dir.path(), &files), Added::Whole);
    let mode = fs::metadata(dir.path().join("a.tar.gz")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing beside it");
    let mut kept = Kept::default();
    let contents = read(opened(dir.path()), &Limits::default(), &mut kept, &Stop::default());
    let contents = contents.unwrap();
    assert_eq!((contents.state_files, contents.manifest.files.len()), (2, 3));
    assert_eq!(contents.config.unwrap().below(), "svc.yml");
    let expected: Vec<(String, Vec<u8>)> =
        files.iter().map(|(name, content, _)| ((*name).to_owned(), content.to_vec())).collect();
    assert_eq!(kept.0, expected);
}

#[test]
fn h119_a_log_that_repeats_one_line_does_not_look_like_an_attack() {
    let dir = TempDir::new().unwrap();
    let line = b"waiting for the network, trying again in one second\n";
    let log = line.repeat(24 * 1024 * 1024 / line.len());
    let size = log.len() as u64;
    // It is verified there with the limits of a restore.
    written(dir.path(), &[("state/logs/a.log", &log, size), ("state/b", b"after", 5)]);
    assert!(opened(dir.path()).metadata().unwrap().len() < size / 5, "most of it is packed");
    let mut kept = Kept::default();
    read(opened(dir.path()), &Limits::default(), &mut kept, &Stop::default()).unwrap();
    assert!(kept.0[0].1 == log && kept.0[1].1 == b"after");
}

#[test]
fn h119_an_archive_replaces_only_when_it_may() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.tar.gz");
    fs::write(&path, "mine").unwrap();
    let mut finished =
        Writer::begin(dir.path(), Stop::default(), endless()).unwrap().finish(manifest()).unwrap();
    let refused = finished.publish(&path, false).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    finished.publish(&path, true).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), finished.bytes);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_is_shortened_meanwhile_is_filled_up() {
    let dir = TempDir::new().unwrap();
    assert_eq!(written(dir.path(), &[("state/log", b"abc", 6)]), Added::Shortened);
    let mut kept = Kept::default();
    read(opened(dir.path()), &Limits::default(), &mut kept, &Stop::default()).unwrap();
    assert_eq!(kept.0, [("state/log".to_owned(), b"abc\0\0\0".to_vec())]);
}

/// Cut anywhere, an archive is refused.
#[test]
fn h40_an_archive_that_is_cut_short_is_refused() {
    let dir = TempDir::new().unwrap();
    written(dir.path(), &[("state/a", b"some content", 12), ("state/b", b"more", 4)]);
    let whole = fs::read(dir.path().join("a.tar.gz")).unwrap();
    for length in 0..whole.len() {
        let mut cut = tempfile::tempfile_in(dir.path()).unwrap();
        cut.write_all(whole.get(..length).unwrap()).unwrap();
        cut.rewind().unwrap();
        let done = read(cut, &Limits::default(), &mut Kept::default(), &Stop::default());
        assert!(done.is_err(), "{length} of {} bytes", whole.len());
    }
}

#[test]
fn h120_each_limit_holds_while_an_archive_is_read() {
    let dir = TempDir::new().unwrap();
    let zeros = vec![0; 200_000];
    let files: [(&str, &[u8], u64); 3] =
        [("state/a", &zeros, 200_000), ("state/b", b"x", 1), ("state/c", b"x", 1)];
    written(dir.path(), &files);
    let plain = Limits::default();
    let too_much = |limits: Limits| {
        let done = read(opened(dir.path()), &limits, &mut Kept::default(), &Stop::default());
        matches!(done, Err(ReadError::TooMuch(_)))
    };
    assert!(!too_much(plain));
    assert!(too_much(Limits { members: 4, ..plain }));
    assert!(!too_much(Limits { members: 5, ..plain }));
    assert!(too_much(Limits { total_bytes: 200_001, ..plain }));
    assert!(!too_much(Limits { total_bytes: 200_002, ..plain }));
    assert!(too_much(Limits { manifest_bytes: 100, ..plain }));
    assert!(too_much(Limits { ratio_from: 100_000, ratio: 20, ..plain }));
    assert!(!too_much(Limits { ratio_from: 300_000, ratio: 20, ..plain }));
}

/// An archive of these directories and a manifest, as only an attacker makes it.
fn of_directories(manifest: &Manifest, directories: &[String]) -> File {
    let file = tempfile::tempfile().unwrap();
    let packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    let mut builder = Builder::new(packed);
    let text = serde_json::to_vec(manifest).unwrap();
    let mut header = Header::new_gnu();
    header.set_size(text.len() as u64);
    builder.append_data(&mut header, "manifest.json", text.as_slice()).unwrap();
    for name in directories {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Directory);
        header.set_size(0);
        builder.append_data(&mut header, name, io::empty()).unwrap();
    }
    let mut file = builder.into_inner().unwrap().finish().unwrap();
    file.rewind().unwrap();
    file
}

#[test]
fn h120_directories_that_are_only_implied_count_as_members() {
    let limits = Limits { members: 20, ..Limits::default() };
    let done = |directories: &[String]| {
        let file = of_directories(&manifest(), directories);
        read(file, &limits, &mut Kept::default(), &Stop::default())
    };
    let deep = |number| format!("state/{number}/a/b/c/d/e");
    assert!(done(&[deep(1), deep(2), deep(3)]).is_ok(), "19 names");
    let refused = done(&[deep(1), deep(2), deep(3), deep(4)]);
    assert!(matches!(refused, Err(ReadError::TooMuch("members"))), "{refused:?}");
    // What lies in one directory implies it once.
    let siblings: Vec<String> = (0..10).map(|number| format!("state/a/b/c/{number}")).collect();
    assert!(done(&siblings).is_ok());
}

#[test]
fn h120_a_manifest_lists_no_more_files_than_an_archive_may_hold() {
    let limits = Limits { members: 20, ..Limits::default() };
    let mut manifest = manifest();
    let entry = |number: u32| FileEntry {
        path: format!("state/{number}"),
        size: 0,
        sha256: String::new(),
        mode: 0,
        mtime: 0,
    };
    manifest.files = (0..21).map(entry).collect();
    let file = of_directories(&manifest, &["state/".to_owned()]);
    let refused = read(file, &limits, &mut Kept::default(), &Stop::default());
    assert!(matches!(refused, Err(ReadError::TooMuch("members"))), "{refused:?}");
}

#[test]
fn h95_a_file_system_that_fills_up_meanwhile_ends_it() {
    const MIB: usize = 1024 * 1024;
    // Squares do not pack to nothing, so the copy of what was packed asks too.
    let content: Vec<u8> = (0..2 * MIB).flat_map(|n| (n * n).to_be_bytes()).collect();
    let size = content.len() as u64;
    let dir = TempDir::new().unwrap();
    let asked = Rc::new(Cell::new(0));
    let done = |room_for: usize| {
        asked.set(0);
        let count = Rc::clone(&asked);
        let has_room: HasRoom = Box::new(move || {
            count.set(count.get() + 1);
            Ok(count.get() <= room_for)
        });
        let mut writer = Writer::begin(dir.path(), Stop::default(), has_room)?;
        let name = MemberPath::new(b"state/a").unwrap();
        let source = Source { content: &mut content.as_slice(), size, facts: FACTS };
        writer.file(&name, source)?;
        let while_reading = asked.get();
        writer.finish(manifest()).map(|_| while_reading)
    };
    let while_reading = done(usize::MAX).unwrap();
    let all = asked.get();
    assert!(while_reading >= 3 && all > while_reading, "{while_reading} of {all}");
    for room_for in [0, while_reading, all - 1] {
        let refused = done(room_for).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull, "{room_for}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn who_asks_for_the_end_gets_it() {
    let dir = TempDir::new().unwrap();
    written(dir.path(), &[("state/a", b"x", 1)]);
    let stop = Stop::default();
    stop.ask();
    assert!(read(opened(dir.path()), &Limits::default(), &mut Kept::default(), &stop).is_err());
    let mut writer = Writer::begin(dir.path(), stop, endless()).unwrap();
    assert!(writer.area(Area::State, FACTS).is_err());
}
