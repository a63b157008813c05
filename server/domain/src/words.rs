//! Searches a text for many words at once, and classifies its characters.
//!
//! One fast pass over the bytes comes before anything that reads them one by one.

use aho_corasick::packed::{Config, Searcher};
use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// Bytes folded at once, on the stack.
const WINDOW: usize = 512;
/// Seen again with the next window, so that no word is lost between two.
const OVERLAP: usize = 64;
/// Least length of a search window, because the fast search needs some room.
/// A shorter piece is searched with the rest of the buffer: zeros, or bytes searched before.
const ROOM: usize = 64;

/// Most words that are compared many bytes at once.
///
/// With more of them too many places look like the begin of one: with 180 words, redaction of text
/// full of checksums was more than twice as fast with a search that reads every byte once.
const FEW: usize = 32;

#[derive(Debug)]
enum Search {
    /// Compares many bytes at once.
    Few(Searcher),
    /// Reads every byte once.
    Many(AhoCorasick),
    /// A processor that cannot search for several words at once.
    Slow,
}

/// Words to look for in ASCII, whatever the case of their letters.
///
/// May name a word that is not there; never leaves out one that is. None may be the begin of
/// another, or be longer than 64 bytes; with less than three the search is slow.
pub(crate) struct Words {
    search: Search,
}

impl Words {
    /// Prepares to look for these.
    pub fn new<'w>(words: impl IntoIterator<Item = &'w str>) -> Self {
        let words: Vec<&str> = words.into_iter().collect();
        let search = if words.len() <= FEW {
            let folded = words.iter().map(|word| word.bytes().map(fold).collect::<Vec<u8>>());
            Config::new().builder().extend(folded).build().map(Search::Few)
        } else {
            let mut builder = AhoCorasick::builder();
            let many = builder.kind(Some(AhoCorasickKind::DFA)).ascii_case_insensitive(true);
            many.build(words).ok().map(Search::Many)
        };
        Self { search: search.unwrap_or(Search::Slow) }
    }

    /// Whether this processor can search for several words at once.
    /// Where it cannot, every word is reported as found.
    pub fn is_fast(&self) -> bool {
        !matches!(self.search, Search::Slow)
    }

    /// Tells of each word in the text, perhaps several times, by its number.
    pub fn find(&self, text: &str, mut found: impl FnMut(usize)) {
        let search = match &self.search {
            Search::Few(search) => search,
            Search::Many(search) => {
                let words = search.find_overlapping_iter(text);
                return words.for_each(|word| found(word.pattern().as_usize()));
            }
            Search::Slow => return,
        };
        let mut folded = [0; WINDOW];
        let mut rest = text.as_bytes();
        loop {
            let piece = rest.get(..WINDOW).unwrap_or(rest);
            for (folded, byte) in folded.iter_mut().zip(piece) {
                *folded = fold(*byte);
            }
            let window = folded.get(..piece.len().max(ROOM)).unwrap_or_default();
            let mut span = aho_corasick::Span { start: 0, end: window.len() };
            while let Some(word) = search.find_in(window, span) {
                found(word.pattern().as_usize());
                // The next one may begin inside of this one.
                span.start = word.start() + 1;
            }
            if rest.len() <= WINDOW {
                return;
            }
            rest = rest.get(WINDOW - OVERLAP..).unwrap_or_default();
        }
    }

    /// Whether one of them may be in the text.
    pub fn may_occur(&self, text: &str) -> bool {
        let mut is_found = !self.is_fast();
        self.find(text, |_| is_found = true);
        is_found
    }
}

/// Makes upper and lower case equal. Some other characters become equal too.
const fn fold(byte: u8) -> u8 {
    byte | 0x20
}

/// Bytes looked at together.
const LANES: usize = 32;

/// All bits or none.
const fn mask(is_set: bool) -> u8 {
    (is_set as u8).wrapping_neg()
}

/// What kinds of characters a text holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds(u8);

impl Kinds {
    const WIDE: u8 = 0x80;
    const CONTROL: u8 = 1;
    const ENCODED: u8 = 2;

    /// All of them.
    #[cfg(any(test, fuzzing))]
    pub const ALL: Self = Self(Self::WIDE | Self::CONTROL | Self::ENCODED);

    /// Reads every byte, many at once, without branches.
    /// The results of the lanes are joined at the end.
    pub fn of(text: &str) -> Self {
        let mut lanes = [0; LANES];
        let (blocks, rest) = text.as_bytes().as_chunks::<LANES>();
        let mut last = [b' '; LANES];
        last.iter_mut().zip(rest).for_each(|(last, byte)| *last = *byte);
        for block in blocks.iter().chain([&last]) {
            for (lane, byte) in lanes.iter_mut().zip(block) {
                *lane |= Self::of_byte(*byte);
            }
        }
        Self(lanes.into_iter().fold(0, |all, lane| all | lane))
    }

    const fn of_byte(byte: u8) -> u8 {
        let is_low = (byte < 0x20) & (byte != b'\t') & (byte != b'\r') & (byte != b'\n');
        let control = Self::CONTROL & mask(is_low | (byte == 0x7f));
        let encoded = Self::ENCODED & mask((byte == b'%') | (byte == b'\\'));
        (byte & Self::WIDE) | control | encoded
    }

    /// Whether there is anything beyond ASCII.
    pub fn has_wide(self) -> bool {
        self.0 & Self::WIDE != 0
    }

    /// Whether there is a control character of ASCII other than tab and line ends.
    pub fn has_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// Whether there is a `%` or a backslash, with which encodings begin.
    pub fn may_be_encoded(self) -> bool {
        self.0 & Self::ENCODED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_wherever_it_stands() {
        let list = ["sk-", "Bearer", "ion_", "you must be logged in to use remote control"];
        let words = Words::new(list);
        assert!(words.is_fast(), "this processor searches slowly");
        for (number, word) in list.iter().enumerate() {
            for before in (0..80).chain(WINDOW - 70..WINDOW + 20).chain([2 * WINDOW - 80, 5_000]) {
                for after in [0, 1, 100] {
                    let (before, after) = (".".repeat(before), ".".repeat(after));
                    let text = format!("{before}{}{after}", word.to_ascii_uppercase());
                    let mut found = Vec::new();
                    words.find(&text, |number| found.push(number));
                    assert!(found.contains(&number), "{text}");
                    assert!(found.iter().all(|found| *found == number), "{text}");
                }
            }
        }
        assert!(!words.may_occur(&"sk_ bear ion-".repeat(100)));
    }

    #[test]
    fn words_that_overlap_are_all_found() {
        let words = Words::new(["abcd", "cdef", "def"]);
        let mut found = Vec::new();
        words.find("ABCDEF", |number| found.push(number));
        assert_eq!(found, [0, 1, 2]);
    }

    #[test]
    fn every_kind_of_character_is_seen_wherever_it_stands() {
        for before in [0, 1, 15, 64, 1_000] {
            let of = |what: &str| Kinds::of(&format!("{}{what} and more", "x".repeat(before)));
            assert!(of("é").has_wide());
            assert!(of("\u{1b}").has_control() && of("\u{7f}").has_control());
            assert!(of("%").may_be_encoded() && of("\\").may_be_encoded());
            assert_eq!(of("\t\r\n ~"), Kinds(0));
        }
    }
}
