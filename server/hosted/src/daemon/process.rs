//! One process: its pipes, its frames, its end.

use super::ring::Ring;
use crate::protocol::{CHUNK, RpcError, STDIN_QUEUE, StreamFrame, StreamName, code};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_domain::identity::ProcessIdentity;
use svc_shared::Timestamp;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, watch};
use tokio_util::task::TaskTracker;

/// How long a pipe is read on after the end of the process.
/// A grandchild can keep it open.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Messages of input that wait; their bytes are limited by [`STDIN_QUEUE`].
const STDIN_MESSAGES: usize = 1024;

/// What is started.
#[derive(Debug)]
pub(super) struct Order {
    pub id: String,
    pub command: PathBuf,
    pub args: Vec<String>,
    pub cwd: PathBuf,
    /// The complete environment; `None` passes on ours.
    pub env: Option<BTreeMap<String, String>>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub at: Timestamp,
}

enum Input {
    Data(Vec<u8>),
    Eof,
}

/// A process of this daemon.
pub(super) struct Process {
    pub id: String,
    pub identity: ProcessIdentity,
    pub cwd: PathBuf,
    pub started_at: Timestamp,
    ring: Mutex<Ring>,
    /// The newest frame; tells whoever waits for one.
    news: watch::Sender<u64>,
    end: watch::Sender<Option<End>>,
    input: mpsc::Sender<Input>,
    queued: AtomicUsize,
}

impl Process {
    /// Starts a process with its pipes in our hands, in a group of its own.
    pub(super) fn start(
        order: Order,
        identify: impl Fn(u32) -> Option<ProcessIdentity>,
        tasks: &TaskTracker,
    ) -> Result<Arc<Self>, RpcError> {
        let mut command = Command::new(&order.command);
        command.args(&order.args).current_dir(&order.cwd).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(env) = &order.env {
            command.env_clear().envs(env);
        }
        let failed = |why: String| RpcError::new(code::EXEC_FAILED, why);
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(failed("the pipes are missing".to_owned()));
        };
        // It is our child and not collected yet, so the pid is still its own.
        let Some(identity) = child.id().and_then(identify) else {
            let _ = child.start_kill();
            return Err(failed("the process ended before it could be recorded".to_owned()));
        };
        let (input, inputs) = mpsc::channel(STDIN_MESSAGES);
        let process = Arc::new(Self {
            id: order.id,
            identity,
            cwd: order.cwd,
            started_at: super::time::now(),
            ring: Mutex::default(),
            news: watch::Sender::new(0),
            end: watch::Sender::new(None),
            input,
            queued: AtomicUsize::new(0),
        });
        tasks.spawn(write(Arc::clone(&process), stdin, inputs));
        let out = tasks.spawn(read(Arc::clone(&process), stdout, StreamName::Stdout));
        let err = tasks.spawn(read(Arc::clone(&process), stderr, StreamName::Stderr));
        tasks.spawn(Arc::clone(&process).collect(child, async move {
            let _ = tokio::join!(out, err);
        }));
        Ok(process)
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end, and for what the pipes still hold.
    async fn collect(self: Arc<Self>, mut child: Child, drained: impl Future<Output = ()>) {
        let status = child.wait().await;
        let _ = tokio::time::timeout(LAST_WORDS, drained).await;
        let (code, signal) = status.as_ref().map_or((None, None), ending);
        let end = End { code, signal, at: super::time::now() };
        self.append(StreamName::Exit, None, Some(end));
    }

    fn append(&self, stream: StreamName, data: Option<&[u8]>, end: Option<End>) {
        let mut ring = self.ring();
        if self.end.borrow().is_some() {
            // A grandchild goes on writing: the end stays the last frame.
            return;
        }
        let frame = StreamFrame {
            process_id: self.id.clone(),
            stream,
            seq: ring.next_seq(),
            data: data.map(|data| STANDARD.encode(data)),
            exit_code: end.and_then(|end| end.code),
            signal: end.and_then(|end| end.signal),
        };
        let mut line = serde_json::to_value(&frame).unwrap_or_default();
        if let Some(members) = line.as_object_mut() {
            members.insert("type".to_owned(), "stream".into());
        }
        let mut line = line.to_string();
        line.push('\n');
        ring.push(Bytes::from(line));
        if let Some(end) = end {
            self.end.send_replace(Some(end));
        }
        let last = ring.last();
        drop(ring);
        self.news.send_replace(last);
    }

    /// First and last frame that are kept.
    pub(super) fn range(&self) -> (u64, u64) {
        let ring = self.ring();
        (ring.first(), ring.last())
    }

    /// Some frames after `seq`, with the number of the last of them.
    pub(super) fn after(&self, seq: u64, most: usize) -> Option<(u64, Vec<Bytes>)> {
        self.ring().after(seq, most)
    }

    /// Tells of new frames.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Tells of the end.
    pub(super) fn ended(&self) -> watch::Receiver<Option<End>> {
        self.end.subscribe()
    }

    /// How it ended; `None` while it runs.
    pub(super) fn end(&self) -> Option<End> {
        *self.end.borrow()
    }

    /// Queues input; all of it or nothing.
    pub(super) fn input(&self, data: Vec<u8>, eof: bool) -> Result<usize, RpcError> {
        if self.end().is_some() {
            return Err(RpcError::new(code::INVALID_PARAMS, "Process not running"));
        }
        let full = || RpcError::new(code::STDIN_FULL, "too much input waits for the process");
        let size = data.len();
        let before = self.queued.fetch_add(size, Ordering::AcqRel);
        if (before > 0 && before + size > STDIN_QUEUE) || self.input.capacity() < 2 {
            self.queued.fetch_sub(size, Ordering::AcqRel);
            return Err(full());
        }
        self.input.try_send(Input::Data(data)).map_err(|_| full())?;
        if eof {
            self.input.try_send(Input::Eof).map_err(|_| full())?;
        }
        Ok(size)
    }
}

/// Code and signal of an end.
fn ending(status: &ExitStatus) -> (Option<i32>, Option<i32>) {
    use std::os::unix::process::ExitStatusExt as _;
    (status.code(), status.signal())
}

async fn write(process: Arc<Process>, mut stdin: ChildStdin, mut inputs: mpsc::Receiver<Input>) {
    while let Some(Input::Data(data)) = inputs.recv().await {
        let written = async {
            stdin.write_all(&data).await?;
            stdin.flush().await
        }
        .await;
        process.queued.fetch_sub(data.len(), Ordering::AcqRel);
        if written.is_err() {
            break;
        }
    }
    // Dropping the pipe is the end of the input.
}

async fn read(process: Arc<Process>, mut pipe: impl AsyncRead + Unpin, stream: StreamName) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
        process.append(stream, buffer.get(..length), None);
    }
}
