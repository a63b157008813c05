//! Registration with the service: environment, first session, pointer.

use std::process::Child;

use super::engine::{Act, Engine};
use super::machine_name;
use crate::sim::console::say;
use crate::sim::debug_log::Level;
use crate::sim::failure::Failure;
use crate::sim::ids::Draw;
use crate::sim::pointer::{self, Found, Target};
use crate::sim::registry::Entry;
use crate::sim::remote::{Exclusive, Registration};
use crate::sim::values::{Fatal, Ready};
use crate::sim::{texts, trust};

impl Engine<'_> {
    pub(super) fn read_pointer(&mut self) {
        match pointer::read(self.double, &self.log) {
            Found::Nothing => {}
            Found::InUse { pid } => {
                self.log.debug(&format!(
                    "[bridge:init] Pointer writer pid {pid} still running; registering a fresh \
                     env and deferring pointer write"
                ));
                self.pointer_in_use = true;
            }
            Found::Prior { pointer, age } => {
                self.log.debug(&format!(
                    "[bridge:init] Found prior environment {} in pointer (ageMs={}); requesting \
                     reuse on registration",
                    pointer.environment_id,
                    age.as_millis()
                ));
                self.prior = Some(pointer);
            }
        }
    }

    pub(super) fn announce(&mut self) {
        let cwd = self.double.cwd.to_string_lossy().into_owned();
        let seed = self.double.knobs.seed;
        let bridge = Draw::new(seed, &["bridge", &cwd]).uuid();
        let reuse =
            self.prior.as_ref().map(|p| format!(" reuseEnvironmentId={}", p.environment_id));
        self.log.debug(&format!(
            "[bridge:init] bridgeId={bridge}{} dir={cwd} branch={} gitRepoUrl={} machine={}",
            reuse.unwrap_or_default(),
            trust::branch(&self.double.cwd),
            trust::remote_url(&self.double.cwd).as_deref().unwrap_or("null"),
            machine_name(),
        ));
        self.log.debug(
            "[bridge:init] apiBaseUrl=https://sim.invalid sessionIngressUrl=https://sim.invalid",
        );
        let file = self.log.path().map(|path| format!(" debugFile={}", path.display()));
        self.log.debug(&format!("[bridge:init] sandbox=false{}", file.unwrap_or_default()));
        let name = self.args.name.clone().unwrap_or_else(|| "Remote Control".to_owned());
        // Two bridges in one directory have a session each.
        let drawn = || Draw::new(seed, &["session", &std::process::id().to_string()]).uuid();
        let session = self.double.knobs.session_id.clone().unwrap_or_else(drawn);
        self.entry = Some(Entry::register(self.double, &session, "cli", &name));
        self.log.debug(&format!("[bridge:api] POST /v1/environments/bridge bridgeId={bridge}"));
    }

    pub(super) fn register(&mut self) -> Result<(), Failure> {
        match self.double.knobs.fatal {
            Some(Fatal::Network) => return Err(Failure::agent(texts::NETWORK)),
            Some(Fatal::AlreadyServed) => return Err(Failure::agent(texts::ALREADY_SERVED)),
            Some(
                Fatal::Login
                | Fatal::Trust
                | Fatal::BadArgument
                | Fatal::OrgPolicy
                | Fatal::ConfigError,
            )
            | None => {}
        }
        let exclusive =
            if self.double.profile.keeps_environment() { Exclusive::Yes } else { Exclusive::No };
        let offered = self.prior.as_ref().map(|prior| prior.environment_id.as_str());
        let environment = match self.server.register(&self.double.cwd, offered, exclusive)? {
            Registration::Served { environment } => environment,
            Registration::Conflict => return Err(Failure::agent(texts::ALREADY_SERVED)),
        };
        let shown = |label: &str| match self.double.knobs.ready {
            Ready::NoEnv => String::new(),
            Ready::Ok | Ready::Never | Ready::NoPollLoop | Ready::NoSession => {
                format!(" {label}={environment}")
            }
        };
        self.log.debug(&format!(
            "[bridge:api] POST /v1/environments/bridge -> 200{}",
            shown("environment_id")
        ));
        self.log.debug(&format!("[bridge:init] Registered, server{}", shown("environmentId")));
        self.environment = Some(environment);
        self.reuse();
        let ready_ms = self.double.knobs.ready_ms;
        self.at_start_plus(ready_ms - ready_ms / 4, Act::CreateSession);
        self.at_start_plus(ready_ms, Act::StartPolling);
        Ok(())
    }

    /// Takes over the session of the prior environment, if that one was returned.
    fn reuse(&mut self) {
        let Some(prior) = self.prior.take() else {
            return;
        };
        if Some(&prior.environment_id) == self.environment.as_ref() {
            self.initial = Some(prior.session_id.clone()).filter(|id| !id.is_empty());
            self.resumed = self.initial.is_some();
            self.write_pointer();
            return;
        }
        self.log.line(
            Level::Warn,
            &format!(
                "Bridge env reuse mismatch: requested {}, backend returned {}.",
                prior.environment_id,
                self.environment.as_deref().unwrap_or_default()
            ),
        );
        say(&format!("{}\n", texts::REUSE_EXPIRED));
        pointer::clear(self.double, &self.log);
    }

    pub(super) fn create_session(&mut self) -> Result<(), Failure> {
        let Some(environment) = self.environment.clone() else {
            return Ok(());
        };
        if self.initial.is_none() && self.args.create_session {
            if self.double.knobs.ready == Ready::NoSession {
                self.log.debug(
                    "[bridge:init] Session creation failed (non-fatal): Request failed with \
                     status code 500",
                );
            } else {
                let title = self.args.name.as_deref().unwrap_or("Remote Control");
                let id = self.server.create_session(&environment, title)?;
                self.log.debug(&format!("[bridge:init] Created initial session {id}"));
                self.initial = Some(id);
            }
        }
        if self.initial.is_some() {
            self.write_pointer();
            self.refresh_pointer_later();
        }
        Ok(())
    }

    pub(super) fn write_pointer(&mut self) {
        if self.pointer_in_use || self.double.knobs.ready == Ready::NoEnv {
            return;
        }
        if let Some(environment) = &self.environment {
            let target = Target {
                session: self.initial.as_deref().unwrap_or_default(),
                environment,
                stranger: self.stranger.as_ref().map(Child::id),
            };
            self.pointer_written = pointer::write(self.double, &self.log, target);
        }
        if self.polling {
            self.refresh_pointer_later();
        }
    }

    fn refresh_pointer_later(&mut self) {
        self.agenda.remove(Act::RefreshPointer);
        let ms = self.double.knobs.pointer_refresh_s.saturating_mul(1000).max(1);
        self.agenda.after_ms(ms, Act::RefreshPointer);
    }
}
