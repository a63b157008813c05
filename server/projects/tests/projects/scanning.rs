//! What is a project and what is not.

use crate::support::{Bench, alias_of, get, names, why};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use svc_projects::{Rules, SkipReason, scan};
use svc_shared::ids::BadProjectName;

/// H37, F24.
#[test]
fn h37_every_legal_directory_name_is_a_project_and_no_other() {
    let long = "x".repeat(255);
    let legal = ["-dash", "a", "has space", "has.dot", "übung", "ａ", &long];
    let bench = Bench::new(&legal);
    for name in [".hidden", "CON", "a ", "b\\c", "tab\there"] {
        bench.make(name);
    }
    fs::create_dir(bench.root.join(OsStr::from_bytes(b"bad\xff"))).unwrap();
    for file in ["README", "nul", "x\u{202e}y"] {
        fs::write(bench.at(file), "").unwrap();
    }
    let projects = bench.scan();
    assert_eq!(names(&projects), ["-dash", "a", "has space", "has.dot", &long, "übung", "ａ"]);
    for (name, expected) in [
        ("CON", SkipReason::Name(BadProjectName::Reserved)),
        ("a ", SkipReason::Name(BadProjectName::NotAComponent)),
        ("b\\c", SkipReason::Name(BadProjectName::NotAComponent)),
        ("tab\there", SkipReason::Name(BadProjectName::Unprintable)),
        ("bad\u{fffd}", SkipReason::Undecodable),
    ] {
        assert_eq!(why(&projects, name), Some(&expected), "{name}");
    }
    assert_eq!(projects.skipped.len(), 5, "hidden entries and files are not worth a word");
    assert_eq!(get(&projects, "a").unwrap().shown_path, bench.at("a"));
}

/// H43.
#[test]
fn h43_names_that_differ_only_in_normalisation_or_case_are_different_projects() {
    let bench = Bench::new(&["\u{e9}", "e\u{301}", "App", "app"]);
    let projects = bench.scan();
    assert_eq!(names(&projects), ["App", "app", "e\u{301}", "\u{e9}"]);
    assert!(projects.iter().all(|project| project.alias_of.is_none()));
}

/// F24.
#[test]
fn of_several_names_of_one_directory_the_first_by_bytes_is_the_project() {
    let bench = Bench::new(&["middle"]);
    bench.link("a-link", "middle");
    bench.link("Z-link", bench.at("a-link"));
    bench.link("outside", bench.base.join("elsewhere"));
    let projects = bench.scan();
    assert_eq!(names(&projects), ["a-link", "middle", "outside", "Z-link"]);
    let aliases = names(&projects).into_iter().map(|name| alias_of(&projects, name));
    assert_eq!(aliases.collect::<Vec<_>>(), [Some("Z-link"), Some("Z-link"), None, None]);
    for name in ["a-link", "middle", "Z-link"] {
        let project = get(&projects, name).unwrap();
        assert_eq!((&project.path, &project.shown_path), (&bench.at("middle"), &bench.at(name)));
    }
    assert_eq!(get(&projects, "outside").unwrap().path, bench.base.join("elsewhere"));
}

#[test]
fn a_link_that_leads_nowhere_is_left_out_with_its_reason() {
    let bench = Bench::new(&[]);
    fs::write(bench.base.join("file"), "").unwrap();
    fs::create_dir(bench.base.join(OsStr::from_bytes(b"bad\xff"))).unwrap();
    bench.link("dangling", "missing");
    bench.link("through-file", bench.base.join("file/below"));
    bench.link("loop", "loop");
    bench.link("file", bench.base.join("file"));
    bench.link("no-text", bench.base.join(OsStr::from_bytes(b"bad\xff")));
    bench.link("too-long", "x".repeat(300));
    let projects = bench.scan();
    assert_eq!(names(&projects), [""; 0]);
    assert_eq!(why(&projects, "dangling"), Some(&SkipReason::Dangling));
    assert_eq!(why(&projects, "through-file"), Some(&SkipReason::Dangling));
    assert_eq!(why(&projects, "loop"), Some(&SkipReason::Loop));
    assert_eq!(why(&projects, "no-text"), Some(&SkipReason::Undecodable));
    assert!(matches!(why(&projects, "too-long"), Some(SkipReason::Inaccessible(_))));
    assert_eq!(why(&projects, "file"), None);
}

/// H38.
#[test]
fn h38_the_service_s_own_places_and_what_contains_them_are_no_projects() {
    let bench = Bench::new(&[]);
    for (name, target) in
        [("state", "home/state"), ("home", "home"), ("above", ""), ("conf", "config")]
    {
        bench.link(name, bench.base.join(target));
    }
    bench.link("everything", "/");
    bench.link("round-about", bench.base.join("home/code/../state"));
    bench.link("fine", bench.base.join("home/code"));
    let projects = bench.scan();
    assert_eq!(names(&projects), ["fine"]);
    for name in ["state", "home", "above", "conf", "everything", "round-about"] {
        assert_eq!(why(&projects, name), Some(&SkipReason::Refused), "{name}");
    }

    let rules = Rules { root: bench.base.clone(), ..bench.rules() };
    let projects = scan(&rules);
    assert_eq!(names(&projects), ["elsewhere", "projects"]);
    assert_eq!(
        why(&projects, "home"),
        Some(&SkipReason::Refused),
        "a directory is no better than a link"
    );
    let only_root = scan(&Rules { root: bench.root.clone(), refused: vec![], private: vec![] });
    assert_eq!(why(&only_root, "everything"), Some(&SkipReason::Refused));
}

/// H41: what a repository brings along decides nothing by where it points.
#[test]
fn facts_about_the_agent_s_files_are_read_without_following_links() {
    let bench = Bench::new(&["plain", "full/.claude", "links", "odd"]);
    fs::write(bench.at("full/CLAUDE.md"), "").unwrap();
    symlink("/nonexistent/a", bench.at("links/CLAUDE.md")).unwrap();
    symlink("/nonexistent/b", bench.at("links/.claude")).unwrap();
    bench.make("odd/CLAUDE.md");
    fs::write(bench.at("odd/.claude"), "").unwrap();
    let pipe = bench.at("odd/.git");
    mknodat(CWD, pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let projects = bench.scan();
    let facts = |name: &str| {
        let project = get(&projects, name).unwrap();
        (project.has_claude_md, project.has_claude_dir, project.is_git_repo())
    };
    assert_eq!(facts("plain"), (false, false, false));
    assert_eq!(facts("full"), (true, true, false));
    assert_eq!(facts("links"), (true, true, false));
    assert_eq!(facts("odd"), (false, false, false));
}

#[test]
fn a_root_that_is_a_link_is_shown_as_configured_and_used_as_it_is() {
    let bench = Bench::new(&["app"]);
    let root = bench.base.join("link-to-root");
    symlink(&bench.root, &root).unwrap();
    let projects = scan(&Rules { root: root.clone(), refused: vec![], private: vec![] });
    let app = get(&projects, "app").unwrap();
    assert_eq!((&app.path, &app.shown_path), (&bench.at("app"), &root.join("app")));
}

#[test]
fn a_root_that_cannot_be_read_is_an_empty_list_with_the_reason() {
    let bench = Bench::new(&[]);
    fs::write(bench.at("file"), "").unwrap();
    for root in ["missing", "file", "file/below"] {
        let projects = scan(&Rules { root: bench.at(root), refused: vec![], private: vec![] });
        assert!(projects.is_empty());
        let trouble = projects.trouble.unwrap();
        assert!(trouble.contains("projects_root") && trouble.contains(root), "{trouble}");
    }
}

/// H38: links to credentials, or to what starts with a login.
#[test]
fn h38_links_into_private_places_and_to_the_root_itself_are_no_projects() {
    let bench = Bench::new(&["app"]);
    let private = ["home/.ssh", "home/.claude", "home/state"];
    for place in ["home/.ssh/keys", "home/.claude/projects/x", "home/state/logs", "home/.sshd"] {
        fs::create_dir_all(bench.base.join(place)).unwrap();
    }
    for (name, target) in [
        ("root", "projects"),
        ("above", ""),
        ("ssh", "home/.ssh"),
        ("keys", "home/.ssh/keys"),
        ("agent", "home/.claude"),
        ("sessions", "home/.claude/projects/x"),
        ("logs", "home/state/logs"),
        ("other", "home/.sshd"),
        ("code", "home/code"),
    ] {
        bench.link(name, bench.base.join(target));
    }
    let private = private.map(|place| bench.base.join(place)).to_vec();
    let projects = scan(&Rules { private: private.clone(), ..bench.rules() });
    assert_eq!(names(&projects), ["app", "code", "other"]);
    assert_eq!(projects.skipped.len(), 7, "{:?}", projects.skipped);

    // Projects that are kept in such a place on purpose are projects.
    let inside = bench.base.join("home/.claude/projects");
    let projects = scan(&Rules { root: inside, private, ..bench.rules() });
    assert_eq!(names(&projects), ["x"]);
}
