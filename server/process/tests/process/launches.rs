//! Launches: what an agent inherits, and every way in which a launch fails.

use crate::support::{HELPER, Stranger, Workspace, eventually, eventually_gone, host_with, read};
use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;
use svc_domain::identity::{Pid, ProcessIdentity, Verdict};
use svc_ports::process::{LaunchError, LaunchSpec, ProcessHost, Signal, Target};
use svc_process::launcher::{LauncherProgram, read_identity};

/// The facts that the helper printed, by their first word.
fn facts_of(workspace: &Workspace) -> Vec<String> {
    workspace.lines("facts", 7)
}

fn line<'a>(facts: &'a [String], word: &str) -> &'a str {
    facts
        .iter()
        .find_map(|line| line.strip_prefix(word))
        .unwrap_or_else(|| panic!("no {word} in {facts:?}"))
        .trim()
}

/// Ignored signals as bits, without 32 and 33.
///
/// The C library reserves those two and ignores them in programs that it spawns.
fn ignored(facts: &[String]) -> u64 {
    let bits = u64::from_str_radix(line(facts, "SigIgn:"), 16).unwrap();
    bits & !(0b11 << 31)
}

fn facts_spec(workspace: &Workspace) -> LaunchSpec {
    let facts = workspace.path("facts");
    workspace.spec(HELPER, &["facts", facts.to_str().unwrap()])
}

#[tokio::test]
async fn h36_an_agent_leads_its_own_session_with_default_signals_and_the_operators_umask() {
    let workspace = Workspace::new();
    let held = workspace.hold(facts_spec(&workspace)).await.unwrap();
    let identity = held.identity().clone();
    assert!(!workspace.path("facts").exists());
    held.go().await.unwrap();
    let facts = facts_of(&workspace);
    let pid = identity.pid.to_string();
    assert_eq!(line(&facts, "pid"), pid);
    let stat: Vec<&str> = line(&facts, "stat").split(' ').collect();
    // Group, session, terminal.
    assert_eq!(stat[4..7], [pid.as_str(), pid.as_str(), "0"]);
    assert_eq!(line(&facts, "Umask:"), "0027");
    assert_eq!(line(&facts, "SigBlk:"), "0000000000000000");
    // The helper is a Rust program itself and ignores SIGPIPE, bit 12, and nothing else.
    assert_eq!(ignored(&facts), 0x1000);
    let core: Vec<&str> = line(&facts, "Max core file size").split_whitespace().collect();
    assert_eq!(core[..2], ["0", "0"]);
    assert_eq!(line(&facts, "cwd"), workspace.root.to_str().unwrap());
    let out = workspace.path("out");
    assert_eq!(line(&facts, "fds"), format!("0=/dev/null 1={0} 2={0}", out.display()));
}

#[test]
fn h36_signals_ignored_or_blocked_by_whoever_started_the_service_are_not_inherited() {
    // A shell's background command ignores SIGINT; this thread blocks signals on top of it.
    let host = host_with(|options| {
        options.launcher = LauncherProgram {
            program: "/bin/sh".into(),
            args: vec![
                "-c".into(),
                format!("trap '' HUP INT QUIT TERM USR1 CHLD PIPE; exec {HELPER} __launch__")
                    .into(),
            ],
        };
    });
    let workspace = Workspace::with(host);
    nix::sys::signal::SigSet::all().thread_block().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // A shell prints its own state without changing it.
        workspace
            .launch(workspace.shell("grep -E '^Sig(Blk|Ign)' /proc/self/status; exec sleep 1000"))
            .await;
    });
    let lines = workspace.lines("out", 2);
    assert_eq!(line(&lines, "SigBlk:"), "0000000000000000");
    assert_eq!(ignored(&lines), 0);
}

#[tokio::test]
async fn h33_fifty_agents_inherit_no_descriptor_even_where_the_service_was_started_with_some() {
    let workspace = Workspace::new();
    // One close-on-exec like all of ours, one inheritable like those of a careless parent.
    let private: Vec<TcpListener> =
        (0..20).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let inheritable = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::io::fcntl_setfd(&inheritable, rustix::io::FdFlags::empty()).unwrap();
    for round in 0..50 {
        let name = format!("facts-{round}");
        let file = workspace.path(&name);
        let spec = workspace.spec(HELPER, &["facts", file.to_str().unwrap()]);
        let identity = workspace.launch(spec).await;
        assert_eq!(workspace.end_of(&identity).await.code, Some(0));
        let facts = workspace.lines(&name, 7);
        let fds = line(&facts, "fds");
        assert_eq!(fds.split(' ').count(), 3, "{fds}");
        assert!(!fds.contains("socket"), "{fds}");
    }
    drop((private, inheritable));
}

#[tokio::test]
async fn h32_an_agent_gets_the_given_environment_and_nothing_of_the_services_own() {
    let workspace = Workspace::new();
    let mut spec = facts_spec(&workspace);
    spec.env = vec![
        ("SVC_LAUNCH_ID".into(), spec.launch_id.as_str().into()),
        ("ODD".into(), OsString::from_vec(b"a=\xff\nb".to_vec())),
    ];
    let launch_id = spec.launch_id.clone();
    workspace.launch(spec).await;
    let facts = facts_of(&workspace);
    let variables: Vec<&str> = facts.iter().filter_map(|line| line.strip_prefix("env ")).collect();
    assert_eq!(
        variables,
        [
            format!("\"SVC_LAUNCH_ID\"=\"{}\"", launch_id.as_str()),
            "\"ODD\"=\"a=\\xFF\\nb\"".to_owned()
        ]
    );
}

#[tokio::test]
async fn a_held_launcher_carries_none_of_the_services_environment() {
    let workspace = Workspace::new();
    let held = workspace.hold(workspace.shell("exit 0")).await.unwrap();
    let environment = read(Path::new(&format!("/proc/{}/environ", held.identity().pid)));
    let names: Vec<&str> =
        environment.split_terminator('\0').filter_map(|entry| entry.split('=').next()).collect();
    assert_eq!(names, ["SVC_LAUNCH_ID"]);
}

#[tokio::test]
async fn h31_arguments_arrive_verbatim_and_both_outputs_are_appended_to_the_log() {
    let workspace = Workspace::new();
    std::fs::write(workspace.path("out"), "before\n").unwrap();
    let script = "printf '%s\\n' \"$@\"; echo problem >&2";
    let odd = ["$(id)", "`id`; &", "-x", "", "a b"];
    let args: Vec<&str> = ["-c", script, "name"].into_iter().chain(odd).collect();
    let identity = workspace.launch(workspace.spec("/bin/sh", &args)).await;
    assert_eq!(workspace.end_of(&identity).await.code, Some(0));
    assert_eq!(read(&workspace.path("out")), "before\n$(id)\n`id`; &\n-x\n\na b\nproblem\n");
}

#[tokio::test]
async fn h97_the_identity_file_names_the_held_process_before_it_is_the_agent() {
    let workspace = Workspace::new();
    let spec = workspace.shell(": > started; exec sleep 1000");
    let launch_id = spec.launch_id.clone();
    let file = spec.identity_file.clone();
    let held = workspace.hold(spec).await.unwrap();
    let written = read_identity(&file, &launch_id).unwrap().unwrap();
    assert_eq!(&written, held.identity());
    assert_eq!(workspace.host.probe(&written), Verdict::Same);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(workspace.host.find_launch(&launch_id).unwrap().identity, written);
    assert!(!workspace.path("started").exists());
    held.go().await.unwrap();
    eventually("the agent", || workspace.path("started").exists().then_some(()));
    let found = workspace.host.find_launch(&launch_id).unwrap();
    assert_eq!(found.identity, written);
    assert_eq!(found.cwd.as_ref(), Some(&workspace.root));
}

#[tokio::test]
async fn h97_a_launch_that_is_given_up_starts_nothing() {
    let workspace = Workspace::new();
    let held = workspace.hold(workspace.shell(": > started")).await.unwrap();
    let identity = held.identity().clone();
    drop(held);
    assert_eq!(workspace.end_of(&identity).await.code, Some(0));
    assert!(!workspace.path("started").exists());
}

#[tokio::test]
async fn f10_a_service_killed_while_it_holds_a_launch_starts_nothing() {
    let workspace = Workspace::new();
    // The launcher of this service is its own program, through the link in the process table.
    let (mut service, said) = Stranger::helper(&["host", workspace.root.to_str().unwrap()]);
    let (pid, ticks) = said.split_once(' ').unwrap();
    let launcher = ProcessIdentity {
        pid: Pid::new(pid.parse().unwrap()).unwrap(),
        start_ticks: ticks.parse().unwrap(),
        boot_id: workspace.host.boot_id().clone(),
    };
    assert_eq!(workspace.host.probe(&launcher), Verdict::Same);
    let facts = workspace.host.inspect(launcher.pid).unwrap();
    assert_eq!(facts.argv.get(1).map(String::as_str), Some("__launch__"));
    service.kill();
    service.collect();
    workspace.end_of(&launcher).await;
    assert!(!workspace.path("started").exists());
}

#[tokio::test]
async fn f13_programs_that_cannot_be_executed_are_told_with_the_kernels_reason() {
    let workspace = Workspace::new();
    let plain = workspace.path("plain");
    std::fs::write(&plain, "#!/bin/sh\n: > started\n").unwrap();
    // Without a known format: a shell would run it as a script.
    let unknown = workspace.path("unknown");
    svc_programs::write(&unknown, ": > started\n").unwrap();
    let foreign = workspace.path("foreign");
    svc_programs::write(&foreign, b"\x7fELF\x02\x01\x01garbage").unwrap();
    let orphan = workspace.path("orphan");
    svc_programs::write(&orphan, "#!/nowhere/interpreter\n").unwrap();
    let cases = [
        (workspace.path("missing"), rustix::io::Errno::NOENT),
        (workspace.root.clone(), rustix::io::Errno::ACCESS),
        (plain, rustix::io::Errno::ACCESS),
        (unknown, rustix::io::Errno::NOEXEC),
        (foreign, rustix::io::Errno::NOEXEC),
        (orphan, rustix::io::Errno::NOENT),
    ];
    for (program, expected) in cases {
        let held = workspace.hold(workspace.spec(&program, &[])).await.unwrap();
        let identity = held.identity().clone();
        match held.go().await {
            Err(LaunchError::Exec { program: told, cause }) => {
                assert_eq!(told, program);
                assert_eq!(cause.raw_os_error(), Some(expected.raw_os_error()), "{told:?}");
            }
            other => panic!("{}: {other:?}", program.display()),
        }
        assert!(matches!(workspace.host.probe(&identity), Verdict::Gone(_)));
    }
    assert!(!workspace.path("started").exists());
}

#[tokio::test]
async fn h30_too_long_an_argument_is_told_and_starts_nothing() {
    let workspace = Workspace::new();
    let long = "x".repeat(4 << 20);
    let held = workspace.hold(workspace.spec("/bin/true", &[&long])).await.unwrap();
    let Err(LaunchError::Exec { cause, .. }) = held.go().await else {
        panic!("four megabytes in one argument were accepted");
    };
    assert_eq!(cause.raw_os_error(), Some(rustix::io::Errno::TOOBIG.raw_os_error()));
}

/// Expects that a launch is refused before it is ready, with a useful reason.
async fn refused(workspace: &Workspace, names: &str, change: impl FnOnce(&mut LaunchSpec)) {
    let mut spec = workspace.shell(": > started");
    change(&mut spec);
    let launch_id = spec.launch_id.clone();
    match workspace.hold(spec).await {
        Err(LaunchError::NotReady(reason)) => {
            assert!(reason.contains(names), "{reason:?} does not name {names:?}");
        }
        Err(other) => panic!("{names}: {other:?}"),
        Ok(_) => panic!("{names}: it was ready"),
    }
    assert_eq!(workspace.host.find_launch(&launch_id), None);
    assert!(!workspace.path("started").exists());
}

#[tokio::test]
async fn whatever_is_wrong_with_the_order_is_told_before_anything_starts() {
    let workspace = Workspace::new();
    let log = workspace.path("planted");
    symlink(workspace.path("out"), &log).unwrap();
    // F15: whatever is in the place of the log is neither written to nor waited for.
    refused(&workspace, "planted", |spec| spec.output = log.clone()).await;
    refused(&workspace, "absent.log", |spec| spec.output = workspace.path("absent.log")).await;
    let pipe = workspace.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    refused(&workspace, "pipe", |spec| spec.output = pipe.clone()).await;
    refused(&workspace, "gone-project", |spec| spec.cwd = workspace.path("gone-project")).await;
    std::fs::create_dir(workspace.path("real")).unwrap();
    std::fs::create_dir(workspace.path("real/inner")).unwrap();
    symlink(workspace.path("real"), workspace.path("link")).unwrap();
    refused(&workspace, "link", |spec| spec.cwd = workspace.path("link")).await;
    refused(&workspace, "link/inner", |spec| spec.cwd = workspace.path("link/inner")).await;
    refused(&workspace, "out", |spec| spec.cwd = workspace.path("out")).await;
    refused(&workspace, "no-folder", |spec| {
        spec.identity_file = workspace.path("no-folder/a.launch.json");
    })
    .await;
    refused(&workspace, "NUL", |spec| spec.args.push("a\0b".into())).await;
    refused(&workspace, "NUL", |spec| spec.env.push(("A".into(), "a\0b".into()))).await;
    refused(&workspace, "A=B", |spec| spec.env.push(("A=B".into(), "".into()))).await;
    assert_eq!(read(&workspace.path("out")), "");
}

#[tokio::test]
async fn a_launcher_that_says_nothing_is_ended_at_the_deadline() {
    let host = host_with(|options| {
        options.launcher.args = vec!["mute".into()];
        options.launch_deadline = Duration::from_millis(200);
    });
    let workspace = Workspace::with(host);
    let spec = workspace.shell(": > started");
    let launch_id = spec.launch_id.clone();
    assert!(matches!(workspace.hold(spec).await, Err(LaunchError::NotReady(_))));
    assert_eq!(workspace.host.find_launch(&launch_id), None);
}

#[tokio::test]
async fn launchers_that_are_none_start_nothing() {
    for (program, args) in [("/bin/echo", vec!["hello"]), ("/bin/false", vec![])] {
        let host = host_with(|options| {
            options.launcher = LauncherProgram {
                program: program.into(),
                args: args.iter().map(OsString::from).collect(),
            };
        });
        let workspace = Workspace::with(host);
        assert!(workspace.hold(workspace.shell(": > started")).await.is_err());
        assert!(!workspace.path("started").exists());
    }
    let workspace = Workspace::with(host_with(|options| {
        options.launcher.program = "/nowhere/launcher".into();
    }));
    assert!(matches!(
        workspace.hold(workspace.shell("exit 0")).await,
        Err(LaunchError::Launcher(_))
    ));
}

#[test]
fn h79_without_a_free_descriptor_nothing_is_started_signalled_or_taken_for_dead() {
    let workspace = Workspace::new();
    let mut victim =
        Stranger::start(std::process::Command::new("/bin/sleep").arg("1000").process_group(0));
    let (mut service, said) =
        Stranger::helper(&["starve", workspace.root.to_str().unwrap(), &victim.pid().to_string()]);
    let expected = "Unknown Unproven Err(Launcher(Os { code: 24,";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.ends_with("None"), "{said}");
    assert!(victim.is_running());
    // With free descriptors the next launch succeeds.
    assert!(service.collect().success());
    eventually("the agent", || workspace.path("started").exists().then_some(()));
}

#[tokio::test]
async fn a_launcher_killed_while_held_is_not_taken_for_a_started_agent() {
    let workspace = Workspace::new();
    let held = workspace.hold(workspace.shell(": > started")).await.unwrap();
    let identity = held.identity().clone();
    workspace.host.signal(&identity, Signal::Kill, Target::Process);
    assert_eq!(workspace.end_of(&identity).await.signal, Some(9));
    assert!(matches!(held.go().await, Err(LaunchError::NotReady(_))));
    eventually_gone(&workspace.host, &identity);
    assert!(!workspace.path("started").exists());
}

#[test]
fn the_service_keeps_a_strict_mask_and_remembers_the_inherited_one() {
    let seen = std::process::Command::new("/bin/sh")
        .args(["-c", &format!("umask 027; exec {HELPER} umask")])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(seen.stdout).unwrap(), "27 27 0077\n");
}
