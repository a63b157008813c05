//! The corpus that redaction is judged by: planted secrets and harmless lines.
//!
//! All of it is generated from a fixed seed. No secret here was ever one: letters and digits are
//! drawn by chance, and only the form is that of the service named.

#[path = "corpus/harmless.rs"]
mod harmless;
#[path = "corpus/planted.rs"]
mod planted;

/// Begins every corpus.
const SEED: u64 = 17;
/// How many secrets are planted.
pub const PLANTED: usize = 500;

/// A text with one secret in it.
#[derive(Debug, Clone)]
pub struct Planted {
    /// Whose form it is.
    pub kind: &'static str,
    /// The text, of one or several lines.
    pub text: String,
    /// What must not be seen of it; of a private key each line.
    pub secrets: Vec<String>,
}

impl Planted {
    /// Whether no larger part of the secret is left in `out`.
    ///
    /// As large is more than a third of it, and at least four characters.
    pub fn is_hidden_in(&self, out: &str) -> bool {
        self.secrets.iter().all(|secret| {
            let letters: Vec<char> = secret.chars().collect();
            let piece = (letters.len() / 3 + 1).max(4).min(letters.len());
            letters.windows(piece).all(|part| !out.contains(&part.iter().collect::<String>()))
        })
    }
}

/// A line without a secret.
#[derive(Debug, Clone)]
pub struct Harmless {
    /// What it looks like.
    pub kind: &'static str,
    /// The line.
    pub text: String,
}

/// All planted secrets, in the same order each time.
pub fn planted() -> Vec<Planted> {
    planted::all(&mut Dice(SEED))
}

/// All harmless lines, in the same order each time.
pub fn harmless() -> Vec<Harmless> {
    harmless::all(&mut Dice(!SEED))
}

/// Numbers by chance that are the same on every machine (`SplitMix64`).
pub struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        let many = u64::try_from(from.len()).expect("a table is short");
        let at = usize::try_from(self.next() % many).expect("smaller than a table");
        from.get(at).expect("within the table")
    }

    /// A pattern with its places filled in: `{A20}` is twenty letters and digits.
    ///
    /// `A` letters and digits, `a` those in lower case, `U` those in upper case, `h` hexadecimal,
    /// `d` decimal, `w` with `_` and `-`, `b` with `+` and `/`, `P` like a password.
    /// A single digit after the letter can be any number, such as `{h64}`.
    fn fill(&mut self, pattern: &str) -> String {
        let mut out = String::new();
        let mut rest = pattern;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            let place = after.split_once('}').and_then(|(place, after)| {
                let kind = place.chars().next().filter(|kind| "AaUhdwbP".contains(*kind))?;
                Some((kind, place.get(1..)?.parse::<usize>().ok()?, after))
            });
            let Some((kind, count, after)) = place else {
                out.push('{');
                rest = after;
                continue;
            };
            out.extend((0..count).map(|at| self.letter(kind, at == 0 || at + 1 == count)));
            rest = after;
        }
        out + rest
    }

    /// One letter; those at the ends of a run are letters or digits.
    fn letter(&mut self, kind: char, is_end: bool) -> char {
        let letters = match (kind, is_end) {
            ('h', _) => "0123456789abcdef",
            ('d', _) => "0123456789",
            ('a', _) => "abcdefghijklmnopqrstuvwxyz0123456789",
            ('U', _) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
            ('w', false) => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
            ('b', false) => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            ('P', false) => "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789!#+-_.*",
            _ => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        };
        let letters: Vec<char> = letters.chars().collect();
        *self.pick(&letters)
    }
}
