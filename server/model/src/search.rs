//! Searches all states within bounds.
//!
//! Invariants are checked in each state, and from each state the program must be able to come to
//! rest by itself.

use crate::model::{Action, Lifecycle, REACHED, is_at_rest};
use crate::world::World;
use stateright::{Checker, HasDiscoveries, Model};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// What a search found.
#[derive(Debug)]
pub struct Outcome {
    /// Different states.
    pub states: usize,
    /// Longest of the shortest ways to a state.
    pub depth: usize,
    /// How long it took.
    pub time: Duration,
    /// What was come by, of [`crate::model::REACHED`].
    pub reached: Vec<&'static str>,
    /// What was broken, each with the shortest way there.
    pub broken: Vec<(&'static str, String)>,
}

impl Outcome {
    /// What was broken, and how.
    pub fn told(&self) -> String {
        let each = self.broken.iter().map(|(name, way)| format!("broken: {name}\n{way}"));
        each.collect()
    }

    /// The names of what was broken.
    pub fn names(&self) -> Vec<&'static str> {
        self.broken.iter().map(|(name, _)| *name).collect()
    }
}

/// From here the program alone never comes to rest.
pub const COMES_TO_REST: &str = "every state comes to rest by itself";

/// Searches everything, or until something is broken.
pub fn search(model: &Lifecycle, threads: usize) -> Outcome {
    let began = Instant::now();
    let builder = model.clone().checker().threads(threads);
    let checker = builder.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let (mut states, mut depth) = (checker.unique_state_count(), checker.max_depth());
    let (mut reached, mut broken) = (Vec::new(), Vec::<(&'static str, String)>::new());
    for (name, path) in checker.discoveries() {
        if REACHED.contains(&name) {
            reached.push(name);
            continue;
        }
        let steps = path.into_vec();
        let told = steps.iter().filter_map(|(state, action)| Some(told(state, (*action)?)));
        broken.push((name, told.collect()));
    }
    broken.sort_unstable();
    drop(checker);
    if broken.is_empty() {
        let mut graph = Graph::of(model);
        (states, depth) = (graph.from.len(), graph.depth);
        let restless = graph.restless();
        broken.extend(restless.map(|number| (COMES_TO_REST, graph.way_to(model, number))));
    }
    Outcome { states, depth, time: began.elapsed(), reached, broken }
}

/// One step in a line.
fn told(world: &World, action: Action) -> String {
    match action {
        Action::Step(task, choice) => match world.tasks.get(usize::from(task)) {
            Some(task) => format!("  {:?}: {:?}/{choice}, row {}\n", task.who, task.at, task.row),
            None => format!("  {action:?}\n"),
        },
        other => format!("  {other:?}\n"),
    }
}

/// All states, numbered as they are found, and how each was reached.
struct Graph {
    hasher: ahash::RandomState,
    numbers: HashMap<u64, u32, ahash::RandomState>,
    /// From where and by what each was found first.
    from: Vec<Option<(u32, Action)>>,
    /// Who leads where by itself: pairs of target and source.
    back: Vec<(u32, u32)>,
    resting: Vec<u32>,
    /// Found and not looked at.
    next: VecDeque<(u32, usize, World)>,
    /// Steps to the last state that was found.
    depth: usize,
}

impl Graph {
    fn found(&mut self, world: World, from: Option<(u32, Action)>, depth: usize) -> u32 {
        let number = u32::try_from(self.from.len()).expect("fewer states than memory holds");
        match self.numbers.entry(self.hasher.hash_one(&world)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                free.insert(number);
                if is_at_rest(&world) {
                    self.resting.push(number);
                }
                self.from.push(from);
                self.next.push_back((number, depth, world));
                number
            }
        }
    }

    fn of(model: &Lifecycle) -> Self {
        let hasher = ahash::RandomState::with_seeds(1, 2, 3, 4);
        let mut graph = Self {
            numbers: HashMap::with_hasher(hasher.clone()),
            hasher,
            from: Vec::new(),
            back: Vec::new(),
            resting: Vec::new(),
            next: VecDeque::new(),
            depth: 0,
        };
        for world in model.init_states() {
            graph.found(world, None, 0);
        }
        let mut actions = Vec::new();
        while let Some((number, depth, world)) = graph.next.pop_front() {
            graph.depth = depth;
            model.actions(&world, &mut actions);
            for action in actions.drain(..) {
                let Some(next) = model.next_state(&world, action) else { continue };
                let target = graph.found(next, Some((number, action)), depth + 1);
                if action.is_own() {
                    graph.back.push((target, number));
                }
            }
        }
        graph
    }

    /// The first state from which the program cannot come to rest by itself.
    fn restless(&mut self) -> Option<u32> {
        self.back.sort_unstable();
        let mut rests = vec![false; self.from.len()];
        let mut left = std::mem::take(&mut self.resting);
        while let Some(number) = left.pop() {
            if std::mem::replace(&mut rests[number as usize], true) {
                continue;
            }
            let first = self.back.partition_point(|(target, _)| *target < number);
            let sources = self.back[first..].iter().take_while(|(target, _)| *target == number);
            left.extend(sources.map(|(_, source)| *source).filter(|one| !rests[*one as usize]));
        }
        rests.iter().position(|rests| !rests).map(|number| number as u32)
    }

    /// How a state was reached.
    fn way_to(&self, model: &Lifecycle, mut number: u32) -> String {
        let mut actions = Vec::new();
        while let Some((before, action)) = self.from[number as usize] {
            actions.push(action);
            number = before;
        }
        let mut world = model.init_states().into_iter().nth(number as usize);
        let mut way = String::new();
        for action in actions.into_iter().rev() {
            let Some(before) = &world else { break };
            way.push_str(&told(before, action));
            world = model.next_state(before, action);
        }
        way
    }
}
