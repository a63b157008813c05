//! The side of the hook: asks the service and waits for a decision.

use crate::asked::{Answered, Question};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use svc_agent::environment::Variables;
use svc_domain::approval_hook::{INTERACTIVE, LAUNCH, PATIENCE, SOCKET, output};
use svc_domain::hosted::prompt::Answer;
use svc_domain::session_rules::SessionRules;
use svc_process::sockets;
use uuid::Uuid;

/// How long a service that restarts is waited for.
const RESTART: Duration = Duration::from_secs(30);
/// Between two tries of that.
const PAUSE: Duration = Duration::from_millis(100);
/// A service that took the question for so long was no service that fails at once.
const SOUND: Duration = Duration::from_secs(2);
/// How long a service may take to read the question.
const READ: Duration = Duration::from_secs(10);

/// What the agent tells the hook on standard input (agents 2.1.31 to 2.1.258).
#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    session_id: String,
    #[serde(default)]
    cwd: PathBuf,
    transcript_path: Option<PathBuf>,
    tool_use_id: Option<String>,
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
    #[serde(default)]
    permission_suggestions: Value,
}

/// How a connection ended.
enum End {
    /// With an answer, and the connection to say that it arrived.
    Answered(Answer, UnixStream),
    /// The service does not ask anybody, nobody answered in time, or the agent is gone.
    Over,
    /// The service went away.
    Lost,
}

/// Asks the service what the agent asks, and prints what it decided. Blocks.
///
/// `named` is the socket in the settings; a variable of this service's own sessions comes before
/// it. Nothing is printed where the agent shall ask by itself: the service is away, nobody answered
/// in time, or what the agent told is not understood.
pub fn ask_service(
    told: &[u8],
    env: &Variables,
    named: Option<PathBuf>,
    print: impl FnOnce(&str) -> io::Result<()>,
) {
    let socket = match env.get(OsStr::new(SOCKET)) {
        Some(own) if own.is_empty() => None,
        Some(own) => Some(PathBuf::from(own)),
        None => named,
    };
    let told: Option<Told> = serde_json::from_slice(told).ok();
    let offered = told.as_ref().map(|told| SessionRules::offered(&told.permission_suggestions));
    let question = told.and_then(|told| question(told, env));
    if let (Some(socket), Some(question)) = (socket, question)
        && let Some((answer, mut stream)) =
            answer_of(&socket, &question, &offered.unwrap_or_default())
        && print(&output(&answer).to_string()).is_ok()
    {
        // The service notes it; a service that is gone learns it never.
        let _ = stream.write_all(b"ok\n");
    }
}

/// The question as it goes to the service; `None` where only the agent can ask it.
fn question(told: Told, env: &Variables) -> Option<String> {
    if INTERACTIVE.contains(&told.tool_name.as_str()) {
        return None;
    }
    let question = Question {
        request_id: Uuid::new_v4().to_string(),
        launch: env.get(OsStr::new(LAUNCH)).and_then(|id| Some(id.to_str()?.to_owned())),
        session_id: told.session_id,
        cwd: told.cwd,
        transcript: told.transcript_path,
        call: told.tool_use_id,
        tool_name: told.tool_name,
        tool_input: told.tool_input,
        suggestions: told.permission_suggestions,
    };
    let mut line = serde_json::to_string(&question).ok()?;
    line.push('\n');
    Some(line)
}

fn answer_of(
    socket: &Path,
    question: &str,
    offered: &SessionRules,
) -> Option<(Answer, UnixStream)> {
    let deadline = Instant::now() + Duration::from_secs(PATIENCE);
    let mut lost_at: Option<Instant> = None;
    let mut stream = UnixStream::connect(socket).ok()?;
    loop {
        let begun = Instant::now();
        match ask(stream, question, offered, deadline) {
            End::Answered(answer, stream) => return Some((answer, stream)),
            End::Over => return None,
            End::Lost => {
                if begun.elapsed() > SOUND {
                    lost_at = None;
                }
                let since = *lost_at.get_or_insert_with(Instant::now);
                stream = again(socket, (since + RESTART).min(deadline))?;
            }
        }
    }
}

/// Waits for a service that restarts.
fn again(socket: &Path, until: Instant) -> Option<UnixStream> {
    while Instant::now() < until {
        std::thread::sleep(PAUSE);
        if is_agent_gone() {
            return None;
        }
        if let Ok(stream) = UnixStream::connect(socket) {
            return Some(stream);
        }
    }
    None
}

fn ask(mut stream: UnixStream, question: &str, offered: &SessionRules, deadline: Instant) -> End {
    let own = rustix::process::geteuid().as_raw();
    if !sockets::peer_uid(&stream).is_ok_and(|user| user == own) {
        return End::Over;
    }
    if stream.set_write_timeout(Some(READ)).is_err() {
        return End::Over;
    }
    if let Err(error) = stream.write_all(question.as_bytes()) {
        let is_slow = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        return if is_slow { End::Over } else { End::Lost };
    }
    if !is_readable(&stream, deadline) {
        return End::Over;
    }
    // What the service writes, it writes at once.
    if stream.set_read_timeout(Some(READ)).is_err() {
        return End::Over;
    }
    let mut answer = String::new();
    match BufReader::new(&stream).read_line(&mut answer) {
        Ok(0) => return End::Lost,
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return End::Lost,
        Ok(_) | Err(_) => {}
    }
    match serde_json::from_str::<Answered>(&answer) {
        Ok(Answered { decision, message, for_session }) => match decision.as_str() {
            "allow" if for_session => {
                End::Answered(Answer::AllowForSession(offered.clone()), stream)
            }
            "allow" => End::Answered(Answer::Allow, stream),
            "deny" => End::Answered(Answer::Deny(message), stream),
            _ => End::Over,
        },
        Err(_) => End::Over,
    }
}

/// Waits for an answer. `false` when it is too late, or the agent is gone.
fn is_readable(stream: &UnixStream, deadline: Instant) -> bool {
    let output = io::stdout();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(left) = Timespec::try_from(left) else { return false };
        // Nobody reads the output of a hook whose agent has ended: its end tells.
        let mut both =
            [PollFd::new(stream, PollFlags::IN), PollFd::new(&output, PollFlags::empty())];
        match poll(&mut both, Some(&left)) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) | Ok(0) => return false,
            Ok(_) => {
                let [stream, output] = both.map(|one| one.revents());
                return !stream.is_empty() && output.is_empty();
            }
        }
    }
}

/// Whether nobody reads the output of this hook any more.
fn is_agent_gone() -> bool {
    let output = io::stdout();
    let mut one = [PollFd::new(&output, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut one, Some(&now)).is_ok_and(|count| count > 0)
}
