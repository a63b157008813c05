//! Replies that work out: JSON by serde, lists with an entity tag.

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::body::Body as _;
use poem::http::{HeaderMap, HeaderValue, StatusCode, header};
use poem::{Body, Response};
use serde::Serialize;

/// Marks a reply with a credential, which is never compressed (`http-api` §0.4).
#[derive(Debug, Clone, Copy)]
pub(crate) struct NeverCompress;

/// A JSON reply, written by serde alone like everywhere else.
pub(crate) fn json<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => json_bytes(status, bytes.into()),
        // Wire types hold texts, numbers and maps with text keys: this cannot happen.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into(),
    }
}

pub(crate) fn json_bytes(status: StatusCode, bytes: Bytes) -> Response {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from_bytes(bytes))
}

/// 303 to a path of this service.
pub(crate) fn see_other(to: &str) -> Response {
    Response::builder().status(StatusCode::SEE_OTHER).header(header::LOCATION, to).finish()
}

/// Bytes the body will have, as far as it is known, and whether that is exact.
pub(crate) fn size(response: &mut Response) -> (u64, bool) {
    let body: BoxBody<Bytes, std::io::Error> = response.take_body().into();
    let size = body.size_hint();
    response.set_body(Body::from(body));
    (size.lower(), size.exact().is_some())
}

/// A JSON list with its entity tag; 304 when the caller has exactly this one.
pub(crate) fn tagged(headers: &HeaderMap, body: Bytes, etag: &str) -> Response {
    let mut response = if is_known(headers, etag) {
        StatusCode::NOT_MODIFIED.into()
    } else {
        json_bytes(StatusCode::OK, body)
    };
    if let Ok(value) = HeaderValue::from_str(etag) {
        response.headers_mut().insert(header::ETAG, value);
    }
    response
}

/// Whether `If-None-Match` names this entity, in any content coding of it.
///
/// Comparison is weak, as the header asks for; a compressed reply carries the tag with the coding
/// as suffix, because a strong tag stands for exact bytes.
pub(crate) fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let bare = |tag: &str| {
        let tag = tag.trim().trim_start_matches("W/").trim_matches('"');
        let stem = tag.strip_suffix("-br").or_else(|| tag.strip_suffix("-gzip"));
        stem.unwrap_or(tag).to_owned()
    };
    let wanted = bare(etag);
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|tag| tag.trim() == "*" || bare(tag) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_tag_matches_in_every_coding_and_in_a_list() {
        for sent in ["\"a-i1\"", "W/\"a-i1\"", "\"x\", \"a-i1-gzip\"", "*", "\"a-i1-br\""] {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, HeaderValue::from_str(sent).unwrap());
            assert!(is_known(&headers, "\"a-i1\""), "{sent}");
        }
        for sent in ["\"a-i2\"", "", "a-i1x"] {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, HeaderValue::from_str(sent).unwrap());
            assert!(!is_known(&headers, "\"a-i1\""), "{sent}");
        }
    }
}
