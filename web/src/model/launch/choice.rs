//! Values that fill in the launch dialog.

use super::{Form, Kind, is_bypass};
use crate::model::wire;
use std::collections::BTreeMap;
use svc_shared::api::instances::Instance;
use svc_shared::status::Channel;

/// Values to fill the launch dialog with.
///
/// They come from the last launch of the project or from the address. Trust and the confirmation of
/// a bypass are never part of them: the user gives both at each launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice([Option<String>; MEMBERS.len()]);

/// Members of the query that fill in the dialog, and of what is kept.
pub const MEMBERS: [&str; 9] = [
    "kind",
    "permission_mode",
    "spawn_mode",
    "name",
    "restart",
    "prompt",
    "rc_name",
    "model",
    SANDBOX,
];
/// The member that is taken and has no effect.
pub const SANDBOX: &str = "sandbox";

impl Choice {
    /// From a reader of members; blank is absent.
    pub fn of(mut read: impl FnMut(&str) -> String) -> Self {
        Self(MEMBERS.map(|name| Some(read(name)).filter(|value| !value.is_empty())))
    }

    /// This kind, the rest as usual.
    #[must_use]
    pub fn of_kind(kind: Kind) -> Self {
        Self::of(|name| if name == "kind" { kind.word().to_owned() } else { String::new() })
    }

    /// The same launch once more.
    #[must_use]
    pub fn again(bridge: &Instance) -> Self {
        let name = if bridge.label == bridge.project { "" } else { bridge.label.as_str() };
        Self::of(|member| match member {
            "kind" if bridge.channel.is(&Channel::Hosted) => Kind::Direct.word().to_owned(),
            "kind" => bridge.resume_mode.to_string(),
            "permission_mode" => bridge.permission_mode.to_string(),
            "spawn_mode" => bridge.spawn_mode.to_string(),
            "name" => name.to_owned(),
            _ => String::new(),
        })
    }

    /// Everything that is filled in, without the gates.
    #[must_use]
    pub fn drafted(form: &Form) -> Self {
        Self::of(|member| {
            match member {
                "kind" => form.kind.word(),
                "permission_mode" => &form.permission_mode,
                "spawn_mode" => &form.spawn_mode,
                "name" => &form.name,
                "restart" => &form.restart,
                "prompt" => &form.prompt,
                // Registered under the usual name is not the same as not registered.
                "rc_name" if form.registers && form.name.is_empty() => " ",
                "rc_name" if form.registers => &form.name,
                "model" => &form.model,
                _ => "",
            }
            .to_owned()
        })
    }

    /// A member.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let at = MEMBERS.iter().position(|member| *member == name)?;
        self.0.get(at)?.as_deref()
    }

    /// What was kept by [`Choice::text`]; nothing of what cannot be read.
    #[must_use]
    pub fn read(kept: &str) -> Self {
        let mut kept: BTreeMap<String, Option<String>> = wire::read(kept).unwrap_or_default();
        Self::of(|name| kept.remove(name).flatten().unwrap_or_default())
    }

    /// For keeping.
    #[must_use]
    pub fn text(&self) -> String {
        wire::written(&MEMBERS.iter().zip(&self.0).collect::<BTreeMap<_, _>>())
    }

    /// The values to suggest at the next launch of the project.
    ///
    /// A bypass is never suggested: the user confirms it at each launch.
    #[must_use]
    pub fn kept(form: &Form) -> Self {
        let all = Self::drafted(form);
        Self::of(|name| {
            let keeps = match name {
                "permission_mode" => !is_bypass(form),
                _ => matches!(name, "kind" | "spawn_mode"),
            };
            all.get(name).filter(|_| keeps).unwrap_or_default().to_owned()
        })
    }
}
