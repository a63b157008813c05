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
    /// Its process is expected to exist.
    pub is_live: bool,
    /// When its last generation began: of ended ones the newest is largest.
    pub began: i64,
}

/// Which row of a project is meant when the project's name is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The live one; without one, the only one.
    Live,
    /// The live one; without one, the one that ended last.
    LiveOrNewest,
    /// The ended one; without one, the live one.
    ///
    /// The refusal can then say that it lives.
    Ended,
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
/// Several rows of a project are ambiguous only if more than one can be meant.
pub fn resolve<'a>(
    reference: &str,
    wanted: Wanted,
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
    let of_project: Vec<Named<'a>> =
        instances.clone().filter(|named| named.project == reference).collect();
    if !of_project.is_empty() || is_project(reference) {
        return one_of(reference, ids(meant(wanted, of_project).into_iter()), Hint::UseId);
    }
    let by_prefix = ids(instances.filter(|named| named.id.starts_with(reference)));
    one_of(reference, by_prefix, Hint::UseMoreCharacters)
}

/// The rows of one project that the caller can mean.
fn meant(wanted: Wanted, rows: Vec<Named<'_>>) -> Vec<Named<'_>> {
    let (live, ended): (Vec<_>, Vec<_>) = rows.into_iter().partition(|named| named.is_live);
    match wanted {
        Wanted::Ended if ended.is_empty() => live,
        Wanted::Ended => ended,
        Wanted::Live | Wanted::LiveOrNewest if !live.is_empty() => live,
        Wanted::Live => ended,
        Wanted::LiveOrNewest => {
            ended.into_iter().max_by_key(|named| (named.began, named.id)).into_iter().collect()
        }
    }
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
            row(API_2, "api"),
            row(API_1, "api"),
            row(WEB, "web"),
            Named { process_id: Some(PROCESS), ..row(HOSTED, "1f") },
        ]
        .into_iter()
    }

    fn row(id: &'static str, project: &'static str) -> Named<'static> {
        Named { id, process_id: None, project, is_live: true, began: 0 }
    }

    fn resolve_here(reference: &str) -> Resolved<'static> {
        let is_project = |name: &str| ["api", "web", "1f", "2a", "idle"].contains(&name);
        resolve(reference, Wanted::Live, instances(), is_project)
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
        let Resolved::Ambiguous(by_prefix) = resolve("1", Wanted::Live, instances(), |_| false)
        else {
            panic!("resolved")
        };
        assert!(by_prefix.to_string().ends_with("; use more characters"));
    }

    #[test]
    fn a_project_known_only_from_its_instances_resolves() {
        let found = resolve("web", Wanted::Live, instances(), |_| false);
        assert_eq!(found, Resolved::Found(WEB));
    }

    #[test]
    fn a_name_means_the_row_that_the_command_can_be_about() {
        let ended = |id, began| Named { is_live: false, began, ..row(id, "api") };
        let check = |wanted, rows: &[Named<'static>], expected: &[&str]| {
            let ids = match resolve("api", wanted, rows.iter().copied(), |_| true) {
                Resolved::Found(id) => vec![id.to_owned()],
                Resolved::Ambiguous(ambiguous) => ambiguous.candidates,
                Resolved::NotFound => Vec::new(),
            };
            assert_eq!(ids, expected, "{wanted:?}");
        };
        let mixed = [ended(API_1, 1), row(API_2, "api"), ended(WEB, 2)];
        check(Wanted::Live, &mixed, &[API_2]);
        check(Wanted::LiveOrNewest, &mixed, &[API_2]);
        check(Wanted::Ended, &mixed, &[API_1, WEB]);
        check(Wanted::Ended, &mixed[..2], &[API_1]);
        let over = [ended(API_1, 1), ended(API_2, 2)];
        check(Wanted::Live, &over, &[API_1, API_2]);
        check(Wanted::LiveOrNewest, &over, &[API_2]);
        check(Wanted::Ended, &[row(API_1, "api")], &[API_1]);
        check(Wanted::LiveOrNewest, &[row(API_1, "api"), row(API_2, "api")], &[API_1, API_2]);
        check(Wanted::Live, &[], &[]);
    }
}
