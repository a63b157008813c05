//! Addresses of the page: which view a path means, and the query beside it.

use crate::model::agent_config::Surface;
use svc_shared::paths::segment;

/// A view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// What needs a person, what runs, what ended.
    Home,
    /// The project list.
    Projects,
    /// The page of this project.
    Project(String),
    /// A conversation of this project.
    Conversation(String, String),
    /// Tokens and costs.
    Usage,
    /// The launch dialog of this project, over the project list.
    Launch(String),
    /// The page of this instance (an id or a prefix of one).
    Session(String),
    /// The way to the client of this instance.
    Open(String),
    /// Background sessions, with the one of this id unfolded.
    Jobs(Option<String>),
    /// Sessions that were started elsewhere.
    External,
    /// What a restart of the machine ended.
    Restore,
    /// What agents ask.
    Inbox,
    /// One request of the inbox: the session that asks, and the name of the request.
    Request(String, String),
    /// What happened.
    Activity,
    /// Readiness.
    Doctor,
    /// The sign-in of the agent, over Home.
    AgentSignIn,
    /// What is left over of bridges.
    Maintenance,
    /// Devices and tokens.
    Tokens,
    /// Notifications.
    Notifications,
    /// The settings of the service.
    Settings,
    /// The agent's own configuration, with the part that is edited.
    AgentConfig(Option<Surface>),
    /// About.
    About,
    /// No view.
    Missing,
}

impl Route {
    /// The view of an app-local path. A slash at its end does not matter.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let path = path.strip_suffix('/').unwrap_or(path);
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match parts.as_slice() {
            [] | ["ui"] => Self::Home,
            ["ui", "projects"] => Self::Projects,
            ["ui", "projects", name] => decoded(name).map_or(Self::Missing, Self::Project),
            ["ui", "projects", name, "launch"] => decoded(name).map_or(Self::Missing, Self::Launch),
            ["ui", "projects", name, "c", conversation] => decoded(name)
                .zip(decoded(conversation))
                .map_or(Self::Missing, |(name, one)| Self::Conversation(name, one)),
            ["ui", "usage"] => Self::Usage,
            ["ui", "s", id] => decoded(id).map_or(Self::Missing, Self::Session),
            ["ui", "s", id, "open"] => decoded(id).map_or(Self::Missing, Self::Open),
            ["ui", "jobs"] => Self::Jobs(None),
            ["ui", "jobs", id] => decoded(id).map_or(Self::Missing, |id| Self::Jobs(Some(id))),
            ["ui", "external"] => Self::External,
            ["ui", "restore"] => Self::Restore,
            ["ui", "inbox"] => Self::Inbox,
            ["ui", "inbox", session, request] => decoded(session)
                .zip(decoded(request))
                .map_or(Self::Missing, |(session, request)| Self::Request(session, request)),
            ["ui", "activity"] => Self::Activity,
            ["ui", "doctor"] => Self::Doctor,
            ["ui", "agent-login"] => Self::AgentSignIn,
            ["ui", "maintenance"] => Self::Maintenance,
            ["ui", "tokens"] => Self::Tokens,
            ["ui", "notifications"] => Self::Notifications,
            ["ui", "settings"] => Self::Settings,
            ["ui", "agent-config"] => Self::AgentConfig(None),
            ["ui", "agent-config", word] => {
                Surface::of(word).map_or(Self::Missing, |surface| Self::AgentConfig(Some(surface)))
            }
            ["ui", "about"] => Self::About,
            _ => Self::Missing,
        }
    }
}

/// Undoes percent encoding; `None` for what is not UTF-8 then.
fn decoded(raw: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |b: &u8| char::from(*b).to_digit(16);
        match (first, tail) {
            (b'%', [high, low, after @ ..]) if hex(high).is_some() && hex(low).is_some() => {
                let byte = hex(high)? * 16 + hex(low)?;
                bytes.push(u8::try_from(byte).ok()?);
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

/// Members of a query, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query, with or without the question mark.
    ///
    /// Members that cannot be read are left out.
    #[must_use]
    pub fn parse(raw: &str) -> Self {
        let raw = raw.strip_prefix('?').unwrap_or(raw).replace('+', " ");
        let members = raw.split('&').filter_map(|member| {
            let (name, value) = member.split_once('=')?;
            Some((decoded(name)?, decoded(value)?))
        });
        Self(members.collect())
    }

    /// A member; empty when it is not there.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    /// Sets a member; an empty value removes it.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|(n, _)| n != name);
        if !value.is_empty() {
            self.0.push((name.to_owned(), value.to_owned()));
        }
    }

    /// The text for an address, with its question mark; empty without members.
    #[must_use]
    pub fn text(&self) -> String {
        let members: Vec<String> = self
            .0
            .iter()
            .map(|(name, value)| format!("{}={}", segment(name), segment(value)))
            .collect();
        if members.is_empty() { String::new() } else { format!("?{}", members.join("&")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_its_view() {
        for (path, route) in [
            ("/", Route::Home),
            ("", Route::Home),
            ("/ui", Route::Home),
            ("/ui/", Route::Home),
            ("/ui/projects", Route::Projects),
            ("/ui/projects/", Route::Projects),
            ("/ui/projects/%C3%BCbung%20a%2Fb/launch", Route::Launch("übung a/b".into())),
            ("/ui/projects/new%20one", Route::Project("new one".into())),
            ("/ui/inbox", Route::Inbox),
            ("/ui/inbox/-/r1", Route::Request("-".into(), "r1".into())),
            ("/ui/projects/a/c/0123", Route::Conversation("a".into(), "0123".into())),
            ("/ui/projects/a/c/", Route::Missing),
            ("/ui/usage", Route::Usage),
            ("/ui/activity", Route::Activity),
            ("/ui/restore", Route::Restore),
            ("/ui/doctor", Route::Doctor),
            ("/ui/settings", Route::Settings),
            ("/ui/s/3a37", Route::Session("3a37".into())),
            ("/ui/s/3a37/open", Route::Open("3a37".into())),
            ("/ui/jobs", Route::Jobs(None)),
            ("/ui/jobs/3c509237", Route::Jobs(Some("3c509237".into()))),
            ("/ui/external", Route::External),
            ("/ui/agent-login", Route::AgentSignIn),
            ("/ui/maintenance", Route::Maintenance),
            ("/ui/tokens", Route::Tokens),
            ("/ui/notifications", Route::Notifications),
            ("/ui/about", Route::About),
            ("/ui/agent-config", Route::AgentConfig(None)),
            ("/ui/agent-config/hooks", Route::AgentConfig(Some(Surface::Hooks))),
            ("/ui/agent-config/moon", Route::Missing),
            ("/ui/s/", Route::Missing),
            ("/ui/s//open", Route::Missing),
            ("/ui/s/%FF", Route::Missing),
            ("/ui/moon", Route::Missing),
            ("/api/state", Route::Missing),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
        }
    }

    #[test]
    fn a_query_survives_its_way_through_an_address() {
        let mut query = Query::parse("?q=a%26b+c&sort=name&bad&%FF=1");
        assert_eq!((query.get("q"), query.get("sort"), query.get("bad")), ("a&b c", "name", ""));
        query.set("sort", "");
        query.set("launch", "ü/100%");
        assert_eq!(query.text(), "?q=a%26b%20c&launch=%C3%BC%2F100%25");
        assert_eq!(Query::parse(&query.text()), query);
        assert_eq!(Query::parse("").text(), "");
    }

    #[test]
    fn a_broken_escape_stands_for_itself() {
        assert_eq!(decoded("100%").as_deref(), Some("100%"));
        assert_eq!(decoded("%zz%4").as_deref(), Some("%zz%4"));
    }
}
