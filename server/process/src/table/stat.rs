//! One line of `/proc/<pid>/stat` (format: `proc_pid_stat(5)`).

/// The bit `PF_KTHREAD` of the flags field: a thread of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The fields used here. One read gives all of them, so they are of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    pub(crate) state: u8,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    flags: u64,
    /// Clock ticks since boot; seconds since the epoch on systems without `/proc`.
    pub(crate) start_ticks: u64,
    /// Wait status of a process that nobody collected. 0 where it may not be read.
    pub(crate) exit_code: i32,
}

/// The processor time and memory of a process, in the kernel's units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    /// Clock ticks of its own threads, in user and kernel mode.
    pub(crate) own_ticks: u64,
    /// Clock ticks of its ended children.
    pub(crate) collected_ticks: u64,
    /// Resident pages.
    pub(crate) resident_pages: u64,
}

impl Stat {
    /// Parses the line of a pid. `None` if it is not the line of this pid.
    #[cfg(target_os = "linux")]
    pub(crate) fn parse(pid: i32, line: &[u8]) -> Option<Self> {
        let fields = Fields::of(pid, line)?;
        let [state] = fields.text(3)?.as_bytes() else {
            return None;
        };
        Some(Self {
            pid,
            state: *state,
            parent: fields.number(4)?,
            group: fields.number(5)?,
            session: fields.number(6)?,
            flags: fields.number(9)?,
            start_ticks: fields.number(22)?,
            exit_code: fields.number(52).unwrap_or_default(),
        })
    }

    /// What a system without such a line says of a process.
    #[cfg(any(test, not(target_os = "linux")))]
    pub(super) fn of_system(
        pid: i32,
        is_dead: bool,
        parent: i32,
        group: i32,
        session: i32,
        start_ticks: u64,
    ) -> Self {
        let state = if is_dead { b'Z' } else { b'S' };
        Self { pid, state, parent, group, session, flags: 0, start_ticks, exit_code: 0 }
    }

    /// Whether it has ended. It may still wait for its parent to collect its status.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    pub(crate) fn is_kernel_thread(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }
}

#[cfg(target_os = "linux")]
impl Account {
    /// Parses the same line.
    pub(crate) fn parse(pid: i32, line: &[u8]) -> Option<Self> {
        let fields = Fields::of(pid, line)?;
        let sum = |a: usize, b: usize| {
            let (a, b): (u64, u64) = (fields.number(a)?, fields.number(b)?);
            Some(a.saturating_add(b))
        };
        Some(Self {
            own_ticks: sum(14, 15)?,
            collected_ticks: sum(16, 17)?,
            resident_pages: fields.number(24)?,
        })
    }
}

/// The fields after the name.
#[cfg(target_os = "linux")]
struct Fields<'a>(Vec<&'a str>);

#[cfg(target_os = "linux")]
impl<'a> Fields<'a> {
    fn of(pid: i32, line: &'a [u8]) -> Option<Self> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        // The name may contain closing parentheses: the fields start after the last one.
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let number = std::str::from_utf8(line.get(..open)?).ok()?;
        if number.trim().parse() != Ok(pid) {
            return None;
        }
        let rest = std::str::from_utf8(line.get(close.checked_add(1)?..)?).ok()?;
        Some(Self(rest.split_ascii_whitespace().collect()))
    }

    /// Field n of the manual page, which counts from 1 and starts with pid and name.
    fn text(&self, n: usize) -> Option<&'a str> {
        self.0.get(n.checked_sub(3)?).copied()
    }

    fn number<T: std::str::FromStr>(&self, n: usize) -> Option<T> {
        self.text(n)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn f4_no_name_shifts_a_field(
            name in prop::collection::vec(any::<u8>(), 0..16),
            pid in 1_i32.., parent in 0_i32.., ticks: u64,
        ) {
            let mut line = format!("{pid} (").into_bytes();
            line.extend(&name);
            line.extend(
                format!(
                    ") S {parent} {pid} 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 {ticks} 99 98\n"
                )
                .into_bytes(),
            );
            let stat = Stat::parse(pid, &line).unwrap();
            prop_assert_eq!((stat.pid, stat.parent, stat.group), (pid, parent, pid));
            prop_assert_eq!((stat.start_ticks, stat.session), (ticks, 7));
            prop_assert!(!stat.is_dead() && !stat.is_kernel_thread());
            prop_assert_eq!(Stat::parse(pid.wrapping_add(1), &line), None);
        }

        #[test]
        fn no_line_panics(
            line in "([0-9]{1,3} )?\\(?[ -~]{0,20}\\)?( [SZR]( -?[0-9]{1,20}){0,25})?",
        ) {
            let _ = Stat::parse(1, line.as_bytes());
        }
    }
}
