//! Which conversations the agent keeps for a directory (`agent-cli` §6.7).

use crate::home::AgentHome;
use crate::regular_file::open_regular;
use crate::transcript_dirs::{MOST, directories};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use svc_domain::conversation::ConversationId;
use svc_domain::slug::slug;

/// How far into a transcript its working directory is looked for.
/// The first records have it.
const HEAD_BYTES: u64 = 256 * 1024;

/// Conversations with a transcript for a working directory, newest first. Blocks.
/// A missing directory has none.
#[must_use]
pub fn kept(home: &AgentHome, work_dir: &Path) -> Vec<ConversationId> {
    let Some(work_dir) = work_dir.to_str() else { return Vec::new() };
    let mut found = listed(&home.project_dir(work_dir));
    found.sort_by(|one, other| other.written.cmp(&one.written).then(one.id.cmp(&other.id)));
    found.into_iter().map(|transcript| transcript.id).collect()
}

/// Conversations of a project and of its worktrees. Blocks.
///
/// The agent's directories are named so that two paths can share one. A directory that a project of
/// `others` may own is left out, and a transcript that names another place too.
#[must_use]
pub fn of_project(home: &AgentHome, project: &Path, others: &[PathBuf]) -> Vec<ConversationId> {
    let foreign: Vec<String> = others.iter().filter_map(|other| other.to_str()).map(slug).collect();
    let is_foreign = |directory: &PathBuf| {
        let name = directory.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| foreign.iter().any(|other| name == other))
    };
    let mut directories = directories(home, project, MOST);
    // The first is the project's own, whoever else may have a directory of that name.
    let mut is_own = true;
    directories.retain(|directory| std::mem::take(&mut is_own) || !is_foreign(directory));
    let found = directories.iter().flat_map(|directory| listed(directory));
    found
        .filter(|transcript| {
            work_dir(&transcript.path).is_none_or(|work_dir| work_dir.starts_with(project))
        })
        .map(|transcript| transcript.id)
        .collect()
}

struct Transcript {
    id: ConversationId,
    path: PathBuf,
    written: SystemTime,
}

fn listed(directory: &Path) -> Vec<Transcript> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let transcript = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let id = name.to_str()?.strip_suffix(".jsonl")?.parse().ok()?;
        let facts = entry.metadata().ok().filter(|facts| facts.is_file() && facts.len() > 0)?;
        Some(Transcript { id, path: entry.path(), written: facts.modified().ok()? })
    };
    entries.filter_map(transcript).collect()
}

/// The working directory that the first records of a transcript name.
pub(crate) fn work_dir(transcript: &Path) -> Option<PathBuf> {
    let file = open_regular(transcript).ok()?;
    let lines = BufReader::new(file.take(HEAD_BYTES)).lines().map_while(Result::ok);
    let cwd = |line: String| {
        let record: Value = serde_json::from_str(&line).ok()?;
        record.get("cwd")?.as_str().map(PathBuf::from)
    };
    lines.into_iter().find_map(cwd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Variables;
    use std::time::Duration;

    const ONE: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f1";
    const TWO: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f2";

    fn home(root: &Path) -> AgentHome {
        let variables = [("HOME", root.join("home"))];
        let env: Variables =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        AgentHome::of_child(&env).unwrap()
    }

    fn put(home: &AgentHome, cwd: &str, id: &str, age: u64, told: &str) {
        let file = home.transcript_file(cwd, id);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let text = format!("{{\"type\":\"mode\"}}\n{{\"cwd\":\"{told}\",\"type\":\"user\"}}\n");
        fs::write(&file, text).unwrap();
        let file = fs::File::options().write(true).open(file).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }

    fn ids(found: &[ConversationId]) -> Vec<&str> {
        found.iter().map(ConversationId::expose).collect()
    }

    #[test]
    fn conversations_of_a_directory_come_newest_first_and_nothing_else_is_one() {
        let root = tempfile::tempdir().unwrap();
        let home = home(root.path());
        assert!(kept(&home, Path::new("/p/app")).is_empty());
        put(&home, "/p/app", ONE, 100, "/p/app");
        put(&home, "/p/app", TWO, 10, "/p/app");
        let dir = home.project_dir("/p/app");
        fs::write(dir.join("bridge-pointer.json"), "{}").unwrap();
        fs::write(dir.join("agent-1234.jsonl"), "{}").unwrap();
        fs::write(dir.join("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f3.jsonl"), "").unwrap();
        fs::create_dir(dir.join("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f4.jsonl")).unwrap();
        assert_eq!(ids(&kept(&home, Path::new("/p/app"))), [TWO, ONE]);
    }

    #[test]
    fn a_project_has_the_conversations_of_its_worktrees_and_none_of_another_project() {
        let root = tempfile::tempdir().unwrap();
        let home = home(root.path());
        let worktree = "/p/app/.claude/worktrees/svc-00000001";
        put(&home, "/p/app", ONE, 1, "/p/app");
        put(&home, worktree, TWO, 1, worktree);
        // The same directory of the agent, written by a session of `/p-app`.
        let foreign = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f5";
        put(&home, "/p/app", foreign, 1, "/p-app");
        let mut found = of_project(&home, Path::new("/p/app"), &[]);
        found.sort();
        assert_eq!(ids(&found), [ONE, TWO]);
        let owner = PathBuf::from(worktree);
        assert_eq!(ids(&of_project(&home, Path::new("/p/app"), &[owner])), [ONE]);
    }
}
