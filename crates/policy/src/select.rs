//! Which hosts, and which of their sessions.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Hosts, as a rule names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// The treated hosts.
    Treated,
    /// Every host, whatever the rollout says.
    All,
    /// The treated hosts whose name matches one of these patterns, in which `*` is any text.
    Named(Vec<String>),
}

/// Sessions of a host; an absent field matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sessions {
    /// The other end's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<Prefix>,
    /// The server's port: the remote one of an active, the local one of a passive connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The cgroup of the process, and all below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
}

impl Sessions {
    /// Whether it matches a session with this remote address and server port, of a process in this cgroup.
    pub fn contains(&self, remote: IpAddr, port: u16, cgroup: &str) -> bool {
        self.remote.is_none_or(|prefix| prefix.contains(remote))
            && self.port.is_none_or(|asked| asked == port)
            && self.cgroup.as_ref().is_none_or(|outer| below(outer, cgroup))
    }

    /// Whether a session can match both.
    pub fn overlaps(&self, other: &Sessions) -> bool {
        let both = |one: &Option<u16>, other: &Option<u16>| one.is_none() || other.is_none() || one == other;
        let prefixes = match (self.remote, other.remote) {
            (Some(one), Some(other)) => one.covers(other) || other.covers(one),
            _ => true,
        };
        let cgroups = match (&self.cgroup, &other.cgroup) {
            (Some(one), Some(other)) => below(one, other) || below(other, one),
            _ => true,
        };
        prefixes && cgroups && both(&self.port, &other.port)
    }
}

impl fmt::Display for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.remote.map(|remote| format!("to {remote}")),
            self.port.map(|port| format!("port {port}")),
            self.cgroup.as_ref().map(|cgroup| format!("cgroup {cgroup}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "all sessions" } else { "sessions " })?;
        f.write_str(&parts.join(", "))
    }
}

/// Whether the cgroup `inner` is `outer` or in it.
fn below(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// An address and the number of its leading bits that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

/// Why a text is not a prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// Not an address and a length.
    #[error("`{0}` is not a prefix; write for example `10.0.0.0/8` or `fd00::/8`")]
    Shape(String),
    /// More bits than the address has.
    #[error("`{text}` has a length of {bits}; an address of its kind has {most} bits")]
    Length {
        /// What was written.
        text: String,
        /// Its length.
        bits: u32,
        /// The longest.
        most: u8,
    },
    /// Bits set after the prefix.
    #[error("`{text}` has bits set behind its length; its network is `{network}`")]
    HostBits {
        /// What was written.
        text: String,
        /// Without them.
        network: Prefix,
    },
}

impl Prefix {
    /// The prefix of `address` with `bits` bits; `None` if there are bits behind it, or too many asked for.
    pub fn new(address: IpAddr, bits: u8) -> Option<Prefix> {
        (bits <= width(address) && masked(address, bits) == address).then_some(Prefix { address, bits })
    }

    /// The address: zero behind the prefix.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// How many bits count.
    pub fn bits(self) -> u8 {
        self.bits
    }

    /// Whether every address of `other` is one of these.
    pub fn covers(self, other: Prefix) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }

    /// Whether the address is one of these.
    pub fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && masked(address, self.bits) == self.address
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)).into()),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)).into()),
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;
    fn from_str(text: &str) -> Result<Prefix, PrefixError> {
        let shape = || PrefixError::Shape(text.to_string());
        let (address, bits) = text.trim().split_once('/').ok_or_else(shape)?;
        let (address, bits): (IpAddr, u32) =
            (address.parse().map_err(|_| shape())?, bits.parse().map_err(|_| shape())?);
        let most = width(address);
        if bits > u32::from(most) {
            return Err(PrefixError::Length { text: text.to_string(), bits, most });
        }
        let bits = bits as u8;
        Prefix::new(address, bits).ok_or_else(|| {
            let network = Prefix { address: masked(address, bits), bits };
            PrefixError::HostBits { text: text.to_string(), network }
        })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Prefix, D::Error> {
        String::deserialize(d)?.parse().map_err(de::Error::custom)
    }
}

/// Whether `name` matches `pattern`, in which `*` is any text.
pub fn fits(pattern: &str, name: &str) -> bool {
    let Some((front, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(front) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or("");
    for part in parts {
        // The earliest place leaves the most for what follows.
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn a_shorter_prefix_covers_a_longer_one() {
        assert!(prefix("10.0.0.0/8").covers(prefix("10.1.0.0/16")));
        assert!(!prefix("10.1.0.0/16").covers(prefix("10.0.0.0/8")));
        assert!(prefix("0.0.0.0/0").covers(prefix("255.0.0.0/8")));
        assert!(!prefix("0.0.0.0/0").covers(prefix("::/0")));
        assert!(prefix("::/0").contains("fd00::1".parse().unwrap()));
    }

    #[test]
    fn what_is_not_a_prefix_is_reported() {
        let message = |text: &str| text.parse::<Prefix>().unwrap_err().to_string();
        assert!(message("10.0.0.0").contains("10.0.0.0/8"));
        assert!(message("10.0.0.0/33").contains("32 bits"));
        assert!(message("10.1.0.0/8").contains("`10.0.0.0/8`"));
    }

    #[test]
    fn sessions_overlap_where_one_can_be_both() {
        let sessions = |remote: &str, port: Option<u16>, cgroup: Option<&str>| Sessions {
            remote: (!remote.is_empty()).then(|| prefix(remote)),
            port,
            cgroup: cgroup.map(str::to_string),
        };
        let wide = sessions("10.0.0.0/8", None, None);
        let narrow = sessions("10.1.0.0/16", Some(80), None);
        assert!(narrow.overlaps(&wide) && wide.overlaps(&narrow));
        assert!(!sessions("", Some(80), None).overlaps(&sessions("", Some(81), None)));
        let (mpi, mpi2) = (sessions("", None, Some("/mpi")), sessions("", None, Some("/mpi2")));
        assert!(!mpi.overlaps(&mpi2) && mpi.overlaps(&sessions("", None, Some("/mpi/job1"))));
        let address: IpAddr = "10.1.2.3".parse().unwrap();
        assert!(narrow.contains(address, 80, "/") && !narrow.contains(address, 81, "/"));
        assert!(mpi.contains(address, 1, "/mpi/job1") && !mpi.contains(address, 1, "/mpi2"));
    }

    #[test]
    fn a_star_is_any_text() {
        for (pattern, name, does) in [
            ("h*", "h12", true),
            ("h*", "g1", false),
            ("*-db", "eu-db", true),
            ("r*-h*", "r1-h2", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(fits(pattern, name), does, "{pattern} {name}");
        }
    }
}
