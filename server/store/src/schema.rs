//! Compares the objects of a database with those that our migrations make (H86).
//!
//! Somebody who may write the file once could otherwise leave a trigger, a view or a generated
//! column in it that acts with every later statement of ours, and a dropped index would take a
//! promise away. So nothing that is not ours word for word is accepted.

use crate::migrate::{self, Script};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use std::collections::BTreeMap;
use svc_domain::log_escape::escape;

/// Longest name of an object that is shown, in characters.
const SHOWN: usize = 80;

/// Objects by kind and name.
/// With the table they belong to and the text that made them.
type Objects = BTreeMap<(String, String), (String, Option<String>)>;

/// The first object that is not as the migrations up to `version` make it.
pub(crate) async fn difference(
    connection: &mut SqliteConnection,
    scripts: &[Script],
    version: i64,
) -> Result<Option<String>, sqlx::Error> {
    let found = objects(connection).await?;
    let known: Vec<Script> =
        scripts.iter().filter(|script| script.version <= version).copied().collect();
    let mut model =
        SqliteConnectOptions::new().filename(":memory:").in_memory(true).connect().await?;
    migrate::apply(&mut model, &known).await?;
    let expected = objects(&mut model).await?;
    model.close().await?;
    Ok(compare(&expected, &found))
}

/// Reads the table of objects. Nothing of what it describes runs.
async fn objects(connection: &mut SqliteConnection) -> Result<Objects, sqlx::Error> {
    let rows: Vec<(String, String, String, Option<String>)> =
        sqlx::query_as("SELECT type, name, tbl_name, sql FROM sqlite_schema")
            .fetch_all(connection)
            .await?;
    Ok(rows.into_iter().map(|(kind, name, of, sql)| ((kind, name), (of, sql))).collect())
}

fn compare(expected: &Objects, found: &Objects) -> Option<String> {
    let named = |(kind, name): &(String, String)| {
        let name: String = name.chars().take(SHOWN).collect();
        format!("{} {}", escape(kind), escape(&name))
    };
    let foreign = found.keys().find(|key| !expected.contains_key(key));
    let is_changed = |(key, object): &(&(String, String), &(String, Option<String>))| {
        found.get(*key).is_some_and(|found| found != *object)
    };
    let changed = expected.iter().find(is_changed);
    // A table that lost a promise has also lost the index behind it: the table says more.
    let missing = expected.keys().find(|key| !found.contains_key(key));
    foreign
        .map(|key| format!("{} is not one of them", named(key)))
        .or_else(|| changed.map(|(key, _)| format!("{} was changed", named(key))))
        .or_else(|| missing.map(|key| format!("{} is missing", named(key))))
}
