//! Checks of the configuration: `config`, `config-keys`, `config-mode`, `env`.

use super::verdict::{check, counted, failed, passed, some_of, warned};
use std::fmt::Display;
use svc_config::{ConfigErrors, Loaded, Warning, WarningKind};
use svc_shared::internal::Check;
use svc_shared::status::CheckStatus;

/// No file where one is looked for.
#[must_use]
pub fn not_found(searched: &[impl Display]) -> Vec<Check> {
    let places: Vec<String> = searched.iter().map(ToString::to_string).collect();
    let hint = "write one of these, one line does (projects_root: DIR); or name one with -c";
    vec![failed("config", format!("not found; searched {}", places.join(", ")), hint)]
}

/// The four checks of a file that was read; `config` alone when it cannot be used.
pub(super) fn checks(read: Result<&Loaded, &ConfigErrors>) -> Vec<Check> {
    let (loaded, warnings) = match read {
        Ok(loaded) => (loaded, &loaded.warnings),
        Err(errors) => match &errors.exposed {
            // Only `auth` speaks against it, and says so itself.
            Some(loaded) => (&**loaded, &errors.warnings),
            None => return vec![unusable(errors)],
        },
    };
    let path = loaded.path.as_deref().map(|path| path.display().to_string());
    vec![
        passed("config", format!("loaded {}", path.as_deref().unwrap_or("from text"))),
        keys(warnings),
        mode(warnings),
        environment(warnings),
    ]
}

fn unusable(errors: &ConfigErrors) -> Check {
    let hint = "correct these keys, then run `svc config check`";
    failed("config", some_of(&errors.problems), hint)
}

fn keys(warnings: &[Warning]) -> Check {
    const NAME: &str = "config-keys";
    let about = |is: fn(&WarningKind) -> bool| -> Vec<&Warning> {
        warnings.iter().filter(|warning| is(&warning.kind)).collect()
    };
    let guarding = about(|kind| matches!(kind, WarningKind::UnknownKey { is_security: true, .. }));
    if !guarding.is_empty() {
        let hint = "correct the spelling: a key that protects has no effect as it is written";
        return failed(NAME, some_of(&guarding), hint);
    }
    let odd = about(|kind| match kind {
        WarningKind::UnknownKey { .. }
        | WarningKind::Deprecated
        | WarningKind::EmptySection
        | WarningKind::NewerSchema
        | WarningKind::UnknownProject => true,
        WarningKind::UnknownVariable { .. }
        | WarningKind::FileOnly
        | WarningKind::FileMode { .. }
        | WarningKind::Ineffective
        | WarningKind::Posture => false,
    });
    // What concerns sign-in is judged by `auth`.
    let idle: Vec<&Warning> = warnings
        .iter()
        .filter(|warning| warning.kind == WarningKind::Ineffective)
        .filter(|warning| !warning.keys.iter().any(|key| key.starts_with("auth.")))
        .collect();
    let all: Vec<&Warning> = odd.into_iter().chain(idle).collect();
    if all.is_empty() {
        return passed(NAME, "no unknown or deprecated keys");
    }
    let what = counted(all.len(), "remark");
    let hint = "correct or remove them; `svc config check` lists all";
    warned(NAME, format!("{what}: {}", some_of(&all)), hint)
}

fn mode(warnings: &[Warning]) -> Check {
    const NAME: &str = "config-mode";
    // Keys of other files, such as a private key, are theirs to report.
    let of_file: Vec<&Warning> = warnings
        .iter()
        .filter(|warning| {
            matches!(warning.kind, WarningKind::FileMode { .. }) && warning.keys.is_empty()
        })
        .collect();
    let is_writable =
        |warning: &&Warning| matches!(warning.kind, WarningKind::FileMode { is_writable: true });
    let hint = "restrict it to its owner: `svc doctor --fix`";
    if of_file.iter().any(is_writable) {
        return check(NAME, CheckStatus::Fail, some_of(&of_file), Some(hint));
    }
    match of_file.is_empty() {
        true => passed(NAME, "only its owner can change it"),
        false => warned(NAME, some_of(&of_file), hint),
    }
}

fn environment(warnings: &[Warning]) -> Check {
    const NAME: &str = "env";
    let odd: Vec<&Warning> = warnings
        .iter()
        .filter(|warning| {
            matches!(warning.kind, WarningKind::UnknownVariable { .. } | WarningKind::FileOnly)
        })
        .collect();
    if odd.is_empty() {
        return passed(NAME, "every SVC_ variable is understood");
    }
    let hint = "correct the name, or set the key in the file; `svc config show` names every source";
    warned(NAME, some_of(&odd), hint)
}
