//! Options that several commands have.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Listing {
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Instance id, project name, or unique beginning of an id.
    pub(crate) instance: String,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}
