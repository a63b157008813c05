//! Actions about what happens with a bridge by itself.

use super::{Done, Target, Write, said};
use crate::model::outcome::{Level, Notice, Then};
use crate::model::wire;
use crate::page::Page;
use crate::text::{launch, restart as words};
use gloo_net::http::Method;
use svc_shared::api::instances::{Instance, PatchInstance, ReleaseRequest};
use svc_shared::paths;

impl Page {
    /// Changes the restart policy of a row; `None` follows the configuration.
    pub fn set_restart(self, target: Target, policy: Option<String>) {
        let path = paths::instance(&target.id);
        let done: Done = |write, text| {
            let now = wire::read::<Instance>(text)?.restart.policy.to_string();
            said(words::changed(&write.object, launch::restart(&now)))
        };
        // Another choice is sent although the first one has no answer yet.
        let word = policy.as_deref().unwrap_or_default();
        let about = format!("restart-{}-{word}", target.id);
        let body = PatchInstance { restart: Some(policy), ..PatchInstance::default() };
        self.write(Write {
            body: Some(wire::written(&body)),
            ..Write::new(about, words::CHANGE, target.project, Method::PATCH, path, done)
        });
    }

    /// Changes what a session does after a plan limit.
    ///
    /// `None` follows the configuration.
    pub fn set_on_limit(self, target: Target, choice: Option<String>) {
        let path = paths::instance(&target.id);
        let done: Done = |write, text| {
            let now = wire::read::<Instance>(text)?.on_limit.to_string();
            said(words::limit_changed(&write.object, launch::on_limit(&now)))
        };
        let word = choice.as_deref().unwrap_or_default();
        let about = format!("limit-{}-{word}", target.id);
        let body = PatchInstance { on_limit: Some(choice), ..PatchInstance::default() };
        self.write(Write {
            body: Some(wire::written(&body)),
            ..Write::new(about, words::CHANGE, target.project, Method::PATCH, path, done)
        });
    }

    /// Cancels the scheduled restart of an ended bridge.
    pub fn stop_trying(self, target: Target) {
        let path = paths::instance(&target.id);
        let act = words::STOP_TRYING;
        let done: Done = |write, _| {
            let title = words::called_off(&write.object);
            Ok(vec![Notice::new(Level::Success, title, words::CALLED_OFF_BODY)])
        };
        self.write(Write::new(target.id, act, target.project, Method::DELETE, path, done));
    }

    /// Ends the pause after too many crashes; `starts` also starts the bridge.
    pub fn release(self, target: Target, starts: bool) {
        let path = paths::instance_action(&target.id, "release");
        let (act, done): (_, Done) = match starts {
            false => (words::RELEASE, |write, _| said(words::released(&write.object))),
            true => (words::RELEASE_START, |write, text| {
                let id = wire::read::<Instance>(text)?.instance_id.to_string();
                let title = words::released_and_started(&write.object);
                Ok(vec![Notice::new(Level::Success, title, "").then(Then::View(id))])
            }),
        };
        let body = ReleaseRequest { start: Some(starts) };
        self.write(Write {
            body: Some(wire::written(&body)),
            ..Write::new(target.id, act, target.project, Method::POST, path, done)
        });
    }
}
