//! The list of what is inside.

use crate::{good, package, path, tools};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Reads a document by the schema that was published for it.
const VALIDATOR: &str = "\
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
with open(sys.argv[1]) as file:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read())
sys.exit(str(error) if error else 0)
";

#[test]
fn h141_the_list_of_what_is_inside_is_valid_and_whole() {
    let file = package(".cdx.json");
    let python = tools().join("python/bin/python");
    good(Command::new(python).args(["-c", VALIDATOR, path(&file)]));
    let text = fs::read_to_string(&file).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    let components = list["components"].as_array().unwrap();
    // The program itself is what the list is about.
    let own = list["metadata"]["component"]["components"].as_array().unwrap();
    let names: BTreeSet<String> = components
        .iter()
        .chain(own)
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
            format!("{} {}", text("name"), text("version"))
        })
        .collect();
    // What cargo itself compiles for the program must stand in it.
    let mut tree = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    tree.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    tree.args(["tree", "--locked", "-p", "svc-server", "--edges", "normal", "--prefix", "none"]);
    let target = "x86_64-unknown-linux-musl";
    let compiled = good(tree.args(["--target", target, "--format", "{p}"]));
    for line in compiled.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        let wanted = format!("{name} {}", version.trim_start_matches('v'));
        assert!(names.contains(&wanted), "{wanted} is compiled and not listed");
    }
    assert!(list["metadata"]["authors"].is_null(), "who built it is nobody's business");
    for private in [env!("CARGO_MANIFEST_DIR"), "serialNumber"] {
        assert!(!text.contains(private), "the list holds {private}");
    }
}
