//! Plain words: length of summaries, names of types, the glossary.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is how they fail")]

use std::fs;
use std::path::{Path, PathBuf};

/// Longest first line of a doc comment, in characters: it is shown alone in lists.
const LONGEST_SUMMARY: usize = 80;
/// Most terms of the glossary. More would mean too many words of our own.
const MOST_TERMS: usize = 40;

/// Names that tell a newcomer nothing, and what to call the type instead.
const UNCLEAR_NAMES: &[(&str, &str)] = &[
    ("Crew", "the worker pool that it is, such as `GitWorkers`"),
    ("Desk", "the service or form that it is, such as `JobService`"),
    ("Door", "`Router`, `Service` or `Listener`"),
    ("Herald", "`ParentWatch`"),
    ("Lease", "`ReaderHandle`"),
    ("Look", "`Scan`, `Snapshot` or `Probe`"),
    ("Others", "`ForeignWrites`"),
    ("Place", "the thing it locates, such as `Workspace` or `ProjectDir`"),
    ("Post", "`Watch`"),
    ("Seat", "`Subscriber`"),
    ("Soon", "`Debounce`"),
    ("Visit", "`RequestContext`"),
    ("Wish", "the request or options that it is, such as `LaunchRequest`"),
    ("Wishes", "the request or options that it is, such as `SetupAnswers`"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every Rust file of the checkout, as `(path from the root, text)`.
fn sources() -> Vec<(String, String)> {
    fn find(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let is_ours = !matches!(name.to_str(), Some("target" | "node_modules" | "dist"));
            if path.is_dir() && is_ours && !name.to_string_lossy().starts_with('.') {
                find(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let (root, mut found) = (root(), Vec::new());
    find(&root, &mut found);
    found
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

/// First lines of doc comments that are too long or end inside a sentence.
fn bad_summaries(text: &str) -> Vec<(usize, String)> {
    let mut bad = Vec::new();
    let mut before = "";
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let kind = ["///", "//!"].into_iter().find(|kind| line.starts_with(kind)).unwrap_or("");
        if !kind.is_empty() && kind != before {
            let summary = line.trim_start_matches(kind).trim();
            let is_whole = summary.ends_with(['.', ':', '?', '!', ')', '`', '|']);
            if summary.chars().count() > LONGEST_SUMMARY || !is_whole {
                bad.push((number + 1, summary.to_owned()));
            }
        }
        before = kind;
    }
    bad
}

/// Types that are declared under an unclear name.
fn unclear_types(text: &str) -> Vec<(usize, &'static (&'static str, &'static str))> {
    let declared = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
        let is_type = matches!(words.next(), Some("struct" | "enum" | "trait" | "type"));
        let name = words.next().filter(|_| is_type)?;
        UNCLEAR_NAMES.iter().find(|(unclear, _)| {
            name.strip_prefix(unclear)
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
    };
    text.lines()
        .enumerate()
        .filter_map(|(number, line)| declared(line).map(|found| (number + 1, found)))
        .collect()
}

#[test]
fn every_summary_is_one_short_sentence() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        for (line, summary) in bad_summaries(&text) {
            wrong.push(format!("{name}:{line}: {summary}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "the first line of a doc comment is one sentence of at most {LONGEST_SUMMARY} characters; \
         details follow in lines of their own:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn no_type_has_a_name_that_only_its_author_understands() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        for (line, (unclear, better)) in unclear_types(&text) {
            wrong.push(format!("{name}:{line}: call `{unclear}` {better}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_glossary_is_short_sorted_and_every_entry_says_something() {
    let text = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let terms: Vec<(&str, &str)> =
        text.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**: ")).collect();
    assert!(!terms.is_empty() && terms.len() <= MOST_TERMS, "{} terms", terms.len());
    for (term, meaning) in &terms {
        assert!(meaning.len() > 30 && meaning.ends_with('.'), "{term} is not explained: {meaning}");
    }
    for section in text.split("\n## ") {
        let terms: Vec<String> = section
            .lines()
            .filter_map(|line| Some(line.strip_prefix("- **")?.split_once("**")?.0.to_lowercase()))
            .collect();
        assert!(terms.is_sorted(), "not in order of the alphabet: {terms:?}");
    }
}

#[test]
fn the_checks_find_what_they_are_for() {
    let text =
        "/// Short and whole.\n/// More about it\nfn a() {}\n/// It stops in\n/// the middle.\n";
    assert_eq!(bad_summaries(text), [(4, "It stops in".to_owned())]);
    let long = format!("//! {}.\n", "x".repeat(80));
    assert_eq!(bad_summaries(&long).len(), 1);
    let names = |text| unclear_types(text).iter().map(|(_, (name, _))| *name).collect::<Vec<_>>();
    assert_eq!(
        names("pub(crate) struct Desk {\nenum Look<'a> {\nstruct Outlook;\n"),
        ["Desk", "Look"]
    );
    assert_eq!(names("// struct Desk\nstruct DeskLamp;\nlet desk = Desk::new();"), [""; 0]);
}
