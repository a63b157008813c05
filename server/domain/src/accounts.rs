//! Who else can log in on this machine, and so reaches a loopback address (H146).
//!
//! Pure rules over the lists of the system; reading them is not its business.

use crate::log_escape::escape;
use std::ops::RangeInclusive;

/// The ids of people where `login.defs` says nothing else.
const PEOPLE: RangeInclusive<u32> = 1000..=60_000;
/// Programs in the place of a shell that let nobody in.
const CLOSED: [&str; 6] = ["nologin", "false", "true", "sync", "halt", "shutdown"];
/// Most names in a sentence.
const SHOWN: usize = 3;

/// The ids that `login.defs` gives to people.
#[must_use]
pub fn people(login_defs: &str) -> RangeInclusive<u32> {
    let value = |key: &str| {
        let mut lines = login_defs.lines().map(str::split_whitespace);
        let found = lines.find_map(|mut words| (words.next() == Some(key)).then(|| words.next()));
        found.flatten().and_then(|value| value.parse().ok())
    };
    value("UID_MIN").unwrap_or(*PEOPLE.start())..=value("UID_MAX").unwrap_or(*PEOPLE.end())
}

/// The accounts of a `passwd` list that log in beside `own`, by name.
///
/// Root is left out: it reaches everything in any case. So is a line that is not whole.
#[must_use]
pub fn others(passwd: &str, people: &RangeInclusive<u32>, own: u32) -> Vec<String> {
    let mut ids = Vec::new();
    let mut names = Vec::new();
    for line in passwd.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, id, _, _, _, shell] = fields.as_slice() else { continue };
        let Ok(id) = id.parse::<u32>() else { continue };
        let program = shell.trim().rsplit('/').next().unwrap_or_default();
        let may_log_in = people.contains(&id) && !CLOSED.contains(&program);
        // One account may have several names.
        if may_log_in && id != own && !ids.contains(&id) {
            ids.push(id);
            names.push((*name).to_owned());
        }
    }
    names
}

/// `1 other account of this machine can log in (bob)`.
#[must_use]
pub fn told(others: &[String]) -> String {
    let accounts = match others.len() {
        1 => "1 other account".to_owned(),
        many => format!("{many} other accounts"),
    };
    let names: Vec<String> =
        others.iter().take(SHOWN).map(|name| escape(name).into_owned()).collect();
    let more = if others.len() > SHOWN { ", …" } else { "" };
    format!("{accounts} of this machine can log in ({}{more})", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "root:x:0:0:root:/root:/bin/bash\n\
        daemon:x:1:1::/:/usr/sbin/nologin\n\
        alice:x:1000:1000:Alice,,,:/home/alice:/bin/bash\n\
        alias:x:1000:1000::/home/alice:/bin/sh\n\
        bob:x:1001:1001::/home/bob:\n\
        backup:x:1002:1002::/srv:/usr/sbin/nologin\n\
        sleeper:x:1003:1003::/srv:/bin/false\n\
        half:x:1004\n\
        :x:none:::::\n\
        nobody:x:65534:65534::/:/bin/sh\n";

    #[test]
    fn h146_only_people_who_can_log_in_count_and_not_we_ourselves() {
        assert_eq!(others(LIST, &PEOPLE, 0), ["alice", "bob"]);
        assert_eq!(others(LIST, &PEOPLE, 1000), ["bob"]);
        assert_eq!(others(LIST, &PEOPLE, 998), ["alice", "bob"]);
        assert!(others("alice:x:1000:1000::/home/alice:/bin/bash\n", &PEOPLE, 1000).is_empty());
        assert!(others("", &PEOPLE, 1000).is_empty());
    }

    #[test]
    fn the_ids_of_people_are_those_of_the_machine() {
        let other = people("# UID_MIN 5\nUID_MIN\t\t  500\nSYS_UID_MAX 99\nUID_MAX 0x10\n");
        assert_eq!(other, 500..=60_000);
        assert_eq!(people(""), PEOPLE);
        assert_eq!(others("old:x:600:600::/home/old:/bin/sh", &other, 0), ["old"]);
    }

    #[test]
    fn a_sentence_names_some_and_counts_all() {
        let of = |names: &[&str]| told(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(of(&["bob"]), "1 other account of this machine can log in (bob)");
        let many = of(&["a", "b", "c", "d"]);
        assert_eq!(many, "4 other accounts of this machine can log in (a, b, c, …)");
    }
}
