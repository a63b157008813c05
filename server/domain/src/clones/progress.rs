//! How far git says it is.

/// The phases that git names, in their order (git 2.47).
pub const PHASES: [&str; 7] =
    ["Enumerating", "Counting", "Compressing", "Receiving", "Resolving", "Total", "Updating"];

/// One line of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// A word of [`PHASES`], or empty before the first.
    pub phase: &'static str,
    /// Of this phase; `None` where git counts without knowing the end.
    pub percent: Option<u8>,
    /// Bytes received so far, as git rounds them.
    pub bytes: Option<u64>,
}

/// Reads one line, without its end. `None` if it is about something else.
///
/// Lines of the other side are believed as far as they go: they are only shown.
#[must_use]
pub fn read(line: &str) -> Option<Progress> {
    let line = line.trim().strip_prefix("remote:").unwrap_or(line).trim();
    let (name, rest) = line.split_once([':', ' '])?;
    let phase = PHASES.into_iter().find(|phase| *phase == name)?;
    let rest = if phase == "Total" { "" } else { rest.split_once(':').map_or(rest, |(_, r)| r) };
    let percent = rest.split_once('%').and_then(|(number, _)| number.trim().parse().ok());
    Some(Progress { phase, percent: percent.filter(|it| *it <= 100), bytes: received(rest) })
}

/// `…), 1.20 MiB | 2.30 MiB/s`
fn received(rest: &str) -> Option<u64> {
    let (_, after) = rest.split_once("), ")?;
    let mut words = after.split_whitespace();
    let (number, unit) = (words.next()?, words.next()?);
    let unit = match unit.trim_end_matches(',') {
        "bytes" => 1_u64,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().ok()?;
    let digits = u32::try_from(part.len()).ok().filter(|digits| *digits <= 3)?;
    let part: u64 = part.parse().ok()?;
    whole.checked_mul(unit)?.checked_add(part.checked_mul(unit)? / 10_u64.pow(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_git_are_read() {
        let at = |phase, percent, bytes| Some(Progress { phase, percent, bytes });
        for (line, expected) in [
            ("remote: Enumerating objects: 5, done.", at("Enumerating", None, None)),
            ("remote: Counting objects: 100% (5/5), done.", at("Counting", Some(100), None)),
            ("remote: Compressing objects:  50% (1/2)", at("Compressing", Some(50), None)),
            (
                "Receiving objects:  54% (540/1000), 1.50 MiB | 2.00 MiB/s",
                at("Receiving", Some(54), Some(1_572_864)),
            ),
            (
                "Receiving objects: 100% (3/3), 228 bytes | 228.00 KiB/s, done.",
                at("Receiving", Some(100), Some(228)),
            ),
            ("Resolving deltas:   7% (7/99)", at("Resolving", Some(7), None)),
            ("remote: Total 5 (delta 0), reused 0 (delta 0)", at("Total", None, None)),
            ("Updating files: 100% (9/9), done.", at("Updating", Some(100), None)),
            ("Receiving objects: 999% (9/1)", at("Receiving", None, None)),
            (
                "Receiving objects: 1% (1/9), 99999999999999999999.9 GiB",
                at("Receiving", Some(1), None),
            ),
            ("Cloning into 'x'...", None),
            ("remote: Receivingobjects: 5%", None),
            ("", None),
            ("fatal: early EOF", None),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }
}
