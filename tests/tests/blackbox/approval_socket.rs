//! The socket that hooks ask at takes anything, and lets nobody else in.

use crate::approval_hook::{answer_of, ask, asking, bridge, hook, path, serve, told, waits};
use crate::harness::{World, within};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use svc_skip::skip;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

fn socket(world: &World) -> PathBuf {
    world.state.join("run/ask.sock")
}

/// What the service says to this.
async fn says(world: &World, sent: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket(world)).await.unwrap();
    // It may hang up before it has heard everything.
    let _ = stream.write_all(sent).await;
    let mut said = String::new();
    let _ = within("its answer", stream.read_to_string(&mut said)).await;
    said
}

#[tokio::test]
async fn hostile_input_is_declined_and_harms_nobody() {
    let world = asking();
    let server = serve(&world).await;
    let (id, env) = bridge(&server).await;
    let mode = fs::metadata(socket(&world)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let inside = json!({
        "request_id": "0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f2", "launch": null, "session_id": "s",
        "cwd": world.projects.join("app"), "transcript": null, "call": null,
        "tool_name": "Bash", "tool_input": {},
    });
    let with = |key: &str, value: Value| {
        let mut odd = inside.clone();
        odd[key] = value;
        format!("{odd}\n").into_bytes()
    };
    let huge = "x".repeat(3 * 1024 * 1024);
    for sent in [
        b"\n".to_vec(),
        b"not json\n".to_vec(),
        b"\xff\xfe\x00\n".to_vec(),
        b"{}\n".to_vec(),
        format!("{}1{}\n", "[".repeat(100_000), "]".repeat(100_000)).into_bytes(),
        with("request_id", json!("../../etc")),
        with("request_id", json!("x".repeat(5_000))),
        with("cwd", json!("/")),
        with("cwd", json!(format!("{}/app/../../..", world.projects.display()))),
        with("tool_name", json!(7)),
        with("tool_input", json!(huge)),
    ] {
        let said = says(&world, &sent).await;
        let shown = String::from_utf8_lossy(&sent).chars().take(80).collect::<String>();
        assert!(said.is_empty() || said.contains("none"), "{shown}: {said}");
    }
    let open = server.client.get("/api/approvals").await.expect(200).json();
    assert_eq!(open["approvals"], json!([]));

    // What cannot be a conversation of the agent is not read.
    let mut events = server.events().await;
    let mut pending = Vec::new();
    for (n, transcript) in
        ["/etc/passwd", "/dev/zero", "/proc/self/mem", "relative"].iter().enumerate()
    {
        let mut odd = inside.clone();
        odd["request_id"] = json!(format!("0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1a{n}"));
        odd["transcript"] = json!(transcript);
        // A name and an input that try to break the list.
        odd["tool_name"] = json!("Ba\u{202e}sh\u{0}<img src=x>");
        odd["tool_input"] = json!({ "command": "\u{1b}[2Jrm -rf \u{202e}/ token=sk-ant-api03-AAAAAAAAAAAAAAAAAAAA" });
        let mut stream = UnixStream::connect(socket(&world)).await.unwrap();
        stream.write_all(format!("{odd}\n").as_bytes()).await.unwrap();
        pending.push(stream);
    }
    let open = events
        .until("the questions", |state| {
            (state.questions.len() == 4).then(|| serde_json::to_string(&state.questions).unwrap())
        })
        .await;
    assert!(
        !open.contains("\\u001b") && !open.contains('\u{202e}') && !open.contains("AAAAAAAA"),
        "{open}"
    );
    // Another connection cannot take a question over.
    assert!(
        says(&world, &with("request_id", json!("0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1a0")))
            .await
            .contains("none")
    );
    drop(pending);
    events.until("their end", |state| state.questions.is_empty().then_some(())).await;

    // Connections that say nothing keep nobody away.
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(UnixStream::connect(socket(&world)).await.unwrap());
    }
    let child = ask(&hook(&world), &env, &json!({ "command": "make" })).await;
    let question = waits(&mut events, &id, 1).await.remove(0);
    let path = path(&id, &question.request_id);
    server.client.post_json(&path, &json!({ "decision": "allow" })).await.expect(202);
    assert!(answer_of(child).await.contains("allow"));
    drop(silent);
    server.client.stop(&id).await.expect(200);
}

#[tokio::test]
async fn another_user_of_the_machine_asks_nothing() {
    if !rustix::process::getuid().is_root() {
        skip!("only root can act as another user");
    }
    let world = asking();
    let server = serve(&world).await;
    let mode = || fs::metadata(socket(&world)).map_or(0, |facts| facts.permissions().mode());
    world.until("its mode", || (mode() & 0o777 == 0o600).then_some(())).await;
    // Even where somebody opened the directories.
    for dir in [&world.root, &world.state, &world.state.join("run")] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(socket(&world), fs::Permissions::from_mode(0o666)).unwrap();
    let mut asked = told(&json!({ "command": "make" }));
    asked["cwd"] = json!(world.projects.join("app"));
    let text = asked.to_string();
    let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\ntry: s.sendall(sys.argv[2].encode()+b'\\n')\nexcept OSError: pass\nprint(s.recv(100).decode())";
    let mut other = tokio::process::Command::new("python3");
    other.args(["-c", script]).arg(socket(&world)).arg(text).uid(65534).gid(65534);
    let done = within("the other user", other.output()).await.unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.contains("none"), "{done:?}");
    server.says("a process of another user").await;
    let open = server.client.get("/api/approvals").await.expect(200).json();
    assert_eq!(open["approvals"], json!([]));
    server.stop().await;
}

/// What somebody put in the place of the socket stays.
#[tokio::test]
async fn h39_h63_what_is_in_the_place_of_the_socket_of_hooks_stays() {
    for what in ["file", "link", "directory", "pipe"] {
        let world = asking();
        fs::create_dir_all(world.state.join("run")).unwrap();
        let (place, own) = (socket(&world), world.root.join("own"));
        fs::write(&own, "mine").unwrap();
        match what {
            "file" => fs::copy(&own, &place).map(drop).unwrap(),
            "link" => std::os::unix::fs::symlink(&own, &place).unwrap(),
            "directory" => fs::create_dir(&place).unwrap(),
            _ => {
                let made = std::process::Command::new("mkfifo").arg(&place).status();
                assert!(made.unwrap().success());
            }
        }
        let before = fs::symlink_metadata(&place).unwrap();
        let server = world.serve().await;
        server.says("no socket for questions of sessions").await;
        let after = fs::symlink_metadata(&place).unwrap();
        assert_eq!((after.ino(), after.file_type()), (before.ino(), before.file_type()), "{what}");
        assert_eq!(fs::read_to_string(&own).unwrap(), "mine");
        server.client.run("app").await;
        server.client.stop("app").await.expect(200);
        server.kill().await;
    }
}

/// H81: what waits is bounded by its size, not by its number alone.
#[tokio::test]
async fn h81_large_questions_are_few_and_leave_room_for_small_ones() {
    let world = asking();
    let server = serve(&world).await;
    let mut events = server.events().await;
    let (mut waiting, mut declined) = (Vec::new(), 0);
    let question = |n: usize, input: &Value| {
        json!({
            "request_id": format!("0f1e2d3c-4b5a-4978-8796-a5b4c3d2e{n:03x}"), "launch": null,
            "session_id": "s", "cwd": world.projects.join("app"), "transcript": null,
            "call": null, "tool_name": "Write", "tool_input": input,
        })
    };
    for n in 0..24 {
        let mut stream = UnixStream::connect(socket(&world)).await.unwrap();
        let line = format!("{}\n", question(n, &json!({ "content": vec![0; 400_000] })));
        stream.write_all(line.as_bytes()).await.unwrap();
        let (many, mut said) = (waiting.len() + 1, String::new());
        let is_asked =
            |state: &svc_shared::internal::State| (state.questions.len() == many).then_some(());
        tokio::select! {
            () = events.until("one more", is_asked) => waiting.push(stream),
            _ = stream.read_to_string(&mut said) => {
                assert!(said.contains("none"), "{said}");
                declined += 1;
            }
        }
    }
    assert!(waiting.len() >= 4 && declined >= 4, "{} wait, {declined} do not", waiting.len());
    let many = waiting.len();
    let mut small = UnixStream::connect(socket(&world)).await.unwrap();
    let line = format!("{}\n", question(99, &json!({ "content": "x" })));
    small.write_all(line.as_bytes()).await.unwrap();
    events.until("the small one", |state| (state.questions.len() == many + 1).then_some(())).await;
    drop((waiting, small));
    events.until("their end", |state| state.questions.is_empty().then_some(())).await;
}
