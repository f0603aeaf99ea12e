//! The reader of OpenFlow against Open vSwitch: what it reads is what the links themselves counted, and what it changes is one flow entry.

mod lab;
mod second;
mod secure;

use collect::openflow::{
    Error, Expected, Listener, LldpKey, LldpSettings, MatrixSettings, OpenFlow, Rack, Settings, Traffic,
};
use collect::{Neighbour, PortCounters, SwitchCounters};
use lab::{Lab, Linux, PASSIVE};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use testkit::{PATIENCE, until};
use tokio::time::{Instant, sleep};

/// What a transfer carries.
const BYTES: usize = 20_000_000;

fn reads(name: &str) -> Settings {
    Settings { name: name.to_string(), ..Settings::default() }
}

fn finds(name: &str, key: &LldpKey) -> Settings {
    let lldp = LldpSettings { key: key.clone(), interval: Duration::from_secs(2), foreign: false };
    Settings { lldp: Some(lldp), ..reads(name) }
}

fn anybody_here() -> Expected {
    Expected { peers: Some(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]), datapath: None }
}

fn port<'a>(switch: &'a SwitchCounters, name: &str) -> &'a PortCounters {
    switch.ports.iter().find(|port| port.name == name).unwrap_or_else(|| panic!("no port {name} in {switch:?}"))
}

fn is_near(one: u64, other: u64) -> bool {
    one.abs_diff(other) * 50 <= other
}

/// Reads until it is as wanted.
async fn read_until(switch: &mut OpenFlow, what: &str, wanted: impl Fn(&SwitchCounters) -> bool) -> SwitchCounters {
    let began = Instant::now();
    loop {
        let found = switch.read().await;
        match &found {
            Ok(counters) if wanted(counters) => return found.expect("it is"),
            _ if began.elapsed() > PATIENCE => {
                panic!("waited in vain: {what}: {found:?}, {:?}", switch.problem().await)
            }
            _ => sleep(Duration::from_millis(50)).await,
        }
    }
}

#[test]
fn port_counters_are_those_that_the_hosts_interfaces_kept() {
    let Some(lab) = Lab::new() else { return };
    lab.send(1_000_000);
    let before: (SwitchCounters, Linux) = lab.run(async || {
        let mut switch = OpenFlow::connect(reads("sw1"), PASSIVE.to_string(), None);
        (switch.read().await.expect("it answers"), lab.linux(1))
    });
    let began = std::time::Instant::now();
    lab.send(BYTES);
    let after: (SwitchCounters, Linux) = lab.run(async || {
        let mut switch = OpenFlow::connect(reads("sw1"), PASSIVE.to_string(), None);
        (switch.read().await.expect("it answers"), lab.linux(1))
    });
    let elapsed = began.elapsed().as_secs_f64();
    let [old, new] = [&before.0, &after.0].map(|switch| port(switch, "p1"));
    assert_eq!(new.number, old.number);
    assert_eq!((new.up, new.width), (Some(true), 64));
    assert_eq!(new.discontinuity, Some(0));
    let counted = |port: &PortCounters| {
        [port.received.bytes, port.received.packets, port.sent.bytes, port.sent.packets]
            .map(|count| count.expect("counted"))
    };
    // what the host sent is what the switch received
    let linux = |host: &Linux| [host.sent_bytes, host.sent_packets, host.received_bytes, host.received_packets];
    for (switch, host) in [(old, &before.1), (new, &after.1)] {
        for (one, other) in counted(switch).into_iter().zip(linux(host)) {
            assert!(is_near(one, other), "by OpenFlow {:?}, by Linux {:?}", counted(switch), linux(host));
        }
    }
    let rate = new.rate.expect("a virtual cable has a nominal speed").as_bps() as f64;
    let utilization = |[new, old]: [u64; 2]| (new - old) as f64 * 8.0 / elapsed / rate;
    let by_openflow = utilization([counted(new)[0], counted(old)[0]]);
    let by_linux = utilization([after.1.sent_bytes, before.1.sent_bytes]);
    assert!((by_openflow / by_linux - 1.0).abs() < 0.02, "{by_openflow} by OpenFlow, {by_linux} by Linux");
    // an Ethernet header on each packet, and nothing more: 14 + 20 + 32 bytes around at most 1448
    let on_wire = counted(new)[0] - counted(old)[0];
    let packets = counted(new)[1] - counted(old)[1];
    assert!(on_wire >= BYTES as u64 + 66 * packets, "{on_wire} bytes in {packets} packets");
    eprintln!(
        "p1 received: {} bytes by OpenFlow, {} by the host; utilization {by_openflow:.5} and {by_linux:.5} of {rate:.0} bit/s",
        counted(new)[0],
        after.1.sent_bytes
    );
    let switch_end = lab.linux_port("p1");
    assert_eq!(switch_end.received_bytes, lab.linux(1).sent_bytes, "both ends of a cable count alike");
}

#[test]
fn lldp_finds_the_cable_and_the_only_change_is_one_entry_that_goes_with_us() {
    let Some(lab) = Lab::new() else { return };
    let before = ["sw1", "sw2"].map(|switch| lab.entries(switch));
    lab.run(async || {
        let key = LldpKey::random();
        let listener = Listener::bind("127.0.0.1:0".parse().expect("an address"), None).await.expect("it is free");
        let port_number = listener.address().port();
        let mut one = OpenFlow::connect(finds("sw1", &key), PASSIVE.to_string(), None);
        let mut two = OpenFlow::listen(finds("sw2", &key), &listener, anybody_here());
        lab.switches.vsctl(&format!(
            "-- --id=@c create controller target=\"tcp:127.0.0.1:{port_number}\" type=service -- add bridge sw2 controller @c"
        ));
        let neighbour = |system: &str, port: &str| Some(Neighbour { system: system.to_string(), port: port.to_string() });
        let first = read_until(&mut one, "sw1 finds sw2", |switch| port(switch, "c1").neighbour.is_some()).await;
        let second = read_until(&mut two, "sw2 finds sw1", |switch| port(switch, "c2").neighbour.is_some()).await;
        assert_eq!(port(&first, "c1").neighbour, neighbour("sw2", "c2"));
        assert_eq!(port(&second, "c2").neighbour, neighbour("sw1", "c1"));
        assert_eq!(port(&first, "p1").neighbour, None, "the host says nothing");
        assert_eq!(first.switch, "sw1");
        assert!(first.ports.iter().all(|port| port.name != "sw1"), "LOCAL has no cable");
        for (switch, before) in ["sw1", "sw2"].iter().zip(&before) {
            let entries = lab.entries(switch);
            let ours: Vec<&String> = entries.iter().filter(|entry| !before.contains(entry)).collect();
            assert!(ours.len() == 1 && ours[0].contains("0x88cc") && ours[0].contains("priority=60000"), "{entries:?}");
            assert_eq!(entries.len(), before.len() + 1);
        }
        assert_eq!([one.problem().await, two.problem().await], [Ok(None), Ok(None)]);
        // forwarding goes on as without a controller
        lab.send(100_000);
        // a cable that is pulled is no neighbour
        lab.switches.ofctl("sw1", "mod-port SWITCH c1 down");
        read_until(&mut one, "the port is down", |switch| port(switch, "c1").up == Some(false)).await;
        let found = read_until(&mut one, "it has no neighbour", |switch| port(switch, "c1").neighbour.is_none()).await;
        assert_eq!(port(&found, "c1").up, Some(false));
        one.close().await;
        drop(two);
        let began = Instant::now();
        while lab.entries("sw2") != before[1] && began.elapsed() < PATIENCE {
            sleep(Duration::from_millis(20)).await;
        }
    });
    assert_eq!(["sw1", "sw2"].map(|switch| lab.entries(switch)), before);
}

#[test]
fn the_entry_ends_by_itself_where_nobody_removes_it() {
    let Some(lab) = Lab::new() else { return };
    let before = lab.entries("sw1");
    let began = std::time::Instant::now();
    lab.run(async || {
        let mut switch = OpenFlow::connect(finds("sw1", &LldpKey::random()), PASSIVE.to_string(), None);
        read_until(&mut switch, "the entry is there", |_| lab.entries("sw1") != before).await;
        // the runtime ends here, and with it the task, which has no time to remove anything
        std::mem::forget(switch);
    });
    assert!(lab.entries("sw1") != before, "it has not yet ended");
    until("the entry has ended", || lab.entries("sw1") == before);
    assert!(began.elapsed() > Duration::from_secs(6), "the switch removed it after its lifetime");
}

#[test]
fn another_controllers_entry_in_the_same_place_is_left_alone() {
    let Some(lab) = Lab::new() else { return };
    lab.switches.ofctl("sw1", "add-flow SWITCH cookie=0x5,priority=60000,dl_type=0x88cc,actions=CONTROLLER:1000");
    lab.switches.ofctl("sw1", "add-flow SWITCH cookie=0x6,priority=7,tcp,tp_dst=9,actions=drop");
    let before = lab.entries("sw1");
    lab.run(async || {
        let mut switch = OpenFlow::connect(finds("sw1", &LldpKey::random()), PASSIVE.to_string(), None);
        let began = Instant::now();
        let problem = loop {
            switch.read().await.expect("it answers all the same");
            match switch.problem().await.expect("it runs") {
                Some(problem) => break problem,
                None if began.elapsed() > PATIENCE => panic!("no problem is reported"),
                None => sleep(Duration::from_millis(20)).await,
            }
        };
        assert!(problem.contains("another controller (cookie 0x5)"), "{problem}");
        assert_eq!(lab.entries("sw1"), before);
        switch.close().await;
    });
    assert_eq!(lab.entries("sw1"), before);
}

#[test]
fn what_a_host_says_is_believed_only_where_that_is_wanted() {
    let Some(lab) = Lab::new() else { return };
    // LLDP of system `spine1`, port `eth0`, as if it had come from the port
    let from = |port: &str| {
        let frame = "0180c200000e02aabbccddee88cc0207040a0b0c0d0e0f04050565746830060200780a067370696e65310000";
        lab.switches
            .ofctl("sw1", &format!("packet-out SWITCH in_port={port},packet={frame}{},actions=table", "00".repeat(20)));
    };
    lab.run(async || {
        let key = LldpKey::random();
        lab.switches.vsctl("set-controller sw2 ptcp:6654");
        let two = OpenFlow::connect(finds("sw2", &key), "127.0.0.1:6654".to_string(), None);
        let mut one = OpenFlow::connect(finds("sw1", &key), PASSIVE.to_string(), None);
        let has = |switch: &SwitchCounters, name: &str, system: &str| {
            port(switch, name).neighbour.as_ref().is_some_and(|neighbour| neighbour.system == system)
        };
        read_until(&mut one, "sw1 finds sw2", |switch| has(switch, "c1", "sw2")).await;
        from("p1");
        from("c1");
        sleep(Duration::from_millis(300)).await;
        let found = one.read().await.expect("it answers");
        assert!(port(&found, "p1").neighbour.is_none() && has(&found, "c1", "sw2"), "{found:?}");
        one.close().await;

        let mut settings = finds("sw1", &key);
        settings.lldp.as_mut().expect("it is set").foreign = true;
        let mut one = OpenFlow::connect(settings, PASSIVE.to_string(), None);
        read_until(&mut one, "sw1 finds sw2", |switch| has(switch, "c1", "sw2")).await;
        from("p1");
        from("c1");
        let found = read_until(&mut one, "the host is believed", |switch| has(switch, "p1", "spine1")).await;
        assert!(has(&found, "c1", "sw2"), "not where a switch of ours is known: {found:?}");
        one.close().await;
        two.close().await;
    });
}

#[test]
fn without_lldp_the_switch_itself_refuses_us_every_change() {
    let Some(lab) = Lab::new() else { return };
    lab.run(async || {
        let listener = Listener::bind("127.0.0.1:0".parse().expect("an address"), None).await.expect("it is free");
        let mut switch = OpenFlow::listen(reads("sw2"), &listener, anybody_here());
        lab.switches.vsctl(&format!("set-controller sw2 tcp:{}", listener.address()));
        let found = read_until(&mut switch, "sw2 connects", |_| true).await;
        assert!(port(&found, "c2").neighbour.is_none());
        assert!(lab.entries("sw2").is_empty(), "why docs/collect.md wants type=service: the switch has removed NORMAL");
        let began = Instant::now();
        while lab.switches.vsctl("get controller sw2 role").trim() != "slave" {
            assert!(began.elapsed() < PATIENCE, "{}", lab.switches.vsctl("list controller"));
            sleep(Duration::from_millis(100)).await;
        }
    });
}

#[test]
fn who_is_not_expected_is_not_read() {
    let Some(lab) = Lab::new() else { return };
    lab.run(async || {
        let settings = Settings { timeout: Duration::from_millis(300), ..reads("sw2") };
        let listener = Listener::bind("127.0.0.1:0".parse().expect("an address"), None).await.expect("it is free");
        let elsewhere = Expected { peers: Some(vec!["192.0.2.1".parse().expect("an address")]), datapath: None };
        let mut by_address = OpenFlow::listen(settings.clone(), &listener, elsewhere);
        lab.switches.vsctl(&format!("set-controller sw2 tcp:{}", listener.address()));
        let began = Instant::now();
        while listener.refused() == 0 {
            assert!(began.elapsed() < PATIENCE, "it tries to connect");
            sleep(Duration::from_millis(20)).await;
        }
        assert!(matches!(by_address.read().await, Err(Error::NotConnected { .. })));
        let other = Expected { datapath: Some(77), ..anybody_here() };
        let mut by_datapath = OpenFlow::listen(settings, &listener, other);
        let refused = listener.refused();
        while listener.refused() == refused {
            assert!(began.elapsed() < PATIENCE, "it tries to connect");
            sleep(Duration::from_millis(20)).await;
        }
        assert!(matches!(by_datapath.read().await, Err(Error::NotConnected { .. })));
        let mut wrong = OpenFlow::connect(Settings { datapath: Some(77), ..reads("sw1") }, PASSIVE.to_string(), None);
        assert_eq!(wrong.read().await, Err(Error::WrongSwitch { expected: 77, found: 1 }));
    });
}

#[test]
fn a_switch_that_stops_answering_costs_one_reading() {
    let Some(lab) = Lab::new() else { return };
    lab.run(async || {
        let settings = Settings { timeout: Duration::from_millis(500), ..reads("sw1") };
        let mut switch = OpenFlow::connect(settings, PASSIVE.to_string(), None);
        read_until(&mut switch, "it answers", |_| true).await;
        let vswitchd = Pid::from_raw(lab.switches.vswitchd().cast_signed());
        kill(vswitchd, Signal::SIGSTOP).expect("it is ours");
        let slow = switch.read().await;
        kill(vswitchd, Signal::SIGCONT).expect("it is ours");
        assert_eq!(slow, Err(Error::Timeout { what: "port descriptions" }));
        read_until(&mut switch, "it answers again", |_| true).await;
        lab.switches.vsctl("del-controller sw1");
        let ended = switch.read().await;
        assert!(matches!(ended, Err(Error::Closed { .. } | Error::Connect { .. })), "{ended:?}");
        lab.switches.vsctl("set-controller sw1 ptcp:6653");
        read_until(&mut switch, "it is there again", |_| true).await;
    });
}

#[test]
fn queues_that_the_kernel_counts_are_read() {
    let Some(lab) = Lab::new() else { return };
    lab.switches.vsctl(
        "-- set port p2 qos=@q -- --id=@q create qos type=linux-htb other-config:max-rate=200000000 queues:0=@zero queues:3=@three \
         -- --id=@zero create queue other-config:max-rate=200000000 -- --id=@three create queue other-config:max-rate=1000000",
    );
    lab.switches.vsctl("set-controller sw2 ptcp:6654");
    lab.send(BYTES / 4);
    lab.run(async || {
        let mut switch = OpenFlow::connect(reads("sw2"), "127.0.0.1:6654".to_string(), None);
        let found = read_until(&mut switch, "it answers", |_| true).await;
        let counted = port(&found, "p2");
        if counted.queues.is_empty() {
            eprintln!("skipped: this kernel has no HTB, so the switch has no queues");
            return;
        }
        let names: Vec<&str> = counted.queues.iter().map(|queue| queue.name.as_str()).collect();
        assert_eq!(names, ["0", "3"]);
        let packets: u64 = counted.queues.iter().filter_map(|queue| queue.packets).sum();
        let sent = counted.sent.packets.expect("counted");
        assert!(is_near(packets, sent), "{packets} packets by the queues, {sent} by the port");
        assert!(counted.queues.iter().all(|queue| queue.dropped.is_some()));
        assert!(port(&found, "c2").queues.is_empty());
    });
}

fn racks(sources: &[&str]) -> MatrixSettings {
    let rack = |number: u8| Rack {
        name: format!("rack-{number}"),
        prefixes: vec![format!("10.98.{number}.0/24").parse().expect("a prefix")],
    };
    let sources = sources.iter().map(ToString::to_string).collect();
    MatrixSettings { racks: vec![rack(1), rack(2)], sources, table: 0 }
}

#[test]
fn the_matrix_is_what_the_sockets_carried() {
    let Some(lab) = Lab::new() else { return };
    for [from, to] in [[1, 2], [2, 1]] {
        let pair = format!("ip,nw_src=10.98.{from}.0/24,nw_dst=10.98.{to}.0/24");
        lab.switches.ofctl("sw1", &format!("add-flow SWITCH priority=10,{pair},actions=NORMAL"));
    }
    // 66 bytes of headers around at most 1448 of the socket's
    let expected = BYTES as f64 * (1.0 + 66.0 / 1448.0);
    lab.run(async || {
        let settings = Settings { matrix: Some(racks(&["rack-1"])), ..reads("sw1") };
        let mut switch = OpenFlow::connect(settings, PASSIVE.to_string(), None);
        let first = switch.matrix().await.expect("it answers");
        let nothing = Traffic { entries: 3, ..Traffic::default() };
        assert_eq!(first, nothing, "there is nothing to compare with; two entries are ours, one is the switch's own");
        lab.send(BYTES);
        // the switch collects what its datapath counted twice a second
        until("the entry has counted it", || lab.flow_bytes("sw1", "ip,nw_src=10.98.1.0/24") as f64 > 0.99 * expected);
        let traffic = switch.matrix().await.expect("it answers");
        let seconds = traffic.interval.expect("it is the second").as_secs_f64();
        assert_eq!(traffic.pairs.len(), 1, "what rack 2 sends is its own switch's to count: {traffic:?}");
        let pair = &traffic.pairs[0];
        assert_eq!((pair.from.as_str(), pair.to.as_str()), ("rack-1", "rack-2"));
        let bytes = pair.rate.as_bps() as f64 * seconds / 8.0;
        eprintln!(
            "rack-1 to rack-2: {bytes:.0} bytes by flow entries; sockets carried {BYTES}, with headers {expected:.0}"
        );
        assert!((bytes / expected - 1.0).abs() < 0.02, "{bytes} instead of {expected}: {traffic:?}");
        assert!(traffic.unattributed.as_bps() > 0, "the acknowledgements");
        // an entry that is removed tells what it counted, if its owner asks for that
        lab.switches.ofctl("sw1", "del-flows SWITCH ip,nw_src=10.98.1.0/24");
        lab.switches.ofctl(
            "sw1",
            "add-flow SWITCH send_flow_rem,priority=10,ip,nw_src=10.98.1.1,nw_dst=10.98.2.1,actions=NORMAL",
        );
        switch.matrix().await.expect("it answers");
        lab.send(BYTES / 4);
        until("the entry has counted it", || {
            lab.flow_bytes("sw1", "ip,nw_src=10.98.1.1") as f64 > 0.99 * expected / 4.0
        });
        lab.switches.ofctl("sw1", "del-flows SWITCH ip,nw_src=10.98.1.1");
        // that it was removed is reported soon, but not at once
        let (mut bytes, began) = (0.0, Instant::now());
        while bytes == 0.0 && began.elapsed() < PATIENCE {
            let traffic = switch.matrix().await.expect("it answers");
            let seconds = traffic.interval.expect("it is a later one").as_secs_f64();
            bytes += traffic.pairs.iter().map(|pair| pair.rate.as_bps()).sum::<u64>() as f64 * seconds / 8.0;
        }
        assert!((bytes / (expected / 4.0) - 1.0).abs() < 0.02, "{bytes} instead of {}", expected / 4.0);
        let idle = switch.matrix().await.expect("it answers");
        assert!(idle.pairs.iter().all(|pair| pair.rate.as_bps() < 1000), "{idle:?}");
    });
}

#[test]
fn a_table_of_many_entries_is_read_in_parts() {
    const ENTRIES: usize = 50_000;
    let Some(lab) = Lab::new() else { return };
    let flow = |number: usize| {
        let [high, low] = [number / 250, number % 250 + 2];
        format!("priority=10,ip,nw_src=10.98.1.1,nw_dst=10.99.{high}.{low},actions=NORMAL\n")
    };
    std::fs::write(lab.switches.file("flows"), (0..ENTRIES).map(flow).collect::<String>()).expect("there is room");
    lab.switches.ofctl("sw1", &format!("add-flows SWITCH {}", lab.switches.file("flows").display()));
    lab.run(async || {
        let settings = Settings { matrix: Some(racks(&["rack-1"])), timeout: PATIENCE, ..reads("sw1") };
        let mut switch = OpenFlow::connect(settings, PASSIVE.to_string(), None);
        switch.matrix().await.expect("it answers");
        let began = Instant::now();
        let traffic = switch.matrix().await.expect("it answers");
        eprintln!("{} flow entries are read in {:.3} s", traffic.entries, began.elapsed().as_secs_f64());
        assert_eq!(traffic.entries, ENTRIES + 1, "one is the switch's own");
    });
}
