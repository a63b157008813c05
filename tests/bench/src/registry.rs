//! The registry behind the back of the service: rows that would take hours to make.

use crate::world::World;
use anyhow::{Context as _, Result, ensure};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};
use std::time::Duration;

/// Projects of the copied rows; they exist in the registry only.
const PROJECTS: u64 = 200;

async fn open(world: &World) -> Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(world.state.join("svc.db"))
        .busy_timeout(Duration::from_secs(10));
    Ok(options.connect().await?)
}

/// Makes so many copies of an ended record, of many projects. No service may run.
pub fn copies(world: &World, rows: u64) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut database = open(world).await?;
        let columns = "SELECT group_concat(name) FROM pragma_table_info('bridges') \
                       WHERE name NOT IN ('number', 'instance_id', 'project')";
        let columns: Option<String> = sqlx::query(columns).fetch_one(&mut database).await?.get(0);
        let columns = columns.context("no columns")?;
        let projects = format!(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {}) \
             INSERT INTO projects SELECT printf('old%03d', i), 0, 0 FROM n",
            PROJECTS - 1
        );
        sqlx::query(&projects).execute(&mut database).await?;
        let copy = format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) \
             INSERT INTO bridges (instance_id, project, {columns}) \
             SELECT printf('00000000-0000-4000-8000-%012x', i), printf('old%03d', i % {PROJECTS}), \
             {columns} FROM (SELECT * FROM bridges LIMIT 1), n"
        );
        let made = sqlx::query(&copy).execute(&mut database).await?.rows_affected();
        ensure!(made == rows, "{made} rows instead of {rows}");
        database.close().await?;
        Ok(())
    })
}
