//! A git server over TLS that serves real repositories and plays tricks (H47, H51).
//!
//! `svc-git-server ROOT` prints its port as one line and serves until its input ends. It is known as
//! `git.test` and `other.test`; `tests/git-server/ca.pem` is what a client must believe. The first
//! part of a path says what happens:
//!
//! - `plain/NAME`: the repository `ROOT/NAME`
//! - `held/NAME`: the same, but the pack stops half-way until the file `ROOT/open` exists
//! - `to/HEX`: a redirect to the address that is written in hexadecimal digits
//! - `loop/NAME`: a redirect to itself
//! - `endless/NAME`: a pack without an end
//! - `silent/NAME`: no answer at all
//!
//! Each request is written to `ROOT/asked`, a line with host and path.

#![expect(clippy::print_stdout, reason = "its port is what it is started for")]

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const CERTIFICATE: &[u8] = include_bytes!("../../git-server/ca.pem");
const KEY: &[u8] = include_bytes!("../../git-server/key.pem");
/// Most bytes of a request's body.
const BODY: u64 = 1024 * 1024;

type Tls = StreamOwned<ServerConnection, TcpStream>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root: PathBuf = std::env::args_os().nth(1).ok_or("usage: svc-git-server ROOT")?.into();
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::from_pem_slice(KEY)?)?;
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (config, root) = (Arc::clone(&config), root.clone());
            std::thread::spawn(move || {
                // A client that leaves early is none of our business.
                let _ = serve(stream, config, &root);
            });
        }
    });
    // Nobody needs it any longer when whoever started it is gone.
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

/// One request; then the connection is closed.
fn serve(stream: TcpStream, config: Arc<ServerConfig>, root: &Path) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let tls = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(tls, stream));
    let request = Request::read(&mut stream)?;
    let asked = format!("{} {}\n", request.host, request.path);
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(root.join("asked"))?
        .write_all(asked.as_bytes())?;
    answer(stream.get_mut(), &request, root)?;
    let tls = stream.get_mut();
    tls.conn.send_close_notify();
    tls.flush()
}

struct Request {
    path: String,
    host: String,
    protocol: Option<String>,
    body: Vec<u8>,
}

impl Request {
    fn read(stream: &mut BufReader<Tls>) -> io::Result<Self> {
        let mut first = String::new();
        stream.read_line(&mut first)?;
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let (mut host, mut protocol, mut length, mut is_gzip) = (String::new(), None, 0, false);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "host" => value.clone_into(&mut host),
                "git-protocol" => protocol = Some(value.to_owned()),
                "content-length" => length = value.parse().unwrap_or(0),
                "content-encoding" => is_gzip = value == "gzip",
                _ => {}
            }
        }
        let mut body = Vec::new();
        stream.by_ref().take(BODY.min(length)).read_to_end(&mut body)?;
        if is_gzip {
            let packed = std::mem::take(&mut body);
            flate2::read::GzDecoder::new(packed.as_slice()).take(BODY).read_to_end(&mut body)?;
        }
        Ok(Self { path, host, protocol, body })
    }
}

fn answer(to: &mut Tls, request: &Request, root: &Path) -> io::Result<()> {
    let path = request.path.trim_start_matches('/');
    let (kind, rest) = path.split_once('/').unwrap_or((path, ""));
    let (name, service) = match rest.split_once(['/', '?']) {
        Some((name, service)) => (name, service),
        None => (rest, ""),
    };
    match kind {
        "to" => redirect(to, &text_of(name)),
        "loop" => redirect(to, &request.path),
        "silent" => {
            // Until the client gives up.
            let _ = to.sock.read(&mut [0]);
            Ok(())
        }
        "endless" if service.starts_with("info") => advertise_nothing_real(to),
        "endless" => endless(to),
        "plain" | "held" => {
            let repository = root.join(name);
            if service.starts_with("info/refs") {
                return advertise(to, request, &repository);
            }
            let gate = (kind == "held").then(|| root.join("open"));
            upload(to, request, &repository, gate.as_deref())
        }
        _ => to
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
    }
}

fn text_of(hex: &str) -> String {
    let digits = hex.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
    let bytes = digits.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect();
    String::from_utf8(bytes).unwrap_or_default()
}

fn redirect(to: &mut Tls, location: &str) -> io::Result<()> {
    write!(
        to,
        "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

fn head(to: &mut Tls, what: &str) -> io::Result<()> {
    write!(
        to,
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-{what}\r\n\
         Cache-Control: no-cache\r\nConnection: close\r\n\r\n"
    )
}

fn upload_pack(request: &Request, repository: &Path, more: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*", "upload-pack", "--stateless-rpc"])
        .args(more)
        .arg(repository);
    // Asked for a commit that no branch names, as after a shallow clone.
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").stdin(Stdio::piped()).stdout(Stdio::piped());
    if let Some(protocol) = &request.protocol {
        git.env("GIT_PROTOCOL", protocol);
    }
    git
}

fn advertise(to: &mut Tls, request: &Request, repository: &Path) -> io::Result<()> {
    let mut git = upload_pack(request, repository, &["--http-backend-info-refs"]);
    let refs = git.stdin(Stdio::null()).output()?.stdout;
    head(to, "advertisement")?;
    to.write_all(b"001e# service=git-upload-pack\n0000")?;
    to.write_all(&refs)
}

fn upload(
    to: &mut Tls,
    request: &Request,
    repository: &Path,
    gate: Option<&Path>,
) -> io::Result<()> {
    let mut git = upload_pack(request, repository, &[]).spawn()?;
    if let Some(mut input) = git.stdin.take() {
        input.write_all(&request.body)?;
    }
    let mut pack = Vec::new();
    if let Some(mut output) = git.stdout.take() {
        output.read_to_end(&mut pack)?;
    }
    git.wait()?;
    head(to, "result")?;
    // What lists the branches is short and never held.
    let half = if pack.len() > 2048 { pack.len() / 2 } else { pack.len() };
    let (first, second) = pack.split_at(half);
    to.write_all(first)?;
    to.flush()?;
    if let (Some(gate), false) = (gate, second.is_empty()) {
        while fs::symlink_metadata(gate).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    to.write_all(second)
}

/// One branch, in the oldest protocol, whose commit nobody has.
fn advertise_nothing_real(to: &mut Tls) -> io::Result<()> {
    head(to, "advertisement")?;
    let reference = format!("{} refs/heads/main\0side-band-64k\n", "1".repeat(40));
    write!(to, "001e# service=git-upload-pack\n0000{:04x}{reference}0000", reference.len() + 4)
}

/// A pack of a million objects of 64 KiB: more than anybody waits for.
fn endless(to: &mut Tls) -> io::Result<()> {
    head(to, "result")?;
    to.write_all(b"0008NAK\n")?;
    let mut pack = b"PACK\0\0\0\x02\0\x0f\x42\x40".to_vec();
    let content: Vec<u8> =
        (0..16_384_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    // A blob: its type and size in groups of seven bits, then its content packed.
    let size = content.len();
    let mut object = vec![0x80 | (3 << 4) | u8::try_from(size & 15).unwrap_or(0)];
    let mut rest = size >> 4;
    while rest >= 128 {
        object.push(0x80 | u8::try_from(rest & 127).unwrap_or(0));
        rest >>= 7;
    }
    object.push(u8::try_from(rest).unwrap_or(0));
    let mut packer = flate2::write::ZlibEncoder::new(object, flate2::Compression::none());
    packer.write_all(&content)?;
    let object = packer.finish()?;
    loop {
        for chunk in pack.chunks(60_000) {
            write!(to, "{:04x}", chunk.len() + 5)?;
            to.write_all(&[1])?;
            to.write_all(chunk)?;
        }
        pack.clone_from(&object);
    }
}
