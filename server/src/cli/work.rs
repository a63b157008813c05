//! How a command comes to the use-cases, and what a signal does to it.

use crate::cli::call::{Call, block_on};
use crate::cli::config::{ShownWarnings, loaded};
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::compose::{self, ComposeError, Surroundings};
use crate::logging::{self, Shape};
use crate::signals::{Asked, Signals};
use svc_app::App;
use svc_config::LogLevel;

/// Runs a command that only looks.
pub(crate) fn look<T>(
    call: &Call,
    work: impl AsyncFnOnce(&App) -> Result<T, End>,
) -> Result<T, End> {
    run(call, Kind::Look, work)
}

/// Runs a command that changes something.
pub(crate) fn act<T>(
    call: &Call,
    work: impl AsyncFnOnce(&App) -> Result<T, End>,
) -> Result<T, End> {
    run(call, Kind::Act, work)
}

/// Runs a command that ends something.
///
/// It has room for that on a full disk too (H91).
pub(crate) fn end<T>(
    call: &Call,
    work: impl AsyncFnOnce(&App) -> Result<T, End>,
) -> Result<T, End> {
    run(call, Kind::End, work)
}

/// What a command does to what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Look,
    Act,
    End,
}

/// The use-cases for one command of this kind.
pub(crate) async fn opened(around: &Surroundings, kind: Kind) -> Result<App, End> {
    if kind == Kind::End {
        // Without a service, opening the database needs room already.
        svc_app::make_room(&around.config.state_dir).await;
    }
    let composed = match kind {
        Kind::Look => compose::reader(around).await,
        Kind::Act | Kind::End => compose::command(around).await,
    };
    let app = composed.map_err(Failure::from)?.app;
    if kind != Kind::Look {
        // Otherwise the first bridge that a command starts would bar the way for ever.
        app.legacy().run().await?;
    }
    if kind != Kind::Look && !compose::is_served(around).await {
        app.record_ends().await?;
    }
    Ok(app)
}

fn run<T>(
    call: &Call,
    kind: Kind,
    work: impl AsyncFnOnce(&App) -> Result<T, End>,
) -> Result<T, End> {
    let loaded = loaded(call, ShownWarnings::Deprecated)?;
    logging::start(Shape::Remark, LogLevel::Warning);
    crate::safety::report_panics();
    let around = call.surroundings(&loaded);
    block_on(async {
        let mut signals = Signals::of_command().map_err(End::of_machine)?;
        let app = opened(&around, kind).await?;
        let asked = tokio::select! {
            done = work(&app) => {
                app.close().await;
                return done;
            }
            asked = signals.asked() => asked,
        };
        // What has begun is brought to a point that others can go on from; who asks twice is not
        // made to wait for that.
        tokio::select! {
            () = app.close() => {}
            _ = signals.asked() => {}
        }
        Err(End::Signal(match asked {
            Asked::Interrupt => Exit::Interrupted,
            Asked::Terminate => Exit::Terminated,
        }))
    })
}

impl From<ComposeError> for Failure {
    fn from(error: ComposeError) -> Self {
        Self::chain(error.code, &error)
    }
}
