//! `svc changes`: what changed where a session works.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::output::{Cell, Tone};
use crate::cli::work::look;
use clap::Args;
use svc_app::{Checkout, FilePart};
use svc_shared::internal::changes::{
    BaseKind, ChangeKind, ChangedFile, ChangedPart, Changes as Found, FileChange, LineSign,
};

#[derive(Debug, Args)]
pub(crate) struct Changes {
    /// Instance id, project name, or unique beginning of an id.
    pub(crate) instance: String,
    /// Path of a changed file, as the list shows it.
    pub(crate) file: Option<String>,
    /// Unchanged lines around each change.
    #[arg(long, default_value_t = 3, requires = "file",
        value_parser = clap::value_parser!(u8).range(0..=50))]
    pub(crate) context: u8,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists the files, or prints the changes of one.
pub(crate) fn changes(call: &Call, options: &Changes) -> Result<Exit, End> {
    let checkout = Checkout::Instance(options.instance.clone());
    match &options.file {
        None => {
            let found = look(call, async |app| Ok(app.changes().list(&checkout).await?))?;
            if options.json {
                call.output.json(&found)?;
            } else {
                list(call, &found)?;
            }
        }
        Some(path) => {
            let context = options.context;
            let found = look(call, async |app| {
                let mut part = FilePart { path: path.clone(), context, from: 0 };
                let mut all = app.changes().file(&checkout, &part).await?;
                // One answer is bounded; a command shows the whole file.
                while let Some(next) = all.next_from.take() {
                    part.from = usize::try_from(next).unwrap_or(usize::MAX);
                    let more = app.changes().file(&checkout, &part).await?;
                    all.hunks.extend(more.hunks);
                    all.next_from = more.next_from;
                }
                Ok(all)
            })?;
            if options.json {
                call.output.json(&found)?;
            } else {
                file(call, &found)?;
            }
        }
    }
    Ok(Exit::Done)
}

fn list(call: &Call, found: &Found) -> Result<(), End> {
    let base = match found.base.kind.known() {
        Some(BaseKind::MergeBase) => format!("the merge base with {}", found.base.reference),
        Some(BaseKind::Head) if found.base.commit.is_empty() => "nothing: no commit yet".into(),
        Some(BaseKind::Head) | None => format!("the last commit ({})", found.base.reference),
    };
    if found.files.is_empty() {
        call.output.note(&format!("No changes against {base}."));
        return Ok(());
    }
    let rows: Vec<[Cell; 4]> = found.files.iter().map(row).collect();
    call.output.table(["STATUS", "ADDED", "DELETED", "PATH"], &rows)?;
    let many = if found.truncated { "more than " } else { "" };
    call.output.note(&format!("{many}{} files, against {base}", found.files.len()));
    Ok(())
}

fn row(file: &ChangedFile) -> [Cell; 4] {
    let count = |count: Option<u64>, sign: &str, tone| match count {
        Some(count) => Cell::toned(&format!("{sign}{count}"), tone),
        None if file.kind.is(&ChangeKind::Text) => "-".into(),
        None => file.kind.to_string().into(),
    };
    let name = match &file.old_path {
        Some(old) => format!("{old} -> {}", file.path),
        None => file.path.clone(),
    };
    [
        file.status.to_string().into(),
        count(file.additions, "+", Tone::Good),
        count(file.deletions, "-", Tone::Bad),
        name.into(),
    ]
}

fn file(call: &Call, found: &FileChange) -> Result<(), End> {
    match found.file.kind.known() {
        Some(ChangeKind::Binary) => call.output.note("a binary file: it has no lines to show"),
        Some(ChangeKind::Submodule) => {
            call.output.note("another repository: look at its changes there");
        }
        Some(ChangeKind::Text | ChangeKind::Symlink) | None => {}
    }
    for hunk in &found.hunks {
        part(call, hunk)?;
    }
    if found.masked > 0 {
        call.output.note(&format!("{} lines hold secrets, which are masked", found.masked));
    }
    if found.too_large {
        call.output.note("warning: the file is too large, and its changes are not complete");
    }
    Ok(())
}

fn part(call: &Call, hunk: &ChangedPart) -> Result<(), End> {
    call.output.line(&format!(
        "@@ -{},{} +{},{} @@",
        hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines
    ))?;
    for line in &hunk.lines {
        let sign = match line.t.known() {
            Some(sign @ (LineSign::Added | LineSign::Deleted | LineSign::Same)) => sign.as_str(),
            None => "?",
        };
        call.output.log_line(&format!("{sign}{}", line.text))?;
    }
    Ok(())
}
