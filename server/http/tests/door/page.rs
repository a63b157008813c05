//! The page's document and files, whether or not the page is built.

use crate::client::Sent;
use crate::harness::Server;
use svc_http::ServeOptions;

fn nonce_of(policy: &str) -> &str {
    policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap()
}

#[tokio::test]
async fn the_document_has_prefix_and_nonce_of_its_reply_or_says_how_to_build_it() {
    let server = Server::with("root_path: /a/b\n", ServeOptions::default()).await;
    for path in [
        "/a/b/",
        "/a/b",
        "/",
        "/ui/",
        "/a/b/ui/",
        "/ui/p/has.dot",
        "/a/b/ui/s/x",
        "/a/b/ui/about/components",
    ] {
        let reply = server.get(path).await;
        let text = reply.text();
        let policy = reply.header("content-security-policy").unwrap();
        let is_page = policy.split([' ', ';']).any(|source| source == "'wasm-unsafe-eval'");
        assert!(reply.header("content-type").unwrap().starts_with("text/html"), "{path}");
        if svc_http::has_page() {
            assert_eq!(reply.status, 200, "{path}");
            assert!(is_page);
            assert!(text.contains(&format!("nonce=\"{}\"", nonce_of(policy))), "{text}");
            assert!(text.contains("content=\"/a/b\""), "{text}");
            assert!(!text.contains("__ROOT_PATH__") && !text.contains("__CSP_NONCE__"), "{text}");
        } else {
            assert_eq!(reply.status, 503, "{path}");
            assert!(!is_page && text.contains("cargo xtask dist"), "{text}");
        }
    }
}

#[tokio::test]
async fn h134_the_worker_keeps_nothing_and_serves_nothing() {
    let server = Server::with("root_path: /a/b\n", ServeOptions::default()).await;
    let paths = ["/a/b/sw.js", "/a/b/manifest.webmanifest"];
    if !svc_http::has_page() {
        for path in paths {
            assert_eq!(server.get(path).await.status, 404, "{path}");
        }
        svc_skip::skip!("dist/ holds no page");
    }
    for path in paths {
        let reply = server.get(path).await;
        assert_eq!(
            (reply.status, reply.header("cache-control")),
            (200, Some("no-cache")),
            "{path}"
        );
        assert!(!reply.text().contains("__ROOT_PATH__"), "{path}");
        let known = Sent::new("GET", path).header("if-none-match", reply.header("etag").unwrap());
        assert_eq!(server.send(known).await.status, 304, "{path}");
    }
    let worker = server.get(paths[0]).await;
    assert!(worker.header("content-type").unwrap().starts_with("text/javascript"));
    let text = worker.text();
    assert!(text.contains("const ROOT = '/a/b';"), "{text}");
    for word in ["caches", "indexedDB", "addEventListener('fetch'"] {
        assert!(!text.contains(word), "{word}");
    }
    let manifest: serde_json::Value =
        serde_json::from_str(&server.get(paths[1]).await.text()).unwrap();
    assert_eq!((&manifest["scope"], &manifest["display"]), (&"/a/b/".into(), &"standalone".into()));
    // No page, no worker.
    let server = Server::with("ui:\n  enabled: false\n", ServeOptions::default()).await;
    assert_eq!(server.get("/sw.js").await.status, 404);
}

#[tokio::test]
async fn h133_files_are_served_by_exact_name_only_and_are_named_by_their_content() {
    let server = Server::start().await;
    for path in [
        "/static/index.html",
        "/static/gallery.html",
        "/static/nothing.js",
        "/static/.stage/index.html",
    ] {
        let reply = server.get(path).await;
        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
    }
    if !svc_http::has_page() {
        svc_skip::skip!("dist/ holds no page");
    }
    let document = server.get("/").await.text();
    let script = document
        .split('"')
        .find(|part| part.starts_with("/static/") && part.ends_with(".wasm"))
        .expect("the document names its module")
        .to_owned();
    // A page of another version asks for files of other names.
    let stem = script.trim_end_matches("_bg.wasm").trim_end_matches(".wasm");
    let hash = stem.rsplit('-').next().unwrap();
    assert!(hash.len() >= 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{script}");
    assert_eq!(server.get("/").await.header("cache-control"), Some("no-store"));
    let plain = server.get(&script).await;
    assert_eq!(plain.header("content-type"), Some("application/wasm"));
    assert_eq!(plain.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(plain.header("vary"), Some("accept-encoding"));
    assert_eq!(plain.header("content-encoding"), None);
    let ask = |codings: &str| Sent::new("GET", &script).header("Accept-Encoding", codings);
    for (codings, expected) in [
        ("br, gzip", Some("br")),
        ("gzip", Some("gzip")),
        ("br;q=0, gzip", Some("gzip")),
        ("x", None),
    ] {
        let reply = server.send(ask(codings)).await;
        assert_eq!(reply.header("content-encoding"), expected, "{codings}");
        let tag = reply.header("etag").unwrap();
        assert_eq!(tag.ends_with("-br\""), expected == Some("br"));
        let again = server.send(ask(codings).header("If-None-Match", tag)).await;
        assert_eq!((again.status, again.body.len()), (304, 0));
        assert_eq!(again.header("cache-control"), reply.header("cache-control"));
    }
    for suffix in [".br", ".gz"] {
        assert_eq!(server.get(&format!("{script}{suffix}")).await.status, 404);
    }
}

#[tokio::test]
async fn bootstrap_names_the_page_that_is_served() {
    let server = Server::start().await;
    let bootstrap = server.get("/api/bootstrap").await.json();
    let build = bootstrap["build"].as_str().unwrap();
    assert_eq!(build.len(), if svc_http::has_page() { 16 } else { 0 });
    assert_eq!(bootstrap["auth"]["method"], "off");
}
