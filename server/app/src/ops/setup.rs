//! The first run: turns the answers of a person into the configuration, once.
//!
//! See `command-line` §9 and H26.

use crate::auth::{LONGEST_PASSWORD, SHORTEST_PASSWORD, hash_password, same_text};
use crate::failpoint::hit;
use crate::ops::audit::{Actor, AuditLog, Change, Scope, Surface};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};
use svc_config::{
    ConfigErrors, Environment, Found, Loaded, Location, Problem, Source, load, load_candidate,
};
use svc_domain::origin::{self, Origin};
use svc_domain::throttle::{Key, Throttle};
use svc_process::files::{self, FileError};
use svc_process::table::ProcTable;
use svc_shared::Timestamp;
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

/// Stands where the hash of the password will be while everything else is examined.
const NO_HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$c3RhbmQtaW4tc2FsdC0xNg\
     $AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
/// Keys the page decides.
/// Were they decided elsewhere, its password would open nothing.
const OWN_KEYS: [&str; 3] = ["auth.enabled", "auth.password_required", "auth.password_hash"];

/// Where the setup page is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// Host as it was asked for.
    pub host: String,
    /// The real port.
    pub port: u16,
}

/// What the environment decides, whatever is filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fixed {
    /// `SVC_PROJECTS_ROOT`.
    pub projects_root: Option<String>,
    /// `SVC_HOST`.
    pub host: Option<String>,
    /// `SVC_PORT`.
    pub port: Option<u16>,
}

/// What somebody filled in.
#[derive(Clone, Default)]
pub struct SetupAnswers {
    /// Where the projects are.
    pub projects_root: String,
    /// Host to listen on; none is loopback.
    pub host: Option<String>,
    /// Port to listen on, as it was typed; none is the usual one.
    pub port: Option<String>,
    /// The password to be.
    pub password: String,
    /// The same again.
    pub confirm: String,
    /// The page the answers came from.
    pub origin: Option<Origin>,
    /// Host the browser used, as it is written in an address.
    pub seen_host: Option<String>,
}

/// Why nothing was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupError {
    /// What is wrong with which field.
    Fields(BTreeMap<&'static str, String>),
    /// Something no field is for.
    Refused(String),
    /// There is a configuration by now.
    Done,
    /// The file could not be written; the sentence says why.
    Unwritten(String),
}

/// The first run of a service that has no configuration.
pub struct Setup {
    target: Found,
    environment: Environment,
    reached: Reached,
    fixed: Fixed,
    token: Option<String>,
    throttle: Mutex<Throttle>,
    /// Held by the one who writes; the address of the service once that is done.
    done: tokio::sync::Mutex<Option<String>>,
    /// Bound before the file was written, where the service will listen elsewhere.
    bound: Mutex<Option<TcpListener>>,
    over: CancellationToken,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("reached", &self.reached).finish_non_exhaustive()
    }
}

/// Whether a host that is listened on can be reached from this machine only.
/// Unsure is no.
#[must_use]
pub fn is_loopback_host(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// What the environment decides about the new configuration.
/// Also returns that configuration with everything else at its default.
///
/// # Errors
/// A variable that the page cannot correct.
pub fn foresee(target: &Found, environment: &Environment) -> Result<(Fixed, Loaded), ConfigErrors> {
    let blank = Content { projects_root: "/", host: None, port: None, hash: NO_HASH, origin: None };
    let loaded = load_candidate(&blank.to_yaml(), target, environment)?;
    let variable = |key: &str| match loaded.source(key) {
        Some(Source::Env { name }) => Some(name.clone()),
        Some(Source::Default | Source::File { .. }) | None => None,
    };
    if let Some((key, name)) = OWN_KEYS.iter().find_map(|key| Some((*key, variable(key)?))) {
        let problem = Problem {
            location: Location::Variable(name),
            key: Some(key.to_owned()),
            reason: "is set, so the setup page could not set a password that counts; unset it, or \
                     write a configuration (one line does: `projects_root: DIR`)"
                .to_owned(),
        };
        return Err(ConfigErrors { problems: vec![problem], warnings: Vec::new(), exposed: None });
    }
    let config = &loaded.config;
    let fixed = Fixed {
        projects_root: variable("projects_root")
            .map(|_| config.projects_root.to_string_lossy().into_owned()),
        host: variable("host").map(|_| config.host.clone()),
        port: variable("port").map(|_| config.port),
    };
    Ok((fixed, loaded))
}

impl Setup {
    /// A first run that will write `target`.
    /// Beyond loopback it asks for a token, which is made here. Blocking: clears away what a killed
    /// first run left beside the file.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn new(
        target: Found,
        environment: Environment,
        reached: Reached,
        fixed: Fixed,
    ) -> Result<Self, std::io::Error> {
        let token = match is_loopback_host(&reached.host) {
            true => None,
            false => {
                let mut bytes = [0; 32];
                getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
                Some(URL_SAFE_NO_PAD.encode(bytes))
            }
        };
        if let (Some(directory), Ok(table)) = (target.path.parent(), ProcTable::open()) {
            // Where that cannot be looked into, nothing can be written either, and that is said.
            let _ = files::remove_abandoned_temporaries(directory, &table);
        }
        Ok(Self {
            target,
            environment,
            reached,
            fixed,
            token,
            throttle: Mutex::default(),
            done: tokio::sync::Mutex::default(),
            bound: Mutex::default(),
            over: CancellationToken::new(),
        })
    }

    /// Where it is served.
    #[must_use]
    pub fn reached(&self) -> &Reached {
        &self.reached
    }

    /// What the environment decides.
    #[must_use]
    pub fn fixed(&self) -> &Fixed {
        &self.fixed
    }

    /// The file to be.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.target.path
    }

    /// What a caller must present; none where only this machine can call.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Cancelled when the file is written.
    #[must_use]
    pub fn over(&self) -> &CancellationToken {
        &self.over
    }

    /// The address of the service, once there is a configuration.
    pub async fn outcome(&self) -> Option<String> {
        self.done.lock().await.clone()
    }

    /// The socket the service will listen on, where that was bound already.
    pub fn take_bound(&self) -> Option<TcpListener> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether a presented token is the one; failures of a peer are counted.
    ///
    /// # Errors
    /// Seconds until the peer may try again.
    pub fn is_token(&self, peer: IpAddr, presented: &[u8]) -> Result<bool, u64> {
        let Some(token) = &self.token else { return Ok(true) };
        let mut throttle = self.throttle.lock().unwrap_or_else(PoisonError::into_inner);
        let attempt = throttle
            .reserve(Key::peer(peer), Instant::now())
            .map_err(|locked| locked.retry_after)?;
        let is_right = same_text(token.as_bytes(), presented);
        if is_right {
            throttle.succeeded(&attempt);
        }
        Ok(is_right)
    }

    /// Writes the configuration, once, and tells the address the service will have.
    /// Once begun it goes through, whether or not somebody still waits for it.
    ///
    /// # Errors
    /// See [`SetupError`]; then there is no file of ours.
    pub async fn submit(self: &Arc<Self>, answers: SetupAnswers) -> Result<String, SetupError> {
        let this = Arc::clone(self);
        let submitted = tokio::spawn(async move { this.submit_whole(answers).await }).await;
        submitted.unwrap_or_else(|_| {
            Err(SetupError::Unwritten("the setup was cut off; try again".to_owned()))
        })
    }

    async fn submit_whole(&self, answers: SetupAnswers) -> Result<String, SetupError> {
        let mut done = self.done.lock().await;
        if done.is_some() {
            return Err(SetupError::Done);
        }
        let port = self.port(&answers);
        let mut wrong = judge_password(&answers);
        if answers.projects_root.trim().is_empty() && self.fixed.projects_root.is_none() {
            wrong.insert("projects_root", "is required; name a directory".to_owned());
        }
        let given = match port {
            Ok(port) => port,
            Err(problem) => {
                wrong.insert("port", problem);
                None
            }
        };
        let loaded = match self.examine(&answers, given, NO_HASH).await {
            Ok(loaded) => Some(loaded),
            Err(SetupError::Fields(fields)) => {
                for (field, problem) in fields {
                    wrong.entry(field).or_insert(problem);
                }
                None
            }
            // Without the fields nothing can be said about the rest.
            Err(other) if wrong.is_empty() => return Err(other),
            Err(_) => None,
        };
        let (Some(loaded), true) = (loaded, wrong.is_empty()) else {
            return Err(SetupError::Fields(wrong));
        };
        let bound = self.bind(&loaded).await?;
        let password = answers.password.clone().into_bytes();
        let hash = spawn_blocking(move || hash_password(&password)).await;
        let Ok(Ok(hash)) = hash else {
            let words = "the password could not be hashed; try again";
            return Err(SetupError::Unwritten(words.to_owned()));
        };
        let content = self.content(&answers, given, &hash);
        let (text, change) = (content.to_yaml(), self.change(&content));
        let audit = audit_log(&loaded).await?;
        let who = (Actor::Setup, now());
        audit.announce(&who, &change).await.map_err(|error| {
            tracing::error!(error = %error, "the first configuration was not written");
            SetupError::Unwritten(error.message)
        })?;
        hit("setup.before_write").await;
        let written = self.write(text).await;
        if written.is_err() {
            audit.note_failure(&who, &change).await;
        }
        match written {
            Ok(()) => {}
            Err(SetupError::Done) => {
                // Somebody else's file, or ours of an attempt that failed after the writing.
                if let Some(standing) = self.standing().await {
                    self.finish(&mut done, self.address(&standing, &answers));
                }
                return Err(SetupError::Done);
            }
            Err(error) => return Err(error),
        }
        hit("setup.written").await;
        let url = self.address(&loaded, &answers);
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner) = bound;
        tracing::info!(file = %self.target.path.display(), "the first configuration was written");
        self.finish(&mut done, url.clone());
        Ok(url)
    }

    fn finish(&self, done: &mut Option<String>, url: String) {
        *done = Some(url);
        self.over.cancel();
    }

    /// The configuration that stands there by now, if the service can start with it.
    async fn standing(&self) -> Option<Loaded> {
        let (target, environment) = (self.target.clone(), self.environment.clone());
        let loaded = spawn_blocking(move || load(&target, &environment)).await;
        loaded.ok().and_then(Result::ok)
    }

    fn port(&self, answers: &SetupAnswers) -> Result<Option<u16>, String> {
        let typed = answers.port.as_deref().map(str::trim).filter(|typed| !typed.is_empty());
        match (self.fixed.port, typed) {
            (Some(_), _) | (None, None) => Ok(None),
            (None, Some(typed)) => match typed.parse() {
                Ok(port @ 1..) => Ok(Some(port)),
                Ok(0) | Err(_) => Err("must be a number from 1 to 65535".to_owned()),
            },
        }
    }

    fn content<'t>(
        &'t self,
        answers: &'t SetupAnswers,
        port: Option<u16>,
        hash: &'t str,
    ) -> Content<'t> {
        let typed = answers.host.as_deref().map(str::trim).filter(|host| !host.is_empty());
        let host = self.fixed.host.as_deref().or(typed).unwrap_or("127.0.0.1");
        let port = self.fixed.port.or(port).unwrap_or(DEFAULT_PORT);
        let origin = answers.origin.as_ref().filter(|_| !origin::is_loopback(host));
        // What leads to this port from outside will lead to the service.
        let origin = origin.map(|origin| match port == self.reached.port {
            true => origin.to_string(),
            false => origin.with_port(port).to_string(),
        });
        Content {
            projects_root: match &self.fixed.projects_root {
                Some(root) => root,
                None => answers.projects_root.trim(),
            },
            host: Some(host),
            port: Some(port),
            hash,
            origin,
        }
    }

    /// The whole configuration as it would be, judged as at every start.
    async fn examine(
        &self,
        answers: &SetupAnswers,
        port: Option<u16>,
        hash: &str,
    ) -> Result<Loaded, SetupError> {
        let text = self.content(answers, port, hash).to_yaml();
        let (target, environment) = (self.target.clone(), self.environment.clone());
        let loaded = spawn_blocking(move || load_candidate(&text, &target, &environment)).await;
        let errors = match loaded {
            Ok(Ok(loaded)) => return Ok(loaded),
            Ok(Err(errors)) => errors,
            Err(_) => return Err(SetupError::Refused("this cannot be examined".to_owned())),
        };
        let mut fields = BTreeMap::new();
        for problem in &errors.problems {
            let field = match problem.key.as_deref() {
                Some("projects_root") => "projects_root",
                Some("host") => "host",
                Some("port") => "port",
                Some(key) => {
                    let reason = format!("the configuration would not be usable: {key} is wrong");
                    return Err(SetupError::Refused(reason));
                }
                None => {
                    let reason = "the configuration would not be usable";
                    return Err(SetupError::Refused(reason.to_owned()));
                }
            };
            fields.entry(field).or_insert_with(|| problem.reason.clone());
        }
        Err(SetupError::Fields(fields))
    }

    /// Binds the address of the service already now, so the page can report faults.
    async fn bind(&self, loaded: &Loaded) -> Result<Option<TcpListener>, SetupError> {
        let (host, port) = (loaded.config.host.as_str(), loaded.config.port);
        if port == self.reached.port {
            // Ours: handed over, or free as soon as this page is gone.
            return Ok(None);
        }
        match TcpListener::bind((host, port)).await {
            Ok(listener) => Ok(Some(listener)),
            Err(error) => {
                let (field, words) = match error.kind() {
                    ErrorKind::AddrInUse => ("port", "another program listens there"),
                    ErrorKind::PermissionDenied => ("port", "this user may not use that port"),
                    _ => ("host", "this machine cannot listen there"),
                };
                let problem = format!("{words} ({error}); choose another");
                Err(SetupError::Fields(BTreeMap::from([(field, problem)])))
            }
        }
    }

    /// The change that the audit log tells of.
    fn change(&self, content: &Content<'_>) -> Change {
        Change {
            surface: Surface::Setup,
            scope: Scope::Global,
            target: self.target.path.to_string_lossy().into_owned(),
            action: "create",
            keys: content.keys().into_iter().map(Into::into).collect(),
        }
    }

    async fn write(&self, text: String) -> Result<(), SetupError> {
        let path = self.target.path.clone();
        let written = spawn_blocking(move || {
            if let Some(directory) = path.parent().filter(|directory| !directory.exists()) {
                files::private_directory(directory)?;
            }
            files::create_whole(&path, text.as_bytes())
        });
        match written.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(FileError::Create { cause, .. }))
                if cause.kind() == ErrorKind::AlreadyExists =>
            {
                Err(SetupError::Done)
            }
            Ok(Err(error)) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(error = %error, "the first configuration could not be written");
                Err(SetupError::Unwritten(format!(
                    "{} could not be written ({}); make its directory writable and try again",
                    self.target.path.display(),
                    cause.unwrap_or_else(|| "no reason given".to_owned())
                )))
            }
            Err(_) => Err(SetupError::Unwritten("the file could not be written".to_owned())),
        }
    }

    /// Where a browser will find the service.
    fn address(&self, loaded: &Loaded, answers: &SetupAnswers) -> String {
        let config = &loaded.config;
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        let is_wildcard = config.host.parse::<IpAddr>().is_ok_and(|host| host.is_unspecified());
        if let Some(origin) = &answers.origin
            && is_wildcard
            && config.port == self.reached.port
        {
            return format!("{origin}{}/", config.root_path);
        }
        let host = match (is_wildcard, &answers.seen_host) {
            (true, Some(seen)) => seen.clone(),
            (true, None) => "<this-host>".to_owned(),
            (false, _) if config.host.contains(':') => format!("[{}]", config.host),
            (false, _) => config.host.clone(),
        };
        format!("{scheme}://{host}:{}{}/", config.port, config.root_path)
    }
}

/// The port of a configuration that names none.
const DEFAULT_PORT: u16 = 7621;

/// The audit log of the service to be, with the directories that it needs.
async fn audit_log(loaded: &Loaded) -> Result<AuditLog, SetupError> {
    let state_dir = loaded.config.state_dir.clone();
    let made = spawn_blocking(move || {
        files::private_directory(&state_dir)?;
        files::private_directory(&state_dir.join("locks"))?;
        Ok::<_, FileError>(AuditLog::of(&state_dir))
    });
    match made.await {
        Ok(Ok(log)) => Ok(log),
        Ok(Err(error)) => Err(SetupError::Unwritten(format!(
            "the state directory cannot be used: {error}; check its permissions and try again"
        ))),
        Err(_) => Err(SetupError::Unwritten("the audit log could not be made".to_owned())),
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn judge_password(answers: &SetupAnswers) -> BTreeMap<&'static str, String> {
    let mut wrong = BTreeMap::new();
    let password = &answers.password;
    if password.is_empty() {
        wrong.insert("password", "is required".to_owned());
    } else if password.chars().count() < SHORTEST_PASSWORD {
        wrong.insert("password", format!("must have at least {SHORTEST_PASSWORD} characters"));
    } else if password.len() > LONGEST_PASSWORD {
        wrong.insert("password", format!("must have at most {LONGEST_PASSWORD} bytes"));
    }
    if answers.confirm != *password {
        wrong.insert("confirm", "Passwords don't match".to_owned());
    }
    wrong
}

/// The file to be.
struct Content<'t> {
    projects_root: &'t str,
    host: Option<&'t str>,
    port: Option<u16>,
    hash: &'t str,
    origin: Option<String>,
}

impl Content<'_> {
    /// Names of the keys that are written, sorted.
    fn keys(&self) -> Vec<&'static str> {
        let optional = [
            ("auth.allowed_origins", self.origin.is_some()),
            ("host", self.host.is_some()),
            ("port", self.port.is_some()),
        ];
        let written = optional.into_iter().filter_map(|(key, is_there)| is_there.then_some(key));
        let mut keys: Vec<&str> =
            OWN_KEYS.into_iter().chain(["projects_root"]).chain(written).collect();
        keys.sort_unstable();
        keys
    }

    fn to_yaml(&self) -> String {
        // A JSON string is a YAML string, whatever stands in it.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut yaml = format!("projects_root: {}\n", quoted(self.projects_root));
        // Writing to a string cannot fail.
        if let Some(host) = self.host {
            let _ = writeln!(yaml, "host: {}", quoted(host));
        }
        if let Some(port) = self.port {
            let _ = writeln!(yaml, "port: {port}");
        }
        yaml.push_str("auth:\n  enabled: true\n  password_required: true\n");
        let _ = writeln!(yaml, "  password_hash: {}", quoted(self.hash));
        if let Some(origin) = &self.origin {
            let _ = writeln!(yaml, "  allowed_origins:\n    - {}", quoted(origin));
        }
        yaml
    }
}
