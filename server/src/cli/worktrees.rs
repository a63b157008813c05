//! `svc worktrees`: the git worktrees of sessions, and the removal of one.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::output::{Cell, Tone};
use crate::cli::work::{act, look};
use clap::{Args, Subcommand};
use serde::Serialize;
use svc_shared::internal::changes::{RemoveWorktree, Worktree};

#[derive(Debug, Args)]
pub(crate) struct Worktrees {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
    /// Only those of this project.
    pub(crate) project: Option<String>,
    /// Print one JSON document.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// List them; the same as no word.
    List {
        /// Only those of this project.
        project: Option<String>,
    },
    /// Remove one that nothing runs in.
    Remove {
        /// Name of the project.
        project: String,
        /// Name of the worktree, from the list.
        worktree: String,
        /// Remove it although work is lost with it.
        #[arg(long)]
        force: bool,
    },
}

/// One worktree with its project.
#[derive(Debug, Serialize)]
struct Listed {
    project: String,
    #[serde(flatten)]
    worktree: Worktree,
}

/// Lists them, or removes one.
pub(crate) fn worktrees(call: &Call, options: &Worktrees) -> Result<Exit, End> {
    match &options.action {
        None => list(call, options.project.as_deref(), options.json),
        Some(Action::List { project }) => list(call, project.as_deref(), options.json),
        Some(Action::Remove { project, worktree, force }) => {
            let request = RemoveWorktree { confirm: force.then(|| worktree.clone()), loses: None };
            let removed = act(call, async |app| {
                Ok(app.worktrees().remove(project, worktree, request).await?)
            })?;
            if options.json {
                call.output.json(&removed)?;
                return Ok(Exit::Done);
            }
            call.output.line(&format!("removed worktree {}", removed.name))?;
            for lost in &removed.lost {
                call.output.note(&format!("lost: {lost}"));
            }
            if let Some(branch) = &removed.kept_branch {
                call.output.note(&format!("its branch {branch} is kept"));
            }
            if let Some(place) = &removed.files_left {
                call.output.note(&format!(
                    "warning: some of its files could not be deleted; delete {place} of the \
                     project by hand"
                ));
            }
            Ok(Exit::Done)
        }
    }
}

fn list(call: &Call, project: Option<&str>, json: bool) -> Result<Exit, End> {
    let is_every = project.is_none();
    let found = look(call, async |app| {
        let names = match project {
            Some(name) => vec![name.to_owned()],
            None => app.projects().names(),
        };
        let mut all = Vec::new();
        for project in names {
            let found = match app.worktrees().list(&project).await {
                Ok(found) => found,
                // One project that cannot be read hides no other.
                Err(error) if is_every => {
                    call.output.note(&format!("warning: {}", error.message));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if found.truncated {
                call.output.note(&format!("warning: {project} has more worktrees than listed"));
            }
            let own = found.worktrees.into_iter();
            all.extend(own.map(|worktree| Listed { project: project.clone(), worktree }));
        }
        Ok(all)
    })?;
    if json {
        call.output.json(&found)?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        call.output.note("No worktrees found.");
        return Ok(Exit::Done);
    }
    let rows: Vec<[Cell; 7]> = found.iter().map(row).collect();
    call.output
        .table(["PROJECT", "WORKTREE", "SESSION", "IN USE", "CHANGED", "AHEAD", "BRANCH"], &rows)?;
    Ok(Exit::Done)
}

fn row(one: &Listed) -> [Cell; 7] {
    let tree = &one.worktree;
    let count = |count: Option<u64>| match count {
        Some(0) => "-".into(),
        Some(count) => Cell::toned(&count.to_string(), Tone::Attention),
        None => "?".into(),
    };
    [
        one.project.as_str().into(),
        tree.name.as_str().into(),
        tree.instance_id.as_ref().map_or("-", |id| id.short()).into(),
        if tree.in_use { "yes" } else { "no" }.into(),
        count(tree.changed),
        count(tree.ahead),
        tree.problem.as_deref().or(tree.branch.as_deref()).unwrap_or("-").into(),
    ]
}
