//! The part of `bootstrap` that the page uses.
//!
//! Nothing is shown before it is there.

use crate::model::prefs::Prefs;
use serde::Deserialize;
use svc_shared::internal::usage::UsageDisplay;
use svc_shared::internal::{Bootstrap, PageNotifications};

/// Words for one permission mode.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Label {
    /// The mode, as it stands on the wire.
    pub mode: String,
    /// For chips.
    pub short: String,
    /// For lists.
    pub long: String,
    /// One sentence on what it lets the agent do.
    pub effect: String,
}

/// The members.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "Bootstrap")]
pub struct Basics {
    /// Service version.
    pub version: String,
    /// Hash of the served page files.
    pub build: String,
    /// Where the projects are.
    pub projects_root: String,
    /// Name of this machine.
    pub hostname: String,
    /// Name of its zone; empty where it is not known.
    pub timezone: String,
    /// What somebody chose for the page.
    pub prefs: Option<Prefs>,
    /// Running under `svc demo`.
    pub demo: bool,
    /// Origins from which this server takes requests.
    pub allowed_origins: Vec<String>,
    /// Somebody signed in with a password, and can sign out.
    pub can_sign_out: bool,
    /// The password can be proved once more.
    pub has_password: bool,
    /// Default spawn mode, as a word.
    pub spawn_mode: String,
    /// Default permission mode, as a word.
    pub permission_mode: String,
    /// Default kind of bridge, as a word.
    pub resume_mode: String,
    /// Words for the permission modes.
    pub labels: Vec<Label>,
    /// Time a bridge may take to register, milliseconds.
    pub grace_ms: i64,
    /// Most live bridges; `None` without a cap.
    pub max_bridges: Option<u64>,
    /// Terminals of Interactive Sessions are shown.
    pub has_terminal: bool,
    /// … and typed into.
    pub can_type: bool,
    /// Projects are created and cloned here.
    pub can_clone: bool,
    /// Leftover environments are listed.
    pub can_reap: bool,
    /// The agent can be signed in from here.
    pub can_sign_agent_in: bool,
    /// … and long-lived tokens can be made.
    pub can_make_token: bool,
    /// The agent's own configuration can be changed here.
    pub can_configure: bool,
    /// … in the files of the user too.
    pub can_configure_user: bool,
    /// The service can restart itself.
    pub can_restart: bool,
    /// How tokens and costs are shown.
    pub usage: UsageDisplay,
    /// Of what a page in the background may notify.
    pub notifications: PageNotifications,
}

impl Basics {
    /// Labels of a permission mode.
    ///
    /// A mode without labels is shown as written.
    #[must_use]
    pub fn label(&self, mode: &str) -> Label {
        let known = self.labels.iter().find(|label| label.mode == mode);
        known.cloned().unwrap_or_else(|| Label {
            mode: mode.to_owned(),
            short: mode.to_owned(),
            long: mode.to_owned(),
            effect: String::new(),
        })
    }
}

impl From<Bootstrap> for Basics {
    fn from(all: Bootstrap) -> Self {
        let Bootstrap { auth, defaults, limits, .. } = all;
        let labels = all.permission_labels.into_iter().map(|(mode, words)| Label {
            mode,
            short: words.short,
            long: words.long,
            effect: words.effect,
        });
        #[expect(clippy::cast_possible_truncation, reason = "a setting in seconds")]
        let grace_ms = (limits.startup_grace_seconds * 1000.0) as i64;
        Self {
            version: all.version,
            build: all.build,
            projects_root: all.projects_root,
            hostname: all.hostname,
            timezone: all.timezone,
            prefs: all.ui_prefs.map(Prefs::from),
            demo: all.demo,
            allowed_origins: auth.allowed_origins,
            can_sign_out: auth.method == "cookie",
            has_password: auth.password_set,
            spawn_mode: defaults.spawn_mode.to_string(),
            permission_mode: defaults.permission_mode.to_string(),
            resume_mode: defaults.resume_mode.to_string(),
            labels: labels.collect(),
            grace_ms,
            max_bridges: limits.max_bridges.map(u64::from),
            has_terminal: all.features.pty_screen,
            can_type: all.features.terminal_input,
            can_clone: all.features.clone,
            can_reap: all.features.reaper,
            can_sign_agent_in: all.features.login_shepherd,
            can_make_token: all.features.setup_token,
            can_configure: all.features.config_write,
            can_configure_user: all.features.config_write_user_scope,
            can_restart: all.features.restart,
            usage: all.usage,
            notifications: all.notifications,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;
    use crate::model::wire::read;
    use svc_shared::internal::PermissionLabel;

    #[test]
    fn the_basics_are_read_from_what_the_server_writes() {
        let mut whole = sample::bootstrap();
        whole.auth.method = "cookie".into();
        whole.auth.allowed_origins = vec!["http://localhost:1".into()];
        whole.limits.max_bridges = Some(9);
        whole.features.pty_screen = true;
        whole.features.clone = true;
        whole.limits.startup_grace_seconds = 2.5;
        whole.permission_labels.insert(
            "plan".into(),
            PermissionLabel { short: "s".into(), long: "l".into(), effect: "e".into() },
        );
        let read = read::<Basics>(&serde_json::to_string(&whole).unwrap()).unwrap();
        assert_eq!(
            read,
            Basics {
                version: "1.0.0".into(),
                build: "b".into(),
                projects_root: "/srv/projects".into(),
                hostname: "buildbox".into(),
                timezone: "Europe/Berlin".into(),
                prefs: None,
                demo: false,
                allowed_origins: vec!["http://localhost:1".into()],
                can_sign_out: true,
                has_password: false,
                spawn_mode: "same-dir".into(),
                permission_mode: "default".into(),
                resume_mode: "standard".into(),
                labels: vec![Label {
                    mode: "plan".into(),
                    short: "s".into(),
                    long: "l".into(),
                    effect: "e".into(),
                }],
                grace_ms: 2_500,
                max_bridges: Some(9),
                has_terminal: true,
                can_type: false,
                can_clone: whole.features.clone,
                can_reap: false,
                can_sign_agent_in: false,
                can_make_token: false,
                can_configure: false,
                can_configure_user: false,
                can_restart: false,
                usage: whole.usage.clone(),
                notifications: whole.notifications,
            }
        );
        assert_eq!(read.label("plan").long, "l");
        assert_eq!(read.label("moonwalk").short, "moonwalk");
    }
}
