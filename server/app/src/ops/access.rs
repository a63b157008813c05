//! Use-case: who can reach this service, in plain sentences (`http-api` §3.9, N11).
//!
//! The sentences follow from the configuration, as the start and the doctor judge it. They are pure
//! functions over it; only tokens, devices and their addresses are read.

use crate::AppError;
use crate::auth::{Auth, Devices, Tokens};
use crate::ops::Accounts;
use crate::ops::doctor::certificate;
use std::sync::Arc;
use std::time::Duration;
use svc_config::{Config, judge_exposure};
use svc_domain::accounts::told;
use svc_domain::posture::{Caution, is_loopback_host};
use svc_shared::Timestamp;
use svc_shared::internal::access::{
    Access, AccessAuth, Finding, Listen, NamedToken, ProxyProof, TlsKind,
};
use svc_shared::status::CheckStatus;

/// How long a use from a new address is shown.
/// A week, so that a weekend hides none.
const NEW_ADDRESS_SHOWN: Duration = Duration::from_secs(7 * 24 * 3600);
/// Most uses from new addresses that are shown.
const NEW_ADDRESSES: usize = 5;

/// Tells who can reach the service.
pub struct AccessReport {
    pub(crate) config: Arc<Config>,
    pub(crate) auth: Arc<Auth>,
    pub(crate) devices: Arc<Devices>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) port: u16,
}

impl AccessReport {
    /// What a start says about other accounts of this machine.
    pub async fn warning(&self) -> Option<String> {
        self.accounts.warning(&self.config).await
    }

    /// The facts and what follows from them.
    /// `https`: the request that asks was encrypted.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn report(&self, https: bool) -> Result<Access, AppError> {
        let (config, at) = (&*self.config, self.auth.now());
        let tokens = self.tokens.list().await?;
        let devices = self.devices.list(None).await?.len();
        let mut findings = sentences(config, self.port);
        findings.extend(of_certificate(config, at));
        findings.extend(of_accounts(&self.accounts.in_control(config).await));
        findings.extend(of_tokens(config, &tokens, at));
        let since = Timestamp::from_millis(
            at.as_millis() - i64::try_from(NEW_ADDRESS_SHOWN.as_millis()).unwrap_or_default(),
        );
        let new = self.devices.new_addresses(since).await?;
        findings.extend(new.into_iter().take(NEW_ADDRESSES).map(|new| Finding {
            level: CheckStatus::Warn.into(),
            code: "new_address".to_owned(),
            title: format!("{} was used from a new address.", upper(&new.who)),
            detail: format!(
                "Since {} it was used from {}, and before that only from elsewhere. If that \
                     was not you, sign it out or revoke it below.",
                new.since, new.address
            ),
            key: None,
        }));
        findings.sort_by_key(|finding| match finding.level.known() {
            Some(CheckStatus::Fail) => 0,
            Some(CheckStatus::Warn) | None => 1,
            Some(CheckStatus::Ok) => 2,
        });
        let auth = &config.auth;
        let proxy = &auth.reverse_proxy;
        let proof = if proxy.require_hmac { ProxyProof::Hmac } else { ProxyProof::HeaderOnly };
        Ok(Access {
            at,
            listen: Listen {
                host: config.host.clone(),
                port: self.port,
                loopback: is_loopback_host(&config.host),
            },
            tls: tls_kind(config).into(),
            https,
            auth: AccessAuth {
                enabled: auth.enabled,
                password: auth.enabled && auth.password_required,
                api_token: auth.api_token_hash.is_some(),
                tokens: tokens.len(),
                devices,
                proxy: proxy.enabled.then(|| proof.into()),
            },
            allowed_origins: auth.allowed_origins.clone(),
            allowed_hosts: auth.allowed_hosts.clone(),
            findings,
        })
    }
}

/// How the service itself encrypts.
fn tls_kind(config: &Config) -> TlsKind {
    match &config.tls {
        None => TlsKind::Off,
        Some(tls) if tls.cert_file.is_some() => TlsKind::Files,
        Some(_) => TlsKind::SelfSigned,
    }
}

fn upper(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn finding(
    level: CheckStatus,
    code: &str,
    title: impl Into<String>,
    detail: impl Into<String>,
    key: &str,
) -> Finding {
    Finding {
        level: level.into(),
        code: code.to_owned(),
        title: title.into(),
        detail: detail.into(),
        key: Some(key.to_owned()),
    }
}

/// What follows from the configuration alone.
fn sentences(config: &Config, port: u16) -> Vec<Finding> {
    let mut found = vec![listen(config, port), sign_in(config), encryption(config)];
    found.extend(proxy(config));
    if !config.auth.allowed_origins.is_empty() {
        found.push(finding(
            CheckStatus::Ok,
            "origins",
            "Pages of other addresses may use svc in your browser.",
            format!("They are {}.", config.auth.allowed_origins.join(", ")),
            "auth.allowed_origins",
        ));
    }
    let (refusals, cautions) = judge_exposure(config);
    found.extend(refusals.iter().map(|refusal| {
        let words = format!("`{}` {refusal}.", refusal.key());
        finding(CheckStatus::Fail, "refused", "svc would not start so again.", words, refusal.key())
    }));
    found.extend(cautions.iter().map(|caution| {
        let (code, title) = match caution {
            Caution::CookieWithoutSecure => ("cookie", "Your sign-in travels unencrypted."),
            Caution::NoWayInWithoutUi => ("no_page", "There is no page to sign in on."),
            Caution::NobodyCanSignIn => ("nobody", "Only named tokens can sign in."),
            Caution::PasswordNotAsked => {
                ("password_off", "There is a password, but nobody can sign in with it.")
            }
            Caution::WideHeaderOnlyProxy => {
                ("wide_proxy", "Many machines can name themselves any user.")
            }
        };
        let words = format!("`{}` {caution}.", caution.key());
        finding(CheckStatus::Warn, code, title, words, caution.key())
    }));
    found
}

fn listen(config: &Config, port: u16) -> Finding {
    let (host, is_open) = (&config.host, !config.auth.enabled);
    let place =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    if is_loopback_host(host) {
        let names = &config.auth.allowed_hosts;
        let is_passed_on = !config.auth.reverse_proxy.trusted_ips.is_empty()
            || !config.auth.allowed_origins.is_empty()
            || !names.is_empty();
        return match is_passed_on {
            true => finding(
                CheckStatus::Ok,
                "listen",
                "Other devices come in only through a proxy or a tunnel.",
                format!("svc listens on {place}, on this machine only, and expects one."),
                "host",
            ),
            false => finding(
                CheckStatus::Ok,
                "listen",
                "Only this machine can reach svc.",
                format!("svc listens on {place}. Another device needs a tunnel or a proxy."),
                "host",
            ),
        };
    }
    match is_open {
        true => finding(
            CheckStatus::Fail,
            "listen",
            "Every device in your network controls svc.",
            format!("svc listens on {place} and asks nobody who they are."),
            "host",
        ),
        false => finding(
            CheckStatus::Warn,
            "listen",
            "Every device in your network can open the sign-in page.",
            format!("svc listens on {place}, not only on this machine."),
            "host",
        ),
    }
}

fn sign_in(config: &Config) -> Finding {
    let auth = &config.auth;
    if !auth.enabled {
        return finding(
            if is_loopback_host(&config.host) { CheckStatus::Ok } else { CheckStatus::Fail },
            "sign_in",
            "Nobody is asked for a password.",
            "Every program and every account that reaches svc can start agents and read logs.",
            "auth.enabled",
        );
    }
    let detail = match auth.password_required {
        true => "Five wrong passwords from one address block that address for five minutes.",
        false => "No password is set up, so a token or a trusted proxy is the only way in.",
    };
    let title = match auth.password_required {
        true => "Nobody gets further without your password or a token.",
        false => "Nobody gets further without a token.",
    };
    finding(CheckStatus::Ok, "sign_in", title, detail, "auth.enabled")
}

fn encryption(config: &Config) -> Finding {
    let is_local = is_loopback_host(&config.host);
    match tls_kind(config) {
        TlsKind::Files => finding(
            CheckStatus::Ok,
            "encryption",
            "The connection is encrypted.",
            "svc uses the certificate of your files.",
            "tls.cert_file",
        ),
        TlsKind::SelfSigned => finding(
            CheckStatus::Ok,
            "encryption",
            "The connection is encrypted.",
            "svc made the certificate itself, so a browser warns until you trust it on that device.",
            "tls.provision",
        ),
        TlsKind::Off if is_local => finding(
            CheckStatus::Ok,
            "encryption",
            "The connection is not encrypted, and does not leave this machine.",
            "A proxy or a tunnel in front of svc must encrypt it.",
            "tls.provision",
        ),
        TlsKind::Off => finding(
            CheckStatus::Warn,
            "encryption",
            "The connection to svc is not encrypted.",
            "Whoever can listen in on your network reads the password and everything else.",
            "tls.provision",
        ),
    }
}

fn proxy(config: &Config) -> Option<Finding> {
    let proxy = &config.auth.reverse_proxy;
    if !proxy.enabled || !config.auth.enabled {
        return None;
    }
    let places = proxy.trusted_ips.join(", ");
    Some(match proxy.require_hmac {
        true => finding(
            CheckStatus::Ok,
            "proxy",
            "A proxy can sign you in.",
            format!("It connects from {places} and signs each request."),
            "auth.reverse_proxy.enabled",
        ),
        false => finding(
            CheckStatus::Warn,
            "proxy",
            "A proxy can sign in anybody it names.",
            format!(
                "Whatever connects from {places} is believed without a signature, other programs \
                 on that machine too."
            ),
            "auth.reverse_proxy.require_hmac",
        ),
    })
}

/// What the doctor finds wrong with the certificate.
/// Reads two small files.
fn of_certificate(config: &Config, now: Timestamp) -> Option<Finding> {
    let check = certificate(config, now).filter(|check| !check.status.is(&CheckStatus::Ok))?;
    let title = match check.status.is(&CheckStatus::Fail) {
        true => "Browsers refuse the certificate of svc.",
        false => "The certificate of svc needs attention.",
    };
    let remedy = check.hint.unwrap_or_default();
    let named = ["tls.cert_file", "tls.key_file"].into_iter().find(|key| remedy.contains(key));
    Some(Finding {
        level: check.status,
        code: "certificate".to_owned(),
        title: title.to_owned(),
        detail: format!("{}. Remedy: {remedy}.", upper(&check.detail)),
        key: Some(named.unwrap_or("tls.provision").to_owned()),
    })
}

fn of_accounts(others: &[String]) -> Option<Finding> {
    (!others.is_empty()).then(|| {
        finding(
            CheckStatus::Warn,
            "accounts",
            "Other accounts of this machine control svc.",
            format!("{}, and nobody is asked for a password.", told(others)),
            "auth.enabled",
        )
    })
}

fn of_tokens(config: &Config, tokens: &[NamedToken], now: Timestamp) -> Vec<Finding> {
    let mut found = Vec::new();
    if !config.auth.enabled {
        return found;
    }
    if config.auth.api_token_hash.is_some() {
        found.push(finding(
            CheckStatus::Ok,
            "api_token",
            "The token of svc.yml opens everything.",
            "It never expires and is changed only in the file.",
            "auth.api_token_hash",
        ));
    }
    let is_live = |token: &&NamedToken| token.expires_at.is_none_or(|expires| expires > now);
    let everything = |token: &&NamedToken| token.scopes.is_none() && token.expires_at.is_none();
    let open: Vec<&str> = tokens
        .iter()
        .filter(is_live)
        .filter(everything)
        .map(|token| token.label.as_str())
        .collect();
    if !open.is_empty() {
        let many = open.len();
        let shown: Vec<&str> = open.into_iter().take(3).collect();
        let title = match many {
            1 => "1 token may do everything and never expires.".to_owned(),
            many => format!("{many} tokens may do everything and never expire."),
        };
        let more = if many > 3 { " and others" } else { "" };
        let are = if many == 1 { "It is" } else { "They are" };
        found.push(Finding {
            level: CheckStatus::Ok.into(),
            code: "full_tokens".to_owned(),
            title,
            detail: format!("{are} {}{more}.", shown.join(", ")),
            key: None,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(more: &str) -> Vec<(String, String)> {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir(tree.path().join("projects")).unwrap();
        let text = format!("projects_root: projects\nstate_dir: state\n{more}");
        let config = match svc_config::load_text(&text, tree.path()) {
            Ok(loaded) => loaded.config,
            Err(errors) => errors.exposed.expect("only exposure speaks against it").config,
        };
        let found = sentences(&config, 7621);
        found.into_iter().map(|one| (one.level.to_string(), one.code)).collect()
    }

    fn has(found: &[(String, String)], level: &str, code: &str) -> bool {
        found.iter().any(|one| one.0 == level && one.1 == code)
    }

    #[test]
    fn every_way_in_has_its_sentence() {
        let quiet = codes("");
        assert!(quiet.iter().all(|(level, _)| level == "ok"), "{quiet:?}");
        let open = codes("host: 0.0.0.0\nauth:\n  allow_unauthenticated_network: true\n");
        assert!(has(&open, "fail", "listen") && has(&open, "fail", "sign_in"), "{open:?}");
        assert!(has(&open, "warn", "encryption"), "{open:?}");
        let token = "0".repeat(64);
        let network =
            codes(&format!("host: 0.0.0.0\nauth:\n  enabled: true\n  api_token_hash: '{token}'\n"));
        assert!(has(&network, "warn", "listen") && has(&network, "ok", "sign_in"), "{network:?}");
        let proxy = codes(
            "auth:\n  enabled: true\n  reverse_proxy:\n    enabled: true\n    require_hmac: false\n\
             \x20   trusted_ips: [10.0.0.0/8]\n",
        );
        assert!(has(&proxy, "warn", "proxy") && has(&proxy, "warn", "wide_proxy"), "{proxy:?}");
    }
}
