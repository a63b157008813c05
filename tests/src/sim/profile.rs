//! What differs between agent versions: one question per difference.

use super::failure::Failure;

/// Versions the double knows, oldest first.
const KNOWN: [Profile; 8] = [
    Profile([2, 1, 130]),
    Profile([2, 1, 145]),
    Profile([2, 1, 197]),
    Profile([2, 1, 211]),
    Profile([2, 1, 232]),
    Profile([2, 1, 280]),
    Profile([2, 1, 330]),
    Profile([9, 9, 9]),
];

/// A known agent version, compared part by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Profile([u32; 3]);

impl Profile {
    /// The newest known version not above `text`, or the oldest one.
    pub(crate) fn nearest(text: &str) -> Result<Self, Failure> {
        let wanted = Self::parse(text).ok_or_else(|| {
            Failure::refused(format!(
                "knob profile is {text:?}, which is not a version such as 2.1.197; set one"
            ))
        })?;
        let [oldest, ..] = KNOWN;
        Ok(KNOWN.into_iter().rev().find(|known| *known <= wanted).unwrap_or(oldest))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = [0; 3];
        let mut given = text.split('.');
        for part in &mut parts {
            match given.next() {
                Some(digits) => *part = digits.parse().ok()?,
                None => break,
            }
        }
        given.next().is_none().then_some(Self(parts))
    }

    /// As `--version` prints it.
    pub(crate) fn version(self) -> String {
        let [major, minor, patch] = self.0;
        format!("{major}.{minor}.{patch}")
    }

    /// `sessions/` and the fields `status`, `state` and `id` of `agents --json`.
    pub(crate) fn has_registry(self) -> bool {
        self >= Self([2, 1, 145])
    }

    /// `--bg` and the commands for background sessions.
    pub(crate) fn has_jobs(self) -> bool {
        self >= Self([2, 1, 145])
    }

    /// Value of `peerProtocol` in a registry entry.
    pub(crate) fn peer_protocol(self) -> Option<u32> {
        if self.is_future() { Some(2) } else { (self >= Self([2, 1, 197])).then_some(1) }
    }

    /// A git repository is trusted by its own key only.
    pub(crate) fn repository_needs_own_key(self) -> bool {
        self >= Self([2, 1, 232])
    }

    /// Worktrees of sessions are locked and stay so.
    pub(crate) fn locks_worktrees(self) -> bool {
        self >= Self([2, 1, 232])
    }

    /// An orderly stop never gives the environment back.
    /// The server then refuses a second one for the same directory.
    pub(crate) fn keeps_environment(self) -> bool {
        self >= Self([2, 1, 280])
    }

    /// Whether dispatch needs a trusted directory (seen in 2.1.330, not in 2.1.197).
    pub(crate) fn jobs_need_trust(self) -> bool {
        self >= Self([2, 1, 330])
    }

    /// What the agent calls a background session when it does not find one.
    pub(crate) fn job_word(self) -> &'static str {
        if self >= Self([2, 1, 330]) { "session" } else { "job" }
    }

    /// Unknown extra fields and reworded banners.
    pub(crate) fn is_future(self) -> bool {
        self >= Self([9, 9, 9])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_version_acts_as_the_nearest_lower_one() {
        let version = |text| Profile::nearest(text).expect("a version").version();
        assert_eq!(version("2.1.200"), "2.1.197");
        assert_eq!(version("1"), "2.1.130");
        assert_eq!(version("9.9.9"), "9.9.9");
        assert_eq!(version("2.1.279"), "2.1.232");
        assert_eq!(version("2.1.400"), "2.1.330");
        assert!(Profile::nearest("2.1.x").is_err());
        assert!(Profile::nearest("2.1.1.1").is_err());
    }
}
