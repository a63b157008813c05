//! Resources: open approvals, logs and conversations, masked as everywhere else.
//!
//! They are read by the same use-cases as the page's, which redact what they return.

use crate::calls::with_reader;
use crate::options::{Options, Purpose};
use crate::summary::escaped;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};
use std::cmp::Reverse;
use svc_app::{App, AppError, LogQuery, PageQuery};
use svc_domain::log_escape::{escape, quoted, strip_controls};
use svc_domain::redact::redact_text;
use svc_shared::internal::conversations::Conversation;

/// Last bytes of a log, as `svc logs` shows them.
const LOG_BYTES: u64 = 64 * 1024;

/// Newest turns of a conversation.
const TURNS: usize = 50;

/// Newest conversations in the list, over all projects.
const MOST_CONVERSATIONS: usize = 200;

/// What waits for an answer.
const APPROVALS: &str = "svc://approvals";

/// A resource that an address names.
#[derive(Debug, PartialEq, Eq)]
enum Resource {
    Approvals,
    /// The log of a bridge, by its reference.
    Log(String),
    Conversation {
        project: String,
        conversation: String,
    },
}

/// What a resource holds.
pub(crate) struct Content {
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

/// The resources that exist now.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) resources: Vec<Value>,
    /// What is missing, and why.
    pub(crate) missing: Vec<String>,
}

impl Listed {
    fn add(&mut self, what: &str, part: Result<Vec<Value>, AppError>) {
        match part {
            Ok(part) => self.resources.extend(part),
            Err(error) => self.lacks(what, &error.message),
        }
    }

    fn lacks(&mut self, what: &str, why: &str) {
        let why = redact_text(why);
        self.missing.push(escape(&format!("{what} are not listed: {why}")).into_owned());
    }
}

/// Lists what can be listed: a part that fails takes no other along.
pub(crate) async fn list(options: &Options) -> Listed {
    let mut listed = Listed::default();
    listed.resources.push(json!({
        "uri": APPROVALS,
        "name": "approvals",
        "description": "What agents ask their operator and nobody has answered yet.",
        "mimeType": "application/json",
    }));
    match options.open.open(Purpose::Look).await {
        Ok(app) => {
            listed.add("logs", logs(&app).await);
            conversations(&app, &mut listed).await;
            app.close().await;
        }
        Err(why) => listed.lacks("logs and conversations", &why),
    }
    listed.resources = listed.resources.into_iter().map(escaped).collect();
    listed
}

async fn logs(app: &App) -> Result<Vec<Value>, AppError> {
    let instances = app.instances().reconciled().await?;
    let with_log = instances.into_iter().filter(|instance| instance.has_log);
    Ok(with_log
        .map(|one| {
            json!({
                "uri": format!("svc://logs/{}", one.instance_id),
                "name": format!("log of {} ({})", one.project, one.instance_id.short()),
                "description": format!("The last lines of a bridge that is {}.", one.status),
                "mimeType": "text/plain",
            })
        })
        .collect())
}

async fn conversations(app: &App, listed: &mut Listed) {
    let mut all: Vec<(String, Conversation)> = Vec::new();
    for project in app.projects().names() {
        match app.transcripts().list(&project).await {
            Ok(list) => all.extend(list.sessions.into_iter().map(|one| (project.clone(), one))),
            Err(error) => {
                listed.lacks(&format!("conversations of {}", quoted(&project)), &error.message);
            }
        }
    }
    all.sort_by_key(|(_, one)| Reverse(one.last_ts));
    all.truncate(MOST_CONVERSATIONS);
    listed.resources.extend(all.iter().map(|(project, one)| of_conversation(project, one)));
}

fn of_conversation(project: &str, one: &Conversation) -> Value {
    let encoded = utf8_percent_encode(project, NON_ALPHANUMERIC);
    json!({
        "uri": format!("svc://conversations/{encoded}/{}", one.conversation),
        "name": format!("conversation of {project} ({})", one.conversation),
        "description": format!("{} turns; the newest {TURNS} are read.", one.turn_count),
        "mimeType": "application/json",
    })
}

/// The forms of addresses, for clients that fill them in.
pub(crate) fn templates() -> Value {
    json!({ "resourceTemplates": [
        {
            "uriTemplate": "svc://logs/{instance}",
            "name": "log of a bridge",
            "mimeType": "text/plain",
        },
        {
            "uriTemplate": "svc://conversations/{project}/{conversation}",
            "name": "newest turns of a conversation",
            "mimeType": "application/json",
        },
    ]})
}

/// Reads a resource; `None` when there is none with this address.
pub(crate) async fn read(options: &Options, uri: &str) -> Result<Option<Content>, String> {
    let Some(resource) = Resource::of(uri) else { return Ok(None) };
    with_reader(options, async |app| resource.content(app).await).await.map(Some)
}

impl Resource {
    fn of(uri: &str) -> Option<Self> {
        if uri == APPROVALS {
            return Some(Self::Approvals);
        }
        let mut parts = uri.strip_prefix("svc://")?.split('/');
        let (kind, first, second) = (parts.next()?, parts.next()?, parts.next());
        let decoded = |part: &str| {
            let text = percent_decode_str(part).decode_utf8().ok()?.into_owned();
            (!text.is_empty()).then_some(text)
        };
        if parts.next().is_some() {
            return None;
        }
        match (kind, second) {
            ("logs", None) => Some(Self::Log(decoded(first)?)),
            ("conversations", Some(second)) => Some(Self::Conversation {
                project: decoded(first)?,
                conversation: decoded(second)?,
            }),
            _ => None,
        }
    }

    async fn content(&self, app: &App) -> Result<Content, AppError> {
        let json = |document: Result<Value, serde_json::Error>| {
            let document = escaped(document.map_err(AppError::internal)?);
            Ok(Content { kind: "application/json", text: document.to_string() })
        };
        match self {
            Self::Approvals => {
                let open = app.approvals().open().await?;
                json(serde_json::to_value(open))
            }
            Self::Log(reference) => {
                let query = LogQuery { tail: LOG_BYTES, cursor: None, before: None };
                let page = app.logs().page(reference, query).await?;
                let lines = if page.lines.is_empty() { page.output } else { page.lines };
                let lines: Vec<_> = lines.iter().map(|line| strip_controls(line)).collect();
                Ok(Content { kind: "text/plain", text: lines.join("\n") })
            }
            Self::Conversation { project, conversation } => {
                let query = PageQuery { limit: TURNS, ..PageQuery::default() };
                let page = app.transcripts().page(project, conversation, query).await?;
                json(serde_json::to_value(page))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_fails_is_told_and_takes_no_other_along() {
        let mut listed = Listed::default();
        let failed = AppError::busy("no\u{7}daemon");
        listed.add("logs", Err(failed));
        listed.add("others", Ok(vec![json!({ "uri": APPROVALS })]));
        assert_eq!(listed.resources, [json!({ "uri": APPROVALS })]);
        assert_eq!(listed.missing.len(), 1);
        let told = &listed.missing[0];
        assert!(told.starts_with("logs are not listed: no") && !told.contains('\u{7}'), "{told}");
    }

    #[test]
    fn an_address_names_one_resource_or_none() {
        assert_eq!(Resource::of("svc://approvals"), Some(Resource::Approvals));
        assert_eq!(Resource::of("svc://logs/3f2a"), Some(Resource::Log("3f2a".into())));
        let expected =
            Resource::Conversation { project: "a b/c".into(), conversation: "0123".into() };
        assert_eq!(Resource::of("svc://conversations/a%20b%2fc/0123"), Some(expected));
        for uri in [
            "",
            "svc://",
            "svc://logs",
            "svc://logs/",
            "svc://logs/a/b",
            "svc://conversations/a",
            "svc://conversations/a/b/c",
            "svc://conversations/%ff/b",
            "file:///etc/passwd",
        ] {
            assert_eq!(Resource::of(uri), None, "{uri}");
        }
    }
}
