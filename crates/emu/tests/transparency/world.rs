//! Two hosts, an enforcer between them, and four links: in real time, on one thread.

use crate::case::{Case, HostCase};
use crate::transfer::{FIRST_PORT, Outcome, Pattern, Transfer};
use crate::watch::Watch;
use crate::wire::{Bits, carry};
use congestion::Algorithm;
use emu::hosts::{Host, HostSettings, mac_of};
use enforcer::{Action, Counters, Direction, Enforcer, Limits, Rule};
use packet_io::{OwnedFrame, READ_BYTES_MAX, Tap, VnetHeader, complete, segment, tuple};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tcp::Config;
use testkit::{Random, Wire};
use units::Time;

/// Frames that are read from a host at a time.
const BATCH: usize = 64;
/// The longest sleep of the loop.
const LOOK: Duration = Duration::from_millis(10);
/// IEEE 802.1Q and 802.1ad.
const TAGS: [[u8; 4]; 2] = [[0x81, 0, 0, 7], [0x88, 0xa8, 0, 9]];
/// Offset of a frame's tags: after two addresses.
const TAGS_AT: usize = 12;

/// Where a frame arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Host(usize),
    /// At the enforcer, going this way.
    Middle(Direction),
}

/// A run's result.
#[derive(Debug)]
pub struct Run {
    pub outcomes: Vec<Outcome>,
    pub counters: Counters,
    pub watch: Watch,
    pub took: Duration,
}

/// The forwarder between two TAPs.
struct World {
    case: Case,
    taps: [Tap; 2],
    enforcer: Option<Enforcer<OwnedFrame>>,
    /// From a host: to the enforcer, and beyond.
    wires: [[Wire; 2]; 2],
    random: Random,
    began: Instant,
    flying: BTreeMap<(Time, u64), (Place, Vec<u8>)>,
    order: u64,
    watch: Watch,
    buffer: Vec<u8>,
}

/// Runs the case, with or without the enforcer, until every transfer has ended.
pub fn run(case: &Case, is_enforced: bool, pattern: &Pattern) -> Run {
    let mut hosts = [0, 1].map(|end| host(case, end));
    let taps = hosts.each_mut().map(|host| host.take_tap().expect("it was not taken yet"));
    let config = Arc::new(Config::linux(Algorithm::named(case.enforced).expect("built in")));
    let enforcer = is_enforced.then(|| Enforcer::new(Limits::default(), vec![Rule::all(&config)], case.seed));
    let mut world = World {
        taps,
        enforcer,
        wires: [&case.out, &case.back].map(|way| way.each_ref().map(|faults| Wire::new(faults.clone()))),
        random: Random(!case.seed),
        began: Instant::now(),
        flying: BTreeMap::new(),
        order: 0,
        watch: Watch::default(),
        buffer: vec![0; READ_BYTES_MAX],
        case: case.clone(),
    };
    let begin = |(number, transfer)| Transfer::begin(number, transfer, &hosts);
    let mut transfers: Vec<Transfer> = case.transfers.iter().enumerate().map(begin).collect();
    while transfers.iter().any(|transfer| transfer.outcome.is_none()) {
        world.wait(&transfers);
        world.work();
        let now = Instant::now();
        for transfer in &mut transfers {
            transfer.work(now, pattern);
        }
    }
    Run {
        outcomes: transfers.into_iter().filter_map(|transfer| transfer.outcome).collect(),
        counters: world.enforcer.as_ref().map_or_else(Counters::default, |enforcer| *enforcer.counters()),
        watch: world.watch,
        took: world.began.elapsed(),
    }
}

impl World {
    fn now(&self) -> Time {
        Time::from_ns(self.began.elapsed().as_nanos() as u64)
    }

    /// Waits until a frame or a socket is ready, or a timer is due.
    fn wait(&self, transfers: &[Transfer]) {
        let arrival = self.flying.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
        let timers = self.enforcer.as_ref().map_or(Time::NEVER, Enforcer::poll_timeout);
        let left = arrival.min(timers).saturating_sub(self.now()).as_ns().min(LOOK.as_nanos() as u64);
        let mut fds: Vec<PollFd<'_>> = self.taps.iter().map(|tap| PollFd::new(tap, PollFlags::IN)).collect();
        let now = Instant::now();
        for transfer in transfers {
            transfer.wait_for(now, &mut fds);
        }
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: left as i64 })).expect("these can be polled");
    }

    /// Does everything that is due.
    fn work(&mut self) {
        for host in 0..2 {
            for _ in 0..BATCH {
                if !self.take_in(host) {
                    break;
                }
            }
        }
        let now = self.now();
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= now) {
            let (place, frame) = entry.remove();
            self.arrive(now, place, frame);
        }
        if let Some(enforcer) = self.enforcer.as_mut().filter(|enforcer| enforcer.poll_timeout() <= now) {
            enforcer.on_timer(now);
            self.drain(now);
        }
    }

    /// Reads a host's frame and passes it to the enforcer, cut and with checksums as by a network card. False: nothing.
    fn take_in(&mut self, host: usize) -> bool {
        let mtu = self.case.hosts[host].mtu as usize;
        let Some(frame) = self.taps[host].read(&mut self.buffer).expect("a TAP can be read") else { return false };
        let mut packets = Vec::new();
        let cut = segment(&frame.header, frame.bytes, mtu, &mut |segment| {
            let mut bytes = Vec::with_capacity(segment.frame_bytes());
            segment.append_to(&mut bytes);
            complete(&segment.header, &mut bytes);
            packets.push(bytes);
        });
        cut.expect("Linux makes packets that fit");
        let now = self.now();
        let direction = if host == 0 { Direction::Out } else { Direction::In };
        for packet in packets {
            let packet = self.tagged(packet);
            self.watch.on_sent(host == 0, &OwnedFrame::received(&packet, false));
            self.carry(now, (host, 0), Place::Middle(direction), packet);
        }
        true
    }

    /// With the tags of its transfer.
    fn tagged(&self, mut frame: Vec<u8>) -> Vec<u8> {
        let transfer = tuple(&frame).and_then(|tuple| {
            let number = |port: u16| self.case.transfers.get(usize::from(port.checked_sub(FIRST_PORT)?));
            number(tuple.source_port).or_else(|| number(tuple.destination_port))
        });
        let tags = transfer.map_or(0, |transfer| transfer.tags);
        for tag in TAGS.iter().take(tags) {
            frame.splice(TAGS_AT..TAGS_AT, *tag);
        }
        frame
    }

    fn carry(&mut self, now: Time, (from, hop): (usize, usize), to: Place, mut frame: Vec<u8>) {
        let (wire, bits) = (&mut self.wires[from][hop], [Bits::Even, Bits::Odd][hop]);
        for at in carry(wire, now, &mut self.random, bits, &mut frame) {
            self.flying.insert((at, self.order), (to, frame.clone()));
            self.order += 1;
        }
    }

    fn arrive(&mut self, now: Time, place: Place, mut frame: Vec<u8>) {
        match place {
            Place::Middle(direction) => {
                let packet = OwnedFrame::received(&frame, false);
                let Some(enforcer) = &mut self.enforcer else { return self.leave(now, direction, &packet) };
                match enforcer.on_packet(now, direction, packet) {
                    Action::Forward(packet) | Action::Rewritten(packet) => self.leave(now, direction, &packet),
                    Action::Held | Action::Dropped => {}
                }
                self.drain(now);
            }
            Place::Host(host) => {
                while TAGS.iter().any(|tag| tag[..2] == frame[TAGS_AT..TAGS_AT + 2]) {
                    frame.drain(TAGS_AT..TAGS_AT + 4);
                }
                self.taps[host].write(&VnetHeader::default(), &[&frame]).expect("the host takes it");
            }
        }
    }

    fn drain(&mut self, now: Time) {
        while let Some((direction, packet)) = self.enforcer.as_mut().and_then(Enforcer::poll_transmit) {
            self.leave(now, direction, &packet);
        }
    }

    fn leave(&mut self, now: Time, direction: Direction, packet: &OwnedFrame) {
        let (from, to) = match direction {
            Direction::Out => (0, 1),
            Direction::In => (1, 0),
        };
        if direction == Direction::In {
            self.watch.on_way_to_server(packet);
        }
        let mut bytes = packet.to_vec();
        complete(packet.vnet_header(), &mut bytes);
        self.carry(now, (from, 1), Place::Host(to), bytes);
    }
}

/// The address by which hosts are made; that of IPv6 is added.
fn own(end: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, end as u8 + 1)
}

fn host(case: &Case, end: usize) -> Host {
    let HostCase { mtu, sack, timestamps, scaling, ecn, scale } = case.hosts[end].clone();
    let on = |name: &str, is: bool| (format!("net.ipv4.tcp_{name}"), u8::from(is).to_string());
    let largest = 1 << (15 + scale);
    let settings = HostSettings {
        mtu,
        ecn: Some(ecn),
        neighbours: vec![own(0), own(1)],
        rmem: Some([4096, 131_072, largest]),
        sysctls: vec![
            on("sack", sack),
            on("timestamps", timestamps),
            on("window_scaling", scaling),
            // a longer RTO would look like a hang
            ("net.ipv4.tcp_rto_max_ms".to_string(), "10000".to_string()),
        ],
        ..HostSettings::new(own(end))
    };
    let host = Host::new(&format!("world{}-{end}", case.seed), &settings).unwrap_or_else(|error| panic!("{error}"));
    if case.transfers.iter().any(|transfer| transfer.is_v6) {
        let [address, other] = [end, 1 - end].map(|end| crate::transfer::address(end, true));
        let mac = mac_of(own(1 - end)).map(|byte| format!("{byte:02x}")).join(":");
        let script = format!(
            "echo 0 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6 && ip addr add {address}/64 dev eth0 nodad && \
             ip neigh add {other} lladdr {mac} dev eth0 nud permanent"
        );
        let status = host.command(&["sh", "-c", &script]).and_then(|mut child| child.wait());
        assert!(status.expect("there is a shell").success(), "IPv6 can be switched on");
    }
    host
}
