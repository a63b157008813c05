//! Named tokens: issue, list, rotate and revoke (`command-line` §2.2).

use crate::auth::{Auth, lock, sha256_hex};
use crate::failpoint::hit;
use crate::ops::audit::{self, Audit, Change, Surface};
use crate::ops::reserve;
use crate::registry::Registry;
use crate::tasks::Tasks;
use crate::{AppError, Class};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::sync::Arc;
use svc_domain::log_escape::quoted;
use svc_domain::scope::Scope;
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;
use svc_shared::internal::access::{IssuedToken, NamedToken};
use svc_shared::text::is_hidden;
use svc_store::TokenRow;

/// Longest label, in characters.
const LABEL: usize = 255;

/// A new token and what is stored of it: its SHA-256, lower-case hex.
///
/// # Errors
/// The system has no randomness.
pub fn new_token() -> Result<(String, String), std::io::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    let token = format!("svc_pat_{}", URL_SAFE_NO_PAD.encode(bytes));
    let hash = sha256_hex(token.as_bytes());
    Ok((token, hash))
}

/// The named tokens of this installation.
///
/// What has begun goes on when the caller goes away: a token that somebody revokes is revoked.
#[derive(Clone)]
pub struct Tokens {
    pub(crate) auth: Arc<Auth>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) tasks: Tasks,
}

impl Tokens {
    /// Issues a token.
    ///
    /// # Errors
    /// The label is none or taken, or nothing could be written.
    pub async fn issue(
        &self,
        label: &str,
        scopes: &[Scope],
        expires_at: Option<Timestamp>,
    ) -> Result<IssuedToken, AppError> {
        let (this, label, scopes) = (self.clone(), label.to_owned(), scopes.to_vec());
        let issue = async move { this.issue_now(&label, scopes, expires_at).await };
        self.tasks.complete(issue).await
    }

    async fn issue_now(
        &self,
        label: &str,
        mut scopes: Vec<Scope>,
        expires_at: Option<Timestamp>,
    ) -> Result<IssuedToken, AppError> {
        checked(label)?;
        let now = self.auth.clock.now();
        if expires_at.is_some_and(|expires| expires <= now) {
            return Err(AppError::invalid("`expires_at` lies in the past; give a time to come"));
        }
        let (token, hash) = new_token().map_err(AppError::internal)?;
        scopes.sort_unstable();
        scopes.dedup();
        let words: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
        let row = TokenRow {
            label: label.to_owned(),
            hash,
            created_at: now,
            last_used_at: None,
            expires_at,
            scopes: (!words.is_empty()).then(|| words.join(" ")),
        };
        hit("token.before_issue").await;
        self.audit
            .record(change(label, "create"), async {
                if self.auth.store.add_token(&row).await.map_err(unwritten)? {
                    hit("token.after_issue").await;
                    return Ok(());
                }
                Err(AppError::new(
                    ErrorCode::Exists,
                    Class::Conflict,
                    format!(
                        "a token `{label}` exists; choose another label, or give that one a new \
                     secret with `svc api-token rotate`"
                    ),
                ))
            })
            .await?;
        self.tokens_changed().await;
        Ok(issued(row, token))
    }

    /// The tokens, oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn list(&self) -> Result<Vec<NamedToken>, AppError> {
        let rows = self.auth.store.tokens().await.map_err(|error| {
            AppError::busy("the tokens cannot be read; try again").because(error)
        })?;
        Ok(rows.into_iter().map(shown).collect())
    }

    /// Gives a token a new secret; the old one stops working at once.
    ///
    /// # Errors
    /// There is no such label, or nothing could be written.
    pub async fn rotate(&self, label: &str) -> Result<IssuedToken, AppError> {
        let (this, label) = (self.clone(), label.to_owned());
        self.tasks.complete(async move { this.rotate_now(&label).await }).await
    }

    async fn rotate_now(&self, label: &str) -> Result<IssuedToken, AppError> {
        reserve::make_room(&self.auth.state_dir).await;
        let (token, hash) = new_token().map_err(AppError::internal)?;
        hit("token.before_rotate").await;
        self.withdraw(label, Some(&hash)).await?;
        hit("token.after_rotate").await;
        let row = self.auth.store.tokens().await.map_err(unwritten)?;
        match row.into_iter().find(|row| row.hash == hash) {
            Some(row) => Ok(issued(row, token)),
            None => Err(AppError::busy("another process changed this token meanwhile; try again")),
        }
    }

    /// Ends a token at once and for good.
    ///
    /// # Errors
    /// There is no such label, or nothing could be written.
    pub async fn revoke(&self, label: &str) -> Result<(), AppError> {
        let (this, label) = (self.clone(), label.to_owned());
        self.tasks.complete(async move { this.revoke_now(&label).await }).await
    }

    async fn revoke_now(&self, label: &str) -> Result<(), AppError> {
        reserve::make_room(&self.auth.state_dir).await;
        hit("token.before_revoke").await;
        self.withdraw(label, None).await?;
        hit("token.after_revoke").await;
        Ok(())
    }

    async fn withdraw(&self, label: &str, new_hash: Option<&str>) -> Result<(), AppError> {
        let unknown = || {
            AppError::new(
                ErrorCode::NotFound,
                Class::NotFound,
                format!("there is no token {}; `svc api-token list` names them", quoted(label)),
            )
        };
        let known = self.auth.store.tokens().await.map_err(unwritten)?;
        if known.iter().all(|row| row.label != label) {
            return Err(unknown());
        }
        let now = self.auth.clock.now();
        let action = if new_hash.is_some() { "update" } else { "delete" };
        self.audit
            .record(change(label, action), async {
                let withdrawn = self.auth.store.withdraw_token(label, new_hash, now).await;
                if withdrawn.map_err(unwritten)? { Ok(()) } else { Err(unknown()) }
            })
            .await?;
        self.tokens_changed().await;
        Ok(())
    }

    async fn tokens_changed(&self) {
        lock(&self.auth.noted).clear();
        self.auth.look_again().await;
        self.registry.tell_others();
    }
}

fn change(label: &str, action: &'static str) -> Change {
    let (surface, scope, target) = (Surface::ApiToken, audit::Scope::Global, label.to_owned());
    Change { surface, scope, target, action, keys: Vec::new() }
}

fn shown(row: TokenRow) -> NamedToken {
    NamedToken {
        label: row.label,
        created: row.created_at,
        last_used: row.last_used_at,
        scopes: row.scopes.map(|words| words.split(' ').map(str::to_owned).collect()),
        expires_at: row.expires_at,
    }
}

fn issued(row: TokenRow, token: String) -> IssuedToken {
    let NamedToken { label, created, last_used, scopes, expires_at } = shown(row);
    IssuedToken { label, created, last_used, scopes, expires_at, token }
}

fn checked(label: &str) -> Result<(), AppError> {
    let length = label.chars().count();
    let is_fit =
        (1..=LABEL).contains(&length) && label.trim() == label && !label.chars().any(is_hidden);
    if is_fit {
        return Ok(());
    }
    Err(AppError::invalid(format!(
        "`label` must have 1 to {LABEL} characters, none of them a control or invisible \
         character, and no blanks around them"
    )))
}

fn unwritten(error: svc_store::StoreError) -> AppError {
    AppError::busy("the token cannot be recorded; try again").because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_shows_every_character_as_it_stands() {
        for label in ["ci", "nightly build", "übung/2", "ci 🚀"] {
            assert!(checked(label).is_ok(), "{label:?}");
        }
        for hidden in ['\n', '\u{7f}', '\u{ad}', '\u{200b}', '\u{2028}', '\u{3164}', '\u{feff}']
            .into_iter()
            .chain('\u{202a}'..='\u{202e}')
            .chain('\u{2066}'..='\u{2069}')
        {
            let refused = checked(&format!("c{hidden}i")).unwrap_err();
            assert!(refused.message.contains("`label`"), "{hidden:?}");
        }
    }
}
