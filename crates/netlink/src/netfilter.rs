//! Base chains of nftables, those that `iptables-nft` makes too (nf_tables.h).

use crate::socket::Netlink;
use netlink_packet_core::{
    DecodeError, NLM_F_DUMP, NetlinkDeserializable, NetlinkHeader, NetlinkPayload, NetlinkSerializable, NlaBuffer,
    NlasIterator,
};
use netlink_sys::protocols::NETLINK_NETFILTER;
use std::io;

/// `NFNL_SUBSYS_NFTABLES`, in the upper byte of a message's type.
const NFTABLES: u16 = 10 << 8;
const NFT_MSG_NEWCHAIN: u16 = NFTABLES | 3;
const NFT_MSG_GETCHAIN: u16 = NFTABLES | 4;
/// Of a kernel without netlink's family of netfilter, or without nftables in it.
const EPROTONOSUPPORT: i32 = 93;
const EINVAL: i32 = 22;
/// Bytes of `struct nfgenmsg`: family, version, and a number of 16 bits.
const HEADER: usize = 4;

const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_POLICY: u16 = 5;
const NFTA_CHAIN_USE: u16 = 6;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_DEV: u16 = 3;
const NFTA_HOOK_DEVS: u16 = 4;
const NFTA_DEVICE_NAME: u16 = 1;
/// `NF_ACCEPT`, a chain's policy.
const NF_ACCEPT: u32 = 1;

/// Which packets a table sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4, IPv6, or both.
    Ip,
    /// One device's.
    Netdev,
    /// Those that a bridge forwards.
    Bridge,
    /// ARP and others.
    Other,
}

/// Where a base chain sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hook {
    /// `NF_INET_*`, `NF_BR_*` or `NF_NETDEV_*`.
    pub number: u32,
    /// The devices of a chain of the family netdev.
    pub devices: Vec<String>,
}

/// A base chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Of its table.
    pub family: Family,
    /// Its table's name.
    pub table: String,
    /// Its name.
    pub name: String,
    /// Where it is called.
    pub hook: Hook,
    /// Rules in it.
    pub rules: u32,
    /// Whether it accepts what no rule decides on.
    pub accepts: bool,
}

/// All base chains of the calling thread's network namespace.
///
/// # Errors
/// The kernel's error; none where it has no nftables.
pub fn chains() -> io::Result<Vec<Chain>> {
    let answers =
        Netlink::open_for(NETLINK_NETFILTER).and_then(|mut netlink| netlink.exchange(NLM_F_DUMP, Message::Get));
    match answers {
        Ok(answers) => Ok(answers.into_iter().filter_map(Message::chain).collect()),
        // without the family, and without the subsystem in it
        Err(error) if matches!(error.raw_os_error(), Some(EPROTONOSUPPORT | EINVAL)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// What is asked, and answered.
#[derive(Clone)]
enum Message {
    Get,
    Chain(Chain),
    Other,
}

impl Message {
    fn chain(self) -> Option<Chain> {
        match self {
            Message::Chain(chain) => Some(chain),
            Message::Get | Message::Other => None,
        }
    }
}

impl From<Message> for NetlinkPayload<Message> {
    fn from(message: Message) -> Self {
        NetlinkPayload::InnerMessage(message)
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        NFT_MSG_GETCHAIN
    }

    fn buffer_len(&self) -> usize {
        HEADER
    }

    fn serialize(&self, buffer: &mut [u8]) {
        // of all families
        buffer.fill(0);
    }
}

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Message, DecodeError> {
        let (NFT_MSG_NEWCHAIN, Some((head, attributes))) = (header.message_type, payload.split_at_checked(HEADER))
        else {
            return Ok(Message::Other);
        };
        Ok(chain(head[0], attributes)?.map_or(Message::Other, Message::Chain))
    }
}

/// A base chain; `None`: a chain that others jump to.
fn chain(family: u8, attributes: &[u8]) -> Result<Option<Chain>, DecodeError> {
    let family = match family {
        1 | 2 | 10 => Family::Ip,
        5 => Family::Netdev,
        7 => Family::Bridge,
        _ => Family::Other,
    };
    let (table, name) = (String::new(), String::new());
    let mut chain = Chain { family, table, name, hook: Hook::default(), rules: 0, accepts: true };
    let mut is_base = false;
    for attribute in NlasIterator::new(attributes) {
        let attribute = attribute?;
        let value = attribute.value();
        match attribute.kind() {
            NFTA_CHAIN_TABLE => chain.table = text(value),
            NFTA_CHAIN_NAME => chain.name = text(value),
            NFTA_CHAIN_HOOK => (is_base, chain.hook) = (true, hook(value)?),
            NFTA_CHAIN_POLICY => chain.accepts = number(value) == NF_ACCEPT,
            NFTA_CHAIN_USE => chain.rules = number(value),
            _ => {}
        }
    }
    Ok(is_base.then_some(chain))
}

fn hook(attributes: &[u8]) -> Result<Hook, DecodeError> {
    let mut hook = Hook::default();
    for attribute in NlasIterator::new(attributes) {
        let attribute = attribute?;
        match attribute.kind() {
            NFTA_HOOK_HOOKNUM => hook.number = number(attribute.value()),
            NFTA_HOOK_DEV => hook.devices = vec![text(attribute.value())],
            NFTA_HOOK_DEVS => {
                let names = NlasIterator::new(attribute.value()).collect::<Result<Vec<NlaBuffer<_>>, _>>()?;
                let names = names.iter().filter(|name| name.kind() == NFTA_DEVICE_NAME);
                hook.devices = names.map(|name| text(name.value())).collect();
            }
            _ => {}
        }
    }
    Ok(hook)
}

/// Without the NUL at its end.
fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into_owned()
}

/// In network byte order.
fn number(value: &[u8]) -> u32 {
    value.try_into().map_or(0, u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn base_chains_have_their_hook_and_others_are_left_out() {
        // the kernel marks what is nested
        let nested = 1 << 15;
        let devices = [attribute(NFTA_DEVICE_NAME, b"eth1\0"), attribute(NFTA_DEVICE_NAME, b"eth2\0")].concat();
        let hook =
            [attribute(NFTA_HOOK_HOOKNUM, &2u32.to_be_bytes()), attribute(NFTA_HOOK_DEVS | nested, &devices)].concat();
        let plain = [
            attribute(NFTA_CHAIN_TABLE, b"f\0"),
            attribute(NFTA_CHAIN_NAME, b"x\0"),
            attribute(NFTA_CHAIN_USE, &3u32.to_be_bytes()),
        ]
        .concat();
        assert_eq!(chain(7, &plain).unwrap(), None);
        let base = [plain, attribute(NFTA_CHAIN_HOOK | nested, &hook), attribute(NFTA_CHAIN_POLICY, &[0; 4])].concat();
        let devices = vec!["eth1".to_string(), "eth2".to_string()];
        let expected = Chain {
            family: Family::Bridge,
            table: "f".into(),
            name: "x".into(),
            hook: Hook { number: 2, devices },
            rules: 3,
            accepts: false,
        };
        assert_eq!(chain(7, &base).unwrap(), Some(expected));
        for cut in 0..base.len() {
            // an error or fewer attributes, never a panic
            let _ = chain(7, &base[..cut]);
        }
    }
}
