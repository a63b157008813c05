//! Rows that another program wrote: each spoils only itself (F7, F88).

use crate::support::*;
use std::path::Path;
use svc_store::{Content, Stored};

/// The rows after one column of row 2 was changed behind our back, by a new start.
async fn after(dir: &Path, column: &str, value: &str) -> Vec<Stored> {
    let store = open(dir).await;
    for number in 1..=3 {
        let mut bridge = bridge(number, &format!("p{number}"), stopped());
        if number == 2 {
            bridge.state = starting();
        }
        add(&store, &bridge).await;
    }
    store.close().await;
    drop(store);
    tamper(dir, &format!("UPDATE bridges SET {column} = {value} WHERE number = 2")).await;
    let store = open(dir).await;
    let rows = store.bridges().await.unwrap();
    store.close().await;
    rows
}

#[track_caller]
fn assert_others_load(rows: &[Stored]) {
    assert_eq!(rows.len(), 3);
    for (row, number) in [(&rows[0], 1), (&rows[2], 3)] {
        assert_eq!(row.bridge(), Some(&bridge(number, &format!("p{number}"), stopped())));
    }
}

#[tokio::test]
async fn f88_an_unknown_word_or_a_broken_value_makes_its_row_corrupt_and_no_other() {
    for (column, value) in [
        ("instance_id", "'not an id'"),
        ("instance_id", "'00000000-0000-4000-8000-00000000000A'"),
        ("permission_mode", "'yolo'"),
        ("resume_mode", "'tmux'"),
        ("spawn_mode", "''"),
        ("origin", "'Spawned'"),
        ("status", "'hibernating'"),
        ("status", "'stopping'"),
        ("status", "'stopped'"),
        ("phase", "'exited'"),
        ("phase", "'stopping'"),
        ("phase", "'ready'"),
        ("generation", "4294967296"),
        ("generation", "-1"),
        ("quarantine_code", "'bored'"),
        ("argv", "'[\"unclosed'"),
        ("argv", "'{\"0\": \"agent\"}'"),
        ("argv", "'[1, 2]'"),
        ("argv", "NULL"),
        ("log_stem", "NULL"),
        ("launch_id", "NULL"),
        ("launch_id", "'0123456789ABCDEF0123456789ABCDEF'"),
        ("bridge_pid", "NULL"),
        ("bridge_start_ticks", "NULL"),
        ("bridge_start_ticks", "-1"),
        ("bridge_boot_id", "NULL"),
        ("bridge_boot_id", "''"),
        ("bridge_boot_id", "'two words'"),
        ("worktree_name", "'../elsewhere'"),
        ("worktree_name", "'svc-0000'"),
        ("conversation_id", "'--help'"),
        ("keeper_pid", "NULL"),
        ("keeper_start_ticks", "NULL"),
        ("keeper_start_ticks", "-1"),
        ("keeper_boot_id", "NULL"),
        ("cwd", "CAST(x'2fff' AS TEXT)"),
        ("notice", "CAST(x'c3' AS TEXT)"),
    ] {
        let dir = state_dir();
        let rows = after(dir.path(), column, value).await;
        assert_others_load(&rows);
        let Content::Corrupt { problem, .. } = &rows[1].content else {
            panic!("{column} = {value} is believed: {:?}", rows[1]);
        };
        assert!(problem.contains(&format!("`{column}`")) || column == "status", "{problem}");
    }
}

#[tokio::test]
async fn f88_an_unknown_exit_reason_or_ended_phase_makes_an_ended_row_corrupt() {
    for (column, value) in
        [("exit_reason", "'tired'"), ("phase", "'ready'"), ("exit_code", "2147483648")]
    {
        let dir = state_dir();
        let store = open(dir.path()).await;
        add(&store, &bridge(1, "api", stopped())).await;
        tamper(dir.path(), &format!("UPDATE bridges SET {column} = {value}")).await;
        let row = stored(&store, 1).await;
        assert!(
            matches!(&row.content, Content::Corrupt { id, project, problem }
            if *id == id_text(1) && project == "api" && problem.contains(column)),
            "{row:?}"
        );
    }
}

fn id_text(number: u32) -> String {
    id(number).as_str().to_owned()
}

#[tokio::test]
async fn f7_a_pid_that_means_no_ordinary_process_is_no_pid() {
    for value in ["-9223372036854775808", "-1", "0", "1", "2147483648"] {
        let dir = state_dir();
        let rows = after(dir.path(), "bridge_pid", value).await;
        assert_others_load(&rows);
        let row = rows[1].bridge().unwrap_or_else(|| panic!("{value}: {:?}", rows[1]));
        assert_eq!(row.process, None, "{value}");
        assert!(row.is_live() && row.launch.is_some(), "its process can be found by its launch");
    }
    // What a number in another notation means is what the column makes of it.
    let dir = state_dir();
    let rows = after(dir.path(), "bridge_pid", "'12'").await;
    assert_eq!(rows[1].bridge().unwrap().process.as_ref().unwrap().pid.get(), 12);
}

/// Every column as text, with its type.
async fn bytes(dir: &Path, number: u32) -> Vec<String> {
    use sqlx::Row;
    let mut connection = raw(dir).await;
    let sql = "SELECT name FROM pragma_table_info('bridges') ORDER BY cid";
    let columns: Vec<String> = sqlx::query_scalar(sql).fetch_all(&mut connection).await.unwrap();
    let shown: Vec<String> =
        columns.iter().map(|name| format!("typeof({name}) || ' ' || quote({name})")).collect();
    let sql = format!("SELECT {} FROM bridges WHERE number = {number}", shown.join(", "));
    let row = sqlx::query(&sql).fetch_one(&mut connection).await.unwrap();
    (0..columns.len()).map(|at| row.get(at)).collect()
}

#[tokio::test]
async fn f88_wrong_types_do_not_stop_the_start_and_stay_byte_for_byte() {
    for (column, value) in [
        ("instance_id", "x'00ff'"),
        ("project", "x'c328'"),
        ("instance_id", "17"),
        ("status", "NULL"),
        ("generation", "'seven'"),
        ("revision", "'first'"),
        ("started_at", "1.5"),
        ("stop_requested", "x''"),
        ("argv", "3"),
    ] {
        let dir = state_dir();
        let store = open(dir.path()).await;
        for number in 1..=3 {
            add(&store, &bridge(number, &format!("p{number}"), stopped())).await;
        }
        store.close().await;
        drop(store);
        without_types(
            dir.path(),
            &format!("UPDATE bridges SET {column} = {value} WHERE number = 2"),
        )
        .await;
        let before = bytes(dir.path(), 2).await;

        let store = open(dir.path()).await;
        let rows = store.bridges().await.unwrap();
        assert_others_load(&rows);
        assert!(matches!(rows[1].content, Content::Corrupt { .. }), "{column} = {value}");
        let known = rows.iter().map(|row| (row.number, row.revision)).collect();
        assert_eq!(store.changed_since(&known).await.unwrap(), svc_store::Changes::default());
        assert_eq!(save(&store, 1, &bridge(1, "p1", starting())).await, svc_store::Saved::Yes(2));
        store.close().await;
        assert_eq!(bytes(dir.path(), 2).await, before, "{column} = {value}");
    }
}

/// Runs a statement while the table of bridges checks no types or missing values.
async fn without_types(dir: &Path, sql: &str) {
    let mut connection = raw(dir).await;
    let schema: String = sqlx::query_scalar("SELECT sql FROM sqlite_schema WHERE name = 'bridges'")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    drop(connection);
    let lax = schema
        .replace("NOT NULL,", ",")
        .replace("NOT NULL ", "")
        .replace("REFERENCES projects (name)", "")
        .replace(") STRICT", ")");
    // Another connection each time, so that it reads the schema anew.
    replace_schema(dir, &lax).await;
    tamper(dir, sql).await;
    replace_schema(dir, &schema).await;
}

async fn replace_schema(dir: &Path, schema: &str) {
    let mut connection = raw(dir).await;
    sqlx::raw_sql("PRAGMA writable_schema = ON").execute(&mut connection).await.unwrap();
    sqlx::query("UPDATE sqlite_schema SET sql = ? WHERE name = 'bridges'")
        .bind(schema)
        .execute(&mut connection)
        .await
        .unwrap();
    sqlx::Connection::close(connection).await.unwrap();
}
