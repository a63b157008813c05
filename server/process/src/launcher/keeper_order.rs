//! The order to a keeper, as one line of JSON.

use super::order::{Order, RawText};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::io::{self, BufRead, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use svc_ports::process::TerminalSpec;
use svc_shared::ids::{InstanceId, ProjectName};

/// Longest order: that of a launcher and a few paths.
const MAX_BYTES: u64 = 17 << 20;

/// What a keeper is told.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeeperOrder {
    launch: Order,
    terminal: Wire,
}

#[derive(Debug, Serialize, Deserialize)]
struct Wire {
    cols: u16,
    rows: u16,
    scrollback_lines: u32,
    sidecar: RawText,
    socket_dir: RawText,
    keeper_log: RawText,
    instance_id: InstanceId,
    project: ProjectName,
    worktree: Option<String>,
    debug_file: Option<RawText>,
    input_allowed: bool,
}

/// The part of an order that the keeper itself needs.
#[derive(Debug, Clone)]
pub struct KeeperTerminal {
    /// What the service asked for.
    pub spec: TerminalSpec,
    /// Working directory of the agent.
    pub cwd: PathBuf,
    /// SHA-256 of the agent's arguments, each ended by a NUL, hexadecimal.
    pub argv_sha256: String,
}

impl KeeperOrder {
    pub(super) fn new(launch: Order, spec: &TerminalSpec) -> Self {
        let terminal = Wire {
            cols: spec.cols,
            rows: spec.rows,
            scrollback_lines: spec.scrollback_lines,
            sidecar: RawText::new(spec.sidecar.as_os_str()),
            socket_dir: RawText::new(spec.socket_dir.as_os_str()),
            keeper_log: RawText::new(spec.keeper_log.as_os_str()),
            instance_id: spec.instance_id.clone(),
            project: spec.project.clone(),
            worktree: spec.worktree.clone(),
            debug_file: spec.debug_file.as_ref().map(|path| RawText::new(path.as_os_str())),
            input_allowed: spec.input_allowed,
        };
        Self { launch, terminal }
    }

    pub(super) fn to_line(&self) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }

    /// Reads the line of an order.
    ///
    /// # Errors
    /// The input ended before the line did, or is no order.
    pub fn read(input: &mut impl BufRead) -> io::Result<Self> {
        let mut line = Vec::new();
        input.take(MAX_BYTES).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_slice(&line)?)
    }

    /// The launch id, for the environment of the launcher.
    #[must_use]
    pub fn launch_id(&self) -> &str {
        &self.launch.launch_id
    }

    /// The line to be given to the launcher.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn launcher_line(&self) -> io::Result<Vec<u8>> {
        self.launch.to_line()
    }

    /// What the keeper itself needs.
    ///
    /// # Errors
    /// A path is not one.
    pub fn terminal(&self) -> io::Result<KeeperTerminal> {
        let path = |text: &RawText| text.to_os_string().map(PathBuf::from);
        let wire = &self.terminal;
        let mut digest = Sha256::new();
        for argument in self.launch.argv()? {
            digest.update(argument.as_bytes());
            digest.update([0]);
        }
        Ok(KeeperTerminal {
            spec: TerminalSpec {
                cols: wire.cols,
                rows: wire.rows,
                scrollback_lines: wire.scrollback_lines,
                sidecar: path(&wire.sidecar)?,
                socket_dir: path(&wire.socket_dir)?,
                keeper_log: path(&wire.keeper_log)?,
                instance_id: wire.instance_id.clone(),
                project: wire.project.clone(),
                worktree: wire.worktree.clone(),
                debug_file: wire.debug_file.as_ref().map(path).transpose()?,
                input_allowed: wire.input_allowed,
            },
            cwd: path(&self.launch.cwd)?,
            argv_sha256: hex::encode(digest.finalize()),
        })
    }
}
