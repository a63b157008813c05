//! How git is called to make a project (H41, `command-line.md` §11).
//!
//! Nothing but git itself runs.
//!
//! No hook, template, filter, helper, submodule, prompt or configuration of the machine takes part.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Variables that git is given, besides the fixed ones, if the service has them.
///
/// A home and an agent for the keys of this user, and which authorities the machine believes.
const PASSED: [&str; 9] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SSH_AUTH_SOCK",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Settings of every call.
const SETTINGS: [&str; 20] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.askPass=",
    "credential.helper=",
    "credential.interactive=false",
    "protocol.file.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.uriProtocols=",
    "transfer.bundleURI=false",
    "promisor.acceptFromServer=none",
    "http.followRedirects=false",
    "http.cookieFile=",
    "gc.auto=0",
    "maintenance.auto=false",
    "checkout.workers=1",
    "init.defaultBranch=main",
    "advice.detachedHead=false",
];

/// Arguments and environment of one call of git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitCall {
    /// After the program.
    pub args: Vec<OsString>,
    /// The whole environment.
    pub env: BTreeMap<OsString, OsString>,
}

/// How git reaches the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way<'a> {
    /// Through a forwarder of ours on this port of the loopback address.
    Https {
        /// The port.
        forwarder: u16,
        /// File for git's trace of headers.
        trace: &'a Path,
    },
    /// By ssh to this address.
    Ssh {
        /// The checked address.
        address: std::net::IpAddr,
        /// The name whose key is expected.
        host: &'a str,
        /// The port.
        port: u16,
    },
}

/// `git init` in the working directory.
#[must_use]
pub fn init(environment: &BTreeMap<OsString, OsString>) -> GitCall {
    let mut call = begun(environment);
    call.args.extend(["init", "--quiet", "--template="].map(OsString::from));
    call
}

/// Counts the commits on each side of what was last fetched.
///
/// Reads git's own files and nothing else.
#[must_use]
pub fn compare_with_upstream(environment: &BTreeMap<OsString, OsString>) -> GitCall {
    let mut call = begun(environment);
    let fixed = ["rev-list", "--left-right", "--count", "HEAD...@{upstream}"];
    call.args.extend(fixed.map(OsString::from));
    call
}

/// `git clone` of a checked address into a directory that does not exist.
#[must_use]
pub fn clone(
    environment: &BTreeMap<OsString, OsString>,
    url: &str,
    way: &Way<'_>,
    shallow: bool,
    into: &Path,
) -> GitCall {
    let mut call = begun(environment);
    let mut set = |name: &str, value: OsString| call.env.insert(name.into(), value);
    match way {
        Way::Https { forwarder, trace } => {
            set("GIT_ALLOW_PROTOCOL", "https".into());
            set("GIT_TRACE_CURL", trace.into());
            set("GIT_TRACE_CURL_NO_DATA", "1".into());
            call.args
                .extend(["-c".into(), format!("http.proxy=http://127.0.0.1:{forwarder}").into()]);
        }
        Way::Ssh { address, host, port } => {
            set("GIT_ALLOW_PROTOCOL", "ssh".into());
            set("GIT_SSH_VARIANT", "ssh".into());
            set("GIT_SSH_COMMAND", ssh(*address, host, *port).into());
        }
    }
    let fixed = ["clone", "--progress", "--no-tags", "--no-recurse-submodules", "--template="];
    call.args.extend(fixed.map(OsString::from));
    if shallow {
        call.args.extend(["--depth".into(), "1".into()]);
    }
    call.args.extend(["--".into(), url.into(), into.into()]);
    call
}

fn begun(environment: &BTreeMap<OsString, OsString>) -> GitCall {
    let passed = PASSED.iter().filter_map(|name| {
        let name = OsStr::new(name);
        Some((name.to_owned(), environment.get(name)?.clone()))
    });
    let fixed = [
        ("LC_ALL", "C"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ASKPASS", ""),
        ("SSH_ASKPASS", ""),
        ("SSH_ASKPASS_REQUIRE", "never"),
        ("GIT_LFS_SKIP_SMUDGE", "1"),
        ("GIT_NO_LAZY_FETCH", "1"),
    ];
    let fixed = fixed.map(|(name, value)| (name.into(), value.into()));
    let mut args: Vec<OsString> = vec!["--no-pager".into()];
    args.extend(SETTINGS.into_iter().flat_map(|setting| ["-c".into(), setting.into()]));
    GitCall { args, env: passed.chain(fixed).collect() }
}

/// The first value of an option counts, so that no file of this user changes these.
///
/// Host and address have letters, digits and `.:-_[]` only: nothing that a shell reads.
fn ssh(address: std::net::IpAddr, host: &str, port: u16) -> String {
    let alias = match port {
        22 => host.to_owned(),
        other => format!("[{host}]:{other}"),
    };
    let options = [
        "BatchMode=yes",
        "StrictHostKeyChecking=accept-new",
        "CheckHostIP=no",
        "CanonicalizeHostname=no",
        "ProxyCommand=none",
        "ProxyJump=none",
        "ControlMaster=no",
        "ControlPath=none",
        "PermitLocalCommand=no",
        "ForwardAgent=no",
        "ForwardX11=no",
        "ClearAllForwardings=yes",
        "Tunnel=no",
        "ConnectTimeout=20",
        "ServerAliveInterval=15",
    ];
    let mut command = format!("ssh -o HostName={address} -o 'HostKeyAlias={alias}'");
    for option in options {
        command.push_str(" -o ");
        command.push_str(option);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> BTreeMap<OsString, OsString> {
        let pairs = [
            ("PATH", "/usr/bin"),
            ("HOME", "/h"),
            ("SSH_AUTH_SOCK", "/s"),
            ("SECRET", "x"),
            ("https_proxy", "http://elsewhere"),
            ("GIT_DIR", "/elsewhere"),
            ("GIT_SSH_COMMAND", "sh -c x"),
            ("GIT_CONFIG_COUNT", "1"),
        ];
        pairs.map(|(name, value)| (name.into(), value.into())).into()
    }

    #[test]
    fn h41_git_gets_chosen_variables_and_no_configuration_of_the_machine() {
        let trace = Path::new("/t/trace");
        let way = Way::Https { forwarder: 4711, trace };
        let call = clone(&environment(), "https://h/a", &way, true, Path::new("/t/tree"));
        for absent in ["SECRET", "https_proxy", "GIT_DIR", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT"] {
            assert!(!call.env.contains_key(OsStr::new(absent)), "{absent}");
        }
        let value = |name: &str| call.env.get(OsStr::new(name)).and_then(|value| value.to_str());
        assert_eq!(value("HOME"), Some("/h"));
        assert_eq!(value("GIT_CONFIG_GLOBAL"), Some("/dev/null"));
        assert_eq!(value("GIT_ALLOW_PROTOCOL"), Some("https"));
        let args: Vec<_> = call.args.iter().map(|arg| arg.to_str().unwrap()).collect();
        assert!(args.contains(&"http.proxy=http://127.0.0.1:4711"));
        assert!(args.contains(&"core.hooksPath=/dev/null"));
        assert!(args.ends_with(&["--depth", "1", "--", "https://h/a", "/t/tree"]));
    }

    #[test]
    fn h46_ssh_dials_the_checked_address_and_expects_the_key_of_the_name() {
        let way =
            Way::Ssh { address: "2606:4700::1".parse().unwrap(), host: "h.example", port: 2222 };
        let call =
            clone(&environment(), "ssh://git@h.example:2222/a", &way, false, Path::new("/t"));
        let ssh = call.env.get(OsStr::new("GIT_SSH_COMMAND")).unwrap().to_str().unwrap();
        assert!(ssh.starts_with(
            "ssh -o HostName=2606:4700::1 -o 'HostKeyAlias=[h.example]:2222' -o BatchMode=yes"
        ));
        assert!(ssh.contains("ProxyCommand=none") && ssh.contains("ControlPath=none"));
        assert!(!call.env.contains_key(OsStr::new("GIT_TRACE_CURL")));
    }
}
