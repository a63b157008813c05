//! Use-cases: list, install and remove optional parts (`command-line` §8).
//!
//! A part is a program in `deps/bin` of the state directory. It is found there by the same search
//! that starts it, so list, doctor and launcher cannot disagree. What is installed is compared with
//! a pinned digest, or with one that the caller vouches for, before anything is made of it (H124).

mod error;
mod fetch;
mod place;
mod table;

pub use error::DepsError;
pub(crate) use place::directory;
pub use table::Pin;

use crate::VERSION;
use crate::agent::Agent;
use crate::hosted::program_of;
use crate::ops::audit::{Audit, Change, Scope, Surface};
use crate::ops::doctor::programs::version_of;
use crate::tasks::blocking;
use place::DIRECTORY;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::env::consts::{ARCH, OS};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use svc_archive::{is_archive, read_program};
use svc_config::Config;
use svc_process::{files, programs};
pub(crate) use table::digest_of;
use table::{EXTRAS, Extra, Kind, PINS};

/// Permission bits of an installed program.
const PROGRAM_BITS: u32 = 0o755;
/// What a program of Linux begins with.
const ELF: &[u8] = b"\x7fELF";

/// The optional parts of one installation.
pub struct Deps {
    config: Arc<Config>,
    agent: Arc<Agent>,
    audit: Arc<Audit>,
    pins: Vec<Pin>,
}

/// One part as it stands on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedExtra {
    /// Its name in commands.
    pub extra: &'static str,
    /// The program or package it comes as.
    pub dist: &'static str,
    /// How it stands.
    pub status: ExtraStatus,
    /// What was found, or what to do.
    pub detail: String,
}

/// How an optional part stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExtraStatus {
    /// It is in `svc` itself.
    BuiltIn,
    /// It is found and used.
    Loaded,
    /// It is found, and something older runs still.
    Installed,
    /// It is not there.
    Missing,
    /// It belongs to another system.
    #[serde(rename = "n/a")]
    Elsewhere,
}

impl ExtraStatus {
    /// The word in tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Loaded => "loaded",
            Self::Installed => "installed",
            Self::Missing => "missing",
            Self::Elsewhere => "n/a",
        }
    }
}

/// What somebody offers to install.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// A file of this machine instead of the download.
    pub from: Option<PathBuf>,
    /// The digest that the caller vouches for, instead of the pinned one.
    pub sha256: Option<String>,
}

/// What would be installed, to be shown before it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstallPlan {
    /// Its name in commands.
    pub extra: &'static str,
    /// Where it comes from: an address or a file.
    pub source: String,
    /// Its version, where that is known before it is there.
    pub version: Option<&'static str>,
    /// The digest that it must have.
    pub sha256: String,
    /// Where it goes.
    pub target: PathBuf,
    /// The digest is the caller's and not one of this version.
    pub own_digest: bool,
    #[serde(skip)]
    from: Option<PathBuf>,
}

/// A part that was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstalledExtra {
    /// Its name in commands.
    pub extra: &'static str,
    /// Where it is.
    pub path: PathBuf,
    /// The digest of what it was read from.
    pub sha256: String,
    /// Something older runs still.
    pub restart_needed: bool,
}

impl Deps {
    pub(crate) fn new(config: &Arc<Config>, agent: &Arc<Agent>, audit: &Arc<Audit>) -> Self {
        let pins = PINS.iter().flatten().copied().collect();
        let (config, agent, audit) = (Arc::clone(config), Arc::clone(agent), Arc::clone(audit));
        Self { config, agent, audit, pins }
    }

    /// Every optional part.
    pub async fn list(&self) -> Vec<ListedExtra> {
        let mut all = Vec::new();
        for extra in &EXTRAS {
            let (status, detail) = match extra.kind {
                Kind::BuiltIn => (ExtraStatus::BuiltIn, "part of svc".to_owned()),
                Kind::Elsewhere(system) => (ExtraStatus::Elsewhere, format!("only for {system}")),
                Kind::Program { otherwise, .. } => self.state_of(extra, otherwise).await,
            };
            let Extra { name, dist, .. } = *extra;
            all.push(ListedExtra { extra: name, dist, status, detail });
        }
        all
    }

    async fn state_of(&self, extra: &Extra, otherwise: &str) -> (ExtraStatus, String) {
        let env = self.agent.environment();
        let program = match program_of(&self.config, &env) {
            Ok(program) => program,
            Err(why) => {
                let how = match self.pin(extra) {
                    Some(_) => format!("svc deps install {}", extra.name),
                    None => format!("no pinned download in this version; {otherwise}"),
                };
                return (ExtraStatus::Missing, format!("{why} -> {how}"));
            }
        };
        let version = version_of(&program, &env).await;
        let mut detail = match version {
            Ok(said) => format!("{} ({said})", program.display()),
            Err(why) => format!("{} (its version is unknown: {why})", program.display()),
        };
        if !self.config.hosted.enabled {
            detail.push_str("; Direct Sessions are off (hosted.enabled)");
        }
        if self.is_older_running(&program).await {
            detail.push_str("; a daemon of another file runs, and this one follows it");
            return (ExtraStatus::Installed, detail);
        }
        (ExtraStatus::Loaded, detail)
    }

    /// Whether the daemon that listens is not the program that would be started.
    async fn is_older_running(&self, program: &Path) -> bool {
        let (socket, program) = (self.config.hosted_socket(), program.to_owned());
        let look = move || {
            let pid = programs::listener_of(&socket);
            pid.is_some_and(|pid| !programs::runs_from(pid, &program))
        };
        blocking(look).await.unwrap_or(false)
    }

    fn pin(&self, extra: &Extra) -> Option<&Pin> {
        self.pins.iter().find(|pin| (pin.extra, pin.os, pin.arch) == (extra.name, OS, ARCH))
    }

    /// What an installation would do.
    ///
    /// # Errors
    /// There is nothing that could be installed.
    pub fn plan(&self, name: &str, offer: &Offer) -> Result<InstallPlan, DepsError> {
        let (extra, file, otherwise) = program(name)?;
        let no_build = || DepsError::NoBuild {
            name: extra.name,
            platform: format!("{OS} {}", if ARCH == "aarch64" { "arm64" } else { ARCH }),
            otherwise,
        };
        let given = match &offer.sha256 {
            Some(text) => Some(digest_of(text).ok_or(DepsError::NoDigest)?),
            None => None,
        };
        let pinned = self.pin(extra).and_then(Pin::parts);
        let own_digest = given.is_some();
        let sha256 = match (given, &pinned) {
            (Some(given), _) => given,
            (None, Some((_, digest))) => digest.clone(),
            (None, None) => return Err(no_build()),
        };
        let (source, from) = match (&offer.from, pinned) {
            (Some(file), _) if !file.is_file() => return Err(DepsError::NoFile(file.clone())),
            (Some(file), _) => (file.display().to_string(), Some(file.clone())),
            (None, Some((url, _))) => (url.to_owned(), None),
            (None, None) => return Err(no_build()),
        };
        Ok(InstallPlan {
            extra: extra.name,
            source,
            version: (!own_digest).then_some(VERSION),
            sha256,
            target: directory(&self.config).join(file),
            own_digest,
            from,
        })
    }

    /// Installs what a plan says.
    ///
    /// # Errors
    /// Nothing was installed, and what was there before is there still.
    pub async fn install(&self, plan: InstallPlan) -> Result<InstalledExtra, DepsError> {
        let bytes = match plan.from.clone() {
            Some(file) => blocking(move || read(&file)).await.map_err(DepsError::App)??,
            None => fetch::fetch(&plan.source).await?,
        };
        self.install_bytes(plan, bytes).await
    }

    async fn install_bytes(
        &self,
        plan: InstallPlan,
        bytes: Vec<u8>,
    ) -> Result<InstalledExtra, DepsError> {
        let (_, file, _) = program(plan.extra)?;
        let wanted = plan.sha256.clone();
        // Nothing is made of the bytes before they are known to be the right ones.
        let work = move || {
            let found = hex::encode(Sha256::digest(&bytes));
            if found != wanted {
                return Err(DepsError::Mismatch { wanted, found });
            }
            unpacked(bytes, file)
        };
        let content = blocking(work).await.map_err(DepsError::App)??;
        let key = match plan.own_digest {
            true => format!("sha256:{} (given by --sha256)", plan.sha256),
            false => format!("sha256:{}", plan.sha256),
        };
        let (state_dir, target) = (self.config.state_dir.clone(), plan.target.clone());
        let write = move || install_at(&state_dir, &target, &content);
        let restart_needed = self.audited(plan.extra, "install", vec![key], write).await?;
        let InstallPlan { extra, target: path, sha256, .. } = plan;
        Ok(InstalledExtra { extra, path, sha256, restart_needed })
    }

    /// Removes an installed part. Returns whether it was there.
    ///
    /// # Errors
    /// It is there still.
    pub async fn uninstall(&self, name: &str) -> Result<bool, DepsError> {
        let (extra, file, _) = program(name)?;
        let path = directory(&self.config).join(file);
        if std::fs::symlink_metadata(&path).is_err() {
            return Ok(false);
        }
        let state_dir = self.config.state_dir.clone();
        let remove = move || {
            is_inside(&state_dir, &path)?;
            let running = programs::running_from(&path);
            let running = running.map_err(|cause| at("see what runs from", &path, cause))?;
            if let Some(pid) = running {
                return Err(DepsError::Running { pid, path });
            }
            std::fs::remove_file(&path).map_err(|cause| at("remove", &path, cause))?;
            let parent = path.parent().unwrap_or(&path);
            files::sync_directory(parent).map_err(|cause| at("write", parent, cause))
        };
        self.audited(extra.name, "uninstall", Vec::new(), remove).await?;
        Ok(true)
    }

    /// Changes something after its entry in the audit log is durable.
    async fn audited<T: Send + 'static>(
        &self,
        target: &str,
        action: &'static str,
        keys: Vec<String>,
        work: impl FnOnce() -> Result<T, DepsError> + Send + 'static,
    ) -> Result<T, DepsError> {
        let change = Change {
            surface: Surface::Deps,
            scope: Scope::Global,
            target: target.to_owned(),
            action,
            keys: keys.into_iter().map(Into::into).collect(),
        };
        let who = (self.audit.actor(), self.audit.clock.now());
        self.audit.log.announce(&who, &change).await.map_err(DepsError::App)?;
        let done = blocking(work).await.map_err(DepsError::App).and_then(|done| done);
        if done.is_err() {
            self.audit.log.note_failure(&who, &change).await;
        }
        done
    }
}

/// A part that is a program, with the name of its file.
fn program(name: &str) -> Result<(&'static Extra, &'static str, &'static str), DepsError> {
    let extra = EXTRAS.iter().find(|extra| extra.name == name);
    let extra = extra.ok_or_else(|| DepsError::Unknown(name.chars().take(80).collect()))?;
    let refused = |reason: String| DepsError::NotInstallable { name: extra.name, reason };
    match extra.kind {
        Kind::Program { file, otherwise } => Ok((extra, file, otherwise)),
        Kind::BuiltIn => Err(refused("is part of svc; there is nothing to install".to_owned())),
        Kind::Elsewhere(system) => Err(refused(format!("is only for {system}"))),
    }
}

fn at(operation: &'static str, path: &Path, cause: io::Error) -> DepsError {
    DepsError::Io { operation, path: path.to_owned(), cause }
}

/// A file of a size that is allowed.
fn read(path: &Path) -> Result<Vec<u8>, DepsError> {
    let failed = |cause| at("read", path, cause);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(fetch::LARGEST as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > fetch::LARGEST {
        return Err(failed(io::Error::other("it is larger than 64 MiB")));
    }
    Ok(bytes)
}

/// The program itself, out of an archive or as it is.
fn unpacked(bytes: Vec<u8>, file: &str) -> Result<Vec<u8>, DepsError> {
    let content = if is_archive(&bytes) { read_program(&bytes, file)? } else { bytes };
    if content.starts_with(b"#!") {
        return Ok(content);
    }
    if !content.starts_with(ELF) {
        return Err(DepsError::NoProgram("is neither an archive nor a program of Linux"));
    }
    match is_for_this_processor(&content) {
        true => Ok(content),
        false => Err(DepsError::NoProgram("is a program for another processor")),
    }
}

/// Whether a program of Linux is for the processor that this one is for.
fn is_for_this_processor(content: &[u8]) -> bool {
    let wanted: u16 = match ARCH {
        "x86_64" => 62,
        "aarch64" => 183,
        _ => return true,
    };
    let machine = content.get(18..20).and_then(|bytes| bytes.try_into().ok());
    machine.is_some_and(|bytes| u16::from_le_bytes(bytes) == wanted)
}

/// Refuses what a link leads out of the directory of installed parts.
fn is_inside(state_dir: &Path, path: &Path) -> Result<(), DepsError> {
    let parent = path.parent().unwrap_or(path);
    let real = |path: &Path| path.canonicalize().map_err(|cause| at("find", path, cause));
    match real(parent)? == real(state_dir)?.join(DIRECTORY) {
        true => Ok(()),
        false => Err(DepsError::Outside(parent.to_owned())),
    }
}

/// Puts a program in its place. Returns whether a process runs from the one before.
fn install_at(state_dir: &Path, target: &Path, content: &[u8]) -> Result<bool, DepsError> {
    for link in [state_dir.join("deps"), state_dir.join(DIRECTORY)] {
        if link.is_symlink() {
            return Err(DepsError::Outside(link));
        }
    }
    for directory in [state_dir.to_owned(), state_dir.join("deps"), state_dir.join(DIRECTORY)] {
        files::private_directory(&directory)
            .map_err(|error| at("use", &directory, io::Error::other(error.to_string())))?;
    }
    is_inside(state_dir, target)?;
    let running = programs::running_from(target);
    let running = running.map_err(|cause| at("see what runs from", target, cause))?;
    files::replace_with_mode(target, content, PROGRAM_BITS)
        .map_err(|error| at("write", target, io::Error::other(error.to_string())))?;
    Ok(running.is_some())
}

#[cfg(test)]
mod tests;
