//! `cargo xtask package`: a release, the same bytes from the same commit.
//!
//! Static programs where the compiler has the musl target, an archive of both, a Debian package,
//! an image for containers, a list of what is inside (`CycloneDX`) and the digests of all of these.

mod check;
mod debian;
mod image;
mod tree;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::bootstrap;
use crate::dist;
use crate::progress::{Progress, Step};
use crate::smoke;
use crate::stop::Stop;
use crate::workspace::{self, Workspace};
use tree::Tree;

/// Without it the programs need the C library of the machine.
const STATIC: &str = "x86_64-unknown-linux-musl";
/// What this machine has anyway.
const SHARED: &str = "x86_64-unknown-linux-gnu";
/// System and processor in the names of files.
const PLATFORM: &str = "linux-x86_64";
/// The day that C code may name.
///
/// It is the same for every commit, so that nothing is compiled again.
const DAY: &str = "315532800";
/// Where a build finds what another version may install as its daemon.
const PIN: &str = "SVC_PIN_HOSTED_LINUX_X86_64";

const USAGE: &str =
    "package [--out DIR] [--release-url URL] [--shared] [--sign KEY] [--twice], or package --check";

/// What the caller wants.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Where the files go.
    out: Option<PathBuf>,
    /// Where they will be published: pins the daemon for `svc deps install`.
    release_url: Option<String>,
    /// Link the C library of the machine.
    shared: bool,
    /// The key that gpg signs the digests with.
    sign: Option<String>,
    /// Build it again elsewhere and compare.
    twice: bool,
    /// Nothing is built: what lies there is unpacked, installed and used.
    check: bool,
}

impl Options {
    /// Reads the arguments.
    pub(crate) fn parse(args: &[OsString]) -> Result<Self> {
        let mut options = Self::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let mut value = || {
                let next = rest.next().and_then(|next| next.to_str());
                next.map(ToOwned::to_owned).with_context(|| format!("usage: {USAGE}"))
            };
            match arg.to_str() {
                Some("--out") => options.out = Some(value()?.into()),
                Some("--release-url") => options.release_url = Some(value()?),
                Some("--shared") => options.shared = true,
                Some("--sign") => options.sign = Some(value()?),
                Some("--twice") => options.twice = true,
                Some("--check") => options.check = true,
                _ => bail!("usage: {USAGE}"),
            }
        }
        if let Some(url) = &options.release_url {
            ensure!(url.starts_with("https://"), "--release-url must begin with https://");
        }
        ensure!(!(options.check && options.twice), "--check builds nothing; leave --twice out");
        Ok(options)
    }

    /// What the second build is made with.
    fn again(&self) -> Vec<OsString> {
        let mut args = Vec::new();
        if let Some(url) = &self.release_url {
            args.extend(["--release-url".into(), url.into()]);
        }
        if self.shared {
            args.push("--shared".into());
        }
        args
    }
}

/// What is built, from which commit.
struct Release<'a> {
    progress: &'a Progress,
    workspace: &'a Workspace,
    version: String,
    /// The time of the commit, which is the time of every file.
    epoch: u64,
    target: &'static str,
}

/// Builds everything into one folder.
pub(crate) fn run(progress: &Progress, workspace: &Workspace, options: &Options) -> Result<()> {
    let out = match &options.out {
        Some(out) => env::current_dir()?.join(out),
        None => workspace.target.join("package"),
    };
    if options.check {
        return check::run(progress, workspace, &out);
    }
    let target = if options.shared { SHARED } else { STATIC };
    if !has_target(workspace, target) {
        return Err(Stop::prerequisite(format!(
            "the compiler has no target {target}; run `rustup target add {target}`, or build with \
             --shared"
        )));
    }
    if target == STATIC && workspace::on_path("musl-gcc").is_none() {
        return Err(Stop::prerequisite(
            "no `musl-gcc`, which compiles SQLite for the static program; install it (Debian: \
             `apt-get install musl-tools`), or build with --shared",
        ));
    }
    dist::run(progress, workspace)?;
    bootstrap::inventory(progress, workspace)?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let epoch = commit_time(workspace)?;
    let release = Release { progress, workspace, version, epoch, target };
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("cannot empty {}", out.display()))?;
    }
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    release.make(&out, options)?;
    let sums = sums(&out)?;
    fs::write(out.join("SHA256SUMS"), &sums)?;
    if let Some(key) = &options.sign {
        sign(&mut workspace.command("gpg"), key, &out)?;
    }
    progress.print(&sums);
    progress.say(format_args!("packages are in {}", out.display()));
    if options.twice {
        check::again(progress, workspace, &out, &options.again())?;
    }
    Ok(())
}

/// Signs the digests of a folder.
fn sign(gpg: &mut Command, key: &str, folder: &Path) -> Result<()> {
    gpg.args(["--batch", "--yes", "--armor", "--detach-sign", "--local-user", key]);
    let done = gpg.arg(folder.join("SHA256SUMS")).output().context("cannot start gpg")?;
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    ensure!(done.status.success(), "gpg did not sign: {words}");
    Ok(())
}

impl Release<'_> {
    fn make(&self, out: &Path, options: &Options) -> Result<()> {
        let Self { version, epoch, .. } = self;
        // The daemon first: its digest is in the other program.
        let daemon = fs::read(self.build("svc-hosted", None)?)?;
        let name = format!("svc-hosted-{version}-{PLATFORM}.tar.gz");
        let mut alone = Tree::default();
        alone.file("svc-hosted", 0o755, daemon.clone());
        let archive = alone.tar_gz(*epoch)?;
        let pin = options.release_url.as_ref().map(|url| {
            let url = url.trim_end_matches('/');
            format!("{url}/{name}#sha256={}", tree::digest(&archive))
        });
        fs::write(out.join(name), archive)?;
        let built = self.build("svc-server", pin.as_deref())?;
        ensure!(!smoke::has_fail_points(&built)?, "{} has fail points", built.display());
        let program = fs::read(&built)?;
        let mut both = Tree::default();
        both.file("svc", 0o755, program.clone());
        both.file("svc-hosted", 0o755, daemon.clone());
        both.file("LICENSE", 0o644, fs::read(self.workspace.root.join("LICENSE"))?);
        let archive = both.tar_gz(*epoch)?;
        fs::write(out.join(format!("svc-{version}-{PLATFORM}.tar.gz")), archive)?;
        let installed = self.installed(&built, program, daemon)?;
        debian::write(self, &installed, out)?;
        if self.target == STATIC {
            let image = image::archive(&installed, version, *epoch)?;
            fs::write(out.join(format!("svc-{version}-{PLATFORM}.oci.tar")), image)?;
        } else {
            self.progress.say(format_args!("no image: it has no C library for --shared programs"));
        }
        self.inventory(&out.join(format!("svc-{version}.cdx.json")))
    }

    /// Builds the program of one package; where it is.
    fn build(&self, package: &str, pin: Option<&str>) -> Result<PathBuf> {
        let log = self.workspace.log(&format!("package-{package}"))?;
        let step = Step { name: package, expect: "about 8 min", crates: 300, log: &log };
        let mut cargo = self.workspace.cargo(&["build", "--locked", "--release", "--bins"]);
        cargo.args(["-p", package, "--target", self.target]);
        // Neither the folders of this machine nor the day may be in the bytes.
        let home = cargo_home();
        let folders = [
            (self.workspace.target.as_path(), "/target"),
            (self.workspace.root.as_path(), "/svc"),
            (home.as_path(), "/cargo"),
        ];
        let flags = |option: &str| {
            let mapped = folders.map(|(from, to)| format!("{option}={}={to}", from.display()));
            mapped.join(" ")
        };
        cargo
            .env("RUSTFLAGS", flags("--remap-path-prefix"))
            .env("CFLAGS", flags("-ffile-prefix-map"))
            .env("SOURCE_DATE_EPOCH", DAY)
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true")
            .env_remove(PIN);
        if let Some(pin) = pin {
            cargo.env(PIN, pin);
        }
        if !self.progress.step(&step, &mut cargo)? {
            bail!("{package} does not build, see {}", log.display());
        }
        let name = if package == "svc-server" { "svc" } else { package };
        Ok(self.workspace.target.join(self.target).join("release").join(name))
    }

    /// What lies below `/` where it is installed.
    fn installed(&self, built: &Path, program: Vec<u8>, daemon: Vec<u8>) -> Result<Tree> {
        let mut tree = Tree::default();
        tree.file("usr/bin/svc", 0o755, program);
        tree.file("usr/bin/svc-hosted", 0o755, daemon);
        for (shell, path) in [
            ("bash", "usr/share/bash-completion/completions/svc"),
            ("zsh", "usr/share/zsh/vendor-completions/_svc"),
            ("fish", "usr/share/fish/vendor_completions.d/svc.fish"),
        ] {
            tree.file(path, 0o644, said(built, &["completions", shell])?);
        }
        let pages = self.workspace.target.join("package-man");
        if pages.exists() {
            fs::remove_dir_all(&pages)?;
        }
        said(built, &["man", "--dir", &pages.to_string_lossy()])?;
        for page in fs::read_dir(&pages)? {
            let page = page?;
            let name = page.file_name().to_string_lossy().into_owned();
            let section = name.rsplit('.').next().unwrap_or("1");
            let packed = tree::gzip(&fs::read(page.path())?)?;
            tree.file(&format!("usr/share/man/man{section}/{name}.gz"), 0o644, packed);
        }
        Ok(tree)
    }

    /// What is inside, from the lock file.
    fn inventory(&self, path: &Path) -> Result<()> {
        let mut asked = self.workspace.cargo(&["sbom", "--output-format", "cyclone_dx_json_1_6"]);
        asked.args(["--cargo-package", "svc-server"]);
        let done = asked.output().context("cannot start cargo-sbom")?;
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        ensure!(done.status.success(), "no list of what is inside: {words}");
        let text = String::from_utf8(done.stdout).context("the list is not UTF-8")?;
        fs::write(path, without_chance(&text, self.epoch, &self.workspace.root)?)?;
        Ok(())
    }
}

/// A list without what differs between two runs.
///
/// That is its number, time, folders, our name, and the order.
fn without_chance(text: &str, epoch: u64, root: &Path) -> Result<String> {
    let text = text.replace(&*root.to_string_lossy(), "/svc");
    let mut list: Value = serde_json::from_str(&text).context("the list is not JSON")?;
    if let Some(list) = list.as_object_mut() {
        list.remove("serialNumber");
    }
    if let Some(about) = list.get_mut("metadata").and_then(Value::as_object_mut) {
        about.remove("authors");
        about.insert("timestamp".into(), tree::time(epoch).into());
    }
    in_order(&mut list);
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}

/// Sorts every array: in such a list no order means anything.
fn in_order(value: &mut Value) {
    match value {
        Value::Array(all) => {
            all.iter_mut().for_each(in_order);
            all.sort_by_cached_key(Value::to_string);
        }
        Value::Object(members) => members.values_mut().for_each(in_order),
        _ => {}
    }
}

/// What a program prints when it goes well.
fn said(program: &Path, args: &[&str]) -> Result<Vec<u8>> {
    let mut asked = Command::new(program);
    workspace::forget_cargo(&mut asked);
    let done = asked.args(args).output().with_context(|| format!("{}", program.display()))?;
    ensure!(done.status.success(), "{} {} failed", program.display(), args.join(" "));
    Ok(done.stdout)
}

fn has_target(workspace: &Workspace, target: &str) -> bool {
    let found = workspace.command("rustc").args(["--print", "sysroot"]).output();
    found.is_ok_and(|found| {
        let sysroot = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        Path::new(&sysroot).join("lib/rustlib").join(target).join("lib").is_dir()
    })
}

fn cargo_home() -> PathBuf {
    let set = workspace::set("CARGO_HOME").map(PathBuf::from);
    set.unwrap_or_else(|| env::home_dir().unwrap_or_default().join(".cargo"))
}

/// Seconds of the commit since the epoch.
fn commit_time(workspace: &Workspace) -> Result<u64> {
    let done = workspace.command("git").args(["log", "-1", "--format=%ct"]).output()?;
    let text = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    text.parse().context("git does not tell the time of the commit")
}

/// The digests of all files of a folder, in the form of `sha256sum`.
fn sums(folder: &Path) -> Result<String> {
    let mut names: Vec<String> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    names.sort();
    let mut lines = String::new();
    for name in names {
        let digest = tree::digest(&fs::read(folder.join(&name))?);
        lines.push_str(&format!("{digest}  {name}\n"));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn arguments_are_read_and_anything_else_is_a_usage_error() {
        let parse = |words: &str| {
            let args: Vec<OsString> = words.split_whitespace().map(Into::into).collect();
            Options::parse(&args)
        };
        let options = parse("--out x --release-url https://h/r --shared --sign me").unwrap();
        assert_eq!((options.out, options.shared), (Some("x".into()), true));
        assert_eq!(parse("").unwrap(), Options::default());
        for bad in ["--out", "x", "--release-url http://h", "--check --twice"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn h141_a_list_of_what_is_inside_has_no_chance_in_it() {
        let made = |number: &str, author: &str, root: &str, components: &str| {
            let text = format!(
                r#"{{"serialNumber": "{number}", "components": [{components}],
                "metadata": {{"authors": [{{"name": "{author}"}}], "timestamp": "{number}"}},
                "x": "file://{root}/svc"}}"#
            );
            without_chance(&text, 86_400, Path::new(root)).unwrap()
        };
        let clean = made("1", "me", "/here", r#"{"name": "a"}, {"name": "b"}"#);
        assert_eq!(clean, made("2", "you", "/there/now", r#"{"name": "b"}, {"name": "a"}"#));
        for private in ["serialNumber", "authors", "\"me\"", "/here"] {
            assert!(!clean.contains(private), "{private}: {clean}");
        }
        assert!(clean.contains("\"timestamp\": \"1970-01-02T00:00:00Z\""), "{clean}");
        assert!(clean.contains("file:///svc/svc"), "{clean}");
    }

    #[test]
    fn h141_the_digests_are_signed_so_that_anybody_can_verify_it() {
        let folder = env::temp_dir().join(format!("xtask-sign-{}", std::process::id()));
        let (home, out) = (folder.join("keys"), folder.join("out"));
        for dir in [&folder, &home, &out] {
            fs::create_dir(dir).unwrap();
        }
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(out.join("SHA256SUMS"), "digests").unwrap();
        let gpg = || {
            let mut gpg = Command::new("gpg");
            gpg.env("GNUPGHOME", &home);
            gpg
        };
        let passed = |command: &mut Command| {
            command.output().unwrap_or_else(|error| panic!("{command:?}: {error}")).status.success()
        };
        let mut key = gpg();
        key.args(["--batch", "--passphrase", "", "--quick-gen-key", "us@example.org", "ed25519"]);
        assert!(passed(&mut key));
        sign(&mut gpg(), "us@example.org", &out).unwrap();
        let signature = out.join("SHA256SUMS.asc");
        let verify = |name: &str| passed(gpg().arg("--verify").arg(&signature).arg(out.join(name)));
        assert!(verify("SHA256SUMS"));
        fs::write(out.join("others"), "digest").unwrap();
        assert!(!verify("others"));
        assert!(sign(&mut gpg(), "nobody@example.org", &out).is_err());
        let _ = Command::new("gpgconf").args(["--kill", "all"]).env("GNUPGHOME", &home).status();
        fs::remove_dir_all(&folder).unwrap();
    }
}
