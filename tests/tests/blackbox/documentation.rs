//! Every `curl` line of the documentation does what it says, run as it is written.

use crate::harness::{World, within};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// The address that the documentation uses.
const WRITTEN: &str = "127.0.0.1:7621";

/// The job id in the documentation, replaced by the job that was started before.
const JOB: &str = "450f4654";

/// The Markdown files that people read.
fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let docs = fs::read_dir(root.join("docs")).expect("docs/").flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    files.sort();
    files.insert(0, root.join("README.md"));
    files
}

/// The lines of code blocks that run curl, in order.
fn lines(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if is_code && line.contains("curl ") {
            found.push(line.to_owned());
        }
    }
    found
}

#[tokio::test]
async fn every_curl_line_of_the_documentation_works_as_it_is_written() {
    let world = World::with(json!({
        "observability": { "prometheus_enabled": true }, "config_write": { "enabled": true }
    }));
    world.project("web-frontend");
    world.repository("api");
    let server = world.serve().await;
    // curl reads this before its arguments: the line stays as it is and reaches this service.
    let settings =
        format!("connect-to = \"{WRITTEN}:127.0.0.1:{}\"\nfail-with-body\n", world.port());
    fs::write(world.root.join("home/.curlrc"), settings).unwrap();
    let mut count = 0;
    let mut job = JOB.to_owned();
    for file in files() {
        for line in lines(&fs::read_to_string(&file).unwrap()) {
            assert!(!line.ends_with('\\'), "{line}: write it on one line, so that it can be run");
            let mut shell = Command::new("sh");
            shell.args(["-c", &line.replace(JOB, &job)]).current_dir(&world.root);
            shell.env_clear().envs(world.environment()).kill_on_drop(true);
            let done = within(&line, shell.output()).await.expect("a shell");
            let answer = String::from_utf8_lossy(&done.stdout);
            assert!(done.status.success(), "{}: {line}\n{answer}", file.display());
            assert!(!answer.is_empty(), "{}: {line} answers nothing", file.display());
            let answer = serde_json::from_str::<Value>(&answer).unwrap_or_default();
            if let Some(started) = answer["id"].as_str() {
                started.clone_into(&mut job);
            }
            count += 1;
        }
    }
    assert!(count >= 4, "only {count} lines were found");
    server.kill().await;
}

#[tokio::test]
async fn the_guide_explains_every_check_of_the_doctor() {
    let world = World::new();
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide.md");
    let guide = fs::read_to_string(guide).unwrap();
    let (_, chapter) = guide.split_once("\n## Finding out what is wrong\n").expect("a chapter");
    let (chapter, _) = chapter.split_once("\n## ").expect("another chapter");
    let explained: Vec<&str> = chapter
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(name, _)| name)
        .collect();
    let server = world.serve().await;
    let report: Value = world.cli(&["doctor", "--json"]).await.json();
    let checks = report["checks"].as_array().expect("checks");
    let made: Vec<&str> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(explained, made);
    server.kill().await;
}
