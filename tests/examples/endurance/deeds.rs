//! One deed, done by a client or by a command, and what came of it.

use crate::harness::{Client, World};
use crate::plan::{By, Deed, What, is_session};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// What a deed came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was done, to this record.
    Done(String),
    /// It was done, and the record is gone.
    Gone,
    /// It was said that it is not done, and why.
    Refused(String),
    /// Nobody answered: the service or the command died.
    Silence,
}

/// With what a deed is done.
pub struct Means<'a> {
    pub world: &'a World,
    pub project: String,
    pub client: Client,
    /// More environment of commands.
    pub env: Vec<(&'static str, String)>,
    /// Commands are killed after this time.
    pub cut: Option<Duration>,
    /// The newest known record of the project. Stop, resume and forget use it.
    pub newest: Option<String>,
}

/// Does it. Panics when the answer is one that nobody may get.
pub async fn perform(deed: Deed, means: Means<'_>) -> Outcome {
    let act = async |what| match deed.by {
        By::Http => by_http(Deed { what, ..deed }, &means).await,
        By::Command => by_command(Deed { what, ..deed }, &means).await,
    };
    // A start is another session each time: one that is there is resumed instead.
    let goes_on = is_session(&means.project) && means.newest.is_some();
    if deed.what == What::Start && goes_on {
        return act(What::Resume).await;
    }
    if deed.what == What::Restart {
        act(What::Stop).await;
        return act(What::Resume).await;
    }
    act(deed.what).await
}

async fn by_http(deed: Deed, means: &Means<'_>) -> Outcome {
    let name = means.project.as_str();
    let client = &means.client;
    let reference = means.newest.as_deref().unwrap_or(name);
    let wait = if deed.waits { "" } else { "?wait=0" };
    let request = match deed.what {
        What::Start => client
            .request(Method::POST, &format!("/api/v1/instances{wait}"))
            .json(&json!({ "project": name, "mode": mode(name) })),
        What::Resume | What::Restart => {
            client.request(Method::POST, &format!("/api/v1/instances/{reference}/resume"))
        }
        What::Stop => client.request(Method::DELETE, &format!("/api/v1/instances/{reference}")),
        What::Forget => client.request(Method::POST, &format!("/api/instances/{reference}/forget")),
    };
    let Ok(reply) = client.try_send(request).await else { return Outcome::Silence };
    assert!(
        reply.status < 500 || [503, 507].contains(&reply.status),
        "{deed:?} was answered {}: {}",
        reply.status,
        reply.text()
    );
    if !(200..300).contains(&reply.status) {
        return Outcome::Refused(reply.json()["code"].as_str().unwrap_or("no code").to_owned());
    }
    named(deed, &reply.json())
}

async fn by_command(deed: Deed, means: &Means<'_>) -> Outcome {
    let name = means.project.as_str();
    let reference = means.newest.as_deref().unwrap_or(name);
    let args: Vec<&str> = match deed.what {
        What::Start if deed.waits => vec!["start", name, "--mode", mode(name), "--wait", "--json"],
        What::Start => vec!["start", name, "--mode", mode(name), "--json"],
        What::Resume | What::Restart => vec!["resume", reference, "--json"],
        What::Stop => vec!["stop", reference, "--json"],
        What::Forget => vec!["forget", reference, "--json"],
    };
    let env: Vec<(&str, &str)> =
        means.env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let run = means.world.cli_with(&args, &env);
    let ran = match means.cut {
        // Dropped, it is killed.
        Some(time) => match tokio::time::timeout(time, run).await {
            Ok(ran) => ran,
            Err(_) => return Outcome::Silence,
        },
        None => run.await,
    };
    assert!(!ran.stderr.contains("panicked"), "{args:?}: {}", ran.stderr);
    match (ran.code, serde_json::from_str(&ran.stdout)) {
        (None, _) => Outcome::Silence,
        (Some(0), Ok(answer)) => named(deed, &answer),
        (Some(code), _) => Outcome::Refused(format!("exit code {code}")),
    }
}

/// What is launched in a project.
fn mode(project: &str) -> &'static str {
    if is_session(project) { "pty" } else { "standard" }
}

fn named(deed: Deed, answer: &Value) -> Outcome {
    let one = answer.as_array().and_then(|all| all.first()).unwrap_or(answer);
    let id = [&one["instance_id"], &one["id"]].into_iter().find_map(Value::as_str);
    match (deed.what, id) {
        (What::Forget, _) => Outcome::Gone,
        (_, Some(id)) => Outcome::Done(id.to_owned()),
        (_, None) => panic!("{deed:?} was answered without a record: {answer}"),
    }
}
