//! The remote link of an interactive session: its lines, its address, its end.

use std::cell::RefCell;

use super::Act;
use super::{DIM, End, Line, Session};
use crate::sim::debug_log::Level;
use crate::sim::link::{Outcome, Voice};
use crate::sim::remote::SessionState;
use crate::sim::texts;
use crate::sim::values::{Fatal, Ready};

impl Session<'_> {
    /// Brings the remote link up, or says why there is none.
    pub(super) fn connect(&mut self) {
        let knobs = &self.double.knobs;
        let refusal = match knobs.fatal {
            Some(Fatal::OrgPolicy) => Some(texts::RC_POLICY),
            Some(Fatal::Login) => Some(texts::RC_LOGIN),
            _ if knobs.rc_ignored || !knobs.auth.allows_remote_control() => Some(texts::RC_LOGIN),
            _ => None,
        };
        if let Some(reason) = refusal {
            let yellow = format!("\x1b[33m{reason}\x1b[39m\n\x1b[33m--rc flag ignored.\x1b[39m");
            self.log.line(Level::Warn, &format!("[stderr] {yellow}"));
            self.link = "Not logged in · Run /login";
        } else if knobs.fatal == Some(Fatal::AlreadyServed) {
            self.log.debug(
                "[bridge:repl] notifyBridgeFailed detail=\"already served\" wasConnected=false",
            );
            self.link = "Remote Control failed";
        } else if knobs.ready != Ready::Never {
            self.attach();
        }
        self.show();
        self.after_ready();
    }

    fn attach(&mut self) {
        let knobs = &self.double.knobs;
        let title = self.args.name.clone().unwrap_or_default();
        let attached = self.server.attach(&self.double.cwd, &title, &self.conversation.id);
        let Ok((id, known)) = attached else {
            self.log.debug("[bridge:repl] handleStateChange state=failed detail=\"no service\"");
            return;
        };
        // Without these lines only the screen tells; without the address only the lines do.
        if knobs.ready != Ready::NoPollLoop && knobs.ready != Ready::NoSession {
            if known && self.conversation.resumed {
                self.log.debug(&format!("[remote-bridge] Reattaching to session {id}"));
                self.log.debug(&format!("[remote-bridge] Unarchive {id} status=200"));
            } else {
                self.log.debug(&format!("[remote-bridge] Created session {id}"));
            }
            self.log.debug(&format!("[bridge:repl] Hook initialized, session={id}"));
            self.log.debug("[bridge:repl] handleStateChange state=ready detail=\"\"");
            self.log.debug("[bridge:repl] handleStateChange state=connected detail=\"\"");
            self.log.debug("[bridge:sdk] State change: connected");
        }
        if knobs.ready != Ready::NoEnv && knobs.ready != Ready::NoSession && !knobs.tui.bare {
            let text = format!(
                "/remote-control is active · Continue here, on your phone, or at \
                 https://claude.ai/code/{id}"
            );
            self.screen.print([Line::new(DIM, 2, text)]);
        }
        self.link = "Remote Control active";
        if let Some(ms) = knobs.poison_ms.filter(|_| known) {
            self.agenda.after_ms(ms, Act::Poison);
        }
        self.remote = Some(id);
    }

    /// Knob `link`. What the bridge prints, the session shows as a line.
    pub(super) fn say_link(&mut self, at: usize) -> Option<End> {
        let step = self.double.knobs.link.get(at)?;
        let voice = Voice { log: &self.log, verbose: false, session: self.remote.as_deref() };
        let said = RefCell::new(Vec::new());
        let outcome = voice.say(&step.1, |text| said.borrow_mut().push(text.to_owned()));
        let said = said.into_inner().into_iter();
        self.screen.print(said.map(|text| Line::new(DIM, 2, text)));
        match outcome {
            Outcome::GoOn | Outcome::Silence => None,
            Outcome::End => Some(End::Code(1)),
        }
    }

    /// Another device changed the remote session.
    pub(super) fn look_at_service(&mut self) {
        let state =
            self.remote.as_ref().and_then(|id| self.server.session_state(id).ok().flatten());
        match state {
            Some(SessionState::Archived | SessionState::Ended) => self.end_link("archived"),
            Some(SessionState::Deleted) => self.end_link("deleted"),
            Some(SessionState::Active) | None => {}
        }
    }

    pub(super) fn end_link(&mut self, reason: &str) {
        if let Some(id) = self.remote.take() {
            self.log.debug(&format!(
                "[bridge:ws] sessionId={id} <<< {{\"type\":\"control_request\",\"request\":\
                 {{\"subtype\":\"end_session\",\"reason\":\"{reason}\"}}}}"
            ));
            self.log.debug(&format!(
                "[bridge:repl] handleStateChange state=failed detail=\"session {reason}\""
            ));
            self.link = "Remote Control disconnected";
            self.show();
        }
    }
}
