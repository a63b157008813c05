//! The check `disk`: whether there is space for records and logs.

use super::verdict::{failed, passed, warned};
use std::path::Path;
use svc_shared::internal::Check;

const NAME: &str = "disk";
const MIB: u64 = 1024 * 1024;
const GIB: u64 = 1024 * MIB;
/// With less a launch is refused soon, and a stop lives on kept space.
const TOO_LITTLE: u64 = 50 * MIB;
const LITTLE: u64 = GIB;
const FREE_SPACE: &str = "free some space on its file system, keep fewer logs \
                          (logs.retention_max_total_mb), or move state_dir with svc stopped";

/// Looks at the file system of the state directory, or where it will be.
pub(super) fn disk(state_dir: &Path) -> Check {
    let Some(place) = state_dir.ancestors().find(|place| place.exists()) else {
        return warned(NAME, "the place of state_dir is not there", "correct state_dir");
    };
    match rustix::fs::statvfs(place) {
        Ok(found) => judge(
            found.f_bavail.saturating_mul(found.f_frsize),
            found.f_blocks.saturating_mul(found.f_frsize),
        ),
        Err(error) => warned(
            NAME,
            format!("the free space at state_dir is unknown: {error}"),
            "check the file system of state_dir",
        ),
    }
}

fn judge(free: u64, total: u64) -> Check {
    let detail = format!("{} of {} free at state_dir", shown(free), shown(total));
    // Some virtual file systems have no size.
    if total == 0 {
        return passed(NAME, "the file system of state_dir has no fixed size");
    }
    if free < TOO_LITTLE {
        return failed(NAME, detail, FREE_SPACE);
    }
    if free < LITTLE || free < total / 20 {
        return warned(NAME, detail, FREE_SPACE);
    }
    passed(NAME, detail)
}

/// A size in MiB or GiB.
fn shown(bytes: u64) -> String {
    if bytes < GIB {
        return format!("{} MiB", bytes / MIB);
    }
    let tenths = bytes / (GIB / 10);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_shared::status::CheckStatus::{Fail, Ok, Warn};

    #[test]
    fn little_space_is_told_of_and_very_little_fails() {
        for (free, total, status, words) in [
            (200 * GIB, 1000 * GIB, Ok, "200.0 GiB of 1000.0 GiB free"),
            (49 * GIB, 1000 * GIB, Warn, "49.0 GiB"),
            (GIB - 1, 4 * GIB, Warn, "1023 MiB of 4.0 GiB"),
            (50 * MIB, 4 * GIB, Warn, "50 MiB"),
            (50 * MIB - 1, 4 * GIB, Fail, "49 MiB"),
            (0, 4 * GIB, Fail, "0 MiB"),
            (0, 0, Ok, "no fixed size"),
        ] {
            let check = judge(free, total);
            assert!(check.status.is(&status), "{check:?}");
            assert!(check.detail.contains(words), "{check:?}");
            assert_eq!(check.hint.is_some(), status != Ok, "{check:?}");
        }
    }

    #[test]
    fn a_directory_that_is_not_there_yet_is_judged_by_its_parent() {
        let dir = tempfile::tempdir().unwrap();
        let check = disk(&dir.path().join("not/there"));
        assert!(check.detail.contains("free at state_dir"), "{check:?}");
    }
}
