//! What the redacted copy says after a truncation, a deletion and a killed service.

use super::*;
use svc_shared::Timestamp;

struct Bench {
    _root: tempfile::TempDir,
    set: LogSet,
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let now = Timestamp::from_millis(7);
        let set =
            LogSet::create(&root.path().join("logs"), &"p".parse().unwrap(), now, true).unwrap();
        Self { _root: root, set }
    }

    fn mirror(&self) -> Mirror {
        self.mirror_of(1024 * 1024 * 1024)
    }

    fn mirror_of(&self, max_bytes: u64) -> Mirror {
        Mirror::new(&self.set, Limits { max_bytes, keep: 3 })
    }

    /// As the agent does it: open, append, close.
    fn append(&self, text: impl AsRef<[u8]>) {
        let mut file = File::options().append(true).open(self.set.agent_file()).unwrap();
        file.write_all(text.as_ref()).unwrap();
    }

    fn truncate(&self) -> Removed {
        let text = fs::read(self.set.agent_file()).unwrap();
        fs::write(self.set.agent_file(), "").unwrap();
        Removed { len: text.len() as u64, ends_inside_line: !text.ends_with(b"\n") }
    }

    fn shown(&self) -> String {
        fs::read_to_string(self.set.debug_file()).unwrap()
    }
}

fn copy_all(mirror: &mut Mirror) {
    while mirror.round() {}
}

/// Whole lines, as many as are read in one round.
fn full_round() -> String {
    let line = format!("{}\n", "y".repeat(8191));
    line.repeat(ROUND / line.len())
}

fn lost() -> &'static str {
    std::str::from_utf8(LOST).unwrap()
}

#[test]
fn what_was_truncated_before_it_was_copied_is_said_to_be_missing() {
    for (end, next) in [("open", "…[line truncated 5 bytes]\n"), ("whole\n", " rest\n")] {
        let bench = Bench::new();
        let mut mirror = bench.mirror();
        bench.append(full_round());
        bench.append("z".repeat(CHUNK));
        assert!(mirror.round(), "there is more than one part");
        bench.append(end);
        mirror.raw_was_truncated(bench.truncate());
        bench.append(" rest\nafter\n");
        copy_all(&mut mirror);
        let added = bench.shown().split_off(ROUND);
        assert_eq!(added, format!("{}{next}after\n", lost()));
    }
}

#[test]
fn a_line_that_was_open_at_a_truncation_is_shown_whole() {
    let bench = Bench::new();
    let mut mirror = bench.mirror();
    bench.append("one\nbeginning ");
    copy_all(&mut mirror);
    mirror.raw_was_truncated(bench.truncate());
    bench.append("and end\n");
    copy_all(&mut mirror);
    assert_eq!(bench.shown(), "one\nbeginning and end\n");
}

/// So that a writer that is faster than the copy does not fill the disk.
#[test]
fn catching_up_takes_no_more_rounds_than_allowed() {
    let bench = Bench::new();
    let mut mirror = bench.mirror();
    bench.append(full_round().repeat(3));
    let mut rounds = 2;
    mirror.catch_up(&mut rounds);
    assert_eq!((rounds, bench.shown().len()), (0, 2 * ROUND));
    rounds = 5;
    mirror.catch_up(&mut rounds);
    assert_eq!((rounds, bench.shown().len()), (4, 3 * ROUND));
}

/// A service was killed between the truncation and the note of it.
#[test]
fn a_truncation_that_was_not_noted_keeps_what_was_copied() {
    let bench = Bench::new();
    let mut mirror = bench.mirror();
    bench.append("first line\nsecond line\nbeginning session_01AB");
    copy_all(&mut mirror);
    drop(mirror);
    bench.truncate();
    // Also when two more services begin before the agent writes again.
    copy_all(&mut bench.mirror());
    copy_all(&mut bench.mirror());
    let copied = format!("first line\nsecond line\n{}", lost());
    assert_eq!(bench.shown(), copied);
    bench.append("23CD45\nafter\n");
    copy_all(&mut bench.mirror());
    copy_all(&mut bench.mirror());
    assert_eq!(bench.shown(), format!("{copied}…[line truncated 6 bytes]\nafter\n"));
}

#[test]
fn a_damaged_note_of_the_progress_keeps_what_was_copied() {
    let bench = Bench::new();
    bench.append("raw\nnext\n");
    fs::write(bench.set.mirror_file(), "{").unwrap();
    fs::write(bench.set.debug_file(), "copied\nhalf").unwrap();
    copy_all(&mut bench.mirror());
    let begun_anew = "…[line truncated 3 bytes]\nnext\n";
    assert_eq!(bench.shown(), format!("copied\nhalf\n{}{begun_anew}", lost()));
}

#[test]
fn without_a_note_of_the_progress_all_is_copied_again() {
    let bench = Bench::new();
    bench.append("raw\n");
    fs::write(bench.set.debug_file(), "ra").unwrap();
    copy_all(&mut bench.mirror());
    assert_eq!(bench.shown(), "raw\n");
}

#[test]
fn a_copy_that_became_shorter_goes_on_at_its_end() {
    let bench = Bench::new();
    bench.append("one\ntwo\n");
    copy_all(&mut bench.mirror());
    fs::write(bench.set.debug_file(), "one\n").unwrap();
    bench.append("three\n");
    copy_all(&mut bench.mirror());
    assert_eq!(bench.shown(), "one\nthree\n");
}

#[test]
fn after_somebody_deletes_the_copy_a_new_one_is_made() {
    for max_bytes in [1024, 4] {
        let bench = Bench::new();
        let mut mirror = bench.mirror_of(max_bytes);
        bench.append("one\n");
        copy_all(&mut mirror);
        fs::remove_file(bench.set.debug_file()).unwrap();
        bench.append("two\n");
        copy_all(&mut mirror);
        assert_eq!((bench.shown().as_str(), mirror.trouble()), ("two\n", None));
        drop(mirror);
        bench.append("three\n");
        copy_all(&mut bench.mirror());
        assert_eq!(bench.shown(), "two\nthree\n", "the note tells of the new file");
    }
}

#[test]
fn what_somebody_put_in_place_of_the_copy_stays() {
    let bench = Bench::new();
    let mut mirror = bench.mirror();
    bench.append("one\n");
    copy_all(&mut mirror);
    let other = bench.set.debug_file().with_extension("other");
    fs::write(&other, "edited\n").unwrap();
    fs::rename(&other, bench.set.debug_file()).unwrap();
    bench.append("two\n");
    copy_all(&mut mirror);
    assert_eq!(bench.shown(), "edited\ntwo\n");
}

#[test]
fn only_a_full_file_system_is_called_full() {
    let bench = Bench::new();
    let mut mirror = bench.mirror();
    bench.append("one\n");
    copy_all(&mut mirror);
    let public = bench.set.debug_file();
    fs::remove_file(&public).unwrap();
    fs::create_dir(&public).unwrap();
    bench.append("two\n");
    copy_all(&mut mirror);
    assert_eq!(mirror.trouble(), None);
    fs::remove_dir(&public).unwrap();
    copy_all(&mut mirror);
    assert_eq!(bench.shown(), "two\n", "nothing was read that could not be written");
}
