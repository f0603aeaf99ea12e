//! sFlow version 5 (sflow.org, `sflow_version_5.txt`): samples of packets, and counters of ports.
//!
//! A datagram is walked in place. Every length is checked against what is left of it, so nothing is allocated for what it claims.

use super::packet::{Ends, of_frame, of_ip};
use super::sequence::{Sequence, Stream};
use super::{Datagram, FlowCounts, Record};
use crate::counters::is_virtual_type;
use crate::{Counts, PORTS_MAX, PortCounters};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use units::{Rate, Time};

/// Most samples of a datagram, and most records of a sample.
const SAMPLES_MAX: u32 = 4096;
/// Bytes of a frame that are no IP packet: Ethernet's header and check sequence.
const FRAME_EXTRA: u64 = 18;
/// Most bytes of an IP packet, and of a frame with two VLANs that holds it.
const PACKET_MAX: u64 = 65_535;
const FRAME_MAX: u64 = PACKET_MAX + FRAME_EXTRA + 2 * 4;
/// Forms of samples (enterprise 0): of a packet, of counters, and both with wide numbers.
const FLOW: u32 = 1;
const COUNTERS: u32 = 2;
const FLOW_WIDE: u32 = 3;
const COUNTERS_WIDE: u32 = 4;
/// Records of a flow sample: the first bytes of the packet, or its addresses.
const RAW_HEADER: u32 = 1;
const IPV4_DATA: u32 = 3;
const IPV6_DATA: u32 = 4;
/// Records of a counters sample: of an interface, and its name.
const INTERFACE: u32 = 1;
const PORT_NAME: u32 = 1005;

/// What must be kept of an exporter's counters: they have 32 bits where ours have 64.
#[derive(Debug, Default)]
pub(super) struct Sflow {
    /// By agent, its part, and interface.
    ports: BTreeMap<(IpAddr, u32, u32), [Wide; 4]>,
}

/// A counter of 32 bits, continued to 64.
#[derive(Clone, Copy, Debug, Default)]
struct Wide {
    sum: u64,
    last: [u32; 3],
    begun: bool,
}

impl Wide {
    /// Adds what some counters have counted together since the last call.
    fn add(&mut self, now: [u32; 3]) -> u64 {
        if self.begun {
            let steps = now.iter().zip(self.last).map(|(now, last)| u64::from(now.wrapping_sub(last)));
            self.sum += steps.sum::<u64>();
        }
        (self.last, self.begun) = (now, true);
        self.sum
    }
}

/// Takes what was read.
type Sinks<'a> = (&'a mut dyn FnMut(Record, &mut FlowCounts), &'a mut dyn FnMut(PortCounters));

/// The form of a sample, with the width of its numbers.
struct Sample<'a> {
    body: Words<'a>,
    wide: bool,
    agent: (IpAddr, u32),
    uptime_ms: u32,
}

impl Sflow {
    /// Reads a datagram; false if it ends early, or is not sFlow 5.
    pub fn read(
        &mut self,
        datagram: Datagram<'_>,
        sequence: &mut Sequence,
        counts: &mut FlowCounts,
        sinks: Sinks<'_>,
    ) -> bool {
        self.datagram(datagram, sequence, counts, sinks).is_some()
    }

    fn datagram(
        &mut self,
        Datagram { at, port: from, bytes }: Datagram<'_>,
        sequence: &mut Sequence,
        counts: &mut FlowCounts,
        (count, port): Sinks<'_>,
    ) -> Option<()> {
        let mut words = Words(bytes);
        if words.next()? != 5 {
            return None;
        }
        let address = match words.next()? {
            1 => words.ipv4()?,
            2 => words.ipv6()?,
            _ => return None,
        };
        let (part, number, uptime_ms) = (words.next()?, words.next()?, words.next()?);
        let agent = (address, part);
        let stream = Stream { port: from, agent: Some(address), domain: u64::from(part) };
        if !sequence.take(at, stream, number, 1) {
            counts.ignored += 1;
            return Some(());
        }
        for _ in 0..words.next()?.min(SAMPLES_MAX) {
            let (form, body) = (words.next()?, words.opaque()?);
            let sample = |wide| Sample { body: Words(body), wide, agent, uptime_ms };
            match form {
                FLOW | FLOW_WIDE => {
                    flow(sample(form == FLOW_WIDE), &mut |record| match record.bytes {
                        ..=PACKET_MAX => count(record, counts),
                        _ => counts.implausible += 1,
                    })?;
                }
                COUNTERS | COUNTERS_WIDE => self.counters(sample(form == COUNTERS_WIDE), counts, port)?,
                _ => (),
            }
        }
        Some(())
    }

    /// Counters of one port.
    fn counters(
        &mut self,
        Sample { mut body, wide, agent, uptime_ms }: Sample<'_>,
        counts: &mut FlowCounts,
        put: &mut dyn FnMut(PortCounters),
    ) -> Option<()> {
        body.skip(if wide { 3 } else { 2 })?;
        let (mut found, mut name) = (None, None);
        for _ in 0..body.next()?.min(SAMPLES_MAX) {
            let (form, record) = (body.next()?, Words(body.opaque()?));
            match form {
                INTERFACE => found = Some(record),
                PORT_NAME => name = Some(String::from_utf8_lossy({ record }.opaque()?).into_owned()),
                _ => (),
            }
        }
        let Some(mut words) = found else { return Some(()) };
        let (number, kind) = (words.next()?, words.next()?);
        let (speed, _direction, status) = (words.long()?, words.next()?, words.next()?);
        if self.ports.len() >= PORTS_MAX && !self.ports.contains_key(&(agent.0, agent.1, number)) {
            counts.ignored += 1;
            return Some(());
        }
        let at = Some(Time::from_ms(u64::from(uptime_ms)));
        let mut half = |wide: &mut [Wide; 2], has_unknown: bool| {
            let bytes = words.long()?;
            let packets = [words.next()?, words.next()?, words.next()?];
            let (dropped, errors) = (words.next()?, words.next()?);
            words.skip(usize::from(has_unknown))?;
            // a counter that the agent does not have is all ones
            let known = |count: u32| (count != u32::MAX).then_some(count);
            let packets = known(packets[0])
                .map(|unicast| wide[0].add([unicast, known(packets[1]).unwrap_or(0), known(packets[2]).unwrap_or(0)]));
            let dropped = known(dropped).map(|dropped| wide[1].add([dropped, 0, 0]));
            let bytes = Some(bytes).filter(|bytes| *bytes != u64::MAX);
            Some(Counts { bytes, packets, dropped, errors: known(errors).map(u64::from), at })
        };
        let state = self.ports.entry((agent.0, agent.1, number)).or_default();
        let mut halves = [[state[0], state[1]], [state[2], state[3]]];
        let (received, sent) = (half(&mut halves[0], true)?, half(&mut halves[1], false)?);
        *state = [halves[0][0], halves[0][1], halves[1][0], halves[1][1]];
        put(PortCounters {
            number,
            name: name.unwrap_or_default(),
            is_virtual: is_virtual_type(u64::from(kind)),
            rate: Some(Rate::from_bps(speed)).filter(|rate| rate.as_bps() > 0),
            up: Some(status & 2 != 0),
            received,
            sent,
            width: 64,
            ..PortCounters::default()
        });
        Some(())
    }
}

/// One sampled packet, if it is an IP packet.
fn flow(Sample { mut body, wide, .. }: Sample<'_>, put: &mut dyn FnMut(Record)) -> Option<()> {
    body.skip(1)?;
    let source = if wide { (body.next()?, body.next()?).1 } else { body.next()? & 0x00ff_ffff };
    let sampling = body.next()?;
    // the pool, and samples that the agent dropped
    body.skip(2)?;
    let mut interface = || {
        let (form, value) = if wide { (body.next()?, body.next()?) } else { (0, body.next()?) };
        let (form, value) = if wide { (form, value) } else { (value >> 30, value & 0x3fff_ffff) };
        Some((form == 0).then_some(value))
    };
    let (input, output) = (interface()?, interface()?);
    // a port that samples what leaves it
    let egress = output == Some(source) && input != Some(source) && source != 0;
    for _ in 0..body.next()?.min(SAMPLES_MAX) {
        let (form, record) = (body.next()?, Words(body.opaque()?));
        if let Some((from, to, bytes)) = ends(form, record) {
            put(Record { from, to, bytes, sampling, input, egress });
            break;
        }
    }
    Some(())
}

/// Addresses and length of a packet, if this record has them.
fn ends(form: u32, mut record: Words<'_>) -> Option<(IpAddr, IpAddr, u64)> {
    match form {
        RAW_HEADER => {
            let (protocol, length, _stripped) = (record.next()?, u64::from(record.next()?), record.next()?);
            let header = record.opaque()?;
            let ((from, to, said), extra): (Ends, u64) = match protocol {
                1 => {
                    let (ends, at) = of_frame(header)?;
                    (ends, at as u64 + FRAME_EXTRA - 14)
                }
                11 | 12 => (of_ip(header)?, 0),
                _ => return None,
            };
            let bytes = said.filter(|_| length <= FRAME_MAX).unwrap_or(length.saturating_sub(extra));
            Some((from, to, bytes))
        }
        IPV4_DATA => {
            let (length, _protocol) = (record.next()?, record.next()?);
            Some((record.ipv4()?, record.ipv4()?, u64::from(length)))
        }
        IPV6_DATA => {
            let (length, _protocol) = (record.next()?, record.next()?);
            Some((record.ipv6()?, record.ipv6()?, u64::from(length)))
        }
        _ => None,
    }
}

/// What is left of an XDR text: numbers of four bytes, most significant first.
#[derive(Clone, Copy)]
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn next(&mut self) -> Option<u32> {
        self.bytes(4)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
    }

    fn long(&mut self) -> Option<u64> {
        self.bytes(8)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
    }

    fn ipv4(&mut self) -> Option<IpAddr> {
        Some(IpAddr::from(Ipv4Addr::from(self.next()?)))
    }

    fn ipv6(&mut self) -> Option<IpAddr> {
        Some(IpAddr::from(Ipv6Addr::from(*self.bytes(16)?.first_chunk::<16>()?)))
    }

    fn skip(&mut self, words: usize) -> Option<()> {
        self.bytes(4 * words).map(|_| ())
    }

    /// Bytes behind their length, padded to words.
    fn opaque(&mut self) -> Option<&'a [u8]> {
        let length = self.next()? as usize;
        let padded = length.checked_next_multiple_of(4)?;
        self.bytes(padded).map(|bytes| &bytes[..length])
    }
}
