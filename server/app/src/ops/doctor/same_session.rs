//! The check `duplicate-sessions`.

use super::verdict::{counted, passed, some_of, warned};
use svc_domain::same_session::{Sharer, sentence};
use svc_shared::internal::Check;

/// Whether several processes work on one session. `None`: nobody could say.
pub(super) fn duplicate_sessions(found: Option<&[Vec<Sharer>]>) -> Check {
    const NAME: &str = "duplicate-sessions";
    let Some(found) = found else {
        let detail = "the agent's list of live sessions cannot be read";
        return warned(NAME, detail, "look at the rights of `sessions` in the agent's directory");
    };
    if found.is_empty() {
        return passed(NAME, "no session is open in two processes");
    }
    let told: Vec<String> = found.iter().map(|sharers| sentence(sharers)).collect();
    let detail = match told.as_slice() {
        [only] => only.clone(),
        all => format!("{} in several processes: {}", counted(all.len(), "session"), some_of(all)),
    };
    let hint = "end one of them, on the page or in its terminal: both write one conversation, and \
                each overlooks what the other does";
    warned(NAME, detail, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_domain::identity::{Pid, ProcessIdentity};
    use svc_shared::status::CheckStatus;

    fn pair(first: i64, second: i64) -> Vec<Sharer> {
        let sharer = |pid| Sharer {
            process: ProcessIdentity {
                pid: Pid::new(pid).unwrap(),
                start_ticks: 7,
                boot_id: "boot-a".parse().unwrap(),
            },
            project: Some("app".to_owned()),
        };
        vec![sharer(first), sharer(second)]
    }

    #[test]
    fn processes_on_one_session_are_named_with_what_to_do() {
        let check = duplicate_sessions(Some(&[pair(10, 12)]));
        assert!(check.status.is(&CheckStatus::Warn));
        assert_eq!(
            check.detail,
            "processes 10 (project `app`) and 12 (project `app`) work on the same session"
        );
        assert!(check.hint.is_some_and(|hint| hint.starts_with("end one of them")));
        let check = duplicate_sessions(Some(&[pair(10, 12), pair(20, 22)]));
        assert!(check.detail.starts_with("2 sessions in several processes: processes 10"));
        assert!(check.detail.contains("20 (project `app`) and 22"));
        assert!(duplicate_sessions(Some(&[])).status.is(&CheckStatus::Ok));
        assert!(duplicate_sessions(None).status.is(&CheckStatus::Warn));
    }
}
