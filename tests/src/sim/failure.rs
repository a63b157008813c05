//! Why a start ends at once.

/// Exit code when the simulator itself refuses, and not the agent (`EX_SOFTWARE`).
const REFUSED: u8 = 70;

/// Why a start ends at once: the text for standard error and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) text: String,
}

impl Failure {
    /// The double refuses: wrong home, wrong knob, an unreadable scenario.
    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self { code: REFUSED, text: format!("svc-agent-sim: {}", text.into()) }
    }

    /// The agent itself would end this way, with exactly this text.
    pub(crate) fn agent(text: impl Into<String>) -> Self {
        Self { code: 1, text: text.into() }
    }
}
