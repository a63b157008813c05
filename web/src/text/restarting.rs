//! Sentences about a restart of the service.

/// Title, button and entry of the palette.
pub const TITLE: &str = "Restart svc";
/// Button.
pub const RESTART: &str = "Restart";
/// What it means for who looks on.
pub const MEANS: &str = "The dashboard disconnects for a few seconds and returns to this view.";
/// While the service is away.
pub const IS_AWAY: &str = "svc is restarting. This page reconnects automatically.";
/// Toast after the restart.
pub const IS_BACK: &str = "svc is running again.";
/// After a minute without an answer.
pub const LATE: &str = "svc has not answered for a minute. On the machine, read its log and check \
    the configuration:";
/// Commands for it.
///
/// The first is for the service of one person, the second for that of the system.
pub const LOOK: [&str; 3] =
    ["journalctl --user -u svc -n 50", "journalctl -u svc -n 50", "svc config check"];
/// Button that closes the dialog while the service is away.
pub const CLOSE: &str = "Close";

/// What keeps running: bridges, Direct Sessions, background jobs.
#[must_use]
pub fn keeps(bridges: usize, direct: usize, jobs: usize) -> String {
    let one = |count: usize, name: &str| match count {
        0 => None,
        1 => Some(format!("1 {name}")),
        many => Some(format!("{many} {name}s")),
    };
    let parts: Vec<String> =
        [one(bridges, "bridge"), one(direct, "Direct Session"), one(jobs, "background job")]
            .into_iter()
            .flatten()
            .collect();
    let (listed, verb) = match parts.as_slice() {
        [] => return "No session is running.".to_owned(),
        [only] => (only.clone(), if bridges + direct + jobs == 1 { "keeps" } else { "keep" }),
        [first @ .., last] => (format!("{} and {last}", first.join(", ")), "keep"),
    };
    format!("{listed} {verb} running.")
}

#[cfg(test)]
mod tests {
    use super::keeps;

    #[test]
    fn what_keeps_running_is_counted() {
        assert_eq!(keeps(0, 0, 0), "No session is running.");
        assert_eq!(keeps(1, 0, 0), "1 bridge keeps running.");
        assert_eq!(keeps(0, 2, 0), "2 Direct Sessions keep running.");
        assert_eq!(
            keeps(3, 1, 2),
            "3 bridges, 1 Direct Session and 2 background jobs keep running."
        );
    }
}
