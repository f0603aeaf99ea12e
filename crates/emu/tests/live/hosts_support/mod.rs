//! Two hosts and a cable without delay between them, for the tests of hosts.

use emu::hosts::{Host, HostSettings};
use packet_io::{Glue, Pcap, PcapTotals, READ_BYTES_MAX, Tap, VnetHeader, segment};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use testkit::{Machine, or_skip, root};

pub const MTU: usize = 1500;

/// The right to make hosts, for one test at a time; or a printed reason why the test is skipped.
pub fn exclusive() -> Option<Machine> {
    or_skip(root())?;
    or_skip(File::open("/dev/net/tun").map_err(|error| format!("/dev/net/tun: {error}")))?;
    Some(Machine::take())
}

pub fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

/// Settings of host `own` among hosts 1 to `count`.
pub fn settings(own: u8, count: u8) -> HostSettings {
    HostSettings { neighbours: (1..=count).map(address).collect(), ..HostSettings::new(address(own)) }
}

pub fn pair() -> [Host; 2] {
    [1, 2].map(|own| Host::new(&format!("h{own}"), &settings(own, 2)).unwrap_or_else(|error| panic!("{error}")))
}

/// What a cable has carried.
#[derive(Debug, Default)]
pub struct Carried {
    pub frames_in: u64,
    pub packets: u64,
    pub frames_out: u64,
    pub refused: u64,
    pub longest_packet: usize,
    /// CPU time of its thread, the receiving host's stack included: a write to a TAP runs it.
    pub cpu: Duration,
    pub pcap: Option<PcapTotals>,
}

/// A thread that carries packets between two TAPs until it is stopped.
pub struct Cable {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Carried>,
}

impl Cable {
    pub fn plug(taps: [Tap; 2], glue: bool, pcap: Option<Pcap>) -> Cable {
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let thread = thread::Builder::new().name("cable".into()).spawn(move || {
            let mut cable = Forwarder { taps, glue, pcap, carried: Carried::default(), packets: Vec::new(), used: 0 };
            let mut buffer = vec![0; READ_BYTES_MAX];
            while !theirs.load(Ordering::Relaxed) {
                let [a, b] = &cable.taps;
                let mut ready = [PollFd::new(a, PollFlags::IN), PollFd::new(b, PollFlags::IN)];
                poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 })).expect("a TAP can be polled");
                while cable.forward(0, &mut buffer) | cable.forward(1, &mut buffer) {}
            }
            cable.carried.pcap = cable.pcap.map(|pcap| pcap.finish().expect("the capture is written"));
            let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            cable.carried.cpu = Duration::new(cpu.tv_sec as u64, cpu.tv_nsec as u32);
            cable.carried
        });
        Cable { stop, thread: thread.expect("a thread") }
    }

    pub fn unplug(self) -> Carried {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the cable does not panic")
    }
}

struct Forwarder {
    taps: [Tap; 2],
    glue: bool,
    pcap: Option<Pcap>,
    carried: Carried,
    /// Buffers of packets, `used` of them in use.
    packets: Vec<(VnetHeader, Vec<u8>)>,
    used: usize,
}

impl Forwarder {
    /// Carries what one host sends now. False: nothing.
    fn forward(&mut self, from: usize, buffer: &mut [u8]) -> bool {
        self.used = 0;
        // A few frames are a batch, as they are when a real link falls behind by some microseconds.
        for _ in 0..4 {
            if !self.take_in(from, buffer) {
                break;
            }
        }
        if self.used == 0 {
            return false;
        }
        if let Some(pcap) = &mut self.pcap {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_nanos() as u64;
            for (header, bytes) in &self.packets[..self.used] {
                pcap.record(now, header, &[bytes]);
            }
        }
        let (tap, frames_out) = (&mut self.taps[1 - from], &mut self.carried.frames_out);
        let mut send = |header: &VnetHeader, parts: &[&[u8]]| {
            *frames_out += 1;
            tap.write(header, parts)
        };
        let mut glue = Glue::new();
        for (header, bytes) in &self.packets[..self.used] {
            if self.glue {
                glue.push(*header, bytes, &mut send).expect("the host takes it");
            } else {
                send(header, &[bytes]).expect("the host takes it");
            }
        }
        glue.flush(&mut send).expect("the host takes it");
        true
    }

    fn take_in(&mut self, from: usize, buffer: &mut [u8]) -> bool {
        let Some(frame) = self.taps[from].read(buffer).expect("a TAP can be read") else { return false };
        let (packets, used) = (&mut self.packets, &mut self.used);
        let cut = segment(&frame.header, frame.bytes, MTU, &mut |segment| {
            if packets.len() == *used {
                packets.push((VnetHeader::default(), Vec::new()));
            }
            let (header, bytes) = &mut packets[*used];
            *header = segment.header;
            bytes.clear();
            segment.append_to(bytes);
            *used += 1;
        });
        self.carried.frames_in += 1;
        match cut {
            Ok(count) => self.carried.packets += count as u64,
            Err(_) => self.carried.refused += 1,
        }
        let longest = self.packets[..self.used].iter().map(|(_, bytes)| bytes.len()).max();
        self.carried.longest_packet = self.carried.longest_packet.max(longest.unwrap_or(0));
        true
    }
}
