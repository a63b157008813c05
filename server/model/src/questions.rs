//! Questions of an agent and their answers, modelled for a complete search.
//!
//! An agent asks, withdraws and ends. The service records what it hears, two devices decide, the
//! service tells the agent and notes that it did. Each of these steps may be the last before the
//! service dies or loses the daemon, which keeps the frames of the agent and sends them again. For
//! the questions that come through a hook the hook is both agent and daemon: it asks again under
//! the same name. What is modelled is in `server/app/src/hosted/{pump,approvals}.rs`,
//! `server/app/src/asked/serve.rs` and the statements of `server/store`.

use stateright::{Checker, HasDiscoveries, Model, Property};

/// Questions of one agent.
const QUESTIONS: usize = 2;
/// Devices that answer.
const DEVICES: usize = 2;

/// What a device decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Word {
    /// Go ahead.
    Allow,
    /// Do not.
    Deny,
}

/// A question as its agent has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AtAgent {
    /// It was not asked.
    Unasked,
    /// It waits for an answer.
    Waits,
    /// The agent acted on this answer; it takes no other.
    Told(Word),
    /// The agent took it back.
    Withdrawn,
    /// The agent ended first.
    Gone,
}

/// A question as it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Row {
    /// Not at all.
    Absent,
    /// It can be answered.
    Open,
    /// It is decided; the flag says whether the agent was told.
    Decided(Word, bool),
    /// Its agent took it back.
    Cancelled,
    /// Its agent ended.
    Interrupted,
}

/// How far an answer of a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Device {
    /// Nobody uses it.
    Idle,
    /// It is on its way to the service.
    Sent(u8, Word),
    /// The service said that this answer counts.
    Taken(u8, Word),
    /// The service said that somebody was first, or that it is over.
    Late(u8),
    /// The service died before it replied.
    Unknown,
}

/// How often the accidents of a search may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Accidents {
    /// The service dies.
    pub deaths: u8,
    /// The link to the daemon is lost.
    pub drops: u8,
    /// The agent takes a question back.
    pub withdrawals: u8,
    /// The agent ends.
    pub ends: u8,
}

/// Everything at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Moment {
    agents: [AtAgent; QUESTIONS],
    rows: [Row; QUESTIONS],
    /// What was decided first, whatever is recorded by now.
    first: [Option<Word>; QUESTIONS],
    /// What the agent was sent, whether or not it still waited.
    sent: [Option<Word>; QUESTIONS],
    devices: [Device; DEVICES],
    /// The service runs.
    is_up: bool,
    /// It hears the agent and can tell it something.
    is_linked: bool,
    /// Questions whose own words the service holds, without which it can tell nothing.
    held: [bool; QUESTIONS],
    /// Recorded, and its words not held yet.
    parked: Option<u8>,
    /// An answer that was written to the agent and is not noted yet.
    telling: Option<u8>,
    /// The agent is recorded as ended.
    is_ended: bool,
    /// The agent has ended.
    has_ended: bool,
    /// What was passed over for ever.
    skipped: [bool; QUESTIONS],
    /// Something that must never happen has happened.
    is_wrong: bool,
    left: Accidents,
}

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// The agent asks.
    Asks(u8),
    /// The agent takes a question back.
    Withdraws(u8),
    /// The agent ends.
    Ends,
    /// The service records a question that it hears.
    Park(u8),
    /// It holds what the agent said.
    Hold(u8),
    /// It hears that a question was taken back.
    HearWithdrawn(u8),
    /// It hears that the agent has ended.
    HearEnd,
    /// A person answers on a device.
    Answers(u8, u8, Word),
    /// The service records the answer of a device, or says that it comes too late.
    Decide(u8),
    /// The service tells the agent what is recorded.
    Tell(u8),
    /// The service notes that it did.
    Note(u8),
    /// The service dies.
    Dies,
    /// Another one starts.
    Starts,
    /// The link is lost.
    Drops,
    /// The link is there again, with all that was not heard.
    Links,
}

impl Event {
    /// Whether the program does it by itself, sooner or later.
    fn is_own(self) -> bool {
        match self {
            Self::Park(_)
            | Self::Hold(_)
            | Self::HearWithdrawn(_)
            | Self::HearEnd
            | Self::Decide(_)
            | Self::Tell(_)
            | Self::Note(_)
            | Self::Starts
            | Self::Links => true,
            Self::Asks(_)
            | Self::Withdraws(_)
            | Self::Ends
            | Self::Answers(..)
            | Self::Dies
            | Self::Drops => false,
        }
    }
}

/// A seeded fault. The search must find each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A decision does not look whether there is one.
    DecideWithoutLook,
    /// The second device is told that its answer counts, too.
    BothAreTaken,
    /// The agent is told before the decision is recorded.
    TellBeforeRecord,
    /// It is noted that the agent was told before it is.
    NoteBeforeTell,
    /// It is noted although the link is lost.
    TellWithoutLink,
    /// A service that starts takes what waits for over.
    StartEndsQuestions,
    /// A question that is heard again is recorded anew.
    HeardAgainIsNew,
    /// A question that was decided can be taken back.
    WithdrawnAfterAll,
    /// What was not heard when the link was lost is not sent again.
    NothingAgain,
    /// The end of an agent leaves its questions open.
    EndLeavesOpen,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::DecideWithoutLook,
        Self::BothAreTaken,
        Self::TellBeforeRecord,
        Self::NoteBeforeTell,
        Self::TellWithoutLink,
        Self::StartEndsQuestions,
        Self::HeardAgainIsNew,
        Self::WithdrawnAfterAll,
        Self::NothingAgain,
        Self::EndLeavesOpen,
    ];
}

/// A decision stays what it is.
pub const DECIDED_ONCE: &str = "a question is decided at most once";
/// The agent does what is recorded, and is never sent two answers that differ.
pub const OBEYED: &str = "the agent acts on what is recorded, and on nothing else";
/// Whoever is told that an answer counts decided the question.
pub const TRUE_REPLY: &str = "one device at most is told that its answer counts, and it does";
/// What nobody can answer any more has its answer, or its agent does not wait.
pub const NONE_LOST: &str = "a question whose agent waits can be answered";
/// Nobody is asked for nothing.
pub const NONE_FOR_NOTHING: &str = "a question that can be answered has an agent that waits";

/// What a search must come by, so that it is no search of nothing.
pub const COME_BY: [&str; 5] = [
    "an answer was acted on",
    "a second device was late",
    "a reply was lost",
    "a question was withdrawn",
    "an end interrupted a question",
];

/// The model: how much may happen, and what is wrong if something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Questions {
    /// How often accidents happen.
    pub accidents: Accidents,
    /// The seeded fault.
    pub fault: Option<Fault>,
}

/// The bounds of the tests.
pub const SHORT: Accidents = Accidents { deaths: 2, drops: 1, withdrawals: 1, ends: 1 };
/// The bounds of the long search.
pub const LONG: Accidents = Accidents { deaths: 4, drops: 4, withdrawals: 2, ends: 1 };

impl Questions {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn hears(now: &Moment) -> bool {
        now.is_up && now.is_linked && now.parked.is_none() && now.telling.is_none()
    }

    fn possible(&self, now: &Moment, all: &mut Vec<Event>) {
        let each = (0..QUESTIONS).map(|question| question as u8);
        for question in each.clone() {
            let at = usize::from(question);
            let (agent, row) = (now.agents[at], now.rows[at]);
            if agent == AtAgent::Unasked && !now.has_ended {
                all.push(Event::Asks(question));
            }
            if agent == AtAgent::Waits && now.left.withdrawals > 0 {
                all.push(Event::Withdraws(question));
            }
            // Frames come in order: a question before its end, and the end of the agent last.
            let is_heard = row != Row::Absent || now.skipped[at];
            if Self::hears(now) && agent != AtAgent::Unasked && !now.held[at] && !now.skipped[at] {
                let is_over =
                    matches!(row, Row::Decided(_, true) | Row::Cancelled | Row::Interrupted);
                if !is_over || self.has(Fault::HeardAgainIsNew) {
                    all.push(Event::Park(question));
                }
            }
            if now.is_up && now.parked == Some(question) {
                all.push(Event::Hold(question));
            }
            if Self::hears(now) && agent == AtAgent::Withdrawn && is_heard && row == Row::Open {
                all.push(Event::HearWithdrawn(question));
            }
            if self.has(Fault::WithdrawnAfterAll)
                && Self::hears(now)
                && agent == AtAgent::Withdrawn
                && matches!(row, Row::Decided(..))
            {
                all.push(Event::HearWithdrawn(question));
            }
            let can_tell = now.is_linked || self.has(Fault::TellWithoutLink);
            let wants = matches!(row, Row::Decided(_, false)) && !now.is_ended;
            if now.is_up && can_tell && now.held[at] && now.telling.is_none() && wants {
                all.push(Event::Tell(question));
            }
            if now.is_up && now.telling == Some(question) {
                all.push(Event::Note(question));
            }
        }
        for device in 0..DEVICES {
            let number = device as u8;
            match now.devices[device] {
                Device::Idle => {
                    // The first device allows and the second refuses: what differs matters.
                    let word = if device == 0 { Word::Allow } else { Word::Deny };
                    let known =
                        each.clone().filter(|one| now.rows[usize::from(*one)] != Row::Absent);
                    all.extend(known.map(|question| Event::Answers(number, question, word)));
                }
                Device::Sent(..) if now.is_up => all.push(Event::Decide(number)),
                Device::Sent(..) | Device::Taken(..) | Device::Late(_) | Device::Unknown => {}
            }
        }
        if !now.has_ended && now.left.ends > 0 {
            all.push(Event::Ends);
        }
        let is_told = |at: usize| {
            now.agents[at] == AtAgent::Unasked || now.rows[at] != Row::Absent || now.skipped[at]
        };
        if Self::hears(now) && now.has_ended && !now.is_ended && (0..QUESTIONS).all(is_told) {
            all.push(Event::HearEnd);
        }
        match now.is_up {
            true if now.left.deaths > 0 => all.push(Event::Dies),
            true => {}
            false => all.push(Event::Starts),
        }
        match now.is_linked {
            true if now.is_up && now.left.drops > 0 => all.push(Event::Drops),
            false if now.is_up => all.push(Event::Links),
            true | false => {}
        }
    }

    fn after(&self, now: &Moment, event: Event) -> Moment {
        let mut next = now.clone();
        match event {
            Event::Asks(question) => next.agents[usize::from(question)] = AtAgent::Waits,
            Event::Withdraws(question) => {
                next.left.withdrawals -= 1;
                next.agents[usize::from(question)] = AtAgent::Withdrawn;
            }
            Event::Ends => {
                next.left.ends -= 1;
                next.has_ended = true;
                let waiting = next.agents.iter_mut().filter(|agent| **agent == AtAgent::Waits);
                waiting.for_each(|agent| *agent = AtAgent::Gone);
            }
            Event::Park(question) => {
                let at = usize::from(question);
                // A name that is known replaces nothing.
                if next.rows[at] == Row::Absent || self.has(Fault::HeardAgainIsNew) {
                    next.rows[at] = Row::Open;
                }
                next.parked = Some(question);
            }
            Event::Hold(question) => {
                next.parked = None;
                next.held[usize::from(question)] = true;
            }
            Event::HearWithdrawn(question) => {
                next.rows[usize::from(question)] = Row::Cancelled;
                next.held[usize::from(question)] = false;
            }
            Event::HearEnd => {
                next.is_ended = true;
                if !self.has(Fault::EndLeavesOpen) {
                    let open = next.rows.iter_mut().filter(|row| **row == Row::Open);
                    open.for_each(|row| *row = Row::Interrupted);
                }
            }
            Event::Answers(device, question, word) => {
                next.devices[usize::from(device)] = Device::Sent(question, word);
            }
            Event::Decide(device) => self.decide(&mut next, usize::from(device)),
            Event::Tell(question) => {
                if !self.has(Fault::NoteBeforeTell) {
                    tell(&mut next, question);
                }
                next.telling = Some(question);
                if self.has(Fault::NoteBeforeTell) {
                    noted(&mut next, question);
                }
            }
            Event::Note(question) => {
                next.telling = None;
                if self.has(Fault::NoteBeforeTell) {
                    tell(&mut next, question);
                }
                noted(&mut next, question);
                next.held[usize::from(question)] = false;
            }
            Event::Dies => {
                next.left.deaths -= 1;
                next.is_up = false;
                next.is_linked = false;
                next.held = [false; QUESTIONS];
                (next.parked, next.telling) = (None, None);
                for device in &mut next.devices {
                    if matches!(device, Device::Sent(..)) {
                        *device = Device::Unknown;
                    }
                }
            }
            Event::Starts => {
                next.is_up = true;
                if self.has(Fault::StartEndsQuestions) {
                    let open = next.rows.iter_mut().filter(|row| **row == Row::Open);
                    open.for_each(|row| *row = Row::Interrupted);
                }
            }
            Event::Drops => {
                next.left.drops -= 1;
                next.is_linked = false;
                if self.has(Fault::NothingAgain) {
                    for at in 0..QUESTIONS {
                        next.skipped[at] |=
                            next.agents[at] != AtAgent::Unasked && next.rows[at] == Row::Absent;
                    }
                }
            }
            Event::Links => next.is_linked = true,
        }
        next
    }

    /// One transaction: only a question that waits, of an agent that runs, is decided.
    fn decide(&self, next: &mut Moment, device: usize) {
        let Device::Sent(question, word) = next.devices[device] else { return };
        let at = usize::from(question);
        if self.has(Fault::TellBeforeRecord) && next.held[at] && next.is_linked {
            tell_word(next, at, word);
        }
        let is_open = match next.rows[at] {
            Row::Open => !next.is_ended,
            Row::Decided(..) => self.has(Fault::DecideWithoutLook),
            Row::Absent | Row::Cancelled | Row::Interrupted => false,
        };
        if is_open {
            next.is_wrong |= next.first[at].is_some_and(|first| first != word);
            next.first[at].get_or_insert(word);
            next.rows[at] = Row::Decided(word, false);
        }
        let is_taken = is_open || self.has(Fault::BothAreTaken);
        next.devices[device] =
            if is_taken { Device::Taken(question, word) } else { Device::Late(question) };
    }
}

/// Writes the recorded answer to the agent.
///
/// It ignores what it does not wait for.
fn tell(next: &mut Moment, question: u8) {
    let at = usize::from(question);
    if let Row::Decided(word, _) = next.rows[at]
        && next.is_linked
    {
        tell_word(next, at, word);
    }
}

fn tell_word(next: &mut Moment, at: usize, word: Word) {
    next.is_wrong |= next.sent[at].is_some_and(|sent| sent != word);
    next.sent[at] = Some(word);
    if next.agents[at] == AtAgent::Waits {
        next.agents[at] = AtAgent::Told(word);
    }
}

fn noted(next: &mut Moment, question: u8) {
    if let Row::Decided(_, is_told) = &mut next.rows[usize::from(question)] {
        *is_told = true;
    }
}

impl Model for Questions {
    type State = Moment;
    type Action = Event;

    fn init_states(&self) -> Vec<Moment> {
        vec![Moment {
            agents: [AtAgent::Unasked; QUESTIONS],
            rows: [Row::Absent; QUESTIONS],
            first: [None; QUESTIONS],
            sent: [None; QUESTIONS],
            devices: [Device::Idle; DEVICES],
            is_up: true,
            is_linked: true,
            held: [false; QUESTIONS],
            parked: None,
            telling: None,
            is_ended: false,
            has_ended: false,
            skipped: [false; QUESTIONS],
            is_wrong: false,
            left: self.accidents,
        }]
    }

    fn actions(&self, now: &Moment, all: &mut Vec<Event>) {
        self.possible(now, all);
    }

    fn next_state(&self, now: &Moment, event: Event) -> Option<Moment> {
        Some(self.after(now, event))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let [acted, late, lost, withdrawn, interrupted] = COME_BY;
        vec![
            Property::always(DECIDED_ONCE, |_, now: &Moment| {
                !now.is_wrong && (0..QUESTIONS).all(|at| is_first(now, at))
            }),
            Property::always(OBEYED, |_, now: &Moment| {
                (0..QUESTIONS).all(|at| match now.agents[at] {
                    AtAgent::Told(word) => {
                        matches!(now.rows[at], Row::Decided(is, _) if is == word)
                    }
                    AtAgent::Unasked | AtAgent::Waits | AtAgent::Withdrawn | AtAgent::Gone => true,
                })
            }),
            Property::always(TRUE_REPLY, |_, now: &Moment| {
                let taken = now.devices.iter().filter_map(|device| match device {
                    Device::Taken(question, word) => Some((*question, *word)),
                    Device::Idle | Device::Sent(..) | Device::Late(_) | Device::Unknown => None,
                });
                let taken: Vec<(u8, Word)> = taken.collect();
                let is_true = |(question, word): &(u8, Word)| {
                    now.first[usize::from(*question)] == Some(*word)
                        && taken.iter().filter(|(other, _)| other == question).count() == 1
                };
                taken.iter().all(is_true)
            }),
            Property::always(NONE_LOST, |model: &Self, now: &Moment| {
                !is_at_rest(model, now)
                    || (0..QUESTIONS)
                        .all(|at| now.agents[at] != AtAgent::Waits || now.rows[at] == Row::Open)
            }),
            Property::always(NONE_FOR_NOTHING, |model: &Self, now: &Moment| {
                !is_at_rest(model, now)
                    || (0..QUESTIONS)
                        .all(|at| now.rows[at] != Row::Open || now.agents[at] == AtAgent::Waits)
            }),
            Property::sometimes(acted, |_, now: &Moment| {
                now.agents.iter().any(|agent| matches!(agent, AtAgent::Told(_)))
            }),
            Property::sometimes(late, |_, now: &Moment| {
                now.devices.iter().any(|device| matches!(device, Device::Late(_)))
            }),
            Property::sometimes(lost, |_, now: &Moment| now.devices.contains(&Device::Unknown)),
            Property::sometimes(withdrawn, |_, now: &Moment| now.rows.contains(&Row::Cancelled)),
            Property::sometimes(interrupted, |_, now: &Moment| {
                now.rows.contains(&Row::Interrupted)
            }),
        ]
    }
}

fn is_first(now: &Moment, at: usize) -> bool {
    match (now.first[at], now.rows[at]) {
        (Some(first), Row::Decided(word, _)) => first == word,
        (Some(_), _) => false,
        (None, row) => !matches!(row, Row::Decided(..)),
    }
}

/// Whether nothing is left that the program does by itself.
fn is_at_rest(model: &Questions, now: &Moment) -> bool {
    let mut all = Vec::new();
    model.possible(now, &mut all);
    all.iter().all(|event| !event.is_own())
}

/// What a search of the questions found.
#[derive(Debug)]
pub struct Found {
    /// Different states.
    pub states: usize,
    /// What was come by, of [`COME_BY`].
    pub reached: Vec<&'static str>,
    /// What was broken, each with the shortest way there.
    pub broken: Vec<(&'static str, Vec<Event>)>,
}

/// Searches everything, or until something is broken.
#[must_use]
pub fn search(model: Questions, threads: usize) -> Found {
    let builder = model.checker().threads(threads);
    let checker = builder.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let (mut reached, mut broken) = (Vec::new(), Vec::new());
    for (name, path) in checker.discoveries() {
        if COME_BY.contains(&name) {
            reached.push(name);
        } else {
            let steps = path.into_vec();
            broken.push((name, steps.into_iter().filter_map(|(_, event)| event).collect()));
        }
    }
    Found { states: checker.unique_state_count(), reached, broken }
}
