//! Rounds of requests and faults, each on its own machine, checked by invariants.

use crate::arguments;
use crate::deeds::{Means, Outcome, perform};
use crate::faults::Stage;
use crate::harness::{Balance, Books, Client, Row, World};
use crate::plan::{Deed, FRAIL, Fault, PROJECTS, Plan, Step, What};
use futures_util::FutureExt;
use futures_util::future::{join, join_all};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::{Duration, Instant};

/// How long everything may take to agree again after a fault.
/// Ten seconds are documented; this machine may be busy.
const AGREES_WITHIN: Duration = Duration::from_secs(60);

/// What all rounds came to.
#[derive(Default)]
struct Sums {
    counts: BTreeMap<&'static str, u64>,
    refused: BTreeMap<String, u64>,
    missing: BTreeSet<&'static str>,
    rows: usize,
    generations: i64,
    ran: usize,
}

/// Runs the rounds that are wished for; panics in the first that fails.
pub async fn run(arguments: &arguments::Chaos) {
    let begun = Instant::now();
    let mut sums = Sums::default();
    for number in arguments.from..arguments.from + arguments.rounds {
        let plan = Plan::draw(arguments.seed, number, arguments.steps, arguments.only);
        let (at, round) =
            (Instant::now(), AssertUnwindSafe(round(&plan, arguments.show, &mut sums)));
        if let Err(panic) = round.catch_unwind().await {
            let (seed, steps, name) = (arguments.seed, arguments.steps, plan.family.name());
            eprintln!("the schedule of round {number}:\n{plan}");
            eprintln!(
                "this round again: cargo xtask chaos --seed {seed} --from {number} --rounds 1 \
                 --steps {steps} --only {name}"
            );
            resume_unwind(panic);
        }
        let took = at.elapsed().as_secs_f32();
        eprintln!(
            "round {number} ({}) of seed {}: {took:.1} s",
            plan.family.name(),
            arguments.seed
        );
    }
    let Sums { counts, refused, missing, rows, generations, ran } = sums;
    let counted: Vec<String> = counts.iter().map(|(what, n)| format!("{n} {what}")).collect();
    eprintln!(
        "seed {}, {} rounds in {} s: {}; {rows} records, {generations} launches recorded, {ran} \
         agents ran; 0 lost, 0 doubled, 0 orphaned",
        arguments.seed,
        arguments.rounds,
        begun.elapsed().as_secs(),
        counted.join(", ")
    );
    eprintln!("refused with {refused:?}");
    for what in missing {
        eprintln!("not tried here: {what}");
    }
}

async fn round(plan: &Plan, show: bool, sums: &mut Sums) {
    let world = World::with(json!({
        "claude": { "stop_grace_seconds": 1, "startup_grace_seconds": 2 },
    }));
    for (name, knobs) in PROJECTS {
        world.project_with(name, serde_json::from_str(knobs).expect("knobs"));
    }
    let mut witness = world.witness("bystander").await;
    let mut round = Round {
        stage: Stage::new(&world, plan.family, &witness),
        books: Books::default(),
        newest: BTreeMap::new(),
        refused: BTreeMap::new(),
    };
    for (number, step) in plan.steps.iter().enumerate() {
        let at = Instant::now();
        let done = AssertUnwindSafe(round.step(step)).catch_unwind().await;
        if show {
            eprintln!("  {number:>3}  {step}: {} ms", at.elapsed().as_millis());
        }
        if let Err(panic) = done {
            eprintln!("--- in step {number}: {step}");
            resume_unwind(panic);
        }
    }
    let balance = round.close().await;
    witness.assert_untouched(&world).await;
    for (what, count) in &round.stage.counts {
        *sums.counts.entry(what).or_default() += count;
    }
    for (why, count) in std::mem::take(&mut round.refused) {
        *sums.refused.entry(why).or_default() += count;
    }
    sums.missing.extend(&round.stage.missing);
    sums.rows += balance.rows;
    sums.generations += balance.generations;
    sums.ran += balance.ran;
}

struct Round<'w> {
    stage: Stage<'w>,
    books: Books,
    /// The record that was told last, of each project.
    newest: BTreeMap<usize, String>,
    /// Why deeds were refused.
    refused: BTreeMap<String, u64>,
}

impl Round<'_> {
    async fn step(&mut self, step: &Step) {
        self.stage.serve().await;
        let world = self.stage.world;
        let base = format!("http://127.0.0.1:{}", world.port());
        let after = Duration::from_millis(step.after_ms);
        let cut = (step.fault == Fault::KillCommands).then_some(after);
        let (mut asked, mut deeds) = (Vec::new(), Vec::new());
        for deed in &step.deeds {
            let newest = self.newest.get(&deed.project).cloned();
            let deed = match (&newest, deed.what) {
                (Some(id), What::Forget) => {
                    self.books.give_up(id);
                    *deed
                }
                (Some(_), _) => *deed,
                // Nothing to stop, resume or forget yet.
                (None, _) => Deed { what: What::Start, ..*deed },
            };
            // Each with connections of its own: a crowd of people, not a crowd on one line.
            let client = Client::new(&base);
            let project = PROJECTS[deed.project].0.to_owned();
            let means = Means { world, project, client, env: self.stage.env(), cut, newest };
            asked.push(deed);
            deeds.push(perform(deed, means));
        }
        let fault = async {
            // The instant is the point of the step, not a wait for something.
            tokio::time::sleep(after).await;
            self.stage.inflict(step.fault).await;
        };
        let (outcomes, ()) = join(join_all(deeds), fault).await;
        for id in std::mem::take(&mut self.stage.lost) {
            self.books.give_up(&id);
            self.newest.retain(|_, newest| *newest != id);
        }
        for (deed, outcome) in asked.into_iter().zip(outcomes) {
            match outcome {
                Outcome::Done(id) => {
                    self.books.promise(&id);
                    self.newest.insert(deed.project, id);
                    self.stage.count("deeds done");
                }
                Outcome::Gone => {
                    self.newest.remove(&deed.project);
                    self.stage.count("records forgotten");
                }
                Outcome::Refused(why) => {
                    if why == "unknown_instance" {
                        self.newest.remove(&deed.project);
                    }
                    self.stage.count("deeds refused");
                    *self.refused.entry(why).or_default() += 1;
                }
                Outcome::Silence => self.stage.count("deeds interrupted"),
            }
        }
        if step.calm {
            self.calm().await;
        }
    }

    /// Nothing is wrong any more: records, processes and answers must agree.
    async fn calm(&mut self) -> Balance {
        self.stage.heal();
        if std::mem::take(&mut self.stage.needs_start) {
            self.stage.kill_service().await;
        }
        self.stage.serve().await;
        let world = self.stage.world;
        let found = world.agree_within(AGREES_WITHIN).await;
        let balance = self.books.balance(world, &found.rows);
        let innocent = found.rows.iter().filter(|row| {
            let harmed =
                self.stage.harmed.iter().any(|project| PROJECTS[*project].0 == row.project);
            row.project != FRAIL && !harmed
        });
        let crashed: Vec<_> = innocent.filter(|row| row.status == "crashed").collect();
        assert!(crashed.is_empty(), "nobody harmed these: {crashed:?}");
        let server = self.stage.server.as_ref().expect("it serves");
        assert!(!server.log().contains("panicked"), "{}", server.log());
        balance
    }

    /// Everything is stopped; nobody is left.
    async fn close(&mut self) -> Balance {
        self.calm().await;
        let server = self.stage.server.as_ref().expect("it serves");
        let live = self.stage.world.rows().await.into_iter().filter(Row::is_live);
        for row in live {
            // One that ends by itself meanwhile stays what it became.
            server.client.stop(&row.instance_id).await.expect(200);
        }
        let balance = self.calm().await;
        let found = self.stage.world.agree_within(AGREES_WITHIN).await;
        assert!(found.bridges.is_empty(), "{:?}", found.bridges);
        let server = self.stage.server.as_ref().expect("it serves");
        let shown = server.client.instances().await;
        assert_eq!(shown.len(), found.rows.len(), "what is shown is what is recorded");
        for row in &found.rows {
            let seen = shown.iter().find(|seen| seen.instance_id.as_str() == row.instance_id);
            assert_eq!(seen.map(|seen| seen.status.to_string()).as_ref(), Some(&row.status));
        }
        self.stage.until_nobody_is_left().await;
        let (code, log) = self.stage.server.take().expect("it serves").stop().await;
        assert_eq!(code, Some(0), "{log}");
        balance
    }
}
