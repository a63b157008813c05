//! Signing the agent in from the page: the bodies of `/api/login-shepherd`.

use crate::status::words;
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};

words! {
    /// What a sign-in is to end with.
    SignInMode {
        /// The agent is signed in on this machine.
        Login = "login",
        /// A long-lived token, which the agent itself does not keep.
        SetupToken = "setup-token",
    }
}

words! {
    /// Where a sign-in stands.
    SignInStage {
        /// The agent has not shown its address yet.
        Starting = "starting",
        /// A person visits the address and brings a code.
        Waiting = "waiting",
        /// The agent checks the code.
        Checking = "checking",
        /// It is over, and nobody has asked how it went.
        Over = "over",
    }
}

/// Body that begins a sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StartSignIn {
    /// `login` or `setup-token`.
    pub mode: String,
}

/// A sign-in has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignInStarted {
    /// Where a person allows it.
    pub authorize_url: String,
    /// What the agent said, redacted.
    pub output: String,
}

/// Body with the code that a person was shown.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SignInCode {
    /// The code.
    pub code: String,
}

/// How a sign-in went, or that it is not known yet.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignInResult {
    /// It succeeded.
    pub ok: bool,
    /// Nothing is known yet; ask again.
    #[serde(default)]
    pub pending: bool,
    /// The same sign-in goes on: another code can be sent.
    #[serde(default)]
    pub active: bool,
    /// In words.
    pub message: String,
    /// The long-lived token, told once; omitted where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// The sign-in that is under way, if any.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SignInState {
    /// There is one.
    pub active: bool,
    /// What it is to end with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Word<SignInMode>>,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<Word<SignInStage>>,
    /// Where a person allows it; absent before the agent has shown it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorize_url: Option<String>,
    /// A code was sent and its outcome is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<bool>,
    /// Seconds since somebody last did something about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u64>,
    /// After so many of them it is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ttl_seconds: Option<u64>,
}

/// A sign-in as the stream tells it: without its address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignInRecord {
    /// What it is to end with.
    pub mode: Word<SignInMode>,
    /// Where it stands.
    pub stage: Word<SignInStage>,
    /// When it is ended if nobody does anything.
    pub ends_at: Timestamp,
}

/// The answer to `POST /api/login-shepherd/cancel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignInCancelled {
    /// Always true: nothing is under way now.
    pub ok: bool,
}
