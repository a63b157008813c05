//! Why systemd did not do what it was asked.

/// Why the manager did not do it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("systemd did not answer within {seconds} s")]
    Silent { seconds: u64 },
    #[error("its socket belongs to another process than systemd")]
    Impostor,
    #[error("systemd does not know this user")]
    Greeting,
    #[error("systemd cannot be talked to: {0}")]
    Io(#[from] std::io::Error),
    #[error("systemd's message is not understood: {0}")]
    Message(#[from] zvariant::Error),
    #[error("systemd's message is not understood")]
    Garbled,
    #[error("systemd refused: {text} ({name})")]
    Refused { name: String, text: String },
    #[error("systemd could not start the scope: {0}")]
    Job(String),
}
