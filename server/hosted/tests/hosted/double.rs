//! A daemon that follows a script: what it answers is decided by the test.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixListener;

/// What the double does with a request.
pub(crate) enum Act {
    /// Sends these lines as they are.
    Send(Vec<String>),
    /// Says nothing.
    Hang,
    /// Closes the connection.
    Drop,
}

/// Answers a request as a well-behaved daemon would.
pub(crate) fn reply(request: &Value, result: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string()
}

/// Listens below `dir`.
/// `script` decides about every request but the first question.
pub(crate) fn listen(
    dir: &Path,
    script: impl Fn(&Value) -> Act + Send + Sync + 'static,
) -> PathBuf {
    let socket = dir.join("double.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (read, mut write) = stream.into_split();
            let mut lines = BufReader::new(read).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let request: Value = serde_json::from_str(&line).unwrap();
                let act = match request["method"].as_str() {
                    Some("server.capabilities") => {
                        let known = json!({ "version": "9.9.9", "protocol": 1, "new": [1] });
                        Act::Send(vec![reply(&request, known)])
                    }
                    _ => script(&request),
                };
                match act {
                    Act::Send(lines) => {
                        for line in lines {
                            if write.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                                break;
                            }
                        }
                    }
                    Act::Hang => {}
                    Act::Drop => break,
                }
            }
        }
    });
    socket
}
