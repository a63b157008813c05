//! The check `systemd`.

use super::verdict::{failed, passed, warned};
use svc_config::ScopeUse;
use svc_ports::process::{Manager, ServiceUnit};
use svc_shared::internal::Check;

/// Whether bridges outlive the unit of the service.
/// By a scope of their own, or by what the unit ends.
pub(super) fn systemd(wanted: ScopeUse, manager: &Manager, unit: Option<&ServiceUnit>) -> Check {
    const NAME: &str = "systemd";
    let why = match (wanted, manager) {
        (ScopeUse::Off, _) => "scopes are off (`claude.scope`)".to_owned(),
        (ScopeUse::Auto | ScopeUse::Require, Manager::Answers(version)) => {
            return passed(
                NAME,
                format!("each bridge gets a scope of its own (systemd {version})"),
            );
        }
        (ScopeUse::Auto | ScopeUse::Require, Manager::Absent) => {
            "systemd is not available".to_owned()
        }
        (ScopeUse::Auto | ScopeUse::Require, Manager::Silent(why)) => why.clone(),
    };
    if wanted == ScopeUse::Require {
        return failed(
            NAME,
            format!("{why}, and `claude.scope` is `require`: nothing is started"),
            "set claude.scope to auto, or run the service as root or as a unit of your own systemd",
        );
    }
    let killing = unit.filter(|unit| !["process", "none"].contains(&unit.kill_mode.as_str()));
    if let Some(unit) = killing {
        return warned(
            NAME,
            format!("{why}; {} ends its bridges (KillMode={})", unit.name, unit.kill_mode),
            "put KillMode=process into the unit, then `systemctl daemon-reload`",
        );
    }
    let rest = "bridges are held together by their launch id";
    match (wanted, manager) {
        (ScopeUse::Auto, Manager::Silent(_)) => warned(
            NAME,
            format!("{why}; {rest}"),
            "look at systemd (`systemctl status`), or set claude.scope to off",
        ),
        _ => passed(NAME, format!("{why}; {rest}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_shared::status::CheckStatus;

    fn unit(kill_mode: &str) -> ServiceUnit {
        ServiceUnit { name: "svc.service".to_owned(), kill_mode: kill_mode.to_owned() }
    }

    #[test]
    fn f81_a_unit_that_takes_its_bridges_along_is_told_of_unless_they_have_scopes() {
        let answers = Manager::Answers("252".to_owned());
        let silent = Manager::Silent("systemd did not answer within 2 s".to_owned());
        let absent = Manager::Absent;
        let group = unit("control-group");
        let process = unit("process");
        use CheckStatus::{Fail, Ok, Warn};
        use ScopeUse::{Auto, Off, Require};
        for (wanted, manager, unit, status) in [
            (Auto, &answers, Some(&group), Ok),
            (Require, &answers, None, Ok),
            (Off, &answers, Some(&group), Warn),
            (Off, &answers, Some(&process), Ok),
            (Auto, &absent, Some(&group), Warn),
            (Auto, &absent, Some(&process), Ok),
            (Auto, &absent, None, Ok),
            (Auto, &silent, Some(&process), Warn),
            (Require, &absent, Some(&process), Fail),
            (Require, &silent, None, Fail),
        ] {
            let check = systemd(wanted, manager, unit);
            assert!(check.status.is(&status), "{wanted:?} {manager:?} {unit:?}: {check:?}");
            assert_eq!(check.hint.is_some(), status != Ok, "{check:?}");
        }
    }
}
