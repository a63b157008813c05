//! `svc usage`: what one transcript of the agent used, and what that costs.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::output::Cell;
use clap::Args;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use svc_app::usage_of_file;
use svc_domain::log_escape::escape;
use svc_domain::token_cost::{Tokens, cost, to_four_decimals};

#[derive(Debug, Args)]
pub(crate) struct Usage {
    /// Transcript of the agent: `projects/<directory>/<id>.jsonl` in its home.
    pub(crate) transcript: PathBuf,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints tokens and cost by model, then the sums.
pub(crate) fn usage(call: &Call, options: &Usage) -> Result<Exit, End> {
    let used = usage_of_file(&options.transcript).map_err(|error| {
        let path = options.transcript.display().to_string();
        let text = format!("cannot read the transcript {}: {error}", escape(&path));
        Failure::new(Exit::Refused, "not_found", text)
    })?;
    let models = &used.models;
    let all = models.values().fold(Tokens::default(), |sum, one| sum.plus(*one));
    let dollars: f64 = models.iter().filter_map(|(model, tokens)| cost(model, *tokens)).sum();
    if options.json {
        let document = |tokens: &Tokens, cost_usd: Option<f64>| {
            json!({
                "input": tokens.input,
                "output": tokens.output,
                "cache_creation": tokens.cache_creation,
                "cache_read": tokens.cache_read,
                "cost_usd": cost_usd.map(to_four_decimals),
            })
        };
        let by_model: BTreeMap<_, _> = models
            .iter()
            .map(|(model, tokens)| (model, document(tokens, cost(model, *tokens))))
            .collect();
        call.output.json(&json!({
            "turns": used.turns,
            "messages": used.messages,
            "skipped_lines": used.skipped,
            "by_model": by_model,
            "total": document(&all, Some(dollars)),
            "approximate": true,
        }))?;
        return Ok(Exit::Done);
    }
    if models.is_empty() {
        call.output.note("This transcript has no message of a model with figures.");
        return Ok(Exit::Done);
    }
    let rows = models.iter().map(|(model, tokens)| row(model, tokens, cost(model, *tokens)));
    let mut rows: Vec<[Cell; 6]> = rows.collect();
    rows.push(row("total", &all, Some(dollars)));
    call.output.table(["MODEL", "IN", "OUT", "CACHE_W", "CACHE_R", "COST"], &rows)?;
    if used.skipped > 0 {
        call.output.note(&format!("{} lines could not be read and are not counted.", used.skipped));
    }
    Ok(Exit::Done)
}

fn row(model: &str, tokens: &Tokens, dollars: Option<f64>) -> [Cell; 6] {
    let cost = dollars.map_or_else(|| "(unpriced)".to_owned(), |cost| format!("≈${cost:.4}"));
    [
        model.into(),
        tokens.input.to_string().into(),
        tokens.output.to_string().into(),
        tokens.cache_creation.to_string().into(),
        tokens.cache_read.to_string().into(),
        cost.into(),
    ]
}
