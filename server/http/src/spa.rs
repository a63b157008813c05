//! Serves the page: the document at `/` and `/ui/*`, its files at `/static/*`.
//!
//! The gallery of its components is a second document with a module of its own. The files are part
//! of the program; a debug build reads the folder instead, so that a new page needs no new server.

use crate::call::Call;
use crate::digest;
use crate::error::Refusal;
use crate::layers::compress::{self, Coding};
use crate::layers::headers::Policy;
use crate::plain;
use poem::http::{HeaderValue, StatusCode, header};
use poem::{Body, IntoResponse as _, Response};
use rust_embed::{EmbeddedFile, RustEmbed};
use serde_json::{Value, json};
use std::sync::OnceLock;

#[derive(RustEmbed)]
#[folder = "../../dist"]
#[exclude = ".stage/*"]
struct Dist;

/// The page's document.
const DOCUMENT: &str = "index.html";
/// The document of the gallery.
const GALLERY: &str = "gallery.html";
/// Stands in the document where the configured prefix belongs.
const ROOT_MARK: &str = "/__ROOT_PATH__";
/// Stands in the document where the nonce belongs.
const NONCE_MARK: &str = "__CSP_NONCE__";
/// Lengths of a hash in a file name: 64 bits in hex, without leading zeros.
const HASH_DIGITS: std::ops::RangeInclusive<usize> = 13..=16;

/// The page's document with prefix and nonce of this reply.
pub(crate) async fn shell(call: Call) -> Result<Response, Refusal> {
    Ok(fill(read(DOCUMENT.to_owned()).await, &call))
}

/// The worker of the page.
///
/// It belongs to everything below the prefix that it is served from.
pub(crate) async fn worker(call: Call) -> Result<Response, Refusal> {
    text_at_root(&call, include_str!("sw.js"), "text/javascript; charset=utf-8").await
}

/// What a system needs to install the page as an application.
pub(crate) async fn manifest(call: Call) -> Result<Response, Refusal> {
    let icon = tokio::task::spawn_blocking(|| {
        Dist::iter().find(|name| name.starts_with("icons-") && name.ends_with(".svg"))
    });
    let icons: Vec<Value> = icon.await.ok().flatten().into_iter().map(|name| {
        json!({ "src": format!("{ROOT_MARK}/static/{name}"), "sizes": "any", "type": "image/svg+xml" })
    }).collect();
    let manifest = json!({
        "id": format!("{ROOT_MARK}/ui/"),
        "name": "Bridge Manager",
        "short_name": "svc",
        "start_url": format!("{ROOT_MARK}/ui/"),
        "scope": format!("{ROOT_MARK}/"),
        "display": "standalone",
        "icons": icons,
    });
    text_at_root(&call, &manifest.to_string(), "application/manifest+json").await
}

/// A text that names addresses of this service.
///
/// 404 where there is no page that it is for.
async fn text_at_root(
    call: &Call,
    text: &str,
    media_type: &'static str,
) -> Result<Response, Refusal> {
    if read(DOCUMENT.to_owned()).await.is_none() {
        return Err(Refusal::not_found());
    }
    let text = text.replace(ROOT_MARK, call.context.root.as_str());
    let etag = format!("\"{}\"", digest::short_hash(text.as_bytes()));
    let response = if is_known(call, &etag) {
        Response::from(StatusCode::NOT_MODIFIED)
    } else {
        Response::builder().header(header::CONTENT_TYPE, media_type).body(text)
    };
    let response = response.with_header(header::CACHE_CONTROL, "no-cache");
    Ok(response.with_header(header::ETAG, etag).into_response())
}

/// Whether the client has this state of a file already.
fn is_known(call: &Call, etag: &str) -> bool {
    call.request
        .headers()
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|tag| matches!(tag.trim(), "*") || tag.trim().trim_start_matches("W/") == etag)
}

/// The document of the gallery; 404 where the page was built without it.
pub(crate) async fn gallery(call: Call) -> Result<Response, Refusal> {
    match read(GALLERY.to_owned()).await {
        None => shell(call).await,
        found => Ok(fill(found, &call)),
    }
}

fn fill(document: Option<EmbeddedFile>, call: &Call) -> Response {
    let Some(document) = document else {
        return plain::notice(
            StatusCode::SERVICE_UNAVAILABLE,
            "The page is not built",
            "This program was built without its page. Build it with <code>cargo xtask dist</code>, \
             then build the program again. API and command line work without it.",
            call.nonce.as_deref(),
        );
    };
    let text = String::from_utf8_lossy(&document.data)
        .replace(ROOT_MARK, call.context.root.as_str())
        .replace(NONCE_MARK, call.nonce.as_deref().unwrap_or_default());
    let mut response =
        Response::builder().header(header::CONTENT_TYPE, "text/html; charset=utf-8").body(text);
    response.extensions_mut().insert(Policy::Page);
    response
}

/// One file of the page, by its exact name.
pub(crate) async fn file(call: Call) -> Result<Response, Refusal> {
    let name = call.param().to_owned();
    let is_ahead = Coding::ALL.iter().any(|coding| name.ends_with(coding.suffix()));
    if name == DOCUMENT || name == GALLERY || is_ahead {
        return Err(Refusal::not_found());
    }
    let Some(plain) = read(name.clone()).await else {
        return Err(Refusal::not_found());
    };
    let mut chosen = (plain, None);
    for coding in compress::accepted(call.request.headers()) {
        if let Some(ahead) = read(format!("{name}{}", coding.suffix())).await {
            chosen = (ahead, Some(coding));
            break;
        }
    }
    let (file, coding) = chosen;
    Ok(send(&call, &name, file, coding))
}

fn send(call: &Call, name: &str, file: EmbeddedFile, coding: Option<Coding>) -> Response {
    let mut hash = hex::encode(file.metadata.sha256_hash());
    hash.truncate(24);
    let suffix = coding.map(|coding| format!("-{}", coding.name())).unwrap_or_default();
    let etag = format!("\"{hash}{suffix}\"");
    let is_known = is_known(call, &etag);
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into()
    } else {
        let body = match file.data {
            std::borrow::Cow::Borrowed(bytes) => Body::from(bytes),
            std::borrow::Cow::Owned(bytes) => Body::from_vec(bytes),
        };
        Response::builder().header(header::CONTENT_TYPE, media_type(name)).body(body)
    };
    let headers = response.headers_mut();
    let cache = if has_hash(name) { "public, max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    if let Some(coding) = coding.filter(|_| !is_known) {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    }
    response
}

/// Hash of the page's files, by which an open page notices a new version.
///
/// Empty without a page.
pub(crate) async fn build() -> String {
    static EMBEDDED: OnceLock<String> = OnceLock::new();
    if cfg!(debug_assertions) {
        tokio::task::spawn_blocking(hash_of_all).await.unwrap_or_default()
    } else {
        EMBEDDED.get_or_init(hash_of_all).clone()
    }
}

/// Whether the program has its page.
#[must_use]
pub fn has_page() -> bool {
    Dist::get(DOCUMENT).is_some()
}

fn hash_of_all() -> String {
    if !has_page() {
        return String::new();
    }
    let mut names: Vec<_> = Dist::iter().collect();
    names.sort_unstable();
    let mut all = Vec::new();
    for name in names {
        if let Some(file) = Dist::get(&name) {
            all.extend_from_slice(name.as_bytes());
            all.extend_from_slice(&file.metadata.sha256_hash());
        }
    }
    digest::short_hash(&all).chars().take(16).collect()
}

/// A file by its name in the list of embedded files, never by a path.
async fn read(name: String) -> Option<EmbeddedFile> {
    let find =
        move || Dist::iter().any(|known| *known == *name).then(|| Dist::get(&name)).flatten();
    if cfg!(debug_assertions) {
        tokio::task::spawn_blocking(find).await.ok().flatten()
    } else {
        find()
    }
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "wasm" => "application/wasm",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Whether the builder put a hash of the contents into the name.
///
/// `NAME-HASH.EXT` or `NAME-HASH_bg.wasm`.
fn has_hash(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    let stem = file.split('.').next().unwrap_or(file);
    let stem = stem.strip_suffix("_bg").unwrap_or(stem);
    stem.rsplit_once('-').is_some_and(|(_, hash)| {
        HASH_DIGITS.contains(&hash.len())
            && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_with_a_hash_may_be_kept_for_ever() {
        for name in [
            "svc-web-0123456789abcdef.js",
            "svc-web-97c207759d20f_bg.wasm",
            "style-97c207759d20f.css",
            "snippets/x-97c207759d20f2.js",
        ] {
            assert!(has_hash(name), "{name}");
        }
        for name in ["icon.svg", "svc-web.js", "style-new.css", "a-0123456789abcdef0.js", "x-.js"] {
            assert!(!has_hash(name), "{name}");
        }
    }

    #[test]
    fn webassembly_is_sent_so_that_it_can_be_compiled_while_it_arrives() {
        assert_eq!(media_type("a_bg.wasm"), "application/wasm");
        assert_eq!(media_type("a.js"), "text/javascript; charset=utf-8");
    }
}
