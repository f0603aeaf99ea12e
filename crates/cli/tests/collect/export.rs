//! Traffic from rack to rack, as exporters see it, against what the interfaces carried.

use crate::world::{RACKS, World};
use serde_json::Value;
use std::fs;
use std::time::Duration;
use testkit::{Running, eventually};

/// Bytes of each transfer, and how fast: 20 MB in two seconds.
const BYTES: u64 = 20_000_000;
const PACE: (usize, Duration) = (100_000, Duration::from_millis(10));
/// More small packets than a block of a capture buffer holds: each takes at least 128 of 262,144 bytes.
const BLOCK_PACKETS: u32 = 2 * 2048;
/// One of so many packets is sampled.
const SAMPLING: u32 = 8;

/// A collector that prints each second, and has begun.
fn collector(world: &World, host: usize, flows: &str) -> Running {
    fs::write(world.path("collect.toml"), format!("interval = \"1 s\"\n{RACKS}\n{flows}")).unwrap();
    let running = world.opentcp(host, "collect", &["collect", "collect.toml", "--dry-run", "--json"]);
    assert!(eventually(|| !world.lines("collect").is_empty()), "{}", running.said());
    running
}

/// Bytes from r1 to r2 over all intervals that were printed.
fn counted(world: &World) -> f64 {
    let lines = world.lines("collect");
    let pairs = lines.windows(2).map(|two| {
        let seconds = seconds(&two[1]["at"]) - seconds(&two[0]["at"]);
        seconds * bits(&two[1]) / 8.0
    });
    pairs.sum()
}

fn seconds(at: &Value) -> f64 {
    at.as_str().unwrap().parse::<units::Time>().unwrap().as_secs_f64()
}

/// The rate from r1 to r2, bit/s.
fn bits(line: &Value) -> f64 {
    let matrix = line["matrix"].as_array().unwrap();
    let pair = matrix.iter().find(|pair| pair["from"] == "r1" && pair["to"] == "r2");
    pair.map_or(0.0, |pair| pair["rate"].as_str().unwrap().parse::<units::Rate>().unwrap().as_bps() as f64)
}

fn exporters_count(world: &World, what: &str) -> u64 {
    world.lines("collect").last().unwrap()["sources"][0]["flows"][what].as_u64().unwrap()
}

/// Carries the bytes, does what must come `then`, and compares what was counted with what the second host's interface received:
/// within `error(packets)`.
fn compare(world: &World, running: &Running, name: &str, error: impl Fn(u64) -> f64, then: impl FnOnce()) {
    let before = world.received(2);
    world.carry(BYTES, PACE);
    let after = world.received(2);
    let (bytes, packets) = (after.ip_bytes - before.ip_bytes, after.packets - before.packets);
    assert!(bytes >= BYTES, "the headers are counted too");
    then();
    let allowed = error(packets);
    let share = || counted(world) / bytes as f64;
    let is_right = eventually(|| (share() - 1.0).abs() <= allowed);
    println!(
        "{name}: {packets} packets, {bytes} bytes with IP headers, of which sockets carried {BYTES}; counted {:.2} % more or less, of {:.2} % allowed",
        100.0 * (share() - 1.0),
        100.0 * allowed
    );
    assert!(is_right, "{}{:?}", running.said(), world.lines("collect").last());
    assert_eq!(exporters_count(world, "malformed"), 0);
    assert_eq!(exporters_count(world, "lost"), 0, "by its sequence numbers");
}

/// Four standard deviations of a sum of which each packet is seen with probability p: sqrt((1 - p) / (p n)).
fn sampled(packets: u64) -> f64 {
    let p = 1.0 / f64::from(SAMPLING);
    4.0 * ((1.0 - p) / (p * packets as f64)).sqrt()
}

#[test]
fn a_switchs_sflow_gives_the_matrix_and_its_links() {
    let Some(world) = World::new(&[]) else { return };
    let exporter = "[[flows]]\nprotocol = \"sflow\"\nlisten = \"127.0.0.1:6343\"\n[[flows.exporter]]\naddress = \"127.0.0.1\"\n\
                    switch = \"sw\"\nracks = [\"r1\"]\n[flows.exporter.port_settings]\np2 = { rate = \"1 Gbit/s\", end = \"h2\" }\n";
    let running = collector(&world, 1, exporter);
    world.set(&format!(
        "-- --id=@s create sflow agent=lo target=\"127.0.0.1:6343\" sampling={SAMPLING} polling=1 header=128 -- set bridge sw sflow=@s"
    ));
    let link = |name: &str| -> Option<Value> {
        let line = world.lines("collect").pop()?;
        line["links"].as_array()?.iter().find(|link| link["name"] == name).cloned()
    };
    assert!(eventually(|| link("sw p2 out").is_some_and(|link| !link["utilization"].is_null())), "{}", running.said());
    compare(&world, &running, "OVS, sFlow", sampled, || ());
    let used: Vec<f64> = (world.lines("collect").iter())
        .flat_map(|line| line["links"].as_array().unwrap().clone())
        .filter(|link| link["name"] == "sw p2 out")
        .filter_map(|link| link["utilization"].as_f64())
        .collect();
    let most = used.iter().copied().fold(0.0, f64::max);
    println!("OVS, counter samples: `sw p2 out` was used to {:.1} %", 100.0 * most);
    // 80 Mbit/s of 1 Gbit/s for two seconds, read each second
    assert!((0.04..0.12).contains(&most), "{used:?}");
    assert_eq!(link("sw p2 out").unwrap()["to"], "h2");
    running.interrupt();
}

#[test]
fn a_switchs_ipfix_gives_the_matrix() {
    let Some(world) = World::new(&[]) else { return };
    let exporter =
        "[[flows]]\nprotocol = \"ipfix\"\nlisten = \"127.0.0.1:4739\"\n[[flows.exporter]]\naddress = \"127.0.0.1\"\n";
    let running = collector(&world, 1, exporter);
    world.set(&format!(
        "-- --id=@i create ipfix targets=\"127.0.0.1:4739\" sampling={SAMPLING} obs_domain_id=1 obs_point_id=1 cache_active_timeout=1 -- set bridge sw ipfix=@i"
    ));
    compare(&world, &running, "OVS, IPFIX", sampled, || ());
    running.interrupt();
}

#[test]
fn softflowd_gives_the_matrix_by_netflow_and_ipfix() {
    for (version, name) in [("5", "NetFlow 5"), ("9", "NetFlow 9"), ("10", "IPFIX")] {
        let Some(mut world) = World::new(&["softflowd"]) else { return };
        let exporter = "[[flows]]\nprotocol = \"ipfix\"\nlisten = \"127.0.0.1:4739\"\n[[flows.exporter]]\naddress = \"127.0.0.1\"\n";
        let running = collector(&world, 2, exporter);
        let arguments =
            ["-i", "eth0", "-n", "127.0.0.1:4739", "-v", version, "-d", "-t", "maxlife=2", "-t", "expint=1"];
        let files = ["-p", "softflowd.pid", "-c", "softflowd.ctl"];
        world.start(2, "softflowd", &[&arguments[..], &files].concat());
        assert!(eventually(|| world.path("softflowd.ctl").exists()), "softflowd runs");
        // It sees every packet, and exports the last flow when that has expired. But it reads only full blocks of its capture buffer, of
        // 256 KiB: up to 166 packets, 1.2 %, would wait for later ones. So packets in the other direction fill the last block.
        compare(&world, &running, &format!("softflowd, {name}"), |_| 0.01, || world.send_back(BLOCK_PACKETS));
        running.interrupt();
    }
}
