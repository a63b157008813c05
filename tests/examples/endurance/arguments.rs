//! The arguments of a run, and how to ask for the same run again.

use crate::plan::Family;
use std::fmt;
use std::time::Duration;

const HELP: &str = "soak [--minutes M | --seconds S] [--seed N] [--bridges B]\n\
    chaos [--seed N] [--rounds K] [--from R] [--only FAMILY] [--steps S] [--show]";

/// What to run.
#[derive(Debug, Clone)]
pub enum Arguments {
    Soak(Soak),
    Chaos(Chaos),
}

#[derive(Debug, Clone)]
pub struct Soak {
    pub seed: u64,
    pub time: Duration,
    pub bridges: usize,
}

#[derive(Debug, Clone)]
pub struct Chaos {
    pub seed: u64,
    /// The first round. Every round depends only on the seed and its number.
    pub from: u64,
    pub rounds: u64,
    pub steps: usize,
    pub only: Option<Family>,
    /// Prints every step and how long it took.
    pub show: bool,
}

impl Arguments {
    pub fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = args;
        let seed = 1;
        let mut arguments = match args.next().as_deref() {
            Some("soak") => {
                Self::Soak(Soak { seed, time: Duration::from_secs(20 * 60), bridges: 100 })
            }
            Some("chaos") => Self::Chaos(Chaos {
                seed,
                from: 0,
                rounds: 2 * Family::ALL.len() as u64,
                steps: 24,
                only: None,
                show: false,
            }),
            _ => return Err(HELP.into()),
        };
        while let Some(name) = args.next() {
            if let (Self::Chaos(chaos), "--show") = (&mut arguments, name.as_str()) {
                chaos.show = true;
                continue;
            }
            let value = args.next().ok_or_else(|| format!("{name} needs a value\n{HELP}"))?;
            arguments
                .set(&name, &value)
                .ok_or_else(|| format!("`{name} {value}` is not understood\n{HELP}"))?;
        }
        Ok(arguments)
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let number = value.parse::<u64>();
        match (self, name) {
            (Self::Soak(soak), "--seed") => soak.seed = number.ok()?,
            (Self::Soak(soak), "--minutes") => soak.time = Duration::from_secs(60 * number.ok()?),
            (Self::Soak(soak), "--seconds") => soak.time = Duration::from_secs(number.ok()?),
            (Self::Soak(soak), "--bridges") => soak.bridges = value.parse().ok()?,
            (Self::Chaos(chaos), "--seed") => chaos.seed = number.ok()?,
            (Self::Chaos(chaos), "--rounds") => chaos.rounds = number.ok()?,
            (Self::Chaos(chaos), "--from") => chaos.from = number.ok()?,
            (Self::Chaos(chaos), "--steps") => chaos.steps = value.parse().ok()?,
            (Self::Chaos(chaos), "--only") => chaos.only = Some(Family::named(value)?),
            _ => return None,
        }
        Some(())
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Soak(Soak { seed, time, bridges }) => {
                write!(f, "soak --seed {seed} --seconds {} --bridges {bridges}", time.as_secs())
            }
            Self::Chaos(Chaos { seed, from, rounds, steps, only, show: _ }) => {
                write!(f, "chaos --seed {seed} --from {from} --rounds {rounds} --steps {steps}")?;
                only.map_or(Ok(()), |family| write!(f, " --only {}", family.name()))
            }
        }
    }
}
