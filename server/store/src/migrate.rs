//! Migrations: which there are, and how all pending ones are applied or none.

use crate::connection::options;
use crate::open_error::OpenError;
use crate::snapshot;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions, Connection, Row};
use std::path::Path;
use tracing::info;

/// One file of `migrations/`. It ends by setting `user_version` to its version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    pub version: i64,
    pub description: &'static str,
    pub sql: &'static str,
}

/// In ascending order. Released files are never edited, only followed by new ones.
pub(crate) const ALL: &[Script] = &[
    Script {
        version: 1,
        description: "initial",
        sql: include_str!("../../../migrations/0001_initial.sql"),
    },
    Script {
        version: 5,
        description: "sign-in",
        sql: include_str!("../../../migrations/0005_sign_in.sql"),
    },
    Script {
        version: 6,
        description: "preferences",
        sql: include_str!("../../../migrations/0006_ui_prefs.sql"),
    },
    Script {
        version: 7,
        description: "live bridges",
        sql: include_str!("../../../migrations/0007_live_bridges.sql"),
    },
    Script {
        version: 8,
        description: "interactive sessions",
        sql: include_str!("../../../migrations/0008_interactive_sessions.sql"),
    },
    Script {
        version: 9,
        description: "credential addresses",
        sql: include_str!("../../../migrations/0009_credential_addresses.sql"),
    },
    Script {
        version: 10,
        description: "link events",
        sql: include_str!("../../../migrations/0010_link_events.sql"),
    },
    Script {
        version: 11,
        description: "direct sessions",
        sql: include_str!("../../../migrations/0011_hosted_sessions.sql"),
    },
    Script {
        version: 12,
        description: "transcripts",
        sql: include_str!("../../../migrations/0012_transcripts.sql"),
    },
    Script {
        version: 13,
        description: "end facts",
        sql: include_str!("../../../migrations/0013_end_facts.sql"),
    },
    Script {
        version: 14,
        description: "limit waits",
        sql: include_str!("../../../migrations/0014_limit_waits.sql"),
    },
    Script {
        version: 15,
        description: "on limit",
        sql: include_str!("../../../migrations/0015_on_limit.sql"),
    },
    Script {
        version: 16,
        description: "bridge prompts",
        sql: include_str!("../../../migrations/0016_bridge_prompts.sql"),
    },
    Script {
        version: 17,
        description: "planned launches",
        sql: include_str!("../../../migrations/0017_planned_launches.sql"),
    },
    Script {
        version: 18,
        description: "push subscriptions",
        sql: include_str!("../../../migrations/0018_push_subscriptions.sql"),
    },
    Script {
        version: 19,
        description: "notification deliveries",
        sql: include_str!("../../../migrations/0019_notification_deliveries.sql"),
    },
    Script {
        version: 20,
        description: "webhook outbox",
        sql: include_str!("../../../migrations/0020_webhook_outbox.sql"),
    },
    Script {
        version: 21,
        description: "session rules",
        sql: include_str!("../../../migrations/0021_session_rules.sql"),
    },
];

/// The schema that a list of migrations ends with.
pub(crate) fn head(scripts: &[Script]) -> i64 {
    scripts.iter().map(|script| script.version).max().unwrap_or(0)
}

fn migrator(scripts: &[Script]) -> Migrator {
    let migrations = scripts
        .iter()
        .map(|script| {
            let kind = MigrationType::Simple;
            let (description, sql) = (script.description.into(), script.sql.into());
            Migration::new(script.version, description, kind, sql, false)
        })
        .collect();
    Migrator { migrations, ..Migrator::DEFAULT }
}

/// Brings an older registry of ours to the newest schema.
pub(crate) async fn migrate(
    state_dir: &Path,
    path: &Path,
    from: i64,
    take_snapshot: bool,
    scripts: &[Script],
) -> Result<(), OpenError> {
    let sqlite = |cause| OpenError::Sqlite { path: path.to_owned(), cause };
    let to = head(scripts);
    // A migration may rebuild a table that others refer to; what it leaves is checked as a whole.
    let mut connection =
        options(path, false).foreign_keys(false).connect().await.map_err(sqlite)?;
    let done = async {
        let snapshot = if take_snapshot {
            Some(snapshot::take(&mut connection, state_dir, from, to).await?)
        } else {
            None
        };
        apply(&mut connection, scripts).await.map_err(|cause| OpenError::Migration {
            path: path.to_owned(),
            snapshot,
            cause,
        })
    }
    .await;
    let closed = connection.close().await;
    done?;
    closed.map_err(sqlite)?;
    info!("migrated {} from schema {from} to {to}", path.display());
    Ok(())
}

/// Applies all pending migrations in one transaction.
/// The migrator's own transactions become savepoints of it.
pub(crate) async fn apply(
    connection: &mut SqliteConnection,
    scripts: &[Script],
) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    migrator(scripts)
        .run_direct(&mut *transaction)
        .await
        .map_err(|error| sqlx::Error::Migrate(Box::new(error)))?;
    let broken = sqlx::query("PRAGMA foreign_key_check").fetch_optional(&mut *transaction).await?;
    if let Some(row) = broken {
        let table: String = row.try_get(0)?;
        return Err(sqlx::Error::Protocol(format!("a reference of table {table} is broken")));
    }
    // Otherwise every later start would migrate again, and take a snapshot each time.
    let version: i64 =
        sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *transaction).await?;
    if version != head(scripts) {
        return Err(sqlx::Error::Protocol(format!(
            "the migrations ended with schema {version} instead of {}",
            head(scripts)
        )));
    }
    transaction.commit().await
}
