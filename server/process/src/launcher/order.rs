//! The order to a launcher, as one line of JSON.

use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use svc_ports::process::LaunchSpec;

/// Longest order in bytes.
///
/// It is mostly arguments and environment, which the kernel limits to 6 MiB. JSON makes control
/// characters six times as long, but nobody has many of them.
const MAX_BYTES: u64 = 16 << 20;

/// Text of the operating system, which need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum RawText {
    Text(String),
    Bytes { hex: String },
}

impl RawText {
    pub(super) fn new(text: &OsStr) -> Self {
        match text.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes { hex: hex::encode(text.as_bytes()) },
        }
    }

    pub(super) fn to_os_string(&self) -> io::Result<OsString> {
        match self {
            Self::Text(text) => Ok(OsString::from(text)),
            Self::Bytes { hex } => hex::decode(hex)
                .map(OsString::from_vec)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
        }
    }
}

/// What describes a terminal in the environment, whoever set it.
const OF_TERMINALS: [&str; 4] = ["TERM", "COLORTERM", "COLUMNS", "LINES"];

/// The environment of the agent.
///
/// On a terminal it describes the one that the keeper emulates.
///
/// `COLUMNS` and `LINES` would hide later changes of the size.
fn environment(spec: &LaunchSpec) -> impl Iterator<Item = (&OsStr, &OsStr)> {
    let on_terminal = spec.terminal.is_some();
    let given = spec.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    let given = given.filter(move |(name, _)| {
        !on_terminal || !OF_TERMINALS.iter().any(|of_terminal| name == of_terminal)
    });
    let ours = [("TERM", "xterm-256color"), ("COLORTERM", "truecolor")];
    let ours = ours.into_iter().filter(move |_| on_terminal);
    given.chain(ours.map(|(name, value)| (OsStr::new(name), OsStr::new(value))))
}

/// Everything a launcher needs to know.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) launch_id: String,
    pub(super) program: RawText,
    pub(super) args: Vec<RawText>,
    pub(super) env: Vec<(RawText, RawText)>,
    pub(super) cwd: RawText,
    pub(super) umask: u32,
    pub(super) output: RawText,
    pub(super) identity_file: RawText,
    /// Standard error is the terminal that the agent gets as its own.
    #[serde(default)]
    pub(super) terminal: bool,
}

impl Order {
    pub(super) fn new(spec: &LaunchSpec) -> Self {
        Self {
            launch_id: spec.launch_id.as_str().to_owned(),
            program: RawText::new(spec.program.as_os_str()),
            args: spec.args.iter().map(|arg| RawText::new(arg)).collect(),
            env: environment(spec)
                .map(|(name, value)| (RawText::new(name), RawText::new(value)))
                .collect(),
            cwd: RawText::new(spec.cwd.as_os_str()),
            umask: spec.umask,
            output: RawText::new(spec.output.as_os_str()),
            identity_file: RawText::new(spec.identity_file.as_os_str()),
            terminal: spec.terminal.is_some(),
        }
    }

    /// Arguments as bytes: the program and what follows it.
    pub(super) fn argv(&self) -> io::Result<Vec<OsString>> {
        std::iter::once(&self.program).chain(&self.args).map(RawText::to_os_string).collect()
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
    pub(super) fn read(input: &mut impl BufRead) -> io::Result<Self> {
        let mut line = Vec::new();
        input.take(MAX_BYTES).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        Ok(serde_json::from_slice(&line)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_utf_8_arrive_unchanged() {
        for bytes in [&b"plain"[..], b"{\"hex\":\"00\"}", b"\xff\xfe=\n", b""] {
            let text = RawText::new(OsStr::from_bytes(bytes));
            let wire = serde_json::to_string(&text).unwrap();
            let back: RawText = serde_json::from_str(&wire).unwrap();
            assert_eq!(back.to_os_string().unwrap().as_bytes(), bytes);
        }
    }

    #[test]
    fn an_order_cut_short_is_no_order() {
        let mut input = &b"{\"launch_id\":\"x\""[..];
        let error = Order::read(&mut input).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
