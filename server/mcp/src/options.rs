//! What a server is made of: who opens the use-cases, and what is offered.

use async_trait::async_trait;
use svc_app::App;

/// What the use-cases are opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Only to look: nothing is written.
    Look,
    /// To change something.
    Act,
    /// To end something, which has to work on a full disk too (H91).
    End,
}

/// Opens the use-cases for one call, as a command does.
///
/// Each call sees projects and records as they are at that moment, whether a service runs or not.
#[async_trait]
pub trait OpenApp: Send + Sync + 'static {
    /// The use-cases, to be closed by the caller.
    ///
    /// # Errors
    /// They cannot be opened; the text is for the caller.
    async fn open(&self, purpose: Purpose) -> Result<App, String>;
}

/// What is served.
pub struct Options {
    /// Opens the use-cases.
    pub open: Box<dyn OpenApp>,
    /// Version of the program.
    pub version: &'static str,
    /// Offers the tools that write.
    pub allow_writes: bool,
}
