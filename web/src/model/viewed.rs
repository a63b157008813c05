//! Which changed files a person has marked as viewed.

use svc_shared::internal::changes::ChangedFile;

/// A file with what it looks like now: another change takes the mark away.
fn mark(file: &ChangedFile) -> String {
    let count = |lines: Option<u64>| lines.map_or(String::new(), |lines| lines.to_string());
    let (added, deleted) = (count(file.additions), count(file.deletions));
    format!("{} +{added} −{deleted} {}", file.status, file.path)
}

/// Whether this file was viewed as it is now.
#[must_use]
pub fn has(marks: &[String], file: &ChangedFile) -> bool {
    marks.contains(&mark(file))
}

/// Marks a file, or takes its mark away.
pub fn turn(marks: &mut Vec<String>, file: &ChangedFile) {
    let had = has(marks, file);
    let own = format!(" {}", file.path);
    marks.retain(|mark| !mark.ends_with(&own));
    if !had {
        marks.push(mark(file));
    }
}

/// How many of these files were viewed.
#[must_use]
pub fn count(marks: &[String], files: &[ChangedFile]) -> usize {
    files.iter().filter(|file| has(marks, file)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file(additions: u64) -> ChangedFile {
        serde_json::from_value(json!({ "path": "a", "old_path": null, "status": "modified",
            "additions": additions, "deletions": 0, "kind": "text" }))
        .unwrap()
    }

    #[test]
    fn a_file_that_changed_again_is_no_longer_viewed() {
        let mut marks = Vec::new();
        turn(&mut marks, &file(1));
        assert!(has(&marks, &file(1)));
        assert!(!has(&marks, &file(2)));
        assert_eq!((count(&marks, &[file(1)]), count(&marks, &[file(2)])), (1, 0));
        turn(&mut marks, &file(2));
        assert!(has(&marks, &file(2)), "marked again as it is now");
        turn(&mut marks, &file(2));
        assert_eq!(marks, Vec::<String>::new());
    }
}
