//! What of a bridge enforced packets pass by: they leave the kernel's path in XDP, before its filters and queue disciplines.

use netlink::{Chain, Family, Netlink};
use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcMessage};
use std::fs;
use std::io;

/// Most that are named.
const NAMED_MAX: usize = 8;
/// Queue disciplines that neither limit nor drop on purpose; that which interfaces get by themselves is another.
const PLAIN: [&str; 3] = ["noqueue", "mq", "pfifo_fast"];
const DEFAULT_QDISC: &str = "/proc/sys/net/core/default_qdisc";
/// Whether chains of IP see what a bridge forwards: switches of the module br_netfilter, which few load.
const BRIDGE_SWITCHES: [&str; 2] =
    ["/proc/sys/net/bridge/bridge-nf-call-iptables", "/proc/sys/net/bridge/bridge-nf-call-ip6tables"];
/// `NF_*_LOCAL_IN` and `NF_*_LOCAL_OUT`, of bridges and of IP: packets of the machine itself pass no enforcer.
const OWN: [u32; 2] = [1, 3];

/// Filters and queue disciplines that TCP between two ports, by index and name, would pass by, in words.
///
/// # Errors
/// The kernel does not say.
pub fn find(ports: [(u32, &str); 2]) -> Result<Vec<String>, String> {
    let qdiscs = qdiscs().map_err(|error| format!("cannot list the queue disciplines: {error}"))?;
    let default = fs::read_to_string(DEFAULT_QDISC).unwrap_or_default();
    let is_plain = |kind: &str| PLAIN.contains(&kind) || kind == default.trim();
    let mut shaping = Vec::new();
    for (index, name) in ports {
        let kinds = qdiscs.iter().filter(|(on, kind)| *on == index && !is_plain(kind));
        shaping.extend(kinds.map(|(_, kind)| format!("the queue discipline {kind} of {name}")));
    }
    let chains = netlink::chains().map_err(|error| format!("cannot list the chains of nftables: {error}"))?;
    let sees_ip = BRIDGE_SWITCHES.iter().any(|path| fs::read_to_string(path).is_ok_and(|on| on.trim() == "1"));
    let names = ports.map(|(_, name)| name);
    let filtering = chains.iter().filter(|chain| is_passed_by(chain, names, sees_ip)).map(words);
    let mut found: Vec<String> = filtering.chain(shaping).collect();
    found.dedup();
    Ok(found)
}

/// In a line.
pub fn list(found: &[String]) -> String {
    let more = found.len().saturating_sub(NAMED_MAX);
    let named = found[..found.len() - more].join(", ");
    if more == 0 { named } else { format!("{named}, and {more} more") }
}

/// Whether a chain does something to packets that the bridge forwards between the ports.
fn is_passed_by(chain: &Chain, ports: [&str; 2], sees_ip: bool) -> bool {
    let acts = chain.rules > 0 || !chain.accepts;
    let is_there = match chain.family {
        Family::Bridge => !OWN.contains(&chain.hook.number),
        Family::Ip => sees_ip && !OWN.contains(&chain.hook.number),
        Family::Netdev => chain.hook.devices.iter().any(|device| ports.contains(&device.as_str())),
        Family::Other => false,
    };
    acts && is_there
}

fn words(chain: &Chain) -> String {
    let family = match chain.family {
        Family::Bridge => "bridge",
        Family::Netdev => "netdev",
        Family::Ip | Family::Other => "IP",
    };
    format!("the chain {} of the {family} table {} in nftables", chain.name, chain.table)
}

/// Kind of each queue discipline, and the index of its interface.
fn qdiscs() -> io::Result<Vec<(u32, String)>> {
    let asked = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
    let answers = Netlink::open()?.ask(NLM_F_DUMP, asked)?;
    let qdisc = |answer| {
        let RouteNetlinkMessage::NewQueueDiscipline(qdisc) = answer else { return None };
        let kind = qdisc.attributes.into_iter().find_map(|attribute| match attribute {
            TcAttribute::Kind(kind) => Some(kind),
            _ => None,
        });
        Some((u32::try_from(qdisc.header.index).ok()?, kind?))
    };
    Ok(answers.into_iter().filter_map(qdisc).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink::Hook;

    fn chain(family: Family, number: u32, device: &str) -> Chain {
        let hook = Hook { number, devices: vec![device.to_string()] };
        Chain { family, table: "t".into(), name: "c".into(), hook, rules: 1, accepts: true }
    }

    #[test]
    fn chains_that_act_on_forwarded_packets_are_found() {
        let is_found = |chain: &Chain, sees_ip| is_passed_by(chain, ["eth1", "eth2"], sees_ip);
        for (family, number, device, without, with) in [
            (Family::Bridge, 2, "", true, true),
            (Family::Bridge, 0, "", true, true),
            (Family::Bridge, 4, "", true, true),
            (Family::Bridge, 1, "", false, false),
            (Family::Bridge, 3, "", false, false),
            (Family::Ip, 2, "", false, true),
            (Family::Ip, 1, "", false, false),
            (Family::Netdev, 0, "eth2", true, true),
            (Family::Netdev, 1, "eth1", true, true),
            (Family::Netdev, 0, "eth3", false, false),
            (Family::Other, 2, "", false, false),
        ] {
            let chain = chain(family, number, device);
            assert_eq!((is_found(&chain, false), is_found(&chain, true)), (without, with), "{chain:?}");
        }
        let empty = Chain { rules: 0, ..chain(Family::Bridge, 2, "") };
        assert!(!is_found(&empty, true), "without a rule it accepts everything");
        assert!(is_found(&Chain { accepts: false, ..empty }, true), "without a rule it drops everything");
    }

    #[test]
    fn a_long_list_is_cut() {
        let found: Vec<String> = (0..20).map(|i| i.to_string()).collect();
        assert_eq!(list(&found), "0, 1, 2, 3, 4, 5, 6, 7, and 12 more");
        assert_eq!(list(&found[..2]), "0, 1");
    }
}
