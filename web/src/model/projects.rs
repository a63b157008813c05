//! Searching, filtering and ordering the project list.

use crate::model::job::{Group, Job, JobView as _};
use crate::model::order;
use crate::model::sections::{CountAs, ListEntry};
use crate::model::status::{Glyph, Tone};
use crate::text::page::projects as page_words;
use crate::text::status::rollup as words;
use std::collections::{HashMap, HashSet};
use svc_shared::api::projects::Project;
use svc_shared::status::TrustState;

/// Bridges and jobs of one project by how they count; ended ones are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rollup {
    counts: [usize; 7],
    /// Last change of a bridge or a job, ended or not, milliseconds; 0 without one.
    used: i64,
}

const ORDER: [CountAs; 7] = [
    CountAs::Blocked,
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

    /// Bridges with a process, and jobs that are at work or wait.
    #[must_use]
    pub fn live(&self) -> usize {
        [CountAs::Blocked, CountAs::Starting, CountAs::Running, CountAs::Stopping]
            .into_iter()
            .map(|kind| self.count(kind))
            .sum()
    }

    /// Rank of a project by its bridges and jobs.
    ///
    /// Smaller sorts first: waiting, trouble, starting, running, quiet.
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
                    CountAs::Blocked => (Glyph::Question, Tone::Warn, words::blocked(n)),
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

/// Counts the bridges and jobs of every project.
pub fn rollups<'p, 'j>(
    places: impl Iterator<Item = &'p ListEntry>,
    jobs: impl Iterator<Item = &'j Job>,
) -> HashMap<String, Rollup> {
    let mut all: HashMap<String, Rollup> = HashMap::new();
    for place in places {
        let rollup = all.entry(place.project.clone()).or_default();
        rollup.used = rollup.used.max(place.since);
        rollup.add(place.count_as);
    }
    for job in jobs {
        if let (Some(project), Some(at)) = (&job.project, job.changed_at()) {
            let rollup = all.entry(project.clone()).or_default();
            rollup.used = rollup.used.max(at.as_millis());
        }
        let count_as = match job.group() {
            Group::Waiting => CountAs::Blocked,
            Group::NeedsLook => CountAs::Failed,
            Group::Live => CountAs::Running,
            Group::Ended => continue,
        };
        if let Some(project) = &job.project {
            all.entry(project.clone()).or_default().add(count_as);
        }
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
    /// Last used first.
    Used,
    /// Most at work first.
    Live,
}

impl Sort {
    /// Every order, the default first.
    pub const ALL: [Self; 4] = [Self::Attention, Self::Name, Self::Used, Self::Live];

    /// Value in the address.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Name => "name",
            Self::Used => "used",
            Self::Live => "live",
        }
    }

    /// From the address; an unknown word means the default.
    #[must_use]
    pub fn parse(raw: &str) -> Self {
        Self::ALL.into_iter().find(|sort| sort.word() == raw).unwrap_or_default()
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
    /// Marked as favourites.
    Favourites,
    /// Git repositories.
    Git,
    /// Not trusted.
    Untrusted,
}

impl Show {
    /// Every choice, in the order of the page.
    pub const ALL: [Self; 5] =
        [Self::All, Self::Live, Self::Favourites, Self::Git, Self::Untrusted];

    /// Name and value of the query member that selects it.
    #[must_use]
    pub fn query(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::All => None,
            Self::Live => Some(("live", "1")),
            Self::Favourites => Some(("fav", "1")),
            Self::Git => Some(("git", "1")),
            Self::Untrusted => Some(("trust", "untrusted")),
        }
    }

    fn takes(self, project: &Project, live: usize, around: &Around<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Live => live > 0,
            Self::Favourites => around.favourites.contains(project.name.as_str()),
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
    /// Favourites before all others.
    pub favourites_first: bool,
}

/// What the failing checks of a default launch mean for the row of a project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Why no kind of launch is possible.
    pub blocks: Option<&'static str>,
    /// Failing checks; trust is not counted, which has a sign and a button of its own.
    pub count: usize,
}

/// Reads the ids of the failing checks.
#[must_use]
pub fn readiness(codes: &[String]) -> Readiness {
    let codes = || codes.iter().map(String::as_str).filter(|code| *code != "trust");
    Readiness { blocks: codes().find_map(page_words::blocks), count: codes().count() }
}

/// What is known of projects beside their records.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// What runs there.
    pub rollups: &'a HashMap<String, Rollup>,
    /// When the history last saw something there, milliseconds.
    pub used: &'a HashMap<String, i64>,
    /// Names of favourites.
    pub favourites: &'a HashSet<String>,
}

impl Around<'_> {
    /// When a project was last used, milliseconds; `None` for never.
    #[must_use]
    pub fn last_used(&self, project: &str) -> Option<i64> {
        let live = self.rollups.get(project).map_or(0, |rollup| rollup.used);
        let past = self.used.get(project).copied().unwrap_or(0);
        Some(live.max(past)).filter(|at| *at > 0)
    }
}

/// The names of the projects to list, in order.
///
/// Case is ignored. Ties are sorted by the exact name.
pub fn list<'a>(
    projects: impl Iterator<Item = &'a Project>,
    around: &Around<'_>,
    query: &Query,
) -> Vec<String> {
    let needle = query.search.trim().to_lowercase();
    let quiet = Rollup::default();
    let rows = projects.filter_map(|project| {
        let name = project.name.as_str();
        let rollup = around.rollups.get(name).unwrap_or(&quiet);
        let fit = fit(project, &needle)?;
        query.show.takes(project, rollup.live(), around).then(|| {
            let mut key = String::with_capacity(32);
            key.push(char::from(b'0' + fit as u8));
            if query.favourites_first {
                key.push(digit(usize::from(!around.favourites.contains(name))));
            }
            match query.sort {
                Sort::Attention => key.push(digit(rollup.attention())),
                Sort::Name => {}
                Sort::Used => {
                    key.push_str(&order::latest_first(around.last_used(name).unwrap_or(0)));
                }
                Sort::Live => key.push(digit(9_usize.saturating_sub(rollup.live()))),
            }
            key.push_str(&name.to_lowercase());
            (key, name.to_owned())
        })
    });
    order::sorted(rows.collect())
}

/// How many projects a filter shows.
pub fn count<'a>(
    projects: impl Iterator<Item = &'a Project>,
    around: &Around<'_>,
    show: Show,
) -> usize {
    let live = |name| around.rollups.get(name).map_or(0, Rollup::live);
    projects.filter(|project| show.takes(project, live(project.name.as_str()), around)).count()
}

/// A small number as a part of a key.
fn digit(n: usize) -> char {
    u8::try_from(n.min(9)).map_or('9', |n| char::from(b'0' + n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::{self, bridge, project};
    use crate::model::sections::place;
    use svc_shared::status::BridgeStatus;

    fn listed(names: &[&str], rows: &[(&str, BridgeStatus)], query: &Query) -> Vec<String> {
        let projects: Vec<Project> = names.iter().map(|name| project(name)).collect();
        let places: Vec<ListEntry> = rows.iter().map(|(p, s)| place(&bridge(p, *s))).collect();
        let used = HashMap::from([("used".to_owned(), 70_000), ("run".to_owned(), 1)]);
        let favourites = HashSet::from(["web".to_owned()]);
        let rollups = rollups(places.iter(), std::iter::empty());
        let around = Around { rollups: &rollups, used: &used, favourites: &favourites };
        list(projects.iter(), &around, query)
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
        let all: Vec<Project> = ["api", "web"].map(project).into();
        let places: Vec<ListEntry> = rows.iter().map(|(p, s)| place(&bridge(p, *s))).collect();
        let rollups = rollups(places.iter(), std::iter::empty());
        let (used, favourites) = (HashMap::new(), HashSet::new());
        let around = Around { rollups: &rollups, used: &used, favourites: &favourites };
        assert_eq!(count(all.iter(), &around, Show::Live), 1);
        assert_eq!(count(all.iter(), &around, Show::Untrusted), 0);
        let shown = |show| listed(&["api", "web"], &rows, &Query { show, ..Query::default() });
        assert_eq!(shown(Show::Live), ["api"]);
        assert_eq!(shown(Show::Favourites), ["web"]);
    }

    #[test]
    fn the_last_used_is_what_the_history_or_a_bridge_says_later() {
        // Bridges of the samples changed at 60 s.
        let rows = [("run", BridgeStatus::Running), ("old", BridgeStatus::Stopped)];
        let names = ["never", "old", "run", "used"];
        let by = |sort| listed(&names, &rows, &Query { sort, ..Query::default() });
        assert_eq!(by(Sort::Used), ["used", "old", "run", "never"]);
        assert_eq!(by(Sort::Live), ["run", "never", "old", "used"]);
        let first = Query { sort: Sort::Used, favourites_first: true, ..Query::default() };
        assert_eq!(listed(&["never", "run", "used", "web"], &rows, &first)[0], "web");
        for sort in Sort::ALL {
            assert_eq!(Sort::parse(sort.word()), sort);
        }
        assert_eq!(Sort::parse("cost"), Sort::Attention);
    }

    #[test]
    fn only_what_no_choice_can_avoid_blocks_a_launch() {
        let read = |codes: &[&str]| {
            readiness(&codes.iter().map(|code| (*code).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(read(&["trust"]), Readiness::default());
        assert_eq!(read(&["trust", "capacity"]), Readiness { blocks: None, count: 1 });
        let agent = read(&["capacity", "agent"]);
        assert!(agent.count == 2 && agent.blocks.is_some());
    }

    #[test]
    fn a_job_that_waits_comes_before_everything() {
        let job = |state: &str, project: &str| Job {
            project: Some(project.into()),
            worker_alive: false,
            ..sample::job(state)
        };
        let jobs = [job("blocked", "blog"), job("working", "web"), job("done", "api")];
        let places = [place(&bridge("boom", BridgeStatus::Crashed))];
        let all = rollups(places.iter(), jobs.iter());
        assert!(all["blog"].attention() < all["boom"].attention());
        assert_eq!((all["blog"].live(), all["web"].live()), (1, 1));
        assert_eq!(all["blog"].parts()[0].2, "1 blocked");
        assert!(all["api"].parts().is_empty(), "an ended job is not counted");
        assert!(all["api"].used > 0, "but it used the project");
    }

    #[test]
    fn the_count_never_calls_a_failed_or_starting_bridge_running() {
        let places: Vec<ListEntry> = [
            BridgeStatus::Starting,
            BridgeStatus::Running,
            BridgeStatus::Running,
            BridgeStatus::Error,
        ]
        .into_iter()
        .map(|status| place(&bridge("api", status)))
        .collect();
        let words: Vec<String> = rollups(places.iter(), std::iter::empty())["api"]
            .parts()
            .into_iter()
            .map(|(.., words)| words)
            .collect();
        assert_eq!(words, ["1 failed", "1 starting", "2 running"]);
    }
}
