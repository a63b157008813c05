//! What each method does.

use super::connection::Connection;
use super::process::{End, Order};
use crate::protocol::{PROTOCOL, REPLAY_BYTES, Reattached, RpcError, Spawned, code, is_process_id};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use svc_ports::process::Signal;

const METHODS: [&str; 11] = [
    "server.ping",
    "server.capabilities",
    "server.shutdown",
    "process.spawn",
    "process.stdin",
    "process.kill",
    "process.killAndWait",
    "process.list",
    "process.reattach",
    "process.detach",
    "process.forget",
];

/// Longest wait of `process.killAndWait`.
const LONGEST_WAIT: u64 = 60_000;

type Result<T> = std::result::Result<T, RpcError>;

/// How a request is answered.
pub(super) enum Outcome {
    /// With this.
    Now(Result<Value>),
    /// When this is done.
    Later(Pin<Box<dyn Future<Output = Result<Value>> + Send>>),
    /// After the frames that are kept.
    Stream { process: String, from: u64 },
    /// With this; the frames follow.
    Spawned { process: String, result: Value },
    /// By the end of the connection.
    Close,
}

fn invalid(message: impl Into<String>) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message)
}

fn text<'a>(params: &'a Value, name: &str) -> Result<&'a str> {
    params.get(name).and_then(Value::as_str).ok_or_else(|| invalid(format!("`{name}` is missing")))
}

pub(super) fn call(connection: &Arc<Connection>, method: &str, params: &Value) -> Outcome {
    let daemon = &connection.daemon;
    let table = &daemon.table;
    match method {
        "server.ping" => Outcome::Now(Ok(json!({ "pong": true }))),
        "server.capabilities" => Outcome::Now(Ok(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "protocol": PROTOCOL,
            "methods": METHODS,
            "features": ["lag", "orphans", "parts"],
            "pid": daemon.identity.pid.get(),
            "start_ticks": daemon.identity.start_ticks,
            "boot_id": daemon.identity.boot_id.as_str(),
            "started_at": daemon.started_at.as_millis(),
            "replay_bytes": REPLAY_BYTES,
            "children": table.running().len(),
        }))),
        "server.shutdown" => {
            daemon.end(params.get("mode").and_then(Value::as_str) == Some("keep"));
            Outcome::Close
        }
        "process.spawn" => match order(params).and_then(|order| table.spawn(order)) {
            Ok(process) => {
                let spawned = Spawned {
                    pid: i64::from(process.identity.pid.get()),
                    start_time: process.identity.start_ticks,
                    boot_id: process.identity.boot_id.as_str().to_owned(),
                };
                let mut result = serde_json::to_value(spawned).unwrap_or_default();
                if let Some(members) = result.as_object_mut() {
                    members.insert("success".to_owned(), true.into());
                }
                Outcome::Spawned { process: process.id.clone(), result }
            }
            Err(error) => Outcome::Now(Err(error)),
        },
        "process.stdin" => Outcome::Now(stdin(connection, params)),
        "process.kill" => Outcome::Now(kill(connection, params)),
        "process.killAndWait" => kill_and_wait(connection, params),
        "process.list" => Outcome::Now(Ok(table.list())),
        "process.reattach" => match text(params, "id") {
            Err(error) => Outcome::Now(Err(error)),
            Ok(id) => {
                let from = params.get("fromSeq").and_then(Value::as_u64).unwrap_or(0);
                if table.get(id).is_some() {
                    return Outcome::Stream { process: id.to_owned(), from };
                }
                let unknown =
                    Reattached { found: false, running: false, first_seq: 0, last_seq: 0 };
                Outcome::Now(Ok(serde_json::to_value(unknown).unwrap_or_default()))
            }
        },
        "process.detach" => match text(params, "id") {
            Err(error) => Outcome::Now(Err(error)),
            Ok(id) => {
                let detached = connection.detach(id);
                Outcome::Later(Box::pin(async move {
                    detached.await;
                    Ok(json!({ "success": true }))
                }))
            }
        },
        "process.forget" => Outcome::Now(
            text(params, "id").and_then(|id| table.forget(id)).map(|()| json!({ "success": true })),
        ),
        unknown => {
            let name: String = unknown.chars().filter(|c| c.is_ascii_graphic()).take(64).collect();
            let message = format!("Unknown method: {name}");
            Outcome::Now(Err(RpcError::new(code::UNKNOWN_METHOD, message)))
        }
    }
}

fn order(params: &Value) -> Result<Order> {
    let id = text(params, "id")?;
    if !is_process_id(id) {
        return Err(invalid("`id` must be 16 to 64 lower-case letters and digits"));
    }
    let absolute = |name: &str| {
        let path = PathBuf::from(text(params, name)?);
        path.is_absolute()
            .then_some(path)
            .ok_or_else(|| invalid(format!("`{name}` must be absolute")))
    };
    let words = |value: &Value| value.as_str().map(str::to_owned);
    let args = match params.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(args)) => {
            let read: Option<Vec<String>> = args.iter().map(words).collect();
            read.ok_or_else(|| invalid("`args` must be strings"))?
        }
        Some(_) => return Err(invalid("`args` must be a list")),
    };
    let env = match params.get("env") {
        None | Some(Value::Null) => None,
        Some(Value::Object(env)) => {
            let read: Option<BTreeMap<String, String>> =
                env.iter().map(|(name, value)| Some((name.clone(), words(value)?))).collect();
            Some(read.ok_or_else(|| invalid("`env` must be strings"))?)
        }
        Some(_) => return Err(invalid("`env` must be an object")),
    };
    let (command, cwd) = (absolute("command")?, absolute("cwd")?);
    if !Path::new(&cwd).is_dir() {
        return Err(invalid("`cwd` is no directory"));
    }
    Ok(Order { id: id.to_owned(), command, args, cwd, env })
}

fn stdin(connection: &Connection, params: &Value) -> Result<Value> {
    let id = text(params, "id")?;
    let process = connection.daemon.table.get(id).ok_or_else(|| invalid("Process not found"))?;
    let data = match params.get("data").and_then(Value::as_str) {
        None => Vec::new(),
        Some(data) => STANDARD.decode(data).map_err(|_| invalid("`data` is no base64"))?,
    };
    let is = |name: &str| params.get(name).and_then(Value::as_bool).unwrap_or(false);
    let Some(data) = connection.joined(id, data, (!is("continued"), !is("more")))? else {
        return Ok(json!({ "success": true, "queued": 0 }));
    };
    let queued = process.input(data, is("eof"))?;
    Ok(json!({ "success": true, "queued": queued }))
}

fn signal(params: &Value) -> Result<Signal> {
    match params.get("signal").and_then(Value::as_str) {
        Some("INT") => Ok(Signal::Interrupt),
        None | Some("TERM") => Ok(Signal::Terminate),
        Some("KILL") => Ok(Signal::Kill),
        Some(_) => Err(invalid("`signal` must be INT, TERM or KILL")),
    }
}

fn kill(connection: &Connection, params: &Value) -> Result<Value> {
    let (id, signal) = (text(params, "id")?, signal(params)?);
    let Some(process) = connection.daemon.table.get(id) else {
        return Ok(json!({ "success": true, "found": false }));
    };
    connection.daemon.table.signal(&process, signal);
    Ok(json!({ "success": true }))
}

fn kill_and_wait(connection: &Arc<Connection>, params: &Value) -> Outcome {
    let asked = text(params, "id").and_then(|id| Ok((id, signal(params)?)));
    let (id, signal) = match asked {
        Ok(asked) => asked,
        Err(error) => return Outcome::Now(Err(error)),
    };
    let Some(process) = connection.daemon.table.get(id) else {
        return Outcome::Now(Err(invalid("Process not found")));
    };
    let wait = params.get("timeoutMs").and_then(Value::as_u64).unwrap_or(0).min(LONGEST_WAIT);
    let mut ended = process.ended();
    connection.daemon.table.signal(&process, signal);
    Outcome::Later(Box::pin(async move {
        let wait = Duration::from_millis(wait);
        let ended = tokio::time::timeout(wait, ended.wait_for(Option::is_some)).await;
        let end: Option<End> = ended.ok().and_then(|end| end.ok().and_then(|end| *end));
        Ok(json!({
            "exited": end.is_some(),
            "exitCode": end.and_then(|end| end.code),
            "signal": end.and_then(|end| end.signal),
        }))
    }))
}
