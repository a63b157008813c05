//! Changed files by folder, and the changed lines of one with their numbers.

use serde::Deserialize;
use svc_shared::Word;
use svc_shared::internal::changes::{
    ChangeKind, ChangeStatus, ChangedFile, ChangedPart, Changes, LineSign,
};

/// The lines of one file, as far as they were read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FileLines {
    /// Its name in the list.
    pub path: String,
    /// How it changed.
    pub status: Word<ChangeStatus>,
    /// What it is.
    pub kind: Word<ChangeKind>,
    /// Its changed parts.
    pub hunks: Vec<ChangedPart>,
    /// The line to ask for next.
    pub next_from: Option<u64>,
    /// Lines in which something was masked.
    pub masked: u64,
    /// It is too large to be read to its end.
    pub too_large: bool,
}

impl FileLines {
    /// Adds the lines that follow. Of another file, nothing.
    pub fn join(&mut self, more: Self) {
        if self.path == more.path {
            self.hunks.extend(more.hunks);
            self.next_from = more.next_from;
        }
    }
}

/// Files of one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Its path; empty for the root.
    pub path: String,
    /// Its files, by name.
    pub files: Vec<(String, ChangedFile)>,
}

/// The files by folder, both in order.
#[must_use]
pub fn folders(found: &Changes) -> Vec<Folder> {
    let split = |file: &ChangedFile| match file.path.trim_end_matches('/').rsplit_once('/') {
        Some((folder, name)) => (folder.to_owned(), name.to_owned()),
        None => (String::new(), file.path.clone()),
    };
    let mut all: Vec<((String, String), &ChangedFile)> =
        found.files.iter().map(|file| (split(file), file)).collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut folders: Vec<Folder> = Vec::new();
    for ((path, name), file) in all {
        match folders.last_mut() {
            Some(folder) if folder.path == path => folder.files.push((name, file.clone())),
            _ => folders.push(Folder { path, files: vec![(name, file.clone())] }),
        }
    }
    folders
}

/// Added and deleted lines of all files whose lines are counted.
#[must_use]
pub fn totals(found: &Changes) -> (u64, u64) {
    let sum = |count: fn(&ChangedFile) -> Option<u64>| found.files.iter().filter_map(count).sum();
    (sum(|file| file.additions), sum(|file| file.deletions))
}

/// One line as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedLine {
    /// Its number before the change.
    pub old: Option<u64>,
    /// Its number after the change.
    pub new: Option<u64>,
    /// What became of it; none for a sign of another version.
    pub sign: Option<LineSign>,
    /// Its text.
    pub text: String,
}

/// The lines of a part with their numbers.
#[must_use]
pub fn numbered(part: &ChangedPart) -> Vec<NumberedLine> {
    let (mut old, mut new) = (part.old_start, part.new_start);
    let take = |counts: bool, at: &mut u64| {
        let number = counts.then_some(*at);
        *at += u64::from(counts);
        number
    };
    let line = |line: &svc_shared::internal::changes::ChangedLine| {
        let sign = line.t.known().copied();
        NumberedLine {
            old: take(sign != Some(LineSign::Added), &mut old),
            new: take(sign != Some(LineSign::Deleted), &mut new),
            sign,
            text: line.text.clone(),
        }
    };
    part.lines.iter().map(line).collect()
}

/// Unchanged lines around a change.
pub const AROUND: u64 = 3;
/// The same while unchanged lines are shown; the service gives no more.
pub const FAR_AROUND: u64 = 50;

/// The path of a file's lines below the path of the list.
#[must_use]
pub fn file_path(list: &str, file: &str, around: u64, from: u64) -> String {
    let path = svc_shared::paths::segment(file);
    let own = format!("path={path}&context={around}&from={from}");
    match list.split_once('?') {
        Some((list, query)) => format!("{list}/file?{query}&{own}"),
        None => format!("{list}/file?{own}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn changes(paths: &[&str]) -> Changes {
        let file = |path: &&str| {
            json!({ "path": path, "old_path": null, "status": "modified", "additions": 2,
                "deletions": null, "kind": "text" })
        };
        let files: Vec<_> = paths.iter().map(file).collect();
        serde_json::from_value(json!({
            "base": { "kind": "head", "ref": "HEAD", "commit": "" }, "worktree": null,
            "files": files, "truncated": false,
        }))
        .unwrap()
    }

    #[test]
    fn files_of_a_folder_stand_together() {
        let found = changes(&["a/b/x", "a/y", "a/b/w", "z", "a/sub/"]);
        let shown: Vec<(String, Vec<String>)> = folders(&found)
            .into_iter()
            .map(|folder| (folder.path, folder.files.into_iter().map(|(name, _)| name).collect()))
            .collect();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(
            shown,
            [
                (String::new(), names(&["z"])),
                ("a".into(), names(&["sub", "y"])),
                ("a/b".into(), names(&["w", "x"])),
            ]
        );
        assert_eq!(totals(&found), (10, 0));
    }

    #[test]
    fn each_line_has_the_numbers_of_its_sides() {
        let part: ChangedPart = serde_json::from_value(json!({
            "old_start": 7, "old_lines": 2, "new_start": 9, "new_lines": 2,
            "lines": [{ "t": " ", "text": "a" }, { "t": "-", "text": "b" },
                { "t": "+", "text": "c" }, { "t": " ", "text": "d" }],
        }))
        .unwrap();
        let numbers: Vec<_> = numbered(&part).iter().map(|line| (line.old, line.new)).collect();
        let expected = [(Some(7), Some(9)), (Some(8), None), (None, Some(10)), (Some(9), Some(11))];
        assert_eq!(numbers, expected);
    }

    #[test]
    fn the_path_of_a_file_keeps_the_worktree_of_its_list() {
        assert_eq!(
            file_path("/api/x/changes", "a b", AROUND, 0),
            "/api/x/changes/file?path=a%20b&context=3&from=0"
        );
        assert_eq!(
            file_path("/api/x/changes?worktree=w", "a", FAR_AROUND, 9),
            "/api/x/changes/file?worktree=w&path=a&context=50&from=9"
        );
    }
}
