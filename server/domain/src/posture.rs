//! The startup refusals about exposure: what the service must not start with.
//!
//! Pure rules over the few configuration facts they need, so that start, `config check`, doctor
//! and the setup page give the same verdict. Reading the configuration is not its business.

use std::fmt;

/// The only addresses that count as loopback (`configuration` §4, key `host`).
///
/// Deliberately a list of spellings and not an address class: `127.0.0.2` and `[::1]` are bound
/// and matched differently by browsers, so they get no benefit of the doubt.
pub const LOOPBACK_HOSTS: [&str; 3] = ["127.0.0.1", "::1", "localhost"];

/// Whether `host` is one of [`LOOPBACK_HOSTS`], byte for byte.
#[must_use]
pub fn is_loopback_host(host: &str) -> bool {
    LOOPBACK_HOSTS.contains(&host)
}

/// The configuration facts that decide how exposed the service is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exposure<'a> {
    /// Bind address as configured.
    pub host: &'a str,
    /// Explicit permission to serve a network without sign-in.
    pub allow_unauthenticated_network: bool,
    /// Master switch of authentication.
    pub auth_enabled: bool,
    /// Password sign-in is asked for.
    pub password_required: bool,
    /// What the configured password hash is worth.
    pub password_hash: HashQuality,
    /// The unnamed bearer token is configured. Named tokens do not count.
    pub has_api_token_hash: bool,
    /// Whether the browser surface is served.
    pub ui_enabled: bool,
    /// When the session cookie is marked `Secure`.
    pub cookie: CookieMark,
    /// Trust in a reverse proxy, where switched on.
    pub proxy: Option<ProxyTrust>,
    /// TLS is configured.
    pub tls: bool,
}

/// What a configured password hash is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashQuality {
    /// None is configured.
    Missing,
    /// No password can match it: another algorithm, or no hash at all.
    Unusable,
    /// It matches so cheaply that a stolen file gives the password away.
    Weak,
    /// One attempt takes so much memory or time that it stops the machine (H22).
    Costly,
    /// Fine.
    Sound,
}

/// How a trusted reverse proxy is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyTrust {
    /// At least one address is on the allowlist.
    pub has_trusted_ips: bool,
    /// Some entry of the allowlist covers more than one address.
    pub has_wide_range: bool,
    /// Requests need a valid HMAC.
    pub require_hmac: bool,
    /// The HMAC key is configured.
    pub has_shared_secret: bool,
}

/// Whether the session cookie carries `Secure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieMark {
    /// Only when the connection is known to be encrypted.
    Auto,
    /// In every case.
    Always,
    /// In no case.
    Never,
}

/// Which protections this build really enforces.
///
/// A protecting key without enforcement behind it refuses to start: an operator who asked for a
/// password must never get an open service with a warning in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enforced {
    /// `auth.enabled`, `auth.password_required` and the bearer token.
    pub sign_in: bool,
    /// `auth.reverse_proxy.enabled`.
    pub reverse_proxy: bool,
    /// The section `tls`.
    pub tls: bool,
}

/// One reason not to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Reachable from a network with nothing that asks who is there.
    OpenNetworkBind {
        /// Whether sign-in could be switched on in this build.
        sign_in_available: bool,
    },
    /// A password is required and none is set.
    PasswordWithoutHash,
    /// A password is required and none can match the hash.
    UnusablePasswordHash,
    /// The hash of the password is guessed too quickly.
    WeakPasswordHash,
    /// The hash of the password takes too much to check.
    CostlyPasswordHash,
    /// A proxy is trusted and no address may be one.
    ProxyWithoutTrustedIps,
    /// The proxy's HMAC is required and has no key.
    ProxyWithoutSecret,
    /// A protection is asked for that this build does not have.
    NotEnforced(Protection),
}

/// A protection that a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protection {
    /// `auth.enabled`.
    SignIn,
    /// `auth.password_required`.
    Password,
    /// `auth.reverse_proxy.enabled`.
    ReverseProxy,
    /// The section `tls`.
    Tls,
    /// A network bind that relies on one of the others.
    NetworkBind,
}

impl Refusal {
    /// Dotted key the operator has to change.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::OpenNetworkBind { .. } | Self::NotEnforced(Protection::NetworkBind) => "host",
            Self::PasswordWithoutHash
            | Self::UnusablePasswordHash
            | Self::WeakPasswordHash
            | Self::CostlyPasswordHash => "auth.password_hash",
            Self::ProxyWithoutTrustedIps => "auth.reverse_proxy.trusted_ips",
            Self::ProxyWithoutSecret => "auth.reverse_proxy.shared_secret",
            Self::NotEnforced(Protection::SignIn) => "auth.enabled",
            Self::NotEnforced(Protection::Password) => "auth.password_required",
            Self::NotEnforced(Protection::ReverseProxy) => "auth.reverse_proxy.enabled",
            Self::NotEnforced(Protection::Tls) => "tls",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenNetworkBind { sign_in_available: true } => {
                "is not a loopback address and authentication is off; set auth.enabled with a \
                 password, a token or a trusted proxy, or bind 127.0.0.1, or accept it with \
                 auth.allow_unauthenticated_network: true"
            }
            Self::OpenNetworkBind { sign_in_available: false } => {
                "is not a loopback address and this build has no sign-in; bind 127.0.0.1 and reach \
                 it through a tunnel, or accept it with auth.allow_unauthenticated_network: true"
            }
            Self::PasswordWithoutHash => {
                "is missing although auth.password_required is on, so nobody could sign in; set \
                 it, or switch auth.password_required off"
            }
            Self::UnusablePasswordHash => {
                "is no $argon2id$ hash although auth.password_required is on, so no password can \
                 match; make one with `svc hash-password`"
            }
            Self::WeakPasswordHash => {
                "is checked so cheaply that a stolen file gives the password away (least: version \
                 19, 7 MiB and 5 passes or as much work, a salt of 8 bytes, a hash of 16); make \
                 one with `svc hash-password`"
            }
            Self::CostlyPasswordHash => {
                "asks for more than 1 GiB of memory or 16 passes per attempt; make one with \
                 `svc hash-password`"
            }
            Self::ProxyWithoutTrustedIps => {
                "is empty although auth.reverse_proxy.enabled is on, so no proxy can be trusted; \
                 list the proxy's addresses"
            }
            Self::ProxyWithoutSecret => {
                "is missing although auth.reverse_proxy.require_hmac is on; set it, or accept the \
                 header alone with auth.reverse_proxy.require_hmac: false"
            }
            Self::NotEnforced(Protection::NetworkBind) => {
                "is not a loopback address and relies on a protection this build does not enforce; \
                 bind 127.0.0.1 until a build with sign-in is installed"
            }
            Self::NotEnforced(
                Protection::SignIn
                | Protection::Password
                | Protection::ReverseProxy
                | Protection::Tls,
            ) => {
                "asks for a protection this build does not enforce, so starting would leave the \
                 service open; remove it, or install a build that has it"
            }
        })
    }
}

/// Every reason not to start, in a stable order; empty means it may start.
#[must_use]
pub fn refusals(exposure: &Exposure<'_>, enforced: Enforced) -> Vec<Refusal> {
    let mut found = Vec::new();
    if let Some(refusal) = network_bind(exposure, enforced) {
        found.push(refusal);
    }
    // Also with `auth.enabled: false`: the switch may be thrown later by someone who reads
    // `password_required` as "there is a password".
    match exposure.password_hash {
        HashQuality::Missing if exposure.password_required => {
            found.push(Refusal::PasswordWithoutHash);
        }
        HashQuality::Unusable if exposure.password_required => {
            found.push(Refusal::UnusablePasswordHash);
        }
        // Also where no password is required: the fresh proof of the password uses it.
        HashQuality::Weak => found.push(Refusal::WeakPasswordHash),
        HashQuality::Costly => found.push(Refusal::CostlyPasswordHash),
        HashQuality::Missing | HashQuality::Unusable | HashQuality::Sound => {}
    }
    if let Some(proxy) = exposure.proxy {
        if !proxy.has_trusted_ips {
            found.push(Refusal::ProxyWithoutTrustedIps);
        }
        if proxy.require_hmac && !proxy.has_shared_secret {
            found.push(Refusal::ProxyWithoutSecret);
        }
    }
    let asked = [
        (exposure.auth_enabled, enforced.sign_in, Protection::SignIn),
        (exposure.password_required, enforced.sign_in, Protection::Password),
        (exposure.proxy.is_some(), enforced.reverse_proxy, Protection::ReverseProxy),
        (exposure.tls, enforced.tls, Protection::Tls),
    ];
    for (is_asked, is_enforced, protection) in asked {
        if is_asked && !is_enforced {
            found.push(Refusal::NotEnforced(protection));
        }
    }
    found
}

/// The verdict on the bind address alone.
fn network_bind(exposure: &Exposure<'_>, enforced: Enforced) -> Option<Refusal> {
    if is_loopback_host(exposure.host) || exposure.allow_unauthenticated_network {
        return None;
    }
    let by_sign_in = exposure.password_required || exposure.has_api_token_hash;
    let by_proxy = exposure.proxy.is_some();
    if !exposure.auth_enabled || !(by_sign_in || by_proxy) {
        return Some(Refusal::OpenNetworkBind { sign_in_available: enforced.sign_in });
    }
    let is_held = (by_sign_in && enforced.sign_in) || (by_proxy && enforced.reverse_proxy);
    (!is_held).then_some(Refusal::NotEnforced(Protection::NetworkBind))
}

/// Something that starts but deserves a loud line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Caution {
    /// The session cookie would travel over plain HTTP.
    CookieWithoutSecure,
    /// No page to sign in on and nothing else to sign in with.
    NoWayInWithoutUi,
    /// Sign-in is on and there is no method.
    NobodyCanSignIn,
    /// Sign-in is on, and the password that is there is not asked for.
    PasswordNotAsked,
    /// The proxy is believed by address alone, for a whole range.
    WideHeaderOnlyProxy,
}

impl Caution {
    /// Dotted key the caution is about.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::CookieWithoutSecure => "auth.cookie_secure",
            Self::NoWayInWithoutUi => "ui.enabled",
            Self::NobodyCanSignIn => "auth.enabled",
            Self::PasswordNotAsked => "auth.password_required",
            Self::WideHeaderOnlyProxy => "auth.reverse_proxy.trusted_ips",
        }
    }
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CookieWithoutSecure => {
                "the session cookie would be sent over plain HTTP; configure tls, or a reverse \
                 proxy, or set it to always"
            }
            Self::NoWayInWithoutUi => {
                "is off and neither a token hash nor a reverse proxy is configured, so only named \
                 tokens can sign in"
            }
            Self::NobodyCanSignIn => {
                "is on without a password, a token hash or a reverse proxy, so only named tokens \
                 can sign in"
            }
            Self::PasswordNotAsked => {
                "is off although auth.password_hash is set, so nobody can sign in with that \
                 password; set it to true"
            }
            Self::WideHeaderOnlyProxy => {
                "trusts a range of addresses by the user header alone; every machine in it can \
                 name itself any user, so list single addresses or switch require_hmac on"
            }
        })
    }
}

/// Every caution, in a stable order.
#[must_use]
pub fn cautions(exposure: &Exposure<'_>) -> Vec<Caution> {
    let mut found = Vec::new();
    let has_proxy = exposure.proxy.is_some();
    if exposure.auth_enabled {
        let is_plain = match exposure.cookie {
            CookieMark::Always => false,
            CookieMark::Auto | CookieMark::Never => !exposure.tls && !has_proxy,
        };
        // To a loopback address it never leaves the machine.
        if exposure.password_required && is_plain && !is_loopback_host(exposure.host) {
            found.push(Caution::CookieWithoutSecure);
        }
        if !exposure.has_api_token_hash && !has_proxy {
            if !exposure.password_required {
                found.push(match exposure.password_hash {
                    HashQuality::Missing => Caution::NobodyCanSignIn,
                    HashQuality::Unusable
                    | HashQuality::Weak
                    | HashQuality::Costly
                    | HashQuality::Sound => Caution::PasswordNotAsked,
                });
            } else if !exposure.ui_enabled {
                found.push(Caution::NoWayInWithoutUi);
            }
        }
    }
    if exposure.proxy.is_some_and(|proxy| !proxy.require_hmac && proxy.has_wide_range) {
        found.push(Caution::WideHeaderOnlyProxy);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Enforced = Enforced { sign_in: true, reverse_proxy: true, tls: true };
    const NONE: Enforced = Enforced { sign_in: false, reverse_proxy: false, tls: false };
    const SOUND_PROXY: ProxyTrust = ProxyTrust {
        has_trusted_ips: true,
        has_wide_range: false,
        require_hmac: true,
        has_shared_secret: true,
    };

    fn plain(host: &str) -> Exposure<'_> {
        Exposure {
            host,
            allow_unauthenticated_network: false,
            auth_enabled: false,
            password_required: false,
            password_hash: HashQuality::Missing,
            has_api_token_hash: false,
            ui_enabled: true,
            cookie: CookieMark::Auto,
            proxy: None,
            tls: false,
        }
    }

    #[track_caller]
    fn refused(exposure: Exposure<'_>, enforced: Enforced, expected: &[Refusal]) {
        assert_eq!(refusals(&exposure, enforced), expected, "{exposure:?}");
    }

    #[test]
    fn only_three_spellings_of_loopback_may_be_open() {
        for host in LOOPBACK_HOSTS {
            refused(plain(host), ALL, &[]);
        }
        for host in
            ["127.0.0.2", "[::1]", "0.0.0.0", "::", "LOCALHOST", "localhost.", "", "192.0.2.1"]
        {
            refused(plain(host), ALL, &[Refusal::OpenNetworkBind { sign_in_available: true }]);
        }
    }

    #[test]
    fn a_network_bind_needs_an_enforced_method_or_the_explicit_opt_out() {
        let open = &[Refusal::OpenNetworkBind { sign_in_available: true }];
        let network = plain("0.0.0.0");
        refused(Exposure { auth_enabled: true, ..network }, ALL, open);
        refused(Exposure { has_api_token_hash: true, ..network }, ALL, open);
        refused(Exposure { auth_enabled: true, has_api_token_hash: true, ..network }, ALL, &[]);
        refused(Exposure { auth_enabled: true, proxy: Some(SOUND_PROXY), ..network }, ALL, &[]);
        refused(
            Exposure {
                auth_enabled: true,
                password_required: true,
                password_hash: HashQuality::Sound,
                ..network
            },
            ALL,
            &[],
        );
        refused(Exposure { allow_unauthenticated_network: true, ..network }, NONE, &[]);
    }

    #[test]
    fn a_required_password_needs_a_hash_on_any_host_and_with_auth_off() {
        refused(
            Exposure { password_required: true, ..plain("127.0.0.1") },
            ALL,
            &[Refusal::PasswordWithoutHash],
        );
        refused(
            Exposure {
                password_required: true,
                allow_unauthenticated_network: true,
                ..plain("0.0.0.0")
            },
            ALL,
            &[Refusal::PasswordWithoutHash],
        );
    }

    #[test]
    fn a_trusted_proxy_needs_addresses_and_its_hmac_a_key() {
        let proxy = |trust| Exposure { proxy: Some(trust), ..plain("127.0.0.1") };
        refused(proxy(SOUND_PROXY), ALL, &[]);
        refused(
            proxy(ProxyTrust { has_trusted_ips: false, has_shared_secret: false, ..SOUND_PROXY }),
            ALL,
            &[Refusal::ProxyWithoutTrustedIps, Refusal::ProxyWithoutSecret],
        );
        refused(
            proxy(ProxyTrust { require_hmac: false, has_shared_secret: false, ..SOUND_PROXY }),
            ALL,
            &[],
        );
    }

    #[test]
    fn a_protection_this_build_lacks_refuses_by_its_own_key() {
        let everything = Exposure {
            auth_enabled: true,
            password_required: true,
            password_hash: HashQuality::Sound,
            proxy: Some(SOUND_PROXY),
            tls: true,
            ..plain("0.0.0.0")
        };
        refused(everything, ALL, &[]);
        let keys: Vec<_> = refusals(&everything, NONE).into_iter().map(Refusal::key).collect();
        assert_eq!(
            keys,
            ["host", "auth.enabled", "auth.password_required", "auth.reverse_proxy.enabled", "tls"]
        );
    }

    #[test]
    fn cautions_name_what_would_surprise_the_operator() {
        let password = Exposure {
            auth_enabled: true,
            password_required: true,
            password_hash: HashQuality::Sound,
            ..plain("127.0.0.1")
        };
        assert_eq!(cautions(&password), [], "what setup suggests is nothing to warn about");
        let password = Exposure { host: "192.168.1.5", ..password };
        assert_eq!(cautions(&password), [Caution::CookieWithoutSecure]);
        assert_eq!(cautions(&Exposure { tls: true, ..password }), []);
        assert_eq!(cautions(&Exposure { cookie: CookieMark::Always, ..password }), []);
        assert_eq!(
            cautions(&Exposure { tls: true, ui_enabled: false, ..password }),
            [Caution::NoWayInWithoutUi]
        );
        assert_eq!(
            cautions(&Exposure { auth_enabled: true, ..plain("127.0.0.1") }),
            [Caution::NobodyCanSignIn]
        );
        let unasked = Exposure { host: "127.0.0.1", password_required: false, ..password };
        assert_eq!(cautions(&unasked), [Caution::PasswordNotAsked]);
        let with_token = Exposure { has_api_token_hash: true, ..unasked };
        assert_eq!(cautions(&with_token), [], "a password may be there for its fresh proof alone");
        let loose = ProxyTrust { require_hmac: false, has_wide_range: true, ..SOUND_PROXY };
        assert_eq!(
            cautions(&Exposure { proxy: Some(loose), ..plain("127.0.0.1") }),
            [Caution::WideHeaderOnlyProxy]
        );
    }
}
