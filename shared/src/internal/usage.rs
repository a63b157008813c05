//! What conversations used of tokens, and what they cost (`http-api` §3.2, N7).

use crate::status::words;
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Tokens by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBreakdown {
    /// Read by the model, outside any cache.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
    /// Written into the cache.
    pub cache_creation: u64,
    /// Read from the cache.
    pub cache_read: u64,
}

/// What one model used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelUsage {
    /// Its tokens, with those of the cache as the configuration says.
    pub total_tokens: u64,
    /// What they cost in US dollars; 0 for a model without a known price.
    pub cost_usd: f64,
}

/// Tokens and cost of some conversations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Conversations.
    pub transcripts: u64,
    /// Messages of models.
    pub messages: u64,
    /// All tokens, with those of the cache as the configuration says.
    pub total_tokens: u64,
    /// The same by kind.
    pub token_breakdown: TokenBreakdown,
    /// What they cost in US dollars, to four decimals.
    pub cost_usd: f64,
    /// Always true: prices are public ones.
    pub approximate: bool,
    /// Models without a known price: their tokens are counted without a cost.
    pub unpriced_models: Vec<String>,
    /// The same by model.
    pub by_model: BTreeMap<String, ModelUsage>,
}

/// Tokens and cost of one project.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProjectUsage {
    /// The project.
    pub project: String,
    /// What its conversations used.
    #[serde(flatten)]
    pub usage: TokenUsage,
}

words! {
    /// What is shown of usage.
    UsageMode {
        /// Money, and tokens.
        Cost = "cost",
        /// Tokens.
        Tokens = "tokens",
        /// Nothing.
        Off = "off",
    }
}

/// How usage is shown: `usage.*` of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageDisplay {
    /// What is shown.
    pub mode: Word<UsageMode>,
    /// Code of the currency.
    pub currency: String,
    /// What stands before an amount.
    pub currency_symbol: String,
    /// Factor from US dollars to the currency.
    pub fx_rate: f64,
    /// Totals have the tokens of the cache in them.
    pub token_total_includes_cache: bool,
}

impl Default for UsageDisplay {
    /// Of a service that does not say: nothing is shown.
    fn default() -> Self {
        Self {
            mode: Word::from(UsageMode::Off),
            currency: "USD".to_owned(),
            currency_symbol: "$".to_owned(),
            fx_rate: 1.0,
            token_total_includes_cache: true,
        }
    }
}

/// Tokens and cost of all projects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageReport {
    /// When the files were looked at last.
    pub as_of: Option<Timestamp>,
    /// Every file is read to its end.
    pub complete: bool,
    /// Files that are still being read.
    pub pending_files: u64,
    /// The sum over all projects.
    pub totals: TokenUsage,
    /// By project; only projects with conversations.
    pub projects: BTreeMap<String, TokenUsage>,
}
