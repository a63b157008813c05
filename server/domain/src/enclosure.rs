//! The control group of a bridge: a transient systemd scope named after the launch.
//!
//! Every process in the scope belongs to the bridge, even without its parent, session or
//! environment. The name alone proves nothing, because any user can choose it. Below our slice only
//! the manager creates groups.

use crate::identity::LaunchId;

/// The slice all scopes are in; its own parent is `svc.slice`.
pub const SLICE: &str = "svc-bridges.slice";
const BEGIN: &str = "svc-bridge-";
const END: &str = ".scope";

/// Name of the scope of a launch. Launch ids never repeat, so names are unique.
#[must_use]
pub fn unit(launch: &LaunchId) -> String {
    format!("{BEGIN}{}{END}", launch.as_str())
}

/// The launch whose scope a process is in, from its `/proc/PID/cgroup`.
#[must_use]
pub fn launch_of(groups: &str) -> Option<LaunchId> {
    groups.lines().find_map(|line| {
        // `0::PATH`, or `N:name=systemd:PATH` where version 1 is still in use (`cgroups(7)`).
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is_the_managers = controllers.is_empty() || controllers == "name=systemd";
        let mut parts = path.split('/').skip_while(|part| *part != SLICE);
        let scope = parts.nth(1).filter(|_| is_the_managers)?;
        scope.strip_prefix(BEGIN)?.strip_suffix(END)?.parse().ok()
    })
}

/// Whether this process may put bridges into scopes of the user's own manager.
/// That manager ends with the user's last login, and ends everything in its scopes. So it is used
/// only by a process that runs below that manager itself.
#[must_use]
pub fn is_below_user_manager(groups: &str, uid: u32) -> bool {
    let manager = format!("user@{uid}.service");
    groups.lines().any(|line| line.split('/').any(|part| part == manager))
}

/// Whether a control group is that of a service unit, and of which.
#[must_use]
pub fn service_unit(groups: &str) -> Option<&str> {
    groups
        .lines()
        .filter_map(|line| line.rsplit('/').next())
        .find(|name| name.ends_with(".service"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn launch() -> LaunchId {
        "0123456789abcdef0123456789abcdef".parse().unwrap()
    }

    #[test]
    fn h104_who_is_in_the_scope_of_a_launch_is_told_by_our_slice_only() {
        let unit = unit(&launch());
        for of_ours in [
            format!("0::/svc.slice/svc-bridges.slice/{unit}\n"),
            format!("0::/user.slice/user@7.service/svc.slice/svc-bridges.slice/{unit}/below\n"),
            format!("4:memory:/x\n1:name=systemd:/svc.slice/svc-bridges.slice/{unit}\n0::/\n"),
        ] {
            assert_eq!(launch_of(&of_ours), Some(launch()), "{of_ours}");
        }
        for of_others in [
            String::new(),
            "0::/".to_owned(),
            "0::/svc.slice/svc-bridges.slice".to_owned(),
            format!("0::/{unit}"),
            format!("0::/system.slice/{unit}"),
            format!("4:memory:/svc.slice/svc-bridges.slice/{unit}"),
            format!("0::/svc.slice/svc-bridges.slice/other.scope/{unit}"),
            format!("0::/svc.slice/svc-bridges.slice/{unit}x"),
            "0::/svc.slice/svc-bridges.slice/svc-bridge-zz.scope".to_owned(),
        ] {
            assert_eq!(launch_of(&of_others), None, "{of_others}");
        }
    }

    #[test]
    fn the_users_manager_is_known_by_the_whole_name() {
        let below = "0::/user.slice/user-7.slice/user@7.service/app.slice/svc.service\n";
        assert!(is_below_user_manager(below, 7));
        assert!(!is_below_user_manager(below, 77));
        assert!(!is_below_user_manager("0::/user.slice/user-7.slice/session-2.scope\n", 7));
        assert_eq!(service_unit(below), Some("svc.service"));
        assert_eq!(service_unit("0::/user.slice/user-7.slice/session-2.scope\n"), None);
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "[a-z0-9:/=.\\n-]{0,80}") {
            let _ = launch_of(&text);
            let _ = is_below_user_manager(&text, 0);
        }
    }
}
