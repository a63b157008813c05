//! Which addresses are one peer, for everything that counts by peer (H21, H76).
//!
//! An address costs nothing where one machine has many of them: all of 127.0.0.0/8, and the 2^64
//! addresses of an IPv6 network. Whoever counts by single address does not count at all.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address that stands for everybody who could be the same machine.
///
/// - Loopback, and "this host" (0.0.0.0, `::`), which leads to loopback: 127.0.0.1.
/// - An IPv6 address that contains an IPv4 address (mapped, compatible, translated, 6to4): that
///   IPv4 address. Its holder has the rest of the IPv6 address for nothing.
/// - Any other IPv6 address: its first 64 bits, which one customer has.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4(network_of_four(address)),
        IpAddr::V6(address) if address.is_loopback() || address.is_unspecified() => {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        }
        IpAddr::V6(address) => match inner_address(address) {
            // Who announces a translated prefix of 127.0.0.0/8 is somebody outside all the same.
            Some(inner) if address.to_ipv4_mapped().is_some() || !is_local(inner) => {
                IpAddr::V4(network_of_four(inner))
            }
            Some(_) | None => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
            }
        },
    }
}

/// What [`network`] gave, as people read it.
/// Of IPv6 that is the network that one customer has.
#[must_use]
pub fn shown(network: IpAddr) -> String {
    match network {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(network) => format!("{network}/64"),
    }
}

fn network_of_four(address: Ipv4Addr) -> Ipv4Addr {
    if is_local(address) { Ipv4Addr::LOCALHOST } else { address }
}

fn is_local(address: Ipv4Addr) -> bool {
    // 0.0.0.0/8 is "this network" (RFC 1122) and leads to this machine.
    matches!(address.octets(), [0 | 127, ..])
}

/// The IPv4 address inside an IPv6 address, by the formats that routers translate.
fn inner_address(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let last = |[.., a, b]: [u16; 8]| Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b));
    match address.segments() {
        // `::a.b.c.d` (compatible), `::ffff:a.b.c.d` (mapped), `::ffff:0:a.b.c.d` (translated).
        parts @ ([0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..])
        // NAT64: 64:ff9b::/96 (RFC 6052).
        | parts @ [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(last(parts)),
        // 6to4: 2002:a.b:c.d::/48 (RFC 3056).
        [0x2002, a, b, ..] => Some(Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b))),
        _ => None,
    }
}
