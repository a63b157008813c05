//! Projects are created and cloned.
//!
//! What is hostile is refused or bounded, and leaves nothing.

use crate::crash_consistency::{armed, dies_of};
use crate::harness::{
    GitServer, Server, Start, World, by_hand, service_with_fail_points, socket, within,
};
use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use svc_shared::internal::clones::CloneJob;
use svc_skip::{NO_FAIL_POINTS, skip};

/// A service for which `git.test` is our git server, and further fail points.
async fn serve<'w>(world: &'w World, points: &str) -> Server<'w> {
    let authority = GitServer::authority();
    let env = [("SVC_FAILPOINTS", points), ("GIT_SSL_CAINFO", authority.as_str())];
    let program = service_with_fail_points();
    world.serve_as(Start { program, env: &env, ..Start::default() }).await
}

fn wanted(name: &str, path: &str) -> Value {
    json!({ "name": name, "url": GitServer::url(path) })
}

/// Asks for a clone, and waits for its end.
async fn cloned(server: &Server<'_>, body: &Value) -> CloneJob {
    let mut page = server.events().await;
    let job = server.client.post_json("/api/projects/clone", body).await.expect(202).json();
    let id = job["job_id"].as_str().unwrap().to_owned();
    page.until("the end of the clone", |state| {
        state.clones.get(&id).filter(|job| job.ended_at.is_some()).cloned()
    })
    .await
}

/// Everything in the projects' directory, hidden names too.
fn names(world: &World) -> Vec<String> {
    let entries = fs::read_dir(&world.projects).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Git gets few variables, so its processes are told by where they work.
fn no_git_runs(world: &World) {
    let hidden = world.projects.join(".");
    let hidden = hidden.to_string_lossy();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let argv = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let cwd = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        let told = format!("{} in {}", String::from_utf8_lossy(&argv), cwd.display());
        let is_clone = told.contains("clone-tmp") && told.contains(hidden.trim_end_matches('.'));
        assert!(!is_clone, "{:?}: {told}", entry.file_name());
    }
}

#[tokio::test]
async fn h41_a_repository_is_cloned_and_nothing_of_it_runs() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = World::new();
    let git = GitServer::start(&world).await;
    let inner = git.repository("inner", &[("x", "1")]);
    let repository = git.repository(
        "evil",
        &[
            ("CLAUDE.md", "Be nice."),
            (".claude/settings.json", "{}"),
            (".gitattributes", "* filter=boom diff=boom\n"),
            (".githooks/post-checkout", "#!/bin/sh\ntouch ../../ran\n"),
        ],
    );
    fs::set_permissions(
        repository.join(".githooks/post-checkout"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    symlink("/etc/passwd", repository.join("link")).unwrap();
    by_hand(&repository, &["submodule", "add", "-q", inner.to_str().unwrap(), "sub"]);
    git.commit(&repository);
    // What a person of this machine has configured takes no part either.
    let planted = world.root.join("planted");
    let home = world.root.join("home");
    fs::create_dir_all(home.join(".config/git/template/hooks")).unwrap();
    let hook = home.join(".config/git/template/hooks/post-checkout");
    svc_programs::write(&hook, format!("#!/bin/sh\ntouch {}\n", planted.display())).unwrap();
    let template = home.join(".config/git/template");
    let config = format!(
        "[init]\n templateDir = {}\n[core]\n fsmonitor = touch {p}\n[filter \"boom\"]\n smudge = \"touch {p}; cat\"\n",
        template.display(),
        p = planted.display()
    );
    fs::write(home.join(".gitconfig"), config).unwrap();

    let server = serve(&world, &git.points("")).await;
    let mut page = server.events().await;
    let body = json!({ "name": "ledger", "url": GitServer::url("plain/evil"), "shallow": true });
    let job = cloned(&server, &body).await;
    assert_eq!((job.state.to_string(), job.error), ("done".into(), None));
    let project = page.until("the project", |state| state.projects.get("ledger").cloned()).await;
    assert!(project.is_git_repo && project.has_claude_md && project.has_claude_dir);
    assert_eq!(project.trust_state.to_string(), "untrusted");
    let told = page.until_happened("clone-done").await;
    assert_eq!(told["status"], "done");
    assert!(told.get("url").is_none());

    let dir = world.projects.join("ledger");
    assert_eq!(names(&world), ["ledger"]);
    assert!(!planted.exists() && !world.root.join("ran").exists());
    assert!(!dir.join(".git/hooks").exists(), "no template");
    assert_eq!(fs::read_dir(dir.join("sub")).unwrap().count(), 0, "no submodule");
    assert_eq!(fs::read_link(dir.join("link")).unwrap(), Path::new("/etc/passwd"));
    let mode = fs::metadata(&dir).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o755, "the umask that agents get");
    let config = fs::read_to_string(dir.join(".git/config")).unwrap();
    assert!(config.contains("url = https://git.test/plain/evil") && !config.contains("proxy"));
    assert!(dir.join(".git/shallow").exists());
    no_git_runs(&world);
}

#[tokio::test]
async fn h51_a_clone_tells_its_progress_and_can_be_cancelled() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = World::new();
    let git = GitServer::start(&world).await;
    let large: String =
        (0..200_000_u32).map(|n| format!("{:x}\n", n.wrapping_mul(2_654_435_761))).collect();
    git.repository("large", &[("large", &large)]);
    let server = serve(&world, &git.points("")).await;
    let job = server.client.post_json("/api/projects/clone", &wanted("large", "held/large")).await;
    let job = job.expect(202).json();
    let id = job["job_id"].as_str().unwrap().to_owned();
    assert_eq!((job["name"].as_str(), id.len()), (Some("large"), 32));
    let mut stream = socket(&server.base, &format!("/ws/clone-progress/{id}")).await;
    let mut phases = Vec::new();
    // The pack is held half-way.
    while !phases.contains(&"Receiving".to_owned()) {
        let frame = within("progress", stream.next()).await.unwrap().unwrap();
        let frame: Value = serde_json::from_str(frame.to_text().unwrap()).unwrap();
        assert_eq!(frame["type"], "progress");
        phases.push(frame["phase"].as_str().unwrap().to_owned());
    }
    let active = server.client.get("/api/projects/clone/active").await.expect(200);
    assert!(!active.text().contains("git.test"), "never the address");
    assert_eq!(active.json()["jobs"][0]["job_id"], id.as_str());
    let again =
        server.client.post_json("/api/projects/clone", &wanted("large", "plain/large")).await;
    assert_eq!(again.refused(409), "exists");

    let path = format!("/api/projects/clone/{id}/cancel");
    let cancelled = server.client.post(&path).await.expect(202).json();
    assert_eq!(cancelled, json!({ "job_id": id, "cancelling": true }));
    let last = loop {
        let frame = within("the end", stream.next()).await.unwrap().unwrap();
        let frame: Value = serde_json::from_str(frame.to_text().unwrap()).unwrap();
        if frame["type"] == "done" {
            break frame;
        }
    };
    assert_eq!((&last["status"], &last["cancelled"]), (&json!("error"), &json!(true)));
    assert_eq!(server.client.post(&path).await.refused(409), "invalid_value");
    assert_eq!(names(&world), [""; 0]);
    no_git_runs(&world);
    let gone = server.client.post("/api/projects/clone/0/cancel").await;
    assert_eq!(gone.refused(404), "unknown_job");

    git.open();
    let job = cloned(&server, &wanted("large", "held/large")).await;
    assert_eq!(job.state.to_string(), "done", "{:?}", job.error);
    assert!(job.bytes.is_some_and(|bytes| bytes > 100_000), "{:?}", job.bytes);
}

#[tokio::test]
async fn h44_h45_bad_addresses_are_refused_before_anything_is_started() {
    let world = World::new();
    let server = world.serve().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for (url, status) in [
        ("", 422),
        ("ext::sh -c x", 422),
        ("file:///etc", 422),
        ("git://host/x", 422),
        ("http://host/x", 422),
        ("git@host:path", 422),
        ("ssh://-oProxyCommand=x/a", 422),
        ("https://user:CANARYpassword@host/x", 422),
        ("https://nothing.invalid/x", 422),
        ("https://169.254.169.254/x", 403),
        ("https://[::ffff:127.0.0.1]/x", 403),
        ("https://2130706433/x", 403),
        ("https://localhost./x", 403),
        ("https://10.0.0.1/x", 403),
        (format!("https://127.0.0.1:{port}/x").as_str(), 403),
        (format!("ssh://git@127.0.0.1:{port}/x").as_str(), 403),
    ] {
        let reply = server
            .client
            .post_json("/api/projects/clone", &json!({ "name": "x", "url": url }))
            .await;
        assert_eq!(reply.status, status, "{url}: {}", reply.text());
        let code = if status == 403 { "clone_blocked" } else { "invalid_value" };
        assert_eq!(reply.json()["code"], code, "{url}");
        assert!(!reply.text().contains("CANARY"));
    }
    let private = server
        .client
        .post_json("/api/projects/clone", &json!({ "name": "x", "url": "https://10.0.0.1/x" }))
        .await;
    assert!(private.text().contains("clone.allowed_private_cidrs"));
    let never = server
        .client
        .post_json("/api/projects/clone", &json!({ "name": "x", "url": "https://127.0.0.1/x" }))
        .await;
    assert!(!never.text().contains("allow_private"), "{}", never.text());
    assert!(listener.accept().is_err(), "nobody connected");
    assert_eq!(names(&world), [""; 0]);
    assert!(!server.log().contains("CANARY"));
    for (name, status) in [("../x", 422), ("-x", 422), (".x", 422), ("CON", 422), ("a/b", 422)] {
        let body = json!({ "name": name, "url": "https://1.1.1.1/x" });
        assert_eq!(
            server.client.post_json("/api/projects/clone", &body).await.status,
            status,
            "{name}"
        );
        let made = server.client.post_json("/api/projects", &json!({ "name": name })).await;
        assert_eq!(made.status, status, "{name}");
    }
}

#[tokio::test]
async fn h46_the_address_that_was_checked_is_the_one_that_is_dialled() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = World::new();
    let git = GitServer::start(&world).await;
    git.repository("a", &[("a", "1")]);
    // The second answer is this machine, where nobody may be connected to.
    let dns = "git.test:1.1.1.1|127.0.0.1/mixed.test:1.1.1.1,127.0.0.1/six.test:::1";
    let server = serve(&world, &git.points_with(dns, "")).await;
    let job = cloned(&server, &wanted("a", "plain/a")).await;
    assert_eq!(job.state.to_string(), "done", "{:?}", job.error);
    // The name is asked again for another clone, and refused then.
    for url in ["https://git.test/plain/a", "https://mixed.test/a", "https://six.test/a"] {
        let body = json!({ "name": "b", "url": url });
        let reply = server.client.post_json("/api/projects/clone", &body).await;
        assert_eq!(reply.refused(403), "clone_blocked", "{url}");
    }
    assert_eq!(names(&world), ["a"]);
}

#[tokio::test]
async fn h47_redirects_are_held_to_the_rules_of_the_first_address() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = World::new();
    let git = GitServer::start(&world).await;
    git.repository("a", &[("a", "1")]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let dns = "git.test:1.1.1.1/other.test:1.1.1.1/inside.test:127.0.0.1/private.test:10.0.0.1";
    let points = git.points_with(dns, "").replace(
        "clone.dial=",
        &format!("clone.dial=127.0.0.1:443>127.0.0.1:{port},10.0.0.1:443>127.0.0.1:{port},"),
    );
    let server = serve(&world, &points).await;
    let service = "info/refs?service=git-upload-pack";
    let to = |location: &str| {
        let hex: String = location.bytes().map(|byte| format!("{byte:02x}")).collect();
        format!("to/{hex}")
    };
    let good =
        cloned(&server, &wanted("a", &to(&format!("https://other.test/plain/a/{service}")))).await;
    assert_eq!(good.state.to_string(), "done", "{:?}", good.error);
    let config = fs::read_to_string(world.projects.join("a/.git/config")).unwrap();
    assert!(config.contains("url = https://other.test/plain/a"), "{config}");

    for (location, says) in [
        (format!("http://169.254.169.254/a/{service}"), "https://"),
        (format!("https://169.254.169.254/a/{service}"), "never cloned from"),
        (format!("https://inside.test/a/{service}"), "never cloned from"),
        (format!("https://private.test/a/{service}"), "private network"),
        (format!("ssh://git@other.test/a/{service}"), "https://"),
        (format!("file:///etc/{service}"), "https://"),
        ("https://other.test/login".to_owned(), "names no repository"),
    ] {
        let job = cloned(&server, &wanted("b", &to(&location))).await;
        let error = job.error.unwrap();
        assert_eq!(job.state.to_string(), "error", "{location}");
        assert!(error.contains("redirect") && error.contains(says), "{location}: {error}");
    }
    let job = cloned(&server, &wanted("b", "loop/b")).await;
    assert!(job.error.unwrap().contains("more than 5 times"));
    assert_eq!(git.asked().matches("/loop/b/info/refs").count(), 6, "{}", git.asked());
    assert!(listener.accept().is_err(), "nobody connected");
    assert_eq!(names(&world), ["a"]);
}

#[tokio::test]
async fn h51_time_and_size_are_held_while_bytes_come_in() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = World::with(json!({ "clone": { "max_mb": 3, "timeout_seconds": 2 } }));
    let git = GitServer::start(&world).await;
    let server = serve(&world, &git.points("")).await;
    let job = cloned(&server, &wanted("silent", "silent/x")).await;
    assert!(job.error.as_ref().unwrap().contains("longer than 2 s"), "{:?}", job.error);
    assert_eq!(names(&world), [""; 0]);
    no_git_runs(&world);
    server.kill().await;

    world.configure(json!({ "clone": { "timeout_seconds": 300 } }));
    let server = serve(&world, &git.points("")).await;
    let job = cloned(&server, &wanted("endless", "endless/x")).await;
    assert!(job.error.as_ref().unwrap().contains("larger than 3 MiB"), "{:?}", job.error);
    assert!(job.bytes.is_none_or(|bytes| bytes <= 3 * 1024 * 1024), "{:?}", job.bytes);
    assert_eq!(names(&world), [""; 0]);
    no_git_runs(&world);
}

#[tokio::test]
async fn h52_one_of_many_clones_of_a_name_is_made_and_nothing_is_overwritten() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = World::new();
    let git = GitServer::start(&world).await;
    git.repository("a", &[("a", &"x".repeat(100))]);
    let server = serve(&world, &git.points("")).await;
    let all = (0..50).map(|_| {
        let (client, body) = (&server.client, wanted("a", "plain/a"));
        async move { client.post_json("/api/projects/clone", &body).await.status }
    });
    let mut page = server.events().await;
    let statuses = futures_util::future::join_all(all).await;
    assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 202 | 409)), "{statuses:?}");
    page.until("the project", |state| state.projects.get("a").cloned()).await;

    // Five at once: the fifth waits for one of four that are held.
    // Large enough that the half which is not held holds whole packets of git's.
    let random: String =
        (0..200_000_u32).map(|n| format!("{:x}\n", n.wrapping_mul(2_654_435_761))).collect();
    git.repository("held", &[("a", &random)]);
    let mut ids = Vec::new();
    for n in 0..5 {
        let job = server
            .client
            .post_json("/api/projects/clone", &wanted(&format!("p{n}"), "held/held"))
            .await;
        ids.push(job.expect(202).json()["job_id"].as_str().unwrap().to_owned());
    }
    page.until("four that run", |state| {
        let receiving = ids
            .iter()
            .filter(|id| state.clones.get(*id).is_some_and(|job| job.phase == "Receiving"))
            .count();
        (receiving == 4).then_some(())
    })
    .await;
    assert_eq!(page.state.clones[&ids[4]].state.to_string(), "waiting");
    // Somebody takes a name meanwhile.
    fs::create_dir(world.projects.join("p0")).unwrap();
    fs::write(world.projects.join("p0/mine"), "mine").unwrap();
    git.open();
    page.until("the end of all", |state| {
        ids.iter()
            .all(|id| state.clones.get(id).is_some_and(|job| job.ended_at.is_some()))
            .then_some(())
    })
    .await;
    let first = &page.state.clones[&ids[0]];
    assert!(first.error.as_ref().unwrap().contains("there already"), "{first:?}");
    assert!(ids[1..].iter().all(|id| page.state.clones[id].error.is_none()));
    assert_eq!(names(&world), ["a", "p0", "p1", "p2", "p3", "p4"]);
    assert_eq!(fs::read_to_string(world.projects.join("p0/mine")).unwrap(), "mine");
    assert_eq!(fs::read_dir(world.projects.join("p0")).unwrap().count(), 1);
}

#[tokio::test]
async fn h98_h51_a_clone_interrupted_at_any_point_leaves_nothing() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let points =
        ["clone.after_begin", "clone.after_start", "clone.before_rename", "clone.after_rename"];
    for point in points {
        let world = World::new();
        let git = GitServer::start(&world).await;
        git.repository("a", &[("a", "1")]);
        let path = if point == "clone.after_start" { "silent/a" } else { "plain/a" };
        let mut server = serve(&world, &git.points(&format!("{point}=abort"))).await;
        let request = server.client.request(Method::POST, "/api/projects/clone");
        let _ = server.client.try_send(request.json(&wanted("a", path))).await;
        assert_eq!(server.ended().await.signal(), Some(9), "{point}");

        let server = serve(&world, &git.points("")).await;
        let is_there = point == "clone.after_rename";
        let rest: &[&str] = if is_there { &["a"] } else { &[] };
        world.until("the hidden directory is gone", || (names(&world) == rest).then_some(())).await;
        no_git_runs(&world);
        if !is_there {
            let job = cloned(&server, &wanted("a", "plain/a")).await;
            assert_eq!(job.state.to_string(), "done", "{point}: {:?}", job.error);
        }
        assert_eq!(names(&world), ["a"], "{point}");
    }
    let world = World::new();
    let Some(program) = service_with_fail_points() else { return };
    let server = armed(&world, &program, "clone.before_rename").await;
    dies_of(
        server,
        Method::POST,
        "/api/projects",
        Some(json!({ "name": "new", "git_init": true })),
    )
    .await;
    let server = world.serve().await;
    world.until("the hidden directory is gone", || names(&world).is_empty().then_some(())).await;
    server.client.post_json("/api/projects", &json!({ "name": "new" })).await.expect(201);
}

#[tokio::test]
async fn h43_projects_are_created_empty_or_as_repositories_and_never_over_something() {
    let world = World::new();
    fs::write(world.projects.join("file"), "").unwrap();
    symlink("/nowhere", world.projects.join("dangling")).unwrap();
    let server = world.serve().await;
    let create = async |body: Value| server.client.post_json("/api/projects", &body).await;
    let plain = create(json!({ "name": "plain" })).await.expect(201).json();
    assert_eq!((&plain["name"], &plain["is_git_repo"]), (&json!("plain"), &json!(false)));
    assert_eq!(plain["trust_state"], "untrusted");
    let repository =
        create(json!({ "name": "Übung 2", "git_init": true })).await.expect(201).json();
    assert_eq!(repository["is_git_repo"], true);
    assert!(!world.projects.join("Übung 2/.git/hooks").exists());
    let mode = fs::metadata(world.projects.join("plain")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    for taken in ["plain", "file", "dangling"] {
        assert_eq!(create(json!({ "name": taken })).await.refused(409), "exists", "{taken}");
    }
    assert_eq!(create(json!({ "name": 5 })).await.refused(422), "schema");
    assert_eq!(names(&world), ["dangling", "file", "plain", "Übung 2"]);
    // It is there for the next request at once.
    let listed = server.client.get("/api/projects").await.expect(200).text();
    assert!(listed.contains("Übung 2"));
    server.kill().await;

    world.configure(json!({ "clone": { "enabled": false } }));
    let server = world.serve().await;
    let off = server.client.post_json("/api/projects", &json!({ "name": "x" })).await;
    assert_eq!(off.refused(403), "capability_disabled");
    let off = server
        .client
        .post_json("/api/projects/clone", &json!({ "name": "x", "url": "https://h/x" }))
        .await;
    assert_eq!(off.refused(403), "capability_disabled");
    let known = server.client.get("/api/bootstrap").await.expect(200).json();
    assert_eq!(known["features"]["clone"], false);
}

#[tokio::test]
async fn projects_are_made_by_commands_without_a_service() {
    let world = World::new();
    let made = world.cli(&["create", "notes", "--git-init", "--json"]).await.ok();
    assert_eq!(made.json()["name"], "notes");
    assert!(world.projects.join("notes/.git/HEAD").is_file());
    let again = world.cli(&["create", "notes"]).await;
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    assert!(again.stderr.contains("there already"), "{}", again.stderr);
    let blocked = world.cli(&["clone", "https://127.0.0.1/x"]).await;
    assert_eq!(blocked.code, Some(2), "{}", blocked.stderr);
    let nameless = world.cli(&["clone", "https://1.1.1.1/-"]).await;
    assert_eq!(nameless.code, Some(2), "{}", nameless.stderr);

    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let git = GitServer::start(&world).await;
    git.repository("a", &[("a", "1")]);
    let mut command =
        world.command(&program, &["clone", &GitServer::url("plain/a.git/"), "--json"]);
    fs::rename(world.root.join("git/a"), world.root.join("git/a.git")).unwrap();
    command.env("SVC_FAILPOINTS", git.points("")).env("GIT_SSL_CAINFO", GitServer::authority());
    let done = within("the clone", command.output()).await.unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    let job: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&job["name"], &job["state"]), (&json!("a"), &json!("done")));
    assert_eq!(names(&world), ["a", "notes"]);
}
