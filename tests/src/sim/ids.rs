//! Identifiers that look like the server's, derived from the seed.

/// A stream of numbers that depends on its name and the seed only (`splitmix64`).
#[derive(Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    /// The stream named by `parts`; equal seed and parts give equal numbers.
    pub(crate) fn new(seed: u64, parts: &[&str]) -> Self {
        // FNV-1a, with a separator so that ("ab", "c") and ("a", "bc") differ.
        let hash = parts
            .iter()
            .flat_map(|p| p.bytes().chain([0xff]))
            .fold(0xcbf2_9ce4_8422_2325_u64, |h, byte| {
                (h ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
        Self(hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// `<prefix>01SIM…` in the alphabet and length of the server's identifiers.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
        let mut id = format!("{prefix}01SIM");
        for _ in 0..19 {
            let at = usize::try_from(self.next() % 58).unwrap_or(0);
            id.extend(ALPHABET.get(at).copied().map(char::from));
        }
        id
    }

    /// Thirty-two hexadecimal digits.
    pub(crate) fn hex(&mut self) -> String {
        format!("{:016x}{:016x}", self.next(), self.next())
    }

    /// A version 4 uuid.
    pub(crate) fn uuid(&mut self) -> String {
        let high = self.next();
        let low = self.next();
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_identifiers_and_others_do_not() {
        let id = |seed, part| Draw::new(seed, &["env", part]).id("env_");
        assert_eq!(id(1, "a"), id(1, "a"));
        assert_ne!(id(1, "a"), id(2, "a"));
        assert_ne!(id(1, "a"), id(1, "b"));
        assert!(id(1, "a").starts_with("env_01SIM"));
        assert_eq!(Draw::new(1, &["x"]).uuid().len(), 36);
    }
}
