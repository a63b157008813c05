//! The options of a launch request, checked and with the defaults filled in.

use crate::AppError;
use crate::bridges::conversations::Pick;
use svc_config::Config;
use svc_domain::log_escape::quoted;
use svc_shared::api::instances::{Kind, SpawnRequest};
use svc_shared::ids::InstanceId;
use svc_shared::status::{
    AfterReboot, Channel, LaunchMode, OnLimit, PermissionMode, RestartPolicy, ResumeMode,
    SandboxMode, SpawnMode, UnknownWord,
};
use svc_shared::text::session_name;

/// Nobody can go on for a person who drives the sessions of a bridge remotely.
pub(super) const NO_WORDS: &str = "`on_limit` has no effect on a Server Mode bridge: its sessions take text from their remote \
     client only, so a person goes on after a plan limit";

/// What a launch says that could not have its terminal.
const NO_TERMINAL: &str = "no terminal can be made on this machine, so it was started in Server \
                           Mode instead; check /dev/ptmx and `svc doctor`";

/// What a launch was asked to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub kind: Kind,
    pub spawn_mode: SpawnMode,
    pub permission_mode: PermissionMode,
    pub custom_name: Option<String>,
    pub pick: Option<Pick>,
    pub trust: bool,
    pub restart: Option<RestartPolicy>,
    pub after_reboot: Option<AfterReboot>,
    pub on_limit: Option<OnLimit>,
    /// The id that a new row gets; `None` for a new one.
    pub id: Option<InstanceId>,
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
///
/// `has_terminal` says whether an Interactive Session could be had here.
pub(crate) fn options(
    config: &Config,
    request: &SpawnRequest,
    has_terminal: bool,
) -> Result<Options, AppError> {
    let mut warnings = Vec::new();
    let wanted = kind(config, request)?;
    let pick = pick(request)?;
    if pick.is_some() && wanted != Kind::Bridge(ResumeMode::Pty) {
        return Err(AppError::invalid(
            "`conversation` and `resume_session_id` are only for Interactive Sessions; add \
             `resume_mode: pty` or leave them out",
        ));
    }
    let kind = match wanted {
        Kind::Bridge(ResumeMode::Pty) if !has_terminal && pick.is_some() => {
            return Err(AppError::invalid(
                "a conversation is continued in a terminal, and none can be made on this machine; \
                 check /dev/ptmx and `svc doctor`",
            ));
        }
        Kind::Bridge(ResumeMode::Pty) if !has_terminal => {
            warnings.push(NO_TERMINAL.to_owned());
            Kind::Bridge(ResumeMode::Standard)
        }
        kind @ (Kind::Bridge(_) | Kind::Hosted) => kind,
    };
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
    let on_limit = own_word("on_limit", request.on_limit.as_deref())?;
    if on_limit == Some(OnLimit::Continue) && kind == Kind::Bridge(ResumeMode::Standard) {
        warnings.push(NO_WORDS.to_owned());
    }
    Ok(Options {
        kind,
        spawn_mode,
        permission_mode,
        custom_name,
        pick,
        trust: request.trust.unwrap_or(false),
        restart: own_word("restart", request.restart.as_deref())?,
        after_reboot: own_word("after_reboot", request.after_reboot.as_deref())?,
        on_limit,
        id: None,
        warnings,
    })
}

/// The past conversation that a request names.
fn pick(request: &SpawnRequest) -> Result<Option<Pick>, AppError> {
    match (request.conversation.as_deref(), request.resume_session_id.as_deref()) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(AppError::invalid(
            "`conversation` and `resume_session_id` name the same thing; give only one",
        )),
        (Some(raw), None) => raw
            .parse()
            .map(|reference| Some(Pick::Ref(reference)))
            .map_err(|bad| AppError::invalid(format!("`conversation` cannot be used: {bad}"))),
        (None, Some(raw)) => raw
            .parse()
            .map(|id| Some(Pick::Id(id)))
            .map_err(|bad| AppError::invalid(format!("`resume_session_id` cannot be used: {bad}"))),
    }
}

fn kind(config: &Config, request: &SpawnRequest) -> Result<Kind, AppError> {
    let mode: Option<LaunchMode> = own_word("mode", request.mode.as_deref())?;
    let channel: Option<Channel> = own_word("channel", request.channel.as_deref())?;
    let resume: Option<ResumeMode> = own_word("resume_mode", request.resume_mode.as_deref())?;
    let contradiction = |field: &str| {
        AppError::invalid(format!("`mode` and `{field}` contradict each other; give only one"))
    };
    Ok(match (mode.map(Kind::from), channel) {
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> std::sync::Arc<Config> {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("projects_root: {0}\nstate_dir: {0}/state\n", dir.path().display());
        svc_config::load_text(&text, dir.path()).unwrap().config
    }

    fn request() -> SpawnRequest {
        SpawnRequest { project: "api".into(), ..SpawnRequest::default() }
    }

    #[track_caller]
    fn refused(request: &SpawnRequest, words: &str) {
        let error = options(&config(), request, true).unwrap_err();
        assert!(error.message.contains(words), "{}", error.message);
    }

    #[test]
    fn a_silent_request_takes_the_defaults() {
        let options = options(&config(), &request(), true).unwrap();
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
    fn an_interactive_session_falls_back_with_its_reason_where_no_terminal_is_to_be_had() {
        let pty = SpawnRequest { resume_mode: Some("pty".into()), ..request() };
        let there = options(&config(), &pty, true).unwrap();
        assert_eq!((there.kind, there.warnings.len()), (Kind::Bridge(ResumeMode::Pty), 0));
        let none = options(&config(), &pty, false).unwrap();
        assert_eq!(none.kind, Kind::Bridge(ResumeMode::Standard));
        assert!(none.warnings[0].contains("Server Mode") && none.warnings[0].contains("ptmx"));
    }

    #[test]
    fn a_conversation_is_named_once_and_only_for_an_interactive_session() {
        let uuid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
        let pty = SpawnRequest { mode: Some("pty".into()), ..request() };
        let by_ref = SpawnRequest { conversation: Some("0123456789abcdef".into()), ..pty.clone() };
        let by_id = SpawnRequest { resume_session_id: Some(uuid.into()), ..pty.clone() };
        for fine in [&by_ref, &by_id] {
            assert!(options(&config(), fine, true).unwrap().pick.is_some());
            // Server Mode would begin something else than what was picked.
            assert!(options(&config(), fine, false).is_err());
        }
        let both = SpawnRequest { resume_session_id: Some(uuid.into()), ..by_ref.clone() };
        refused(&both, "give only one");
        refused(&SpawnRequest { mode: Some("standard".into()), ..by_id }, "only for Interactive");
        refused(&SpawnRequest { mode: None, ..by_ref }, "only for Interactive");
        let bad = SpawnRequest { conversation: Some("0123".into()), ..pty.clone() };
        refused(&bad, "`conversation`");
        for bad in ["", "--help", "0f1e2d3c"] {
            let bad = SpawnRequest { resume_session_id: Some(bad.into()), ..pty.clone() };
            refused(&bad, "`resume_session_id`");
        }
    }

    #[test]
    fn a_hostile_name_is_refused_and_a_blank_one_is_the_default() {
        refused(&SpawnRequest { name: Some("--help".into()), ..request() }, "`name`");
        refused(&SpawnRequest { name: Some("a\nb".into()), ..request() }, "`name`");
        let blank = SpawnRequest { name: Some("  ".into()), ..request() };
        assert_eq!(options(&config(), &blank, true).unwrap().custom_name, None);
    }

    #[test]
    fn the_inert_sandbox_is_said_to_be_inert() {
        let on = SpawnRequest { sandbox: Some("on".into()), ..request() };
        assert_eq!(options(&config(), &on, true).unwrap().warnings.len(), 1);
    }
}
