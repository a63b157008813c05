//! Makes the records of a service look as if from another boot.
//!
//! `reboot DATABASE`: for tests that cannot restart the machine. The service must not run.

use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let path = std::env::args_os().nth(1);
    let path = path.ok_or_else(|| anyhow::anyhow!("give the path of the database"))?;
    let options = SqliteConnectOptions::new().filename(path);
    let mut database = SqliteConnection::connect_with(&options).await?;
    let other = "UPDATE bridges SET bridge_boot_id = '11111111-2222-3333-4444-555555555555'";
    sqlx::query(other).execute(&mut database).await?;
    database.close().await?;
    Ok(())
}
