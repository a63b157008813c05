//! Keys of the configuration that nothing reads.

use crate::good;
use std::fs;
use std::path::Path;
use svc_config::schema::Leaf;
use svc_config::table::leaves;

/// Keys that this crate carries out by itself; no other reads them.
const CARRIED_OUT_WHILE_LOADING: [&str; 4] =
    ["schema_version", "config_strict", "usage.currency_symbol", "usage.show_cost"];

/// The production code of one file, without comments, blanks and line ends.
struct Source(String);

impl Source {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let production = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let code = production.lines().map(|line| line.split("//").next().unwrap_or_default());
        Self(code.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect())
    }

    /// Whether this field path occurs: not in a longer name, and not as a call.
    fn has(&self, path: &str) -> bool {
        self.0.match_indices(path).any(|(at, _)| {
            let next = self.0[at + path.len()..].chars().next();
            next.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '(')
        })
    }

    /// Whether this section occurs without one of its fields.
    fn passes_on(&self, section: &str) -> bool {
        let path = format!(".{section}");
        self.0.match_indices(&path).any(|(at, _)| {
            let next = self.0[at + path.len()..].chars().next();
            next.is_none_or(|c| !c.is_alphanumeric() && !"_(.".contains(c))
        })
    }

    /// Whether this file reads the field of a key, in one expression or by its section.
    fn reads(&self, leaf: &Leaf) -> bool {
        // The type of a span of time says its unit; the field does not.
        let field = leaf.name().trim_end_matches("_seconds");
        if leaf.is_per_project() {
            return self.0.contains(".project(") && self.has(&format!(".{field}"));
        }
        match leaf.key.rsplit_once('.') {
            None => self.has(&format!("config.{field}")),
            Some((section, _)) => {
                let section = section.rsplit('.').next().unwrap_or(section);
                // Where the section itself is passed on, its fields stand alone.
                self.has(&format!("{section}.{field}"))
                    || self.passes_on(section) && self.has(&format!(".{field}"))
            }
        }
    }
}

fn sources() -> Vec<Source> {
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    let mut open = vec![server.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                // This crate defines the keys; tests set them.
                if !["config", "tests"].contains(&name.as_str()) {
                    open.push(path);
                }
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
                found.push(Source::read(&path));
            }
        }
    }
    found
}

#[test]
fn every_key_is_read_somewhere() {
    let sources = sources();
    assert!(sources.len() > 100, "the sources are found");
    let is_read = |leaf: &&Leaf| {
        CARRIED_OUT_WHILE_LOADING.contains(&leaf.key)
            || sources.iter().any(|source| source.reads(leaf))
    };
    let unread: Vec<&str> = leaves().filter(|leaf| !is_read(leaf)).map(|leaf| leaf.key).collect();
    assert!(unread.is_empty(), "nothing reads {unread:#?}");
}

#[test]
fn the_token_of_the_metrics_works_and_gets_no_warning() {
    let hash = "0123456789abcdef".repeat(4);
    let loaded = good(&format!("observability: {{metrics_token_hash: {hash}}}\n"));
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let configured = loaded.config.observability.metrics_token_hash.as_ref();
    assert_eq!(configured.map(|hash| hash.expose()), Some(hash.as_str()));
}
