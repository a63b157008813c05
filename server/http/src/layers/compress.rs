//! Content coding: what a client takes, and compression of replies made on the fly.

use crate::reply::{self, NeverCompress};
use poem::http::{HeaderMap, HeaderValue, StatusCode, header};
use poem::web::{Compress, CompressionAlgo, CompressionLevel};
use poem::{IntoResponse as _, Response};

/// Replies below this size are sent as they are, bytes.
const WORTH_IT: u64 = 1024;

/// Marks a text worth compressing that is neither JSON nor HTML.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compressible;

/// A content coding this server speaks, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Brotli,
    Gzip,
}

impl Coding {
    pub(crate) const ALL: [Self; 2] = [Self::Brotli, Self::Gzip];

    /// The word in headers and the end of entity tags.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    /// The end of names of files compressed ahead.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Gzip => ".gz",
        }
    }
}

/// Codings the client takes, best first; a quality of 0 forbids one.
pub(crate) fn accepted(headers: &HeaderMap) -> Vec<Coding> {
    let entries: Vec<(String, bool)> = headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|entry| {
            let mut parts = entry.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality = parts.find_map(|part| part.strip_prefix("q=")).map(str::parse::<f32>);
            // A quality that is no number counts as refusal: sending as is is always right.
            (name, quality.is_none_or(|quality| quality.is_ok_and(|quality| quality > 0.0)))
        })
        .collect();
    let verdict = |name: &str| entries.iter().find(|(entry, _)| entry == name).map(|(_, yes)| *yes);
    Coding::ALL
        .into_iter()
        .filter(|coding| verdict(coding.name()).or_else(|| verdict("*")).unwrap_or(false))
        .collect()
}

/// Compresses a reply if it is worth it and allowed.
pub(crate) fn apply(mut response: Response, accepted: &[Coding]) -> Response {
    if !is_candidate(&response) {
        return response;
    }
    response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
    let Some(coding) = accepted.first() else {
        return response;
    };
    if reply::size(&mut response).0 < WORTH_IT {
        return response;
    }
    suffix_etag(&mut response, *coding);
    let algorithm = match coding {
        Coding::Brotli => CompressionAlgo::BR,
        Coding::Gzip => CompressionAlgo::GZIP,
    };
    Compress::new(response, algorithm).with_quality(CompressionLevel::Fastest).into_response()
}

fn is_candidate(response: &Response) -> bool {
    let media = response.header(header::CONTENT_TYPE).unwrap_or_default();
    let is_text = media.starts_with("application/json")
        || media.starts_with("text/html")
        || response.extensions().get::<Compressible>().is_some();
    is_text
        && response.status() != StatusCode::NOT_MODIFIED
        && response.extensions().get::<NeverCompress>().is_none()
        && !response.headers().contains_key(header::CONTENT_ENCODING)
}

/// A strong tag stands for exact bytes, and these are others.
fn suffix_etag(response: &mut Response, coding: Coding) {
    let Some(tag) = response.header(header::ETAG).and_then(|tag| tag.strip_suffix('"')) else {
        return;
    };
    if let Ok(value) = HeaderValue::from_str(&format!("{tag}-{}\"", coding.name())) {
        response.headers_mut().insert(header::ETAG, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codings(sent: &str) -> Vec<&'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_str(sent).unwrap());
        accepted(&headers).into_iter().map(Coding::name).collect()
    }

    #[test]
    fn brotli_is_preferred_and_a_zero_quality_is_a_refusal() {
        assert_eq!(codings("gzip, br"), ["br", "gzip"]);
        assert_eq!(codings("br;q=0, gzip;q=0.5"), ["gzip"]);
        assert_eq!(codings("*"), ["br", "gzip"]);
        assert_eq!(codings("*;q=0.1, br;q=0"), ["gzip"]);
        assert_eq!(codings("identity"), [""; 0]);
        assert_eq!(codings("BR"), ["br"]);
        assert_eq!(codings("br;q=x"), [""; 0]);
    }

    fn large() -> Response {
        let mut response = reply::json(StatusCode::OK, &"x".repeat(5000));
        response.headers_mut().insert(header::ETAG, HeaderValue::from_static("\"t\""));
        response
    }

    #[tokio::test]
    async fn large_replies_are_compressed_with_a_tag_of_their_own() {
        let response = apply(large(), &Coding::ALL);
        assert_eq!(response.header("content-encoding"), Some("br"));
        assert_eq!(response.header("etag"), Some("\"t-br\""));
        assert_eq!(response.header("vary"), Some("accept-encoding"));
        assert!(response.into_body().into_bytes().await.unwrap().len() < 1000);
    }

    #[test]
    fn small_secret_and_unwanted_compression_is_left_out() {
        let small = apply(reply::json(StatusCode::OK, &"x"), &Coding::ALL);
        assert_eq!(small.header("content-encoding"), None);
        let plain = apply(large(), &[]);
        assert_eq!((plain.header("content-encoding"), plain.header("etag")), (None, Some("\"t\"")));
        let mut secret = large();
        secret.extensions_mut().insert(NeverCompress);
        assert_eq!(apply(secret, &Coding::ALL).header("content-encoding"), None);
    }
}
