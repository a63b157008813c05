//! Invalid configurations are refused with file, line, key and reason (H122).

use crate::harness::{World, service, within};
use serde_json::json;
use std::fs;
use std::path::Path;

/// Stands where a secret belongs.
const SECRET: &str = "c4n4ry-in-the-file-b7e20d5f91";

/// The beginning of a valid file.
const HEAD: &str = "projects_root: ROOT\nstate_dir: STATE\n";

/// Name, bytes after the head, and the word that the message must contain.
fn corpus() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let text = |text: &str| text.as_bytes().to_vec();
    let mut all = vec![
        ("a list", text("- a\n- b\n"), "mapping"),
        ("unclosed brackets", text("host: [\n"), ""),
        ("an unclosed quote", text("host: \"x\n"), ""),
        ("a tab as indent", text("auth:\n\tenabled: true\n"), ""),
        ("a key twice", text("host: a\nhost: b\n"), "host"),
        ("a nested key twice", text("auth:\n  enabled: true\n  enabled: false\n"), "enabled"),
        ("two documents", text("---\nhost: a\n---\nhost: b\n"), ""),
        ("a custom tag", text("host: !run x\n"), ""),
        ("a tag of a language", text("host: !!python/object/apply:os.system [x]\n"), ""),
        ("an unknown alias", text("host: *nobody\n"), ""),
        ("bytes that are no text", b"host: \xff\xfe\n".to_vec(), ""),
        ("a NUL", b"host: a\0b\n".to_vec(), ""),
        ("a text as port", text("port: many\n"), "port"),
        ("a port too large", text("port: 70000\n"), "port"),
        ("a negative port", text("port: -1\n"), "port"),
        ("half a port", text("port: 1.5\n"), "port"),
        ("a list as port", text("port: [1]\n"), "port"),
        ("a mapping as host", text("host: {a: b}\n"), "host"),
        ("a number as switch", text("auth:\n  enabled: 3\n"), "auth.enabled"),
        ("a word as switch", text("auth:\n  enabled: perhaps\n"), "auth.enabled"),
        ("a text as section", text("auth: on the door\n"), "auth"),
        ("a list as section", text("claude: [a]\n"), "claude"),
        ("a number as section", text("logs: 3\n"), "logs"),
        ("a text as list", text("auth:\n  allowed_hosts: 3\n"), "auth.allowed_hosts"),
        ("a list of lists", text("auth:\n  allowed_hosts: [[a]]\n"), "auth.allowed_hosts"),
        ("an unknown word", text("instance_defaults:\n  spawn_mode: fast\n"), "spawn_mode"),
        ("an unknown mode", text("instance_defaults:\n  permission_mode: x\n"), "permission_mode"),
        ("an unknown level", text("log_level: loud\n"), "log_level"),
        ("an unknown format", text("log_format: xml\n"), "log_format"),
        ("a duration of nothing", text("auth:\n  session_max_age_seconds: x\n"), "session_max_age"),
        (
            "a negative time",
            text("claude:\n  startup_grace_seconds: -1\n"),
            "startup_grace_seconds",
        ),
        ("no number", text("claude:\n  startup_grace_seconds: .nan\n"), "startup_grace_seconds"),
        ("an endless number", text("claude:\n  stop_grace_seconds: .inf\n"), "stop_grace_seconds"),
        ("a huge number", text("logs:\n  keep_rotated: 99999999999999999999\n"), "keep_rotated"),
        ("an open host", text("host: 0.0.0.0\n"), "host"),
        ("a password without one", text("auth:\n  password_required: true\n"), "password"),
        ("a short hash", text("auth:\n  api_token_hash: short\n"), "api_token_hash"),
        (
            "a costly hash",
            text(
                "auth:\n  password_hash: $argon2id$v=19$m=9000000,t=3,p=4$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA\n",
            ),
            "password_hash",
        ),
        ("a proxy for nobody", text("auth:\n  reverse_proxy: {enabled: true}\n"), "trusted_ips"),
        (
            "a proxy without secret",
            text("auth:\n  reverse_proxy: {enabled: true, trusted_ips: [10.0.0.1]}\n"),
            "shared_secret",
        ),
        ("no address", text("auth:\n  reverse_proxy: {trusted_ips: [nobody]}\n"), "trusted_ips"),
        (
            "a secret as list",
            text(&format!("auth:\n  api_token_hash: [{SECRET}]\n")),
            "api_token_hash",
        ),
        (
            "a secret as mapping",
            text(&format!("auth:\n  api_token_hash: {{x: {SECRET}}}\n")),
            "api_token_hash",
        ),
        (
            "a secret of the wrong form",
            text(&format!("auth:\n  api_token_hash: {SECRET}\n")),
            "api_token_hash",
        ),
        (
            "a proxy's secret as list",
            text(&format!("auth:\n  reverse_proxy:\n    shared_secret: [{SECRET}]\n")),
            "shared_secret",
        ),
        ("a directory that is none", text("projects_root: /nowhere/at/all\n"), "projects_root"),
    ];
    let deep = format!("host: {}{}\n", "[".repeat(200), "]".repeat(200));
    all.push(("two hundred levels", deep.into_bytes(), ""));
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let before = level - 1;
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{before}"); 9].join(", "));
    }
    all.push(("a bomb of aliases", bomb.into_bytes(), ""));
    let large = format!("host: {}\n", "x".repeat(10 * 1024 * 1024));
    all.push(("ten megabytes", large.into_bytes(), ""));
    all.push(("a merge with itself", text("a: &a\n  <<: *a\n"), ""));
    all
}

async fn check(world: &World, file: &Path, args: &[&str]) -> (Option<i32>, String) {
    let mut command = tokio::process::Command::new(service());
    command.args(args).arg("--config").arg(file).env_clear().envs(world.environment());
    command.stdin(std::process::Stdio::null()).current_dir(&world.root);
    let ran = within("its end", command.output()).await.unwrap();
    assert!(ran.stdout.is_empty(), "{}", String::from_utf8_lossy(&ran.stdout));
    (ran.status.code(), String::from_utf8(ran.stderr).unwrap())
}

#[track_caller]
fn refused(what: &str, file: &Path, said: &(Option<i32>, String), named: &str) {
    let (code, words) = said;
    assert_eq!(*code, Some(2), "{what}: {words}");
    assert!(words.contains(named), "{what} does not name `{named}`: {words}");
    assert!(words.contains(file.to_str().unwrap()), "{what} does not name the file: {words}");
    for trace in ["panicked", "stack backtrace", "RUST_BACKTRACE", ".rs:", SECRET] {
        assert!(!words.contains(trace), "{what}: {words}");
    }
    assert!(words.lines().count() <= 3 && words.len() < 2000, "{what}: {words}");
    assert!(words.chars().all(|c| c == '\n' || !c.is_control()), "{what}: {words:?}");
}

#[tokio::test]
async fn h122_fifty_files_that_are_no_configuration_are_refused_by_place_and_key() {
    let world = World::new();
    let head = HEAD
        .replace("ROOT", world.projects.to_str().unwrap())
        .replace("STATE", world.state.to_str().unwrap());
    let corpus = corpus();
    assert!(corpus.len() >= 50, "{}", corpus.len());
    let file = world.root.join("other.yml");
    let mut without_line = Vec::new();
    for (what, rest, named) in corpus {
        let needs_no_head = what == "a list" || what == "a directory that is none";
        let mut bytes = if needs_no_head { Vec::new() } else { head.clone().into_bytes() };
        bytes.extend(rest);
        fs::write(&file, bytes).unwrap();
        let said = check(&world, &file, &["config", "check"]).await;
        refused(what, &file, &said, named);
        let place = format!("{}:", file.display());
        let line = said.1.split(&place).nth(1).and_then(|rest| rest.chars().next());
        if !line.is_some_and(|first| first.is_ascii_digit()) {
            without_line.push((what, said.1));
        }
    }
    // A key that is missing stands on no line, nor does the size of the file.
    let nowhere =
        ["a password without one", "a proxy for nobody", "a proxy without secret", "ten megabytes"];
    without_line.retain(|(what, _)| !nowhere.contains(what));
    assert!(without_line.is_empty(), "{without_line:#?}");
    assert!(!world.state.exists(), "nothing was created for a file that is none");
}

#[tokio::test]
async fn h122_what_is_no_readable_file_is_refused_and_odd_line_ends_are_not() {
    let world = World::new();
    let directory = world.root.join("dir.yml");
    fs::create_dir(&directory).unwrap();
    let said = check(&world, &directory, &["config", "check"]).await;
    refused("a directory", &directory, &said, "");
    let missing = world.root.join("missing.yml");
    let said = check(&world, &missing, &["config", "check"]).await;
    refused("a missing file", &missing, &said, "");
    let pipe = world.root.join("pipe.yml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let said = check(&world, &pipe, &["config", "check"]).await;
    refused("a pipe", &pipe, &said, "");
    let dangling = world.root.join("dangling.yml");
    std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
    let said = check(&world, &dangling, &["config", "check"]).await;
    refused("a dangling link", &dangling, &said, "");

    // A byte order mark, lines that end as on another system, and a link are no fault.
    let text = fs::read_to_string(&world.config).unwrap();
    fs::write(&world.config, format!("\u{feff}{}", text.replace('\n', "\r\n"))).unwrap();
    world.cli(&["config", "check"]).await.ok();
    let real = world.root.join("real.yml");
    fs::rename(&world.config, &real).unwrap();
    std::os::unix::fs::symlink(&real, &world.config).unwrap();
    world.cli(&["config", "check"]).await.ok();
}

/// A variable is judged as the file is, and its secret is not repeated.
#[tokio::test]
async fn h122_variables_are_judged_as_the_file_is() {
    let world = World::new();
    for (name, value) in [
        ("SVC_PORT", "many"),
        ("SVC_HOST", "0.0.0.0"),
        ("SVC_AUTH_ENABLED", "perhaps"),
        ("SVC_AUTH_API_TOKEN_HASH", SECRET),
        ("SVC_LOG_LEVEL", "loud"),
        ("SVC_CLAUDE_STARTUP_GRACE_SECONDS", "-1"),
    ] {
        let ran = world.cli_with(&["config", "check"], &[(name, value)]).await;
        assert_eq!(ran.code, Some(2), "{name}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(name), "{name}: {}", ran.stderr);
        assert!(!ran.stderr.contains(SECRET), "{name}: {}", ran.stderr);
    }
    // A key that nobody knows is a warning with the nearest name, at every load.
    world.configure(json!({ "claude": { "bniary": "x" } }));
    for _ in 0..2 {
        let ran = world.cli(&["config", "check"]).await.ok();
        assert!(
            ran.stdout.contains("claude.bniary") && ran.stdout.contains("binary"),
            "{}",
            ran.stdout
        );
    }
}
