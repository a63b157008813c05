//! Reads what `git diff` and `git ls-files` print.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use super::found::{ChangedFile, Kind, Status};
use super::masked;

/// One changed part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// First line before the change.
    pub old_start: u64,
    /// Lines before the change.
    pub old_lines: u64,
    /// First line after the change.
    pub new_start: u64,
    /// Lines after the change.
    pub new_lines: u64,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// One line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What became of it.
    pub sign: Sign,
    /// Without its end; bytes that are no text are replaced.
    pub text: String,
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It is the same.
    Same,
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
}

/// The output of `diff --raw --numstat -z`: first the files, then their counts.
pub(super) fn files(bytes: &[u8]) -> Vec<ChangedFile> {
    let mut words = bytes.split(|byte| *byte == 0);
    let mut files: Vec<ChangedFile> = Vec::new();
    let mut counts = 0;
    while let Some(word) = words.next() {
        if let Some(facts) = word.strip_prefix(b":") {
            let facts = text(facts);
            let mut facts = facts.split(' ');
            let modes = [facts.next().unwrap_or_default(), facts.next().unwrap_or_default()];
            let letter = facts.nth(2).unwrap_or_default().chars().next();
            let status = match letter {
                Some('A') => Status::Added,
                Some('D') => Status::Deleted,
                Some('R' | 'C') => Status::Renamed,
                Some('T') => Status::Type,
                _ => Status::Modified,
            };
            let Some(first) = words.next() else { break };
            let second = if status == Status::Renamed { words.next() } else { None };
            let (raw, old_raw) = match second {
                Some(new) => (path(new), Some(path(first))),
                None => (path(first), None),
            };
            let kind = match modes {
                modes if modes.contains(&"160000") => Kind::Submodule,
                [_, "120000"] | ["120000", "000000"] => Kind::Symlink,
                _ => Kind::Text,
            };
            files.push(ChangedFile {
                path: masked::name(&raw),
                old_path: old_raw.as_deref().map(masked::name),
                raw,
                old_raw,
                status,
                additions: None,
                deletions: None,
                kind,
            });
        } else if let [added, deleted, name] =
            word.splitn(3, |byte| *byte == b'\t').collect::<Vec<_>>().as_slice()
        {
            if name.is_empty() {
                words.nth(1); // both names of a rename stand in words of their own
            }
            let (added, deleted) = (text(added), text(deleted));
            if let Some(file) = files.get_mut(counts) {
                file.additions = added.parse().ok();
                file.deletions = deleted.parse().ok();
                if added == "-" && file.kind == Kind::Text {
                    file.kind = Kind::Binary;
                }
            }
            counts += 1;
        }
    }
    files
}

/// The output of `ls-files --others -z`.
pub(super) fn untracked(bytes: &[u8]) -> Vec<ChangedFile> {
    let names = bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names
        .map(|name| ChangedFile {
            // A repository inside of this one is named with a slash at its end.
            kind: if name.ends_with(b"/") { Kind::Submodule } else { Kind::Text },
            path: masked::name(&path(name)),
            old_path: None,
            raw: path(name),
            old_raw: None,
            status: Status::Untracked,
            additions: None,
            deletions: None,
        })
        .collect()
}

/// The hunks of a patch of one file.
pub(super) fn hunks(bytes: &[u8]) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut left = (0, 0);
    for line in bytes.split(|byte| *byte == b'\n') {
        let (sign, rest) = match line.split_first() {
            Some((b'+', rest)) => (Sign::Added, rest),
            Some((b'-', rest)) => (Sign::Deleted, rest),
            Some((b' ', rest)) => (Sign::Same, rest),
            _ => (Sign::Same, line),
        };
        if left == (0, 0) {
            // Only here can a header stand: inside of a hunk it is a line like any other.
            if let Some(hunk) = header(&text(line)) {
                left = (hunk.old_lines, hunk.new_lines);
                hunks.push(hunk);
            }
            continue;
        }
        if line.starts_with(b"\\") {
            continue; // "No newline at end of file"
        }
        left = match sign {
            Sign::Added => (left.0, left.1.saturating_sub(1)),
            Sign::Deleted => (left.0.saturating_sub(1), left.1),
            Sign::Same => (left.0.saturating_sub(1), left.1.saturating_sub(1)),
        };
        if let Some(hunk) = hunks.last_mut() {
            hunk.lines.push(Line { sign, text: text(rest) });
        }
    }
    hunks
}

/// `@@ -1,2 +3,4 @@`.
fn header(line: &str) -> Option<Hunk> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| match text.split_once(',') {
        Some((start, lines)) => Some((start.parse().ok()?, lines.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    let ((old_start, old_lines), (new_start, new_lines)) = (range(old)?, range(new)?);
    Some(Hunk { old_start, old_lines, new_start, new_lines, lines: Vec::new() })
}

/// A file that is new as a whole; binary content has no lines.
pub(super) fn whole(content: &[u8]) -> Vec<Hunk> {
    if content.is_empty() || content.iter().take(8000).any(|byte| *byte == 0) {
        return Vec::new();
    }
    let content = content.strip_suffix(b"\n").unwrap_or(content);
    let lines: Vec<Line> = content
        .split(|byte| *byte == b'\n')
        .map(|line| Line { sign: Sign::Added, text: text(line) })
        .collect();
    let new_lines = u64::try_from(lines.len()).unwrap_or(u64::MAX);
    vec![Hunk { old_start: 0, old_lines: 0, new_start: 1, new_lines, lines }]
}

/// The lines from `from` on, as many as fit, and the number of the next one.
///
/// A hunk that is cut keeps only the lines that are in it; its numbers say where they are.
pub(super) fn window(
    hunks: Vec<Hunk>,
    from: usize,
    most_lines: usize,
    most_bytes: usize,
) -> (Vec<Hunk>, Option<usize>) {
    let (mut at, mut lines, mut bytes) = (0, 0, 0);
    let mut shown = Vec::new();
    for hunk in hunks {
        let mut part = Hunk { old_lines: 0, new_lines: 0, lines: Vec::new(), ..hunk };
        for line in hunk.lines {
            let (old, new) = match line.sign {
                Sign::Same => (1, 1),
                Sign::Added => (0, 1),
                Sign::Deleted => (1, 0),
            };
            if at < from {
                part.old_start += old;
                part.new_start += new;
                at += 1;
                continue;
            }
            // One line is always shown, so that a question makes progress.
            if lines > 0 && (lines >= most_lines || bytes + line.text.len() > most_bytes) {
                if !part.lines.is_empty() {
                    shown.push(part);
                }
                return (shown, Some(at));
            }
            (lines, bytes, at) = (lines + 1, bytes + line.text.len(), at + 1);
            part.old_lines += old;
            part.new_lines += new;
            part.lines.push(line);
        }
        if !part.lines.is_empty() {
            shown.push(part);
        }
    }
    (shown, None)
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_looks_like_a_header_stays_a_line() {
        let patch =
            b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-@@ -9 +9 @@\n+-- x\n a\n";
        let hunks = hunks(patch);
        let lines: Vec<&str> = hunks[0].lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!((hunks.len(), lines), (1, vec!["@@ -9 +9 @@", "-- x", "a"]));
    }

    #[test]
    fn windows_together_are_the_whole_and_know_their_places() {
        let content: String = (1..=10).map(|n| format!("line {n}\n")).collect();
        let all = whole(content.as_bytes());
        let mut from = Some(0);
        let mut seen = Vec::new();
        while let Some(at) = from {
            let (hunks, next) = window(all.clone(), at, 4, 1000);
            assert_eq!(hunks[0].new_start, u64::try_from(at).unwrap() + 1);
            seen.extend(hunks.into_iter().flat_map(|hunk| hunk.lines));
            from = next;
        }
        assert_eq!(seen, all[0].lines);
        let (one, next) = window(all, 0, 4, 1);
        assert_eq!((one[0].lines.len(), next), (1, Some(1)), "a long line is shown alone");
    }
}
