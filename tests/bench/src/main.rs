//! What the product costs, measured from outside: `cargo xtask bench`.
//!
//! Each measure builds its own machine in a temporary directory and hands back figures. This file
//! owns the command line, the order, the table and the time limit.

mod bare;
mod compare;
mod http;
mod load;
mod machine;
mod measures;
mod plan;
mod registry;
mod report;
mod socket;
mod tidy;
mod wire;
mod world;

use anyhow::{Context as _, Result, bail, ensure};
use measures::MEASURES;
use plan::{Plan, say};
use report::Figure;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use world::Programs;

/// The whole run takes no longer.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// Nothing is begun later than this: the longest measure has time to end.
const LAST_BEGIN: Duration = Duration::from_secs(12 * 60);

const HELP: &str = "\
svc-bench [--only NAME]... [--compare FILE] [--json FILE] [--short] [--build WORDS]

Starts SVC_BIN with SVC_SIM_BIN as its agent, in temporary directories, and prints a table.
--only: one measure, or every figure whose name contains NAME.
--compare: the samples of this run beside those of FILE, with a verdict.
--json: where the samples go; the table is written beside them, as .md.
--short: everything once and small, to see that every answer is right; times mean nothing.
--build: how the programs were built, for the description of the machine.
";

#[derive(Debug, Default)]
struct Options {
    only: Vec<String>,
    compare: Option<PathBuf>,
    json: Option<PathBuf>,
    short: bool,
    build: String,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [word, port] = args.as_slice()
        && word == bare::WORD
    {
        return done(bare::serve(port).map(|()| true));
    }
    done(parse(args).and_then(|options| run(&options)))
}

fn done(outcome: Result<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("stopped: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn parse(args: Vec<String>) -> Result<Options> {
    let mut options = Options::default();
    let mut args = args.into_iter();
    while let Some(word) = args.next() {
        let mut value = || args.next().with_context(|| format!("{word} needs a value\n\n{HELP}"));
        match word.as_str() {
            "--only" => options.only.push(value()?),
            "--compare" => options.compare = Some(value()?.into()),
            "--json" => options.json = Some(value()?.into()),
            "--build" => options.build = value()?,
            "--short" => options.short = true,
            _ => bail!("`{word}` is not understood\n\n{HELP}"),
        }
    }
    let known = |only: &String| MEASURES.iter().any(|(name, _)| name == only);
    if let Some(unknown) = options.only.iter().find(|only| !known(only)) {
        let names: Vec<&str> = MEASURES.iter().map(|(name, _)| *name).collect();
        bail!("there is no measure `{unknown}`; there are {}", names.join(", "));
    }
    Ok(options)
}

fn programs() -> Result<Programs> {
    let named = |variable: &str| -> Result<PathBuf> {
        let path = std::env::var_os(variable)
            .map(PathBuf::from)
            .with_context(|| format!("{variable} must name a program; use `cargo xtask bench`"))?;
        ensure!(path.is_file(), "{variable} names {}, which is missing", path.display());
        Ok(path)
    };
    Ok(Programs { service: named("SVC_BIN")?, simulator: named("SVC_SIM_BIN")? })
}

/// Runs the measures; returns whether all of them ran and every answer was right.
/// A missed budget is no failure, because times depend on the machine.
fn run(options: &Options) -> Result<bool> {
    let before = options.compare.as_deref().map(report::read).transpose()?;
    tidy::watch(LONGEST)?;
    let plan = Plan { programs: programs()?, short: options.short };
    let machine = machine::description(&options.build, &std::env::temp_dir());
    say(&format!("{machine:#}\n"));
    if options.short {
        say(
            "The short form: one look at each figure, on whatever build this is. Only answers count.\n",
        );
    }
    say(report::HEAD);
    let (began, mut figures, mut failed) = (Instant::now(), Vec::<Figure>::new(), Vec::new());
    for (name, measure) in MEASURES {
        if !options.only.is_empty() && !options.only.iter().any(|only| only == name) {
            continue;
        }
        if began.elapsed() > LAST_BEGIN {
            failed.push(format!("{name}: no time was left for it"));
            continue;
        }
        match measure(&plan) {
            Ok(found) => {
                for mut figure in found {
                    figure.measure = name;
                    figures.push(figure);
                }
            }
            Err(error) => failed.push(format!("{name}: {error:#}")),
        }
        // Kept as it grows: what was measured is not lost with what comes after.
        if let Some(file) = &options.json {
            report::write(file, &machine, &figures)?;
        }
    }
    say(&format!("\n{} figures in {} s", figures.len(), began.elapsed().as_secs()));
    if let Some(before) = &before {
        say("");
        compare::table(&figures, before).iter().for_each(|line| say(line));
    }
    if let Some(file) = &options.json {
        say(&format!("samples: {}", file.display()));
    }
    for failure in &failed {
        say(&format!("NOT MEASURED: {failure}"));
    }
    if !options.short {
        let missed: usize = figures.iter().map(Figure::missed).sum();
        say(&format!("{missed} budgets missed; `cargo xtask times` measures the page"));
    }
    Ok(failed.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options> {
        parse(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn a_wrong_word_is_answered_with_what_there_is() {
        assert_eq!(parsed(&["--only", "requests", "--short"]).unwrap().only, ["requests"]);
        let error = parsed(&["--only", "nothing"]).unwrap_err().to_string();
        assert!(error.contains("requests"), "{error}");
        assert!(parsed(&["--fast"]).is_err());
        assert!(parsed(&["--json"]).is_err());
    }
}
