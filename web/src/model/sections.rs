//! The sections of Home and their order.
//!
//! Bridges that need the user come first.

use crate::model::order::{self, PART};
use crate::model::status;
use crate::text::job::external;
use crate::text::page::{nav, projects};
use svc_shared::api::instances::Instance;
use svc_shared::status::{BridgeStatus, ExitReason, ResumeMode, SpawnMode};

/// Sections of Home, in the order of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// Its agent asks something that is answered here.
    Waiting,
    /// Crashed, failed, held: never inside a collapsed group.
    NeedsLook,
    /// Starting, running, stopping.
    Live,
    /// Ended and explained.
    Ended,
}

/// Which kinds of rows are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Only {
    /// All of them.
    #[default]
    All,
    /// Bridges in Server Mode.
    Server,
    /// Interactive Sessions.
    Interactive,
    /// Direct Sessions.
    Direct,
    /// Background sessions.
    Background,
    /// Sessions started elsewhere.
    External,
}

impl Only {
    /// In the order of the page.
    pub const ALL: [Self; 6] = [
        Self::All,
        Self::Server,
        Self::Interactive,
        Self::Direct,
        Self::Background,
        Self::External,
    ];

    /// Value in the address; empty for all.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::All => "",
            Self::Server => "server",
            Self::Interactive => "interactive",
            Self::Direct => "direct",
            Self::Background => "background",
            Self::External => "external",
        }
    }

    /// From the address; an unknown word means all.
    #[must_use]
    pub fn parse(raw: &str) -> Self {
        Self::ALL.into_iter().find(|only| only.word() == raw).unwrap_or_default()
    }

    /// On the chip.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::All => projects::ALL,
            Self::Server => "Server Mode",
            Self::Interactive => "Interactive",
            Self::Direct => "Direct",
            Self::Background => nav::BACKGROUND,
            Self::External => external::WORD,
        }
    }

    /// Whether the row of this key is shown. Bridges have no prefix in their keys.
    ///
    /// `places` says of which kind a bridge is.
    #[must_use]
    pub fn takes(self, key: &str, places: &[ListEntry]) -> bool {
        let kind = match key.split_once(':') {
            Some(("job", _)) => Self::Background,
            Some(_) => Self::External,
            None => places.iter().find(|place| place.id == key).map_or(Self::Server, |p| p.kind),
        };
        self == Self::All || self == kind
    }
}

/// What orders a row; a change of it is what makes a list move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEntry {
    /// Instance id.
    pub id: String,
    /// Project name.
    pub project: String,
    /// Section.
    pub section: Section,
    /// Server Mode is one to a project; others may run beside it.
    pub kind: Only,
    /// Its sessions work on the files of the project itself.
    pub is_same_dir: bool,
    /// It ended with its machine, and nobody wanted that.
    pub ended_with_machine: bool,
    /// Its remote link is lost: the history has an event of it.
    pub is_link_down: bool,
    /// Status in words of the project list.
    pub count_as: CountAs,
    /// What a person has seen who dismisses it: the next run may end badly again.
    pub seen: String,
    /// When it last changed, milliseconds.
    pub since: i64,
    rank: u8,
    at: i64,
    label: String,
}

/// How a bridge counts in the line of its project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CountAs {
    /// Waits for a person.
    Blocked,
    /// Suspended.
    Held,
    /// Crashed.
    Crashed,
    /// Failed to start.
    Failed,
    /// Starting.
    Starting,
    /// Running.
    Running,
    /// Stopping.
    Stopping,
    /// Ended: not counted.
    Ended,
}

/// Where this bridge stands.
#[must_use]
pub fn place(bridge: &Instance) -> ListEntry {
    let count_as = if bridge.quarantined.is_some() || bridge.is_orphan {
        CountAs::Held
    } else if status::asks(bridge) && !status::is_stopping(bridge) {
        CountAs::Blocked
    } else if status::is_stopping(bridge) {
        CountAs::Stopping
    } else {
        match bridge.status.known() {
            Some(BridgeStatus::Starting) => CountAs::Starting,
            Some(BridgeStatus::Running) => CountAs::Running,
            Some(BridgeStatus::Stopping) => CountAs::Stopping,
            Some(BridgeStatus::Crashed) => CountAs::Crashed,
            Some(BridgeStatus::Error) => CountAs::Failed,
            Some(BridgeStatus::Stopped) | None => CountAs::Ended,
        }
    };
    let section = match count_as {
        CountAs::Blocked => Section::Waiting,
        CountAs::Held | CountAs::Crashed | CountAs::Failed => Section::NeedsLook,
        CountAs::Starting | CountAs::Running | CountAs::Stopping => Section::Live,
        CountAs::Ended => Section::Ended,
    };
    let at = match section {
        // Live rows keep their place while they run.
        Section::Live | Section::Waiting => 0,
        Section::NeedsLook => bridge.status_since.as_millis(),
        Section::Ended => bridge.ended_at.unwrap_or(bridge.status_since).as_millis(),
    };
    ListEntry {
        id: bridge.instance_id.to_string(),
        project: bridge.project.clone(),
        section,
        kind: if status::is_direct(bridge) {
            Only::Direct
        } else if bridge.resume_mode.is(&ResumeMode::Pty) {
            Only::Interactive
        } else {
            Only::Server
        },
        is_same_dir: bridge.spawn_mode.is(&SpawnMode::SameDir),
        ended_with_machine: ended_with_machine(bridge),
        is_link_down: bridge.link.is_down(),
        count_as,
        seen: format!("{}:{}", bridge.instance_id, bridge.generation),
        since: bridge.status_since.as_millis(),
        rank: u8::from(section == Section::Live && count_as != CountAs::Starting),
        at,
        label: bridge.label.clone(),
    }
}

fn ended_with_machine(bridge: &Instance) -> bool {
    let reason = bridge.exit_reason.as_ref();
    let is_so = reason.is_some_and(|reason| reason.is(&ExitReason::HostRestarted));
    is_so && !bridge.intentional_stop && !bridge.is_live()
}

/// The ids of one section, in order.
///
/// Dismissed bridges count as ended. Starting bridges come before running ones, then the newest,
/// then by name.
pub fn ids_of(
    places: &mut dyn Iterator<Item = &ListEntry>,
    section: Section,
    dismissed: &[String],
) -> Vec<String> {
    let stands = |p: &&ListEntry| match p.section {
        Section::NeedsLook if dismissed.contains(&p.seen) => section == Section::Ended,
        own => own == section,
    };
    let rows = places.filter(stands).map(|p| {
        let (rank, at) = (p.rank, order::latest_first(p.at));
        let key = format!("{rank}{at}{}{PART}{}", p.project, p.label);
        (key, p.id.clone())
    });
    order::sorted(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::{asked, bridge};
    use svc_shared::Timestamp;
    use svc_shared::api::instances::Quarantine;
    use svc_shared::status::{Channel, QuarantineKind};

    fn names(rows: &[Instance], section: Section) -> Vec<String> {
        let places: Vec<ListEntry> = rows.iter().map(place).collect();
        ids_of(&mut places.iter(), section, &[])
            .into_iter()
            .map(|id| places.iter().find(|p| p.id == id).unwrap().project.clone())
            .collect()
    }

    #[test]
    fn a_kind_shows_its_own_rows_and_survives_its_way_through_the_address() {
        let server = bridge("a", BridgeStatus::Running);
        let mut interactive = bridge("b", BridgeStatus::Running);
        interactive.resume_mode = ResumeMode::Pty.into();
        let mut direct = bridge("c", BridgeStatus::Running);
        direct.channel = Channel::Hosted.into();
        let places = [server, interactive, direct].map(|row| place(&row));
        for (key, kind) in [
            (places[0].id.as_str(), Only::Server),
            (places[1].id.as_str(), Only::Interactive),
            (places[2].id.as_str(), Only::Direct),
            ("job:3c509237", Only::Background),
            ("external:a:b", Only::External),
        ] {
            for only in Only::ALL {
                assert_eq!(
                    only.takes(key, &places),
                    only == Only::All || only == kind,
                    "{only:?} {key}"
                );
                assert_eq!(Only::parse(only.word()), only);
            }
        }
        assert_eq!(Only::parse("moon"), Only::All);
    }

    #[test]
    fn trouble_comes_apart_from_what_runs_and_what_ended() {
        let rows = [
            bridge("run", BridgeStatus::Running),
            bridge("boom", BridgeStatus::Crashed),
            bridge("nope", BridgeStatus::Error),
            bridge("done", BridgeStatus::Stopped),
        ];
        assert_eq!(names(&rows, Section::NeedsLook), ["boom", "nope"]);
        assert_eq!(names(&rows, Section::Live), ["run"]);
        assert_eq!(names(&rows, Section::Ended), ["done"]);
    }

    #[test]
    fn what_was_dismissed_stands_with_what_ended_until_it_fails_anew() {
        let mut row = bridge("boom", BridgeStatus::Crashed);
        let dismissed = [place(&row).seen];
        let of = |row: &Instance, section| ids_of(&mut [place(row)].iter(), section, &dismissed);
        assert!(of(&row, Section::NeedsLook).is_empty());
        assert_eq!(of(&row, Section::Ended).len(), 1);
        row.generation += 1;
        assert_eq!(of(&row, Section::NeedsLook).len(), 1);
        assert!(of(&row, Section::Ended).is_empty());
    }

    #[test]
    fn a_held_bridge_needs_a_look_although_it_runs() {
        let mut row = bridge("a", BridgeStatus::Running);
        row.quarantined =
            Some(Quarantine { kind: QuarantineKind::Identity.into(), code: "unkillable".into() });
        assert_eq!(place(&row).section, Section::NeedsLook);
        assert_eq!(place(&row).count_as, CountAs::Held);
    }

    #[test]
    fn a_session_that_asks_waits_for_a_person() {
        let mut row = bridge("a", BridgeStatus::Running);
        row.pending_permissions = vec![asked()];
        assert_eq!(names(&[row.clone()], Section::Waiting), ["a"]);
        assert_eq!(place(&row).count_as, CountAs::Blocked);
        row.status = BridgeStatus::Crashed.into();
        assert_eq!(place(&row).section, Section::NeedsLook, "it cannot be answered any more");
    }

    #[test]
    fn starting_comes_before_running_and_running_keeps_its_place() {
        let mut late = bridge("alpha", BridgeStatus::Running);
        late.status_since = Timestamp::from_millis(9_000_000);
        let rows =
            [bridge("zeta", BridgeStatus::Starting), bridge("beta", BridgeStatus::Running), late];
        assert_eq!(names(&rows, Section::Live), ["zeta", "alpha", "beta"]);
    }

    #[test]
    fn the_last_end_is_first() {
        let mut late = bridge("late", BridgeStatus::Stopped);
        late.ended_at = Some(Timestamp::from_millis(90_000));
        let rows = [bridge("early", BridgeStatus::Stopped), late];
        assert_eq!(names(&rows, Section::Ended), ["late", "early"]);
    }
}
