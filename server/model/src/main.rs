//! The long form of the search, for the command line.
#![expect(clippy::print_stdout, reason = "a table is what is asked for")]

use std::process::ExitCode;
use std::time::Duration;
use svc_model::plan::{LONG, long, short};
use svc_model::questions::{self, Questions};
use svc_model::{Budget, Lifecycle, search};

const HELP: &str = "\
svc-model [--short] [NAME NUMBER]...

Searches all states of the lifecycle from every start, then those of questions and their answers. NAME is one of commands (0 to 2), requests,
crashes, exits, reuses, misreadings, launches (1 to 3), keepers, refusals; the number says how often
it may happen. With one of the last two, Interactive Sessions are launched in the place of Server
Mode bridges.
--short: the bounds of the tests.";

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(wanted) => run(wanted),
        Err(reason) => {
            println!("{reason}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Vec<svc_model::Bounds>, String> {
    let mut budget = LONG;
    while let Some(name) = args.next() {
        if name == "--short" {
            return Ok(short());
        }
        let number = args.next().and_then(|number| number.parse::<u8>().ok());
        let number = number.ok_or_else(|| format!("`{name}` needs a number"))?;
        let (field, least, most) = field(&mut budget, &name)?;
        if !(least..=most).contains(&number) {
            return Err(format!("`{name}` is {least} to {most}"));
        }
        *field = number;
    }
    Ok(long(budget))
}

fn field<'b>(budget: &'b mut Budget, name: &str) -> Result<(&'b mut u8, u8, u8), String> {
    Ok(match name.trim_start_matches("--") {
        "commands" => (&mut budget.commands, 0, 2),
        "requests" => (&mut budget.requests, 0, 3),
        "crashes" => (&mut budget.crashes, 0, 9),
        "exits" => (&mut budget.exits, 0, 3),
        "keepers" => (&mut budget.keepers, 0, 3),
        "refusals" => (&mut budget.refusals, 0, 3),
        "reuses" => (&mut budget.reuses, 0, 3),
        "misreadings" => (&mut budget.misreadings, 0, 9),
        "launches" => (&mut budget.launches, 1, 3),
        _ => return Err(format!("`{name}` is not understood")),
    })
}

fn run(wanted: Vec<svc_model::Bounds>) -> ExitCode {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (mut all, mut time, mut holds) = (0, Duration::ZERO, true);
    for bounds in wanted {
        println!("{:?}, {:?}", bounds.start, bounds.budget);
        let outcome = search(&Lifecycle { bounds, mutation: None }, threads);
        let seconds = outcome.time.as_secs_f32();
        println!("  {} states, {} steps deep, {seconds:.1} s", outcome.states, outcome.depth);
        print!("{}", outcome.told());
        all += outcome.states;
        time += outcome.time;
        holds &= outcome.broken.is_empty();
    }
    println!("{all} states in {:.1} s", time.as_secs_f32());
    println!("questions, {:?}", questions::LONG);
    let model = Questions { accidents: questions::LONG, fault: None };
    let found = questions::search(model, threads);
    println!("  {} states", found.states);
    for (name, way) in &found.broken {
        println!("broken: {name}\n  {way:?}");
    }
    holds &= found.broken.is_empty();
    ExitCode::from(u8::from(!holds))
}
