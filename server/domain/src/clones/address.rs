//! Which addresses a clone may be fetched from (H45).
//!
//! An address that carries an IPv4 address inside is judged by that one too.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Who can be behind an address. Later ones are worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reachable {
    /// Anybody's machine in the internet.
    Public,
    /// A private network. The configuration can allow it.
    Private,
    /// This machine, its neighbours on the link, or nothing that serves repositories.
    Never,
}

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Blocked {
    /// A private network that is not allowed.
    #[error(
        "its host is in a private network; `clone.allowed_private_cidrs` can allow the range, or \
         `clone.allow_private_hosts` all private networks"
    )]
    Private,
    /// Never allowed.
    #[error(
        "its host is this machine, a neighbour on the link or a reserved address; such addresses \
         are never cloned from"
    )]
    Never,
}

/// Judges one address.
///
/// `is_allowed` says which private addresses the configuration allows.
///
/// # Errors
/// It may not be dialled.
pub fn judge(address: IpAddr, is_allowed: &dyn Fn(IpAddr) -> bool) -> Result<(), Blocked> {
    match classify(address) {
        Reachable::Public => Ok(()),
        Reachable::Never => Err(Blocked::Never),
        Reachable::Private => {
            let canonical = address.to_canonical();
            let inner = match canonical {
                IpAddr::V6(v6) => embedded(v6),
                IpAddr::V4(_) => Vec::new(),
            };
            let is_inside = !inner.is_empty() && inner.iter().all(|v4| is_allowed(IpAddr::V4(*v4)));
            if is_inside || is_allowed(canonical) { Ok(()) } else { Err(Blocked::Private) }
        }
    }
}

/// Who can be behind an address.
#[must_use]
pub fn classify(address: IpAddr) -> Reachable {
    match address {
        IpAddr::V4(v4) => of_v4(v4),
        IpAddr::V6(v6) => {
            let inner = embedded(v6).into_iter().map(of_v4).max();
            inner.unwrap_or(Reachable::Public).max(of_v6(v6))
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Reachable {
    let [a, b, c, d] = address.octets();
    match (a, b, c, d) {
        // Metadata services of clouds outside the link-local range.
        (100, 100, 100, 200) | (168, 63, 129, 16) | (192, 0, 0, 192) => Reachable::Never,
        (0 | 127, ..) | (169, 254, ..) => Reachable::Never,
        // Documentation and the anycast address of 6to4 relays.
        (192, 0, 2, _) | (198, 51, 100, _) | (203, 0, 113, _) | (192, 88, 99, _) => {
            Reachable::Never
        }
        // Multicast, reserved, broadcast.
        (224.., ..) => Reachable::Never,
        (10, ..) | (172, 16..=31, ..) | (192, 168, ..) => Reachable::Private,
        (100, 64..=127, ..) | (192, 0, 0, _) | (198, 18 | 19, ..) => Reachable::Private,
        _ => Reachable::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Reachable {
    let [a, b, c, ..] = address.segments();
    // A metadata service (Amazon).
    if address == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254) {
        return Reachable::Never;
    }
    match (a, b, c) {
        (0xfc00..=0xfdff | 0xfec0..=0xfeff, ..) => Reachable::Private,
        // The translation prefixes: the address inside decides, and the local one is private.
        (0x64, 0xff9b, 0) => Reachable::Public,
        (0x64, 0xff9b, 1) => Reachable::Private,
        (0x2001, 0xdb8, _) | (0x3fff, 0..=0x0fff, _) => Reachable::Never,
        (0x2000..=0x3fff, ..) => Reachable::Public,
        (0, 0, 0) if !embedded(address).is_empty() => Reachable::Public,
        // Loopback, unspecified, link-local, multicast, and what nobody has assigned.
        _ => Reachable::Never,
    }
}

/// The IPv4 addresses that an IPv6 address leads to.
fn embedded(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let part = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    let segments = address.segments();
    let [_, b, c, d, e, f, g, h] = segments;
    match segments {
        // Mapped, and the older compatible form without `::` and `::1`.
        [0, 0, 0, 0, 0, 0xffff, ..] => vec![part(g, h)],
        [0, 0, 0, 0, 0, 0, ..] if g != 0 || h > 1 => vec![part(g, h)],
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => vec![part(g, h)],
        // RFC 8215: operators put it at the end or, with a /48, around the bits 64 to 71.
        [0x64, 0xff9b, 1, ..] => {
            let ([_, low], [high, _]) = (e.to_be_bytes(), f.to_be_bytes());
            vec![part(g, h), part(d, u16::from_be_bytes([low, high]))]
        }
        [0x2002, ..] => vec![part(b, c)],
        // Teredo: the server, and the client with its bits turned round.
        [0x2001, 0, ..] => vec![part(c, d), part(!g, !h)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, expected: Reachable) {
        assert_eq!(classify(address.parse().unwrap()), expected, "{address}");
    }

    #[test]
    fn h45_addresses_are_told_apart_with_what_they_carry_inside() {
        for never in [
            "0.0.0.0",
            "127.0.0.1",
            "127.255.1.2",
            "169.254.169.254",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "168.63.129.16",
            "100.100.100.200",
            "::",
            "::1",
            "fe80::1",
            "ff02::1",
            "2001:db8::1",
            "fd00:ec2::254",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::7f00:1",
            "64:ff9b:1:7f00:0:100::",
            "2002:7f00:1::",
            "2001:0:7f00:1::",
            "2001:0:808:808:0:0:80ff:fffe",
            "4000::1",
            "100::1",
        ] {
            check(never, Reachable::Never);
        }
        for private in [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "192.0.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "fc00::1",
            "fd12:3456::1",
            "fec0::1",
            "::ffff:10.0.0.1",
            "2002:a00:1::",
            "64:ff9b::a00:1",
        ] {
            check(private, Reachable::Private);
        }
        for public in
            ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2002:808:808::"]
        {
            check(public, Reachable::Public);
        }
    }

    #[test]
    fn h45_only_private_addresses_can_be_allowed() {
        let none = |_: IpAddr| false;
        let ten = |address: IpAddr| matches!(address, IpAddr::V4(v4) if v4.octets()[0] == 10);
        let judge = |address: &str, is_allowed: &dyn Fn(IpAddr) -> bool| {
            super::judge(address.parse().unwrap(), is_allowed)
        };
        assert_eq!(judge("10.1.2.3", &none), Err(Blocked::Private));
        assert_eq!(judge("10.1.2.3", &|_| true), Ok(()));
        assert_eq!(judge("10.1.2.3", &ten), Ok(()));
        assert_eq!(judge("::ffff:10.1.2.3", &ten), Ok(()));
        assert_eq!(judge("2002:a00:1::", &ten), Ok(()));
        assert_eq!(judge("192.168.0.1", &ten), Err(Blocked::Private));
        assert_eq!(judge("127.0.0.1", &|_| true), Err(Blocked::Never));
        assert!(!Blocked::Never.to_string().contains("allow_private"));
    }
}
