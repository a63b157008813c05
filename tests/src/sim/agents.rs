//! `agents --json`: live entries of the registry, and jobs.
//!
//! Knob `agents_output` can replace the answer.

use std::fs;

use serde_json::{Map, Value, json};

use super::console::{hang, pause, print, say};
use super::double::Double;
use super::failure::Failure;
use super::values::AgentsOutput;
use super::{jobs, registry};

/// Fields of a listed session, in the agent's order.
const FIELDS: [&str; 7] = ["pid", "cwd", "kind", "startedAt", "sessionId", "name", "status"];

/// Prints the list. `--all` adds ended background sessions.
pub(crate) fn list(double: &Double) -> Result<u8, Failure> {
    let options = Options::parse(double.args.get(1..).unwrap_or_default())?;
    double.home.repair_config()?;
    if !options.json {
        return Err(Failure::agent(
            "claude agents requires an interactive terminal (stdout is not a TTY) — use \
             'claude agents --json' for a machine-readable listing",
        ));
    }
    pause(double.knobs.agents_ms);
    if let Some(path) = &double.knobs.agents_file {
        let text = fs::read_to_string(path).map_err(|e| {
            Failure::refused(format!("knob agents_file: cannot read {}: {e}", path.display()))
        })?;
        print(&text);
        return Ok(0);
    }
    let listed = || -> Vec<Value> {
        let live = registry::live(double);
        let jobs = jobs::list::items(double, &live, options.all);
        let interactive = live.iter().filter(|entry| !entry.contains_key("jobId"));
        let mut all: Vec<Map<String, Value>> =
            interactive.map(|entry| item(double, entry)).chain(jobs).collect();
        all.retain(|entry| {
            options.cwd.as_deref().is_none_or(|cwd| entry.get("cwd") == Some(&json!(cwd)))
        });
        all.sort_by_key(|entry| entry.get("startedAt").and_then(Value::as_u64));
        all.into_iter().map(Value::Object).collect()
    };
    match double.knobs.agents_output {
        AgentsOutput::Ok => print(&format!("{:#}\n", Value::Array(listed()))),
        AgentsOutput::Empty => {}
        AgentsOutput::Garbage => print("[{\"pid\": 12, \"cwd\": \n<html>502</html>\n"),
        AgentsOutput::Object => print(&format!("{:#}\n", json!({ "agents": listed() }))),
        AgentsOutput::Huge => print_huge(),
        AgentsOutput::MissingFields => {
            print(&format!("{:#}\n", Value::Array(incomplete(listed()))))
        }
        AgentsOutput::Rc1 => {
            say("Error: could not list sessions\n");
            return Ok(1);
        }
        AgentsOutput::Hang => hang(),
    }
    Ok(0)
}

struct Options {
    json: bool,
    /// Jobs that ended, too.
    all: bool,
    cwd: Option<String>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, Failure> {
        let mut options = Self { json: false, all: false, cwd: None };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            match arg.as_str() {
                "--json" => options.json = true,
                "--all" => options.all = true,
                "--cwd" => {
                    let value = rest.next().ok_or_else(|| {
                        Failure::agent("error: option '--cwd <path>' argument missing")
                    })?;
                    options.cwd = Some(value.clone());
                }
                odd => return Err(Failure::agent(format!("error: unknown option '{odd}'"))),
            }
        }
        Ok(options)
    }
}

fn item(double: &Double, entry: &Map<String, Value>) -> Map<String, Value> {
    let mut item: Map<String, Value> = FIELDS
        .into_iter()
        .filter(|field| *field != "status" || double.profile.has_registry())
        .filter_map(|field| Some((field.to_owned(), entry.get(field)?.clone())))
        .collect();
    if let Some(waiting) = entry.get("waitingFor") {
        item.insert("waitingFor".into(), waiting.clone());
    }
    if double.profile.is_future() {
        item.insert("presence".into(), json!({ "focus": "unknown" }));
    }
    item
}

/// Each item lacks a field the reader needs, and one item is no object at all.
fn incomplete(items: Vec<Value>) -> Vec<Value> {
    let needed = ["cwd", "startedAt", "sessionId", "pid"];
    let strip = |(mut item, field): (Value, &&str)| {
        if let Value::Object(fields) = &mut item {
            fields.remove(*field);
        }
        item
    };
    let mut left: Vec<Value> = items.into_iter().zip(needed.iter().cycle()).map(strip).collect();
    left.push(json!("not an object"));
    left
}

/// A valid list of about 20 MB.
fn print_huge() {
    let padding = "x".repeat(1000);
    print("[");
    for n in 0..20_000 {
        let item = json!({
            "pid": null, "cwd": format!("/nowhere/{n}"), "kind": "background", "startedAt": n,
            "sessionId": "00000000-0000-4000-8000-000000000000", "name": padding,
            "state": "done", "id": "00000000",
        });
        let comma = if n == 0 { "" } else { "," };
        print(&format!("{comma}{item}\n"));
    }
    print("]\n");
}
