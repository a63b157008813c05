//! The house rules that the compiler does not check.
//!
//! Who may depend on whom, which modules may name what, which files may import each
//! other, and how long a file may be.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests: a panic is how they fail"
)]

#[path = "layering/cycles.rs"]
mod cycles;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Allowed dependencies between packages, as in `docs/architecture.md`.
const ALLOWED: &[(&str, &[&str])] = &[
    ("svc-shared", &[]),
    ("svc-domain", &["svc-shared"]),
    ("svc-ports", &["svc-domain", "svc-shared"]),
    // Adapters know the rules and the ports, never the use-cases.
    ("svc-watch", &[]),
    ("svc-archive", &[]),
    ("svc-pidfd", &[]),
    ("svc-config", &["svc-domain", "svc-shared"]),
    ("svc-store", &["svc-domain", "svc-shared"]),
    ("svc-tls", &["svc-process"]),
    ("svc-process", &["svc-domain", "svc-pidfd", "svc-ports", "svc-shared"]),
    ("svc-keeper", &["svc-domain", "svc-ports", "svc-process", "svc-shared"]),
    ("svc-hosted", &["svc-domain", "svc-ports", "svc-process", "svc-shared"]),
    ("svc-agent", &["svc-domain", "svc-ports", "svc-process", "svc-shared", "svc-watch"]),
    ("svc-projects", &["svc-domain", "svc-shared", "svc-watch"]),
    (
        "svc-app",
        &[
            "svc-agent",
            "svc-archive",
            "svc-config",
            "svc-domain",
            "svc-hosted",
            "svc-keeper",
            "svc-ports",
            "svc-process",
            "svc-projects",
            "svc-shared",
            "svc-store",
            "svc-tls",
            "svc-watch",
        ],
    ),
    ("svc-http", &["svc-app", "svc-domain", "svc-shared"]),
    ("svc-mcp", &["svc-app", "svc-domain", "svc-shared"]),
    (
        "svc-server",
        &[
            "svc-agent",
            "svc-app",
            "svc-config",
            "svc-domain",
            "svc-http",
            "svc-keeper",
            "svc-mcp",
            "svc-ports",
            "svc-process",
            "svc-projects",
            "svc-shared",
            "svc-store",
            "svc-tls",
            "svc-watch",
        ],
    ),
    // The rules are searched through; nothing of the product uses the search.
    ("svc-model", &["svc-domain", "svc-shared"]),
    ("svc-web", &["svc-shared"]),
    // Black box: it may know the wire, never the code under test.
    ("svc-tests", &["svc-shared"]),
    ("svc-bench", &[]),
    ("svc-skip", &[]),
    ("svc-programs", &[]),
    ("xtask", &[]),
];

/// What the sources below a folder must not name, and where the one exception is.
struct Ban {
    folder: &'static str,
    words: &'static [&'static str],
    except: &'static [&'static str],
}

const BANS: &[Ban] = &[
    // Use-cases know no door.
    Ban {
        folder: "server/app/src",
        words: &["svc_http", "svc_server", "poem::", "poem_openapi", "hyper::", "clap::"],
        except: &[],
    },
    // Decisions take values and return values.
    Ban {
        folder: "server/domain/src",
        words: &[
            "tokio",
            "serde::",
            "std::fs",
            "TcpStream",
            "ToSocketAddrs",
            "std::process",
            "std::thread",
            "std::env",
            "SystemTime",
            "Instant::now",
        ],
        except: &[],
    },
    // The door of requests reaches the outside through use-cases only.
    Ban {
        folder: "server/http/src",
        words: &["svc_store", "svc_agent", "svc_process", "svc_projects", "svc_config", "sqlx"],
        except: &[],
    },
    // So does the server of tools, which is given its use-cases.
    Ban {
        folder: "server/mcp/src",
        words: &["svc_store", "svc_agent", "svc_process", "svc_projects", "svc_config", "sqlx"],
        except: &[],
    },
    // Commands as well; one file names the adapters.
    Ban {
        folder: "server/src",
        words: &["svc_store", "svc_agent", "svc_projects", "svc_watch", "svc_ports", "Host::new"],
        except: &["server/src/compose.rs"],
    },
    Ban { folder: "tests/src", words: &["svc_app", "svc_domain", "svc_config"], except: &[] },
];

/// Most files that may import each other in a circle: a module and its parts.
const LONGEST_CYCLE: usize = 3;

const LONGEST: usize = 600;
const LONGEST_TEST: usize = 800;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn manifests() -> BTreeMap<String, toml::Table> {
    let workspace: toml::Table = read(&root().join("Cargo.toml")).parse().unwrap();
    let members = workspace["workspace"]["members"].as_array().unwrap();
    members
        .iter()
        .map(|member| {
            let path = root().join(member.as_str().unwrap()).join("Cargo.toml");
            let manifest: toml::Table = read(&path).parse().unwrap();
            (manifest["package"]["name"].as_str().unwrap().to_owned(), manifest)
        })
        .collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Packages of this workspace among the dependencies.
/// Those of single platforms and of builds are included, those of tests are not.
fn depends_on(manifest: &toml::Table, own: &BTreeSet<&String>) -> BTreeSet<String> {
    let of_table = |table: &toml::Table| -> Vec<String> {
        ["dependencies", "build-dependencies"]
            .iter()
            .filter_map(|key| table.get(*key)?.as_table())
            .flat_map(|dependencies| dependencies.keys().cloned().collect::<Vec<_>>())
            .collect()
    };
    let mut all = of_table(manifest);
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        all.extend(targets.values().filter_map(toml::Value::as_table).flat_map(of_table));
    }
    all.into_iter().filter(|name| own.contains(name)).collect()
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if !matches!(entry.file_name().to_str(), Some("target" | "node_modules")) {
                rust_files(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn sources(folder: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    rust_files(&root().join(folder), &mut files);
    assert!(!files.is_empty(), "no sources in {folder}");
    files
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            (name, read(&path))
        })
        .collect()
}

#[test]
fn no_package_depends_against_the_arrows() {
    let manifests = manifests();
    let own: BTreeSet<&String> = manifests.keys().collect();
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let mut wrong = Vec::new();
    for (name, manifest) in &manifests {
        let Some(allowed) = allowed.get(name.as_str()) else {
            wrong.push(format!("{name} has no row in the table of this test"));
            continue;
        };
        for other in depends_on(manifest, &own) {
            if !allowed.contains(&other.as_str()) {
                wrong.push(format!("{name} -> {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(ALLOWED.len(), manifests.len(), "the table names a package that is gone");
}

/// Whether code names a package or module. The same letters in a text do not count.
fn is_named(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let after = code.get(at + word.len()..).unwrap_or_default();
        word.ends_with(':') || !after.starts_with('"')
    })
}

#[test]
fn no_module_names_what_is_none_of_its_business() {
    let mut wrong = Vec::new();
    for ban in BANS {
        for (name, text) in sources(ban.folder) {
            if ban.except.contains(&name.as_str()) {
                continue;
            }
            for (number, line) in text.lines().enumerate() {
                // Tests may build what they like; by convention they end the file.
                if line.starts_with("#[cfg(test)]") || name.ends_with("/tests.rs") {
                    break;
                }
                let code = line.split("//").next().unwrap_or_default();
                for word in ban.words.iter().filter(|word| is_named(code, word)) {
                    wrong.push(format!("{name}:{} names {word}", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The modules of the page, and the groups that each group may use beside itself.
/// A part knows no page, a rule no view.
const PAGE: &[(&str, &[&str], &[&str])] = &[
    ("rules", &["model", "text"], &[]),
    (
        "browser",
        &["browser", "clock", "crash", "focus", "layers", "reactive", "unsaved", "whole"],
        &["rules"],
    ),
    ("parts", &["parts"], &["rules", "browser"]),
    ("wire", &["api", "socket"], &["rules", "browser"]),
    (
        "state",
        &[
            "act",
            "appear",
            "drafts",
            "live",
            "log_feed",
            "talk_feed",
            "nav",
            "notify",
            "page",
            "prefs",
            "push",
            "ready",
            "restarting",
            "restores",
            "say",
            "store",
            "direct_feed",
            "terminal_feed",
        ],
        &["rules", "browser", "wire"],
    ),
    ("views", &["views"], &["rules", "browser", "parts", "wire", "state"]),
    ("frame", &["shell", "lazy"], &["rules", "browser", "parts", "wire", "state", "views"]),
    (
        "entry",
        &["app", "gallery", "lib", "main", "bin"],
        &["rules", "browser", "parts", "wire", "state", "views", "frame"],
    ),
];

/// The modules of the page that a line of code names.
fn names_of_page(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default();
    let mut found = Vec::new();
    for (_, path) in code.match_indices("crate::").map(|(at, word)| (at, &code[at + word.len()..]))
    {
        let modules = match path.strip_prefix('{') {
            // One line holds the list; a longer one names its modules one by one.
            Some(list) => list.split('}').next().unwrap_or_default().split(',').collect(),
            None => vec![path],
        };
        for module in modules {
            let word: String =
                module.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            found.push(word);
        }
    }
    found
}

#[test]
fn inside_the_page_the_arrows_point_one_way() {
    let group_of = |module: &str| PAGE.iter().find(|(_, modules, _)| modules.contains(&module));
    let mut wrong = Vec::new();
    for (name, text) in sources("web/src") {
        let path = name.trim_start_matches("web/src/");
        let module = path.split(['/', '.']).next().unwrap_or_default();
        let Some((group, _, allowed)) = group_of(module) else {
            wrong.push(format!("{name} is in no group of this test"));
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            for other in names_of_page(line) {
                let Some((target, ..)) = group_of(&other) else { continue };
                if target != group && !allowed.contains(target) {
                    wrong.push(format!("{name}:{}: {group} names {target} ({other})", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_file_is_longer_than_its_norm_and_each_says_what_it_owns() {
    let mut wrong = Vec::new();
    for folder in ["server", "shared", "web", "tests", "xtask", "tools"] {
        for (name, text) in sources(folder) {
            let is_test = name.contains("/tests/") || name.ends_with("/tests.rs");
            let most = if is_test { LONGEST_TEST } else { LONGEST };
            let lines = text.lines().count();
            if lines > most {
                wrong.push(format!("{name} has {lines} lines, the norm is {most}"));
            }
            if !text.starts_with("//!") {
                wrong.push(format!("{name} does not open with `//!`"));
            }
            if name.ends_with("/mod.rs") {
                wrong.push(format!("{name}: modules are `name.rs` beside `name/`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_more_than_three_files_import_each_other_in_a_circle() {
    let workspace: toml::Table = read(&root().join("Cargo.toml")).parse().unwrap();
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let mut wrong = Vec::new();
    for member in members.iter().map(|member| member.as_str().unwrap()) {
        let folder = format!("{member}/src/");
        let mut files: Vec<(String, String)> = sources(&folder)
            .into_iter()
            .map(|(name, text)| (name[folder.len()..].to_owned(), text))
            .filter(|(name, _)| !name.starts_with("bin/"))
            .collect();
        if files.iter().any(|(name, _)| name == "lib.rs") {
            // A program of its own that uses the library.
            files.retain(|(name, _)| name != "main.rs");
        }
        let cycles = cycles::cycles(&files).into_iter();
        let longer = cycles.filter(|cycle| cycle.len() > LONGEST_CYCLE);
        wrong.extend(longer.map(|cycle| format!("{member}: {} files: {cycle:?}", cycle.len())));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
