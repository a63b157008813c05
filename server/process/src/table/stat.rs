//! One line of `/proc/<pid>/stat` (format: `proc_pid_stat(5)`).

/// `PF_KTHREAD` of the flags field: a thread of the kernel without a program.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The fields used here, all of one read and so of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    pub(crate) state: u8,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    flags: u64,
    /// Clock ticks since boot.
    pub(crate) start_ticks: u64,
}

impl Stat {
    /// Reads the line of a pid; `None` when it is not one.
    pub(crate) fn parse(pid: i32, line: &[u8]) -> Option<Self> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        // The name may hold anything, closing parentheses included: the fields start after the last.
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let number = std::str::from_utf8(line.get(..open)?).ok()?;
        if number.trim().parse() != Ok(pid) {
            return None;
        }
        let rest = std::str::from_utf8(line.get(close.checked_add(1)?..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // Field n of the manual, which counts from 1 and has the pid and the name first.
        let field = |n: usize| fields.get(n.checked_sub(3)?).copied();
        let [state] = field(3)?.as_bytes() else {
            return None;
        };
        Some(Self {
            pid,
            state: *state,
            parent: field(4)?.parse().ok()?,
            group: field(5)?.parse().ok()?,
            session: field(6)?.parse().ok()?,
            flags: field(9)?.parse().ok()?,
            start_ticks: field(22)?.parse().ok()?,
        })
    }

    /// Ended, at most waiting to be collected by its parent.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    pub(crate) fn is_kernel_thread(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
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
