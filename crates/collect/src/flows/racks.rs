//! Which rack an address is in.

use policy::Prefix;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Most racks, and most prefixes.
pub const RACKS_MAX: usize = 4096;
/// Most pairs of racks that are kept in a round.
pub const PAIRS_MAX: usize = 16_384;

/// Racks by the prefixes of their hosts; the longest prefix counts.
#[derive(Clone, Debug, Default)]
pub struct Racks {
    names: Vec<String>,
    /// By length, the longest first, for each kind of address.
    by_length: Vec<(u8, BTreeMap<IpAddr, u16>)>,
}

impl Racks {
    /// Of at most [`RACKS_MAX`] prefixes; others are left out.
    pub fn new(prefixes: &[(Prefix, String)]) -> Racks {
        let mut racks = Racks::default();
        for (prefix, name) in prefixes.iter().take(RACKS_MAX) {
            let number = racks.names.iter().position(|known| known == name).unwrap_or_else(|| {
                racks.names.push(name.clone());
                racks.names.len() - 1
            });
            let at = match racks.by_length.iter().position(|(bits, _)| *bits <= prefix.bits()) {
                Some(at) if racks.by_length[at].0 == prefix.bits() => at,
                at => {
                    let at = at.unwrap_or(racks.by_length.len());
                    racks.by_length.insert(at, (prefix.bits(), BTreeMap::new()));
                    at
                }
            };
            racks.by_length[at].1.insert(prefix.address(), number as u16);
        }
        racks
    }

    /// The number of the rack of an address.
    pub(super) fn of(&self, address: IpAddr) -> Option<u16> {
        let address = address.to_canonical();
        self.by_length.iter().find_map(|(bits, racks)| racks.get(&first_bits(address, *bits)?).copied())
    }

    pub(super) fn named(&self, name: &str) -> Option<u16> {
        self.names.iter().position(|known| known == name).map(|number| number as u16)
    }

    pub(super) fn name(&self, number: u16) -> &str {
        &self.names[usize::from(number)]
    }
}

/// The address with the other bits zero; `None` if it has fewer.
fn first_bits(address: IpAddr, bits: u8) -> Option<IpAddr> {
    let bits = u32::from(bits);
    Some(match address {
        IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & !u32::MAX.checked_shr(bits).unwrap_or(0)).into()),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & !u128::MAX.checked_shr(bits).unwrap_or(0)).into()),
    })
    .filter(|_| bits <= if address.is_ipv4() { 32 } else { 128 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_counts() {
        let prefixes =
            [("10.0.0.0/8", "a"), ("10.1.0.0/16", "b"), ("10.1.2.3/32", "c"), ("fd00::/8", "b"), ("::/0", "d")];
        let racks = Racks::new(&prefixes.map(|(prefix, name)| (prefix.parse().unwrap(), name.to_string())));
        let of = |address: &str| racks.of(address.parse().unwrap()).map(|number| racks.name(number));
        assert_eq!((of("10.2.0.1"), of("10.1.9.9"), of("10.1.2.3")), (Some("a"), Some("b"), Some("c")));
        assert_eq!((of("fd01::1"), of("2001:db8::1"), of("192.0.2.1")), (Some("b"), Some("d"), None));
        assert_eq!((of("::ffff:10.1.2.3"), racks.named("d"), racks.named("e")), (Some("c"), Some(3), None));
        let everything = Racks::new(&[("0.0.0.0/0".parse().unwrap(), "x".to_string())]);
        assert_eq!(everything.of("192.0.2.1".parse().unwrap()), Some(0));
    }
}
