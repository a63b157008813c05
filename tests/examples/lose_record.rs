//! Takes the records of one project away behind the back of a service.
//!
//! `lose_record DATABASE PROJECT`: for tests of what then belongs to nobody. The service must not
//! run.

use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(project)) = (arguments.next(), arguments.next()) else {
        anyhow::bail!("give the path of the database and the name of the project");
    };
    let options = SqliteConnectOptions::new().filename(path);
    let mut database = SqliteConnection::connect_with(&options).await?;
    sqlx::query("DELETE FROM bridges WHERE project = ?")
        .bind(project)
        .execute(&mut database)
        .await?;
    database.close().await?;
    Ok(())
}
