//! The forms of `notifications.urls`, as Apprise writes them.

use super::parts::{Parts, decoded};
use url::Url;

/// What stands in the place of a secret.
const MASK: &str = "********";
/// Bytes of a part of a URL from which on it may be a secret.
const SHORTEST_SECRET: usize = 8;

/// Why an entry is no address. Never quotes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub &'static str);

/// One entry of the list. Has no debug form: nearly all of it is secret.
#[derive(Clone)]
pub struct Address {
    /// The service, as people call it.
    pub service: &'static str,
    /// Scheme, host and port of what is dialled.
    pub shown: String,
    /// What is dialled.
    pub place: Recipient,
    secrets: Vec<String>,
}

/// Who a service takes us for.
#[derive(Clone)]
pub enum Login {
    /// Nobody.
    None,
    /// Who holds this token.
    Token(String),
    /// A user with a password.
    Password(String, String),
}

/// One service with what it needs.
#[derive(Clone)]
pub enum Recipient {
    /// A topic of ntfy.
    Ntfy {
        /// The root of the server.
        base: Url,
        /// The topic.
        topic: String,
        /// Who may write to it.
        login: Login,
    },
    /// An application of Gotify.
    Gotify {
        /// The root of the server, with a slash at its end.
        base: Url,
        /// The token of the application.
        token: String,
    },
    /// A chat of a Telegram bot.
    Telegram {
        /// The token of the bot.
        token: String,
        /// The chat, by number or `@name`.
        chat: String,
    },
    /// An incoming webhook of Slack.
    Slack {
        /// All of it.
        url: Url,
    },
    /// A webhook of Discord.
    Discord {
        /// All of it.
        url: Url,
    },
    /// A room of Matrix.
    Matrix {
        /// The root of the home server.
        base: Url,
        /// The access token of an account.
        token: String,
        /// The room, by its id.
        room: String,
    },
    /// A mailbox.
    Mail(Mail),
    /// Whoever takes JSON.
    Json {
        /// All of it.
        url: Url,
    },
}

/// How a mail server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// Without TLS.
    Plain,
    /// With TLS from the second command on.
    StartTls,
    /// With TLS from the first byte.
    Tls,
}

/// A mail server, and who writes to whom.
#[derive(Clone)]
pub struct Mail {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How it is spoken to.
    pub security: Security,
    /// User and password.
    pub login: Option<(String, String)>,
    /// Who writes.
    pub from: String,
    /// Who is written to.
    pub to: Vec<String>,
}

impl Address {
    /// Understands an entry.
    ///
    /// # Errors
    /// It is no form that is known, or lacks something.
    pub fn parse(raw: &str) -> Result<Self, Unusable> {
        let raw = raw.trim();
        let Some((scheme, rest)) = raw.split_once("://") else {
            return Err(Unusable("is no URL"));
        };
        match scheme.to_ascii_lowercase().as_str() {
            "ntfy" => ntfy(&Parts::of(raw)?, false),
            "ntfys" => ntfy(&Parts::of(raw)?, true),
            "gotify" => gotify(&Parts::of(raw)?, false),
            "gotifys" => gotify(&Parts::of(raw)?, true),
            "tgram" => telegram(rest),
            "slack" => slack(&Parts::of(raw)?),
            "discord" => discord(&Parts::of(raw)?),
            "matrix" => matrix(&Parts::of(raw)?, false),
            "matrixs" => matrix(&Parts::of(raw)?, true),
            "mailto" => mail(&Parts::of(raw)?, false),
            "mailtos" => mail(&Parts::of(raw)?, true),
            "json" => json(&format!("http://{rest}")),
            "jsons" => json(&format!("https://{rest}")),
            "https" => native(raw),
            _ => Err(Unusable(
                "has a scheme that is not known; use ntfy, gotify, tgram, slack, discord, matrix, \
                 mailto or json (with an s at its end for TLS)",
            )),
        }
    }

    /// A text of others without what is secret here.
    #[must_use]
    pub fn masked(&self, text: &str) -> String {
        let known = self.secrets.iter().filter(|secret| !secret.is_empty());
        known.fold(text.to_owned(), |text, secret| text.replace(secret, MASK))
    }

    fn web(service: &'static str, dialled: &Url, place: Recipient, secrets: Vec<String>) -> Self {
        let port = dialled.port().map(|port| format!(":{port}")).unwrap_or_default();
        let host = dialled.host_str().unwrap_or_default();
        let shown = format!("{}://{host}{port}", dialled.scheme());
        Self { service, shown, place, secrets }
    }
}

fn parsed(text: &str) -> Result<Url, Unusable> {
    Url::parse(text).map_err(|_| Unusable("names no host that can be reached"))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

fn ntfy(parts: &Parts, is_secure: bool) -> Result<Address, Unusable> {
    let (base, topic) = match parts.segments.as_slice() {
        [topic] => (parts.base(is_secure)?, topic),
        [] if parts.port.is_none() => (parsed("https://ntfy.sh/")?, &parts.host),
        _ => return Err(Unusable("needs one topic: ntfys://HOST/TOPIC")),
    };
    if !is_word(topic) || topic.len() > 64 {
        return Err(Unusable("names no topic of ntfy: 1 to 64 of the characters A-Z a-z 0-9 _ -"));
    }
    let login = match (&parts.user, &parts.password) {
        (Some(user), Some(password)) => Login::Password(user.clone(), password.clone()),
        (Some(token), None) => Login::Token(token.clone()),
        (None, _) => Login::None,
    };
    // Whoever knows a topic can read it.
    let mut secrets = vec![topic.clone()];
    secrets.extend(parts.password.clone().or(parts.user.clone()));
    let place = Recipient::Ntfy { base: base.clone(), topic: topic.clone(), login };
    Ok(Address::web("ntfy", &base, place, secrets))
}

fn gotify(parts: &Parts, is_secure: bool) -> Result<Address, Unusable> {
    let Some((token, path)) = parts.segments.split_last() else {
        return Err(Unusable("needs the token of an application: gotifys://HOST/TOKEN"));
    };
    if !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(Unusable("holds a token with characters that no token has"));
    }
    let mut base = parts.base(is_secure)?;
    if let Ok(mut segments) = base.path_segments_mut() {
        segments.clear().extend(path).push("");
    }
    let place = Recipient::Gotify { base: base.clone(), token: token.clone() };
    Ok(Address::web("Gotify", &base, place, vec![token.clone()]))
}

fn telegram(rest: &str) -> Result<Address, Unusable> {
    let need = Unusable("needs a bot and one chat: tgram://NUMBER:TOKEN/CHAT");
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (token, chat) = rest.split_once('/').ok_or(need)?;
    let (token, chat) = (token.trim_start_matches("bot"), chat.trim_end_matches('/'));
    let is_token = token.split_once(':').is_some_and(|(number, key)| {
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) && is_word(key)
    });
    let name = chat.strip_prefix('@').unwrap_or(chat);
    if !is_token || !is_word(name) {
        return Err(need);
    }
    let place = Recipient::Telegram { token: token.to_owned(), chat: chat.to_owned() };
    let base = parsed("https://api.telegram.org/")?;
    Ok(Address::web("Telegram", &base, place, vec![token.to_owned()]))
}

fn slack(parts: &Parts) -> Result<Address, Unusable> {
    match parts.segments.as_slice() {
        [second, third, ..] => slack_of(&[&parts.host, second, third]),
        _ => Err(Unusable("needs the three tokens of a webhook: slack://T…/B…/KEY")),
    }
}

fn slack_of(tokens: &[&str; 3]) -> Result<Address, Unusable> {
    if !tokens.iter().all(|token| is_word(token)) {
        return Err(Unusable("holds a token with characters that no token of Slack has"));
    }
    let url = parsed(&format!("https://hooks.slack.com/services/{}", tokens.join("/")))?;
    let secrets = tokens.iter().map(|token| (*token).to_owned()).collect();
    Ok(Address::web("Slack", &url, Recipient::Slack { url: url.clone() }, secrets))
}

fn discord(parts: &Parts) -> Result<Address, Unusable> {
    match parts.segments.as_slice() {
        [token, ..] => discord_of(&parts.host, token),
        [] => Err(Unusable("needs id and token of a webhook: discord://ID/TOKEN")),
    }
}

fn discord_of(id: &str, token: &str) -> Result<Address, Unusable> {
    if !is_word(id) || !is_word(token) {
        return Err(Unusable("holds a token with characters that no token of Discord has"));
    }
    let url = parsed(&format!("https://discord.com/api/webhooks/{id}/{token}"))?;
    let place = Recipient::Discord { url: url.clone() };
    Ok(Address::web("Discord", &url, place, vec![token.to_owned()]))
}

fn matrix(parts: &Parts, is_secure: bool) -> Result<Address, Unusable> {
    if parts.password.is_some() {
        return Err(Unusable(
            "names a user and a password; Matrix wants the access token of an account: \
             matrixs://TOKEN@HOST/!ROOM:SERVER",
        ));
    }
    let room = match parts.segments.as_slice() {
        [room] if room.starts_with('!') => room,
        _ => return Err(Unusable("needs one room by its id: matrixs://TOKEN@HOST/!ROOM:SERVER")),
    };
    let token = parts.user.clone().filter(|token| token.bytes().all(|b| b.is_ascii_graphic()));
    let Some(token) = token else {
        return Err(Unusable("needs an access token: matrixs://TOKEN@HOST/!ROOM:SERVER"));
    };
    let base = parts.base(is_secure)?;
    let secrets = vec![token.clone()];
    let place = Recipient::Matrix { base: base.clone(), token, room: room.clone() };
    Ok(Address::web("Matrix", &base, place, secrets))
}

fn mail(parts: &Parts, is_secure: bool) -> Result<Address, Unusable> {
    let security = match (parts.member("mode"), parts.port, is_secure) {
        (Some("ssl"), _, _) | (None, Some(465), _) => Security::Tls,
        (Some("starttls"), _, _) | (None, _, true) => Security::StartTls,
        (None | Some("insecure"), _, false) => Security::Plain,
        _ => return Err(Unusable("has a `mode` that is not known; use ssl or starttls")),
    };
    let standard = match security {
        Security::Plain => 25,
        Security::StartTls => 587,
        Security::Tls => 465,
    };
    let host = parts.member("smtp").unwrap_or(&parts.host);
    // Brackets belong to a URL, not to an address.
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let own = parts.user.as_ref().map(|user| match user.contains('@') {
        true => user.clone(),
        false => format!("{user}@{}", parts.host),
    });
    let from = parts.member("from").map(str::to_owned).or(own);
    let Some(from) = from.filter(|from| is_mailbox(from)) else {
        return Err(Unusable("says not who writes; add `from=NAME@HOST`"));
    };
    let named = parts.member("to").into_iter().flat_map(|to| to.split(','));
    let named = named.chain(parts.segments.iter().map(String::as_str));
    let mut to: Vec<String> = named.map(|to| to.trim().to_owned()).collect();
    if to.is_empty() {
        to.push(from.clone());
    }
    if !to.iter().all(|to| is_mailbox(to)) {
        return Err(Unusable("names a recipient that is no address of mail"));
    }
    let login = parts.user.clone().zip(parts.password.clone());
    let is_here = matches!(host.as_str(), "localhost" | "127.0.0.1" | "::1");
    if login.is_some() && security == Security::Plain && !is_here {
        return Err(Unusable("would send its password without TLS; use mailtos"));
    }
    let port = parts.port.unwrap_or(standard);
    let secrets = parts.password.clone().into_iter().collect();
    let shown_host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let shown = format!("smtp://{shown_host}:{port}");
    let place = Recipient::Mail(Mail { host, port, security, login, from, to });
    Ok(Address { service: "e-mail", shown, place, secrets })
}

fn is_mailbox(text: &str) -> bool {
    let has_both =
        text.split_once('@').is_some_and(|(who, host)| !who.is_empty() && !host.is_empty());
    has_both && text.chars().all(|c| !c.is_whitespace() && !c.is_control() && !"<>,;\"".contains(c))
}

fn json(text: &str) -> Result<Address, Unusable> {
    let url = parsed(text)?;
    // Whoever has the way of such a URL may post there; a receiver often repeats it in an error.
    let mut secrets: Vec<String> = url.path_segments().into_iter().flatten().map(decoded).collect();
    secrets.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
    secrets.retain(|part| part.len() >= SHORTEST_SECRET);
    secrets.extend(url.password().map(decoded));
    // A part of another one would leave the rest of that one.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    Ok(Address::web("JSON", &url, Recipient::Json { url: url.clone() }, secrets))
}

/// The URL that a service itself hands out.
fn native(raw: &str) -> Result<Address, Unusable> {
    let parts = Parts::of(raw)?;
    let segments: Vec<&str> = parts.segments.iter().map(String::as_str).collect();
    match (parts.host.as_str(), segments.as_slice()) {
        ("hooks.slack.com", ["services", first, second, third]) => {
            slack_of(&[first, second, third])
        }
        ("discord.com" | "discordapp.com", ["api", "webhooks", id, token, ..]) => {
            discord_of(id, token)
        }
        _ => Err(Unusable(
            "is an https URL of no service that is known; use jsons://…, or add it to \
             `webhooks.urls`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn good(raw: &str) -> Address {
        Address::parse(raw).unwrap_or_else(|error| panic!("{raw}: {error}"))
    }

    #[track_caller]
    fn bad(raw: &str) -> String {
        match Address::parse(raw) {
            Ok(address) => panic!("{raw} is {}", address.service),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_service_has_its_form() {
        for (raw, service, shown) in [
            ("ntfy://alerts", "ntfy", "https://ntfy.sh"),
            ("ntfy://tk_abc@box:81/alerts", "ntfy", "http://box:81"),
            ("NTFYS://me:secret@ntfy.example/alerts", "ntfy", "https://ntfy.example"),
            ("gotifys://push.example/path/AbC.d", "Gotify", "https://push.example"),
            ("tgram://123456:AAf-_x/-10012", "Telegram", "https://api.telegram.org"),
            ("tgram://bot1:k/@group/", "Telegram", "https://api.telegram.org"),
            ("slack://T1AbC/B2/kEy", "Slack", "https://hooks.slack.com"),
            ("https://hooks.slack.com/services/T1/B2/k", "Slack", "https://hooks.slack.com"),
            ("discord://42/to-Ken", "Discord", "https://discord.com"),
            ("https://discord.com/api/webhooks/42/to-Ken", "Discord", "https://discord.com"),
            ("matrixs://syt_x@m.example/!room:m.example", "Matrix", "https://m.example"),
            ("mailto://me@mail.example", "e-mail", "smtp://mail.example:25"),
            ("mailtos://me:pw@mail.example", "e-mail", "smtp://mail.example:587"),
            ("mailtos://me:pw@mail.example:465", "e-mail", "smtp://mail.example:465"),
            ("mailtos://a:b@x.example?smtp=s.example&mode=ssl", "e-mail", "smtp://s.example:465"),
            ("json://127.0.0.1:9/hook?k=v", "JSON", "http://127.0.0.1:9"),
            ("jsons://u:p@hook.example/a", "JSON", "https://hook.example"),
        ] {
            let address = good(raw);
            assert_eq!((address.service, address.shown.as_str()), (service, shown), "{raw}");
        }
    }

    #[test]
    fn what_lacks_something_is_refused_without_being_quoted() {
        for raw in [
            "CANARY",
            "file:///CANARY",
            "ntfys://CANARY.example/a/b",
            "ntfy://CANARY.example:81",
            "ntfy://to pic",
            "gotify://CANARY.example",
            "tgram://CANARY/1",
            "tgram://1:CANARY",
            "tgram://1:CANARY/2/3",
            "slack://CANARY/B",
            "discord://CANARY",
            "matrixs://me:CANARY@m.example/!a:b",
            "matrixs://CANARY@m.example/#room",
            "mailto://mail.example/?k=CANARY",
            "mailto://me:CANARY@mail.example",
            "mailto://me@mail.example?to=CANARY",
            "mailtos://me@mail.example?mode=CANARY",
            "https://hooks.example/CANARY",
            "json://:1/CANARY",
        ] {
            let said = bad(raw);
            assert!(!said.contains("CANARY") && !said.is_empty(), "{said}");
        }
    }

    #[test]
    fn capital_letters_of_tokens_stay() {
        let Recipient::Slack { url } = good("slack://T1AbC/B2/kEy").place else { panic!() };
        assert_eq!(url.as_str(), "https://hooks.slack.com/services/T1AbC/B2/kEy");
        let Recipient::Gotify { base, token } = good("gotify://h/sub/AbC").place else { panic!() };
        assert_eq!((base.as_str(), token.as_str()), ("http://h/sub/", "AbC"));
    }

    #[test]
    fn mail_goes_to_whom_the_entry_names() {
        let mail = |raw| match good(raw).place {
            Recipient::Mail(mail) => mail,
            _ => panic!("{raw} is no mail"),
        };
        let one = mail("mailtos://me:p%40ss@x.example?to=a@y.example,b@z.example");
        assert_eq!(one.to, ["a@y.example", "b@z.example"]);
        assert_eq!(one.from, "me@x.example");
        assert_eq!(one.login, Some(("me".into(), "p@ss".into())));
        let one = mail("mailto://localhost:2525/c@y.example?from=svc@x.example");
        assert_eq!((one.to, one.port), (vec!["c@y.example".to_owned()], 2525));
        let one = mail("mailto://me:pw@[::1]:25");
        assert_eq!((one.host.as_str(), one.from.as_str()), ("::1", "me@[::1]"));
    }

    #[test]
    fn what_a_service_says_is_shown_without_our_secrets() {
        let address = good("ntfys://me:pass@ntfy.example/topic1");
        assert_eq!(address.masked("no pass for topic1"), "no ******** for ********");
        let address = good("jsons://n8n.example/webhook/ab%20cdefgh?key=0123456789&v=1");
        assert_eq!(
            address.masked("POST ab cdefgh with key 0123456789 is not registered at v1"),
            "POST ******** with key ******** is not registered at v1"
        );
    }
}
