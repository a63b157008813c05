//! Whether the time of a refusal tells why (hardening row H20):
//! `cargo build --release -p svc-server && cargo run --release -p svc-tests --example
//! sign_in_timing [SAMPLES]`.
//!
//! Starts the service of the same build twice, with and without a password, and asks in turn: a
//! wrong password, an empty one, a password where none is configured; a token that is wrong in its
//! first character, and one that is wrong in its last. Prints the medians, their difference, and
//! Welch's t between the classes. Passwords are asked from ever new loopback addresses, so that the
//! throttle lets them through; a tenth of SAMPLES (2,000) of them, because each costs a full hash.

#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use anyhow::{Context as _, Result, ensure};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// A running service, ended with this value.
struct Service {
    child: Child,
    port: u16,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill(); // gone already: fine
        let _ = self.child.wait();
    }
}

/// One kind of refusal.
struct Class {
    name: &'static str,
    port: u16,
    head: String,
    body: &'static str,
    micros: Vec<f64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let samples = std::env::args().nth(1).map_or(Ok(2000), |given| given.parse::<usize>())?;
    let program = std::env::current_exe()?;
    let program = program.ancestors().nth(2).context("a target directory")?.join("svc");
    let root = tempfile_dir()?;
    let hash = answer(&program, &["hash-password", "--stdin"], "correct horse\n")?;
    let made: serde_json::Value =
        serde_json::from_str(&answer(&program, &["hash-token", "--json"], "")?)?;
    let text = |name: &str| made.get(name).and_then(serde_json::Value::as_str).context("a text");
    let (token, token_hash) = (text("token")?, text("hash")?);
    let protected = serve(&program, &root.join("a"), Some(hash.trim()), token_hash).await?;
    let open = serve(&program, &root.join("b"), None, token_hash).await?;

    let login = |port: u16, body: &str| {
        format!(
            "POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1:{port}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        )
    };
    let bearer = |token: &str| {
        format!(
            "GET /api/v1/projects HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\
             Authorization: Bearer {token}\r\n\r\n"
        )
    };
    let class = |name, port, head, body| Class { name, port, head, body, micros: Vec::new() };
    let (wrong, empty) = ("password=wrong+horse", "password=");
    let mut passwords = [
        class("a wrong password", protected.port, login(protected.port, wrong), wrong),
        class("an empty password", protected.port, login(protected.port, empty), empty),
        class("no password configured", open.port, login(open.port, wrong), wrong),
    ];
    let swapped = |at: usize| -> String {
        let other = |c: char| if c == 'A' { 'B' } else { 'A' };
        token.chars().enumerate().map(|(i, c)| if i == at { other(c) } else { c }).collect()
    };
    let mut tokens = [
        class("a token wrong at its begin", protected.port, bearer(&swapped(9)), ""),
        class("a token wrong at its end", protected.port, bearer(&swapped(token.len() - 1)), ""),
    ];
    measure(&mut passwords, samples / 10).await?;
    measure(&mut tokens, samples).await?;
    drop((protected, open));
    std::fs::remove_dir_all(root)?;
    report("passwords", &mut passwords);
    report("tokens", &mut tokens);
    Ok(())
}

fn tempfile_dir() -> Result<PathBuf> {
    let dir = std::env::temp_dir().join(format!("svc-timing-{}", std::process::id()));
    std::fs::create_dir(&dir)?;
    Ok(dir)
}

fn answer(program: &Path, args: &[&str], input: &str) -> Result<String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("{} runs", program.display()))?;
    child.stdin.take().context("a pipe")?.write_all(input.as_bytes())?;
    let done = child.wait_with_output()?;
    ensure!(done.status.success(), "{args:?} failed");
    Ok(String::from_utf8(done.stdout)?)
}

async fn serve(program: &Path, dir: &Path, hash: Option<&str>, token: &str) -> Result<Service> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    std::fs::create_dir_all(dir.join("projects"))?;
    let config = serde_json::json!({
        "projects_root": dir.join("projects"), "state_dir": dir.join("state"), "port": port,
        "auth": {
            "enabled": true, "password_required": hash.is_some(), "password_hash": hash,
            "api_token_hash": token,
        },
    });
    let file = dir.join("svc.yml");
    std::fs::write(&file, config.to_string())?; // JSON is YAML
    let mut command = Command::new(program);
    command.args(["run", "-c"]).arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
    let service = Service { child: command.spawn()?, port };
    for _ in 0..200 {
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok() {
            return Ok(service);
        }
        tokio::time::sleep(Duration::from_millis(50)).await; // its readiness is told to systemd only
    }
    anyhow::bail!("the service did not start: {}", file.display())
}

/// Measures all classes in turn, so that other work affects all alike.
async fn measure(classes: &mut [Class], rounds: usize) -> Result<()> {
    for round in 0..rounds + 5 {
        for (number, class) in classes.iter_mut().enumerate() {
            let place = u32::try_from(round * 8 + number)?;
            let from = Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 1, 0, 1)) + place);
            let socket = TcpSocket::new_v4()?;
            socket.bind(SocketAddr::from((from, 0)))?;
            let to = SocketAddr::from((Ipv4Addr::LOCALHOST, class.port));
            let mut stream = socket.connect(to).await?;
            let request = [class.head.as_bytes(), class.body.as_bytes()].concat();
            let begin = Instant::now();
            stream.write_all(&request).await?;
            let mut reply = Vec::new();
            stream.read_to_end(&mut reply).await?;
            let took = begin.elapsed();
            let status = String::from_utf8_lossy(reply.get(9..12).unwrap_or_default()).into_owned();
            ensure!(status == "401", "{} answered {status}", class.name);
            // The first ones warm everything up.
            if round >= 5 {
                class.micros.push(took.as_secs_f64() * 1e6);
            }
        }
    }
    Ok(())
}

fn report(title: &str, classes: &mut [Class]) {
    println!("{title}: {} samples each", classes.first().map_or(0, |class| class.micros.len()));
    for class in &mut *classes {
        class.micros.sort_by(f64::total_cmp);
        println!("  {:28} median {:10.1} µs", class.name, median(&class.micros));
    }
    let mut rest = &*classes;
    while let [one, others @ ..] = rest {
        for other in others {
            let (a, b) = (median(&one.micros), median(&other.micros));
            println!(
                "  {} / {}: medians differ by {:.2} %, Welch's t {:.2}",
                one.name,
                other.name,
                (a - b).abs() / a * 100.0,
                welch(&one.micros, &other.micros).abs()
            );
        }
        rest = others;
    }
}

fn median(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// Welch's t of two series without their slowest tenth, the machine's noise.
fn welch(a: &[f64], b: &[f64]) -> f64 {
    let facts = |all: &[f64]| {
        let kept = all.get(..all.len() * 9 / 10).unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "a few thousand samples")]
        let n = kept.len() as f64;
        let mean = kept.iter().sum::<f64>() / n;
        let variance = kept.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, variance / n)
    };
    let ((mean_a, spread_a), (mean_b, spread_b)) = (facts(a), facts(b));
    (mean_a - mean_b) / (spread_a + spread_b).sqrt()
}
