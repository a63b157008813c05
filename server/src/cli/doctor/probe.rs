//! `svc doctor --probe`: the service as its clients reach it, through every proxy.
//!
//! Nothing is changed: every request is a GET, or is sent where no route is. What arrived at the
//! service is told by `/api/probe`, which only the operator of this installation may read.

mod verdicts;

use crate::ask::{Answer, Ask, Target};
use crate::compose::{Surroundings, now};
use hyper::Method;
use std::time::Duration;
use svc_app::auth::{PROBE_HEADER, probe_pass};
use svc_app::doctor::failed;
use svc_app::refs::session_secret;
use svc_process::run_lock::RunLock;
use svc_shared::internal::Check;
use svc_shared::internal::probe::ProbeSeen;

/// For all requests together.
const PATIENCE: Duration = Duration::from_secs(27);
/// A page of this origin is nobody's.
const FOREIGN: &str = "https://svc-probe.invalid";
/// A user whom no proxy names.
const NOBODY: &str = "svc-probe-nobody";

/// Everything that was seen; what a request failed with where it failed.
pub(crate) struct Observed {
    /// What arrived of an ordinary request, with its answer.
    pub(crate) plain: Result<(Answer, Option<ProbeSeen>), String>,
    /// The number of that request.
    pub(crate) nonce: String,
    /// The same twice more, answered without a cookie: number, and what arrived.
    pub(crate) again: [(String, Option<ProbeSeen>); 2],
    /// What arrived of a request for a socket.
    pub(crate) socket: Option<ProbeSeen>,
    /// The answer to a request for a socket from a foreign page.
    pub(crate) foreign_socket: Option<Answer>,
    /// The answer to a write from our own page.
    pub(crate) own_write: Option<Answer>,
    /// The answer to a write from a foreign page.
    pub(crate) foreign_write: Option<Answer>,
    /// The answer to a stranger who asks for the projects.
    pub(crate) stranger: Option<Answer>,
    /// The answer to a stranger who asks for the figures.
    pub(crate) metrics: Option<Answer>,
}

/// The checks of an address, or of the one that browsers are told of.
pub(crate) async fn checks(around: &Surroundings, url: Option<&str>) -> Vec<Check> {
    let secret = session_secret(
        &around.config.state_dir,
        around
            .config
            .session_secret
            .as_ref()
            .map(|secret| ("SVC_SESSION_SECRET", secret.expose().as_bytes().to_vec())),
        false,
    );
    let Ok(Some(secret)) = secret else {
        return vec![failed(
            "probe",
            "this installation has no session.secret that can be read, so the service cannot know \
             that it is asked by its operator",
            "start the service, and run this as its user",
        )];
    };
    let url = url.map(ToOwned::to_owned).or_else(|| address(around));
    let Some(url) = url else {
        return vec![failed(
            "probe",
            "the service does not run, and no address was given",
            "start it, or give its public address: svc doctor --probe https://svc.example.org/",
        )];
    };
    let target = match Target::parse(&url) {
        Ok(target) => target,
        Err(words) => return vec![failed("probe", words, "correct the address")],
    };
    match tokio::time::timeout(PATIENCE, Box::pin(observe(around, &target, &secret))).await {
        Ok(observed) => verdicts::all(&around.config, &target, &observed, now()),
        Err(_) => vec![failed(
            "probe",
            format!("{} answers too slowly to be examined", target.authority),
            "look at the proxy in front of svc, and at the load of this machine",
        )],
    }
}

/// The first address that browsers are told of, else that of the running service.
fn address(around: &Surroundings) -> Option<String> {
    let config = &around.config;
    let public = config.auth.allowed_origins.iter().find(|origin| origin.contains("://"));
    match public {
        Some(origin) => Some(format!("{origin}{}/", config.root_path)),
        None => RunLock::read(&config.state_dir).ok().flatten()?.address,
    }
}

async fn observe(around: &Surroundings, target: &Target, secret: &[u8]) -> Observed {
    let user_header = around.config.auth.reverse_proxy.user_header.to_ascii_lowercase();
    let own = target.origin();
    let signed = || probe_pass(secret, now()).unwrap_or_default();
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let get = |path, headers| Ask { method: Method::GET, path, headers };
    let socket = |origin: &str| {
        vec![
            header("connection", "Upgrade"),
            header("upgrade", "websocket"),
            header("sec-websocket-version", "13"),
            header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
            header("origin", origin),
        ]
    };
    let (pass, nonce) = signed();
    let headers =
        vec![header(PROBE_HEADER, &pass), header("origin", &own), header(&user_header, NOBODY)];
    let plain = get("/api/probe", headers);
    // Many caches keep no answer that sets a cookie.
    let (pass, second) = signed();
    let bare = get("/api/probe?cookie=false", vec![header(PROBE_HEADER, &pass)]);
    let (pass, third) = signed();
    let again = get("/api/probe?cookie=false", vec![header(PROBE_HEADER, &pass)]);
    let (pass, _) = signed();
    let mut for_socket = socket(&own);
    for_socket.push(header(PROBE_HEADER, &pass));
    let for_socket = get("/ws/probe", for_socket);
    let foreign_socket = get("/ws/events", socket(FOREIGN));
    // No route is there: whoever passes every guard is told so, and nothing happens.
    let write = |origin: &str| Ask {
        method: Method::POST,
        path: "/api/probe/none",
        headers: vec![header("origin", origin)],
    };
    let (own_write, foreign_write) = (write(&own), write(FOREIGN));
    let (stranger, metrics) = (get("/api/projects", Vec::new()), get("/metrics", Vec::new()));

    let first = target.ask(&plain).await;
    if first.is_err() {
        // The others would only wait as long for the same.
        return Observed::unreached(nonce, first);
    }
    // Kept before the next one asks for the same.
    let bare = target.ask(&bare).await;
    let (again, socket, foreign_socket, own_write, foreign_write, stranger, metrics) = tokio::join!(
        target.ask(&again),
        target.ask(&for_socket),
        target.ask(&foreign_socket),
        target.ask(&own_write),
        target.ask(&foreign_write),
        target.ask(&stranger),
        target.ask(&metrics),
    );
    Observed {
        plain: first.map(|answer| {
            let seen = read(&answer);
            (answer, seen)
        }),
        nonce,
        again: [
            (second, bare.ok().as_ref().and_then(read)),
            (third, again.ok().as_ref().and_then(read)),
        ],
        socket: socket.ok().as_ref().and_then(read),
        foreign_socket: foreign_socket.ok(),
        own_write: own_write.ok(),
        foreign_write: foreign_write.ok(),
        stranger: stranger.ok(),
        metrics: metrics.ok(),
    }
}

impl Observed {
    fn unreached(nonce: String, first: Result<Answer, String>) -> Self {
        Self {
            plain: first.map(|answer| (answer, None)),
            nonce,
            again: [(String::new(), None), (String::new(), None)],
            socket: None,
            foreign_socket: None,
            own_write: None,
            foreign_write: None,
            stranger: None,
            metrics: None,
        }
    }
}

fn read(answer: &Answer) -> Option<ProbeSeen> {
    serde_json::from_slice(&answer.body).ok()
}
