//! Seeded faults in the rules or in the order of steps. The search must find each.

/// One seeded fault. Without one the model is the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// A stop signals first and records its intent afterwards.
    SignalBeforeIntent,
    /// A write does not compare the revision that it was decided on.
    NoRevisionCheck,
    /// Nobody takes the project lock.
    NoLock,
    /// The project lock outlives its holder.
    LockOutlivesHolder,
    /// The launcher is told to go before its identity is committed.
    GoBeforeIdentity,
    /// The row of a spawn is written after the agent was started.
    RowAfterLaunch,
    /// A launcher whose order has ended starts the agent all the same.
    LauncherNeedsNoOrder,
    /// An exit is taken for a crash although a stop is recorded.
    ExitForgetsIntent,
    /// A bridge counts as ready as soon as it runs.
    ReadyWithoutEvidence,
    /// A resume keeps the identity of the ended generation.
    KeepsIdentity,
    /// An interrupted launch is called off without looking at its process.
    InterruptedWithoutLook,
    /// A row is forgotten without asking about its process.
    ForgetWithoutProbe,
    /// A signal goes to whoever has the pid.
    SignalWithoutProof,
    /// A fact about an earlier generation is applied to the present one.
    FactOfAnyGeneration,
    /// A slow start is recorded as failed before its process is stopped.
    ExpiredBeforeStopped,
    /// A project may have two live rows, and a launch does not look at what is live.
    NoAdmission,
    /// Nothing makes the server look again when a wake-up was lost.
    NoSecondLook,
    /// Writes of others between the first pass and the first read are missed.
    WatchBeginsLate,
    /// A pass that could not read the registry is not repeated.
    FailedPassForgotten,
    /// An unfinished stop that another process recorded is not checked again.
    OpenStopForgotten,
    /// A wrong end with a recorded stop is watched instead of carried out.
    WrongEndOnlyWatched,
    /// A launch does not ask about the process of a record that says it ended.
    LaunchWithoutProbe,
    /// The keeper of a session is not recorded with its agent.
    KeeperUnrecorded,
    /// Nobody notices that a session has lost its terminal.
    TerminalLossUnseen,
    /// A session that was refused remote control counts as ready.
    ReadyThoughRefused,
    /// A session that was refused remote control is left alone.
    RefusalIgnored,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Self; 26] = [
        Self::SignalBeforeIntent,
        Self::NoRevisionCheck,
        Self::NoLock,
        Self::LockOutlivesHolder,
        Self::GoBeforeIdentity,
        Self::RowAfterLaunch,
        Self::LauncherNeedsNoOrder,
        Self::ExitForgetsIntent,
        Self::ReadyWithoutEvidence,
        Self::KeepsIdentity,
        Self::InterruptedWithoutLook,
        Self::ForgetWithoutProbe,
        Self::SignalWithoutProof,
        Self::FactOfAnyGeneration,
        Self::ExpiredBeforeStopped,
        Self::NoAdmission,
        Self::NoSecondLook,
        Self::WatchBeginsLate,
        Self::FailedPassForgotten,
        Self::OpenStopForgotten,
        Self::WrongEndOnlyWatched,
        Self::LaunchWithoutProbe,
        Self::KeeperUnrecorded,
        Self::TerminalLossUnseen,
        Self::ReadyThoughRefused,
        Self::RefusalIgnored,
    ];
}
