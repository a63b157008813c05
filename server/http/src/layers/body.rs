//! Reads a JSON body: size, content type and idle time (`http-api` §0.2, H74, H76).

use crate::body::json;
use crate::error::Refusal;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use poem::http::{HeaderMap, StatusCode, header};
use poem::{Body, Request};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;
use svc_shared::error::ErrorCode;

/// Largest JSON body, bytes.
pub(crate) const JSON_LIMIT: usize = 1024 * 1024;
/// Largest body of the routes that take a password, bytes.
pub(crate) const SMALL_LIMIT: usize = 16 * 1024;

/// What a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// Nothing; what comes is not read, and the connection ends with the answer.
    None,
    /// A JSON object.
    Json,
    /// A JSON object, or nothing at all.
    OptionalJson,
    /// A JSON object of a few words.
    SmallJson,
    /// A JSON object or the fields of a form, a few words.
    Small,
}

impl BodyKind {
    fn limit(self) -> usize {
        match self {
            Self::None | Self::Json | Self::OptionalJson => JSON_LIMIT,
            Self::SmallJson | Self::Small => SMALL_LIMIT,
        }
    }
}

/// How long a body may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Between two pieces.
    pub(crate) idle: Duration,
    /// For the whole. Without it a byte now and then keeps a connection for ever (H76).
    pub(crate) total: Duration,
}

/// Reads and parses the body that the route takes.
///
/// The order of checks is that of `http-api` §5.5: size as announced, coding, type, size as
/// received.
///
/// # Errors
/// 408, 413, 415 or 422.
pub(crate) async fn read(
    request: &mut Request,
    kind: BodyKind,
    patience: Patience,
) -> Result<Option<Value>, Refusal> {
    let Patience { idle, total } = patience;
    match tokio::time::timeout(total, read_in_time(request, kind, idle)).await {
        Ok(read) => read,
        Err(_) => Err(late("the request body took too long to arrive; send it faster")),
    }
}

async fn read_in_time(
    request: &mut Request,
    kind: BodyKind,
    idle: Duration,
) -> Result<Option<Value>, Refusal> {
    let is_required = match kind {
        BodyKind::None => return Ok(None),
        BodyKind::Json | BodyKind::SmallJson | BodyKind::Small => true,
        BodyKind::OptionalJson => false,
    };
    let limit = kind.limit();
    if announced(request.headers()) > limit as u64 {
        return Err(over_limit(limit));
    }
    let declared = match content_type(request.headers(), kind == BodyKind::Small) {
        Ok(ContentType::Absent) if is_required => return Err(wrong_type()),
        Ok(declared) => declared,
        Err(refusal) if is_required => return Err(refusal),
        // Some clients declare a type for a body that they do not send.
        Err(refusal) => return expect_nothing(request, idle, refusal).await,
    };
    let bytes = receive(request, idle, limit).await?;
    match (bytes.is_empty(), declared) {
        (true, _) if !is_required => Ok(None),
        (false, ContentType::Absent) => Err(wrong_type()),
        (_, ContentType::Form) => Ok(Some(form(&bytes))),
        _ => json::parse(&bytes).map(Some),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentType {
    Absent,
    Json,
    Form,
}

/// The fields of a form, the first of each name; invalid UTF-8 becomes U+FFFD.
fn form(bytes: &[u8]) -> Value {
    let mut fields = serde_json::Map::new();
    for (name, value) in url::form_urlencoded::parse(bytes) {
        fields.entry(name).or_insert_with(|| Value::String(value.into_owned()));
    }
    Value::Object(fields)
}

/// Whether a request says that its body is a form.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    content_type(headers, true).is_ok_and(|declared| declared == ContentType::Form)
}

fn content_type(headers: &HeaderMap, takes_forms: bool) -> Result<ContentType, Refusal> {
    let is_identity = headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .all(|coding| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity"));
    if !is_identity {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorCode::InvalidJsonType,
            "compressed request bodies are not read; send the body without Content-Encoding",
        ));
    }
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let Some(value) = values.next() else {
        return Ok(ContentType::Absent);
    };
    let media = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let media = media.to_ascii_lowercase();
    let is_json = media == "application/json"
        || media.strip_prefix("application/").is_some_and(|sub| sub.ends_with("+json"));
    let is_alone = values.next().is_none();
    if takes_forms && is_alone && media == "application/x-www-form-urlencoded" {
        return Ok(ContentType::Form);
    }
    if is_json && is_alone { Ok(ContentType::Json) } else { Err(wrong_type()) }
}

/// Tells whether the body of a request was read to its end.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatchedBody(Arc<AtomicBool>);

impl WatchedBody {
    pub(crate) fn is_read(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Watches the body of a request; `None` where it has none.
pub(crate) fn watched(request: &mut Request) -> Option<WatchedBody> {
    let headers = request.headers();
    if announced(headers) == 0 && !headers.contains_key(header::TRANSFER_ENCODING) {
        return None;
    }
    let watched = WatchedBody::default();
    let end = watched.clone();
    let chunks = request.take_body().into_bytes_stream();
    let end = futures_util::stream::poll_fn(move |_| {
        end.0.store(true, Ordering::Release);
        Poll::Ready(None::<Result<Bytes, std::io::Error>>)
    });
    request.set_body(Body::from_bytes_stream(chunks.chain(end)));
    Some(watched)
}

fn announced(headers: &HeaderMap) -> u64 {
    headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse().ok())
        .unwrap_or(0)
}

async fn receive(request: &mut Request, idle: Duration, limit: usize) -> Result<Bytes, Refusal> {
    let stream = request.take_body().into_bytes_stream();
    let mut stream = std::pin::pin!(stream);
    let mut body = BytesMut::new();
    while let Some(chunk) = next_chunk(&mut stream, idle).await? {
        if body.len() + chunk.len() > limit {
            return Err(over_limit(limit));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// Waits for the end of an empty body, or gives `refusal` at the first byte.
async fn expect_nothing(
    request: &mut Request,
    idle: Duration,
    refusal: Refusal,
) -> Result<Option<Value>, Refusal> {
    let stream = request.take_body().into_bytes_stream();
    let mut stream = std::pin::pin!(stream);
    while let Some(chunk) = next_chunk(&mut stream, idle).await? {
        if !chunk.is_empty() {
            return Err(refusal);
        }
    }
    Ok(None)
}

/// The next piece of a body; `None` at its end.
async fn next_chunk<S, E>(stream: &mut S, idle: Duration) -> Result<Option<Bytes>, Refusal>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    match tokio::time::timeout(idle, stream.next()).await {
        Ok(None) => Ok(None),
        Ok(Some(Ok(chunk))) => Ok(Some(chunk)),
        Ok(Some(Err(_))) => Err(Refusal::malformed("the request body is incomplete").closing()),
        Err(_) => Err(late("the request body stopped arriving; send it again")),
    }
}

fn late(detail: &'static str) -> Refusal {
    Refusal::new(StatusCode::REQUEST_TIMEOUT, ErrorCode::InvalidValue, detail).closing()
}

fn over_limit(limit: usize) -> Refusal {
    let kib = limit / 1024;
    Refusal::too_large(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the request body is larger than {kib} KiB; send less"),
    )
}

fn wrong_type() -> Refusal {
    Refusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::InvalidJsonType,
        "the body must be JSON; send `Content-Type: application/json`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use poem::Body;

    const PATIENCE: Patience =
        Patience { idle: Duration::from_secs(30), total: Duration::from_secs(60) };

    async fn status(request: Request, kind: BodyKind) -> u16 {
        let mut request = request;
        match read(&mut request, kind, PATIENCE).await {
            Ok(_) => 200,
            Err(refusal) => refusal.status().as_u16(),
        }
    }

    fn with(content_type: &str, body: &'static str) -> Request {
        Request::builder().content_type(content_type).body(body)
    }

    #[tokio::test]
    async fn h8_only_json_is_read() {
        for (sent, expected) in [
            ("application/json", 200),
            ("Application/JSON; charset=utf-8; x=y", 200),
            ("application/problem+json", 200),
            ("text/plain", 415),
            ("application/x-www-form-urlencoded", 415),
            ("text/json", 415),
            ("image/svg+json", 415),
            ("", 415),
        ] {
            assert_eq!(status(with(sent, "{}"), BodyKind::Json).await, expected, "{sent}");
        }
        let untyped = || Request::builder().body("{}");
        assert_eq!(status(untyped(), BodyKind::Json).await, 415);
        assert_eq!(status(untyped(), BodyKind::OptionalJson).await, 415);
        let two = Request::builder()
            .header("content-type", "application/json")
            .header("content-type", "text/plain")
            .body("{}");
        assert_eq!(status(two, BodyKind::Json).await, 415);
    }

    #[tokio::test]
    async fn an_optional_body_may_be_absent_and_a_required_one_may_not() {
        let empty = || Request::builder().finish();
        assert_eq!(status(empty(), BodyKind::OptionalJson).await, 200);
        assert_eq!(status(with("application/json", ""), BodyKind::OptionalJson).await, 200);
        assert_eq!(status(with("application/json", ""), BodyKind::Json).await, 422);
    }

    #[tokio::test]
    async fn an_empty_optional_body_has_any_type() {
        for sent in ["application/octet-stream", "text/plain", ""] {
            assert_eq!(status(with(sent, ""), BodyKind::OptionalJson).await, 200, "{sent}");
            assert_eq!(status(with(sent, "{}"), BodyKind::OptionalJson).await, 415, "{sent}");
            assert_eq!(status(with(sent, ""), BodyKind::Json).await, 415, "{sent}");
        }
        let coded =
            |body: &'static str| Request::builder().header("content-encoding", "gzip").body(body);
        assert_eq!(status(coded(""), BodyKind::OptionalJson).await, 200);
        assert_eq!(status(coded("{}"), BodyKind::OptionalJson).await, 415);
    }

    #[tokio::test]
    async fn compressed_bodies_are_not_read() {
        let sent = |coding: &str| {
            Request::builder()
                .content_type("application/json")
                .header("content-encoding", coding)
                .body("{}")
        };
        assert_eq!(status(sent("gzip"), BodyKind::Json).await, 415);
        assert_eq!(status(sent("identity"), BodyKind::Json).await, 200);
    }

    #[tokio::test]
    async fn the_limit_holds_for_announced_and_for_streamed_bodies() {
        let announced = Request::builder()
            .content_type("application/json")
            .header("content-length", (JSON_LIMIT + 1).to_string())
            .body("{}");
        assert_eq!(status(announced, BodyKind::Json).await, 413);
        let chunks =
            futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 4096]));
        let endless = Request::builder()
            .content_type("application/json")
            .body(Body::from_bytes_stream(chunks));
        assert_eq!(status(endless, BodyKind::Json).await, 413);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_arriving_times_out() {
        let chunks = futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>();
        let stalled = Request::builder()
            .content_type("application/json")
            .body(Body::from_bytes_stream(chunks));
        assert_eq!(status(stalled, BodyKind::Json).await, 408);
    }

    #[tokio::test(start_paused = true)]
    async fn h76_a_body_that_drips_times_out_as_a_whole() {
        for (piece, every) in [("{", 1), (" ", 12), ("", 29)] {
            let drops = futures_util::stream::unfold((), move |()| async move {
                tokio::time::sleep(Duration::from_secs(every)).await;
                Some((Ok::<_, std::io::Error>(piece.as_bytes().to_vec()), ()))
            });
            let before = tokio::time::Instant::now();
            let dripping = Request::builder()
                .content_type("application/json")
                .body(Body::from_bytes_stream(drops));
            assert_eq!(status(dripping, BodyKind::Small).await, 408, "every {every} s");
            assert_eq!(before.elapsed().as_secs(), 60, "every {every} s");
        }
    }
}
