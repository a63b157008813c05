//! Statements on `credential_addresses`: where tokens and sessions were used.

use crate::error::StoreError;
use crate::store::Store;
use svc_shared::Timestamp;

/// Addresses kept of one credential. A phone on the road needs a few dozen.
const MOST_OF_ONE: i64 = 64;

const INSERT: &str = "INSERT INTO credential_addresses (hash, address, first_seen_at) \
     SELECT ?1, ?2, ?3 WHERE (SELECT COUNT(*) FROM credential_addresses WHERE hash = ?1) < ?4 \
     ON CONFLICT DO NOTHING";
const COUNT: &str = "SELECT COUNT(*) FROM credential_addresses WHERE hash = ?";
const PRUNE: &str = "DELETE FROM credential_addresses \
     WHERE hash NOT IN (SELECT hash FROM sign_ins) AND hash NOT IN (SELECT hash FROM api_tokens)";
const ALL: &str = "SELECT hash, address, first_seen_at FROM credential_addresses \
     ORDER BY first_seen_at, address";

pub(crate) const STATEMENTS: &[&str] = &[INSERT, COUNT, PRUNE, ALL];

/// What the use of a credential from an address was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It had been used from there before, or more addresses are not kept.
    Known,
    /// It was used for the first time.
    First,
    /// It had been used from elsewhere, and never from there.
    NewAddress,
}

/// An address that a credential was used from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRow {
    /// Hash of the token or of the session.
    pub hash: String,
    /// The address, or the network of an IPv6 address.
    pub address: String,
    /// When it was used from there first.
    pub first_seen_at: Timestamp,
}

impl Store {
    /// Notes from where a credential was used, and says whether that is new.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn used_from(
        &self,
        hash: &str,
        address: &str,
        at: Timestamp,
    ) -> Result<Use, StoreError> {
        self.noted(self.used_from_now(hash, address, at).await)
    }

    async fn used_from_now(
        &self,
        hash: &str,
        address: &str,
        at: Timestamp,
    ) -> Result<Use, StoreError> {
        let mut transaction = self.begin().await?;
        let done = sqlx::query(INSERT)
            .bind(hash)
            .bind(address)
            .bind(at.as_millis())
            .bind(MOST_OF_ONE)
            .execute(&mut *transaction)
            .await?;
        if done.rows_affected() == 0 {
            return Ok(Use::Known);
        }
        let count: i64 = sqlx::query_scalar(COUNT).bind(hash).fetch_one(&mut *transaction).await?;
        sqlx::query(PRUNE).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(if count > 1 { Use::NewAddress } else { Use::First })
    }

    /// From where credentials were used, oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn addresses(&self) -> Result<Vec<AddressRow>, StoreError> {
        let rows: Vec<(String, String, i64)> = sqlx::query_as(ALL).fetch_all(&self.readers).await?;
        let row = |(hash, address, at)| AddressRow {
            hash,
            address,
            first_seen_at: Timestamp::from_millis(at),
        };
        Ok(rows.into_iter().map(row).collect())
    }
}
