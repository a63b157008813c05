//! Sessions ask in the inbox: the agent calls its hook, and does what was decided.

use crate::approval_hook::{asking, bridge, hook, path, serve, tell, told, waits};
use crate::harness::{Events, Server, World};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use svc_shared::Timestamp;
use svc_shared::api::approvals::Approval;
use svc_shared::internal::State;
use tokio::process::{Child, Command};

/// A session that asks for these commands at once.
fn asks(commands: &[&str]) -> Value {
    let turn = |text: &&str| json!({ "after_ms": 0, "role": "permission", "text": text });
    json!({ "turns": commands.iter().map(turn).collect::<Vec<_>>() })
}

/// Has a device connect to the bridge of the project.
fn connect(world: &World) {
    world.remote(&["connect", world.projects.join("app").to_str().unwrap()]);
}

fn transcripts(world: &World) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for project in fs::read_dir(world.agent_home.join("projects")).into_iter().flatten() {
        let files = fs::read_dir(project.unwrap().path()).unwrap();
        found.extend(files.map(|file| file.unwrap().path()));
    }
    found.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    found
}

/// The results that conversations show: text and whether the call failed.
fn results(world: &World) -> Vec<(String, bool)> {
    let texts = transcripts(world).into_iter().map(|path| fs::read_to_string(path).unwrap());
    let lines: Vec<String> =
        texts.flat_map(|t| t.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let records = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let parts =
        records.filter_map(|r| r.pointer("/message/content")?.as_array().cloned()).flatten();
    let results = parts.filter(|part| part["type"] == "tool_result");
    results
        .map(|part| (part["content"].as_str().unwrap().to_owned(), part["is_error"] == true))
        .collect()
}

async fn until_results(world: &World, many: usize) -> Vec<(String, bool)> {
    world
        .until("results", || {
            let found = results(world);
            (found.len() == many).then_some(found)
        })
        .await
}

/// A session that somebody starts in a terminal, without this service.
fn by_hand(world: &World) -> Child {
    let mut agent = Command::new(crate::harness::simulator());
    agent.args(["--print", "--sdk-url", "local", "--session-id", "cse_by_hand"]);
    agent.current_dir(world.projects.join("app")).env_clear().envs(world.environment());
    agent.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    agent.spawn().unwrap()
}

/// What the agent writes when somebody refuses its last call in its own client.
fn refuse_in_the_client(world: &World, mut record: Value) {
    let file = transcripts(world).remove(0);
    let before = fs::read_to_string(&file).unwrap();
    let asked: Value = serde_json::from_str(before.lines().last().unwrap()).unwrap();
    let content = asked["message"]["content"].as_array().unwrap();
    let call = content.iter().find(|part| part["type"] == "tool_use").unwrap();
    record["type"] = json!("user");
    record["message"] = json!({ "role": "user", "content": [
        { "type": "tool_result", "tool_use_id": call["id"], "content": "refused", "is_error": true },
    ] });
    let mut file = fs::OpenOptions::new().append(true).open(&file).unwrap();
    file.write_all(format!("{record}\n").as_bytes()).unwrap();
}

async fn unmanaged(events: &mut Events, many: usize) -> Vec<Approval> {
    events
        .until("questions of nobody", |state| {
            (state.questions.len() == many).then(|| state.questions.values().cloned().collect())
        })
        .await
}

async fn answer(server: &Server<'_>, path: &str, body: Value) {
    server.client.post_json(path, &body).await.expect(202);
}

#[tokio::test]
async fn what_is_answered_here_is_what_the_agent_does() {
    let world = asking();
    world.set_knobs("app", asks(&["make deploy", "rm -r build"]));
    let server = serve(&world).await;
    let (id, _) = bridge(&server).await;
    let mut events = server.events().await;
    connect(&world);
    let asked = waits(&mut events, &id, 2).await;
    let of = |text: &str| asked.iter().find(|one| one.summary == text).unwrap();
    assert!(of("make deploy").expires_at > Some(of("make deploy").since));
    let deploy = path(&id, &of("make deploy").request_id);
    answer(&server, &deploy, json!({ "decision": "allow" })).await;
    assert_eq!(until_results(&world, 1).await, [("done".to_owned(), false)]);
    let remove = path(&id, &of("rm -r build").request_id);
    answer(&server, &remove, json!({ "decision": "deny", "message": "keep the build" })).await;
    let told = until_results(&world, 2).await;
    assert_eq!(told[1], ("keep the build".to_owned(), true));
    waits(&mut events, &id, 0).await;
    server.client.stop(&id).await.expect(200);
}

#[tokio::test]
async fn what_is_allowed_for_the_session_is_not_asked_again_in_it() {
    let world = asking();
    let turn = |after_ms: u64, text: &str| json!({ "after_ms": after_ms, "role": "permission", "text": text });
    world.set_knobs(
        "app",
        json!({ "turns": [turn(0, "make deploy"), turn(3000, "make clean"), turn(0, "rm -r build")] }),
    );
    let server = serve(&world).await;
    let (id, _) = bridge(&server).await;
    let mut events = server.events().await;
    connect(&world);
    let asked = waits(&mut events, &id, 1).await.remove(0);
    assert_eq!(asked.session_rules, ["Bash(make:*)"]);
    let deploy = path(&id, &asked.request_id);
    let odd = json!({ "decision": "deny", "for_session": true });
    assert_eq!(server.client.post_json(&deploy, &odd).await.refused(422), "invalid_value");
    answer(&server, &deploy, json!({ "decision": "allow", "for_session": true })).await;
    // The second call of the same program runs by itself; the one of another program asks.
    until_results(&world, 2).await;
    let of_another = |state: &State| {
        let pending = &state.instances.get(id.as_str())?.pending_permissions;
        pending.iter().find(|one| one.summary == "rm -r build").cloned()
    };
    let asked = events.until("the question of another program", of_another).await;
    let shown = world.cli(&["approvals", "show", &asked.request_id]).await.ok();
    assert!(shown.stdout.contains("offers to allow: Bash(rm:*)"), "{}", shown.stdout);
    world.cli(&["approvals", "allow", &asked.request_id, "--for-session"]).await.ok();
    assert_eq!(until_results(&world, 3).await, vec![("done".to_owned(), false); 3]);
    let history = server.client.get("/api/approvals?state=answered").await.expect(200).json();
    let all = history["approvals"].as_array().unwrap();
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|one| one["decision"] == "allow" && one["for_session"] == true));
    // The settings have no rule: it was for the session.
    let settings = fs::read_to_string(world.agent_home.join("settings.json")).unwrap();
    assert!(!settings.contains("make"), "{settings}");
    server.client.stop(&id).await.expect(200);
}

#[tokio::test]
async fn twenty_questions_of_one_session_are_answered_in_any_order() {
    let commands: Vec<String> = (0..20).map(|n| format!("step {n}")).collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let world = asking();
    world.set_knobs("app", asks(&commands));
    let server = serve(&world).await;
    let (id, _) = bridge(&server).await;
    let mut events = server.events().await;
    connect(&world);
    let mut asked = waits(&mut events, &id, 20).await;
    let open = server.client.get("/api/approvals").await.expect(200).json();
    assert_eq!(open["approvals"].as_array().unwrap().len(), 20);
    // Neither the order in which they came nor the other way round.
    asked.sort_by_key(|one| one.request_id.clone());
    let answers = asked.iter().enumerate().map(async |(n, one)| {
        let word = if n % 3 == 0 { "deny" } else { "allow" };
        let path = format!("/api/approvals/{}", one.request_id);
        answer(&server, &path, json!({ "decision": word })).await;
    });
    futures_util::future::join_all(answers).await;
    let told = until_results(&world, 20).await;
    assert_eq!(told.iter().filter(|(_, failed)| *failed).count(), 7);
    waits(&mut events, &id, 0).await;
    server.client.stop(&id).await.expect(200);
}

#[tokio::test]
async fn a_session_that_nobody_manages_asks_too() {
    let world = asking();
    world.set_knobs("app", asks(&["make deploy"]));
    let server = serve(&world).await;
    let mut events = server.events().await;
    let mut session = by_hand(&world);
    let asked = unmanaged(&mut events, 1).await.remove(0);
    assert_eq!((asked.instance_id.as_ref(), asked.project.as_str()), (None, "app"));
    assert_eq!((asked.tool.as_deref(), asked.summary.as_str()), (Some("Bash"), "make deploy"));
    assert!(asked.conversation.is_some(), "{asked:?}");
    events.until_happened("permission-needed").await;
    let open = server.client.get("/api/approvals").await.expect(200).json();
    assert_eq!(open["approvals"][0]["instance_id"], Value::Null);
    // Not one of the session's raw ids leaves.
    assert!(!open.to_string().contains("cse_by_hand"), "{open}");
    let listed = world.cli(&["approvals", "list"]).await.ok();
    assert!(listed.stdout.contains("make deploy"), "{listed:?}");
    world.cli(&["approvals", "allow", &asked.request_id]).await.ok();
    assert_eq!(until_results(&world, 1).await, [("done".to_owned(), false)]);
    unmanaged(&mut events, 0).await;
    let again = format!("/api/approvals/{}", asked.request_id);
    server.client.post_json(&again, &json!({ "decision": "deny" })).await.expect(409);
    session.kill().await.unwrap();
}

#[tokio::test]
async fn an_answer_in_the_agents_own_client_withdraws_the_question() {
    let world = asking();
    world.set_knobs("app", asks(&["make deploy"]));
    let server = serve(&world).await;
    let mut events = server.events().await;
    let mut session = by_hand(&world);
    let asked = unmanaged(&mut events, 1).await.remove(0);
    // The agent writes the result, and leaves its hook alone.
    refuse_in_the_client(&world, json!({}));
    unmanaged(&mut events, 0).await;
    let history = server.client.get("/api/approvals?state=answered").await.expect(200).json();
    assert_eq!(history["approvals"][0]["request_id"], asked.request_id.as_str());
    assert_eq!(history["approvals"][0]["reason"], "answered-elsewhere");
    session.kill().await.unwrap();
}

#[tokio::test]
async fn an_answer_in_the_agents_own_client_is_noticed_after_a_restart_too() {
    let world = asking();
    world.set_knobs("app", asks(&["make deploy"]));
    let mut server = serve(&world).await;
    let mut events = server.events().await;
    let mut session = by_hand(&world);
    unmanaged(&mut events, 1).await;
    server.kill().await;
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let now = Timestamp::from_millis(i64::try_from(now).unwrap());
    refuse_in_the_client(&world, json!({ "timestamp": now }));
    server = serve(&world).await;
    let mut events = server.events().await;
    unmanaged(&mut events, 0).await;
    let history = server.client.get("/api/approvals?state=answered").await.expect(200).json();
    assert_eq!(history["approvals"][0]["reason"], "answered-elsewhere");
    session.kill().await.unwrap();
}

/// The agent ends, and its hook, which nobody ends, with it.
#[tokio::test]
async fn an_agent_that_dies_takes_its_question_back() {
    let world = asking();
    world.set_knobs("app", asks(&["make deploy"]));
    let server = serve(&world).await;
    let mut events = server.events().await;
    let mut session = by_hand(&world);
    unmanaged(&mut events, 1).await;
    session.kill().await.unwrap();
    unmanaged(&mut events, 0).await;
    let history = server.client.get("/api/approvals?state=answered").await.expect(200).json();
    assert_eq!(history["approvals"][0]["reason"], "asker-gone");
}

#[tokio::test]
async fn many_questions_survive_restarts_and_two_devices_each_answered_once() {
    let world = asking();
    let commands: Vec<String> = (0..12).map(|n| format!("step {n}")).collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    world.set_knobs("app", asks(&commands));
    let mut server = serve(&world).await;
    let mut session = by_hand(&world);
    let mut left = 12;
    while left > 0 {
        let mut events = server.events().await;
        let asked = unmanaged(&mut events, left).await;
        for one in asked.iter().take(4) {
            let path = format!("/api/approvals/{}", one.request_id);
            let (allow, deny) = (json!({ "decision": "allow" }), json!({ "decision": "deny" }));
            let (first, second) = tokio::join!(
                server.client.post_json(&path, &allow),
                server.client.post_json(&path, &deny)
            );
            let mut codes = [first.status, second.status];
            codes.sort_unstable();
            assert_eq!(codes, [202, 409]);
        }
        left -= 4;
        // Also while answers are on their way.
        server.kill().await;
        server = serve(&world).await;
    }
    assert_eq!(until_results(&world, 12).await.len(), 12);
    let history = server.client.get("/api/approvals?state=answered").await.expect(200).json();
    let history = history["approvals"].as_array().unwrap().clone();
    let allowed = history.iter().filter(|one| one["decision"] == "allow").count();
    let told = results(&world).iter().filter(|(_, failed)| !failed).count();
    assert_eq!((history.len(), allowed), (12, told));
    session.kill().await.unwrap();
}

#[tokio::test]
async fn a_frozen_hook_loses_its_answer_and_the_history_says_so() {
    let world = asking();
    let server = serve(&world).await;
    let mut events = server.events().await;
    let mut asked = told(&json!({ "command": "make" }));
    asked["cwd"] = json!(world.projects.join("app"));
    let mut child = tell(&hook(&world), &world.environment(), &asked).await;
    let question = unmanaged(&mut events, 1).await.remove(0);
    let pid = rustix::process::Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::STOP).unwrap();
    let path = format!("/api/approvals/{}", question.request_id);
    answer(&server, &path, json!({ "decision": "allow" })).await;
    child.kill().await.unwrap();
    server.says("stopped waiting before its answer").await;
    let history = server.client.get("/api/approvals?state=answered").await.expect(200).json();
    assert_eq!(history["approvals"][0]["reason"], "undelivered");
    assert_eq!(history["approvals"][0]["decision"], "allow");
}

#[tokio::test]
async fn a_request_is_shown_whole_until_it_is_answered() {
    let world = asking();
    let server = serve(&world).await;
    let mut events = server.events().await;
    let directory = world.projects.join("app");
    let secret = format!("sk-ant-api03-{}", "Zz9_".repeat(24));
    fs::write(directory.join("a.rs"), format!("one\ntwo\n{secret}\n")).unwrap();
    let mut asked = told(&json!({
        "file_path": "a.rs", "old_string": format!("two\n{secret}"), "new_string": "three",
    }));
    asked["cwd"] = json!(directory);
    asked["tool_name"] = json!("Edit");
    let mut child = tell(&hook(&world), &world.environment(), &asked).await;
    let question = unmanaged(&mut events, 1).await.remove(0);
    let path = format!("/api/approvals/{}", question.request_id);
    let shown = server.client.get(&path).await.expect(200).json();
    let request = &shown["request"];
    assert_eq!((&request["kind"], &request["path"]), (&json!("edit"), &json!("a.rs")));
    let edit = &request["edits"][0];
    assert_eq!((&edit["line"], &edit["new"]), (&json!(2), &json!("three")));
    assert_eq!((&request["masked"], &request["directory"]), (&json!(true), &json!(directory)));
    assert!(!shown.to_string().contains("Zz9_Zz9_"), "{shown}");
    // Named with a session it is none of that one's.
    let (id, _) = bridge(&server).await;
    server.client.get(&format!("{path}?instance={id}")).await.expect(404);
    answer(&server, &path, json!({ "decision": "deny", "message": "leave it" })).await;
    unmanaged(&mut events, 0).await;
    let over = server.client.get(&path).await.expect(200).json();
    assert_eq!((&over["request"], &over["decision"]), (&Value::Null, &json!("deny")));
    assert_eq!(over["message"], "leave it");
    child.wait().await.unwrap();
    server.client.stop(&id).await.expect(200);
}
