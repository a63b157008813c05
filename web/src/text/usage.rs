//! Words about what a bridge uses of processor and memory.

/// Processor time.
#[must_use]
pub fn percent(of: i64) -> String {
    format!("{of} %")
}
/// Memory.
#[must_use]
pub fn mib(of: u64) -> String {
    format!("{of} MiB")
}
/// Memory, with one digit after the point.
#[must_use]
pub fn gib(of: u64, tenths: u64) -> String {
    format!("{of}.{tenths} GiB")
}
/// Processor time, named.
#[must_use]
pub fn cpu(percent: &str) -> String {
    // A figure stays with its name and its unit.
    format!("CPU {percent}").replace(' ', "\u{a0}")
}
/// A curve in words.
#[must_use]
pub fn curve(now: &str, most: &str, span: &str, memory: &str, is_share: bool) -> String {
    let what = if is_share { "of all cores" } else { "where 100 % is one core" };
    format!("CPU now {now}, max {most} in {span}, {what}; {memory}")
}
