//! A server that answers well, badly, or sends elsewhere.

use super::*;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A server for https on this machine, and who trusts it.
struct Server {
    port: u16,
    trusting: ClientConfig,
}

/// What was asked, word by word.
type Asked = tokio::sync::mpsc::UnboundedReceiver<String>;

/// Answers each connection with what `answer` makes of the path.
async fn serve(answer: impl Fn(&str, u16) -> Vec<u8> + Send + 'static) -> (Server, Asked) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trusting = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let own = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(own));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, asked) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            let head = String::from_utf8(head).unwrap();
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let _ = told.send(head);
            // A client that refuses goes away in the middle.
            let _ = stream.write_all(&answer(&path, port)).await;
            let _ = stream.shutdown().await;
        }
    });
    (Server { port, trusting }, asked)
}

fn reply(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut reply = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n").into_bytes();
    reply.extend_from_slice(body);
    reply
}

impl Server {
    async fn get(&self, path: &str) -> Result<Vec<u8>, String> {
        let url = format!("https://127.0.0.1:{}{path}", self.port);
        fetch_by(&url, self.trusting.clone()).await.map_err(|error| error.to_string())
    }
}

#[tokio::test]
async fn h124_an_archive_is_fetched_over_redirects_without_credentials() {
    let (server, mut asked) = serve(|path, port| match path {
        "/a" => reply("302 Found", &format!("location: https://127.0.0.1:{port}/b\r\n"), b""),
        _ => reply("200 OK", "content-length: 7\r\n", b"archive"),
    })
    .await;
    assert_eq!(server.get("/a").await.unwrap(), b"archive");
    for _ in 0..2 {
        let head = asked.recv().await.unwrap().to_ascii_lowercase();
        for word in ["authorization", "cookie", "referer"] {
            assert!(!head.contains(word), "{head}");
        }
        assert!(head.contains("user-agent: svc/"), "{head}");
    }
}

#[tokio::test]
async fn h124_plain_http_too_many_redirects_and_bad_answers_are_refused() {
    let (server, _asked) = serve(|path, port| match path {
        "/plain" => reply("302 Found", &format!("location: http://127.0.0.1:{port}/b\r\n"), b""),
        "/loop" => reply("302 Found", "location: /loop\r\n", b""),
        "/missing" => reply("404 Not Found", "content-length: 0\r\n", b""),
        "/cut" => reply("200 OK", "content-length: 100\r\n", b"only this"),
        "/huge" => reply("200 OK", "content-length: 999999999999\r\n", b""),
        _ => {
            // Without a length: it is seen only while it comes.
            let mut body = reply("200 OK", "", b"");
            body.resize(body.len() + LARGEST + 1, 0);
            body
        }
    })
    .await;
    for (path, words) in [
        ("/plain", "URL scheme is not allowed"),
        ("/loop", "redirect"),
        ("/missing", "404"),
        ("/cut", "end of file"),
        ("/huge", "larger than 64 MiB"),
        ("/endless", "larger than 64 MiB"),
    ] {
        let error = server.get(path).await.expect_err(path);
        assert!(error.contains(words), "{path}: {error}");
    }
    let plain = fetch_by("http://127.0.0.1:1/", server.trusting.clone()).await.unwrap_err();
    assert!(plain.to_string().contains("scheme"), "{plain}");
}

#[tokio::test]
async fn h124_a_server_that_nobody_vouches_for_is_refused() {
    let (server, _asked) = serve(|_, _| reply("200 OK", "content-length: 0\r\n", b"")).await;
    let (other, _asked) = serve(|_, _| reply("200 OK", "content-length: 0\r\n", b"")).await;
    let url = format!("https://127.0.0.1:{}/", server.port);
    let error = fetch_by(&url, other.trusting).await.unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
}
