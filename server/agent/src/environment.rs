//! The environment of child processes.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use svc_domain::identity::LaunchId;
use svc_domain::recap;

/// Variables by name.
pub type Variables = BTreeMap<OsString, OsString>;

/// Our own variables that a child may see.
/// Every other variable named `SVC_…` is removed, so that a future secret cannot leak under an
/// unforeseen name.
const OWN_ALLOWED: [&str; 2] = [recap::SWITCH, recap::MOST_CHARS];

/// Variables that make the agent believe it is a child of another session.
/// It then may not register (agent 2.1.197).
const ANCESTRY: [&str; 16] = [
    "CLAUDECODE",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_SESSION_KIND",
    "CLAUDE_CODE_SESSION_NAME",
    "CLAUDE_CODE_SESSION_ACCESS_TOKEN",
    "CLAUDE_CODE_ENVIRONMENT_KIND",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_REMOTE",
    "CLAUDE_CODE_REMOTE_SESSION_ID",
    "CLAUDE_JOB_DIR",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PROJECT_DIR",
    "AI_AGENT",
];
const ANCESTRY_PREFIXES: [&str; 3] = ["CLAUDE_BG_", "CLAUDE_BRIDGE_", "CLAUDE_PTY_"];

/// Variables that load code into every program.
/// They are passed on only if the operator names them in `claude.env`.
const LOADER: [&str; 2] = ["NODE_OPTIONS", "BUN_OPTIONS"];
const LOADER_PREFIXES: [&str; 2] = ["LD_", "DYLD_"];

/// With these a bridge could send notifications as the service's unit.
const PLUMBING: [&str; 4] =
    ["NOTIFY_SOCKET", "INVOCATION_ID", "JOURNAL_STREAM", "CREDENTIALS_DIRECTORY"];
const PLUMBING_PREFIXES: [&str; 2] = ["LISTEN_", "WATCHDOG_"];

/// The search path when the service itself was started without `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The parts of a child's environment.
#[derive(Debug, Clone, Copy)]
pub struct ChildEnvironment<'a> {
    /// The service's own environment.
    pub inherited: &'a Variables,
    /// `claude.env`.
    pub overlay: &'a BTreeMap<String, String>,
    /// `claude.path_append`; a leading `~` is the user's home.
    pub path_append: &'a [PathBuf],
    /// The directory of nvm's default node version, if it should come first.
    pub node_bin: Option<&'a Path>,
}

impl ChildEnvironment<'_> {
    /// The complete environment of probes, and of bridges without their launch id.
    ///
    /// `PATH` keeps absolute elements only: a child works inside a project, where an empty or
    /// relative element would run the project's own files (H34).
    #[must_use]
    pub fn variables(&self) -> Variables {
        let mut env = self.inherited.clone();
        env.retain(|name, _| {
            !is_own(name) && !is_ancestry(name) && !is_loader(name) && !is_plumbing(name)
        });
        let path = self.path(env.get(OsStr::new("PATH")));
        env.insert("PATH".into(), path);
        for (name, value) in self.overlay {
            env.insert(name.into(), value.into());
        }
        // Once more: `claude.env` must not bring back what was removed.
        env.retain(|name, _| !is_own(name) && !is_ancestry(name));
        if self.overlay.contains_key("PATH") {
            let chosen =
                absolute_elements(env.get(OsStr::new("PATH")).map_or(OsStr::new(""), |p| p));
            env.insert("PATH".into(), chosen);
        }
        env
    }

    fn path(&self, inherited: Option<&OsString>) -> OsString {
        let home = self.inherited.get(OsStr::new("HOME")).map(Path::new);
        let base = inherited.map_or(OsStr::new(DEFAULT_PATH), |path| path.as_os_str());
        let elements = self
            .node_bin
            .map(Path::to_owned)
            .into_iter()
            .chain(std::env::split_paths(base))
            .chain(self.path_append.iter().map(|path| expand_home(path, home)));
        join(elements)
    }
}

/// Adds the launch id. It comes last, so that nothing else can set it.
#[must_use]
pub fn with_launch_id(mut env: Variables, launch_id: &LaunchId) -> Variables {
    env.insert("SVC_LAUNCH_ID".into(), launch_id.as_str().into());
    env
}

/// `path` without its empty, `.` and other relative elements.
/// Returns the system's directories if none is left.
#[must_use]
pub fn absolute_elements(path: &OsStr) -> OsString {
    join(std::env::split_paths(path))
}

fn join(elements: impl Iterator<Item = PathBuf>) -> OsString {
    let mut kept: Vec<PathBuf> = elements
        // An element with a separator would silently become two elements.
        .filter(|path| path.is_absolute() && std::env::join_paths([path]).is_ok())
        .collect();
    if kept.is_empty() {
        // An empty `PATH` would mean the working directory.
        kept.extend(std::env::split_paths(DEFAULT_PATH));
    }
    std::env::join_paths(kept).unwrap_or_else(|_| DEFAULT_PATH.into())
}

/// Replaces a leading `~` by the user's home.
#[must_use]
pub fn expand_home(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) if rest.as_os_str().is_empty() => home.to_owned(),
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

fn is_own(name: &OsStr) -> bool {
    starts(name, &["SVC_"]) && !OWN_ALLOWED.iter().any(|allowed| name == *allowed)
}

fn is_ancestry(name: &OsStr) -> bool {
    ANCESTRY.iter().any(|known| name == *known) || starts(name, &ANCESTRY_PREFIXES)
}

fn is_loader(name: &OsStr) -> bool {
    LOADER.iter().any(|known| name == *known) || starts(name, &LOADER_PREFIXES)
}

fn is_plumbing(name: &OsStr) -> bool {
    PLUMBING.iter().any(|known| name == *known) || starts(name, &PLUMBING_PREFIXES)
}

fn starts(name: &OsStr, prefixes: &[&str]) -> bool {
    let name = name.as_encoded_bytes();
    prefixes.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANARY: &str = "canary-7f3a";

    fn inherited(names: &[&str]) -> Variables {
        names.iter().map(|name| (name.into(), CANARY.into())).collect()
    }

    fn overlay(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn child(inherited: &Variables, overlay: &BTreeMap<String, String>) -> Variables {
        ChildEnvironment { inherited, overlay, path_append: &[], node_bin: None }.variables()
    }

    fn path_of(env: &Variables) -> &str {
        env.get(OsStr::new("PATH")).and_then(|path| path.to_str()).unwrap()
    }

    /// H32.
    #[test]
    fn no_variable_of_the_service_reaches_a_child() {
        let own = [
            "SVC_SESSION_SECRET",
            "SVC_AUTH_PASSWORD_HASH",
            "SVC_WEBHOOKS_URLS",
            "SVC_CONFIG",
            "SVC_HOME",
            "SVC_LAUNCH_ID",
            "SVC_X",
            "SVC_",
            "SVC_RESUME_RECAP_OTHER",
            "SVC_AUTH_API_TOKEN_HASH_FILE",
        ];
        let all = overlay(&own.map(|name| (name, CANARY)));
        for env in [child(&inherited(&own), &BTreeMap::new()), child(&Variables::new(), &all)] {
            assert!(!format!("{env:?}").contains(CANARY), "{env:?}");
        }
        let recap = ["SVC_RESUME_RECAP", "SVC_RESUME_RECAP_MAX_CHARS"];
        let env = child(&inherited(&recap), &BTreeMap::new());
        assert!(recap.iter().all(|name| env.contains_key(OsStr::new(name))));
    }

    #[test]
    fn a_child_does_not_take_itself_for_a_child_session() {
        let mut names = ANCESTRY.to_vec();
        names.extend(["CLAUDE_BG_X", "CLAUDE_BRIDGE_REATTACH", "CLAUDE_PTY_"]);
        assert!(!format!("{:?}", child(&inherited(&names), &BTreeMap::new())).contains(CANARY));
        let given: Vec<(&str, &str)> = names.iter().map(|name| (*name, CANARY)).collect();
        let env = child(&Variables::new(), &overlay(&given));
        assert!(!format!("{env:?}").contains(CANARY), "{env:?}");
    }

    #[test]
    fn loaders_reach_a_child_only_when_the_operator_names_them() {
        let names = [
            "NODE_OPTIONS",
            "BUN_OPTIONS",
            "LD_PRELOAD",
            "LD_AUDIT",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
        ];
        assert!(!format!("{:?}", child(&inherited(&names), &BTreeMap::new())).contains(CANARY));
        let named = overlay(&names.map(|name| (name, "chosen")));
        let env = child(&inherited(&names), &named);
        for name in names {
            assert_eq!(env.get(OsStr::new(name)), Some(&"chosen".into()), "{name}");
        }
    }

    #[test]
    fn a_child_cannot_speak_for_the_unit() {
        let names = [
            "NOTIFY_SOCKET",
            "LISTEN_FDS",
            "LISTEN_FDS_FIRST_FD",
            "LISTEN_PID",
            "LISTEN_FDNAMES",
            "WATCHDOG_USEC",
            "WATCHDOG_PID",
            "INVOCATION_ID",
            "JOURNAL_STREAM",
            "CREDENTIALS_DIRECTORY",
        ];
        assert!(!format!("{:?}", child(&inherited(&names), &BTreeMap::new())).contains(CANARY));
    }

    #[test]
    fn what_the_agent_itself_needs_is_kept() {
        let names = [
            "HOME",
            "CLAUDE_CONFIG_DIR",
            "LANG",
            "LC_ALL",
            "TZ",
            "HTTPS_PROXY",
            "no_proxy",
            "SSL_CERT_FILE",
            "NODE_EXTRA_CA_CERTS",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "SSH_AUTH_SOCK",
            "XDG_CONFIG_HOME",
            "AGENT_SIM",
            "CLAUDE_SOMETHING_NEW",
        ];
        let env = child(&inherited(&names), &BTreeMap::new());
        for name in names {
            assert_eq!(env.get(OsStr::new(name)), Some(&CANARY.into()), "{name}");
        }
    }

    #[test]
    fn the_operators_variables_win_over_inherited_ones() {
        let env = child(&inherited(&["TZ", "HOME"]), &overlay(&[("TZ", "UTC"), ("EXTRA", "1")]));
        assert_eq!(env.get(OsStr::new("TZ")), Some(&"UTC".into()));
        assert_eq!(env.get(OsStr::new("EXTRA")), Some(&"1".into()));
    }

    /// H34.
    #[test]
    fn the_path_is_node_first_then_inherited_then_appended_and_never_relative() {
        let vars = [("PATH", "/usr/bin::.:bin:/opt/b"), ("HOME", "/home/u")];
        let inherited: Variables = vars.iter().map(|(k, v)| (k.into(), v.into())).collect();
        let env = ChildEnvironment {
            inherited: &inherited,
            overlay: &BTreeMap::new(),
            path_append: &["~/.local/bin".into(), "tools".into(), "/last".into(), "~".into()],
            node_bin: Some(Path::new("/n/bin")),
        }
        .variables();
        assert_eq!(path_of(&env), "/n/bin:/usr/bin:/opt/b:/home/u/.local/bin:/last:/home/u");
        let env = child(&inherited, &overlay(&[("PATH", ".:/only")]));
        assert_eq!(path_of(&env), "/only");
        for path in ["", ".", "bin:."] {
            let env = child(&Variables::new(), &overlay(&[("PATH", path)]));
            assert_eq!(path_of(&env), DEFAULT_PATH, "{path:?}");
        }
        let bare = child(&Variables::new(), &BTreeMap::new());
        assert_eq!(path_of(&bare), DEFAULT_PATH);
    }

    #[test]
    fn the_launch_id_is_the_one_of_this_launch() {
        let id: LaunchId = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let given = overlay(&[("SVC_LAUNCH_ID", "forged")]);
        let env = with_launch_id(child(&Variables::new(), &given), &id);
        assert_eq!(env.get(OsStr::new("SVC_LAUNCH_ID")), Some(&id.as_str().into()));
    }
}
