//! Which events a page in the background notifies of, and what a notification says.

use crate::text::notify as words;
use serde_json::Value;
use svc_shared::internal::PageNotifications;

/// One notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// What happened to which session.
    pub title: String,
    /// Where, and what follows.
    pub body: String,
    /// The same for one event of one session: another tab or a repetition replaces it.
    pub tag: String,
    /// The session that it leads to.
    pub instance_id: String,
}

/// What standing notifications have in this browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The configuration does not offer them.
    NotOffered,
    /// The address is not encrypted, so the browser has none.
    Insecure,
    /// The browser has none.
    Unsupported,
    /// The person refused them, in the browser.
    Denied,
    /// The person was not asked.
    Off,
    /// They are shown.
    On,
}

/// The notification of an event; `None` where nobody wants it.
#[must_use]
pub fn of(name: &str, data: &Value, wanted: PageNotifications) -> Option<Notification> {
    let is_wanted = match name {
        "crash" => wanted.on_crash,
        "ready" => wanted.on_ready,
        "stop" => wanted.on_stop,
        _ => false,
    };
    if !(wanted.browser_enabled && is_wanted) {
        return None;
    }
    let text = |member: &str| data.get(member).and_then(Value::as_str);
    let (instance_id, project) = (text("instance_id")?, text("project")?);
    let title = words::title(name, text("label").unwrap_or(project));
    let gave_up = data.get("restart_quarantined").is_some();
    Some(Notification {
        title,
        body: words::body(project, gave_up),
        tag: format!("svc-{name}-{instance_id}"),
        instance_id: instance_id.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CRASHES: PageNotifications = PageNotifications {
        browser_enabled: true,
        on_crash: true,
        on_ready: false,
        on_stop: false,
        push_enabled: false,
    };

    #[test]
    fn only_what_the_configuration_wants_is_notified_of() {
        let data = json!({ "instance_id": "i1", "project": "api", "label": "api-2" });
        let told = of("crash", &data, CRASHES).unwrap();
        assert_eq!(told.title, "api-2 crashed");
        assert_eq!((told.tag.as_str(), told.instance_id.as_str()), ("svc-crash-i1", "i1"));
        assert_eq!(of("ready", &data, CRASHES), None);
        assert_eq!(of("clone-done", &data, CRASHES), None);
        assert_eq!(of("crash", &json!({}), CRASHES), None);
        let off = PageNotifications { browser_enabled: false, ..CRASHES };
        assert_eq!(of("crash", &data, off), None);
    }

    #[test]
    fn a_session_that_stays_down_says_so() {
        let data = json!({ "instance_id": "i1", "project": "api", "restart_quarantined": true });
        let told = of("crash", &data, CRASHES).unwrap();
        assert_eq!(told.title, "api crashed");
        assert!(told.body.contains("not started again"), "{}", told.body);
    }
}
