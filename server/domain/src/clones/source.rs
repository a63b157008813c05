//! The address that a project is cloned from (H44).

use std::net::{IpAddr, Ipv6Addr};
use svc_shared::text::is_unprintable;
use url::Url;

/// Longest address in bytes.
pub const MOST_BYTES: usize = 2048;

/// How git gets there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Over TLS.
    Https,
    /// Over SSH.
    Ssh,
}

impl Scheme {
    /// The schemes that exist, in the order of messages.
    pub const ALL: [Self; 2] = [Self::Https, Self::Ssh];

    /// The word in an address.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Ssh => "ssh",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Ssh => 22,
        }
    }
}

/// The schemes that a configuration allows. Other words are ignored.
#[must_use]
pub fn schemes(words: &[String]) -> Vec<Scheme> {
    let is_there = |scheme: &Scheme| words.iter().any(|word| word == scheme.as_str());
    Scheme::ALL.into_iter().filter(is_there).collect()
}

/// A checked address without anything secret in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// How to get there.
    pub scheme: Scheme,
    user: Option<String>,
    /// The name or address of the machine, in canonical form.
    pub host: Host,
    /// Its port.
    pub port: u16,
    path: String,
}

/// The machine of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A name in lower case, in ASCII, without a dot at its end.
    Name(String),
    /// An address.
    Address(IpAddr),
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(v4)) => write!(f, "{v4}"),
            Self::Address(IpAddr::V6(v6)) => write!(f, "[{v6}]"),
        }
    }
}

/// Why a text is no address to clone from. Never repeats the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSource {
    /// Nothing there.
    #[error("`url` is empty; give the address of a repository")]
    Empty,
    /// Too long.
    #[error("`url` has more than {MOST_BYTES} bytes")]
    TooLong,
    /// Control, white or invisible characters, or `\`.
    #[error("`url` has a blank, a `\\`, a control or an invisible character; remove it")]
    Characters,
    /// The short form of ssh.
    #[error("`url` is in the short form `host:path`; write it as `ssh://user@host/path`")]
    ShortForm,
    /// Another scheme.
    #[error("`url` must begin with {0}")]
    Scheme(String),
    /// A password.
    #[error(
        "`url` holds a password; remove it, and let git's own means on the machine of the service \
         give it: an SSH agent or key, or ~/.netrc"
    )]
    Password,
    /// Something that a program could take for an option.
    #[error("`url` has a user, host or path part that begins with `-`")]
    Option,
    /// A bad user.
    #[error("`url` has a user name with other characters than letters, digits and `.`, `_`, `-`")]
    User,
    /// A bad host or port.
    #[error("`url` has no host, or a host or port that is not valid")]
    Host,
    /// A query or a fragment.
    #[error("`url` has a `?` or `#`; the address of a repository has neither")]
    Query,
    /// No path, or one that is not valid.
    #[error("`url` names no repository; add its path after the host")]
    Path,
}

impl Source {
    /// Reads an address.
    ///
    /// # Errors
    /// It breaks a rule; nothing may be started for it.
    pub fn parse(raw: &str, allowed: &[Scheme]) -> Result<Self, BadSource> {
        if raw.is_empty() {
            return Err(BadSource::Empty);
        }
        if raw.len() > MOST_BYTES {
            return Err(BadSource::TooLong);
        }
        if raw.chars().any(|c| c.is_whitespace() || c == '\\' || is_unprintable(c)) {
            return Err(BadSource::Characters);
        }
        let (scheme, rest) = split_scheme(raw, allowed)?;
        if rest.contains(['?', '#']) {
            return Err(BadSource::Query);
        }
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(check_user(user)?), host),
            None => (None, authority),
        };
        if host.starts_with('-') {
            return Err(BadSource::Option);
        }
        // A `%` is a character in disguise, or the zone of a link-local address.
        if host.is_empty() || host.contains(['%', '@']) {
            return Err(BadSource::Host);
        }
        // The parser knows hosts of `https` best; git is given what it made of them.
        let parsed = Url::parse(&format!("https://{host}{path}")).map_err(|_| BadSource::Host)?;
        let port = match port_of(host)? {
            Some(port) => port,
            None => scheme.default_port(),
        };
        let host = match parsed.host() {
            Some(url::Host::Domain(name)) => Host::Name(check_name(name)?),
            Some(url::Host::Ipv4(v4)) => Host::Address(v4.into()),
            Some(url::Host::Ipv6(v6)) => Host::Address(v6.into()),
            None => return Err(BadSource::Host),
        };
        let path = check_path(parsed.path())?;
        Ok(Self { scheme, user, host, port, path })
    }

    /// Where a redirect of this source leads.
    ///
    /// The same rules apply, and no scheme but `https`.
    ///
    /// # Errors
    /// It leads to no repository that may be cloned.
    pub fn redirected(&self, location: &str) -> Result<Self, BadSource> {
        const SERVICE: &str = "/info/refs?service=git-upload-pack";
        let asked = format!("{}{SERVICE}", self.for_git());
        let asked = Url::parse(&asked).map_err(|_| BadSource::Host)?;
        let target = asked.join(location).map_err(|_| BadSource::Host)?;
        let target = target.as_str().strip_suffix(SERVICE).ok_or(BadSource::Path)?;
        Self::parse(target, &[Scheme::Https])
    }

    /// The address as git is given it: canonical, with the user if there is one.
    #[must_use]
    pub fn for_git(&self) -> String {
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        self.written(&user)
    }

    /// The address as people are shown it: without user.
    #[must_use]
    pub fn shown(&self) -> String {
        self.written("")
    }

    fn written(&self, user: &str) -> String {
        let Self { scheme, host, port, path, .. } = self;
        let port = match *port == scheme.default_port() {
            true => String::new(),
            false => format!(":{port}"),
        };
        format!("{}://{user}{host}{port}{path}", scheme.as_str())
    }

    /// Whether the name means this machine, whatever a resolver says.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        match &self.host {
            Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Host::Address(address) => {
                matches!(address.to_canonical(), IpAddr::V4(v4) if v4.is_loopback())
                    || *address == IpAddr::V6(Ipv6Addr::LOCALHOST)
            }
        }
    }

    /// The last part of the path without `.git`: what a project could be called.
    #[must_use]
    pub fn suggested_name(&self) -> &str {
        let last = self.path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        last.strip_suffix(".git").unwrap_or(last)
    }
}

fn split_scheme<'a>(raw: &'a str, allowed: &[Scheme]) -> Result<(Scheme, &'a str), BadSource> {
    let refused = || {
        let words: Vec<String> =
            allowed.iter().map(|scheme| format!("`{}://`", scheme.as_str())).collect();
        match words.is_empty() {
            true => {
                BadSource::Scheme("a scheme of `clone.allowed_schemes`, which allows none".into())
            }
            false => BadSource::Scheme(words.join(" or ")),
        }
    };
    let Some((word, rest)) = raw.split_once("://") else {
        let is_short = !raw.contains("::")
            && raw.split('/').next().is_some_and(|first| first.contains(':'))
            && !Scheme::ALL.iter().any(|scheme| raw.starts_with(&format!("{}:", scheme.as_str())));
        return Err(if is_short { BadSource::ShortForm } else { refused() });
    };
    let word = word.to_ascii_lowercase();
    let scheme = allowed.iter().find(|scheme| scheme.as_str() == word);
    scheme.map(|scheme| (*scheme, rest)).ok_or_else(refused)
}

fn check_user(user: &str) -> Result<String, BadSource> {
    if user.contains(':') {
        return Err(BadSource::Password);
    }
    if user.starts_with('-') {
        return Err(BadSource::Option);
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    if user.is_empty() || user.len() > 128 || !user.chars().all(fits) {
        return Err(BadSource::User);
    }
    Ok(user.to_owned())
}

fn port_of(authority: &str) -> Result<Option<u16>, BadSource> {
    let after_host = match authority.rsplit_once(']') {
        Some((_, after)) => after,
        None => authority.find(':').map_or("", |at| authority.split_at(at).1),
    };
    match after_host.strip_prefix(':') {
        None => Ok(None),
        Some(digits) => {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let port = digits.parse().ok().filter(|port| *port > 0 && is_number);
            port.map(Some).ok_or(BadSource::Host)
        }
    }
}

fn check_name(name: &str) -> Result<String, BadSource> {
    let name = name.trim_end_matches('.');
    let fits =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    if name.starts_with('-') {
        return Err(BadSource::Option);
    }
    if name.is_empty() || name.len() > 253 || !name.chars().all(fits) {
        return Err(BadSource::Host);
    }
    Ok(name.to_owned())
}

fn check_path(path: &str) -> Result<String, BadSource> {
    let decoded = decoded(path).ok_or(BadSource::Path)?;
    if decoded.chars().any(|c| c == '\\' || c.is_whitespace() || is_unprintable(c)) {
        return Err(BadSource::Characters);
    }
    let mut parts = decoded.split('/').filter(|part| !part.is_empty()).peekable();
    if parts.peek().is_none() {
        return Err(BadSource::Path);
    }
    if parts.any(|part| part.starts_with('-')) {
        return Err(BadSource::Option);
    }
    Ok(path.to_owned())
}

/// The text without percent-encoding; `None` if it is no text.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(raw: &str) -> Result<Source, BadSource> {
        Source::parse(raw, &Scheme::ALL)
    }

    #[test]
    fn h44_addresses_are_given_to_git_in_one_form() {
        for (raw, git, shown, name) in [
            (
                "HTTPS://Git.Example.org/team/ledger.git",
                "https://git.example.org/team/ledger.git",
                "https://git.example.org/team/ledger.git",
                "ledger",
            ),
            (
                "ssh://git@host.example:2222/~me/a/",
                "ssh://git@host.example:2222/~me/a/",
                "ssh://host.example:2222/~me/a/",
                "a",
            ),
            (
                "https://host.example.:443/x/../y",
                "https://host.example/y",
                "https://host.example/y",
                "y",
            ),
            ("https://0x7f000001/a", "https://127.0.0.1/a", "https://127.0.0.1/a", "a"),
            ("ssh://[2001:DB8::1]:22/a", "ssh://[2001:db8::1]/a", "ssh://[2001:db8::1]/a", "a"),
        ] {
            let source = parse(raw).unwrap();
            assert_eq!(source.for_git(), git);
            assert_eq!(source.shown(), shown);
            assert_eq!(source.suggested_name(), name);
        }
    }

    proptest::proptest! {
        /// What git is given means the same when it is read again, and hides nobody.
        #[test]
        fn h44_the_canonical_form_is_stable(
            raw in "(https|ssh)://([a-z-]{0,3}@)?[a-z0-9.\\-\\[\\]:%]{1,12}/[a-z0-9/.%~@:+-]{0,16}"
        ) {
            if let Ok(source) = parse(&raw) {
                proptest::prop_assert_eq!(parse(&source.for_git()), Ok(source.clone()));
                let authority = source.shown().split('/').nth(2).unwrap_or_default().to_owned();
                proptest::prop_assert!(!authority.contains('@') && !authority.starts_with('-'));
            }
        }
    }

    #[test]
    fn h44_what_is_no_plain_address_is_refused() {
        use BadSource::*;
        let https = || Scheme("`https://` or `ssh://`".into());
        for (raw, expected) in [
            ("", Empty),
            ("ext::sh -c x", Characters),
            ("ext::sh", https()),
            ("file:///etc", https()),
            ("/etc", https()),
            ("git://host/x", https()),
            ("http://host/x", https()),
            ("https:host", https()),
            ("https:/host/x", https()),
            ("git@host:path", ShortForm),
            ("host:path/x", ShortForm),
            ("ssh://-oProxyCommand=x/", Option),
            ("ssh://-x@host/a", Option),
            ("ssh://host/-oa", Option),
            ("ssh://host/%2doa", Option),
            ("ssh://%2doa/a", Host),
            ("https://a@b@c", User),
            ("https://host\\@evil", Characters),
            ("https://u:p@h/", Password),
            ("https://u:@h/x", Password),
            ("https://@h/x", User),
            ("https://h/a\tb", Characters),
            ("https://h/a%0ab", Characters),
            ("https://h/a\u{200b}b", Characters),
            ("https://h:0/a", Host),
            ("https://h:65536/a", Host),
            ("https://h:/a", Host),
            ("https://h:+1/a", Host),
            ("https://[::1/a", Host),
            ("https://[fe80::1%25eth0]/a", Host),
            ("https:///a", Host),
            ("https://h", Path),
            ("https://h/", Path),
            ("https://h/x?token=1", Query),
            ("https://h/x#y", Query),
            ("https://h/%ff", Path),
        ] {
            assert_eq!(parse(raw), Err(expected), "{raw}");
        }
        let long = format!("https://h/{}", "a".repeat(MOST_BYTES));
        assert_eq!(parse(&long), Err(TooLong));
        let only_ssh = Source::parse("https://h/a", &[super::Scheme::Ssh]);
        assert_eq!(only_ssh, Err(Scheme("`ssh://`".into())));
    }

    #[test]
    fn h45_texts_of_addresses_are_read_as_a_resolver_would() {
        use super::super::address::{Reachable, classify};
        for raw in [
            "0",
            "127.1",
            "2130706433",
            "0x7f000001",
            "017700000001",
            "[::]",
            "[::ffff:169.254.169.254]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "①②⑦.0.0.1",
        ] {
            let source = parse(&format!("https://{raw}/a")).unwrap();
            let Host::Address(address) = source.host else { panic!("{raw} is a name") };
            assert_eq!(classify(address), Reachable::Never, "{raw}");
        }
        assert!(parse("https://localhost./a").unwrap().is_this_machine());
        assert!(parse("https://a.LOCALHOST/a").unwrap().is_this_machine());
        assert!(!parse("https://nolocalhost/a").unwrap().is_this_machine());
    }

    #[test]
    fn h47_redirects_are_held_to_the_same_rules() {
        let from = parse("https://user@a.example/team/x").unwrap();
        let to = |location: &str| from.redirected(location).map(|to| to.for_git());
        let service = "info/refs?service=git-upload-pack";
        assert_eq!(
            to(&format!("https://b.example/team/x.git/{service}")),
            Ok("https://b.example/team/x.git".into())
        );
        // A server may leave out its own name; then the user stays too.
        assert_eq!(
            to(&format!("/team/x.git/{service}")),
            Ok("https://user@a.example/team/x.git".into())
        );
        for refused in [
            format!("http://a.example/x/{service}"),
            format!("file:///x/{service}"),
            format!("ssh://a.example/x/{service}"),
            format!("https://u:p@a.example/x/{service}"),
            "https://a.example/login".into(),
            "https://a.example/x/info/refs".into(),
            "::".into(),
        ] {
            assert!(to(&refused).is_err(), "{refused}");
        }
    }
}
