//! The options of a launch request, checked and with the defaults filled in.

use crate::AppError;
use svc_config::Config;
use svc_domain::log_escape::quoted;
use svc_shared::api::instances::{Kind, SpawnRequest};
use svc_shared::status::{
    AfterReboot, Channel, LaunchMode, PermissionMode, RestartPolicy, ResumeMode, SandboxMode,
    SpawnMode, UnknownWord,
};
use svc_shared::text::session_name;

/// What a launch was asked to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub kind: Kind,
    pub spawn_mode: SpawnMode,
    pub permission_mode: PermissionMode,
    pub custom_name: Option<String>,
    pub trust: bool,
    pub restart: Option<RestartPolicy>,
    pub after_reboot: Option<AfterReboot>,
    pub warnings: Vec<String>,
}

/// The word of an optional field; without one the configuration decides.
pub(crate) fn own_word<T: std::str::FromStr<Err = UnknownWord>>(
    field: &str,
    raw: Option<&str>,
) -> Result<Option<T>, AppError> {
    let Some(raw) = raw else { return Ok(None) };
    raw.parse().map(Some).map_err(|unknown: UnknownWord| {
        AppError::invalid(format!("`{field}` cannot be {}: {unknown}", quoted(raw)))
    })
}

/// Checks what the request alone can tell, in the documented order.
/// Kind first, then values.
pub(crate) fn options(config: &Config, request: &SpawnRequest) -> Result<Options, AppError> {
    let mut warnings = Vec::new();
    let kind = kind(config, request, &mut warnings)?;
    let spawn_mode = own_word("spawn_mode", request.spawn_mode.as_deref())?
        .unwrap_or(config.instance_defaults.spawn_mode);
    let permission_mode = own_word("permission_mode", request.permission_mode.as_deref())?
        .unwrap_or(config.instance_defaults.permission_mode);
    let custom_name = match request.name.as_deref() {
        None => None,
        Some(raw) => session_name(raw)
            .map_err(|bad| AppError::invalid(format!("`name` cannot be used: {bad}")))?,
    };
    if own_word::<SandboxMode>("sandbox", request.sandbox.as_deref())?
        .is_some_and(|sandbox| sandbox != SandboxMode::Default)
    {
        warnings.push("`sandbox` has no effect in this version; it stays at `default`".to_owned());
    }
    if request.conversation.is_some() || request.resume_session_id.is_some() {
        return Err(AppError::invalid(
            "`conversation` and `resume_session_id` are only for Interactive Sessions, which are \
             not part of this build; leave them out",
        ));
    }
    Ok(Options {
        kind,
        spawn_mode,
        permission_mode,
        custom_name,
        trust: request.trust.unwrap_or(false),
        restart: own_word("restart", request.restart.as_deref())?,
        after_reboot: own_word("after_reboot", request.after_reboot.as_deref())?,
        warnings,
    })
}

fn kind(
    config: &Config,
    request: &SpawnRequest,
    warnings: &mut Vec<String>,
) -> Result<Kind, AppError> {
    let mode: Option<LaunchMode> = own_word("mode", request.mode.as_deref())?;
    let channel: Option<Channel> = own_word("channel", request.channel.as_deref())?;
    let resume: Option<ResumeMode> = own_word("resume_mode", request.resume_mode.as_deref())?;
    let contradiction = |field: &str| {
        AppError::invalid(format!("`mode` and `{field}` contradict each other; give only one"))
    };
    let kind = match (mode.map(Kind::from), channel) {
        (Some(Kind::Hosted), Some(Channel::RemoteControl))
        | (Some(Kind::Bridge(_)), Some(Channel::Hosted)) => return Err(contradiction("channel")),
        (Some(Kind::Hosted), _) | (None, Some(Channel::Hosted)) => Kind::Hosted,
        (Some(Kind::Bridge(mode)), _) => {
            if resume.is_some_and(|resume| resume != mode) {
                return Err(contradiction("resume_mode"));
            }
            Kind::Bridge(mode)
        }
        (None, _) => Kind::Bridge(resume.unwrap_or(config.claude.launch_mode)),
    };
    Ok(match kind {
        // Terminals are not part of this build; the specification lets it fall back.
        Kind::Bridge(ResumeMode::Pty) => {
            warnings.push(
                "Interactive Sessions are not part of this build; started in Server Mode instead"
                    .to_owned(),
            );
            Kind::Bridge(ResumeMode::Standard)
        }
        Kind::Bridge(ResumeMode::Standard) => Kind::Bridge(ResumeMode::Standard),
        Kind::Hosted => Kind::Hosted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("projects_root: {0}\nstate_dir: {0}/state\n", dir.path().display());
        (*svc_config::load_text(&text, dir.path()).unwrap().config).clone()
    }

    fn request() -> SpawnRequest {
        SpawnRequest { project: "api".into(), ..SpawnRequest::default() }
    }

    #[track_caller]
    fn refused(request: &SpawnRequest, words: &str) {
        let error = options(&config(), request).unwrap_err();
        assert!(error.message.contains(words), "{}", error.message);
    }

    #[test]
    fn a_silent_request_takes_the_defaults() {
        let options = options(&config(), &request()).unwrap();
        assert_eq!(options.kind, Kind::Bridge(ResumeMode::Standard));
        assert_eq!(options.spawn_mode, SpawnMode::SameDir);
        assert_eq!(options.permission_mode, PermissionMode::Default);
        assert!(!options.trust && options.warnings.is_empty() && options.custom_name.is_none());
    }

    #[test]
    fn an_unknown_word_is_refused_and_the_field_and_the_choices_are_named() {
        let bad = SpawnRequest { permission_mode: Some("yolo".into()), ..request() };
        refused(&bad, "`permission_mode`");
        refused(&bad, "acceptEdits");
        refused(&SpawnRequest { spawn_mode: Some("tree".into()), ..request() }, "`spawn_mode`");
        refused(&SpawnRequest { sandbox: Some("maybe".into()), ..request() }, "`sandbox`");
        refused(&SpawnRequest { mode: Some("desk".into()), ..request() }, "`mode`");
        refused(&SpawnRequest { channel: Some("tube".into()), ..request() }, "`channel`");
    }

    #[test]
    fn contradicting_kinds_are_refused() {
        let hosted = SpawnRequest {
            mode: Some("hosted".into()),
            channel: Some("remote-control".into()),
            ..request()
        };
        refused(&hosted, "`channel`");
        let pty = SpawnRequest {
            mode: Some("standard".into()),
            resume_mode: Some("pty".into()),
            ..request()
        };
        refused(&pty, "`resume_mode`");
    }

    #[test]
    fn an_interactive_session_falls_back_with_a_warning() {
        let pty = SpawnRequest { resume_mode: Some("pty".into()), ..request() };
        let options = options(&config(), &pty).unwrap();
        assert_eq!(options.kind, Kind::Bridge(ResumeMode::Standard));
        assert_eq!(options.warnings.len(), 1);
    }

    #[test]
    fn a_hostile_name_is_refused_and_a_blank_one_is_the_default() {
        refused(&SpawnRequest { name: Some("--help".into()), ..request() }, "`name`");
        refused(&SpawnRequest { name: Some("a\nb".into()), ..request() }, "`name`");
        let blank = SpawnRequest { name: Some("  ".into()), ..request() };
        assert_eq!(options(&config(), &blank).unwrap().custom_name, None);
    }

    #[test]
    fn the_inert_sandbox_is_said_to_be_inert() {
        let on = SpawnRequest { sandbox: Some("on".into()), ..request() };
        assert_eq!(options(&config(), &on).unwrap().warnings.len(), 1);
    }
}
