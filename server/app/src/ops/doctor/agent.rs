//! Checks of the agent CLI: `claude`, `claude-login`, `workspace-trust`.

use super::verdict::{chain, failed, passed, some_of, told, warned};
use std::path::PathBuf;
use svc_agent::cli::ProbeError;
use svc_agent::login::Login;
use svc_agent::version::AgentVersion;
use svc_domain::log_escape::escape;
use svc_domain::redact::redact_text;
use svc_shared::internal::Check;
use svc_shared::status::CheckStatus;

/// Whether there is an agent CLI that is new enough.
pub(super) fn program(
    probed: Result<&(PathBuf, AgentVersion), &ProbeError>,
    min_version: &str,
) -> Check {
    const NAME: &str = "claude";
    let (program, version) = match probed {
        Ok((program, version)) => (program, version),
        Err(error) => {
            let check = told(NAME, CheckStatus::Fail, &chain(error));
            let hint = "run it by hand with --version, then correct claude.binary".to_owned();
            return Check { hint: check.hint.or(Some(hint)), ..check };
        }
    };
    let Ok(floor) = min_version.trim_start_matches('v').parse::<AgentVersion>() else {
        return failed(
            NAME,
            format!("claude.min_version is no dotted version: {}", escape(min_version)),
            "set it to a version such as 2.1.145",
        );
    };
    // A bare number may be a commit hash: it must not pass a floor.
    if !version.as_str().contains('.') {
        return failed(
            NAME,
            format!("{} reports {version}, which is no dotted version", program.display()),
            "check that claude.binary is the agent CLI, and update it (`claude update`)",
        );
    }
    if *version < floor {
        return failed(
            NAME,
            format!("{version} is below {min_version}, the oldest supported version"),
            "update it: `claude update`",
        );
    }
    passed(NAME, format!("{version} (>= {min_version})"))
}

/// Whether the agent is signed in, and in the way that bridges need.
pub(super) fn login(login: &Login) -> Check {
    const NAME: &str = "claude-login";
    const SIGN_IN: &str = "sign in as the user of the service: `claude auth login` (in a browser with \
                           login_shepherd.enabled)";
    match login {
        Login::Answered { logged_in: true, method, .. } if login.is_subscription() => {
            passed(NAME, format!("logged in ({method})"))
        }
        Login::Answered { logged_in: true, method, .. } => warned(
            NAME,
            format!("logged in ({method}), but bridges need the login of a subscription"),
            SIGN_IN,
        ),
        Login::Answered { logged_in: false, .. } => warned(NAME, "not logged in", SIGN_IN),
        Login::Failed { reason } => {
            warned(NAME, format!("unknown: {}", redact_text(reason)), SIGN_IN)
        }
        Login::Unasked => warned(NAME, "unknown: the agent CLI was not asked yet", "ask again"),
    }
}

/// Whether the agent may work in every project.
pub(super) fn trust(untrusted: &[&str], projects: usize) -> Check {
    const NAME: &str = "workspace-trust";
    if projects == 0 {
        let hint = "create a directory under projects_root, or correct that key";
        return warned(NAME, "there are no projects", hint);
    }
    let trusted = projects.saturating_sub(untrusted.len());
    if untrusted.is_empty() {
        return passed(NAME, format!("{trusted}/{projects} trusted"));
    }
    let names: Vec<_> = untrusted.iter().map(|name| escape(name)).collect();
    let hint = "trust what you know, on the page or with svc start PROJECT --trust";
    warned(NAME, format!("{trusted}/{projects} trusted; not yet: {}", some_of(&names)), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed(version: &str, floor: &str) -> Check {
        let version = version.parse().unwrap();
        program(Ok(&("/opt/claude".into(), version)), floor)
    }

    #[track_caller]
    fn is(check: &Check, status: CheckStatus, words: &str) {
        assert!(check.status.is(&status), "{check:?}");
        assert!(check.detail.contains(words), "{check:?}");
        assert_eq!(check.hint.is_none(), status == CheckStatus::Ok, "{check:?}");
    }

    #[test]
    fn f86_the_floor_is_held_and_what_is_no_version_never_passes_it() {
        is(&probed("2.1.197", "2.1.145"), CheckStatus::Ok, "2.1.197 (>= 2.1.145)");
        is(&probed("2.1", "v2.1.0"), CheckStatus::Ok, "2.1");
        is(&probed("2.1.144", "2.1.145"), CheckStatus::Fail, "below 2.1.145");
        is(&probed("2.1.145-beta.1", "2.1.145"), CheckStatus::Fail, "below");
        is(&probed("20260101", "2.1.145"), CheckStatus::Fail, "no dotted version");
        is(&probed("2.1.197", "newest"), CheckStatus::Fail, "claude.min_version");
    }

    #[test]
    fn a_login_that_bridges_cannot_use_is_told_from_none() {
        let answered = |logged_in, method: &str| Login::Answered {
            logged_in,
            method: method.to_owned(),
            expires_at: None,
        };
        is(&login(&answered(true, "claude.ai")), CheckStatus::Ok, "logged in (claude.ai)");
        is(&login(&answered(true, "api_key")), CheckStatus::Warn, "subscription");
        is(&login(&answered(false, "none")), CheckStatus::Warn, "not logged in");
        let silent = Login::Failed { reason: "no answer within 5 s".to_owned() };
        is(&login(&silent), CheckStatus::Warn, "no answer within 5 s");
    }

    #[test]
    fn trust_is_counted_and_the_untrusted_are_named() {
        is(&trust(&[], 3), CheckStatus::Ok, "3/3 trusted");
        is(&trust(&["a", "b"], 3), CheckStatus::Warn, "1/3 trusted; not yet: a, b");
        let many: Vec<&str> = vec!["x"; 9];
        is(&trust(&many, 9), CheckStatus::Warn, "and 4 more");
        is(&trust(&[], 0), CheckStatus::Warn, "no projects");
    }
}
