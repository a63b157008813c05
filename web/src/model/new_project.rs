//! Rules of the sheet that makes a project.
//!
//! The service has the last word; these say at once what it would refuse.

use svc_shared::ids::ProjectName;
use svc_shared::internal::clones::CloneJob;
use svc_shared::internal::clones::CloneState;

/// What the sheet is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Making {
    /// A form.
    Form(Way),
    /// A clone, by its job.
    Clone(String),
}

/// Which way a project comes to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// An empty directory.
    Create,
    /// A copy of a repository.
    Clone,
}

/// What is wrong with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadUrl {
    /// Neither https nor ssh.
    Scheme,
    /// `host:path`.
    ShortForm,
    /// A password inside.
    Password,
}

/// What is wrong with an address, as far as the page can tell.
///
/// Nothing about an empty one.
#[must_use]
pub fn bad_url(url: &str) -> Option<BadUrl> {
    if url.is_empty() {
        return None;
    }
    let lower = url.to_ascii_lowercase();
    let rest = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("ssh://"));
    let Some(rest) = rest else {
        let first = url.split('/').next().unwrap_or_default();
        let is_short = first.contains('@') && first.contains(':') && !url.contains("://");
        return Some(if is_short { BadUrl::ShortForm } else { BadUrl::Scheme });
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    user.contains(':').then_some(BadUrl::Password)
}

/// The name that an address suggests; empty without one.
#[must_use]
pub fn suggested(url: &str) -> String {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/');
    let last = path.rsplit_once('/').map_or("", |(_, last)| last);
    last.strip_suffix(".git").unwrap_or(last).to_owned()
}

/// Why a name is refused; nothing about an empty one.
#[must_use]
pub fn bad_name(name: &str) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    if name.starts_with('-') {
        return Some("a project name does not begin with `-`".to_owned());
    }
    name.parse::<ProjectName>().err().map(|why| why.to_string())
}

/// The phases a person is shown, in order.
pub const PHASES: [&str; 5] = ["Counting", "Compressing", "Receiving", "Resolving", "Updating"];

/// How many of the shown phases are behind the present one.
#[must_use]
pub fn phases_done(phase: &str) -> usize {
    match phase {
        "Total" => 2,
        other => PHASES.iter().position(|one| *one == other).unwrap_or(0),
    }
}

/// Whether a clone is not over.
#[must_use]
pub fn is_under_way(job: &CloneJob) -> bool {
    job.state.is(&CloneState::Waiting) || job.state.is(&CloneState::Running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_refused_before_it_is_sent_and_suggests_a_name() {
        assert_eq!(bad_url(""), None);
        assert_eq!(bad_url("https://h/a.git"), None);
        assert_eq!(bad_url("SSH://git@h/a"), None);
        assert_eq!(bad_url("git@h:a/b.git"), Some(BadUrl::ShortForm));
        assert_eq!(bad_url("http://h/a"), Some(BadUrl::Scheme));
        assert_eq!(bad_url("https://u:p@h/a"), Some(BadUrl::Password));
        assert_eq!(suggested("https://h/team/ledger.git/"), "ledger");
        assert_eq!(suggested("https://h"), "");
        assert!(bad_name("-x").is_some() && bad_name("a/b").is_some() && bad_name("").is_none());
        assert_eq!(bad_name("ledger"), None);
    }

    #[test]
    fn phases_go_forward() {
        let done = ["", "Enumerating", "Counting", "Compressing", "Total", "Receiving", "Updating"];
        assert_eq!(done.map(phases_done), [0, 0, 0, 1, 2, 2, 4]);
    }
}
