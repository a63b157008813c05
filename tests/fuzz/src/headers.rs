//! Input from the network: framing, hosts, origins, credentials, return paths.

use svc_domain::credentials::{bearer, cookie, is_local_path, single};
use svc_domain::host::{AllowedHosts, Authority, Host, Protocol, authority};
use svc_domain::origin::{FetchSite, Origin};
use url::Url;

/// The reader of the service, with the limits it names.
#[expect(dead_code, reason = "the service uses more of it")]
#[path = "../../../server/http/src/accept/framing.rs"]
mod framing;

fn read(parts: &[&[u8]]) -> (bool, Vec<u8>, u64) {
    let mut framing = framing::Framing::new();
    let mut onward = bytes::BytesMut::new();
    let is_good = parts.iter().all(|part| framing.feed(part, &mut onward).is_ok());
    (is_good, onward.to_vec(), framing.requests())
}

/// A connection reads the same in one piece and byte by byte, and invents nothing.
pub(crate) fn framing(data: &[u8]) {
    let whole = read(&[data]);
    let single: Vec<&[u8]> = data.chunks(1).collect();
    let bytes = read(&single);
    assert_eq!(whole, bytes);
    assert!(whole.1.len() <= data.len());
}

/// Readers of `Host`, credentials and the fetch header, over several values.
pub(crate) fn headers(data: &[u8]) {
    let values: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    let all = || values.iter().copied();
    let target = values.last().and_then(|raw| std::str::from_utf8(raw).ok());
    let allowed = AllowedHosts::new("svc.test", [], &["a.test", "*.b.test"]);
    for protocol in [Protocol::Http10, Protocol::Http11, Protocol::Http2] {
        for target in [None, target] {
            if let Ok(meant) = authority(protocol, all(), target) {
                let _ = allowed.allows(meant.as_ref());
            }
        }
    }
    let _ = (bearer(all()), cookie(all(), "svc_session"), FetchSite::read(all()));
    if let Some(value) = single(all()) {
        assert!(value.chars().all(|one| one == ' ' || one.is_ascii_graphic()));
    }
    if let Some(text) = target {
        let _ = (Authority::parse(text), Host::parse(text));
    }
}

/// An origin that we accept names the same host to a browser that can read it.
pub(crate) fn origin(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = Origin::parse_entry(&text);
    let Ok(origin) = Origin::parse(&text) else { return };
    let Ok(url) = Url::parse(&text) else { return };
    // A browser reads numbers as addresses and decodes names; it never sends such an origin, so that
    // an entry of that kind only never matches.
    let is_plain = |name: &str| {
        let last = name.rsplit('.').next().unwrap_or_default();
        last.starts_with(|first: char| first.is_ascii_lowercase())
            && !name.contains("xn--")
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
    };
    let ours = match origin.host() {
        Host::Name(name) if is_plain(name) => name.clone(),
        Host::Name(_) => return,
        Host::V4(address) => address.to_string(),
        Host::V6(address) => format!("[{address}]"),
    };
    assert_eq!(url.host_str(), Some(ours.as_str()), "{text:?}");
}

/// A path that is accepted after signing in stays on this host in every browser.
pub(crate) fn next_path(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if !is_local_path(&text) {
        return;
    }
    let base = Url::parse("http://svc.test/login").unwrap_or_else(|error| panic!("{error}"));
    if let Ok(there) = base.join(&text) {
        assert_eq!(there.origin(), base.origin(), "{text:?} leads to {there}");
    }
}
