//! Failures with an exit code of their own.

/// A failure with an exit code of its own.
///
/// 3: the machine lacks something. 4: something is out of reach.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) code: u8,
    message: String,
}

impl Stop {
    /// The machine lacks something only its owner can install.
    pub(crate) fn prerequisite(message: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Self { code: 3, message: message.into() })
    }

    /// A download or installation did not go through.
    pub(crate) fn unreachable(message: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Self { code: 4, message: message.into() })
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Stop {}
