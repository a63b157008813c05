//! Credentials that something is bound to for longer than a request.

use super::identity::Validity;
use super::{Auth, Identity, sha256_hex};
use tokio::sync::watch;

/// A credential, as it is kept beside what is bound to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The way somebody came in by.
    pub channel: String,
    /// Hash of the credential, where there is one.
    pub credential: Option<String>,
    /// Changes with the password, and when every session is ended.
    pub mark: String,
}

impl Auth {
    /// What holds now, to be kept.
    pub(crate) fn holder(&self, identity: Option<&Identity>) -> Holder {
        let channel = identity.map_or_else(|| "off".to_owned(), |one| one.channel.to_string());
        let credential = match identity.map(|one| &one.validity) {
            Some(Validity::Session { hash, .. } | Validity::Token { hash, .. }) => {
                Some(hash.clone())
            }
            // The unnamed token has no row: another hash in the configuration ends it.
            Some(Validity::Fixed) if channel == "token" => self.unnamed_mark(),
            Some(Validity::Fixed) | None => None,
        };
        Holder { channel, credential, mark: self.mark() }
    }

    fn unnamed_mark(&self) -> Option<String> {
        self.unnamed_token.as_ref().map(|hash| sha256_hex(hash.expose().as_bytes()))
    }

    fn mark(&self) -> String {
        let epoch = self.known.load().epoch.unwrap_or_default();
        let fingerprint = self.fingerprint().map(hex::encode).unwrap_or_default();
        format!("{fingerprint}.{epoch}")
    }

    /// Whether a credential that was kept still opens anything.
    /// Call [`Auth::refresh`] before.
    pub(crate) fn still_opens(&self, holder: &Holder) -> bool {
        if !self.enabled {
            return true;
        }
        let (known, now) = (self.known.load(), self.now());
        let hash = holder.credential.as_deref().unwrap_or_default();
        match holder.channel.split_once(':').map_or(holder.channel.as_str(), |(word, _)| word) {
            "cookie" => {
                let row = known.sign_in(hash);
                holder.mark == self.mark()
                    && row.is_some_and(|row| {
                        row.created_at.plus(self.max_age).min(row.expires_at) > now
                    })
            }
            "token" if holder.credential.is_some() && holder.credential == self.unnamed_mark() => {
                true
            }
            "token" => known
                .token(hash)
                .is_some_and(|row| row.expires_at.is_none_or(|expires| expires > now)),
            "proxy" => self.proxy.is_enabled(),
            _ => false,
        }
    }

    /// Tells when other credentials are known than before.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}
