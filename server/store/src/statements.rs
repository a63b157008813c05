//! All statements on our tables, to compare them with the schema of a database.

use crate::{
    access, addresses, bridge_prompts, bridges, end_facts, history, hosted, limit_waits,
    notification_deliveries, outbox, planned_launches, push_subscriptions, stranded, transcripts,
    ui_prefs,
};

/// Every statement on our tables.
///
/// A database in which one of them cannot be prepared has another schema, whatever version it
/// claims.
pub(crate) const STATEMENTS: &[&[&str]] = &[
    access::STATEMENTS,
    addresses::STATEMENTS,
    bridges::STATEMENTS,
    end_facts::STATEMENTS,
    history::STATEMENTS,
    bridge_prompts::STATEMENTS,
    hosted::STATEMENTS,
    limit_waits::STATEMENTS,
    notification_deliveries::STATEMENTS,
    outbox::STATEMENTS,
    planned_launches::STATEMENTS,
    push_subscriptions::STATEMENTS,
    stranded::STATEMENTS,
    transcripts::STATEMENTS,
    ui_prefs::STATEMENTS,
];
