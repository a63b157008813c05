//! The page that shows the API description: Swagger UI, from this program alone.
//!
//! The framework carries it as one document with everything inline, which our content policy does
//! not run. Style and script are taken out of that document and served as files.

use crate::call::Call;
use crate::digest;
use crate::error::Refusal;
use crate::layers::compress::Compressible;
use crate::reply;
use poem::http::{HeaderValue, StatusCode, header};
use poem::{Body, Response};
use poem_openapi::OpenApiService;
use std::sync::LazyLock;

/// Starts the viewer; the description is beside the page under every prefix.
const START: &str = "\
SwaggerUIBundle({
  url: new URL('../openapi.json', document.currentScript.src).href,
  dom_id: '#ui',
  deepLinking: true,
  validatorUrl: null,
});
";

/// Style and script, with the tags of their bytes.
struct Asset {
    name: &'static str,
    media: &'static str,
    text: String,
    etag: String,
}

impl Asset {
    fn new(name: &'static str, media: &'static str, text: String) -> Self {
        let etag = digest::entity_tag(text.as_bytes());
        Self { name, media, text, etag }
    }
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let document = OpenApiService::new((), "", "").swagger_ui_html();
    let between = |before: &str, after: &str| {
        let (_, rest) = document.split_once(before)?;
        Some(rest.split_once(after)?.0.to_owned())
    };
    // Pinned with the framework's version; a test looks at both.
    let style = between("<style charset=\"UTF-8\">", "</style>\n").unwrap_or_default();
    let script = between("<script charset=\"UTF-8\">", "</script>\n</head>").unwrap_or_default();
    vec![
        Asset::new("swagger-ui.css", "text/css; charset=utf-8", style),
        Asset::new("swagger-ui.js", "text/javascript; charset=utf-8", script),
        Asset::new("start.js", "text/javascript; charset=utf-8", START.to_owned()),
    ]
});

/// The page itself.
pub(crate) async fn page(call: Call) -> Result<Response, Refusal> {
    let root = call.context.root.as_str();
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>svc: the API</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <link rel=\"stylesheet\" href=\"{root}/docs/swagger-ui.css\">\n\
         <div id=\"ui\"></div>\n<script src=\"{root}/docs/swagger-ui.js\"></script>\n\
         <script src=\"{root}/docs/start.js\"></script>\n</html>\n"
    );
    Ok(Response::builder().header(header::CONTENT_TYPE, "text/html; charset=utf-8").body(page))
}

/// Serves one file that the page of the API document loads.
pub(crate) async fn file(call: Call) -> Result<Response, Refusal> {
    // The first look takes the document apart: a few milliseconds for one and a half megabytes.
    let assets = tokio::task::spawn_blocking(|| &*ASSETS).await;
    let assets = assets.map_err(|error| Refusal::internal(&error.to_string()))?;
    let Some(asset) = assets.iter().find(|asset| asset.name == call.param()) else {
        return Err(Refusal::not_found());
    };
    let mut response = if reply::is_known(call.request.headers(), &asset.etag) {
        StatusCode::NOT_MODIFIED.into()
    } else {
        Response::builder()
            .header(header::CONTENT_TYPE, asset.media)
            .body(Body::from(asset.text.as_str()))
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(etag) = HeaderValue::from_str(&asset.etag) {
        headers.insert(header::ETAG, etag);
    }
    response.extensions_mut().insert(Compressible);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_and_script_are_found_in_what_the_framework_carries() {
        let of = |name: &str| &ASSETS.iter().find(|asset| asset.name == name).unwrap().text;
        assert!(of("swagger-ui.css").contains(".swagger-ui"));
        assert!(!of("swagger-ui.css").contains("<script"), "no markup is left in it");
        assert!(of("swagger-ui.js").contains("SwaggerUIBundle"));
        assert!(of("swagger-ui.js").len() > 1_000_000);
        assert!(!of("swagger-ui.js").contains("let oauth2RedirectUrl"), "nor the page's own start");
    }
}
