//! Signals: which process gets one, and above all which does not.

use crate::support::{Stranger, Workspace, eventually, eventually_gone, host};
use std::os::unix::process::CommandExt;
use std::process::Command;
use svc_domain::identity::{GoneBecause, Pid, ProcessIdentity, Verdict};
use svc_ports::process::{ProcessHost, Signal, Signalled, Target};
use svc_process::launcher::read_identity;

/// A shell that writes a line for each signal it gets.
const COUNTER: &str = "trap 'echo INT >> signals' INT; echo ready >> signals; \
                       while :; do sleep 1000 & wait $!; done";

/// Starts the counter in its own process group, not as a launch.
fn counter(workspace: &Workspace) -> Stranger {
    let stranger = Stranger::start(
        // A shell cannot trap what was ignored when it began, as in a background job of CI.
        Command::new("env")
            .args(["--default-signal=INT", "/bin/sh", "-c", COUNTER])
            .current_dir(&workspace.root)
            .env("SVC_LAUNCH_ID", workspace.shell("").launch_id.as_str())
            .process_group(0),
    );
    workspace.lines("signals", 1);
    stranger
}

#[test]
fn f1_f3_h102_a_process_that_only_has_the_recorded_pid_never_gets_a_signal() {
    let workspace = Workspace::new();
    let mut victim = counter(&workspace);
    let real = victim.identity(&workspace.host);
    let wrong_start = ProcessIdentity { start_ticks: real.start_ticks + 1, ..real.clone() };
    let wrong_boot = ProcessIdentity {
        boot_id: "00000000-0000-0000-0000-000000000000".parse().unwrap(),
        ..real.clone()
    };
    // A forged launch file leads to the same wrong identity.
    let file = workspace.path("forged.launch.json");
    let launch_id = "0123456789abcdef0123456789abcdef";
    std::fs::write(
        &file,
        format!(
            "{{\"v\":1,\"launch_id\":\"{launch_id}\",\"pid\":{},\"start_ticks\":1,\
             \"boot_id\":\"{}\"}}",
            real.pid,
            real.boot_id.as_str()
        ),
    )
    .unwrap();
    let forged = read_identity(&file, &launch_id.parse().unwrap()).unwrap().unwrap();
    let cases = [
        (wrong_start, GoneBecause::Reused),
        (wrong_boot, GoneBecause::OtherBoot),
        (forged, GoneBecause::Reused),
    ];
    for (identity, because) in &cases {
        assert_eq!(workspace.host.probe(identity), Verdict::Gone(*because));
        assert!(workspace.host.descendants(identity).is_empty());
        for target in [Target::Process, Target::Group] {
            for signal in [Signal::Interrupt, Signal::Kill] {
                let sent = workspace.host.signal(identity, signal, target);
                assert_eq!(sent, Signalled::Gone, "{identity:?}");
            }
        }
    }
    // The counter works: it sees one signal, the one with the right identity.
    assert!(victim.is_running());
    let sent = workspace.host.signal(&real, Signal::Interrupt, Target::Process);
    assert_eq!(sent, Signalled::Sent);
    assert_eq!(workspace.lines("signals", 2), ["ready", "INT"]);
}

#[test]
fn h103_the_service_signals_neither_itself_nor_its_parent() {
    let host = host();
    let own = host.table().own_identity().unwrap();
    assert_eq!(host.probe(&own), Verdict::Same);
    let parent = host.inspect(own.pid).unwrap().parent;
    let parent = host.inspect(Pid::new(i64::from(parent)).unwrap()).unwrap().identity;
    for identity in [own, parent] {
        for target in [Target::Process, Target::Group] {
            let sent = host.signal(&identity, Signal::Kill, target);
            assert_eq!(sent, Signalled::Unproven);
        }
    }
}

#[test]
fn h103_a_group_the_target_does_not_lead_is_spared() {
    // The child shares the group of this very test.
    let host = host();
    let mut child = Stranger::shell("exec sleep 1000");
    let sent = host.signal(&child.identity(&host), Signal::Kill, Target::Group);
    assert_eq!(sent, Signalled::Sent);
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(child.collect().signal(), Some(9));
}

#[test]
fn f5_f8_a_zombie_is_gone_and_gets_no_signal() {
    let host = host();
    let mut child = Stranger::shell("exec sleep 1000");
    let identity = child.identity(&host);
    child.kill();
    // Its status is not collected: its entry is still in the table.
    eventually_gone(&host, &identity);
    let entry = format!("/proc/{}", identity.pid);
    assert!(std::path::Path::new(&entry).exists());
    assert_eq!(host.inspect(identity.pid), None);
    assert_eq!(host.signal(&identity, Signal::Kill, Target::Group), Signalled::Gone);
    child.collect();
    assert_eq!(host.signal(&identity, Signal::Kill, Target::Process), Signalled::Gone);
}

#[tokio::test]
async fn f40_a_group_that_ignores_the_interrupt_is_killed_with_its_children() {
    let workspace = Workspace::new();
    let script = "trap '' INT; sh -c 'echo child >> ready; exec sleep 1000' & \
                  echo parent >> ready; wait";
    let identity = workspace.launch(workspace.shell(script)).await;
    workspace.lines("ready", 2);
    let children = workspace.host.descendants(&identity);
    assert_eq!(children.len(), 1);
    let child = &children[0].identity;
    let signal = |signal| workspace.host.signal(&identity, signal, Target::Group);
    assert_eq!(signal(Signal::Interrupt), Signalled::Sent);
    assert_eq!(workspace.host.probe(&identity), Verdict::Same);
    assert_eq!(workspace.host.probe(child), Verdict::Same);
    assert_eq!(signal(Signal::Kill), Signalled::Sent);
    assert_eq!(workspace.end_of(&identity).await.signal, Some(9));
    workspace.end_of(child).await;
    assert_eq!(signal(Signal::Kill), Signalled::Gone);
}

#[tokio::test]
async fn h36_the_interrupt_of_a_group_reaches_an_agent_with_default_handling() {
    let workspace = Workspace::new();
    let identity = workspace.launch(workspace.shell("exec sleep 1000")).await;
    let sent = workspace.host.signal(&identity, Signal::Interrupt, Target::Group);
    assert_eq!(sent, Signalled::Sent);
    let end = workspace.end_of(&identity).await;
    assert_eq!((end.code, end.signal), (None, Some(2)));
}

#[tokio::test]
async fn h104_a_tree_with_double_forked_stopped_and_deaf_members_is_found_and_ended() {
    let workspace = Workspace::new();
    // One stays in the process tree, one leaves it by a double fork into its own session.
    let script = "trap '' INT TERM HUP; \
                  (setsid sh -c 'echo stray >> ready; sleep 1000' > /dev/null 2>&1 &); \
                  sh -c 'echo child >> ready; sleep 1000' & \
                  echo parent >> ready; wait";
    let spec = workspace.shell(script);
    let launch_id = spec.launch_id.clone();
    let identity = workspace.launch(spec).await;
    workspace.lines("ready", 3);
    // Two shells, and a sleep of each.
    let tree = eventually("the whole tree", || {
        let tree = workspace.host.descendants(&identity);
        (tree.len() == 4).then_some(tree)
    });
    let position = |pid: i32| tree.iter().position(|f| f.identity.pid.get() == pid);
    for member in &tree {
        if let Some(parent) = position(member.parent) {
            assert!(position(member.identity.pid.get()) < Some(parent));
        }
    }
    let stray = tree.iter().find(|member| member.group != identity.pid.get());
    let stray = stray.expect("nobody left the group");
    let raw = rustix::process::Pid::from_raw(stray.identity.pid.get()).unwrap();
    rustix::process::kill_process(raw, rustix::process::Signal::STOP).unwrap();

    // The agent ends first: the rest is still found by the launch id.
    workspace.host.signal(&identity, Signal::Kill, Target::Process);
    workspace.end_of(&identity).await;
    assert!(workspace.host.descendants(&identity).is_empty());
    assert_eq!(workspace.host.launch_members(&launch_id).len(), 4);
    for member in &tree {
        let sent = workspace.host.signal(&member.identity, Signal::Kill, Target::Process);
        // A shell whose child was just killed may end by itself.
        assert!(matches!(sent, Signalled::Sent | Signalled::Gone), "{sent:?}");
    }
    for member in &tree {
        workspace.end_of(&member.identity).await;
    }
    assert!(workspace.host.launch_members(&launch_id).is_empty());
}

#[test]
fn the_list_of_processes_has_facts_of_this_users_processes() {
    let workspace = Workspace::new();
    let stranger = counter(&workspace);
    let identity = stranger.identity(&workspace.host);
    let all = workspace.host.processes();
    let found = all.iter().find(|facts| facts.identity == identity).unwrap();
    assert_eq!(found.argv[..2], ["/bin/sh", "-c"]);
    assert_eq!(found.cwd.as_ref(), Some(&workspace.root));
    assert_eq!(found.group, identity.pid.get());
    assert_eq!(found.parent, i32::try_from(std::process::id()).unwrap());
    assert!(found.exe.is_some());
}
