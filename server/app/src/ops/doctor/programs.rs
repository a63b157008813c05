//! Checks of programs: `program`, `binary:hosted`, `node-toolchain`.

use super::verdict::{failed, passed, warned};
use crate::hosted::{PROGRAM, program_of};
use crate::ops::deps;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use svc_agent::environment::Variables;
use svc_agent::node;
use svc_agent::version::AgentVersion;
use svc_config::Config;
use svc_domain::log_escape::escape;
use svc_shared::internal::Check;

/// Longest wait for a program that is asked for its version.
const ANSWER: Duration = Duration::from_secs(10);
/// Pause before a program that is still open for writing is started again.
const CLOSED: Duration = Duration::from_millis(20);

/// Whether the program that runs is still at `path`, where it was when it began.
///
/// Later nobody can ask for that path: the kernel names the file by where it was moved to.
pub(super) fn own_program(path: Option<&Path>) -> Check {
    const NAME: &str = "program";
    let (Some(path), Some(running)) = (path, svc_process::own_program::file_id()) else {
        return warned(NAME, "the file of this program is unknown", "see whether /proc is mounted");
    };
    let found = std::fs::metadata(path).map(|found| (found.dev(), found.ino()));
    judged(path, found, running)
}

fn judged(path: &Path, found: io::Result<(u64, u64)>, running: (u64, u64)) -> Check {
    const NAME: &str = "program";
    match found {
        Ok(found) if found == running => passed(NAME, "the program that runs is the one installed"),
        Ok(_) => warned(
            NAME,
            format!("{} was replaced after the service had started", path.display()),
            "begin the installed one: `svc restart`",
        ),
        Err(error) => failed(
            NAME,
            format!("{}: {error}; the service cannot start again", path.display()),
            "install svc there again before the service ends",
        ),
    }
}

/// Whether the daemon of Direct Sessions is there, in a version that fits.
/// Nothing when it is off.
pub(super) async fn hosted(config: &Config, env: &Variables, wanted: &str) -> Option<Check> {
    const NAME: &str = "binary:hosted";
    if !config.hosted.enabled {
        return None;
    }
    let install = "install svc-hosted of the same release beside svc or by `svc deps install hosted`, or set \
                   hosted.binary";
    let program = match program_of(config, env) {
        Ok(program) => program,
        Err(error) => return Some(warned(NAME, error.to_string(), install)),
    };
    Some(match version_of(&program, env).await {
        Ok(said) => fits(&said, wanted, install),
        Err(why) => warned(NAME, format!("{}: {why}", program.display()), install),
    })
}

/// What a program says to `--version`, or why it says nothing.
pub(crate) async fn version_of(program: &Path, env: &Variables) -> Result<String, String> {
    let mut command = tokio::process::Command::new(program);
    command.arg("--version").env_clear().envs(env).current_dir("/").stdin(Stdio::null());
    command.kill_on_drop(true);
    let answer = async {
        loop {
            match command.output().await {
                // A process that began while the program was written still has it open.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                    tokio::time::sleep(CLOSED).await;
                }
                answer => return answer,
            }
        }
    };
    let asked = tokio::time::timeout(ANSWER, answer).await;
    match asked {
        Ok(Ok(done)) if done.status.success() => {
            let said = String::from_utf8_lossy(&done.stdout);
            let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            Ok(escape(first.trim()).chars().take(80).collect())
        }
        Ok(Ok(done)) => Err(format!("--version ended with {}", done.status)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("--version took longer than {} s", ANSWER.as_secs())),
    }
}

/// Whether the installed copy of the daemon is the one that is started.
/// Nothing where none is installed, or where it is.
pub(super) fn shadow(config: &Config, env: &Variables) -> Option<Check> {
    if !config.hosted.enabled {
        return None;
    }
    let installed = deps::directory(config).join(PROGRAM);
    let file = |path: &Path| std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    let own = file(&installed)?;
    let used = program_of(config, env).ok()?;
    (file(&used) != Some(own)).then(|| {
        warned(
            "binary:hosted:shadow",
            format!("{} is used instead of the installed {}", used.display(), installed.display()),
            "remove one of them: `svc deps uninstall hosted`",
        )
    })
}

fn fits(said: &str, wanted: &str, install: &str) -> Check {
    const NAME: &str = "binary:hosted";
    let word = said.rsplit(' ').next().unwrap_or_default();
    let found = word.parse::<AgentVersion>().ok().filter(|found| found.as_str().contains('.'));
    match (found, wanted.parse::<AgentVersion>()) {
        (Some(found), Ok(least)) if found >= least => {
            passed(NAME, format!("{found} (>= {wanted})"))
        }
        (Some(found), Ok(_)) => {
            warned(NAME, format!("{found} is older than this service ({wanted})"), install)
        }
        (None, _) | (_, Err(_)) => {
            let said: String = escape(said).chars().take(80).collect();
            warned(NAME, format!("it does not tell its version ({said})"), install)
        }
    }
}

/// Whether bridges find the node that nvm has as its default.
/// Nothing without nvm.
pub(super) async fn node_toolchain(config: &Config, env: &Variables) -> Option<Check> {
    const NAME: &str = "node-toolchain";
    node::installation(env)?;
    let found = match config.claude.node_from_nvm {
        true => node::default_node_bin(env).await,
        false => None,
    };
    let path = env.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    Some(match found {
        Some(bin) if std::env::split_paths(&path).any(|dir| dir == bin) => {
            passed(NAME, format!("bridges find {}", bin.display()))
        }
        Some(bin) => warned(
            NAME,
            format!("{} is not on the PATH of bridges", bin.display()),
            "restart the service: `svc restart`",
        ),
        None if config.claude.node_from_nvm => warned(
            NAME,
            "nvm is installed, and its alias `default` leads to no installed version",
            "choose one, for example the newest: `nvm alias default node`",
        ),
        None => warned(
            NAME,
            "nvm is installed, and bridges do not get its node (claude.node_from_nvm is false)",
            "set claude.node_from_nvm to true",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_shared::status::CheckStatus::{Fail, Ok as Good, Warn};

    #[test]
    fn the_own_program_is_in_place_replaced_or_missing() {
        let path = Path::new("/opt/svc");
        let missing = io::Error::from(io::ErrorKind::NotFound);
        for (found, status, words) in [
            (Ok((1, 2)), Good, "installed"),
            (Ok((1, 3)), Warn, "replaced"),
            (Err(missing), Fail, "cannot start again"),
        ] {
            let check = judged(path, found, (1, 2));
            assert!(check.status.is(&status) && check.detail.contains(words), "{check:?}");
            assert_eq!(check.hint.is_some(), status != Good, "{check:?}");
        }
        let own = std::env::current_exe().unwrap();
        assert!(own_program(Some(&own)).status.is(&Good), "{:?}", own_program(Some(&own)));
        assert!(own_program(None).status.is(&Warn));
    }

    #[test]
    fn the_version_of_the_daemon_is_compared_and_a_bare_word_is_none() {
        for (said, status, words) in [
            ("svc-hosted 0.2.0", Good, "0.2.0 (>= 0.2.0)"),
            ("svc-hosted 0.10.1", Good, "0.10.1"),
            ("svc-hosted 0.1.9", Warn, "older"),
            ("1234567", Warn, "does not tell"),
            ("usage: something else", Warn, "does not tell"),
            ("", Warn, "does not tell"),
        ] {
            let check = fits(said, "0.2.0", "install it");
            assert!(check.status.is(&status) && check.detail.contains(words), "{said}: {check:?}");
        }
    }
}
