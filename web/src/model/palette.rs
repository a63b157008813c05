//! What the command palette offers for what is typed.

use crate::model::order;

/// Most entries shown.
pub const MOST: usize = 40;

/// What an entry does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Does {
    /// Goes to an app-local path.
    Go(String),
    /// Opens the launch dialog of a project.
    Launch(String),
    /// Resumes a bridge: id and project.
    Resume(String, String),
    /// Opens the dialog that restarts the service.
    Restart,
    /// Copies a text.
    Copy(String),
    /// Chooses a theme; empty follows the system.
    Theme(&'static str),
    /// Cannot now, for this reason.
    Refuses(String),
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What it says.
    pub title: String,
    /// What it is, or why it cannot act.
    pub note: String,
    /// What it does.
    pub does: Does,
}

/// How well a title fits; smaller is better. Both in lower case.
fn fit(title: &str, needle: &str) -> Option<u8> {
    if title.starts_with(needle) {
        return Some(0);
    }
    match title.find(needle) {
        Some(at) if title.get(..at).is_some_and(|before| before.ends_with(' ')) => Some(1),
        Some(_) => Some(2),
        None => {
            let mut rest = title.chars();
            needle.chars().all(|c| rest.any(|h| h == c)).then_some(3)
        }
    }
}

/// Collects offers that match the search.
///
/// The best come first; equal ones keep their order.
#[derive(Debug)]
pub struct Offered {
    needle: String,
    fits: Vec<(String, Item)>,
}

impl Offered {
    /// For what is typed.
    #[must_use]
    pub fn new(typed: &str) -> Self {
        Self { needle: typed.trim().to_lowercase(), fits: Vec::new() }
    }

    /// Whether nothing is typed.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.needle.is_empty()
    }

    /// Offers an entry, which is only made when it fits.
    pub fn offer(&mut self, verb: &str, object: &str, make: impl FnOnce() -> (String, Does)) {
        let title = match (verb, object) {
            ("", title) | (title, "") => title.to_owned(),
            (verb, object) => format!("{verb} {object}"),
        };
        if let Some(fit) = fit(&title.to_lowercase(), &self.needle) {
            let (note, does) = make();
            let key = format!("{fit}{:08}", self.fits.len());
            self.fits.push((key, Item { title, note, does }));
        }
    }

    /// The entries.
    #[must_use]
    pub fn best(self) -> Vec<Item> {
        let keys = self.fits.iter().enumerate().map(|(at, (key, _))| (key.clone(), at.to_string()));
        let order = order::sorted(keys.collect());
        let at = order.iter().take(MOST).filter_map(|at| at.parse::<usize>().ok());
        at.filter_map(|at| self.fits.get(at).map(|(_, item)| item.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(typed: &str, offers: &[(&str, &str)]) -> Vec<String> {
        let mut offered = Offered::new(typed);
        for (verb, object) in offers {
            offered.offer(verb, object, || (String::new(), Does::Go(String::new())));
        }
        offered.best().into_iter().map(|item| item.title).collect()
    }

    const SOME: [(&str, &str); 5] = [
        ("Home", ""),
        ("", "web-frontend"),
        ("Launch", "web-frontend"),
        ("Stop", "api"),
        ("Launch", "api"),
    ];

    #[test]
    fn what_begins_with_the_words_comes_before_what_holds_them() {
        assert_eq!(titles("WEB", &SOME), ["web-frontend", "Launch web-frontend"]);
        assert_eq!(titles("stop a", &SOME), ["Stop api"]);
        assert_eq!(titles("api", &SOME), ["Stop api", "Launch api"]);
    }

    #[test]
    fn letters_in_order_are_enough_and_nothing_typed_offers_everything_as_given() {
        assert_eq!(titles("lnch wbf", &SOME), ["Launch web-frontend"]);
        assert_eq!(titles(" ", &SOME).first().map(String::as_str), Some("Home"));
        assert_eq!(titles("", &SOME).len(), SOME.len());
        assert!(titles("zzz", &SOME).is_empty());
    }

    #[test]
    fn a_long_list_is_cut() {
        let many: Vec<(&str, &str)> = vec![("", "p"); 10_000];
        assert_eq!(titles("p", &many).len(), MOST);
    }
}
