//! What a handler is given: a request that passed every guard, parsed.

use crate::context::Context;
use crate::target::Query;
use poem::Request;
use serde_json::Value;
use std::sync::Arc;
use svc_app::auth::Caller;

/// A request that passed every guard.
pub(crate) struct Call {
    pub(crate) context: Arc<Context>,
    pub(crate) request: Request,
    /// The decoded segments that stand for names; `{*name}` is one, joined with `/`.
    pub(crate) params: Vec<String>,
    pub(crate) query: Query,
    pub(crate) body: Option<Value>,
    /// Of this reply's content policy.
    pub(crate) nonce: Option<String>,
    /// Who sends it.
    pub(crate) caller: Caller,
}

impl Call {
    /// The first `{name}`.
    pub(crate) fn param(&self) -> &str {
        self.params.first().map_or("", String::as_str)
    }

    /// The second `{name}`.
    pub(crate) fn second_param(&self) -> &str {
        self.params.get(1).map_or("", String::as_str)
    }
}
