//! What the program gives a shell and its user: completions, manual, schema.

use crate::harness::{World, service, within};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Proposals of bash for a line, through the script the program prints.
async fn proposals(world: &World, line: &[&str]) -> BTreeSet<String> {
    let script = world.cli(&["completions", "bash"]).await.ok().stdout;
    let file = world.root.join("completion.bash");
    let words: Vec<String> = line.iter().map(|word| format!("'{word}'")).collect();
    // What readline does, without a terminal.
    let driver = format!(
        "{script}\nsvc() {{ command \"$SVC_PROGRAM\" \"$@\"; }}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n\
         _clap_complete_svc svc '{}' ''\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        words.join(" "),
        line.len() - 1,
        line.last().unwrap(),
    );
    std::fs::write(&file, driver).unwrap();
    let mut command = world.command(Path::new("bash"), &[file.to_str().unwrap()]);
    command.env("SVC_PROGRAM", service());
    let output = command.output().await.unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn bash_completes_commands_projects_instances_and_modes() {
    let world = World::new();
    for project in ["alpha", "alarm", "beta"] {
        world.project(project);
    }
    let server = world.serve().await;
    let bridge = server.client.run("beta").await;
    let config = world.config.to_str().unwrap().to_owned();
    let of = async |rest: &[&str]| {
        let line: Vec<&str> =
            ["svc", "-c", &config].into_iter().chain(rest.iter().copied()).collect();
        proposals(&world, &line).await
    };
    let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    assert_eq!(of(&["start", "al"]).await, set(&["alpha", "alarm"]));
    assert_eq!(
        of(&["stop", ""])
            .await
            .into_iter()
            .filter(|word| !word.starts_with('-'))
            .collect::<BTreeSet<_>>(),
        set(&["beta", bridge.instance_id.short()])
    );
    assert_eq!(of(&["start", "--permission-mode", "p"]).await, set(&["plan"]));
    assert_eq!(of(&["conf"]).await, set(&["config"]));
    assert_eq!(of(&["config", "sch"]).await, set(&["schema"]));
}

/// A call that a script makes: nothing is added to its words.
async fn call_back(world: &World, words: &[&str]) -> String {
    let mut command = tokio::process::Command::new(service());
    command.args(words).current_dir(&world.root).env_clear().envs(world.environment());
    let done = within("a proposal", command.output()).await.unwrap();
    assert_eq!((done.status.code(), done.stderr.len()), (Some(0), 0), "{words:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn a_proposal_that_cannot_be_made_is_silent_and_leaves_no_trace() {
    let world = World::new();
    world.project("app");
    let config = world.config.to_str().unwrap().to_owned();
    let ask = async |words: &[&str]| {
        let all: Vec<&str> =
            ["__complete", "fish", "--"].into_iter().chain(words.iter().copied()).collect();
        call_back(&world, &all).await
    };
    assert_eq!(ask(&["svc", "-c", &config, "start", "a"]).await, "app");
    // Nothing was started yet, and asking does not begin a registry.
    let nothing = ask(&["svc", "-c", &config, "stop", "a"]).await;
    assert_eq!(nothing, "");
    assert!(!world.state_dir().join("svc.db").exists());
    std::fs::write(&world.config, "projects_root: [").unwrap();
    assert_eq!(ask(&["svc", "-c", &config, "start", "a"]).await, "");
    let odd: [&[&str]; 4] = [
        &["__complete"],
        &["__complete", "nushell", "--", "svc"],
        &["__complete", "zsh"],
        &["__complete", "bash", "--"],
    ];
    for words in odd {
        assert_eq!(call_back(&world, words).await, "", "{words:?}");
    }
}

#[tokio::test]
async fn scripts_manual_and_schema_need_no_configuration() {
    let world = World::new();
    std::fs::remove_file(&world.config).unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = world.cli(&["completions", shell]).await.ok().stdout;
        assert!(script.contains(&format!("svc __complete {shell} --")), "{script}");
    }
    assert_eq!(world.cli(&["completions", "nushell"]).await.code, Some(2));
    let page = world.cli(&["man"]).await.ok().stdout;
    assert!(page.contains(".TH svc 1") && page.contains("svc\\-start(1)"), "{page}");

    let dir = world.root.join("pages");
    let listed = world.cli(&["man", "--dir", dir.to_str().unwrap()]).await.ok().stdout;
    let written: BTreeSet<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(listed.lines().count(), written.len());
    for name in ["svc.1", "svc-start.1", "svc-config-check.1", "svc.yml.5"] {
        assert!(written.contains(name), "{name} is missing: {written:?}");
    }
    let keys = std::fs::read_to_string(dir.join("svc.yml.5")).unwrap();
    assert!(keys.contains("projects_root") && keys.contains("SVC_PORT"), "{keys}");
    let taken = world.root.join("a-file");
    std::fs::write(&taken, "").unwrap();
    let refused = world.cli(&["man", "--dir", taken.to_str().unwrap()]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("--dir"), "{}", refused.stderr);

    let schema: Value = world.cli(&["config", "schema"]).await.ok().json();
    assert_eq!(schema["properties"]["port"]["default"], 7621);
}
