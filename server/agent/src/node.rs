//! The directory of nvm's default node version, read from nvm's own files.
//!
//! Servers of the model context protocol are executed directly and need `node` and `npx` on `PATH`.
//! nvm itself is a shell script and is not run (H31). Its alias files contain the same.

use crate::environment::Variables;
use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most aliases to follow: an alias may name another alias.
const MAX_ALIASES: usize = 8;

/// The time limit. A healthy disk is faster, and nobody waits longer for a start.
const LIMIT: Duration = Duration::from_secs(5);

/// Where nvm is installed: `$NVM_DIR`, else `~/.nvm`; `None` if it is not.
#[must_use]
pub fn installation(env: &Variables) -> Option<PathBuf> {
    directory(env).filter(|nvm| nvm.join("versions/node").is_dir() || nvm.join("nvm.sh").is_file())
}

fn directory(env: &Variables) -> Option<PathBuf> {
    let path = |name: &str| {
        let value = env.get(OsStr::new(name)).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    path("NVM_DIR").or_else(|| path("HOME").map(|home| home.join(".nvm")))
}

/// The `bin` directory of nvm's `default` alias, found within 5 s.
/// It is below `$NVM_DIR`, else `~/.nvm`. `None` for every failure: a bridge starts without it.
pub async fn default_node_bin(env: &Variables) -> Option<PathBuf> {
    let nvm = directory(env)?;
    // A plain thread: it may hang on a dead mount longer than the runtime should wait at its end.
    let (tx, rx) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("nvm-default".to_owned())
        .spawn(move || {
            let _ = tx.send(resolve(&nvm)); // nobody waits any more: fine
        })
        .ok()?;
    tokio::time::timeout(LIMIT, rx).await.ok()?.ok()?
}

fn resolve(nvm: &Path) -> Option<PathBuf> {
    let installed = installed(nvm);
    let mut wanted = alias(nvm, "default")?;
    for _ in 0..MAX_ALIASES {
        if let Some(found) = pick(&installed, &wanted) {
            let bin = nvm.join("versions/node").join(found).join("bin");
            return bin.join("node").exists().then_some(bin);
        }
        wanted = alias(nvm, &wanted)?;
    }
    None
}

/// An alias is the name of a version or of another alias.
const LONGEST_ALIAS: u64 = 1024;

/// The content of the alias file of a name.
fn alias(nvm: &Path, name: &str) -> Option<String> {
    // A name must be a path below `alias/`.
    let safe = name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'));
    let file = nvm.join("alias").join(safe.then_some(name)?);
    let bytes = svc_process::files::read_plain(&file, LONGEST_ALIAS).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let first = text.lines().next()?.trim();
    (!first.is_empty()).then(|| first.to_owned())
}

/// Directory names of the installed versions, newest first.
fn installed(nvm: &Path) -> Vec<(Vec<u64>, String)> {
    let entries = fs::read_dir(nvm.join("versions/node")).into_iter().flatten();
    let mut found: Vec<(Vec<u64>, String)> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter_map(|name| Some((numbers(&name)?, name)))
        .collect();
    found.sort_by_key(|(version, _)| Reverse(version.clone()));
    found
}

fn numbers(version: &str) -> Option<Vec<u64>> {
    let digits = version.strip_prefix('v').unwrap_or(version);
    digits.split('.').map(|part| part.parse().ok()).collect()
}

/// The newest installed version that matches nvm's word, if it is a version.
fn pick<'a>(installed: &'a [(Vec<u64>, String)], wanted: &str) -> Option<&'a str> {
    let prefix = match wanted {
        "node" | "stable" => Vec::new(),
        other => numbers(other)?,
    };
    installed
        .iter()
        .find(|(version, _)| version.starts_with(&prefix))
        .map(|(_, name)| name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nvm(aliases: &[(&str, &str)], versions: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in aliases {
            let file = root.path().join("alias").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        for version in versions {
            let bin = root.path().join("versions/node").join(version).join("bin");
            fs::create_dir_all(&bin).unwrap();
            fs::write(bin.join("node"), "").unwrap();
        }
        root
    }

    #[test]
    fn the_default_alias_leads_to_the_newest_fitting_version() {
        let versions = ["v18.20.4", "v20.9.0", "v20.11.1", "v22.1.0"];
        let lts = [("lts/*", "lts/iron\n"), ("lts/iron", "v20.11.1\n")];
        for (default, expected) in [
            ("20\n", Some("v20.11.1")),
            ("v18.20.4", Some("v18.20.4")),
            ("20.9", Some("v20.9.0")),
            ("node", Some("v22.1.0")),
            ("lts/*", Some("v20.11.1")),
            ("99", None),
            ("system", None),
            ("../../etc/passwd", None),
            ("default", None),
            ("", None),
        ] {
            let mut aliases = vec![("default", default)];
            aliases.extend(lts);
            let root = nvm(&aliases, &versions);
            let bin = |version: &str| root.path().join("versions/node").join(version).join("bin");
            assert_eq!(resolve(root.path()), expected.map(bin), "{default:?}");
        }
    }

    #[tokio::test]
    async fn without_nvm_there_is_nothing_to_prepend() {
        let root = tempfile::tempdir().unwrap();
        let env = Variables::from([("HOME".into(), root.path().into())]);
        assert_eq!(default_node_bin(&env).await, None);
        assert_eq!(default_node_bin(&Variables::new()).await, None);
        fs::create_dir_all(root.path().join(".nvm/alias")).unwrap();
        fs::write(root.path().join(".nvm/alias/default"), "20").unwrap();
        let bin = root.path().join(".nvm/versions/node/v20.0.0/bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("node"), "").unwrap();
        assert_eq!(default_node_bin(&env).await, Some(bin));
    }
}
