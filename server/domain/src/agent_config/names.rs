//! Names of servers, subagents, skills and plugins.

use super::{BadConfig, bad};

/// Longest name of a server or of each half of a plugin's id, in bytes.
const LONGEST: usize = 128;

/// Whether a server of the model context protocol may have this name.
#[must_use]
pub fn is_server(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= LONGEST
        && bytes.next().is_some_and(|first| first.is_ascii_alphanumeric() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

/// Whether a plugin may have this id: `name` or `name@marketplace`.
#[must_use]
pub fn is_plugin(id: &str) -> bool {
    match id.split_once('@') {
        Some((name, marketplace)) => is_server(name) && is_server(marketplace),
        None => is_server(id),
    }
}

/// Whether a subagent may have this name.
///
/// Words of small letters and digits, joined by `-`.
#[must_use]
pub fn is_subagent(name: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.len() <= 64
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.split('-').all(is_word)
}

/// Whether a skill may have this name.
#[must_use]
pub fn is_skill(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 64
        && bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The parts of the path of a file of a skill.
///
/// # Errors
/// It leads elsewhere, or a part of it is hidden or no plain name.
pub fn skill_file(relative: &str) -> Result<Vec<&str>, BadConfig> {
    let is_plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.len() <= 100
            && !part.chars().any(|c| c.is_control() || c == '\\')
    };
    let parts: Vec<&str> = relative.split('/').collect();
    if parts.len() <= 8 && parts.iter().all(|part| is_plain(part)) {
        Ok(parts)
    } else {
        Err(bad("a file of a skill is named by a path inside it, such as `scripts/run.sh`: plain \
             names, none of them hidden, at most 8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h37_names_cannot_be_options_or_paths() {
        for odd in ["", "-x", ".x", "a/b", "a b", "a\n", "ä", &"x".repeat(200), "..", "a@b@c", "@"]
        {
            assert!(!is_server(odd) && !is_plugin(odd) && !is_skill(odd), "{odd}");
            assert!(!is_subagent(odd), "{odd}");
        }
        assert!(is_server("_a.b-C") && is_plugin("a.b@c_d") && is_skill("My_skill-2"));
        assert!(is_subagent("code-review-2") && is_subagent("a"));
        for odd in ["A", "a--b", "a-", "2a", "a_b"] {
            assert!(!is_subagent(odd), "{odd}");
        }
        assert_eq!(skill_file("scripts/run.sh").unwrap(), ["scripts", "run.sh"]);
        for odd in ["", "/x", "a//b", "../x", "a/../b", ".git/config", "a\\b", "a/", "x\0"] {
            assert!(skill_file(odd).is_err(), "{odd}");
        }
    }
}
