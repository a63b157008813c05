//! Finding text in text, without regard to case, and marking the hits.

/// Folds the case of a character.
///
/// One character becomes one character, so positions in the folded text are positions in the text.
fn fold(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// What is looked for, folded once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needle(Vec<char>);

impl Needle {
    /// From what a person typed; blanks around it do not count.
    #[must_use]
    pub fn new(typed: &str) -> Self {
        Self(typed.trim().chars().map(fold).collect())
    }

    /// Nothing is looked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it occurs in the text.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        !self.is_empty() && self.split(text).iter().any(|(_, hit)| *hit)
    }

    /// The text in pieces: (piece, is a hit). The pieces joined are the text.
    #[must_use]
    pub fn split<'a>(&self, text: &'a str) -> Vec<(&'a str, bool)> {
        let Some((first, rest)) = self.0.split_first() else {
            return vec![(text, false)];
        };
        let mut pieces = Vec::new();
        let mut plain_from = 0;
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            if fold(c) != *first {
                continue;
            }
            let mut ahead = chars.clone();
            if !rest.iter().all(|want| ahead.next().map(|(_, c)| fold(c)) == Some(*want)) {
                continue;
            }
            let end = ahead.clone().next().map_or(text.len(), |(end, _)| end);
            pieces.extend(text.get(plain_from..at).map(|piece| (piece, false)));
            pieces.extend(text.get(at..end).map(|piece| (piece, true)));
            plain_from = end;
            chars = ahead;
        }
        pieces.extend(text.get(plain_from..).map(|piece| (piece, false)));
        pieces.retain(|(piece, _)| !piece.is_empty());
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::Needle;

    #[test]
    fn every_hit_is_marked_at_its_place_also_beyond_ascii() {
        assert_eq!(
            Needle::new(" übung ").split("Übung-übung2"),
            [("Übung", true), ("-", false), ("übung", true), ("2", false)]
        );
        assert_eq!(Needle::new("aa").split("aaa"), [("aa", true), ("a", false)]);
        assert_eq!(Needle::new("x").split("web"), [("web", false)]);
    }

    #[test]
    fn nothing_looked_for_is_found_nowhere() {
        assert!(!Needle::new("  ").is_in("web"));
        assert_eq!(Needle::new(" ").split("web"), [("web", false)]);
        assert!(Needle::new("ß").split("").is_empty());
    }

    #[test]
    fn the_pieces_joined_are_the_text() {
        let text = "İstanbul ﬁne 👩‍💻 npm test; NPM TEST";
        for needle in ["i", "npm test", "💻", "ﬁ"] {
            let joined: String =
                Needle::new(needle).split(text).into_iter().map(|(piece, _)| piece).collect();
            assert_eq!(joined, text);
        }
    }
}
