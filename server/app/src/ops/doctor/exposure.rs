//! The check `auth`: the rules of the start, asked without starting.

use super::verdict::{check, failed, passed, warned};
use crate::ops::accounts::REMEDY;
use svc_config::{Config, is_password_hash, judge_exposure};
use svc_domain::accounts::told;
use svc_domain::posture::is_loopback_host;
use svc_shared::internal::Check;
use svc_shared::status::CheckStatus;

const NAME: &str = "auth";

/// Whether the service would be open to somebody who should not get in.
/// `others`: the accounts of this machine that control it as it stands.
pub(super) fn auth(config: &Config, others: &[String]) -> Check {
    let (refusals, cautions) = judge_exposure(config);
    if !refusals.is_empty() {
        let words: Vec<String> =
            refusals.iter().map(|refusal| format!("{} {refusal}", refusal.key())).collect();
        return parted(CheckStatus::Fail, &words);
    }
    let auth = &config.auth;
    if auth.password_hash.as_ref().is_some_and(|hash| !is_password_hash(hash)) {
        return failed(
            NAME,
            "auth.password_hash is no $argon2id$ hash, so no password can match",
            "make one with `svc hash-password`",
        );
    }
    let is_open = !auth.enabled;
    if is_open && !is_loopback_host(&config.host) {
        return warned(
            NAME,
            format!(
                "anyone who reaches {} controls this service (auth.allow_unauthenticated_network)",
                config.host
            ),
            "bind 127.0.0.1 and use a tunnel, or set auth.enabled with a way to sign in",
        );
    }
    let mut words: Vec<String> =
        cautions.iter().map(|caution| format!("{} {caution}", caution.key())).collect();
    if !others.is_empty() {
        let who = told(others);
        words.push(format!("off, and {who}: whoever does controls this service; {REMEDY}"));
    }
    if !words.is_empty() {
        return parted(CheckStatus::Warn, &words);
    }
    match is_open {
        true => passed(NAME, format!("off, and only this machine reaches {}", config.host)),
        false => passed(NAME, "on"),
    }
}

/// Several sentences as one check.
/// What is wrong with all of them, then all remedies.
fn parted(status: CheckStatus, sentences: &[String]) -> Check {
    let parts = || sentences.iter().map(|one| one.split_once("; ").unwrap_or((one, "")));
    let findings: Vec<&str> = parts().map(|(finding, _)| finding).collect();
    let remedies: Vec<&str> =
        parts().map(|(_, remedy)| remedy).filter(|remedy| !remedy.is_empty()).collect();
    let remedies = match remedies.is_empty() {
        true => "see `svc config check`".to_owned(),
        false => remedies.join("; "),
    };
    check(NAME, status, findings.join("; "), Some(&remedies))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on a configuration, whether it may start or not.
    fn verdict(more: &str) -> Check {
        verdict_beside(more, &[])
    }

    /// The same where these accounts control the service too.
    fn verdict_beside(more: &str, others: &[&str]) -> Check {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir(tree.path().join("projects")).unwrap();
        let text = format!("projects_root: projects\nstate_dir: state\n{more}");
        let config = match svc_config::load_text(&text, tree.path()) {
            Ok(loaded) => loaded.config,
            Err(errors) => errors.exposed.expect("only exposure speaks against it").config,
        };
        let others: Vec<String> = others.iter().map(ToString::to_string).collect();
        auth(&config, &others)
    }

    #[test]
    fn h146_accounts_that_control_the_service_are_warned_of_with_a_remedy() {
        let beside = verdict_beside("", &["bob"]);
        assert!(beside.status.is(&CheckStatus::Warn), "{beside:?}");
        assert!(beside.detail.contains("1 other account"), "{beside:?}");
        assert_eq!(beside.hint.as_deref(), Some(REMEDY));
    }

    #[test]
    fn h14_what_the_start_refuses_fails_by_the_same_words() {
        assert!(verdict("").status.is(&CheckStatus::Ok));
        let open = verdict("host: 0.0.0.0\n");
        assert!(open.status.is(&CheckStatus::Fail), "{open:?}");
        assert!(open.detail.starts_with("host is not a loopback address"), "{open:?}");
        let accepted = "host: 0.0.0.0\nauth:\n  allow_unauthenticated_network: true\n";
        assert!(verdict(accepted).status.is(&CheckStatus::Warn));
        let passwordless = verdict("auth:\n  password_required: true\n");
        assert!(passwordless.detail.contains("auth.password_hash"), "{passwordless:?}");
    }

    #[test]
    fn a_hash_that_matches_nothing_fails() {
        let check = verdict("auth:\n  password_hash: hunter2\n");
        assert!(check.status.is(&CheckStatus::Fail), "{check:?}");
        assert!(!format!("{check:?}").contains("hunter2"), "{check:?}");
    }
}
