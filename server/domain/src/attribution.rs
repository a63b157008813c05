//! Which bridge a live session belongs to (`agent-cli` §8.2).
//!
//! The working directory alone proves nothing: a session that was started by hand in a bridge's
//! directory stays external.

use std::path::Path;
use svc_shared::ids::InstanceId;

/// A live session of the agent, its process proven.
#[derive(Debug, Clone, Copy)]
pub struct SessionFacts<'a> {
    /// Whether it is a background job, or of a kind that is not known.
    pub is_background: bool,
    /// Working directory.
    pub cwd: &'a Path,
    /// What the process table says about its parents.
    pub descent: Descent<'a>,
}

/// What the process table says about the parents of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descent<'a> {
    /// It is this bridge's process, or comes from it.
    Of(&'a InstanceId),
    /// It comes from no live bridge.
    Nobody,
    /// The table cannot be read for it.
    Unknown,
}

/// A live bridge that may own sessions.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The bridge.
    pub id: &'a InstanceId,
    /// Its project directory.
    pub cwd: &'a Path,
    /// It makes a worktree per session.
    pub has_worktrees: bool,
    /// The process table can be read for its tree.
    pub is_readable: bool,
}

/// Whose a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribution<'a> {
    /// Of a managed bridge.
    Tracked(&'a InstanceId),
    /// A background job: it belongs to no bridge and has a list of its own.
    Untracked,
    /// Somebody started it by hand.
    External,
}

/// Whose a session is. The first rule that fits decides.
#[must_use]
pub fn attribute<'a>(session: SessionFacts<'a>, bridges: &[Candidate<'a>]) -> Attribution<'a> {
    if session.is_background {
        return Attribution::Untracked;
    }
    if let Descent::Of(owner) = session.descent {
        return Attribution::Tracked(owner);
    }
    // Of a tree that cannot be read, the directory is the only evidence; it must not be ambiguous.
    let mut at_home = bridges.iter().filter(|bridge| bridge.cwd == session.cwd);
    if let (Some(only), None) = (at_home.next(), at_home.next())
        && !only.is_readable
    {
        return Attribution::Tracked(only.id);
    }
    let in_worktree = |bridge: &&Candidate<'a>| {
        let worktrees = bridge.cwd.join(".claude").join("worktrees");
        let inside = session.cwd.strip_prefix(worktrees);
        bridge.has_worktrees && inside.is_ok_and(|rest| rest.components().next().is_some())
    };
    let mut roots = bridges.iter().filter(in_worktree);
    match (roots.next(), roots.next()) {
        (Some(only), None) => Attribution::Tracked(only.id),
        (Some(_), Some(_)) | (None, _) => Attribution::External,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> InstanceId {
        format!("{n:08x}-0000-4000-8000-000000000000").parse().unwrap()
    }

    fn session<'a>(cwd: &'a str, descent: Descent<'a>) -> SessionFacts<'a> {
        SessionFacts { is_background: false, cwd: Path::new(cwd), descent }
    }

    fn bridge<'a>(id: &'a InstanceId, cwd: &'a str) -> Candidate<'a> {
        Candidate { id, cwd: Path::new(cwd), has_worktrees: false, is_readable: true }
    }

    /// F55.
    #[test]
    fn f55_only_descent_makes_a_session_a_bridges_own() {
        let one = id(1);
        let bridges = [bridge(&one, "/p/app")];
        let own = session("/elsewhere", Descent::Of(&one));
        assert_eq!(attribute(own, &bridges), Attribution::Tracked(&one));
        for descent in [Descent::Nobody, Descent::Unknown] {
            let by_hand = session("/p/app", descent);
            assert_eq!(attribute(by_hand, &bridges), Attribution::External);
        }
        // F57.
        let job = SessionFacts { is_background: true, ..own };
        assert_eq!(attribute(job, &bridges), Attribution::Untracked);
    }

    /// F6.
    #[test]
    fn f6_a_tree_that_cannot_be_read_keeps_its_sessions_unless_two_could_own_them() {
        let (one, two) = (id(1), id(2));
        let hidden = Candidate { is_readable: false, ..bridge(&one, "/p/app") };
        let at_home = session("/p/app", Descent::Unknown);
        assert_eq!(attribute(at_home, &[hidden]), Attribution::Tracked(&one));
        let inside = session("/p/app/src", Descent::Unknown);
        assert_eq!(attribute(inside, &[hidden]), Attribution::External);
        let both = [hidden, Candidate { id: &two, ..hidden }];
        assert_eq!(attribute(at_home, &both), Attribution::External);
    }

    #[test]
    fn a_session_in_a_worktree_belongs_to_the_only_bridge_that_makes_some_there() {
        let (one, two) = (id(1), id(2));
        let maker = Candidate { has_worktrees: true, ..bridge(&one, "/p/app") };
        let at = |cwd| session(cwd, Descent::Nobody);
        let inside = at("/p/app/.claude/worktrees/w/src");
        assert_eq!(attribute(inside, &[maker]), Attribution::Tracked(&one));
        for cwd in ["/p/app/.claude/worktrees", "/p/app/.claude", "/p/app2/.claude/worktrees/w"] {
            assert_eq!(attribute(at(cwd), &[maker]), Attribution::External, "{cwd}");
        }
        assert_eq!(attribute(inside, &[bridge(&one, "/p/app")]), Attribution::External);
        let both = [maker, Candidate { id: &two, ..maker }];
        assert_eq!(attribute(inside, &both), Attribution::External);
    }
}
