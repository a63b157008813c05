//! Sentences about skills.

/// There are none.
pub const NONE: &str = "No visibility is set: every skill is visible.";
/// Field.
pub const NEW: &str = "Set the visibility of a skill: its name";
/// Head of the list of skills.
pub const FILES: &str = "Skills with their files";
/// Head of the list of visibilities.
pub const SHOWN: &str = "Visibility";
/// There are none.
pub const NO_FILES: &str = "No skills in this scope.";
/// Field.
pub const NEW_SKILL: &str = "Name of a new skill";
/// Field.
pub const NEW_FILE: &str = "Path of a new file, such as scripts/run.sh";
/// Not shown to the agent.
pub const NO_MAIN: &str = "without SKILL.md: the agent does not see it";
/// Only a person calls it.
pub const BY_HAND: &str = "only when you call it";
/// Way back.
pub const BACK: &str = "All skills";
/// Button.
pub const DELETE: &str = "Remove this skill";
/// Text of the file.
pub const TEXT: &str = "Text of the file";
/// List of files.
pub const FILE_LIST: &str = "Files of this skill";

/// How many files.
#[must_use]
pub fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// Toast.
#[must_use]
pub fn deleted(name: &str) -> String {
    format!("The skill {name} is removed. Earlier versions of its files are kept.")
}

/// What a new one contains.
#[must_use]
pub fn template(name: &str) -> String {
    format!("---\nname: {name}\ndescription: \n---\n\n")
}

/// Why something cannot be the name of a new skill.
#[must_use]
pub fn check_name(name: &str) -> Option<&'static str> {
    let mut chars = name.chars();
    let is_name = chars.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    (!is_name || name.len() > 64).then_some("Use letters, digits, _ and -, at most 64.")
}

/// Why something cannot be a file of a skill.
#[must_use]
pub fn check_file(path: &str) -> Option<&'static str> {
    let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.');
    let is_path = path.split('/').count() <= 8 && path.split('/').all(is_plain);
    (!is_path || path.contains('\\')).then_some("Use plain names joined by /, none of them hidden.")
}
/// How visible a skill is.
pub const VISIBILITY: [(&str, &str); 4] = [
    ("on", "on"),
    ("name-only", "name only"),
    ("user-invocable-only", "only when you call it"),
    ("off", "off"),
];

/// Why something cannot be the name of a skill.
#[must_use]
pub fn check(name: &str) -> Option<&'static str> {
    (name.is_empty() || name.len() > 200).then_some("Write the name of the skill.")
}
