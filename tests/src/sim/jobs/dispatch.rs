//! `--bg`: makes the record of a new job and hands it to the background service.

use std::env;
use std::io;

use serde_json::{Value, json};

use super::control::{self, Answer, Dispatch, Request};
use super::record::{Record, Seed};
use crate::sim::console::{hang, print, say};
use crate::sim::double::Double;
use crate::sim::failure::Failure;
use crate::sim::ids::Draw;
use crate::sim::knobs::{PREFIX, START_NUMBER};
use crate::sim::trust;
use crate::sim::values::Bg;

/// Flags that take a value, in the order a job's record lists them (agent 2.1.197).
const VALUED: [&str; 3] = ["--name", "--permission-mode", "--model"];

/// Puts the job on the remote service, with or without a name.
const DOOR: [&str; 2] = ["--rc", "--remote-control"];

/// The words of a dispatch.
#[derive(Debug, Default)]
struct Words {
    resume: Option<String>,
    /// `--rc` with or without a name, first; then [`VALUED`] in their order.
    flags: Vec<String>,
    name: Option<String>,
    prompt: String,
    /// Anything else: the session complains, not the dispatch (agent 2.1.197).
    unknown: Vec<String>,
}

/// Runs `--bg …`.
pub(crate) fn run(double: &Double) -> Result<u8, Failure> {
    let words = Words::parse(double.args.get(1..).unwrap_or_default())?;
    if double.profile.jobs_need_trust()
        && !trust::is_trusted(&double.home.config()?, &double.cwd, double.profile)
    {
        return Err(Failure::agent(format!(
            "Workspace not trusted. Run `claude` in {} once and accept the trust prompt, then \
             retry.",
            double.cwd.display()
        )));
    }
    let kind = double.knobs.bg;
    if kind == Bg::Rc1 {
        return Err(Failure::agent(
            "Error: could not reach the background service (connect ECONNREFUSED)",
        ));
    }
    let (session, record) = words
        .create(double)
        .map_err(|e| Failure::agent(format!("Error: cannot write the session's state: {e}")))?;
    if kind == Bg::AckThenLost {
        let _ = record.remove(); // nothing is left of it, which is the point
    } else {
        control::ensure(double, "claude --bg")?;
        let request = Request::Dispatch(Box::new(words.dispatch(double, &session)));
        match control::ask(&double.home, &request) {
            Some(Answer::Done) => {}
            Some(Answer::Refused(text)) => return Err(Failure::agent(text)),
            Some(Answer::Status(_)) | None => {
                return Err(Failure::agent("Error: the background service did not answer"));
            }
        }
    }
    if kind == Bg::Hang {
        hang();
    }
    acknowledge(double, &words, &session);
    Ok(0)
}

fn acknowledge(double: &Double, words: &Words, session: &str) {
    let id = session.get(..8).unwrap_or_default();
    let name = words.name.as_ref().map(|name| format!(" · {name}")).unwrap_or_default();
    let idle = if words.prompt.is_empty() { " (idle — send a prompt to start)" } else { "" };
    let first = match double.knobs.bg {
        Bg::NoId => "backgrounded\n".to_owned(),
        Bg::Reworded => format!("Session {id} now runs in the background{idle}\n"),
        _ if double.profile.is_future() => {
            format!("Session {id} now runs in the background{idle}\n")
        }
        _ => format!("backgrounded · {id}{name}{idle}\n"),
    };
    print(&first);
    if double.knobs.bg == Bg::NoId {
        return;
    }
    print(&format!(
        "  claude agents             list sessions\n  claude attach {id}    open in this \
         terminal\n  claude logs {id}      show recent output\n  claude stop {id}      stop this \
         session\n"
    ));
    if double.profile.is_future() {
        say("Background sessions sync to your other devices.\n");
    }
}

impl Words {
    /// The record of the first session id nobody else has taken.
    fn create(&self, double: &Double) -> io::Result<(String, Record)> {
        let dir = double.cwd.file_name().map(|n| n.to_string_lossy().into_owned());
        let mut draw = Draw::new(double.knobs.seed, &["job", &dir.unwrap_or_default()]);
        // Agent 2.1.197: the record says that there is a door, not what it is called.
        let mut respawn_flags = self.flags.clone();
        let door = self.flags.first().is_some_and(|flag| DOOR.contains(&flag.as_str()));
        if door && respawn_flags.get(1).is_some_and(|next| !next.starts_with('-')) {
            respawn_flags.remove(1);
        }
        loop {
            let session = draw.uuid();
            let seed = Seed {
                session: &session,
                cwd: &double.cwd,
                prompt: &self.prompt,
                name: self.name.as_deref(),
                respawn_flags: &respawn_flags,
            };
            match Record::create(&double.home, &seed) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|record| (session, record)),
            }
        }
    }

    fn parse(args: &[String]) -> Result<Self, Failure> {
        let mut words = Self::default();
        let mut valued: Vec<(usize, [String; 2])> = Vec::new();
        let mut rest = args.iter().peekable();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "--" => {
                    words.prompt = rest.cloned().collect::<Vec<_>>().join(" ");
                    break;
                }
                "--bg" | "--background" => {}
                "--resume" | "-r" => {
                    words.resume = Some(rest.next().cloned().ok_or_else(|| missing(word))?);
                }
                flag if DOOR.contains(&flag) => {
                    words.flags.insert(0, word.clone());
                    if let Some(name) = rest.next_if(|next| !next.starts_with('-')) {
                        words.flags.insert(1, name.clone());
                    }
                }
                flag if VALUED.contains(&flag) => {
                    let value = rest.next().cloned().ok_or_else(|| missing(word))?;
                    if flag == "--name" {
                        words.name = Some(value.clone());
                    }
                    let place = VALUED.iter().position(|known| *known == flag).unwrap_or(0);
                    valued.push((place, [flag.to_owned(), value]));
                }
                flag if flag.starts_with('-') => words.unknown.push(word.clone()),
                prompt => words.prompt = prompt.to_owned(),
            }
        }
        valued.sort_by_key(|(place, _)| *place);
        words.flags.extend(valued.into_iter().flat_map(|(_, pair)| pair));
        Ok(words)
    }

    fn dispatch(&self, double: &Double, session: &str) -> Dispatch {
        let mut tail: Vec<String> = self.flags.iter().chain(&self.unknown).cloned().collect();
        if !self.prompt.is_empty() {
            tail.extend(["--".to_owned(), self.prompt.clone()]);
        }
        let own = ["--session-id".to_owned(), session.to_owned()];
        let (launch, args) = match &self.resume {
            Some(old) => {
                let resume = ["--resume".to_owned(), old.clone(), "--fork-session".to_owned()];
                (
                    json!({ "mode": "resume", "sessionId": old, "fork": true, "flagArgs": tail }),
                    own.into_iter().chain(resume).chain(tail).collect(),
                )
            }
            None => {
                let args: Vec<String> = own.into_iter().chain(tail).collect();
                (json!({ "mode": "prompt", "args": args }), args)
            }
        };
        Dispatch {
            id: session.get(..8).unwrap_or_default().to_owned(),
            session: session.to_owned(),
            cwd: double.cwd.clone(),
            launch,
            respawn_flags: self.flags.clone(),
            intent: self.prompt.clone(),
            args,
            env: knob_variables(double),
        }
    }
}

/// The caller's knobs, for a session started by a service with another environment.
fn knob_variables(double: &Double) -> Vec<(String, String)> {
    let own = env::vars().filter(|(name, _)| name.starts_with(PREFIX) && name != START_NUMBER);
    let number = double.knobs.start_number.map(|n| (START_NUMBER.to_owned(), n.to_string()));
    own.chain(number).collect()
}

fn missing(word: &str) -> Failure {
    Failure::agent(format!("error: option '{word}' argument missing"))
}

/// Fields of a roster entry that come from the dispatch.
pub(super) fn roster_fields(dispatch: &Dispatch, home: &std::path::Path) -> Value {
    json!({
        "proto": 1, "short": dispatch.id, "nonce": "5e5e5e5e", "sessionId": dispatch.session,
        "createdAt": crate::sim::calls::now_ms(), "source": "shell", "cwd": dispatch.cwd,
        "launch": dispatch.launch, "env": { "CLAUDE_CONFIG_DIR": home }, "isolation": "none",
        "respawnFlags": dispatch.respawn_flags, "seed": { "intent": dispatch.intent },
    })
}
