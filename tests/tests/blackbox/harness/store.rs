//! The registry read, and spoilt, behind the back of the program under test.

use super::World;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Row as _};

/// One bridge as it is recorded.
#[derive(Debug, Clone)]
pub struct Row {
    pub instance_id: String,
    pub project: String,
    pub status: String,
    pub generation: i64,
    pub intentional_stop: bool,
    pub pid: Option<i64>,
    pub start_ticks: Option<i64>,
    pub boot_id: Option<String>,
    pub launch_id: Option<String>,
    pub exit_reason: Option<String>,
    pub log_stem: Option<String>,
    /// `standard` or `pty`.
    pub resume_mode: String,
    /// Whether this generation was announced as ready.
    pub was_announced: bool,
}

impl Row {
    pub fn is_live(&self) -> bool {
        matches!(self.status.as_str(), "starting" | "running")
    }
}

const ROWS: &str = "SELECT instance_id, project, status, generation, intentional_stop, bridge_pid, \
     bridge_start_ticks, bridge_boot_id, launch_id, exit_reason, log_stem, \
     EXISTS (SELECT 1 FROM announcements AS told WHERE told.instance_id = bridges.instance_id \
     AND told.generation = bridges.generation AND told.event = 'ready'), resume_mode \
     FROM bridges ORDER BY number";

impl World {
    async fn database(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new()
            .filename(self.state.join("svc.db"))
            .busy_timeout(super::DEADLINE);
        options.connect().await.expect("the database opens")
    }

    /// Every recorded bridge; none when nothing was recorded yet.
    pub async fn rows(&self) -> Vec<Row> {
        if !self.state.join("svc.db").exists() {
            return Vec::new();
        }
        let mut database = self.database().await;
        let rows = sqlx::query(ROWS).fetch_all(&mut database).await.expect("the rows");
        let rows = rows
            .iter()
            .map(|row| Row {
                instance_id: row.get(0),
                project: row.get(1),
                status: row.get(2),
                generation: row.get(3),
                intentional_stop: row.get(4),
                pid: row.get(5),
                start_ticks: row.get(6),
                boot_id: row.get(7),
                launch_id: row.get(8),
                exit_reason: row.get(9),
                log_stem: row.get(10),
                was_announced: row.get(11),
                resume_mode: row.get(12),
            })
            .collect();
        database.close().await.expect("the database closes");
        rows
    }

    /// The one recorded bridge of a project.
    pub async fn row(&self, project: &str) -> Row {
        let mut rows = self.rows().await;
        rows.retain(|row| row.project == project);
        assert_eq!(rows.len(), 1, "records of {project}: {rows:?}");
        rows.remove(0)
    }

    /// Runs one statement as a hand with the database open would.
    pub async fn sql(&self, statement: &str) -> Result<u64, sqlx::Error> {
        let mut database = self.database().await;
        let done = sqlx::query(statement).execute(&mut database).await;
        database.close().await.expect("the database closes");
        Ok(done?.rows_affected())
    }

    /// The one text a query answers with.
    pub async fn sql_text(&self, query: &str) -> Option<String> {
        let mut database = self.database().await;
        let row = sqlx::query(query).fetch_one(&mut database).await.expect("a row");
        let text = row.get(0);
        database.close().await.expect("the database closes");
        text
    }

    /// Changes the schema, as another version of the service would have left it.
    pub async fn schema(&self, statements: &str) {
        let mut database = self.database().await;
        sqlx::raw_sql(statements).execute(&mut database).await.expect("SQL");
        database.close().await.expect("the database closes");
    }

    /// What the database says about its own soundness.
    pub async fn integrity(&self) -> String {
        let mut database = self.database().await;
        let row = sqlx::query("PRAGMA integrity_check").fetch_one(&mut database).await;
        let verdict = row.expect("a verdict").get(0);
        database.close().await.expect("the database closes");
        verdict
    }
}

/// The write lock of the registry, held by somebody else.
pub struct Locked(SqliteConnection);

impl World {
    /// Takes the write lock, as a program with a long transaction would.
    pub async fn locked(&self) -> Locked {
        let mut database = self.database().await;
        let begun = sqlx::query("BEGIN EXCLUSIVE").execute(&mut database).await;
        begun.expect("nobody else writes now");
        Locked(database)
    }
}

impl Locked {
    pub async fn release(mut self) {
        sqlx::query("ROLLBACK").execute(&mut self.0).await.expect("it was begun");
        self.0.close().await.expect("the database closes");
    }
}
