//! Small pages without script: sign-in, first run, not found.
//!
//! They load nothing, so that they work where the page itself is switched off or not allowed.

use poem::Response;
use poem::http::{StatusCode, header};

const STYLE: &str = include_str!("plain.css");

/// The mark of the product, as the page shows it.
const MARK: &str = "<svg viewBox=\"0 0 28 28\" aria-hidden=\"true\">\
    <rect width=\"28\" height=\"28\" rx=\"7\"/><g stroke-width=\"2.2\" stroke-linecap=\"round\" \
    stroke-linejoin=\"round\"><path d=\"m7.5 9.5 4.5 4.5-4.5 4.5M14.5 18.5h4\"/></g>\
    <circle cx=\"20\" cy=\"10\" r=\"1.9\"/></svg>";

/// One page.
pub(crate) struct Page<'p> {
    pub(crate) title: &'p str,
    /// HTML of the card.
    pub(crate) content: &'p str,
    /// HTML below the card; may be empty.
    pub(crate) after: &'p str,
    /// Whether the card has sections side by side, no margin, and the title above it.
    pub(crate) is_wide: bool,
    /// Of the policy; without one it allows no inline style, and the page goes without.
    pub(crate) nonce: Option<&'p str>,
}

impl Page<'_> {
    pub(crate) fn reply(&self, status: StatusCode) -> Response {
        let Self { title, content, after, is_wide, nonce } = self;
        let style =
            nonce.map(|n| format!("<style nonce=\"{n}\">{STYLE}</style>\n")).unwrap_or_default();
        let above = match is_wide {
            true => format!("<h1>{title}</h1>"),
            false => "<span>svc</span>".to_owned(),
        };
        let width = if *is_wide { " class=\"wide\"" } else { "" };
        let after = match after.is_empty() {
            true => String::new(),
            false => format!("<p class=\"after\">{after}</p>\n"),
        };
        let page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <link rel=\"icon\" href=\"data:,\">\n{style}<body>\n<div>\n\
             <header>{MARK}{above}</header>\n\
             <main{width}>\n{content}</main>\n{after}</div>\n</html>\n"
        );
        Response::builder()
            .status(status)
            .header(header::CONTENT_TYPE, "text/html; charset=utf-8")
            .body(page)
    }
}

/// A page that says one thing.
pub(crate) fn notice(status: StatusCode, title: &str, text: &str, nonce: Option<&str>) -> Response {
    let content = format!("<h1>{title}</h1>\n<p>{text}</p>\n");
    Page { title, content: &content, after: "", is_wide: false, nonce }.reply(status)
}

/// Text as it stands in HTML, also between quotes.
pub(crate) fn escaped(raw: &str) -> String {
    raw.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}
