//! Sentences about readiness.

/// View.
pub const TITLE: &str = "Readiness";
/// While the checks run.
pub const ASKING: &str = "Checking this machine…";
/// Button.
pub const AGAIN: &str = "Check again";
/// Group.
pub const BLOCKING: &str = "Blocking";
/// Group.
pub const WARNING: &str = "Warnings";
/// Group.
pub const DECISION: &str = "For you to decide";
/// Group.
pub const FINE: &str = "Passed";
/// Button.
pub const COPY: &str = "Copy report";
/// Pill in the top bar.
#[must_use]
pub fn blocking(n: usize) -> String {
    format!("{n} blocking")
}
/// Pill in the top bar.
#[must_use]
pub fn checks(n: usize) -> String {
    if n == 1 { "1 check".to_owned() } else { format!("{n} checks") }
}
/// How many checks there are of each kind, above them.
#[must_use]
pub fn summary(blocking: usize, warnings: usize, decisions: usize, passed: usize) -> String {
    let part = |n: usize, one: &str, many: &str| {
        (n > 0).then(|| format!("{} {}", checks(n), if n == 1 { one } else { many }))
    };
    let parts = [
        part(blocking, "blocks", "block"),
        part(warnings, "needs attention", "need attention"),
        part(decisions, "waits for your decision", "wait for your decision"),
        Some(format!("{} passed", checks(passed))),
    ];
    format!("{}.", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}
/// What a check looks at; its own name where this page does not know it.
#[must_use]
pub fn title(check: &str) -> &str {
    match check {
        "config" => "Configuration",
        "config-keys" => "Configuration keys",
        "config-mode" => "Configuration file access",
        "env" => "Environment variables",
        "claude" => "Agent",
        "claude-login" => "Agent sign-in",
        "projects_root" => "Projects folder",
        "state_dir" => "State folder",
        "git" => "Git",
        "auth" => "Who may sign in",
        "workspace-trust" => "Trusted projects",
        "port" => "Port",
        "server" => "Service address",
        "version" => "Source checkout",
        "systemd" => "systemd",
        "node-toolchain" => "Node.js",
        "extra:pty" => "Live terminal",
        "extra:notify" => "Notifications",
        "binary:hosted" => "Direct Session daemon",
        "binary:hosted:shadow" => "Second Direct Session daemon",
        "binary:service-wrapper" => "Service wrapper",
        "tls" => "Certificate",
        "disk" => "Disk space",
        "db" => "Database",
        "strays" => "Leftover processes",
        "keepers" => "Terminal keepers",
        "restart" => "Restart policy",
        "program" => "Program file",
        "duplicate-sessions" => "Sessions with two processes",
        other => other,
    }
}
/// Processes that the check `strays` has found.
pub mod strays {
    /// Name of their list.
    pub const LIST: &str = "Processes without a live session";
    /// Button.
    pub const END: &str = "End process";
    /// Question before it.
    pub const QUESTION: &str = "? The process is killed and cannot finish its work.";
    /// Its bridge has ended.
    pub const LEFTOVER: &str = "left by a session that ended";
    /// A second agent under one launch.
    pub const DUPLICATE: &str = "second process of a live session";
    /// Nobody knows where it belongs.
    pub const NO_PROJECT: &str = "in no project";
    /// A process as messages name it.
    #[must_use]
    pub fn object(pid: i32, program: &str) -> String {
        if program.is_empty() { pid.to_string() } else { format!("{pid} ({program})") }
    }
    /// Outcome.
    #[must_use]
    pub fn ended(object: &str) -> String {
        format!("Process {object} has ended")
    }
}
/// Conversations whose bridge died.
pub mod stranded {
    /// Name of their list.
    pub const LIST: &str = "Stranded conversations";
    /// Under the name.
    pub const WHY: &str = "Their bridge died. What is typed into them reaches nobody. Continue \
                           each as a background session with its whole history.";
    /// Button.
    pub const CONTINUE: &str = "Continue";
    /// Button.
    pub const DISMISS: &str = "Dismiss";
    /// A conversation without a readable turn.
    pub const NO_TITLE: &str = "Conversation without a first message";
    /// Before the time of the death.
    pub const SINCE: &str = "stranded for ";
    /// Fact of a row.
    #[must_use]
    pub fn count(n: u32) -> String {
        match n {
            1 => "1 conversation is stranded: what is typed into it reaches nobody".to_owned(),
            _ => format!("{n} conversations are stranded: what is typed into them reaches nobody"),
        }
    }
    /// A conversation as messages name it.
    #[must_use]
    pub fn object(title: &str) -> String {
        format!("“{title}”")
    }
    /// Outcome.
    #[must_use]
    pub fn continued(object: &str, job: &str) -> String {
        format!("{object} continues as background session {job}")
    }
    /// Outcome.
    #[must_use]
    pub fn dismissed(object: &str) -> String {
        format!("Removed {object} from the list")
    }
}
/// The remote link of a bridge.
pub mod link {
    /// Before how long the link has been lost.
    pub const LOST: &str = "Link lost ";
    /// After it.
    pub const AGO: &str = " ago";
    /// After an activity that may have changed.
    pub const STALE: &str = " (may be out of date)";
    /// From where an activity is known, and since when.
    #[must_use]
    pub fn known(provenance: &str, since: &str) -> String {
        format!("{provenance}, since {since}")
    }
    /// A conversation stopped at a plan limit.
    #[must_use]
    pub fn limit(name: &str, resets: Option<&str>, continues: Option<&str>) -> String {
        match (continues, resets) {
            (Some(at), _) => format!("{name}, continues by itself {at}"),
            (None, Some(at)) => format!("{name}, resets {at}"),
            (None, None) => name.to_owned(),
        }
    }
}
/// Before the time of the run.
pub const AS_OF: &str = "Checked ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_what_there_is_in_the_right_number() {
        assert_eq!(summary(0, 0, 0, 19), "19 checks passed.");
        assert_eq!(
            summary(1, 2, 1, 1),
            "1 check blocks, 2 checks need attention, 1 check waits for your decision, \
             1 check passed."
        );
        assert_eq!(
            summary(2, 1, 0, 0),
            "2 checks block, 1 check needs attention, 0 checks passed."
        );
    }

    #[test]
    fn a_check_of_a_newer_service_keeps_its_name() {
        assert_eq!((title("claude-login"), title("moon")), ("Agent sign-in", "moon"));
    }
}
