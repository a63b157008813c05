//! What each service is sent, and how its answers are read.

use super::notice::Notice;
use crate::outbound::sender::{Reply, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reqwest::Method;
use serde_json::{Value, json};
use svc_domain::notification::address::{Login, Recipient};
use url::Url;

/// Longest text of one message of Discord, in characters.
const DISCORD: usize = 2_000;

/// The server that a place is on; `None` for mail.
pub(super) fn server(place: &Recipient) -> Option<Url> {
    match place {
        Recipient::Ntfy { base, .. }
        | Recipient::Gotify { base, .. }
        | Recipient::Matrix { base, .. } => Some(base.clone()),
        Recipient::Slack { url } | Recipient::Discord { url } | Recipient::Json { url } => {
            Some(url.clone())
        }
        Recipient::Telegram { .. } => Url::parse("https://api.telegram.org/").ok(),
        Recipient::Mail(_) => None,
    }
}

/// The request that shows a notification; `None` for mail.
pub(super) fn tell(place: &Recipient, notice: &Notice) -> Option<Request> {
    let (title, body) = (notice.text.title.as_str(), notice.text.body.as_str());
    let both = format!("{title}\n{body}");
    let request = match place {
        Recipient::Ntfy { base, topic, login } => {
            let priority = if notice.is_urgent { 4 } else { 3 };
            let told = json!({ "topic": topic, "title": title, "message": body,
                "priority": priority });
            with(post(base.clone(), &told), authorization(login))
        }
        Recipient::Gotify { base, token } => {
            let priority = if notice.is_urgent { 8 } else { 4 };
            let told = json!({ "title": title, "message": body, "priority": priority });
            with(post(base.join("message").ok()?, &told), Some(("X-Gotify-Key", token.clone())))
        }
        Recipient::Telegram { token, chat } => {
            let told = json!({ "chat_id": chat, "text": both,
                "disable_notification": !notice.is_urgent });
            post(telegram(token, "sendMessage")?, &told)
        }
        Recipient::Slack { url } => {
            // Slack reads `<…>` as a link or a call to everybody.
            let text = both.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            post(url.clone(), &json!({ "text": text }))
        }
        Recipient::Discord { url } => {
            let mut url = url.clone();
            url.query_pairs_mut().append_pair("wait", "true");
            let text: String = both.chars().take(DISCORD).collect();
            post(url, &json!({ "content": text, "allowed_mentions": { "parse": [] } }))
        }
        Recipient::Matrix { base, token, room } => {
            let event = ["send", "m.room.message", &notice.delivery];
            let told = json!({ "msgtype": "m.text", "body": both });
            put(room_url(base, room, &event)?, &told, token)
        }
        Recipient::Json { url } => {
            let kind = if notice.is_urgent { "warning" } else { "info" };
            let told = json!({ "version": "1.0", "title": title, "message": body,
                "attachments": [], "type": kind, "event": notice.event,
                "delivery": notice.delivery });
            post(url.clone(), &told)
        }
        Recipient::Mail(_) => return None,
    };
    Some(request)
}

/// How the service names what it took; `None` where that cannot be taken back.
pub(super) fn handle(place: &Recipient, reply: &Reply) -> Option<String> {
    let said: Value = serde_json::from_slice(&reply.body).ok()?;
    let name = match place {
        Recipient::Ntfy { .. } | Recipient::Discord { .. } => said.get("id")?,
        Recipient::Telegram { .. } => said.get("result")?.get("message_id")?,
        Recipient::Matrix { .. } => said.get("event_id")?,
        Recipient::Gotify { .. }
        | Recipient::Slack { .. }
        | Recipient::Json { .. }
        | Recipient::Mail(_) => {
            return None;
        }
    };
    match name {
        Value::String(name) if name.len() <= 256 => Some(name.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The request that takes a notification back.
pub(super) fn withdraw(place: &Recipient, handle: &str, delivery: &str) -> Option<Request> {
    match place {
        Recipient::Ntfy { base, topic, login } => {
            let url = below(base, &[topic, handle])?;
            Some(with(delete(url), authorization(login)))
        }
        Recipient::Telegram { token, chat } => {
            let told = json!({ "chat_id": chat, "message_id": handle.parse::<i64>().ok()? });
            Some(post(telegram(token, "deleteMessage")?, &told))
        }
        Recipient::Discord { url } => Some(delete(below(url, &["messages", handle])?)),
        Recipient::Matrix { base, token, room } => {
            // Each event of a room has a name of its own.
            let event = ["redact", handle, &format!("{delivery}-answered")];
            let url = room_url(base, room, &event)?;
            Some(put(url, &json!({ "reason": "answered" }), token))
        }
        Recipient::Gotify { .. }
        | Recipient::Slack { .. }
        | Recipient::Json { .. }
        | Recipient::Mail(_) => None,
    }
}

fn authorization(login: &Login) -> Option<(&'static str, String)> {
    let value = match login {
        Login::None => return None,
        Login::Token(token) => format!("Bearer {token}"),
        Login::Password(user, password) => {
            format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
        }
    };
    Some(("Authorization", value))
}

fn post(url: Url, told: &Value) -> Request {
    request(Method::POST, url, Bytes::from(told.to_string()))
}

fn put(url: Url, told: &Value, token: &str) -> Request {
    let bearer = ("Authorization", format!("Bearer {token}"));
    with(request(Method::PUT, url, Bytes::from(told.to_string())), Some(bearer))
}

fn delete(url: Url) -> Request {
    Request { method: Method::DELETE, url, headers: Vec::new(), body: Bytes::new() }
}

fn request(method: Method, url: Url, body: Bytes) -> Request {
    let headers = vec![("Content-Type", "application/json".to_owned())];
    Request { method, url, headers, body }
}

fn with(mut request: Request, header: Option<(&'static str, String)>) -> Request {
    request.headers.extend(header);
    request
}

fn below(base: &Url, path: &[&str]) -> Option<Url> {
    let mut url = base.clone();
    url.path_segments_mut().ok()?.pop_if_empty().extend(path);
    Some(url)
}

fn telegram(token: &str, method: &str) -> Option<Url> {
    Url::parse(&format!("https://api.telegram.org/bot{token}/{method}")).ok()
}

fn room_url(base: &Url, room: &str, event: &[&str]) -> Option<Url> {
    let rooms = below(base, &["_matrix", "client", "v3", "rooms", room])?;
    below(&rooms, event)
}
