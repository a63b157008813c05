//! The pages of a first run: a form without script, and what becomes of it.

use crate::reply;
use crate::sign_in::{STYLE, USER, escaped};
use crate::visit::Visit;
use poem::Response;
use poem::http::StatusCode;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use svc_app::setup::{Setup, Wishes};

const TITLE: &str = "Set up svc";

/// What stands in the fields; never a password.
pub(super) struct Filled {
    projects_root: String,
    host: String,
    port: String,
}

impl Filled {
    /// Of a form nobody has touched.
    pub(super) fn blank(setup: &Setup) -> Self {
        let reached = setup.reached();
        // Whoever set this up to be reached from elsewhere wants the service to be reached, too.
        let host = if setup.token().is_some() { reached.host.clone() } else { "127.0.0.1".into() };
        Self { projects_root: String::new(), host, port: reached.port.to_string() }
    }

    /// Of a form that was sent.
    pub(super) fn of(wishes: &Wishes) -> Self {
        Self {
            projects_root: wishes.projects_root.clone(),
            host: wishes.host.clone().unwrap_or_default(),
            port: wishes.port.clone().unwrap_or_default(),
        }
    }
}

/// One field of the form.
struct Field<'t> {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    kind: &'static str,
    value: &'t str,
    /// Decided by this variable.
    fixed: Option<&'static str>,
}

/// The form, with what is wrong at each field; under no name: with all of it.
pub(super) fn form(
    visit: &Visit,
    setup: &Setup,
    status: StatusCode,
    filled: &Filled,
    wrong: &BTreeMap<&'static str, String>,
) -> Response {
    let fixed = setup.fixed();
    let port = fixed.port.map(|port| port.to_string());
    let fields = [
        Field {
            name: "projects_root",
            label: "Projects",
            hint: "The directory whose subdirectories are your projects.",
            kind: "text",
            value: fixed.projects_root.as_deref().unwrap_or(&filled.projects_root),
            fixed: fixed.projects_root.as_ref().map(|_| "SVC_PROJECTS_ROOT"),
        },
        Field {
            name: "host",
            label: "Host",
            hint: "127.0.0.1 is reached from this machine only.",
            kind: "text",
            value: fixed.host.as_deref().unwrap_or(&filled.host),
            fixed: fixed.host.as_ref().map(|_| "SVC_HOST"),
        },
        Field {
            name: "port",
            label: "Port",
            hint: "",
            kind: "text",
            value: port.as_deref().unwrap_or(&filled.port),
            fixed: fixed.port.map(|_| "SVC_PORT"),
        },
        Field {
            name: "password",
            label: "Password",
            hint: "At least 8 characters. Whoever knows it runs programs on this machine.",
            kind: "password",
            value: "",
            fixed: None,
        },
        Field {
            name: "confirm",
            label: "Password again",
            hint: "",
            kind: "password",
            value: "",
            fixed: None,
        },
    ];
    let mut content = format!("<h1>{TITLE}</h1>\n");
    // Writing to a string cannot fail.
    if let Some(general) = wrong.get("") {
        let _ = writeln!(content, "<p role=\"alert\">{}</p>", escaped(general));
    }
    let file = setup.file().to_string_lossy();
    let _ = writeln!(content, "<p>This writes <code>{}</code>.</p>", escaped(&file));
    content.push_str("<form method=\"post\" action=\"/setup\">\n");
    content.push_str(USER);
    if let Some(token) = setup.token() {
        let _ = writeln!(
            content,
            "<input type=\"hidden\" name=\"token\" value=\"{}\">",
            escaped(token)
        );
    }
    for field in &fields {
        field.write(&mut content, wrong.get(field.name));
    }
    content.push_str("<button>Set up</button>\n</form>\n");
    reply::page(status, TITLE, &content, STYLE, visit.nonce.as_deref())
}

impl Field<'_> {
    fn write(&self, content: &mut String, wrong: Option<&String>) {
        let Self { name, label, hint, kind, value, fixed } = self;
        let hint = match fixed {
            Some(variable) => format!("Set by {variable}."),
            None => (*hint).to_owned(),
        };
        let explained = match hint.is_empty() {
            true => String::new(),
            false => format!("<p class=\"hint\" id=\"{name}-hint\">{hint}</p>\n"),
        };
        let state = match (fixed, wrong) {
            (Some(_), _) => " readonly",
            (None, Some(_)) => " required aria-invalid=\"true\"",
            (None, None) => " required",
        };
        let complete = match *kind {
            "password" => "new-password",
            _ => "off",
        };
        let problem = wrong.map(|words| {
            format!("<p role=\"alert\" id=\"{name}-wrong\">{label} {}</p>\n", escaped(words))
        });
        let _ = write!(
            content,
            "<label for=\"{name}\">{label}</label>\n<input id=\"{name}\" name=\"{name}\" \
             type=\"{kind}\" value=\"{}\" autocomplete=\"{complete}\" \
             aria-describedby=\"{name}-hint {name}-wrong\"{state}>\n{}{}",
            escaped(value),
            problem.unwrap_or_default(),
            explained,
        );
    }
}

/// After the file is written.
pub(super) fn done(visit: &Visit, url: &str) -> Response {
    let url = escaped(url);
    let content = format!(
        "<h1>svc is set up</h1>\n<p role=\"status\">The service starts now at \
         <a href=\"{url}\">{url}</a>; this page goes there by itself.</p>\n"
    );
    reply::page(StatusCode::OK, "svc is set up", &content, STYLE, visit.nonce.as_deref())
}

/// Somebody else was first.
pub(super) fn completed(visit: &Visit) -> Response {
    let content = "<h1>svc is set up already</h1>\n<p>There is a configuration. Open the service \
                   and sign in.</p>\n";
    let title = "svc is set up already";
    reply::page(StatusCode::CONFLICT, title, content, STYLE, visit.nonce.as_deref())
}

/// Without the token.
pub(super) fn refused(visit: &Visit, status: StatusCode) -> Response {
    let content = match status {
        StatusCode::TOO_MANY_REQUESTS => {
            "<h1>Too many attempts</h1>\n<p>Wait a few minutes, then open the address that the \
             service printed when it started.</p>\n"
        }
        _ => {
            "<h1>The setup token is missing</h1>\n<p>Open the address that the service printed in \
             its log when it started; it ends with <code>?token=…</code>.</p>\n"
        }
    };
    reply::page(status, TITLE, content, STYLE, visit.nonce.as_deref())
}
