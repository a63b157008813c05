//! Dependencies, lints, page files and the program itself (H140, H142, H143, H145).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test program: what it cannot do fails the test that asked"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file below a folder of the checkout whose name ends so.
fn files(folder: &str, ends: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if ends.iter().any(|end| path.to_string_lossy().ends_with(end)) {
                let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Packages of a lock file that lack a checksum or the registry as source.
/// Packages of the workspace have no source.
fn strangers(lock: &str) -> Vec<String> {
    let mut found = Vec::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
            line.map(|line| line.trim_matches('"').to_owned())
        };
        let name = value("name").expect("every package has a name");
        match value("source") {
            None => {}
            Some(source) if source == REGISTRY && value("checksum").is_some() => {}
            Some(source) => found.push(format!("{name} from {source}")),
        }
    }
    found
}

#[test]
fn h140_every_dependency_is_locked_by_checksum_and_from_the_registry() {
    for lock in [
        "Cargo.lock",
        "docs/clients/rust/Cargo.lock",
        "tests/fuzz/Cargo.lock",
        "tools/wasm-bindgen/Cargo.lock",
    ] {
        let text = read(lock);
        assert!(text.matches("[[package]]").count() > 10, "{lock}");
        assert_eq!(strangers(&text), Vec::<String>::new(), "{lock}");
    }
    // A dependency from elsewhere, or one without a checksum, is seen.
    for source in ["git+https://example.org/x#abc", "registry+https://example.org/index", REGISTRY]
    {
        let lock =
            format!("[[package]]\nname = \"x\"\nversion = \"1.0.0\"\nsource = \"{source}\"\n");
        assert_eq!(strangers(&lock).len(), 1, "{source}");
    }
}

#[test]
fn h140_what_may_come_in_is_decided_by_a_gate_that_explains_its_exceptions() {
    let gate = read("deny.toml");
    for rule in [
        "unknown-registry = \"deny\"",
        "unknown-git = \"deny\"",
        "multiple-versions = \"deny\"",
        "wildcards = \"deny\"",
        "unused-allowed-license = \"deny\"",
        "allow-registry = [\"https://github.com/rust-lang/crates.io-index\"]",
    ] {
        assert!(gate.contains(rule), "deny.toml has no `{rule}`");
    }
    assert!(!gate.contains("allow-git"), "deny.toml allows a git source");
    let exceptions = gate.lines().filter(|line| line.trim_start().starts_with("{ crate ="));
    for line in exceptions {
        let reason = line.split("reason = \"").nth(1).and_then(|rest| rest.split('"').next());
        let reason = reason.unwrap_or_else(|| panic!("no reason: {line}"));
        let (date, reason) = reason.split_once(": ").unwrap_or_default();
        let is_date = date.len() == 10 && date.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        assert!(is_date && reason.len() > 5, "no date and reason: {line}");
    }
    // The gate runs, and nothing is built from another lock than the committed one.
    let tests = read("xtask/src/test.rs");
    assert!(tests.contains("\"deny\"") && tests.contains("[\"--hide-inclusion-graph\""));
    for (name, text) in files("xtask/src", &[".rs"]) {
        for verb in ["build", "test", "clippy", "run", "tree"] {
            for part in text.split(&format!("cargo(&[\"{verb}\"")).skip(1) {
                let words = part.split(']').next().unwrap();
                // The fuzzer has a lock of its own, which the same file names.
                let has_own_lock = name.ends_with("fuzz.rs") && text.contains("--manifest-path");
                assert!(words.contains("--locked") || has_own_lock, "{name}: cargo {verb}{words}");
            }
        }
    }
}

/// The one reviewed module for system calls that have no safe form.
const SYSTEM_CALLS: &str = "server/pidfd/";

#[test]
fn h143_unsafe_code_is_in_one_module_and_a_panic_ends_no_process() {
    let workspace = toml_lines::read(&read("Cargo.toml"));
    let lints = |section: &str, line: &str| {
        assert!(toml_lines::has(&workspace, section, line), "[{section}] has no `{line}`");
    };
    lints("workspace.lints.rust", "unsafe_code = \"forbid\"");
    for lint in ["unwrap_used", "expect_used", "indexing_slicing", "await_holding_lock", "todo"] {
        lints("workspace.lints.clippy", &format!("{lint} = \"warn\""));
    }
    // Warnings are errors where it counts.
    assert!(read("xtask/src/test.rs").contains("\"-D\", \"warnings\""));
    let mut members = 0;
    for (name, text) in files("server", &["Cargo.toml"])
        .into_iter()
        .chain(files("shared", &["Cargo.toml"]))
        .chain(files("web", &["Cargo.toml"]))
        .chain(files("tests", &["Cargo.toml"]))
        .chain(files("xtask", &["Cargo.toml"]))
    {
        if name.starts_with("tests/fuzz") {
            continue; // a workspace of its own, for parsers only
        }
        members += 1;
        let manifest = toml_lines::read(&text);
        if name.starts_with(SYSTEM_CALLS) {
            let denied = "unsafe_code = \"deny\"";
            assert!(toml_lines::has(&manifest, "lints.rust", denied), "{name}");
            continue;
        }
        assert!(toml_lines::has(&manifest, "lints", "workspace = true"), "{name}");
    }
    assert!(members > 12, "{members}");
    // Where a panic aborts, one bad request would end every other.
    for profile in ["profile.dev", "profile.release", "profile.test", "profile.bench"] {
        assert!(!toml_lines::has(&workspace, profile, "panic = \"abort\""), "{profile}");
    }
    let words = ["unsafe {", "unsafe fn", "unsafe impl", "#[allow(unsafe", "#[expect(unsafe"];
    for folder in ["server", "shared", "web"] {
        for (name, text) in files(folder, &[".rs"]) {
            if name.starts_with(SYSTEM_CALLS) {
                assert_eq!(text.matches("unsafe {").count(), 2, "{name}: review what was added");
                assert!(!text.contains("unsafe fn") && text.lines().count() < 120, "{name}");
                continue;
            }
            for word in words {
                assert!(!text.contains(word), "{name}: {word}");
            }
        }
    }
}

/// Sections of a manifest with their lines.
mod toml_lines {
    pub type Sections = Vec<(String, Vec<String>)>;

    pub fn read(text: &str) -> Sections {
        let mut found: Sections = vec![(String::new(), Vec::new())];
        for line in text.lines().map(str::trim) {
            match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                Some(name) => found.push((name.to_owned(), Vec::new())),
                None => found.last_mut().unwrap().1.push(line.to_owned()),
            }
        }
        found
    }

    pub fn has(sections: &Sections, section: &str, line: &str) -> bool {
        let of = sections.iter().filter(|(name, _)| name == section);
        of.flat_map(|(_, lines)| lines).any(|own| own == line)
    }
}

/// Hosts of the addresses in a file, except the one that names the SVG format.
fn foreign(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("http") {
        let rest = &text[at..];
        let Some(host) = rest.strip_prefix("https://").or_else(|| rest.strip_prefix("http://"))
        else {
            continue;
        };
        let host: String =
            host.chars().take_while(|c| c.is_ascii_alphanumeric() || ".-".contains(*c)).collect();
        if host != "www.w3.org" && !host.is_empty() {
            found.insert(host);
        }
    }
    found
}

#[test]
fn h142_the_page_is_built_from_this_checkout_alone() {
    let document = read("web/index.html");
    assert_eq!(foreign(&document), BTreeSet::new());
    assert_eq!(foreign("<script src='https://cdn.example/x.js'>").len(), 1);
    for (name, text) in files("web/styles", &[".css"]).into_iter().chain(files("web", &[".svg"])) {
        assert_eq!(foreign(&text), BTreeSet::new(), "{name}");
        assert!(!text.contains("@import url(\"http"), "{name}");
    }
    for (name, text) in files("web", &[".js"]) {
        assert_eq!(foreign(&text), BTreeSet::new(), "{name}");
    }
    // Scripts stand in files or carry the nonce of their reply.
    for tag in document.split("<script").skip(1) {
        let tag = tag.split('>').next().unwrap();
        assert!(tag.contains("src=") || tag.contains("nonce="), "<script{tag}>");
    }
    // The tools that make the page are the pinned ones.
    let pins = read("xtask/src/pins.rs");
    for tool in ["trunk", "wasm-bindgen", "binaryen"] {
        assert!(pins.to_lowercase().contains(tool), "{tool} is not pinned");
    }
    let dist = root().join("dist");
    if !dist.join("index.html").exists() {
        return; // not built here: its sources are checked above
    }
    for entry in fs::read_dir(&dist).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(!name.ends_with(".map"), "a source map: {name}");
        if name.ends_with(".js") {
            let text = fs::read_to_string(&path).unwrap();
            assert!(!text.contains("sourceMappingURL"), "{name}");
        }
    }
}

/// The program under test: without fail points.
fn service() -> PathBuf {
    if let Some(named) = std::env::var_os("SVC_BIN") {
        return named.into();
    }
    let own = std::env::current_exe().unwrap();
    own.parent().and_then(Path::parent).unwrap().join("svc")
}

fn has(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

#[test]
fn h145_the_program_has_no_fail_points_and_no_secret_of_a_sample() {
    let program = fs::read(service()).expect("`cargo build` makes the program under test");
    assert!(has(&program, "SVC_CONFIG"), "the scan finds what is there");
    for word in ["SVC_FAILPOINTS", "correct horse", "hunter2", "changeme"] {
        assert!(!has(&program, word), "`{word}` is in the program");
    }
    if let Some(other) = std::env::var_os("SVC_FAILPOINTS_BIN") {
        assert!(has(&fs::read(other).unwrap(), "SVC_FAILPOINTS"), "the scan finds fail points");
    }
}

/// What stands between backticks in a text.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// A page that names its proofs is worth nothing when they are gone.
#[test]
fn every_proof_that_the_security_pages_name_is_there() {
    let sources: Vec<(String, String)> =
        ["server", "shared", "web/src", "tests/tests", "xtask/src"]
            .iter()
            .flat_map(|folder| files(folder, &[".rs"]))
            .collect();
    let functions: BTreeSet<&str> = sources
        .iter()
        .flat_map(|(_, text)| text.split("fn ").skip(1))
        .filter_map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next())
        .collect();
    let is_test = |word: &str| {
        (word.matches('_').count() >= 4 || word.starts_with("h28_"))
            && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let places = ["server/", "shared/", "web/", "tests/", "xtask/", "docs/", "migrations/"];
    let mut missing = Vec::new();
    let mut found = 0;
    for page in ["docs/asvs.md", "docs/security.md"] {
        let text = read(page);
        for word in quoted(&text) {
            let is_there = if is_test(word) {
                functions.contains(word)
            } else if places.iter().any(|place| word.starts_with(place)) {
                root().join(word).exists()
            } else {
                continue;
            };
            found += 1;
            if !is_there {
                missing.push(format!("{page}: {word}"));
            }
        }
        // A name "in" a file is code there.
        for (at, _) in text.match_indices("` in `") {
            let (before, after) = (&text[..at], &text[at + 6..]);
            let name = before.rsplit('`').next().unwrap();
            let file = after.split('`').next().unwrap();
            if places.iter().any(|place| file.starts_with(place))
                && root().join(file).is_file()
                && !read(file).contains(name)
            {
                missing.push(format!("{page}: {name} in {file}"));
            }
        }
    }
    assert!(found > 200, "{found} names were looked for");
    assert_eq!(missing, Vec::<String>::new());
}

/// What reads input of others, and the target that searches it.
const PARSERS: [(&str, &[&str]); 14] = [
    ("paths, hosts and origins of requests", &["next_path", "origin", "framing"]),
    ("cookies and bearer tokens", &["headers"]),
    ("addresses to clone from", &["clone"]),
    ("the configuration", &["config", "ui_prefs"]),
    (
        "files of the agent",
        &["pointer", "job_files", "registry", "trust", "json_edit", "agent_list"],
    ),
    ("conversations", &["transcript", "tail_lines"]),
    ("logs of bridges", &["agent_log", "exit_cause", "agent_words"]),
    ("the redactor", &["redact"]),
    ("terminals and their keepers", &["terminal", "keeper", "launch_file"]),
    ("frames of pages", &["page_frames"]),
    ("archives", &["archive"]),
    ("records of earlier versions", &["state_json"]),
    ("lines of the Model Context Protocol", &["mcp_lines"]),
    ("ids and their prefixes", &["ids"]),
];

#[test]
fn h144_every_parser_of_foreign_input_is_searched_from_kept_inputs() {
    let targets = read("tests/fuzz/src/targets.rs");
    let listed: BTreeSet<&str> = targets.split('"').skip(1).step_by(2).collect();
    let wanted: BTreeSet<&str> = PARSERS.iter().flat_map(|(_, all)| all.iter().copied()).collect();
    assert_eq!(listed, wanted, "targets, and what is known to be searched");
    for target in wanted {
        let folder = root().join("tests/fuzz/corpus").join(target);
        let kept = fs::read_dir(&folder).map_or(0, Iterator::count);
        assert!(kept > 0, "{target} has no kept input in {}", folder.display());
    }
}
