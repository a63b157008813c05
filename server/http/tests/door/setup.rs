//! The first run: who may write the configuration, its content, and only once.

use crate::client::{Reply, Sent};
use crate::harness::read_to_end;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use svc_app::setup::{Fixed, Reached, Setup, SetupAnswers, SetupError, foresee};
use svc_config::{Environment, Found, Step};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

const PASSWORD: &str = "correct horse";

/// A directory with projects and without a configuration.
struct Workspace(TempDir);

impl Workspace {
    fn new() -> Self {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir(tree.path().join("projects")).unwrap();
        Self(tree)
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("new/svc.yml")
    }

    fn environment(&self, more: &[(&str, &str)]) -> Environment {
        let home = [("HOME", self.0.path().to_str().unwrap())];
        home.iter().chain(more).copied().collect()
    }

    fn target(&self) -> Found {
        Found { path: self.file(), step: Step::Argument, searched: Vec::new() }
    }

    fn setup(&self, host: &str, port: u16) -> Arc<Setup> {
        let reached = Reached { host: host.to_owned(), port };
        let environment = self.environment(&[]);
        Arc::new(Setup::new(self.target(), environment, reached, Fixed::default()).unwrap())
    }

    fn form(&self) -> Value {
        json!({
            "projects_root": self.0.path().join("projects"), "host": "127.0.0.1", "port": 9,
            "password": PASSWORD, "confirm": PASSWORD,
        })
    }

    fn answers(&self) -> SetupAnswers {
        SetupAnswers {
            projects_root: self.0.path().join("projects").to_str().unwrap().to_owned(),
            password: PASSWORD.to_owned(),
            confirm: PASSWORD.to_owned(),
            ..SetupAnswers::default()
        }
    }
}

/// A served first run that says it is reached at `host`.
async fn served(workspace: &Workspace, host: &str) -> (SocketAddr, Arc<Setup>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let setup = workspace.setup(host, address.port());
    tokio::spawn(svc_http::serve_setup(listener, Arc::clone(&setup)));
    (address, setup)
}

async fn send(address: SocketAddr, sent: Sent) -> Reply {
    let mut socket = TcpStream::connect(address).await.unwrap();
    // It may answer and close before it took everything.
    let _ = socket.write_all(&sent.to_bytes(address)).await;
    Reply::parse(&read_to_end(&mut socket).await, sent.method == "HEAD")
}

#[tokio::test]
async fn h26_strangers_neither_see_nor_send_the_form() {
    let workspace = Workspace::new();
    let (address, _setup) = served(&workspace, "127.0.0.1").await;
    for (host, expected) in
        [("evil.example", 421), ("127.0.0.1.evil.example", 421), ("a b", 400), ("localhost:1", 200)]
    {
        let reply = send(address, Sent::new("GET", "/").header("Host", host)).await;
        assert_eq!(reply.status, expected, "{host}");
        assert!(reply.header("content-security-policy").is_some(), "{host}");
    }
    let own = format!("http://localhost:{}", address.port());
    for (name, value, expected) in [
        ("Origin", "https://evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "http://127.0.0.1:1", 403),
        ("Sec-Fetch-Site", "cross-site", 403),
        ("Origin", own.as_str(), 400),
        ("X-None", "", 400),
    ] {
        let sent = Sent::new("POST", "/setup").header(name, value).json(&json!({}));
        assert_eq!(send(address, sent).await.status, expected, "{name}: {value}");
    }
    for (sent, expected) in [
        (Sent::new("GET", "/setup"), 405),
        (Sent::new("GET", "/api/projects"), 404),
        (Sent::new("POST", "/setup").body("text/plain", b"{}"), 415),
        (Sent::new("POST", "/setup").json(&json!({"password": "x".repeat(20_000)})), 413),
        (Sent::new("POST", "/setup").json(&json!([])), 422),
    ] {
        let what = format!("{} {}", sent.method, sent.path);
        assert_eq!(send(address, sent).await.status, expected, "{what}");
    }
    assert!(!workspace.file().exists());
    let health = send(address, Sent::new("GET", "/healthz")).await;
    assert_eq!(health.json(), json!({"status": "setup"}));
}

#[tokio::test]
async fn h26_wrong_fields_are_named_and_passwords_not_shown_again() {
    let workspace = Workspace::new();
    let (address, _setup) = served(&workspace, "127.0.0.1").await;
    let mut wrong = workspace.form();
    wrong["projects_root"] = json!("/nowhere/at/all");
    wrong["port"] = json!(70_000);
    wrong["password"] = json!("secret7");
    let reply = send(address, Sent::new("POST", "/setup").json(&wrong)).await;
    assert_eq!(reply.status, 400);
    let errors = reply.json()["errors"].clone();
    for (field, words) in [
        ("projects_root", "cannot be used"),
        ("port", "1 to 65535"),
        ("password", "at least 8"),
        ("confirm", "don't match"),
    ] {
        assert!(errors[field].as_str().unwrap().contains(words), "{errors}");
    }
    let form = "projects_root=%22%3E%3Cscript%3E&host=&port=x&password=secret7&confirm=secret8";
    let sent = Sent::new("POST", "/setup");
    let page = send(address, sent.body("application/x-www-form-urlencoded", form.as_bytes())).await;
    let text = page.text();
    assert_eq!(page.status, 400);
    assert!(text.contains("id=\"port-wrong\"") && text.contains("&quot;&gt;&lt;script&gt;"));
    assert!(!text.contains("secret7") && !text.contains("<script"), "{text}");
    assert!(!workspace.file().exists());
}

#[tokio::test]
async fn h26_the_file_is_private_closed_and_written_once() {
    let workspace = Workspace::new();
    let setup = workspace.setup("127.0.0.1", 7621);
    let (one, other) =
        tokio::join!(setup.submit(workspace.answers()), setup.submit(workspace.answers()));
    let ends = [one, other];
    assert!(ends.contains(&Err(SetupError::Done)), "{ends:?}");
    assert!(ends.contains(&Ok("http://127.0.0.1:7621/".to_owned())), "{ends:?}");
    assert!(setup.over().is_cancelled());
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(workspace.file()), mode(workspace.0.path().join("new"))), (0o600, 0o700));
    let text = std::fs::read_to_string(workspace.file()).unwrap();
    assert!(!text.contains(PASSWORD) && !text.contains("allowed_origins"), "{text}");
    let loaded = svc_config::load(&workspace.target(), &workspace.environment(&[])).unwrap();
    let auth = &loaded.config.auth;
    assert!(auth.enabled && auth.password_required && auth.password_hash.is_some());
    // A file that stands there is never replaced, whoever wrote it.
    let later = workspace.setup("127.0.0.1", 7621);
    assert_eq!(later.submit(workspace.answers()).await, Err(SetupError::Done));
    assert!(later.over().is_cancelled() && later.outcome().await.is_some(), "the service starts");
    assert_eq!(std::fs::read_to_string(workspace.file()).unwrap(), text);
    let beside = std::fs::read_dir(workspace.0.path().join("new")).unwrap().count();
    assert_eq!(beside, 1, "nothing else is left");
}

#[tokio::test]
async fn h26_a_setup_goes_through_although_whoever_sent_it_has_left() {
    let workspace = Workspace::new();
    let setup = workspace.setup("127.0.0.1", 7621);
    let mut left = Box::pin(setup.submit(workspace.answers()));
    assert!(futures_util::poll!(left.as_mut()).is_pending());
    drop(left);
    let over = setup.over().cancelled();
    tokio::time::timeout(Duration::from_secs(120), over).await.expect("it ends");
    assert!(workspace.file().exists());
    assert_eq!(setup.outcome().await.as_deref(), Some("http://127.0.0.1:7621/"));
}

#[tokio::test]
async fn h26_a_file_that_is_no_configuration_does_not_end_the_setup() {
    let workspace = Workspace::new();
    let setup = workspace.setup("127.0.0.1", 7621);
    std::fs::create_dir(workspace.0.path().join("new")).unwrap();
    std::fs::write(workspace.file(), "projects_root: [").unwrap();
    assert_eq!(setup.submit(workspace.answers()).await, Err(SetupError::Done));
    assert!(!setup.over().is_cancelled());
}

#[tokio::test]
async fn h26_beyond_loopback_a_token_opens_the_page_and_guesses_are_counted() {
    let workspace = Workspace::new();
    let (address, setup) = served(&workspace, "0.0.0.0").await;
    let token = setup.token().unwrap().to_owned();
    assert_eq!(token.len(), 43);
    let page = |token: &str| {
        Sent::new("GET", &format!("/?token={token}")).header("Host", "box.example:80")
    };
    let form = send(address, page(&token).header("Accept-Encoding", "br, gzip")).await;
    assert_eq!((form.status, form.header("content-encoding")), (200, None), "it holds a secret");
    let shown = send(address, page("guessed")).await;
    assert!(shown.status == 403 && !shown.text().contains("guessed"), "{}", shown.text());
    let mut form = workspace.form();
    form["host"] = json!("0.0.0.0");
    form["port"] = json!(address.port());
    let sent = |token: &str| {
        Sent::new("POST", "/setup")
            .header("X-Setup-Token", token)
            .header("Origin", &format!("http://box.example:{}", address.port()))
            .json(&form)
    };
    assert_eq!(send(address, sent("gu\u{e9}ssed")).await.status, 403, "bytes that are no token");
    // The right one starts the count anew; five wrong ones lock even the right one out.
    assert_eq!(send(address, page(&token)).await.status, 200);
    for _ in 0..5 {
        assert_eq!(send(address, page("")).await.status, 403);
    }
    let locked = send(address, sent(&token)).await;
    let wait: u64 = locked.header("retry-after").unwrap().parse().unwrap();
    assert!(locked.status == 429 && (1..=300).contains(&wait), "{wait}");
    assert!(!workspace.file().exists());

    let (address, setup) = served(&workspace, "0.0.0.0").await;
    form["port"] = json!(address.port());
    let reply = send(
        address,
        Sent::new("POST", "/setup")
            .header("X-Setup-Token", setup.token().unwrap())
            .header("Origin", &format!("http://box.example:{}", address.port()))
            .json(&form),
    )
    .await;
    let url = format!("http://box.example:{}/", address.port());
    assert_eq!(reply.json(), json!({"ok": true, "url": url}));
    let loaded = svc_config::load(&workspace.target(), &workspace.environment(&[])).unwrap();
    let origins = &loaded.config.auth.allowed_origins;
    assert_eq!(origins, &[url.trim_end_matches('/')], "where it was reached may sign in");
}

#[test]
fn what_the_environment_decides_is_not_asked_and_a_password_of_its_own_is_refused() {
    let workspace = Workspace::new();
    let foreseen =
        |more: &[(&str, &str)]| foresee(&workspace.target(), &workspace.environment(more));
    let (fixed, _) = foreseen(&[("SVC_PORT", "8080"), ("SVC_HOST", "0.0.0.0")]).unwrap();
    assert_eq!((fixed.port, fixed.host.as_deref()), (Some(8080), Some("0.0.0.0")));
    assert_eq!(fixed.projects_root, None);
    let refused = foreseen(&[("SVC_AUTH_ENABLED", "false")]).unwrap_err().to_string();
    assert!(refused.contains("SVC_AUTH_ENABLED: auth.enabled"), "{refused}");
    let wrong = foreseen(&[("SVC_PORT", "many")]).unwrap_err().to_string();
    assert!(wrong.contains("SVC_PORT"), "{wrong}");
}
