//! The browsers that are signed in: listed, and signed out one by one.
//! See `http-api` §3.9, N11.

use crate::auth::identity::Validity;
use crate::auth::sign_in::unwritten;
use crate::auth::{Auth, Identity, unreadable};
use crate::ops::reserve;
use crate::registry::Registry;
use crate::{AppError, Class};
use std::future::Future;
use std::sync::Arc;
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;
use svc_shared::internal::access::{Device, SeenFrom};
use svc_store::{AddressRow, SignInRow};
use woothee::parser::{Parser, WootheeResult};

/// Digits of the stored hash that name a device.
const ID: usize = 16;

/// The browsers that are signed in.
pub struct Devices {
    pub(crate) auth: Arc<Auth>,
    pub(crate) registry: Arc<Registry>,
}

/// An address was first seen with a credential that had been used elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewAddress {
    /// The device or token, as a person knows it.
    pub(crate) who: String,
    pub(crate) address: String,
    pub(crate) since: Timestamp,
}

impl Devices {
    /// The devices: the one that asks first, then those seen last.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn list(&self, asking: Option<&Identity>) -> Result<Vec<Device>, AppError> {
        let own = asking.and_then(session);
        let rows = self.live().await?;
        let addresses = self.auth.store.addresses().await.map_err(unreadable)?;
        let mut devices: Vec<Device> = rows
            .into_iter()
            .map(|row| {
                let seen = addresses.iter().filter(|seen| seen.hash == row.hash);
                device(&row, seen, own == Some(row.hash.as_str()))
            })
            .collect();
        devices.sort_by_key(|device| (!device.current, -device.last_seen.as_millis()));
        Ok(devices)
    }

    async fn live(&self) -> Result<Vec<SignInRow>, AppError> {
        let mut rows = self.auth.store.sign_ins().await.map_err(unreadable)?;
        let now = self.auth.now();
        rows.retain(|row| row.expires_at > now);
        Ok(rows)
    }

    /// Signs a device out, with its sockets.
    /// Once begun it goes through, whether or not somebody still waits for it.
    ///
    /// # Errors
    /// There is no such device, or nothing could be written.
    pub async fn sign_out(&self, id: &str) -> Result<(), AppError> {
        let rows = self.live().await?;
        let row =
            rows.into_iter().find(|row| row.hash.get(..ID) == Some(id)).ok_or_else(unknown)?;
        self.end(|auth| async move {
            let now = auth.now();
            let was_there = auth.store.revoke_sign_in(&row.hash, now).await.map_err(unwritten)?;
            if was_there { Ok(()) } else { Err(unknown()) }
        })
        .await
    }

    /// Signs out every device but the one that asks, and returns how many there were.
    /// Somebody who came in without a session has none to keep.
    ///
    /// # Errors
    /// Nothing could be written.
    pub async fn sign_out_others(&self, asking: Option<&Identity>) -> Result<u64, AppError> {
        let own = asking.and_then(session).unwrap_or_default().to_owned();
        let live = self.live().await?.iter().filter(|row| row.hash != own).count();
        self.end(|auth| async move {
            let now = auth.now();
            auth.store.revoke_other_sign_ins(&own, now).await.map_err(unwritten).map(drop)
        })
        .await?;
        Ok(u64::try_from(live).unwrap_or(u64::MAX))
    }

    /// Writes the end of sessions and makes it known here and elsewhere.
    async fn end<F>(
        &self,
        write: impl FnOnce(Arc<Auth>) -> F + Send + 'static,
    ) -> Result<(), AppError>
    where
        F: Future<Output = Result<(), AppError>> + Send,
    {
        let (auth, registry) = (Arc::clone(&self.auth), Arc::clone(&self.registry));
        let work = async move {
            reserve::make_room(&auth.state_dir).await;
            write(Arc::clone(&auth)).await?;
            if auth.is_enabled() {
                let _reader = auth.reader.lock().await;
                auth.load().await?;
            }
            registry.tell_others();
            tracing::info!("signed out devices, as asked on the list of devices");
            Ok(())
        };
        tokio::spawn(work).await.map_err(AppError::internal)?
    }

    /// Uses of credentials from new addresses since a point in time, newest first.
    pub(crate) async fn new_addresses(
        &self,
        since: Timestamp,
    ) -> Result<Vec<NewAddress>, AppError> {
        let rows = self.live().await?;
        let tokens = self.auth.store.tokens().await.map_err(unreadable)?;
        let addresses = self.auth.store.addresses().await.map_err(unreadable)?;
        let is_first = |seen: &AddressRow| {
            addresses.iter().find(|other| other.hash == seen.hash).is_some_and(|one| one == seen)
        };
        let who = |hash: &str| {
            let device = rows.iter().find(|row| row.hash == hash).map(known);
            let token = tokens.iter().find(|row| row.hash == hash);
            device.or_else(|| token.map(|row| format!("the token `{}`", row.label)))
        };
        let new = addresses.iter().filter(|seen| seen.first_seen_at >= since && !is_first(seen));
        let mut new: Vec<NewAddress> = new
            .filter_map(|seen| {
                let (address, since) = (seen.address.clone(), seen.first_seen_at);
                Some(NewAddress { who: who(&seen.hash)?, address, since })
            })
            .collect();
        new.reverse();
        Ok(new)
    }
}

fn unknown() -> AppError {
    let words = "no signed-in device has this id; `svc devices list` lists them";
    AppError::new(ErrorCode::NotFound, Class::NotFound, words)
}

fn session(identity: &Identity) -> Option<&str> {
    match &identity.validity {
        Validity::Session { hash, .. } => Some(hash),
        Validity::Token { .. } | Validity::Fixed => None,
    }
}

fn device<'a>(
    row: &SignInRow,
    seen: impl Iterator<Item = &'a AddressRow>,
    current: bool,
) -> Device {
    let parsed = recognised(&row.user_agent);
    Device {
        id: row.hash.chars().take(ID).collect(),
        created: row.created_at,
        last_seen: row.last_seen_at,
        expires_at: row.expires_at,
        peer: row.peer.clone(),
        forwarded_for: row.forwarded_for.clone(),
        user_agent: row.user_agent.clone(),
        mobile: parsed.as_ref().is_some_and(|parsed| parsed.is_mobile),
        name: parsed.map(|parsed| parsed.name),
        current,
        addresses: seen
            .map(|seen| SeenFrom { address: seen.address.clone(), since: seen.first_seen_at })
            .collect(),
    }
}

/// What a device is called in a sentence.
fn known(row: &SignInRow) -> String {
    recognised(&row.user_agent).map_or_else(|| "a device".to_owned(), |found| found.name)
}

/// Browser and system of a user agent, as people call them.
pub(crate) fn browser_name(user_agent: &str) -> Option<String> {
    recognised(user_agent).map(|found| found.name)
}

struct Recognised {
    name: String,
    is_mobile: bool,
}

fn recognised(user_agent: &str) -> Option<Recognised> {
    const UNKNOWN: &str = "UNKNOWN";
    let WootheeResult { name, os, category, .. } = Parser::new().parse(user_agent)?;
    if name == UNKNOWN {
        return None;
    }
    let system = match os {
        os if os.starts_with("Windows") => "Windows",
        "Mac OSX" => "macOS",
        UNKNOWN => "",
        os => os,
    };
    let name = match system {
        "" => name.to_owned(),
        system => format!("{name} on {system}"),
    };
    Some(Recognised { name, is_mobile: matches!(category, "smartphone" | "mobilephone") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_browsers_are_called_as_people_call_them() {
        for (agent, name, is_mobile) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
                "Firefox on Linux",
                false,
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 \
                 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
                "Safari on iPhone",
                true,
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/126.0.0.0 Safari/537.36",
                "Chrome on Windows",
                false,
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, \
                 like Gecko) Version/17.5 Safari/605.1.15",
                "Safari on macOS",
                false,
            ),
        ] {
            let found = recognised(agent).unwrap();
            assert_eq!((found.name.as_str(), found.is_mobile), (name, is_mobile), "{agent}");
        }
        for odd in ["", "x", "\u{202e}", &"9".repeat(256)] {
            assert!(recognised(odd).is_none(), "{odd}");
        }
    }
}
