//! `svc mcp`: sessions for an agent, over standard input and output.

use crate::cli::call::{Call, block_on};
use crate::cli::config::{ShownWarnings, loaded};
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::work::{Kind, opened};
use crate::compose::Surroundings;
use crate::logging::{self, Shape};
use crate::signals::Signals;
use svc_app::App;
use svc_config::LogLevel;
use svc_mcp::{OpenApp, Options, Purpose};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Serves until the client closes standard input.
pub(crate) fn mcp(call: &Call) -> Result<Exit, End> {
    let loaded = loaded(call, ShownWarnings::Deprecated)?;
    logging::start(Shape::Remark, LogLevel::Warning);
    crate::safety::report_panics();
    let around = call.surroundings(&loaded);
    let allow_writes = around.config.mcp.allow_writes;
    call.output.banner(&banner(allow_writes));
    let options = Options { open: Box::new(PerCall(around)), version: VERSION, allow_writes };
    block_on(async {
        let mut signals = Signals::of_child().map_err(End::of_machine)?;
        tokio::select! {
            () = svc_mcp::serve(options, tokio::io::stdin(), tokio::io::stdout()) => {}
            _ = signals.asked() => {}
        }
        Ok(Exit::Done)
    })
}

fn banner(allow_writes: bool) -> String {
    let mode = match allow_writes {
        true => "read+write (mcp.allow_writes is true)",
        false => "read-only (mcp.allow_writes is false)",
    };
    format!("svc mcp {VERSION} | {mode} | stdio")
}

/// Opens the use-cases anew for each call, as a command does.
struct PerCall(Surroundings);

#[async_trait::async_trait]
impl OpenApp for PerCall {
    async fn open(&self, purpose: Purpose) -> Result<App, String> {
        let kind = match purpose {
            Purpose::Look => Kind::Look,
            Purpose::Act => Kind::Act,
            Purpose::End => Kind::End,
        };
        match opened(&self.0, kind).await {
            Ok(app) => Ok(app),
            Err(End::Failure(Failure { lines, .. })) => Err(lines.join("; ")),
            Err(End::Unread | End::Signal(_)) => Err("interrupted".to_owned()),
        }
    }
}
