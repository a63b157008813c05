//! H86: what a start does with whatever lies in the place of the database.

use crate::support::*;
use sqlx::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use svc_store::{Access, OpenError, Store};
use tempfile::TempDir;

/// A state directory with some rows and no process that uses it.
async fn filled(rows: u32) -> TempDir {
    let dir = state_dir();
    let store = open(dir.path()).await;
    for number in 1..=rows {
        add(&store, &bridge(number, &format!("p{number}"), stopped())).await;
    }
    store.close().await;
    dir
}

/// The same, left by a process that was killed while its log held all changes.
fn killed() -> TempDir {
    let dir = state_dir();
    let mut helper = Helper::start("insert", dir.path(), &["1", "3"]);
    for _ in 0..3 {
        assert_eq!(helper.line(), "inserted");
    }
    helper.kill();
    assert!(fs::metadata(dir.path().join("svc.db-wal")).unwrap().len() > 0);
    dir
}

/// The open is refused in one line with file and remedy, and changed nothing.
async fn assert_refused(dir: &Path, access: Access, problem: &str) {
    let before = files(dir);
    let error = refusal(dir, access).await;
    let text = error.to_string();
    assert!(text.contains("svc.db"), "{text}");
    assert!(text.contains(problem), "{problem}: {text}");
    assert!(!text.contains('\n'), "{text}");
    let remedies = ["to restore", "put a backup", "run this as its owner"];
    assert!(remedies.iter().any(|remedy| text.contains(remedy)), "{text}");
    assert_eq!(files(dir), before, "{problem}: {:?}", files(dir).keys());
}

async fn assert_always_refused(dir: &Path, problem: &str) {
    assert_refused(dir, WRITE, problem).await;
    assert_refused(dir, Access::ReadOnly, problem).await;
}

fn db(dir: &TempDir) -> std::path::PathBuf {
    dir.path().join("svc.db")
}

#[tokio::test]
async fn h86_a_missing_database_is_created_and_survives_a_restart() {
    let dir = state_dir();
    let missing = refusal(dir.path(), Access::ReadOnly).await;
    assert!(matches!(missing, OpenError::Missing(_)), "{missing}");
    assert!(files(dir.path()).is_empty(), "reading creates nothing");

    let store = open(dir.path()).await;
    add(&store, &bridge(1, "api", starting())).await;
    store.close().await;
    let names: Vec<_> = files(dir.path()).into_keys().collect();
    assert_eq!(names, [db(&dir)], "a clean end leaves the database alone");
    assert_eq!(open(dir.path()).await.bridges().await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_empty_store_has_no_rows_and_no_files() {
    let store = Store::empty().await.unwrap();
    assert_eq!(store.bridges().await.unwrap(), []);
    assert_eq!(store.known_projects().await.unwrap(), []);
    add(&store, &bridge(1, "api", stopped())).await;
    assert_eq!(store.bridges().await.unwrap().len(), 1);
    assert_eq!(Store::empty().await.unwrap().bridges().await.unwrap(), []);
    assert!(!store.path().exists());
}

#[tokio::test]
async fn h86_an_empty_file_is_refused() {
    let dir = state_dir();
    fs::write(db(&dir), "").unwrap();
    assert_always_refused(dir.path(), "it is empty").await;
}

#[tokio::test]
async fn h86_a_file_of_another_kind_is_refused() {
    for content in ["x", &"not a database\n".repeat(1000), "SQLite format 3\0 and then nothing"] {
        let dir = state_dir();
        fs::write(db(&dir), content).unwrap();
        assert_always_refused(dir.path(), "not an SQLite database").await;
    }
}

#[tokio::test]
async fn h86_a_truncated_database_is_refused() {
    for keep in [200_u64, 4096, 20_000] {
        let dir = filled(50).await;
        fs::File::options().write(true).open(db(&dir)).unwrap().set_len(keep).unwrap();
        assert_refused(dir.path(), WRITE, "is not usable as the database").await;
    }
}

#[tokio::test]
async fn h86_a_flipped_page_is_refused() {
    let dir = filled(50).await;
    let healthy = fs::read(db(&dir)).unwrap();
    // The schema page (behind its header), a page of a table or an index, the last page.
    for at in [100, 4096 * 6, healthy.len() - 4096] {
        let mut flipped = healthy.clone();
        flipped[at..at + 64].iter_mut().for_each(|byte| *byte ^= 0xff);
        fs::write(db(&dir), flipped).unwrap();
        assert_refused(dir.path(), WRITE, "is not usable as the database").await;
    }
    fs::write(db(&dir), healthy).unwrap();
    assert_eq!(open(dir.path()).await.bridges().await.unwrap().len(), 50);
}

#[tokio::test]
async fn h86_a_directory_or_a_link_is_refused_even_to_a_good_database() {
    let dir = state_dir();
    fs::create_dir(db(&dir)).unwrap();
    assert_always_refused(dir.path(), "not a regular file").await;

    let good = filled(1).await;
    let dir = state_dir();
    std::os::unix::fs::symlink(db(&good), db(&dir)).unwrap();
    let before = files(good.path());
    assert_always_refused(dir.path(), "symbolic link").await;
    assert_eq!(files(good.path()), before);

    fs::remove_file(db(&dir)).unwrap();
    std::os::unix::fs::symlink("nowhere", db(&dir)).unwrap();
    assert_always_refused(dir.path(), "symbolic link").await;
}

#[tokio::test]
async fn h86_a_database_of_another_program_is_refused() {
    let dir = filled(1).await;
    tamper(dir.path(), "PRAGMA application_id = 77").await;
    assert_always_refused(dir.path(), "another program").await;
}

#[tokio::test]
async fn h86_other_tables_under_our_name_are_refused() {
    for sql in [
        "DROP TABLE session_events",
        "ALTER TABLE bridges DROP COLUMN notice",
        "ALTER TABLE projects RENAME COLUMN name TO title",
    ] {
        let dir = filled(1).await;
        tamper(dir.path(), sql).await;
        assert_always_refused(dir.path(), "its tables are not ours").await;
    }
}

/// Statements on such a schema run what somebody else wrote into it.
#[tokio::test]
async fn h86_a_schema_with_objects_of_somebody_else_is_refused_by_name() {
    for (name, sql) in [
        (
            "trigger evil",
            "CREATE TRIGGER evil AFTER INSERT ON sign_ins BEGIN DELETE FROM withdrawn_tokens; END",
        ),
        ("view evil", "CREATE VIEW evil AS SELECT * FROM api_tokens"),
        ("table evil", "CREATE TABLE evil (a)"),
        ("table evil", "CREATE VIRTUAL TABLE evil USING fts5(a)"),
        ("table _sqlx_more", "CREATE TABLE _sqlx_more (a)"),
        ("table sqlite_stat1", "ANALYZE"),
        ("index evil", "CREATE INDEX evil ON api_tokens (label)"),
        ("index one_live_server_mode_bridge", "DROP INDEX one_live_server_mode_bridge"),
        ("index live_bridges", "DROP INDEX live_bridges"),
        (
            "index live_bridges",
            "DROP INDEX live_bridges; CREATE INDEX live_bridges ON bridges (status)",
        ),
        (
            "table api_tokens",
            "ALTER TABLE api_tokens ADD COLUMN more TEXT GENERATED ALWAYS AS (label || 'x')",
        ),
        ("table sign_ins", "ALTER TABLE sign_ins ADD COLUMN more TEXT DEFAULT 'x'"),
        (
            "table ui_prefs",
            "DROP TABLE ui_prefs; CREATE TABLE ui_prefs (id INTEGER PRIMARY KEY, rev, prefs)",
        ),
        (
            "table withdrawn_tokens",
            "DROP TABLE withdrawn_tokens; CREATE TABLE withdrawn_tokens (hash TEXT, withdrawn_at INTEGER)",
        ),
        (
            "table api_tokens",
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema \
             SET sql = replace(sql, 'CHECK (length(hash) = 64)', '') WHERE name = 'api_tokens'",
        ),
    ] {
        let dir = filled(1).await;
        tamper(dir.path(), sql).await;
        assert_always_refused(dir.path(), name).await;
    }
}

/// An object of ours that somebody wrote again the same way is ours.
#[tokio::test]
async fn h86_an_object_that_was_made_again_word_for_word_is_accepted() {
    let dir = filled(1).await;
    tamper(dir.path(), "VACUUM; REINDEX").await;
    assert_eq!(open(dir.path()).await.bridges().await.unwrap().len(), 1);
}

#[tokio::test]
async fn h86_a_log_or_journal_without_its_database_is_refused() {
    for suffix in ["-wal", "-journal"] {
        let dir = state_dir();
        let left = dir.path().join(format!("svc.db{suffix}"));
        fs::write(&left, "changes").unwrap();
        let problem = format!("svc.db{suffix} is there");
        assert_always_refused(dir.path(), &problem).await;
        // Without content it belongs to nothing.
        fs::write(&left, "").unwrap();
        open(dir.path()).await;
    }
}

#[tokio::test]
async fn h86_a_missing_log_is_refused_when_it_held_changes() {
    let dir = killed();
    let log = fs::read(dir.path().join("svc.db-wal")).unwrap();
    fs::remove_file(dir.path().join("svc.db-wal")).unwrap();
    assert_always_refused(dir.path(), "svc.db-wal is missing").await;
    fs::write(dir.path().join("svc.db-wal"), "").unwrap();
    assert_always_refused(dir.path(), "svc.db-wal is missing").await;
    // Put back, everything is there.
    fs::write(dir.path().join("svc.db-wal"), log).unwrap();
    assert_eq!(open(dir.path()).await.bridges().await.unwrap().len(), 3);
}

#[tokio::test]
async fn an_index_that_a_clean_end_left_behind_is_no_reason_to_refuse() {
    let dir = killed();
    let index = fs::read(dir.path().join("svc.db-shm")).unwrap();
    open(dir.path()).await.close().await;
    let copied = {
        // Frames committed and frames copied are the same after a clean end.
        let mut copied = index;
        let frames: [u8; 4] = copied[16..20].try_into().unwrap();
        copied[96..100].copy_from_slice(&frames);
        copied
    };
    fs::write(dir.path().join("svc.db-shm"), copied).unwrap();
    assert_eq!(open(dir.path()).await.bridges().await.unwrap().len(), 3);
}

#[tokio::test]
async fn h86_a_log_that_is_none_is_refused() {
    for content in ["notes of somebody, long enough for a header", "SQLite format 3\0 and zeros..."]
    {
        let dir = filled(3).await;
        fs::write(dir.path().join("svc.db-wal"), format!("{content}{content}")).unwrap();
        assert_always_refused(dir.path(), "not its write-ahead log").await;
    }
    let dir = filled(3).await;
    fs::create_dir(dir.path().join("svc.db-wal")).unwrap();
    fs::write(dir.path().join("svc.db-wal/inside"), "x").unwrap();
    assert_always_refused(dir.path(), "not a regular file").await;
}

#[tokio::test]
async fn h86_a_log_of_another_program_is_refused() {
    for page_size in [4096, 8192] {
        let other = state_dir();
        let mut connection = raw_new(&other.path().join("other.db")).await;
        sqlx::raw_sql(&format!(
            "PRAGMA page_size = {page_size}; PRAGMA journal_mode = WAL; \
             CREATE TABLE t (x); INSERT INTO t VALUES (1);"
        ))
        .execute(&mut connection)
        .await
        .unwrap();
        let dir = filled(3).await;
        fs::copy(other.path().join("other.db-wal"), dir.path().join("svc.db-wal")).unwrap();
        connection.close().await.unwrap();
        let problem = if page_size == 4096 { "another program" } else { "not its write-ahead log" };
        assert_always_refused(dir.path(), problem).await;
    }
}

async fn raw_new(path: &Path) -> sqlx::SqliteConnection {
    use sqlx::ConnectOptions;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
    options.connect().await.unwrap()
}

#[tokio::test]
async fn h86_a_log_of_a_later_state_beside_an_older_copy_is_refused() {
    let dir = filled(300).await;
    let older = fs::read(db(&dir)).unwrap();
    let mut connection = raw(dir.path()).await;
    sqlx::raw_sql(
        "UPDATE bridges SET notice = hex(zeroblob(900)); PRAGMA wal_checkpoint(TRUNCATE); \
         UPDATE bridges SET revision = 2 WHERE number IN (5, 250);",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    let later_log = fs::read(dir.path().join("svc.db-wal")).unwrap();
    connection.close().await.unwrap();
    fs::write(db(&dir), older).unwrap();
    fs::write(dir.path().join("svc.db-wal"), later_log).unwrap();
    assert_refused(dir.path(), WRITE, "it is damaged").await;
}

#[tokio::test]
async fn what_a_killed_process_left_is_recovered() {
    for keep_index in [true, false] {
        let dir = killed();
        if !keep_index {
            fs::remove_file(dir.path().join("svc.db-shm")).unwrap();
        }
        let reader = Store::open(dir.path(), Access::ReadOnly).await.unwrap();
        assert_eq!(reader.bridges().await.unwrap().len(), 3);
        reader.close().await;
        drop(reader);
        assert_eq!(open(dir.path()).await.bridges().await.unwrap().len(), 3);
    }
}

#[tokio::test]
async fn a_write_that_was_interrupted_without_a_log_is_taken_back() {
    // Where the file system has no shared memory, SQLite keeps a rollback journal.
    let source = filled(20).await;
    let mut connection = raw(source.path()).await;
    sqlx::raw_sql(
        "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 2; BEGIN; \
         UPDATE bridges SET notice = hex(zeroblob(3000)), revision = revision + 1;",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    let dir = state_dir();
    for name in ["svc.db", "svc.db-journal"] {
        fs::copy(source.path().join(name), dir.path().join(name)).unwrap();
    }
    assert_ne!(fs::read(db(&dir)).unwrap(), fs::read(db(&filled(20).await)).unwrap());
    let rows = open(dir.path()).await.bridges().await.unwrap();
    assert_eq!(rows.len(), 20);
    assert!(rows.iter().all(|row| row.revision == 1));
}

#[tokio::test]
async fn h86_a_database_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        svc_skip::skip!("only root may give a file away");
    }
    let dir = filled(1).await;
    std::os::unix::fs::chown(db(&dir), Some(65_534), None).unwrap();
    assert_always_refused(dir.path(), "belongs to another user").await;
}

#[tokio::test]
async fn h118_a_newer_schema_is_refused_naming_both_and_the_snapshot() {
    let dir = filled(1).await;
    tamper(dir.path(), "PRAGMA user_version = 78").await;
    let backups = dir.path().join("backups");
    fs::create_dir(&backups).unwrap();
    for from in ["77", "1"] {
        let name = format!("pre-{from}-78-20250131T235959_000001Z.db");
        fs::write(backups.join(name), "snapshot").unwrap();
    }
    for access in [WRITE, Access::ReadOnly] {
        assert_refused(dir.path(), access, "pre-1-78-20250131T235959_000001Z.db").await;
        let error = refusal(dir.path(), access).await;
        assert!(matches!(error, OpenError::Newer { found: 78, .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("schema 78") && text.contains("knows "), "{text}");
    }
}

#[tokio::test]
async fn a_database_that_others_could_read_is_made_private_again() {
    let dir = filled(1).await;
    fs::set_permissions(db(&dir), PermissionsExt::from_mode(0o644)).unwrap();
    let store = open(dir.path()).await;
    for name in ["svc.db", "svc.db-wal", "svc.db-shm"] {
        let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    drop(store);
}

#[tokio::test]
async fn a_state_directory_that_is_missing_is_named() {
    let dir = state_dir();
    let gone = dir.path().join("gone");
    let error = refusal(&gone, WRITE).await;
    assert!(matches!(&error, OpenError::Io { path, .. } if path.starts_with(&gone)), "{error:?}");
}
