//! The server as its operator sees it: start, refusals, signals, modes.

use crate::workspace::{Manager, Workspace};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_server_says_where_it_is_answers_and_ends_with_0() {
    let workspace = Workspace::configured("");
    let mut server = workspace.serve();
    assert!(server.get("/healthz").starts_with("HTTP/1.1 200"), "{}", server.get("/healthz"));
    assert!(!server.get("/healthz").contains("\"demo\""));
    server.signal(Signal::HUP);
    server.line_with("read again, as asked by a signal");
    assert!(server.get("/healthz").starts_with("HTTP/1.1 200"));
    server.signal(Signal::TERM);
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn the_banner_names_version_agent_projects_and_address() {
    let workspace = Workspace::configured("");
    let agent = workspace.path("bin/claude");
    svc_programs::write(&agent, "#!/bin/sh\necho '2.1.197 (Claude Code)'\n").unwrap();
    let mut server = workspace.serve_with(|command| command.env("SVC_LOG_FORMAT", "json"));
    let banner = server.said().to_owned();
    let banner: serde_json::Value = serde_json::from_str(&banner).expect("a JSON line");
    let banner = banner["message"].as_str().expect("a message");
    assert!(banner.starts_with(&format!("svc {}, ", env!("CARGO_PKG_VERSION"))), "{banner}");
    assert!(banner.contains("agent 2.1.197") && banner.contains("projects"), "{banner}");
    server.signal(Signal::INT);
    let line = server.line_with("ending");
    let entry: serde_json::Value = serde_json::from_str(&line).expect("a JSON line");
    assert_eq!(entry["level"], "INFO");
    assert_eq!(server.exit_code(), Some(0));

    fs::remove_file(&agent).unwrap();
    let without = workspace.serve();
    assert!(without.said().contains("agent not available"), "{}", without.said());
}

#[test]
fn a_second_server_on_the_state_directory_names_the_first() {
    let workspace = Workspace::configured("");
    let server = workspace.serve();
    let ended = workspace.run("run").exits(1);
    assert!(ended.err.contains(&server.pid().to_string()), "{ended:#?}");
    assert!(ended.err.contains(&server.address), "{ended:#?}");
    assert_eq!(workspace.run("status --json").exits(0).out, "[]\n");
    server.signal(Signal::KILL);
    assert_eq!(server.exit_code(), None);
    let again = workspace.serve();
    again.signal(Signal::TERM);
    assert_eq!(again.exit_code(), Some(0));
}

#[test]
fn a_taken_port_ends_the_start_with_the_address_and_a_remedy() {
    let workspace = Workspace::configured("");
    let server = workspace.serve();
    let (_, port) = server.address.rsplit_once(':').unwrap();
    let other = Workspace::empty();
    other.write("svc.yml", &format!("projects_root: projects\nstate_dir: state\nport: {port}\n"));
    let ended = other.run("run").exits(1);
    assert!(ended.err.contains(&server.address), "{ended:#?}");
    assert!(ended.err.contains("`port`"), "{ended:#?}");
}

/// H28.
#[test]
fn files_at_rest_are_private_whatever_the_umask_and_the_old_mode() {
    let workspace = Workspace::configured("");
    fs::create_dir(workspace.path("state")).unwrap();
    fs::set_permissions(workspace.path("state"), fs::Permissions::from_mode(0o777)).unwrap();
    let program = env!("CARGO_BIN_EXE_svc");
    let mut command = std::process::Command::new("/bin/sh");
    command
        .args(["-c", "umask 000; exec \"$0\" run", program])
        .current_dir(workspace.path(""))
        .env_clear()
        .env("HOME", workspace.path("home"))
        .env("PATH", workspace.path("bin"));
    let server = crate::workspace::Server::start(command);
    let wide: Vec<_> = workspace
        .listing()
        .into_iter()
        .filter(|path| path.starts_with(workspace.path("state")))
        .filter(|path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o077 != 0)
        .collect();
    assert!(wide.is_empty(), "{wide:?}");
    assert!(workspace.path("state/session.secret").exists());
    server.signal(Signal::TERM);
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn the_service_manager_hears_of_readiness_and_of_the_end() {
    let workspace = Workspace::configured("");
    let manager = Manager::new(&workspace);
    let server = workspace.serve_with(|command| command.env("NOTIFY_SOCKET", &manager.path));
    assert!(manager.hears().contains("READY=1"));
    server.signal(Signal::TERM);
    assert!(manager.hears().contains("STOPPING=1"));
    assert_eq!(server.exit_code(), Some(0));
}

/// H73.
#[test]
fn h73_the_server_leaves_no_core_dump() {
    let workspace = Workspace::configured("");
    let server = workspace.serve();
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let soft = core.trim_start_matches("Max core file size").split_whitespace().next();
    assert_eq!(soft, Some("0"), "{core}");
}

#[test]
fn a_configuration_that_would_be_exposed_does_not_start() {
    let workspace = Workspace::configured("host: 0.0.0.0\n");
    let ended = workspace.run("run").exits(2);
    assert!(ended.err.contains("config error:"), "{ended:#?}");
    assert!(!workspace.path("state").exists());
}
