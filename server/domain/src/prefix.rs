//! Which instance a reference means (`http-api` §0.5, `command-line` §1.1).

use std::fmt;

use crate::log_escape::quoted;

/// What a reference can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<'a> {
    /// The instance id.
    pub id: &'a str,
    /// The process id of a Direct Session.
    pub process_id: Option<&'a str>,
    /// The project's name.
    pub project: &'a str,
}

/// What a reference means.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Resolved<'a> {
    /// One instance, by its id.
    Found(&'a str),
    /// Several.
    Ambiguous(Ambiguous),
    /// None.
    NotFound,
}

/// A reference that means several instances. `Display` is the message for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ambiguous {} — matches {}; {hint}", quoted(.reference), .candidates.join(", "))]
pub struct Ambiguous {
    /// What was asked for.
    pub reference: String,
    /// The ids it matches, sorted.
    pub candidates: Vec<String>,
    /// The way out.
    pub hint: Hint,
}

/// How to make a reference unambiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// The reference is a project's name.
    UseId,
    /// The reference is the begin of several ids.
    UseMoreCharacters,
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UseId => "use an instance id directly",
            Self::UseMoreCharacters => "use more characters",
        })
    }
}

/// Resolves a reference: exact id or pid, then project name, then unique id prefix.
///
/// A string that `is_project` knows is never read as a prefix, not even without instances.
pub fn resolve<'a>(
    reference: &str,
    instances: impl Iterator<Item = Named<'a>> + Clone,
    is_project: impl FnOnce(&str) -> bool,
) -> Resolved<'a> {
    if reference.is_empty() {
        return Resolved::NotFound;
    }
    let exact = |named: &Named<'_>| named.id == reference || named.process_id == Some(reference);
    if let Some(named) = instances.clone().find(exact) {
        return Resolved::Found(named.id);
    }
    let of_project = ids(instances.clone().filter(|named| named.project == reference));
    if !of_project.is_empty() || is_project(reference) {
        return one_of(reference, of_project, Hint::UseId);
    }
    let by_prefix = ids(instances.filter(|named| named.id.starts_with(reference)));
    one_of(reference, by_prefix, Hint::UseMoreCharacters)
}

fn ids<'a>(matches: impl Iterator<Item = Named<'a>>) -> Vec<&'a str> {
    let mut ids: Vec<&str> = matches.map(|named| named.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn one_of<'a>(reference: &str, ids: Vec<&'a str>, hint: Hint) -> Resolved<'a> {
    match ids.as_slice() {
        [] => Resolved::NotFound,
        [id] => Resolved::Found(id),
        several => Resolved::Ambiguous(Ambiguous {
            reference: reference.to_owned(),
            candidates: several.iter().map(|id| (*id).to_owned()).collect(),
            hint,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const API_1: &str = "1f0e2d3c-0000-4000-8000-000000000001";
    const API_2: &str = "1f9e2d3c-0000-4000-8000-000000000002";
    const WEB: &str = "2a000000-0000-4000-8000-000000000003";
    const HOSTED: &str = "3b000000-0000-4000-8000-000000000004";
    const PROCESS: &str = "ffeeddccbbaa99887766554433221100";

    fn instances() -> impl Iterator<Item = Named<'static>> + Clone {
        [
            Named { id: API_2, process_id: None, project: "api" },
            Named { id: API_1, process_id: None, project: "api" },
            Named { id: WEB, process_id: None, project: "web" },
            Named { id: HOSTED, process_id: Some(PROCESS), project: "1f" },
        ]
        .into_iter()
    }

    fn resolve_here(reference: &str) -> Resolved<'static> {
        resolve(reference, instances(), |name| ["api", "web", "1f", "2a", "idle"].contains(&name))
    }

    #[test]
    fn exact_ids_and_project_names_outrank_prefixes() {
        assert_eq!(resolve_here(WEB), Resolved::Found(WEB));
        assert_eq!(resolve_here(PROCESS), Resolved::Found(HOSTED));
        assert_eq!(resolve_here("web"), Resolved::Found(WEB));
        // Also the begin of two ids of `api`.
        assert_eq!(resolve_here("1f"), Resolved::Found(HOSTED));
    }

    #[test]
    fn a_unique_prefix_of_any_length_is_enough() {
        assert_eq!(resolve_here("3"), Resolved::Found(HOSTED));
        assert_eq!(resolve_here("1f0"), Resolved::Found(API_1));
        assert_eq!(resolve_here(&API_2[..35]), Resolved::Found(API_2));
    }

    #[test]
    fn a_project_without_instances_is_never_read_as_a_prefix() {
        assert_eq!(resolve_here("2a"), Resolved::NotFound);
        assert_eq!(resolve_here("idle"), Resolved::NotFound);
    }

    #[test]
    fn nothing_matches_an_empty_foreign_or_wrongly_cased_reference() {
        for reference in ["", "4", "2A", "API", PROCESS.get(..8).unwrap(), "%31", " "] {
            assert_eq!(resolve_here(reference), Resolved::NotFound, "{reference:?}");
        }
    }

    #[test]
    fn an_ambiguous_reference_names_its_candidates_in_order() {
        let Resolved::Ambiguous(by_name) = resolve_here("api") else { panic!("resolved") };
        assert_eq!(by_name.candidates, [API_1, API_2]);
        assert_eq!(
            by_name.to_string(),
            format!("ambiguous 'api' — matches {API_1}, {API_2}; use an instance id directly")
        );
        let Resolved::Ambiguous(by_prefix) = resolve("1", instances(), |_| false) else {
            panic!("resolved")
        };
        assert!(by_prefix.to_string().ends_with("; use more characters"));
    }

    #[test]
    fn a_project_known_only_from_its_instances_resolves() {
        assert_eq!(resolve("web", instances(), |_| false), Resolved::Found(WEB));
    }
}
