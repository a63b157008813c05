//! The check `version`: whether a source checkout is behind what was last fetched.
//!
//! Only git's own files are read. Nothing is fetched.

use super::verdict::{passed, warned};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use svc_agent::environment::Variables;
use svc_projects::git_call::compare_with_upstream;
use svc_shared::internal::Check;

const NAME: &str = "version";
/// Longest wait for git.
const ANSWER: Duration = Duration::from_secs(5);

/// The check, where the program was built in a checkout with an upstream.
pub(super) async fn version(program: Option<&Path>, env: &Variables) -> Option<Check> {
    let program = program?.to_owned();
    let checkout = crate::tasks::blocking(move || checkout_of(&program)).await.ok()??;
    let call = compare_with_upstream(env);
    let mut git = tokio::process::Command::new("git");
    git.args(&call.args).current_dir(&checkout).env_clear().envs(&call.env);
    git.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let ran = tokio::time::timeout(ANSWER, git.output()).await.ok()?.ok()?;
    judged(&checkout, &String::from_utf8(ran.stdout).ok().filter(|_| ran.status.success())?)
}

/// The source checkout that a program was built in.
fn checkout_of(program: &Path) -> Option<PathBuf> {
    let is_ours =
        |dir: &&Path| dir.join(".git").exists() && dir.join("server/src/cli/doctor.rs").is_file();
    program.ancestors().skip(1).find(is_ours).map(Path::to_owned)
}

/// Commits that only this checkout has, and commits that only the other side has.
fn judged(checkout: &Path, counts: &str) -> Option<Check> {
    let (own, behind) = counts.trim().split_once('\t')?;
    let (own, behind): (u32, u32) = (own.parse().ok()?, behind.parse().ok()?);
    let local = if own > 0 { format!(" (+{own} local)") } else { String::new() };
    Some(match behind {
        0 => passed(NAME, format!("up to date with what was last fetched{local}")),
        many => {
            let commits = if many == 1 { "commit" } else { "commits" };
            warned(
                NAME,
                format!("{many} {commits} behind what was last fetched{local}"),
                &format!("`git -C {} pull`, then build again", checkout.display()),
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use svc_shared::status::CheckStatus::{Ok as Good, Warn};

    #[test]
    fn commits_of_both_sides_are_counted() {
        for (counts, status, says) in [
            ("0\t0\n", Good, "up to date with what was last fetched"),
            ("2\t0\n", Good, "(+2 local)"),
            ("0\t1\n", Warn, "1 commit behind"),
            ("3\t12\n", Warn, "12 commits behind what was last fetched (+3 local)"),
        ] {
            let check = judged(Path::new("/src/svc"), counts).unwrap();
            assert!(check.status.is(&status) && check.detail.contains(says), "{check:?}");
            assert_eq!(check.hint.is_some(), status == Warn, "{check:?}");
        }
        for odd in ["", "fatal: no upstream", "1", "x\t1"] {
            assert!(judged(Path::new("/"), odd).is_none(), "{odd}");
        }
    }

    fn git(dir: &Path, args: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(args);
        let ran = git.current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    #[tokio::test]
    async fn a_real_checkout_is_compared_without_a_network() {
        let dir = tempfile::tempdir().unwrap();
        let [theirs, ours] = ["theirs", "ours"].map(|name| dir.path().join(name));
        std::fs::create_dir_all(theirs.join("server/src/cli")).unwrap();
        std::fs::write(theirs.join("server/src/cli/doctor.rs"), "").unwrap();
        git(&theirs, &["init", "-q"]);
        git(&theirs, &["add", "."]);
        git(&theirs, &["commit", "-q", "-m", "one"]);
        git(dir.path(), &["clone", "-q", "theirs", "ours"]);
        let program = ours.join("target/debug/svc");
        let env: Variables = std::env::vars_os().collect();
        let check = version(Some(&program), &env).await.unwrap();
        assert!(check.status.is(&Good), "{check:?}");
        git(&theirs, &["commit", "-q", "--allow-empty", "-m", "two"]);
        let check = version(Some(&program), &env).await.unwrap();
        assert!(check.status.is(&Good), "nothing is fetched: {check:?}");
        git(&ours, &["fetch", "-q"]);
        let check = version(Some(&program), &env).await.unwrap();
        assert!(check.status.is(&Warn) && check.detail.starts_with("1 commit behind"), "{check:?}");
        assert!(version(Some(Path::new("/usr/bin/svc")), &env).await.is_none());
    }
}
