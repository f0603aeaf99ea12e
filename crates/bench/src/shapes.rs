//! Packet-hops per second where the packets of each flow are spread over all paths, and where servers forward.
//!
//! Spraying: the permutation on a fat tree of 128 hosts of `speed`. Host forwarding: the same on a BCube of 64 servers, each of
//! which has two interfaces and holds what it forwards for 1 us.

use crate::Row;
use crate::speed::{measure, parse};
use units::Time;

const WARMUP: Time = Time::from_ms(10);
const SPRAYING: &str = "topology = { fat_tree = { k = 8 } }\nbalancing = \"packet\"";
const FORWARDING: &str = "topology = { bcube = { n = 8, k = 1, forwarding_delay = \"1 us\" } }";

const CASES: [(&str, &str); 2] = [("128x10G-spraying/dctcp", SPRAYING), ("bcube-64x10G/dctcp", FORWARDING)];

/// Both.
pub fn cases() -> Vec<String> {
    CASES.iter().map(|(name, _)| (*name).to_string()).collect()
}

/// Speed and peak memory of a case; `None` if it is not one of these.
pub fn run(name: &str) -> Option<Vec<Row>> {
    let (_, network) = CASES.iter().find(|(case, _)| *case == name)?;
    let queue = "{ threshold_ecn = { mark_packets = 15, packets = 100 } }";
    let scenario = parse(&format!(
        r#"
        duration = "100 ms"
        [network]
        {network}
        rate = "10 Gbit/s"
        delay = "1 us"
        queue = {queue}
        nic_queue = {queue}
        framing = "ip"
        [tcp]
        cc = "dctcp"
        limit_output = false
        [[traffic]]
        permutation = {{ across = "pods", bulk = {{}} }}
        "#
    ));
    Some(measure(name, &scenario, WARMUP))
}
