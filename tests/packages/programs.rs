//! Digests, and how the programs are linked.

use crate::{good, package, packages, path, run};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// Unpacks the archive of both programs.
pub(crate) fn unpacked() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let archives = fs::read_dir(packages()).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &std::path::Path| crate::name_of(path);
    let both = archives
        .into_iter()
        .find(|path| name(path).ends_with(".tar.gz") && !name(path).starts_with("svc-hosted"));
    let both = both.expect("an archive of the programs");
    run("tar", &["-xzf", path(&both), "-C", path(dir.path())]);
    dir
}

#[test]
fn h141_every_file_has_the_digest_that_is_published() {
    let listed = good(Command::new("sha256sum").args(["-c", "SHA256SUMS"]).current_dir(packages()));
    let files = fs::read_dir(packages()).unwrap().map(|entry| entry.unwrap().file_name());
    for name in files.map(|name| name.into_string().unwrap()) {
        let is_told = listed.contains(&format!("{name}: OK"));
        assert!(is_told || name.starts_with("SHA256SUMS"), "{name} is not in the list");
    }
}

#[test]
fn h141_the_programs_are_static_and_as_hardened_as_the_platform_can() {
    let dir = unpacked();
    for name in ["svc", "svc-hosted"] {
        let program = dir.path().join(name);
        assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o755);
        let told = run("readelf", &["-W", "-h", "-l", "-d", path(&program)]);
        assert!(told.contains("DYN (Position-Independent Executable"), "{name}: {told}");
        assert!(told.contains("GNU_RELRO"), "{name}: {told}");
        assert!(told.contains("NOW") && told.contains("PIE"), "{name}: {told}");
        for foreign in ["INTERP", "(NEEDED)", "(RPATH)", "(RUNPATH)", "(TEXTREL)"] {
            assert!(!told.contains(foreign), "{name} has {foreign}: {told}");
        }
        let stack = told.lines().find(|line| line.contains("GNU_STACK")).expect("a stack");
        assert!(stack.contains("RW ") && !stack.contains("RWE"), "{name}: {stack}");
        let loads = told.lines().filter(|line| line.trim_start().starts_with("LOAD"));
        assert!(loads.clone().count() > 1, "{told}");
        assert!(loads.into_iter().all(|line| !line.contains("RWE")), "{told}");
    }
    assert!(dir.path().join("LICENSE").is_file());
}

#[test]
fn h141_the_programs_name_no_folder_of_the_machine_that_built_them() {
    let dir = unpacked();
    for name in ["svc", "svc-hosted"] {
        let program = fs::read(dir.path().join(name)).unwrap();
        let homes = std::env::home_dir().into_iter().chain(std::env::current_dir());
        for folder in homes {
            let folder = folder.to_str().unwrap().to_owned() + "/";
            let held = program.windows(folder.len()).any(|part| part == folder.as_bytes());
            assert!(!held, "{name} names {folder}");
        }
    }
}

#[test]
fn the_debian_package_and_the_archive_hold_the_same_programs() {
    let (dir, root) = (unpacked(), tempfile::tempdir().unwrap());
    run("dpkg-deb", &["-x", path(&package(".deb")), path(root.path())]);
    for name in ["svc", "svc-hosted"] {
        let installed = fs::read(root.path().join("usr/bin").join(name)).unwrap();
        assert!(installed == fs::read(dir.path().join(name)).unwrap(), "{name} differs");
    }
}
