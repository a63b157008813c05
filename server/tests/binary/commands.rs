//! Commands without a server.

use crate::workspace::{Ended, Workspace};
use std::fs;
use std::process::Stdio;

#[test]
fn version_and_help_are_results() {
    let workspace = Workspace::empty();
    let version = workspace.run("--version").exits(0);
    assert_eq!(version.out, format!("svc {}\n", env!("CARGO_PKG_VERSION")));
    let help = workspace.run("--help").exits(0);
    for part in ["SVC_CONFIG", "./svc.yml", "$SVC_HOME/svc.yml", ".config/svc", "/etc/svc/svc.yml"]
    {
        assert!(help.out.contains(part), "{part} is missing in {}", help.out);
    }
    assert!(help.err.is_empty() && !help.out.contains('\u{1b}'));
    for command in ["run", "demo", "config", "config show", "start", "logs"] {
        let help = workspace.run(&format!("{command} --help")).exits(0);
        assert!(help.out.contains("Examples:"), "{command}: {}", help.out);
    }
}

#[test]
fn a_usage_error_is_prefixed_and_exits_2() {
    let workspace = Workspace::empty();
    for line in ["bogus", "start", "logs x -n many", "config", "status --nope", "demo --port 0"] {
        let ended = workspace.run(line).exits(2);
        assert!(ended.out.is_empty(), "{line}: {ended:?}");
        assert!(!ended.err.is_empty());
        assert!(ended.err.lines().all(|line| line.starts_with("svc: ")), "{ended:#?}");
    }
    let json = workspace.run("status --nope --json").exits(2).json();
    assert_eq!(json["error"]["code"], "usage");
}

#[test]
fn without_a_configuration_every_other_command_names_the_search_path_and_the_demo() {
    let workspace = Workspace::empty();
    for line in ["status", "config path", "start api"] {
        let ended = workspace.run(line).exits(2);
        assert!(ended.err.contains("svc demo"), "{ended:#?}");
        let own = workspace.path("svc.yml");
        assert!(ended.err.contains(own.to_str().unwrap()), "{ended:#?}");
        assert!(ended.err.contains("/etc/svc/svc.yml"), "{ended:#?}");
    }
    let json = workspace.run("status --json").exits(2).json();
    assert_eq!(json["error"]["code"], "config_missing");
}

#[test]
fn a_named_file_is_the_only_candidate_before_or_after_the_command() {
    let workspace = Workspace::configured("");
    for line in ["-c other.yml config path", "config path -c other.yml", "config path --config=x"] {
        let ended = workspace.run(line).exits(2);
        assert!(!ended.err.contains("svc.yml (working"), "{ended:#?}");
    }
    workspace.write("other.yml", "projects_root: projects\nstate_dir: state\n");
    let ended = workspace.run("config path -c other.yml").exits(0);
    assert_eq!(ended.out.lines().next(), workspace.path("other.yml").to_str());
}

#[test]
fn config_path_has_the_file_alone_on_its_first_line() {
    let workspace = Workspace::configured("");
    let ended = workspace.run("config path").exits(0);
    assert_eq!(ended.out.lines().next(), workspace.path("svc.yml").to_str());
    let json = workspace.run("config path --json").exits(0).json();
    assert_eq!(json["path"].as_str(), workspace.path("svc.yml").to_str());
    assert_eq!(json["searched"][0]["step"], "working directory");
}

#[test]
fn config_check_tells_valid_from_strict_from_broken() {
    let workspace = Workspace::configured("hosst: x\n");
    let ended = workspace.run("config check").exits(0);
    assert!(ended.out.contains("warning:") && ended.out.contains("1 warning"), "{ended:#?}");
    let strict = workspace.run("config check --strict --json").exits(3).json();
    assert_eq!(strict["error"]["code"], "config_warnings");
    assert_eq!(strict["warnings"].as_array().unwrap().len(), 1);

    workspace.write("svc.yml", "projects_root: nowhere\nport: 70000\nhosst: x\n");
    let ended = workspace.run("config check").exits(2);
    for part in ["config error:", "projects_root", "port", "hosst"] {
        assert!(ended.err.contains(part), "{part}: {ended:#?}");
    }
    assert!(ended.out.is_empty());
    let json = workspace.run("config check --json").exits(2).json();
    assert_eq!(json["error"]["code"], "config");
    assert!(json["problems"].as_array().unwrap().len() >= 2, "{json:#}");
}

#[test]
fn config_show_masks_secrets_and_names_sources() {
    let workspace = Workspace::configured("webhooks:\n  secret: hunter2hunter2hunter2\n");
    for line in ["config show", "config show --effective", "config show --json"] {
        let ended = workspace.run(line).exits(0);
        assert!(!ended.out.contains("hunter2") && !ended.err.contains("hunter2"), "{line}");
        assert!(ended.out.contains("********"), "{}", ended.out);
    }
    let mut command = workspace.command(["config", "show", "--json"]);
    let json = Ended::of(command.env("SVC_LOG_LEVEL", "debug").output().unwrap()).exits(0).json();
    assert_eq!(json["keys"]["log_level"]["value"], "debug");
    assert_eq!(json["keys"]["log_level"]["source"], "env:SVC_LOG_LEVEL");
    assert_eq!(json["keys"]["projects_root"]["source"], "file:1");
    assert_eq!(json["keys"]["host"]["source"], "default");
}

#[test]
fn read_commands_create_nothing_where_nothing_was_started() {
    let workspace = Workspace::configured("");
    let before = workspace.listing();
    assert_eq!(workspace.run("status --json").exits(0).out, "[]\n");
    let status = workspace.run("status").exits(0);
    assert!(status.out.is_empty() && status.err == "svc: No instances found.\n", "{status:?}");
    let projects = workspace.run("projects").exits(0);
    assert!(projects.out.starts_with("PROJECT  GIT  TRUST"), "{projects:?}");
    assert!(projects.out.contains("\napi "), "{projects:?}");
    workspace.run("logs api").exits(2);
    workspace.run("open api").exits(2);
    assert_eq!(workspace.listing(), before);
}

#[test]
fn no_projects_is_a_note_and_an_empty_list() {
    let workspace = Workspace::configured("");
    fs::remove_dir(workspace.path("projects/api")).unwrap();
    let ended = workspace.run("projects").exits(0);
    assert!(ended.out.is_empty() && ended.err == "svc: No projects found.\n", "{ended:?}");
    assert_eq!(workspace.run("projects --json").exits(0).out, "[]\n");
}

#[test]
fn what_does_not_exist_or_may_not_be_started_exits_2() {
    let workspace = Workspace::configured("");
    for line in [
        "start nope",
        "stop nope",
        "resume nope",
        "forget nope",
        "start api --spawn-mode tree",
        "start api --permission-mode yolo",
        "start api --name --help",
    ] {
        let ended = workspace.run(line).exits(2);
        assert!(ended.err.starts_with("svc: "), "{line}: {ended:#?}");
    }
    let untrusted = workspace.run("start api --json").exits(2);
    assert_eq!(untrusted.json()["error"]["code"], "not_trusted");
    assert!(untrusted.err.contains("--trust"), "{untrusted:#?}");
}

#[test]
fn a_missing_agent_fails_a_start_and_leaves_no_bridge() {
    let workspace = Workspace::configured("");
    let ended = workspace.run("start api --trust --json").exits(1);
    assert_eq!(ended.json()["error"]["code"], "agent_missing");
    assert_eq!(workspace.run("status --json").exits(0).out, "[]\n");
    let sessions = workspace.run("sessions").exits(1);
    assert!(sessions.err.contains("claude"), "{sessions:#?}");
}

#[test]
fn a_database_that_is_none_is_refused_and_left_alone() {
    let workspace = Workspace::configured("");
    fs::create_dir(workspace.path("state")).unwrap();
    workspace.write("state/svc.db", "not a database");
    let ended = workspace.run("status --json").exits(1);
    assert_eq!(ended.json()["error"]["code"], "store");
    assert_eq!(fs::read_to_string(workspace.path("state/svc.db")).unwrap(), "not a database");
}

#[test]
fn h68_a_reader_that_closes_early_is_no_error() {
    let workspace = Workspace::configured("");
    let mut child = workspace
        .command(["config", "show"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));

    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = workspace.command(["config", "show"]).stdout(full).output().unwrap();
    let ended = Ended::of(output).exits(1);
    assert!(ended.err.contains("standard output"), "{ended:#?}");
}

#[test]
fn h68_names_that_steer_a_terminal_arrive_harmless() {
    // Control characters are no project names; directional marks neither. What is left is shown
    // as it is, and JSON and tables agree on it.
    let workspace = Workspace::configured("");
    for name in ["übung", "has space", "a\u{1b}[31m", "evil\u{202e}"] {
        fs::create_dir(workspace.path("projects").join(name)).unwrap();
    }
    for line in ["projects", "projects --json"] {
        let ended = workspace.run(line).exits(0);
        assert!(ended.out.contains("übung") && ended.out.contains("has space"), "{ended:#?}");
        assert!(!ended.out.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'));
    }
}

#[test]
fn the_demo_without_its_simulator_says_how_to_build_it() {
    let workspace = Workspace::empty();
    let program = workspace.path("bin/svc");
    if fs::hard_link(env!("CARGO_BIN_EXE_svc"), &program).is_err() {
        svc_programs::copy(env!("CARGO_BIN_EXE_svc"), &program).unwrap();
    }
    let output = std::process::Command::new(&program).arg("demo").output().unwrap();
    let ended = Ended::of(output).exits(1);
    assert_eq!(ended.err.lines().count(), 1, "{ended:#?}");
    assert!(ended.err.contains("cargo build") && ended.err.contains("svc-agent-sim"), "{ended:#?}");
}

#[test]
fn the_demo_takes_no_configuration() {
    let workspace = Workspace::configured("");
    let ended = workspace.run("demo -c svc.yml").exits(2);
    assert!(ended.err.contains("svc run"), "{ended:#?}");
}
