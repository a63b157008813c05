//! Conversations: listed, read, followed, and what they used.

use crate::harness::{Server, World, socket, within};
use crate::sessions_in_terminals::{ready, session, talked_to, until_said};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tokio_tungstenite::tungstenite::Message;

const ONE: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f1";
const TWO: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f2";

/// The transcript of a conversation that works in a directory.
pub fn transcript(world: &World, cwd: &Path, id: &str) -> PathBuf {
    let name: String = cwd
        .to_str()
        .unwrap()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let dir = world.agent_home.join("projects").join(name);
    fs::create_dir_all(&dir).unwrap();
    dir.join(format!("{id}.jsonl"))
}

pub fn person(cwd: &Path, text: &str) -> String {
    let message = json!({ "role": "user", "content": text });
    record("user", cwd, &message)
}

pub fn agent(cwd: &Path, id: &str, text: &str) -> String {
    let message = json!({
        "role": "assistant", "id": id, "model": "claude-opus-4-5-20251101",
        "content": [
            { "type": "text", "text": text },
            { "type": "tool_use", "name": "Bash", "input": { "command": "npm test" } },
        ],
        "usage": { "input_tokens": 1_000_000, "output_tokens": 100_000,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 2_000_000 },
    });
    record("assistant", cwd, &message)
}

fn record(kind: &str, cwd: &Path, message: &Value) -> String {
    let record = json!({
        "type": kind, "cwd": cwd, "sessionId": ONE, "isSidechain": false,
        "timestamp": "2026-03-01T10:20:30.123Z", "message": message,
    });
    format!("{record}\n")
}

pub fn add(file: &Path, text: &str) {
    let mut file = fs::File::options().append(true).create(true).open(file).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn texts(turns: &Value) -> Vec<&str> {
    let turns = turns.as_array().unwrap();
    turns.iter().map(|turn| turn["content"][0]["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn conversations_are_listed_and_read_without_their_raw_ids() {
    let world = World::new();
    let (app, other) = (world.project("app"), world.project("other"));
    let file = transcript(&world, &app, ONE);
    add(&file, &person(&app, "find the bug in session_01ABCDEFGHIJ"));
    add(&file, &agent(&app, "m1", "found it"));
    add(&file, "{torn");
    let tree = app.join(".claude/worktrees/svc-00000001");
    add(&transcript(&world, &tree, TWO), &person(&tree, "in a tree"));
    let server = world.serve().await;
    let list = server.client.get("/api/projects/app/transcripts").await.expect(200).json();
    let sessions = list["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2, "{list}");
    let one = sessions.iter().find(|one| one["turn_count"] == 2).unwrap();
    assert_eq!(one["first_prompt"], "find the bug in session_<redacted>");
    assert_eq!((&one["live"], &one["is_subagent"]), (&json!(false), &json!(false)));
    let in_tree = sessions.iter().find(|one| one["turn_count"] == 1).unwrap();
    assert_eq!(in_tree["worktree"], "svc-00000001");
    assert!(!list.to_string().contains(ONE) && !list.to_string().contains(TWO));

    let reference = one["conversation"].as_str().unwrap();
    assert_eq!(reference.len(), 16);
    let of = |query: &str| format!("/api/projects/app/transcripts/{reference}{query}");
    let page = server.client.get(&of("?limit=1")).await.expect(200).json();
    assert_eq!((texts(&page["turns"]), &page["next_cursor"]), (vec!["found it"], &json!(1)));
    assert_eq!(page["turns"][0]["content"][1]["tool"], "Bash");
    assert_eq!((&page["turns"][0]["index"], &page["total"]), (&json!(1), &json!(2)));
    let rest = server.client.get(&of("?limit=1&cursor=1")).await.expect(200).json();
    assert_eq!(texts(&rest["turns"]), ["find the bug in session_<redacted>"]);
    assert_eq!(rest["next_cursor"], Value::Null);
    let found = server.client.get(&of("?order=asc&q=FOUND")).await.expect(200).json();
    assert_eq!(texts(&found["turns"]), ["found it"]);
    assert!(!page.to_string().contains(ONE), "{page}");

    // The remaining part of the torn line makes it a line that cannot be read.
    add(&file, "\n");
    add(&file, &person(&app, "and then"));
    let offset = page["offset"].as_u64().unwrap();
    let tail = server.client.get(&of(&format!("/tail?offset={offset}"))).await.expect(200).json();
    assert_eq!((texts(&tail["turns"]), &tail["reset"]), (vec!["and then"], &json!(false)));
    let past = server.client.get(&of("/tail?offset=999999")).await.expect(200).json();
    assert_eq!((past["turns"].as_array().unwrap().len(), &past["reset"]), (3, &json!(true)));

    // Another project does not have it, whoever asks by its reference.
    let foreign = format!("/api/projects/other/transcripts/{reference}");
    server.client.get(&foreign).await.expect(404);
    server.client.get("/api/projects/app/transcripts/0123456789abcdef").await.expect(404);
    server.client.get(&format!("/api/projects/app/transcripts/{ONE}")).await.expect(404);
    // The directory of one project can have the name of another one's.
    add(&transcript(&world, &app, TWO), &person(&other, "of the other one"));
    let list = server.client.get("/api/projects/app/transcripts").await.expect(200).json();
    assert!(!list.to_string().contains("of the other one"), "{list}");
}

/// H128: a follower gets what is added, and learns that a file was replaced.
#[tokio::test]
async fn h128_a_follower_gets_new_turns_and_learns_of_a_replaced_file() {
    let world = World::new();
    let app = world.project("app");
    let file = transcript(&world, &app, ONE);
    add(&file, &person(&app, "first"));
    let server = world.serve().await;
    let list = server.client.get("/api/projects/app/transcripts").await.expect(200).json();
    let reference = list["sessions"][0]["conversation"].as_str().unwrap();
    let mut socket = socket(&server.base, &format!("/ws/conversation/app/{reference}")).await;
    let mut next = async || {
        within("a frame of the conversation", async {
            loop {
                match socket.next().await.expect("it goes on").expect("a frame") {
                    Message::Text(text) => {
                        assert!(!text.contains(ONE), "{text}");
                        return serde_json::from_str::<Value>(&text).unwrap();
                    }
                    Message::Close(why) => {
                        return json!({ "close": why.map(|why| u16::from(why.code)) });
                    }
                    _ => {}
                }
            }
        })
        .await
    };
    assert_eq!(texts(&next().await["turns"]), ["first"]);
    // Half a line is no turn yet.
    let line = person(&app, "second");
    let (head, rest) = line.split_at(40);
    add(&file, head);
    add(&file, rest);
    assert_eq!(texts(&next().await["turns"]), ["second"]);
    let other = file.with_extension("new");
    add(&other, &person(&app, "replaced"));
    fs::rename(&other, &file).unwrap();
    let frame = next().await;
    assert_eq!((texts(&frame["turns"]), &frame["reset"]), (vec!["replaced"], &json!(true)));
    fs::remove_file(&file).unwrap();
    assert_eq!(next().await["close"], 4404);
}

#[tokio::test]
async fn a_follower_learns_that_nobody_works_on_the_conversation_any_more() {
    let world = World::with(json!({ "claude": { "pty_screen_enabled": true } }));
    world.project_with("app", talked_to());
    let server = world.serve().await;
    let row = ready(&server, session("app")).await;
    until_said(&world, &row).await;
    let list = server.client.get("/api/projects/app/transcripts").await.expect(200).json();
    let reference = list["sessions"][0]["conversation"].as_str().unwrap();
    let mut socket = socket(&server.base, &format!("/ws/conversation/app/{reference}")).await;
    let mut until = async |wanted: bool| {
        within("whether it is live", async {
            loop {
                if let Message::Text(text) = socket.next().await.expect("it goes on").unwrap()
                    && serde_json::from_str::<Value>(&text).unwrap()["live"] == wanted
                {
                    return;
                }
            }
        })
        .await;
    };
    until(true).await;
    server.client.stop(row.instance_id.as_str()).await.expect(200);
    until(false).await;
    // Its own page still finds it.
    let list = server.client.get("/api/projects/app/transcripts").await.expect(200).json();
    let held = &list["sessions"][0];
    assert_eq!((&held["live"], &held["instance_id"]), (&json!(false), &json!(row.instance_id)));
}

#[tokio::test]
async fn usage_is_counted_in_the_background_and_survives_a_restart() {
    let world = World::new();
    let app = world.project("app");
    world.project("idle");
    let file = transcript(&world, &app, ONE);
    add(&file, &agent(&app, "m1", "one"));
    add(&file, &agent(&app, "m1", "one, and more"));
    add(&file, &agent(&app, "m2", "two"));
    let server = world.serve().await;
    let usage = complete(&server, "/api/usage").await;
    let of = &usage["projects"]["app"];
    assert_eq!((&of["messages"], &of["token_breakdown"]["input"]), (&json!(2), &json!(2_000_000)));
    // Input 5, output 25, read from the cache 0.5 dollars a million.
    assert_eq!(of["cost_usd"], json!(2.0 * (5.0 + 2.5 + 1.0)));
    assert_eq!(usage["totals"]["cost_usd"], of["cost_usd"]);
    assert!(usage["projects"]["idle"].is_null(), "{usage}");
    let later = complete(&server, "/api/usage?since=2026-03-02T00:00:00Z").await;
    assert_eq!(later["totals"]["total_tokens"], 0);
    let of_one = server.client.get("/api/projects/app/usage").await.expect(200).json();
    assert_eq!((&of_one["project"], &of_one["transcripts"]), (&json!("app"), &json!(1)));
    let sort = server.client.get("/api/projects/sortmeta").await.expect(200).json();
    assert_eq!(sort["app"]["cost_usd"], of["cost_usd"]);
    let printed = world.cli(&["usage", file.to_str().unwrap()]).await.ok();
    assert!(printed.stdout.contains("≈$17.0000"), "{}", printed.stdout);
    assert_eq!(world.cli(&["usage", "/nowhere"]).await.code, Some(2));
    server.kill().await;
    let server = world.serve().await;
    assert_eq!(complete(&server, "/api/usage").await["totals"], usage["totals"]);
}

#[tokio::test]
async fn what_a_conversation_copied_from_another_one_is_counted_once() {
    let world = World::new();
    let app = world.project("app");
    let first = transcript(&world, &app, ONE);
    add(&first, &person(&app, "begin"));
    add(&first, &agent(&app, "m1", "one"));
    let copy = transcript(&world, &app, TWO);
    fs::copy(&first, &copy).unwrap();
    add(&copy, &agent(&app, "m2", "two"));
    let server = world.serve().await;
    let usage = complete(&server, "/api/usage").await;
    let of = &usage["projects"]["app"];
    assert_eq!((&of["messages"], &of["transcripts"]), (&json!(2), &json!(2)), "{usage}");
    assert_eq!(of["token_breakdown"]["input"], 2_000_000);
    let of_one = server.client.get("/api/projects/app/usage").await.expect(200).json();
    assert_eq!(of_one["messages"], 2);
}

async fn complete(server: &Server<'_>, path: &str) -> Value {
    within("complete usage", async {
        loop {
            let usage = server.client.get(path).await.expect(200).json();
            if usage["complete"] == true {
                return usage;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}
