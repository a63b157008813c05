//! The registry: one SQLite file that several processes write.
//!
//! All SQL is here. Every change of a bridge compares the revision it was decided on, so that no
//! process overwrites what another one wrote meanwhile.

mod access;
mod addresses;
mod bridge_prompts;
mod bridges;
mod connection;
mod copy;
mod end_facts;
mod error;
mod health;
mod history;
mod hosted;
mod inspect;
mod limit_waits;
mod migrate;
mod notification_deliveries;
mod open;
mod open_error;
mod opened;
mod outbox;
mod planned_launches;
mod push_subscriptions;
mod row;
mod schema;
mod snapshot;
mod statements;
mod store;
mod stranded;
mod transcripts;
mod trial;
mod ui_prefs;

pub use access::{SignInRow, TokenRow};
pub use addresses::{AddressRow, Use};
pub use bridge_prompts::{NewBridgePrompt, PromptEnd};
pub use bridges::{Along, Cap, Changes, Content, Inserted, Saved, Stored};
pub use copy::{Withdrawn, carry_withdrawn_tokens, check_copy, copy_registry, withdrawn_tokens};
pub use end_facts::{EndFacts, LastUse};
pub use error::StoreError;
pub use health::Health;
pub use history::{HistoryFilter, HistoryMode, HistoryRow, PastEvent};
pub use hosted::{Decision, NewPrompt, Parked, PromptRow, StoredHosted};
pub use inspect::RESTORING;
pub use limit_waits::{LimitWait, TakenWaits};
pub use open::Access;
pub use open_error::OpenError;
pub use outbox::{OutboxEvent, OutboxPost, Owed, Settled};
pub use planned_launches::{Became, Planned, PlannedKind};
pub use push_subscriptions::{Chosen, Kept, PushRow};
pub use store::{ForeignWrites, Store, Watch};
pub use stranded::{NewStranded, Stranded, StrandedChange};
pub use trial::{Schemas, keep_copy, put_back, schemas};
pub use ui_prefs::UiPrefsRow;
