//! Texts and documents: the agent's answers, configuration, files, preferences.

use std::path::Path;
use svc_agent::version::AgentVersion;
use svc_shared::Timestamp;
use svc_shared::ids::{InstanceId, JobId, ProjectName, SessionRef};

#[path = "../../../server/agent/src/json_edit.rs"]
mod edit;
#[path = "../../../server/app/src/ops/legacy/state_file.rs"]
mod state_file;

/// `agents --json`.
pub(crate) fn agent_list(data: &[u8]) {
    if let Ok(listed) = svc_agent::session_list::parse(data) {
        for session in &listed.sessions {
            let _ = session.has_ended();
        }
    }
}

/// What the agent prints: version, sign-in state, answers about jobs. And argv.
pub(crate) fn agent_words(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(version) = AgentVersion::from_output(&text) {
        assert_eq!(version.cmp(&version), std::cmp::Ordering::Equal);
        let again: AgentVersion = version.as_str().parse().unwrap_or_else(|_| panic!("{text:?}"));
        assert_eq!(again, version);
    }
    let _ = svc_agent::login::parse(data);
    let _ = svc_agent::jobs::answer::accepted(&text);
    let _ = svc_agent::jobs::answer::is_out_of_reach(&text);
    let _ = svc_agent::jobs::answer::last_words(&text);
    let argv: Vec<String> = text.split('\0').map(str::to_owned).collect();
    let exe = argv.last().map(Path::new);
    let _ = svc_agent::role::role(&argv, exe, Path::new("/usr/bin/claude"));
    let _ = svc_agent::role::debug_file(&argv);
}

/// Addresses to clone from, with redirects, and what git says meanwhile.
pub(crate) fn clone(data: &[u8]) {
    use svc_domain::clones::source::{Scheme, Source};
    use svc_domain::clones::{progress, redirect};
    let text = String::from_utf8_lossy(data);
    let _ = progress::read(&text);
    let target = redirect::target(&text);
    let Ok(source) = Source::parse(&text, &Scheme::ALL) else { return };
    let (git, shown) = (source.for_git(), source.shown());
    assert_eq!(Source::parse(&git, &Scheme::ALL).as_ref(), Ok(&source), "{git:?}");
    assert!(!shown.contains(['?', '#', ' ']), "{shown:?}");
    assert!(!shown.split('/').nth(2).is_some_and(|host| host.contains('@')), "{shown:?}");
    assert!(git.starts_with("https://") || git.starts_with("ssh://"), "{git:?}");
    let authority = git.split('/').nth(2).unwrap_or_default();
    assert!(!authority.starts_with('-') && !authority.contains("@-"), "{git:?}");
    if let Some(next) = target.and_then(|location| source.redirected(location).ok()) {
        assert_eq!(next.scheme, Scheme::Https);
    }
}

/// The configuration file. What is refused says why.
pub(crate) fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match svc_config::load_text(&text, Path::new("/")) {
        Ok(loaded) => {
            let _ = svc_config::show(&loaded, svc_config::View::Effective);
        }
        Err(errors) => assert!(!errors.problems.is_empty(), "{text:?}"),
    }
}

/// Ids, cursors and times as they come in addresses and bodies.
pub(crate) fn ids(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    macro_rules! round {
        ($($kind:ty),*) => {$(
            if let Ok(id) = text.parse::<$kind>() {
                assert_eq!(id.as_str(), text);
            }
        )*};
    }
    round!(InstanceId, JobId, ProjectName, SessionRef);
    let _ = text.parse::<svc_domain::tail_lines::Cursor>();
    let _ = svc_domain::slug::slug(&text);
    let _ = serde_json::from_slice::<Timestamp>(data);
    let _ = svc_domain::jobs::check_model(&text);
    let _ = svc_domain::jobs::is_session_id(&text);
}

/// Somebody's whole set-up: what is written differs in one place only.
pub(crate) fn json_edit(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let path = ["projects", "/srv/app", "hasTrustDialogAccepted"];
    if let Ok(Some(edited)) = edit::with_true(text, &path) {
        assert!(matches!(edit::with_true(&edited, &path), Ok(None)), "{edited:?}");
    }
}

/// `state.json` of an earlier version.
pub(crate) fn state_json(data: &[u8]) {
    let lenient = state_file::lenient(data);
    if let Ok(canonical) = state_file::canonical(data) {
        let lenient = lenient.unwrap_or_else(|error| panic!("{error}"));
        assert!(lenient.records.len() <= canonical.records);
        let again = state_file::canonical(canonical.text.as_bytes());
        let again = again.unwrap_or_else(|error| panic!("{error}: {}", canonical.text));
        assert_eq!((again.text, again.records), (canonical.text, canonical.records));
    }
}

/// What a page wants kept.
pub(crate) fn ui_prefs(data: &[u8]) {
    if let Ok(serde_json::Value::Object(prefs)) = serde_json::from_slice(data)
        && let Ok(text) = svc_domain::ui_prefs::text(&prefs)
    {
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }
}
