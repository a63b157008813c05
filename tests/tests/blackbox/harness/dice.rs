//! Chance that can be repeated.

/// A stream of numbers that depends on its seed only (`splitmix64`).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The stream and its seed: 1, or what a variable of the environment says.
    pub fn seeded(variable: &str) -> (Self, u64) {
        let seed = std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
        (Self(seed), seed)
    }

    pub fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let at = self.roll(of.len() as u64);
        &of[usize::try_from(at).unwrap()]
    }

    pub fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.roll(most + 1)).map(|_| u8::try_from(self.roll(256)).unwrap()).collect()
    }
}
