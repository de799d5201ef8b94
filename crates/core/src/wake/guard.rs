//! Which addresses may be called (against requests forged through us). Pure.
//!
//! A target is trusted when it is on the operator's allow list. Everything else must have a public address. The router is not
//! looked at here: it is trusted where an alarm names no target, and an alarm that names its host is judged like any other. An
//! address counts as what it stands for: IPv4 inside IPv6, in any of its forms, is judged as IPv4.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use url::{Host, Url};

/// Not to be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Forbidden(String);

impl Forbidden {
    pub(super) fn without_host() -> Self {
        Self("the target's URL names no host".to_owned())
    }

    fn address(address: IpAddr) -> Self {
        Self(format!(
            "the target's address {address} is not a public one; an operator can allow it by alarms.allow_targets"
        ))
    }
}

/// One entry of the allow list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// A host by name or address, on one port or on all.
    Host {
        /// As URLs write it.
        name: String,
        /// None: every port.
        port: Option<u16>,
    },
    /// Every address of a network.
    Network {
        /// Its address.
        address: IpAddr,
        /// The length of its prefix.
        prefix: u8,
    },
}

impl FromStr for Allowed {
    type Err = String;

    /// `hooks.internal`, `hooks.internal:8080`, `10.1.2.3`, `[fd00::1]:8080` or `10.0.0.0/8`.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || format!("{text:?} is neither a host, nor host:port, nor a network like 10.0.0.0/8");
        if let Some((address, prefix)) = text.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| wrong())?;
            let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
            let longest = if address.is_ipv4() { 32 } else { 128 };
            return if prefix <= longest {
                Ok(Self::Network { address, prefix })
            } else {
                Err(wrong())
            };
        }
        // The parser of URLs writes a host in the one way in which we compare it.
        let url = Url::parse(&format!("http://{text}/")).map_err(|_| wrong())?;
        let plain = url.path() == "/" && url.query().is_none() && url.username().is_empty();
        let name = url.host_str().filter(|_| plain).ok_or_else(wrong)?.to_owned();
        let port = text
            .rsplit_once(':')
            .filter(|(_, port)| !port.contains(']'))
            .map(|(_, port)| port.parse().map_err(|_| wrong()))
            .transpose()?;
        Ok(Self::Host { name, port })
    }
}

/// What the operator trusts.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    allowed: Vec<Allowed>,
}

impl Guard {
    /// Trusts these, and public addresses.
    #[must_use]
    pub fn new(allowed: Vec<Allowed>) -> Self {
        Self { allowed }
    }

    /// Is the target named by the operator?
    #[must_use]
    pub fn trusts(&self, url: &Url) -> bool {
        let (Some(host), port) = (url.host_str(), url.port_or_known_default()) else {
            return false;
        };
        self.allowed.iter().any(|allowed| match allowed {
            Allowed::Host { name, port: wanted } => {
                name == host && wanted.is_none_or(|wanted| Some(wanted) == port)
            }
            Allowed::Network { .. } => match url.host() {
                Some(Host::Ipv4(address)) => self.is_in_allowed_network(address.into()),
                Some(Host::Ipv6(address)) => self.is_in_allowed_network(address.into()),
                _ => false,
            },
        })
    }

    /// May wakes go to this target, as far as its URL tells? What a name stands for is only known when it is called, and looked
    /// at then.
    pub fn check_url(&self, url: &Url) -> Result<(), Forbidden> {
        if self.trusts(url) {
            return Ok(());
        }
        match url.host() {
            Some(Host::Ipv4(address)) => self.check(address.into()),
            Some(Host::Ipv6(address)) => self.check(address.into()),
            Some(Host::Domain(name)) if is_this_machine(name) => self.check(Ipv4Addr::LOCALHOST.into()),
            Some(Host::Domain(_)) => Ok(()),
            None => Err(Forbidden::without_host()),
        }
    }

    /// May this address be connected to?
    pub fn check(&self, address: IpAddr) -> Result<(), Forbidden> {
        if self.is_in_allowed_network(address) || is_public(address) {
            Ok(())
        } else {
            Err(Forbidden::address(address))
        }
    }

    fn is_in_allowed_network(&self, address: IpAddr) -> bool {
        let address = canonical(address);
        self.allowed.iter().any(|allowed| match allowed {
            Allowed::Network {
                address: network,
                prefix,
            } => contains(canonical(*network), *prefix, address),
            Allowed::Host { .. } => false,
        })
    }
}

/// Names that stand for the machine itself wherever they are looked up (RFC 6761).
fn is_this_machine(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

fn contains(network: IpAddr, prefix: u8, address: IpAddr) -> bool {
    let same = |a: u128, b: u128, width: u8| {
        let shift = u32::from(width - prefix.min(width));
        a.checked_shr(shift).unwrap_or_default() == b.checked_shr(shift).unwrap_or_default()
    };
    match (network, address) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same(u32::from(a).into(), u32::from(b).into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => same(a.into(), b.into(), 128),
        _ => false,
    }
}

/// What an address stands for: IPv4 that is mapped into IPv6, compatible with it, or behind NAT64.
fn canonical(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    let segments = v6.segments();
    let low = || {
        let [.., a, b, c, d] = v6.octets();
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // The unspecified address and the loopback stay what they are.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => address,
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => low(),
        _ => address,
    }
}

/// Is this an address of the public internet, by the registries of special-purpose addresses?
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match canonical(address) {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match a {
        // This network, private, loopback, multicast, reserved, broadcast.
        0 | 10 | 127 | 224.. => true,
        // Shared by carriers.
        100 => (64..128).contains(&b),
        // Link local: the metadata services of clouds live here.
        169 => b == 254,
        172 => (16..32).contains(&b),
        // Protocol assignments, documentation, relays, private.
        192 => matches!((b, c), (0, 0 | 2) | (88, 99) | (168, _)),
        // Measurements, documentation.
        198 => matches!((b, c), (18 | 19, _) | (51, 100)),
        203 => (b, c) == (0, 113),
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    // Only global unicast is public at all; the rest is local, multicast, or not assigned.
    let global = segments[0] & 0xe000 == 0x2000;
    let special = matches!(
        segments,
        // Protocol assignments with Teredo, documentation, 6to4 (which stands for an IPv4 address).
        [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x2002, ..] | [0x3fff, 0..=0x0fff, ..]
    );
    global && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_public_and_all_others_are_not() {
        for address in [
            "93.184.215.14",
            "1.1.1.1",
            "2606:4700:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "100::1",
            "3fff::1",
            "5f00::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn an_entry_allows_what_it_names_and_nothing_else() {
        let guard = |entry: &str| Guard::new(vec![entry.parse().unwrap()]);
        let trusts = |entry: &str, url: &str| guard(entry).trusts(&url.parse().unwrap());
        assert!(trusts("hooks.internal", "http://hooks.internal:99/x"));
        assert!(trusts("Hooks.Internal:8080", "http://hooks.internal:8080/"));
        assert!(!trusts("hooks.internal:8080", "http://hooks.internal/"));
        assert!(!trusts("hooks.internal", "http://hooks.internal.evil.example/"));
        assert!(
            trusts("127.0.0.1:9000", "http://127.1:9000/"),
            "the same address in another form"
        );
        assert!(trusts("[::1]:9000", "http://[0:0::1]:9000/"));
        assert!(trusts("10.0.0.0/8", "http://10.9.8.7/"));
        assert!(!trusts("10.0.0.0/8", "http://11.0.0.1/"));
        assert!(
            guard("10.0.0.0/8")
                .check("::ffff:10.1.1.1".parse().unwrap())
                .is_ok()
        );
        assert!(guard("10.0.0.0/8").check("192.168.0.1".parse().unwrap()).is_err());
        assert!(guard("0.0.0.0/0").check("127.0.0.1".parse().unwrap()).is_ok());
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for text in [
            "",
            "10.0.0.0/33",
            "http://host/",
            "a b",
            "host/path",
            "user@host",
            "host:99999",
        ] {
            assert!(text.parse::<Allowed>().is_err(), "{text}");
        }
    }
}
