//! Searching, filtering and ordering the project list.

use crate::model::order;
use crate::model::sections::{CountAs, Place};
use crate::model::status::{Glyph, Tone};
use crate::text::status::rollup as words;
use std::collections::HashMap;
use svc_shared::api::projects::Project;
use svc_shared::status::TrustState;

/// Bridges of one project by how they count; ended ones are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rollup {
    counts: [usize; 6],
}

const ORDER: [CountAs; 6] = [
    CountAs::Held,
    CountAs::Crashed,
    CountAs::Failed,
    CountAs::Starting,
    CountAs::Running,
    CountAs::Stopping,
];

impl Rollup {
    fn add(&mut self, kind: CountAs) {
        for (slot, of) in self.counts.iter_mut().zip(ORDER) {
            *slot += usize::from(of == kind);
        }
    }

    fn count(&self, kind: CountAs) -> usize {
        let at = ORDER.iter().position(|of| *of == kind);
        at.and_then(|at| self.counts.get(at)).copied().unwrap_or(0)
    }

    /// Bridges with a process.
    #[must_use]
    pub fn live(&self) -> usize {
        [CountAs::Starting, CountAs::Running, CountAs::Stopping]
            .into_iter()
            .map(|kind| self.count(kind))
            .sum()
    }

    /// Smaller sorts first: trouble, then starting, then running, then quiet.
    fn attention(&self) -> usize {
        self.counts.iter().position(|n| *n > 0).unwrap_or(ORDER.len())
    }

    /// The parts to show, worst first.
    #[must_use]
    pub fn parts(&self) -> Vec<(Glyph, Tone, String)> {
        ORDER
            .into_iter()
            .zip(self.counts)
            .filter(|(_, n)| *n > 0)
            .filter_map(|(kind, n)| {
                Some(match kind {
                    CountAs::Held => (Glyph::Padlock, Tone::Danger, words::held(n)),
                    CountAs::Crashed => (Glyph::Triangle, Tone::Danger, words::crashed(n)),
                    CountAs::Failed => (Glyph::Octagon, Tone::Danger, words::failed(n)),
                    CountAs::Starting => (Glyph::Arc, Tone::Info, words::starting(n)),
                    CountAs::Running => (Glyph::Dot, Tone::Ok, words::running(n)),
                    CountAs::Stopping => (Glyph::Half, Tone::Neutral, words::stopping(n)),
                    CountAs::Ended => return None,
                })
            })
            .collect()
    }
}

/// Counts the bridges of every project.
pub fn rollups<'a>(places: impl Iterator<Item = &'a Place>) -> HashMap<String, Rollup> {
    let mut all: HashMap<String, Rollup> = HashMap::new();
    for place in places.filter(|p| p.count_as != CountAs::Ended) {
        all.entry(place.project.clone()).or_default().add(place.count_as);
    }
    all
}

/// Order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// What needs a person first, then by name.
    #[default]
    Attention,
    /// By name.
    Name,
}

impl Sort {
    /// Value in the address.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Name => "name",
        }
    }

    /// From the address; an unknown word means the default.
    #[must_use]
    pub fn parse(raw: &str) -> Self {
        if raw == Self::Name.word() { Self::Name } else { Self::Attention }
    }
}

/// Which projects are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Show {
    /// All of them.
    #[default]
    All,
    /// With a live bridge.
    Live,
    /// Git repositories.
    Git,
    /// Not trusted.
    Untrusted,
}

impl Show {
    /// Every choice, in the order of the page.
    pub const ALL: [Self; 4] = [Self::All, Self::Live, Self::Git, Self::Untrusted];

    /// Name and value of the query member that selects it.
    #[must_use]
    pub fn query(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::All => None,
            Self::Live => Some(("live", "1")),
            Self::Git => Some(("git", "1")),
            Self::Untrusted => Some(("trust", "untrusted")),
        }
    }

    fn takes(self, project: &Project, live: usize) -> bool {
        match self {
            Self::All => true,
            Self::Live => live > 0,
            Self::Git => project.is_git_repo,
            Self::Untrusted => !project.trust_state.is(&TrustState::Trusted),
        }
    }
}

/// How well a project fits a search; smaller is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Start,
    Name,
    Path,
    Scattered,
}

fn fit(project: &Project, needle: &str) -> Option<Fit> {
    if needle.is_empty() {
        return Some(Fit::Start);
    }
    let name = project.name.as_str().to_lowercase();
    if name.starts_with(needle) {
        return Some(Fit::Start);
    }
    if name.contains(needle) {
        return Some(Fit::Name);
    }
    if project.path.to_lowercase().contains(needle) {
        return Some(Fit::Path);
    }
    is_subsequence(needle, &name).then_some(Fit::Scattered)
}

fn is_subsequence(needle: &str, hay: &str) -> bool {
    let mut rest = hay.chars();
    needle.chars().all(|c| rest.any(|h| h == c))
}

/// What the list was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Words typed.
    pub search: String,
    /// Filter.
    pub show: Show,
    /// Order.
    pub sort: Sort,
}

/// The names to list, in order. Case does not matter; ties are broken by the exact name.
pub fn list<'a>(
    projects: impl Iterator<Item = &'a Project>,
    rollups: &HashMap<String, Rollup>,
    query: &Query,
) -> Vec<String> {
    let needle = query.search.trim().to_lowercase();
    let quiet = Rollup::default();
    let rows = projects.filter_map(|project| {
        let name = project.name.as_str();
        let rollup = rollups.get(name).unwrap_or(&quiet);
        let fit = fit(project, &needle)?;
        query.show.takes(project, rollup.live()).then(|| {
            let attention = match query.sort {
                Sort::Attention => rollup.attention(),
                Sort::Name => 0,
            };
            (format!("{}{attention}{}", fit as u8, name.to_lowercase()), name.to_owned())
        })
    });
    order::sorted(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::{bridge, project};
    use crate::model::sections::place;
    use svc_shared::status::BridgeStatus;

    fn listed(names: &[&str], rows: &[(&str, BridgeStatus)], query: &Query) -> Vec<String> {
        let projects: Vec<Project> = names.iter().map(|name| project(name)).collect();
        let places: Vec<Place> = rows.iter().map(|(p, s)| place(&bridge(p, *s))).collect();
        list(projects.iter(), &rollups(places.iter()), query)
    }

    fn search(text: &str) -> Query {
        Query { search: text.into(), ..Query::default() }
    }

    #[test]
    fn what_needs_a_person_is_listed_first() {
        let rows = [
            ("run", BridgeStatus::Running),
            ("boom", BridgeStatus::Crashed),
            ("new", BridgeStatus::Starting),
            ("old", BridgeStatus::Stopped),
        ];
        let names = ["Alpha", "boom", "new", "old", "run"];
        assert_eq!(
            listed(&names, &rows, &Query::default()),
            ["boom", "new", "run", "Alpha", "old"]
        );
        let by_name = Query { sort: Sort::Name, ..Query::default() };
        assert_eq!(listed(&names, &rows, &by_name), names);
    }

    #[test]
    fn a_search_finds_names_before_paths_before_scattered_letters() {
        let names = ["my-api", "api", "a-p-i", "web"];
        assert_eq!(listed(&names, &[], &search("API")), ["api", "my-api", "a-p-i"]);
        assert_eq!(listed(&names, &[], &search("projects/web")), ["web"]);
        assert!(listed(&names, &[], &search("zzz")).is_empty());
    }

    #[test]
    fn filters_use_the_same_counts_as_the_rows() {
        let rows = [("api", BridgeStatus::Running), ("web", BridgeStatus::Crashed)];
        let live = Query { show: Show::Live, ..Query::default() };
        assert_eq!(listed(&["api", "web"], &rows, &live), ["api"]);
    }

    #[test]
    fn the_count_never_calls_a_failed_or_starting_bridge_running() {
        let places: Vec<Place> = [
            BridgeStatus::Starting,
            BridgeStatus::Running,
            BridgeStatus::Running,
            BridgeStatus::Error,
        ]
        .into_iter()
        .map(|status| place(&bridge("api", status)))
        .collect();
        let words: Vec<String> =
            rollups(places.iter())["api"].parts().into_iter().map(|(.., words)| words).collect();
        assert_eq!(words, ["1 failed", "1 starting", "2 running"]);
    }
}
