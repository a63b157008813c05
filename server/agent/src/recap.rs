//! What was said in the newest other conversation of a directory.

use crate::conversation::turn;
use crate::home::AgentHome;
use crate::regular_file::open_regular;
use crate::transcripts::{kept, work_dir};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use svc_domain::recap::{Said, Speaker};
use svc_shared::internal::conversations::{BlockKind, TurnRole};

/// How much of the end of a transcript is read, bytes.
/// Tools answer at length; a recap is of a few thousand characters.
const END_BYTES: u64 = 4 * 1024 * 1024;

/// What was said last in the newest conversation of a directory but `own`.
///
/// Oldest first. Blocks. Secrets are masked. Empty where there is none that can be read.
#[must_use]
pub fn said_before(home: &AgentHome, directory: &Path, own: &str) -> Vec<Said> {
    let Some(name) = directory.to_str() else { return Vec::new() };
    let others = kept(home, directory).into_iter().filter(|id| id.expose() != own);
    // Two directories may share one of the agent's: `a.b` and `a-b`.
    let is_here = |file: &PathBuf| work_dir(file).is_none_or(|place| place == directory);
    let newest = others.map(|id| home.transcript_file(name, id.expose())).find(is_here);
    let Some(newest) = newest else { return Vec::new() };
    open_regular(&newest).and_then(|file| end(&file)).map(|bytes| said(&bytes)).unwrap_or_default()
}

/// The last bytes of a file, from the beginning of a line.
fn end(mut file: &File) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    let from = size.saturating_sub(END_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(END_BYTES).read_to_end(&mut bytes)?;
    if from > 0 {
        let first = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        bytes.drain(..first);
    }
    Ok(bytes)
}

fn said(bytes: &[u8]) -> Vec<Said> {
    let turns = bytes.split(|byte| *byte == b'\n').filter_map(|line| turn::turn(0, line));
    let told = turns.filter_map(|turn| {
        let by = match turn.role.known()? {
            TurnRole::User => Speaker::User,
            TurnRole::Assistant => Speaker::Agent,
            TurnRole::Tool | TurnRole::System => return None,
        };
        let texts = turn.content.iter().filter(|block| block.kind.is(&BlockKind::Text));
        let text = texts.map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n");
        (!text.trim().is_empty()).then_some(Said { by, text })
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Variables;
    use serde_json::{Value, json};
    use std::fs;
    use std::time::{Duration, SystemTime};

    const ONE: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f1";
    const TWO: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f2";

    fn home(root: &Path) -> AgentHome {
        let env: Variables = [("HOME".into(), root.as_os_str().to_owned())].into();
        AgentHome::of_child(&env).unwrap()
    }

    fn put(home: &AgentHome, id: &str, age_s: u64, records: &[Value]) {
        let file = home.transcript_file("/p/app", id);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let lines: Vec<String> = records.iter().map(ToString::to_string).collect();
        fs::write(&file, lines.join("\n") + "\n").unwrap();
        let file = fs::File::options().write(true).open(file).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
    }

    fn user(text: &str) -> Value {
        json!({ "type": "user", "message": { "role": "user", "content": text } })
    }

    #[test]
    fn the_newest_other_conversation_is_told_without_tools_and_secrets() {
        let root = tempfile::tempdir().unwrap();
        let home = home(root.path());
        let token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
        put(
            &home,
            ONE,
            100,
            &[
                json!({ "type": "mode" }),
                user(&format!("push with {token}")),
                json!({ "message": { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm" },
                { "type": "text", "text": "Pushed." },
                { "type": "tool_use", "name": "Bash", "input": { "command": "git push" } },
            ] } }),
                json!({ "message": { "role": "user", "content": [
                { "type": "tool_result", "content": "ok" },
            ] } }),
            ],
        );
        put(&home, TWO, 10, &[user("the new one")]);
        let told = said_before(&home, Path::new("/p/app"), TWO);
        let texts: Vec<&str> = told.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].starts_with("push with ") && !texts[0].contains(token), "{texts:?}");
        assert_eq!((texts[1], told[1].by), ("Pushed.", Speaker::Agent));
        assert_eq!(said_before(&home, Path::new("/p/app"), ONE)[0].text, "the new one");
        assert!(said_before(&home, Path::new("/p/none"), ONE).is_empty());
    }

    #[test]
    fn what_was_said_in_a_directory_of_a_like_name_is_not_told() {
        let root = tempfile::tempdir().unwrap();
        let home = home(root.path());
        put(&home, ONE, 100, &[user("here")]);
        let elsewhere = json!({ "cwd": "/p-app", "message": { "role": "user", "content": "no" } });
        put(&home, TWO, 10, &[elsewhere]);
        let told = said_before(&home, Path::new("/p/app"), "none");
        assert_eq!(told.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), ["here"]);
    }

    #[test]
    fn only_the_end_of_a_long_conversation_is_read() {
        let root = tempfile::tempdir().unwrap();
        let home = home(root.path());
        let long = user(&"x".repeat(1024 * 1024));
        let mut records = vec![user("the first"); 1];
        records.extend(std::iter::repeat_n(long, 5));
        records.push(user("the last"));
        put(&home, ONE, 1, &records);
        let told = said_before(&home, Path::new("/p/app"), TWO);
        assert_eq!(told.last().unwrap().text, "the last");
        assert!(told.iter().all(|one| one.text != "the first"));
    }
}
