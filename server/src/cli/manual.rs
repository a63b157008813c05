//! `svc man`: the manual pages, made of the argument tree and of the table of keys.

use crate::cli::arguments::{Arguments, Manual};
use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use svc_config::schema::{Apply, Kind, Leaf, Preset};
use svc_config::table::leaves;

/// Prints `svc(1)`, or writes every page.
pub(crate) fn man(call: &Call, wanted: &Manual) -> Result<Exit, End> {
    let mut tree = Arguments::command();
    tree.build();
    let Some(dir) = &wanted.dir else {
        call.output.raw(&page(&tree).map_err(End::of_machine)?)?;
        return Ok(Exit::Done);
    };
    let written = write_all(dir, &tree, call.umask).map_err(|error| {
        Failure::new(
            Exit::Failed,
            "manual",
            format!(
                "the manual cannot be written to {} ({error}); name a directory that may be \
                 written with --dir",
                dir.display()
            ),
        )
    })?;
    for name in written {
        call.output.line(&dir.join(name).to_string_lossy())?;
    }
    Ok(Exit::Done)
}

fn page(command: &Command) -> io::Result<String> {
    let mut roff = Vec::new();
    Man::new(command.clone()).manual("svc manual").render(&mut roff)?;
    Ok(String::from_utf8_lossy(&roff).into_owned())
}

/// Writes `svc.1`, a page for each command and `svc.yml.5`; tells their names.
fn write_all(dir: &Path, tree: &Command, umask: u32) -> io::Result<Vec<String>> {
    // Pages are for everybody, unlike everything else this program writes.
    let shared = |mode: u32| mode & !umask;
    fs::DirBuilder::new().recursive(true).mode(shared(0o777)).create(dir)?;
    let mut pages = Vec::new();
    collect(tree, &mut pages)?;
    pages.push(("svc.yml.5".to_owned(), file_page()));
    let mut names = Vec::new();
    for (name, text) in pages {
        let path = dir.join(&name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(shared(0o666)))?;
        names.push(name);
    }
    Ok(names)
}

fn collect(command: &Command, pages: &mut Vec<(String, String)>) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    pages.push((format!("{name}.1"), page(command)?));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect(below, pages)?;
    }
    Ok(())
}

/// `svc.yml(5)`.
fn file_page() -> String {
    let version = concat!("svc ", env!("CARGO_PKG_VERSION"));
    let mut roff = Roff::new();
    roff.control("TH", ["svc.yml", "5", "", version, "svc manual"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman("svc.yml - configuration of svc")]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.text([roman(
        "One YAML file, sections nested. Every scalar and list key has an environment variable, \
         which wins over the file; the same name with _FILE appended names a file that holds the \
         value. A misspelt key is reported with the nearest real one.",
    )]);
    roff.control("SH", ["KEYS"]);
    for leaf in leaves() {
        roff.control("TP", []);
        roff.text([bold(leaf.key), roman(" ("), italic(shape(leaf)), roman(")")]);
        roff.text([roman(sentences(leaf))]);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("svc"), roman("(1), "), bold("svc-config"), roman("(1)")]);
    roff.render()
}

fn sentences(leaf: &Leaf) -> String {
    let mut text = leaf.about.to_owned();
    text.push_str(&format!(" Default: {}.", default_of(leaf.preset)));
    if let Some(variable) = leaf.variable() {
        text.push_str(&format!(" Environment: {variable}."));
    }
    text.push_str(match leaf.apply {
        Apply::Restart => " A change takes effect at the next start.",
        Apply::NextSpawn => " A change takes effect for the next bridge.",
        Apply::Live | Apply::NextMcpStart => " A change takes effect at once.",
    });
    text
}

fn default_of(preset: Preset) -> String {
    match preset {
        Preset::Required => "none, must be set".to_owned(),
        Preset::Derived => "follows from the environment".to_owned(),
        Preset::Null => "null".to_owned(),
        Preset::Bool(value) => value.to_string(),
        Preset::Int(value) => value.to_string(),
        Preset::Float(value) => value.to_string(),
        Preset::Text("") => "empty".to_owned(),
        Preset::Text(text) => text.to_owned(),
        Preset::List([]) | Preset::EmptyMap => "empty".to_owned(),
        Preset::List(items) => items.join(", "),
        Preset::Switches(states) => {
            let on: Vec<&str> =
                states.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
            format!("{} on", on.join(", "))
        }
    }
}

fn shape(leaf: &Leaf) -> String {
    match leaf.kind {
        Kind::Bool => "true or false".to_owned(),
        Kind::Int { min, max } if max == i64::from(u32::MAX) => {
            format!("whole number, at least {min}")
        }
        Kind::Int { min, max } => format!("whole number, {min} to {max}"),
        Kind::Float(range) => format!("number, {}", range.in_words()),
        Kind::Seconds { .. } => "seconds, or a number with ms, s, m, h or d".to_owned(),
        Kind::Text(_) => "text".to_owned(),
        Kind::Choice { words, .. } => words.join(", "),
        Kind::Path => "path".to_owned(),
        Kind::Program => "program, by name or path".to_owned(),
        Kind::SocketPath => "path of a socket".to_owned(),
        Kind::List(_) => "list".to_owned(),
        Kind::TextMap => "names and texts".to_owned(),
        Kind::Switches(known) => {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            format!("switches: {}", names.join(", "))
        }
    }
}
