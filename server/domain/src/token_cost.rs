//! Tokens of a model and what they cost by public prices.

/// Tokens by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Read by the model, outside any cache.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
    /// Written into the cache.
    pub cache_creation: u64,
    /// Read from the cache.
    pub cache_read: u64,
}

impl Tokens {
    /// The sum by kind. Stays at the largest number instead of overflowing.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// The larger figure of each kind.
    ///
    /// A message is written several times while it is streamed, and its figures only grow.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.each(other, u64::max)
    }

    fn each(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            input: of(self.input, other.input),
            output: of(self.output, other.output),
            cache_creation: of(self.cache_creation, other.cache_creation),
            cache_read: of(self.cache_read, other.cache_read),
        }
    }

    /// All of them as one number, with those of the cache or without.
    #[must_use]
    pub fn total(self, with_cache: bool) -> u64 {
        let own = self.input.saturating_add(self.output);
        let cached = self.cache_creation.saturating_add(self.cache_read);
        if with_cache { own.saturating_add(cached) } else { own }
    }
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Input.
    pub input: f64,
    /// Output.
    pub output: f64,
}

/// A write into the cache for five minutes costs this much of the input.
const CACHE_WRITE: f64 = 1.25;
/// A read from the cache costs this much of the input.
const CACHE_READ: f64 = 0.1;

/// Families and their prices, the more exact name first.
///
/// Public list prices in US dollars for a million tokens, as of 2026. The agent writes names such as
/// `claude-opus-4-5-20251101` and `claude-3-5-haiku-20241022`.
const PRICES: [(&str, Price); 12] = [
    ("claude-opus-4-0", Price { input: 15.0, output: 75.0 }),
    ("claude-opus-4-1", Price { input: 15.0, output: 75.0 }),
    ("claude-opus-4-2025", Price { input: 15.0, output: 75.0 }),
    ("claude-opus-4-", Price { input: 5.0, output: 25.0 }),
    ("claude-sonnet-4", Price { input: 3.0, output: 15.0 }),
    ("claude-haiku-4", Price { input: 1.0, output: 5.0 }),
    ("claude-3-7-sonnet", Price { input: 3.0, output: 15.0 }),
    ("claude-3-5-sonnet", Price { input: 3.0, output: 15.0 }),
    ("claude-3-5-haiku", Price { input: 0.8, output: 4.0 }),
    ("claude-3-opus", Price { input: 15.0, output: 75.0 }),
    ("claude-3-sonnet", Price { input: 3.0, output: 15.0 }),
    ("claude-3-haiku", Price { input: 0.25, output: 1.25 }),
];

/// The price of a model; `None` for a model that is not in the table.
#[must_use]
pub fn price(model: &str) -> Option<Price> {
    // A provider writes its own word before the name, such as `us.anthropic.`.
    let at = model.find("claude-")?;
    let name = model.get(at..)?;
    PRICES.iter().find(|(family, _)| name.starts_with(family)).map(|(_, price)| *price)
}

/// What the tokens of a model cost in US dollars; `None` without a known price.
#[must_use]
pub fn cost(model: &str, tokens: Tokens) -> Option<f64> {
    let price = price(model)?;
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 tokens")]
    let part = |tokens: u64, dollars: f64| tokens as f64 * dollars / 1_000_000.0;
    Some(
        part(tokens.input, price.input)
            + part(tokens.output, price.output)
            + part(tokens.cache_creation, price.input * CACHE_WRITE)
            + part(tokens.cache_read, price.input * CACHE_READ),
    )
}

/// An amount with four decimals.
#[must_use]
pub fn to_four_decimals(amount: f64) -> f64 {
    (amount * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: Tokens = Tokens {
        input: 1_000_000,
        output: 1_000_000,
        cache_creation: 1_000_000,
        cache_read: 1_000_000,
    };

    #[test]
    fn a_model_costs_what_its_family_costs() {
        for (model, expected) in [
            ("claude-opus-4-20250514", Some(15.0 + 75.0 + 18.75 + 1.5)),
            ("claude-opus-4-1-20250805", Some(110.25)),
            ("claude-opus-4-5-20251101", Some(5.0 + 25.0 + 6.25 + 0.5)),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Some(3.0 + 15.0 + 3.75 + 0.3)),
            ("claude-haiku-4-5", Some(1.0 + 5.0 + 1.25 + 0.1)),
            ("claude-3-5-haiku-20241022", Some(0.8 + 4.0 + 1.0 + 0.08)),
            ("preview-0926", None),
            ("", None),
        ] {
            let got = cost(model, MILLION).map(to_four_decimals);
            assert_eq!(got, expected.map(to_four_decimals), "{model}");
        }
    }

    #[test]
    fn sums_never_overflow() {
        let most = Tokens { input: u64::MAX, ..MILLION };
        assert_eq!(most.plus(most).input, u64::MAX);
        assert_eq!(most.total(true), u64::MAX);
        assert_eq!(MILLION.total(false), 2_000_000);
    }
}
