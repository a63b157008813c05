//! The pages of a first run: a form without script, and what becomes of it.

use crate::plain::{Page, escaped, notice};
use crate::reply::NeverCompress;
use crate::request_context::RequestContext;
use crate::sign_in::USER;
use poem::Response;
use poem::http::StatusCode;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use svc_app::auth::SHORTEST_PASSWORD;
use svc_app::setup::{Setup, SetupAnswers, is_loopback_host};

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
    pub(super) fn of(answers: &SetupAnswers) -> Self {
        Self {
            projects_root: answers.projects_root.clone(),
            host: answers.host.clone().unwrap_or_default(),
            port: answers.port.clone().unwrap_or_default(),
        }
    }
}

/// One field of the form.
#[derive(Clone, Copy)]
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
    context: &RequestContext,
    setup: &Setup,
    status: StatusCode,
    filled: &Filled,
    wrong: &BTreeMap<&'static str, String>,
) -> Response {
    let fixed = setup.fixed();
    let port = fixed.port.map(|port| port.to_string());
    let plain = Field { name: "", label: "", hint: "", kind: "text", value: "", fixed: None };
    let projects_root = Field {
        name: "projects_root",
        label: "Projects folder",
        value: fixed.projects_root.as_deref().unwrap_or(&filled.projects_root),
        fixed: fixed.projects_root.as_ref().map(|_| "SVC_PROJECTS_ROOT"),
        ..plain
    };
    let host = Field {
        name: "host",
        label: "Address",
        value: fixed.host.as_deref().unwrap_or(&filled.host),
        fixed: fixed.host.as_ref().map(|_| "SVC_HOST"),
        ..plain
    };
    let port = Field {
        name: "port",
        label: "Port",
        value: port.as_deref().unwrap_or(&filled.port),
        fixed: fixed.port.map(|_| "SVC_PORT"),
        ..plain
    };
    let secret = |name, label, hint| Field { name, label, hint, kind: "password", ..plain };
    let password = secret("password", "Password", "A few words are better than one.");
    let confirm = secret("confirm", "Repeat password", "");
    let field = |field: &Field| field.html(wrong.get(field.name));
    let warning = match is_loopback_host(host.value) {
        true => "",
        false => {
            "<p class=\"warning\"><strong>Every device in your network can reach this \
             address.</strong> The connection is not encrypted unless you put TLS in front.</p>\n"
        }
    };

    let mut content = String::new();
    // Writing to a string cannot fail.
    if let Some(general) = wrong.get("") {
        let _ = writeln!(content, "<p role=\"alert\">{}</p>", escaped(general));
    }
    content.push_str("<form method=\"post\" action=\"/setup\">\n");
    content.push_str(USER);
    if let Some(token) = setup.token() {
        let _ = writeln!(
            content,
            "<input type=\"hidden\" name=\"token\" value=\"{}\">",
            escaped(token)
        );
    }
    let rule = format!(
        "At least {SHORTEST_PASSWORD} characters. Whoever knows it runs programs on this machine."
    );
    let sections = [
        (
            "Projects",
            "Each folder inside becomes a project. Nothing runs in one until you trust it.",
            field(&projects_root),
        ),
        (
            "Address",
            "Where the page is served. 127.0.0.1 is reached from this machine only.",
            format!("<div class=\"row\">\n{}{}</div>\n{warning}", field(&host), field(&port)),
        ),
        ("Password", &rule, field(&password) + &field(&confirm)),
    ];
    for (title, text, fields) in sections {
        let _ = writeln!(
            content,
            "<section>\n<div><h2>{title}</h2>\n<p>{text}</p></div>\n<div>{fields}</div>\n</section>"
        );
    }
    let file = setup.file().to_string_lossy();
    let _ = writeln!(
        content,
        "<div class=\"foot\">\n<p>This writes <code>{}</code>.</p>\n\
         <button>Finish setup</button>\n</div>\n</form>",
        escaped(&file)
    );
    let nonce = context.nonce.as_deref();
    let page = Page { title: TITLE, content: &content, after: "", is_wide: true, nonce };
    let mut response = page.reply(status);
    response.extensions_mut().insert(NeverCompress);
    response
}

impl Field<'_> {
    fn html(&self, wrong: Option<&String>) -> String {
        let Self { name, label, hint, kind, value, fixed } = self;
        let hint = match fixed {
            Some(variable) => format!("Fixed by <code>{variable}</code>"),
            None => (*hint).to_owned(),
        };
        let mut below = String::new();
        let mut described = Vec::new();
        if let Some(words) = wrong {
            described.push(format!("{name}-wrong"));
            // What begins like a sentence is one; the rest is about the field.
            let is_sentence = words.starts_with(char::is_uppercase);
            let before = if is_sentence { String::new() } else { format!("{label} ") };
            let _ = writeln!(
                below,
                "<p role=\"alert\" id=\"{name}-wrong\">{before}{}</p>",
                escaped(words)
            );
        }
        if !hint.is_empty() {
            described.push(format!("{name}-hint"));
            let _ = writeln!(below, "<p id=\"{name}-hint\">{hint}</p>");
        }
        let described = match described.is_empty() {
            true => String::new(),
            false => format!(" aria-describedby=\"{}\"", described.join(" ")),
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
        format!(
            "<div class=\"field\">\n<label for=\"{name}\">{label}</label>\n<input id=\"{name}\" \
             name=\"{name}\" type=\"{kind}\" value=\"{}\" autocomplete=\"{complete}\"\
             {described}{state}>\n{below}</div>\n",
            escaped(value),
        )
    }
}

/// After the file is written.
pub(super) fn done(context: &RequestContext, url: &str) -> Response {
    let url = escaped(url);
    let content = format!(
        "<h1>svc is set up</h1>\n<p role=\"status\">The service starts now at \
         <a href=\"{url}\">{url}</a>; this page goes there by itself.</p>\n"
    );
    let nonce = context.nonce.as_deref();
    Page { title: "svc is set up", content: &content, after: "", is_wide: false, nonce }
        .reply(StatusCode::OK)
}

/// Somebody else was first.
pub(super) fn completed(context: &RequestContext) -> Response {
    notice(
        StatusCode::CONFLICT,
        "svc is set up already",
        "There is a configuration. Open the service and sign in.",
        context.nonce.as_deref(),
    )
}

/// Without the token.
pub(super) fn refused(context: &RequestContext, status: StatusCode) -> Response {
    let (title, text) = match status {
        StatusCode::TOO_MANY_REQUESTS => (
            "Too many attempts",
            "Wait a few minutes, then open the address that the service printed when it started.",
        ),
        _ => (
            "The setup token is missing",
            "Open the address that the service printed in its log when it started; it ends with \
             <code>?token=…</code>.",
        ),
    };
    notice(status, title, text, context.nonce.as_deref())
}
