//! `cargo xtask smoke`: starts the release binary once, as a user would get it.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::progress::Progress;
use crate::tally::Tally;
use crate::workspace::{self, Workspace};
use crate::{dist, run};

/// A release binary starts within a second. A busy machine may take longer.
const START_WITHIN: Duration = Duration::from_secs(60);
/// The demo ends its bridges before it ends.
const STOP_WITHIN: Duration = Duration::from_secs(30);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The variable that arms fail points. A program that never reads it has none.
pub(crate) const FAIL_POINTS: &str = "SVC_FAILPOINTS";

/// Builds and starts the release, and checks it.
///
/// It has no fail points, and `svc demo` answers with its health and its page.
pub(crate) fn run(progress: &Progress, workspace: &Workspace) -> Result<ExitCode> {
    dist::run(progress, workspace)?;
    run::build(progress, workspace)?;
    let mut tally = Tally::take(workspace);
    let mut all_passed = true;
    let checks = [
        ("fail points", without_fail_points(workspace)),
        ("smoke start", start(progress, workspace)),
    ];
    for (name, outcome) in checks {
        if let Err(error) = &outcome {
            progress.say(format_args!("{name} FAILED: {error:#}"));
        }
        tally.add(Tally::of(outcome.is_ok()));
        all_passed &= outcome.is_ok();
    }
    progress.print(&tally.closing_line());
    Ok(if all_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn without_fail_points(workspace: &Workspace) -> Result<()> {
    let program = workspace.target.join("release/svc");
    ensure!(
        !has_fail_points(&program)?,
        "{} reads `{FAIL_POINTS}`: it was built with the feature `failpoints`",
        program.display()
    );
    Ok(())
}

/// Whether a program holds the name of the variable that arms fail points.
pub(crate) fn has_fail_points(program: &Path) -> Result<bool> {
    let found = Command::new("grep").args(["-q", "-a", "-F", FAIL_POINTS]).arg(program).status();
    match found.context("cannot start grep")?.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => bail!("grep cannot read {}", program.display()),
    }
}

fn start(progress: &Progress, workspace: &Workspace) -> Result<()> {
    let program = workspace.target.join("release/svc");
    progress.say(format_args!("smoke start: {} demo", program.display()));
    let mut command = Command::new(&program);
    workspace::forget_cargo(&mut command);
    let mut service = command
        .arg("demo")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let outcome = ask(progress, &mut service);
    let stopped = stop(&mut service);
    outcome.and(stopped)
}

fn ask(progress: &Progress, service: &mut Child) -> Result<()> {
    let (lines, heard) = mpsc::channel();
    listen(service.stdout.take(), &lines);
    listen(service.stderr.take(), &lines);
    drop(lines);
    let address = address(&heard)?;
    let health = get(&address, "/healthz")?;
    ensure!(health.contains("\"demo\""), "/healthz does not say that this is a demo: {health}");
    let page = get(&address, "/")?;
    ensure!(page.contains("_bg.wasm"), "/ answers without the page: {page}");
    ensure!(!page.contains("__ROOT_PATH__"), "the page's addresses were not filled in");
    progress.say(format_args!("smoke start: health and page answered at {address}"));
    Ok(())
}

fn listen(stream: Option<impl Read + Send + 'static>, lines: &Sender<String>) {
    let Some(stream) = stream else { return };
    let lines = lines.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            // Read to the end even when nobody listens: a full pipe would stop the service.
            let _ = lines.send(line);
        }
    });
}

/// `127.0.0.1:PORT` from the first line that prints an address of the page.
fn address(heard: &Receiver<String>) -> Result<String> {
    let deadline = Instant::now() + START_WITHIN;
    let mut said = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(line) = heard.recv_timeout(left) else {
            bail!("the service printed no address; it said:\n{}", said.join("\n"));
        };
        if let Some(address) = address_in(&line) {
            return Ok(address.to_string());
        }
        said.push(line);
    }
}

/// `see http://127.0.0.1:8080/ui.` → `127.0.0.1:8080`.
///
/// Lines without a port name no listener.
fn address_in(line: &str) -> Option<&str> {
    let (_, after) = line.split_once("http://")?;
    let address = after.split(|c: char| !c.is_ascii_digit() && c != '.' && c != ':').next()?;
    let address = address.trim_end_matches(['.', ':']);
    address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|_| address)
}

/// The body of a 200; any other answer is an error.
fn get(address: &str, path: &str) -> Result<String> {
    let asked = || format!("asking http://{address}{path}");
    let mut stream = TcpStream::connect(address).with_context(asked)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN)).with_context(asked)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        .with_context(asked)?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).with_context(asked)?;
    let text = String::from_utf8_lossy(&bytes);
    ensure!(
        text.starts_with("HTTP/1.1 200"),
        "http://{address}{path} answered {}",
        text.lines().next().unwrap_or("nothing")
    );
    Ok(text.into_owned())
}

/// Sends SIGTERM to the service, and SIGKILL when it does not end.
fn stop(service: &mut Child) -> Result<()> {
    let pid = i32::try_from(service.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // Already gone is seen below, with its exit status.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let deadline = Instant::now() + STOP_WITHIN;
    while Instant::now() < deadline {
        if let Some(status) = service.try_wait().context("cannot wait for the service")? {
            ensure!(status.success(), "the service ended with {status}");
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    service.kill().context("cannot kill the service")?;
    service.wait().context("cannot wait for the service")?;
    bail!("the service did not end within {} s of being asked", STOP_WITHIN.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_whatever_sentence_names_it() {
        assert_eq!(
            address_in("DEMO at http://127.0.0.1:8421/ (Ctrl-C stops)"),
            Some("127.0.0.1:8421")
        );
        assert_eq!(address_in("listening on http://127.0.0.1:80"), Some("127.0.0.1:80"));
        assert_eq!(address_in("open http://127.0.0.1:8421."), Some("127.0.0.1:8421"));
        assert_eq!(address_in("docs: http://example.org/x"), None);
        assert_eq!(address_in("starting"), None);
    }
}
