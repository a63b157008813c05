//! The Debian package: laid out here, packed by `dpkg-deb`.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::tree::{Tree, gzip};
use super::{Release, SHARED};

/// Below `packaging/debian`, and where it is installed.
const UNITS: [(&str, &str); 2] = [
    ("svc@.service", "usr/lib/systemd/system/svc@.service"),
    ("svc.user.service", "usr/lib/systemd/user/svc.service"),
];
/// What the package manager runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Writes `svc_VERSION_amd64.deb`.
pub(super) fn write(release: &Release<'_>, installed: &Tree, out: &Path) -> Result<()> {
    let Release { workspace, version, epoch, target, .. } = release;
    let own = workspace.root.join("packaging/debian");
    let mut tree = installed.clone();
    for (name, path) in UNITS {
        tree.file(path, 0o644, fs::read(own.join(name))?);
    }
    tree.directory("etc/svc", 0o755);
    let text = |name: &str| fs::read(workspace.root.join(name));
    tree.file("usr/share/doc/svc/copyright", 0o644, text("LICENSE")?);
    tree.file("usr/share/doc/svc/CHANGELOG.md.gz", 0o644, gzip(&text("CHANGELOG.md")?)?);
    tree.file("DEBIAN/control", 0o644, control(version, tree.kib(), *target == SHARED));
    for name in SCRIPTS {
        tree.file(&format!("DEBIAN/{name}"), 0o755, fs::read(own.join(name))?);
    }
    let folder = workspace.target.join("package-debian");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    tree.lay(&folder, *epoch)?;
    let mut pack = workspace.command("dpkg-deb");
    pack.args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"])
        .arg(&folder)
        .arg(out.join(format!("svc_{version}_amd64.deb")))
        .env("SOURCE_DATE_EPOCH", epoch.to_string());
    let done = pack.output().context("cannot start dpkg-deb; install the package dpkg")?;
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    ensure!(done.status.success(), "dpkg-deb failed: {words}");
    Ok(())
}

fn control(version: &str, kib: usize, is_shared: bool) -> String {
    let depends = if is_shared { "Depends: libc6\n" } else { "" };
    format!(
        "Package: svc\nVersion: {version}\nArchitecture: amd64\nSection: admin\nPriority: optional\n\
         Maintainer: The svc authors <svc@localhost>\nInstalled-Size: {kib}\n{depends}\
         Recommends: ca-certificates, git\n\
         Description: remote-control bridges of coding agents\n \
         Starts, tracks and shows Claude Code processes that are driven from a phone\n \
         or another computer: in the browser, in the terminal and over a JSON API.\n"
    )
}
