//! The remote service: environments and sessions in one file per agent home.
//!
//! All simulators of that home share it. The `remote` command plays the user's other devices.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::console::print;
use super::failure::Failure;
use super::home::AgentHome;
use super::ids::Draw;
use super::{files, process, signals};

const USAGE: &str = "usage: svc-agent-sim remote connect SESSION|ENVIRONMENT|DIRECTORY \
                     [COUNT], or remote archive|delete|end SESSION, or remote show";

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    environments: BTreeMap<String, Environment>,
    sessions: BTreeMap<String, Session>,
    /// How many identifiers of a kind were given out for a directory name.
    counters: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Environment {
    dir: PathBuf,
    alive: bool,
    serving: Option<Serving>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Serving {
    pid: u32,
    start: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Session {
    environment: String,
    title: String,
    state: SessionState,
    /// A device connected and no bridge has taken the work yet.
    pending: bool,
    /// The conversation of an interactive session, which has no environment.
    #[serde(default)]
    conversation: Option<String>,
    #[serde(default)]
    serving: Option<Serving>,
}

/// Life of a session on the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionState {
    Active,
    /// Ended in the ordinary way.
    Ended,
    Archived,
    Deleted,
}

/// The answer to a registration.
#[derive(Debug)]
pub(crate) enum Registration {
    Served {
        environment: String,
    },
    /// HTTP 409: the directory has an environment and it was not offered for reuse.
    Conflict,
}

/// Whether a directory may have a second environment (a profile's difference).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exclusive {
    Yes,
    No,
}

/// The service as the doubles of one agent home see it.
#[derive(Debug)]
pub(crate) struct Server {
    file: PathBuf,
    seed: u64,
}

impl Server {
    pub(crate) fn new(home: &AgentHome, seed: u64) -> Self {
        Self { file: home.mark().join("remote.json"), seed }
    }

    /// Registers the caller for `dir`, in the offered environment if it exists.
    pub(crate) fn register(
        &self,
        dir: &Path,
        offered: Option<&str>,
        exclusive: Exclusive,
    ) -> Result<Registration, Failure> {
        self.change(|state| {
            let serving = Some(Serving { pid: std::process::id(), start: process::own_start() });
            let known = offered.filter(|id| state.environments.get(*id).is_some_and(|e| e.alive));
            let environment = match known {
                Some(id) => id.to_owned(),
                None if exclusive == Exclusive::Yes
                    && state.environments.values().any(|e| e.alive && e.dir == dir) =>
                {
                    return Registration::Conflict;
                }
                None => self.draw(state, "env", dir).id("env_"),
            };
            let entry = Environment { dir: dir.to_owned(), alive: true, serving };
            state.environments.insert(environment.clone(), entry);
            Registration::Served { environment }
        })
    }

    /// Gives up serving; the environment stays for a later bridge if `keep`.
    pub(crate) fn release(&self, environment: &str, keep: bool) -> Result<(), Failure> {
        self.change(|state| {
            if let Some(entry) = state.environments.get_mut(environment) {
                entry.serving = None;
                entry.alive = keep;
            }
            if !keep {
                let of_it = |session: &&mut Session| session.environment == environment;
                for session in state.sessions.values_mut().filter(of_it) {
                    session.state = SessionState::Archived;
                }
            }
        })
    }

    /// Makes a session and returns its id.
    pub(crate) fn create_session(&self, environment: &str, title: &str) -> Result<String, Failure> {
        self.change(|state| self.add_session(state, environment, title))
    }

    fn add_session(&self, state: &mut State, environment: &str, title: &str) -> String {
        let dir = state.environments.get(environment).map(|e| e.dir.clone()).unwrap_or_default();
        let id = self.draw(state, "session", &dir).id("session_");
        let session = Session {
            environment: environment.to_owned(),
            title: title.to_owned(),
            state: SessionState::Active,
            pending: false,
            conversation: None,
            serving: None,
        };
        state.sessions.insert(id.clone(), session);
        id
    }

    /// Puts a background job on the service: the session a device reaches it by.
    pub(crate) fn open_door(&self, dir: &Path, title: &str) -> Result<String, Failure> {
        self.change(|state| {
            let id = self.draw(state, "door", dir).id("cse_");
            let session = Session {
                environment: String::new(),
                title: title.to_owned(),
                state: SessionState::Active,
                pending: false,
                conversation: None,
                serving: None,
            };
            state.sessions.insert(id.clone(), session);
            id
        })
    }

    /// Attaches the caller to the session of a conversation, or to a new one.
    /// True if the session was there before.
    pub(crate) fn attach(
        &self,
        dir: &Path,
        title: &str,
        conversation: &str,
    ) -> Result<(String, bool), Failure> {
        self.change(|state| {
            let serving = Some(Serving { pid: std::process::id(), start: process::own_start() });
            let known = state.sessions.iter_mut().find(|(_, session)| {
                session.conversation.as_deref() == Some(conversation)
                    && session.state != SessionState::Deleted
            });
            if let Some((id, session)) = known {
                session.state = SessionState::Active;
                session.serving = serving;
                return (id.clone(), true);
            }
            let id = self.draw(state, "session", dir).id("session_");
            let session = Session {
                environment: String::new(),
                title: title.to_owned(),
                state: SessionState::Active,
                pending: false,
                conversation: Some(conversation.to_owned()),
                serving,
            };
            state.sessions.insert(id.clone(), session);
            (id, false)
        })
    }

    /// State of a session; `None` if the service never knew it.
    pub(crate) fn session_state(&self, session: &str) -> Result<Option<SessionState>, Failure> {
        self.change(|state| state.sessions.get(session).map(|s| s.state))
    }

    pub(crate) fn set_session_state(&self, id: &str, to: SessionState) -> Result<(), Failure> {
        self.change(|state| {
            if let Some(session) = state.sessions.get_mut(id) {
                session.state = to;
            }
        })
    }

    /// Takes the sessions a device wants served by this environment.
    pub(crate) fn take_work(&self, environment: &str) -> Result<Vec<String>, Failure> {
        self.change(|state| {
            let waiting = |(id, session): (&String, &mut Session)| {
                let wanted = session.pending
                    && session.environment == environment
                    && session.state == SessionState::Active;
                wanted.then(|| {
                    session.pending = false;
                    id.clone()
                })
            };
            state.sessions.iter_mut().filter_map(waiting).collect()
        })
    }

    /// A new stream per identifier; the count makes equal directory names differ.
    fn draw(&self, state: &mut State, kind: &str, dir: &Path) -> Draw {
        let name = dir.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let count = state.counters.entry(format!("{kind} {name}")).or_default();
        *count += 1;
        Draw::new(self.seed, &[kind, &name, &count.to_string()])
    }

    fn change<T>(&self, act: impl FnOnce(&mut State) -> T) -> Result<T, Failure> {
        let run = || -> io::Result<T> {
            let _lock = files::lock_beside(&self.file)?;
            let mut state = match fs::read(&self.file) {
                Ok(bytes) => serde_json::from_slice(&bytes)?,
                Err(e) if e.kind() == io::ErrorKind::NotFound => State::default(),
                Err(e) => return Err(e),
            };
            let result = act(&mut state);
            files::replace(&self.file, &serde_json::to_vec_pretty(&state)?)?;
            Ok(result)
        };
        run().map_err(|e| Failure::refused(format!("cannot update {}: {e}", self.file.display())))
    }
}

/// `svc-agent-sim remote …`: acts as another device of the user.
pub(crate) fn command(args: &[String]) -> Result<u8, Failure> {
    let home = AgentHome::from_env()?;
    home.require_mark()?;
    let seed = env::var("AGENT_SIM_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let server = Server::new(&home, seed);
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (session, serving) = match words.as_slice() {
        ["show"] => {
            let text = server.change(|state| serde_json::to_string_pretty(state))?;
            let text = text.map_err(|e| Failure::refused(e.to_string()))?;
            print(&format!("{text}\n"));
            return Ok(0);
        }
        ["connect", target] => server.connect(target)?,
        ["connect", target, count] => {
            let count: u32 = count.parse().map_err(|_| Failure::refused(USAGE))?;
            for _ in 1..count {
                print(&format!("{}\n", server.connect(target)?.0));
            }
            server.connect(target)?
        }
        ["end", session] => server.finish(session, SessionState::Ended)?,
        ["archive", session] => server.finish(session, SessionState::Archived)?,
        ["delete", session] => server.finish(session, SessionState::Deleted)?,
        _ => return Err(Failure::refused(USAGE)),
    };
    // The bridge looks at the file again when told to; without a bridge the change waits.
    let live = serving.filter(|s| process::is_same(s.pid, s.start.as_deref()));
    if let Some(bridge) = &live {
        signals::send(bridge.pid, Signal::USR1);
    }
    let served = if live.is_some() { "" } else { " (no bridge serves it now)" };
    print(&format!("{session}{served}\n"));
    Ok(0)
}

type Changed = (String, Option<Serving>);

impl Server {
    fn connect(&self, target: &str) -> Result<Changed, Failure> {
        let path = fs::canonicalize(target).unwrap_or_else(|_| PathBuf::from(target));
        let found = self.change(|state| {
            let session = if state.sessions.contains_key(target) {
                target.to_owned()
            } else {
                let environment = state
                    .environments
                    .iter()
                    .find(|(id, e)| e.alive && (*id == target || e.dir == path))
                    .map(|(id, _)| id.clone())?;
                self.add_session(state, &environment, "Connected session")
            };
            let entry = state.sessions.get_mut(&session)?;
            entry.pending = true;
            entry.state = SessionState::Active;
            let own = entry.serving.clone();
            let environment = entry.environment.clone();
            Some((session, own.or_else(|| state.serving(&environment))))
        })?;
        found.ok_or_else(|| unknown(target))
    }

    fn finish(&self, session: &str, to: SessionState) -> Result<Changed, Failure> {
        let found = self.change(|state| {
            let entry = state.sessions.get_mut(session)?;
            entry.state = to;
            entry.pending = false;
            let own = entry.serving.clone();
            let environment = entry.environment.clone();
            Some((session.to_owned(), own.or_else(|| state.serving(&environment))))
        })?;
        found.ok_or_else(|| unknown(session))
    }
}

impl State {
    fn serving(&self, environment: &str) -> Option<Serving> {
        self.environments.get(environment)?.serving.clone()
    }
}

fn unknown(target: &str) -> Failure {
    Failure::refused(format!(
        "the simulated service knows no {target}; list what it knows with `remote show`"
    ))
}
