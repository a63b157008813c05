//! Files: what loads, what is refused, and with which words (H122).

use crate::{FIRST_LINE, Fixture, good, only_problem, relative};
use proptest::prelude::*;
use std::time::Duration;
use svc_config::{LogFormat, LogLevel, UsageMode, load_text};
use svc_shared::status::{PermissionMode, RestartPolicy, ResumeMode, SpawnMode};

/// The file is refused with exactly this one line.
#[track_caller]
fn refused(content: impl AsRef<[u8]>, expected: &str) {
    let fixture = Fixture::new();
    let errors = fixture.load_bytes(content, &[]).unwrap_err();
    assert_eq!(only_problem(&fixture, &errors), format!("config error: {expected}"));
}

/// The file is refused with this reason for this key.
///
/// `line` counts the lines of `content`, which follows a valid first line.
#[track_caller]
fn refused_key(content: &str, line: usize, key: &str, reason: &str) {
    let fixture = Fixture::new();
    let errors = fixture.load(content, &[]).unwrap_err();
    let found = only_problem(&fixture, &errors);
    let start = format!("config error: svc.yml:{}: {key}: ", line + FIRST_LINE - 1);
    assert!(found.starts_with(&start) && found.contains(reason), "{found}");
}

#[test]
fn the_smallest_file_gives_every_default() {
    let fixture = Fixture::new();
    let loaded = fixture.load("", &[]).unwrap();
    let config = &loaded.config;
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    assert_eq!(config.projects_root, fixture.path("projects"));
    assert_eq!(config.state_dir, fixture.path("home/.local/state/svc"));
    assert!(!fixture.path("home").exists(), "reading a configuration creates nothing");
    assert_eq!((config.host.as_str(), config.port), ("127.0.0.1", 7621));
    assert_eq!((config.log_format, config.log_level), (LogFormat::Text, LogLevel::Info));
    assert_eq!(config.claude.startup_grace, Duration::from_secs(60));
    assert_eq!(config.claude.stop_grace, Duration::from_secs(5));
    assert_eq!(config.claude.launch_mode, ResumeMode::Standard);
    assert_eq!(config.instance_defaults.spawn_mode, SpawnMode::SameDir);
    assert_eq!(config.instance_defaults.permission_mode, PermissionMode::Default);
    assert_eq!(config.instance_defaults.capacity, 32);
    assert_eq!(config.instance_defaults.max_bridges, None);
    assert_eq!(config.restart.policy, RestartPolicy::Never);
    assert_eq!(config.auth.session_max_age, Duration::from_secs(7 * 86_400));
    assert_eq!(config.webhooks.events.values().filter(|on| **on).count(), 4);
    assert_eq!(config.webhooks.events.len(), 7);
    assert_eq!(config.hosted_socket(), config.state_dir.join("hosted/daemon.sock"));
    assert_eq!(config.usage.symbol(), "$");
    assert_eq!(config.tls, None);
    assert_eq!(config.session_secret, None);
}

#[test]
fn a_full_file_gives_typed_values() {
    let loaded = good(concat!(
        "host: localhost\nport: \"80\"\nstate_dir: ~/state\nroot_path: foo/\nlog_level: Error\n",
        "claude:\n  binary: bin/claude\n  startup_grace_seconds: 250ms\n",
        "  path_append: [~/bin, rel]\n",
        "  env: {TOKEN: abc, N: 7, EMPTY: ''}\n",
        "instance_defaults: {spawn_mode: session, permission_mode: inherit, max_bridges: 3}\n",
        "restart: {policy: on-crash}\n",
        "usage: {mode: off, currency: eur}\n",
        "auth: {allowed_origins: ['HTTPS://Me.Example:443/'], allowed_hosts: ['*.Example']}\n",
        "webhooks: {events: {clone-done: yes, spawn: no}}\n",
    ));
    let config = &loaded.config;
    assert_eq!(config.port, 80);
    assert!(config.state_dir.ends_with("home/state"));
    assert_eq!(config.root_path, "/foo");
    assert_eq!(config.log_level, LogLevel::Error);
    assert!(config.claude.binary.ends_with("/bin/claude"), "relative to the file");
    assert_eq!(config.claude.startup_grace, Duration::from_millis(250));
    assert!(config.claude.path_append[0].ends_with("home/bin"));
    assert!(config.claude.path_append[1].is_absolute());
    let env: Vec<_> =
        config.claude.env.iter().map(|(name, text)| (name.as_str(), text.expose())).collect();
    assert_eq!(env, [("EMPTY", ""), ("N", "7"), ("TOKEN", "abc")]);
    assert_eq!(config.instance_defaults.max_bridges, Some(3));
    assert_eq!(config.usage.mode, UsageMode::Off, "a bare off is the word, not a switch");
    assert_eq!(config.usage.symbol(), "EUR ");
    assert_eq!(config.auth.allowed_origins, ["https://me.example"]);
    assert_eq!(config.auth.allowed_hosts, ["*.example"]);
    assert!(config.webhooks.events["clone-done"] && !config.webhooks.events["spawn"]);
    assert!(config.webhooks.events["ready"], "an absent event keeps its default");
}

#[test]
fn spellings_of_other_editors_and_systems_are_read() {
    for content in [
        "\u{feff}projects_root: projects\r\nport: 80\r\n",
        "%YAML 1.2\n---\nprojects_root: projects\nport: 80\n...\n",
        "{\"projects_root\": \"projects\", \"port\": 80}",
        "x-base: &base {port: 80}\n<<: *base\nprojects_root: projects\n",
        "x-p: &p 80\nprojects_root: projects\nport: *p\n",
    ] {
        let loaded = Fixture::new().load_bytes(content, &[]).unwrap();
        assert_eq!(loaded.config.port, 80, "{content:?}");
        assert!(loaded.warnings.is_empty(), "{content:?}: {:?}", loaded.warnings);
    }
}

#[test]
fn a_configuration_behind_a_link_keeps_its_own_directory() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("real")).unwrap();
    let real = fixture.write("real/real.yml", "projects_root: projects\n");
    let link = fixture.path("svc.yml");
    #[cfg(unix)]
    std::os::unix::fs::symlink(real, &link).unwrap();
    let environment = fixture.environment(&[]);
    let found = svc_config::find(Some(&link), &environment, &fixture.path("")).unwrap();
    let loaded = svc_config::load(&found, &environment).unwrap();
    assert_eq!(loaded.config.projects_root, fixture.path("projects"));
}

#[test]
fn what_is_no_configuration_is_refused_in_one_line() {
    refused(b"projects_root: \xff\n", "svc.yml:1: is not UTF-8; save it as UTF-8");
    refused(b"a: 1\nb: \xc3\x28\n", "svc.yml:2: is not UTF-8; save it as UTF-8");
    refused("- a\n- b\n", "svc.yml:1: must be a mapping of keys and values");
    refused("just text\n", "svc.yml:1: must be a mapping of keys and values");
    refused("a: 1\n---\nb: 1\n", "svc.yml:2: holds more than one document; keep one");
    refused(
        "a:\n\tb: 1\n",
        "svc.yml:2: is not YAML: a tab stands where only blanks may (column 2)",
    );
    refused("a: [1, 2\n", "svc.yml:1: is not YAML: a bracket is not closed (column 4)");
    refused("a: &a [*a]\n", "svc.yml:1: has an alias inside the very value it stands for");
    refused("a: !env X\n", "svc.yml:1: has a custom tag (!…); only plain values are read");
    refused("a".repeat(1024 * 1024 + 1), "svc.yml: is larger than 1 MiB; is this the right file?");
    let deep = format!("a: {}", "[".repeat(200_000));
    refused(deep, "svc.yml:1: is nested deeper than 64 levels (column 68)");
}

#[test]
fn an_empty_file_lacks_only_the_projects() {
    let expected = "svc.yml: projects_root: is required; set it to the directory that holds your \
                    projects";
    for content in ["", "# nothing\n", "---\n", "~\n", "{}\n"] {
        refused(content, expected);
    }
}

#[test]
fn an_unreadable_file_says_so() {
    let fixture = Fixture::new();
    let file = fixture.write("svc.yml", "");
    let environment = fixture.environment(&[]);
    let found = svc_config::find(Some(&file), &environment, &fixture.path("")).unwrap();
    std::fs::remove_file(&file).unwrap();
    let errors = svc_config::load(&found, &environment).unwrap_err();
    let line = only_problem(&fixture, &errors);
    assert!(line.starts_with("config error: svc.yml: cannot be read ("), "{line}");
}

#[test]
fn the_projects_directory_must_be_one() {
    let fixture = Fixture::new();
    fixture.write("file", "");
    for (root, reason) in [("file", "is not a directory"), ("missing", "cannot be used")] {
        let errors = fixture.load_bytes(format!("projects_root: {root}\n"), &[]).unwrap_err();
        let line = only_problem(&fixture, &errors);
        assert!(line.starts_with("config error: svc.yml:1: projects_root: "), "{line}");
        assert!(line.contains(reason), "{line}");
    }
    refused(
        "projects_root: ~\n",
        "svc.yml:1: projects_root: is null, as an empty value and a lone ~ are; write a path, \
         \"~\" in quotes for the home directory",
    );
}

#[test]
fn a_wrong_value_is_named_with_its_line_and_key() {
    refused_key("port: 70000\n", 1, "port", "must be between 1 and 65535 (found 70000)");
    refused_key("port: true\n", 1, "port", "must be a whole number (found true)");
    refused_key("\nport:\n", 2, "port", "is null");
    refused_key("port: [80]\n", 1, "port", "must be a single value, not a list");
    refused_key("host: {a: 1}\n", 1, "host", "must be a single value, not a mapping");
    refused_key(
        "claude:\n  startup_grace_seconds: .inf\n",
        2,
        "claude.startup_grace_seconds",
        "number",
    );
    refused_key("usage: {fx_rate: .nan}\n", 1, "usage.fx_rate", "finite");
    refused_key("auth:\n  enabled: enabled\n", 2, "auth.enabled", "true or false (found enabled)");
    refused_key("auth: yes\n", 1, "auth", "must be a mapping");
    refused_key("auth: [a]\n", 1, "auth", "must be a mapping");
    refused_key("projects: [a]\n", 1, "projects", "mapping of project names");
    refused_key("projects:\n  api: true\n", 2, "projects.api", "mapping");
    refused_key(
        "projects:\n  a.b: {restart: maybe}\n",
        2,
        "projects.a.b.restart",
        "never, on-crash",
    );
    refused_key("claude: {path_append: /bin}\n", 1, "claude.path_append", "must be a list");
    refused_key("claude: {path_append: [a, [b]]}\n", 1, "claude.path_append", "entry 2");
    refused_key("claude: {path_append: [a, ~]}\n", 1, "claude.path_append", "entry 2");
    refused_key("claude: {env: {A=B: x}}\n", 1, "claude.env.A…", "no name a variable");
    refused_key("claude: {env: {A: ~}}\n", 1, "claude.env.A", "is null");
    refused_key("claude: {env: {A: [x]}}\n", 1, "claude.env.A", "must be a text");
    refused_key("claude: {env: x}\n", 1, "claude.env", "must be a mapping");
    refused_key(
        "webhooks: {events: {spwan: true}}\n",
        1,
        "webhooks.events.spwan",
        "spawn, ready, stop, crash, bg-settled, permission-needed, clone-done",
    );
    refused_key(
        "clone: {allowed_private_cidrs: [10.0.0.0/40]}\n",
        1,
        "clone.allowed_private_cidrs",
        "entry 1",
    );
    refused_key("schema_version: 0\n", 1, "schema_version", "at least 1");
    refused_key("claude: {resume_mode: both}\n", 1, "claude.resume_mode", "standard, pty");
    refused_key(
        "restart: {initial_delay_seconds: 9, max_delay_seconds: 3}\n",
        1,
        "restart.max_delay_seconds",
        "must not be below",
    );
    refused_key(
        "auth: {reverse_proxy: {shared_secret_header: remote-user}}\n",
        1,
        "auth.reverse_proxy.shared_secret_header",
        "must not be the header",
    );
}

#[test]
fn every_problem_is_reported_in_one_run() {
    let fixture = Fixture::new();
    let content = "port: 0\nport: 1\nlog_level: loud\nauth: {cookie_secure: perhaps}\n\
                   projects_root: nowhere\n";
    let errors = fixture.load_bytes(content, &[("SVC_USAGE_FX_RATE", "0")]).unwrap_err();
    let lines: Vec<_> = errors.lines().iter().map(|line| relative(&fixture, line)).collect();
    let starts = [
        "svc.yml:2: port: is set twice, in lines 1 and 2",
        "svc.yml:1: port: must be between",
        "svc.yml:3: log_level: must be one of debug, info, warning, error (found loud)",
        "svc.yml:4: auth.cookie_secure: must be one of auto, always, never",
        "SVC_USAGE_FX_RATE: usage.fx_rate: must be greater than 0 (found 0)",
        "svc.yml:5: projects_root: nowhere cannot be used",
    ];
    assert_eq!(lines.len(), starts.len(), "{lines:#?}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(&format!("config error: {start}")), "{line}");
    }
}

#[test]
fn a_file_of_unknown_keys_is_read_in_no_time() {
    let content: String = (0..4_900).map(|n| format!("unknown_key_number_{n}: 1\n")).collect();
    assert_eq!(good(&content).warnings.len(), 4_900);
    let content: String = (0..10_001).map(|n| format!("k{n}: 1\n")).collect();
    refused(content, "svc.yml:5001: holds more than 10000 values after its aliases are expanded");
}

#[test]
fn duplicates_below_a_project_name_both_lines() {
    refused_key(
        "projects:\n  api:\n    restart: never\n    restart: always\n",
        4,
        "projects.api.restart",
        "in lines 4 and 5",
    );
}

#[test]
fn a_text_without_an_environment_is_a_configuration() {
    let fixture = Fixture::new();
    let text = format!(
        "projects_root: projects\nstate_dir: {}\nclaude: {{env: {{AGENT_SIM: '1'}}}}\n",
        fixture.path("state").display()
    );
    let loaded = load_text(&text, &fixture.path("")).unwrap();
    assert_eq!(loaded.config.state_dir, fixture.path("state"));
    assert_eq!(loaded.path, None);
    let errors = load_text("projects_root: projects\n", &fixture.path("")).unwrap_err();
    assert_eq!(
        errors.lines(),
        ["config error: configuration: state_dir: has no default, because the environment names \
          no home directory; set it"]
    );
}

fn known_keys() -> Vec<&'static str> {
    svc_config::table::leaves().map(|leaf| leaf.key).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_bytes_stop_the_loader(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Fixture::new().load_bytes(&bytes, &[]);
    }

    #[test]
    fn no_value_under_a_known_key_stops_the_loader(
        key in prop::sample::select(known_keys()),
        value in "[-a-z0-9:{}\\[\\]&*!|>'\"%@`#?,~<. \n./]{0,24}",
        variable in "[-a-z0-9,.\\[\\]\" \n/~]{0,24}",
    ) {
        let fixture = Fixture::new();
        let mut yaml = String::new();
        for (depth, part) in key.split('.').enumerate() {
            let name = part.replace(['<', '>'], "");
            yaml.push_str(&format!("\n{}{name}:", " ".repeat(depth)));
        }
        let leaf = svc_config::table::leaf(key).unwrap();
        let name = leaf.variable().unwrap_or_else(|| "SVC_X".to_owned());
        let _ = fixture.load_bytes(format!("{yaml} {value}\n"), &[(&name, &variable)]);
    }
}
