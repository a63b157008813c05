//! `svc create` and `svc clone`: make a project.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::work::act;
use clap::Args;
use svc_app::{App, is_clone_over};
use svc_shared::internal::clones::{CloneJob, CloneRequest, CloneState, CreateProject};

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Name of the project: one directory name.
    pub(crate) name: String,
    /// Make it a git repository.
    #[arg(long)]
    pub(crate) git_init: bool,
    /// Print one JSON document: the project.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CloneProject {
    /// Address of the repository: https://… or ssh://…, without a password.
    pub(crate) url: String,
    /// Name of the project; without it the last part of the address.
    pub(crate) name: Option<String>,
    /// Only the newest commit.
    #[arg(long)]
    pub(crate) shallow: bool,
    /// Print one JSON document: the clone.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `svc create`.
pub(crate) fn create(call: &Call, wanted: &Create) -> Result<Exit, End> {
    let request = CreateProject { name: wanted.name.clone(), git_init: wanted.git_init };
    let project = act(call, async |app| Ok(app.clones().create(request.clone()).await?))?;
    if wanted.json {
        call.output.json(&project)?;
    } else {
        call.output.line(&format!("created {} ({})", project.name, project.path))?;
        call.output.note("its directory is not trusted yet; `svc start NAME --trust` trusts it");
    }
    Ok(Exit::Done)
}

/// `svc clone`.
pub(crate) fn clone(call: &Call, wanted: &CloneProject) -> Result<Exit, End> {
    let name = match &wanted.name {
        Some(name) => name.clone(),
        None => svc_app::suggested_name(&wanted.url).ok_or_else(|| {
            let line = "the address gives no name for the project; add one: `svc clone URL NAME`";
            End::from(Failure::new(Exit::Refused, "invalid_value", line))
        })?,
    };
    let request = CloneRequest { name, url: wanted.url.clone(), shallow: wanted.shallow };
    let job = act(call, async |app| follow(call, app, request.clone()).await)?;
    if !job.state.is(&CloneState::Done) {
        let reason = job.error.as_deref().unwrap_or("it failed without a reason");
        let line = format!("{} was not cloned: {reason}", job.name);
        return Err(Failure::new(Exit::Failed, "clone_failed", line).into());
    }
    if wanted.json {
        call.output.json(&job)?;
    } else {
        call.output.line(&format!("cloned {}", job.name))?;
        call.output.note(
            "nothing in it has run, and its directory is not trusted; look at what it contains, then \
             `svc start NAME --trust`",
        );
    }
    Ok(Exit::Done)
}

/// Shows each phase once: a person reads along, and a log stays short.
async fn follow(call: &Call, app: &App, request: CloneRequest) -> Result<CloneJob, End> {
    let accepted = app.clones().begin_clone(request).await?;
    let mut records = app.clones().follow(&accepted.job_id)?;
    let mut phase = String::new();
    loop {
        let record = records.borrow_and_update().clone();
        if is_clone_over(&record) {
            return Ok(record);
        }
        if record.phase != phase {
            phase.clone_from(&record.phase);
            call.output.note(&format!("{} {phase}", record.name));
        }
        if records.changed().await.is_err() {
            return Ok(records.borrow().clone());
        }
    }
}
