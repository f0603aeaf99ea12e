//! Flow export: who sends how much to whom, from sFlow version 5, NetFlow versions 5 and 9, and IPFIX.
//!
//! ```text
//! datagram ──▶ Flows::take ──▶ sflow, netflow: records ──▶ at the edge? ──▶ racks ──▶ bytes of this round
//!                                └▶ counters of ports ──▶ Meter
//! Flows::round ──▶ Round: traffic from rack to rack, links, what is wrong
//! ```
//!
//! **A packet is counted once**, where it enters the network. Several switches may sample the same packet, so with more than one exporter
//! each has the racks whose senders it stands in front of ([`Exporter::racks`]), or the ports at which hosts are attached
//! ([`Exporter::ports`]). Records of packets that leave a port (egress) are not counted.
//!
//! **Sampled counts** are multiplied by the sampling rate that the exporter gives, or that is configured. Datagrams that were lost show as gaps
//! in the sequence numbers; what arrived in a round is scaled by what was lost, to at most double.
//!
//! Bytes are those of the IP packets, headers included, as in NetFlow and IPFIX. Only exporters that are listed are heard. What they
//! leave here is bounded: templates, streams, ports and pairs of racks by constants.
//!
//! **Nothing proves who sent a datagram.** So no single one makes a rate that cannot be: a record is no more than the exporter's hosts can send in
//! a window, a pair of racks has no higher rate than they, and a sampling that jumps counts when it is said again in the next round.

mod netflow;
mod packet;
mod racks;
mod sequence;
mod sflow;
mod template;
#[cfg(test)]
mod tests;

pub use racks::{PAIRS_MAX, RACKS_MAX, Racks};

use crate::{Meter, MeterCounts, Moment, PortSettings, SwitchCounters};
use netflow::Netflow;
use policy::{Link, RackPair};
use sequence::Sequence;
use sflow::Sflow;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use units::{Rate, Time};

/// Most exporters of a receiver.
pub const EXPORTERS_MAX: usize = 256;
/// Most rounds of the window over which a matrix is the mean.
const ROUNDS_MAX: usize = 64;
/// Longest datagram, bytes.
pub const DATAGRAM_MAX: usize = 65_535;
/// A sampling of one in more packets than this is no sampling.
pub const SAMPLING_MAX: u32 = 1 << 24;
/// A sampling that is so many times what it was has jumped.
const JUMP: u32 = 4;
/// What an exporter's hosts can send together, where the operator does not say it: more than a switch of the top of a rack carries.
const RATE: Rate = Rate::from_gbps(10_000);
/// From this share of lost datagrams on, it is a problem.
const LOSS_PROBLEM: f64 = 0.01;

/// How flow export is received.
#[derive(Clone, Debug)]
pub struct Settings {
    /// In what form.
    pub protocol: Protocol,
    /// Who is heard.
    pub exporters: Vec<Exporter>,
    /// The matrix is the mean over so long, to half a round: at least a round, at most 64, and with NetFlow and IPFIX the exporters' active
    /// timeout.
    pub window: Time,
    /// How long ports of counter samples are kept.
    pub keep: Time,
}

/// A form of flow export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// sFlow version 5.
    Sflow,
    /// NetFlow versions 5 and 9, and IPFIX.
    Ipfix,
}

/// One that exports flows.
#[derive(Clone, Debug)]
pub struct Exporter {
    /// From where its datagrams come.
    pub address: IpAddr,
    /// The switch whose ports its counter samples are of; without one they are not used.
    pub switch: Option<String>,
    /// It counts what hosts of these racks send; empty: of all.
    pub racks: Vec<String>,
    /// It counts what enters at these ports (ifIndex); empty: at all.
    pub ports: Vec<u32>,
    /// One of so many packets is sampled, whatever it says itself.
    pub sampling: Option<u32>,
    /// What the hosts that it counts can send together; default: 10 Tbit/s.
    pub rate: Option<Rate>,
    /// What is known of the switch's ports.
    pub settings: BTreeMap<String, PortSettings>,
}

/// What has become of datagrams since the receiver began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FlowCounts {
    /// Datagrams of known exporters.
    pub datagrams: u64,
    /// Datagrams of others, which are not read.
    pub unknown: u64,
    /// Datagrams that could not be read to their end.
    pub malformed: u64,
    /// Datagrams, or records, that did not arrive, by their sequence numbers.
    pub lost: u64,
    /// Records, or samples, that were counted.
    pub counted: u64,
    /// Not counted here: not at the edge, or of packets that leave.
    pub elsewhere: u64,
    /// Not counted: their sender or receiver is in no rack.
    pub no_rack: u64,
    /// Sets of records whose template had not come yet.
    pub no_template: u64,
    /// Not counted: more pairs of racks than are kept.
    pub pairs_beyond: u64,
    /// Streams or ports of an exporter that were ignored: more than are kept.
    pub ignored: u64,
    /// Not counted: a packet beyond 64 KiB, a sampling that cannot be, or more than the exporter's `rate`.
    pub implausible: u64,
}

/// A packet, or several, from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub from: IpAddr,
    pub to: IpAddr,
    /// Of the IP packets, as they were sampled.
    pub bytes: u64,
    /// One of so many packets was sampled.
    pub sampling: u32,
    /// Where it entered the exporter.
    pub input: Option<u32>,
    /// It was seen as it left.
    pub egress: bool,
}

/// A datagram of an exporter.
#[derive(Clone, Copy, Debug)]
struct Datagram<'a> {
    /// When it came.
    at: Time,
    /// The exporter's port.
    port: u16,
    bytes: &'a [u8],
}

#[cfg(test)]
impl<'a> Datagram<'a> {
    fn of(bytes: &'a [u8]) -> Datagram<'a> {
        Datagram { at: Time::ZERO, port: 4000, bytes }
    }
}

/// Bytes from rack to rack.
type Sums = BTreeMap<(u16, u16), f64>;

/// Receives flow export; without I/O.
#[derive(Debug)]
pub struct Flows {
    racks: Racks,
    exporters: BTreeMap<IpAddr, Source>,
    window: Time,
    /// Rounds of the window: how long each was, and bytes from rack to rack.
    rounds: VecDeque<(Time, Sums)>,
    last_round: Time,
    counts: FlowCounts,
}

/// An exporter, as it is.
#[derive(Debug)]
struct Source {
    decoder: Decoder,
    /// Racks whose senders it counts; `None`: all.
    racks: Option<Vec<u16>>,
    ports: Vec<u32>,
    sampling: Sampling,
    /// Most bytes that its hosts can send in a window.
    most: u64,
    sequence: Sequence,
    meter: Option<Meter>,
    /// From rack to rack in this round.
    bytes: BTreeMap<(u16, u16), u64>,
    heard: Option<Time>,
}

/// One of how many packets an exporter samples.
#[derive(Clone, Copy, Debug, Default)]
struct Sampling {
    configured: Option<u32>,
    /// Most that it has said in the round before, and in this round; 0: nothing.
    before: u32,
    now: u32,
}

impl Sampling {
    /// By what a record that says `sampling` is multiplied; `None` if that is no sampling.
    fn of(&mut self, sampling: u32) -> Option<u64> {
        if let Some(configured) = self.configured {
            return Some(u64::from(configured));
        }
        let said = sampling.max(1);
        if said > SAMPLING_MAX {
            return None;
        }
        self.now = self.now.max(said);
        Some(u64::from(if self.jumped(said) { self.before } else { said }))
    }

    fn jumped(&self, said: u32) -> bool {
        self.before > 0 && said > self.before.saturating_mul(JUMP)
    }

    /// Ends a round: from what to what it jumped.
    fn end_round(&mut self) -> Option<(u32, u32)> {
        let jump = self.jumped(self.now).then_some((self.before, self.now));
        let said = std::mem::take(&mut self.now);
        self.before = if said > 0 { said } else { self.before };
        jump
    }
}

#[derive(Debug)]
enum Decoder {
    Sflow(Sflow),
    Netflow(Netflow),
}

/// What an end of a round says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// Traffic from rack to rack, the mean over the window.
    pub pairs: Vec<RackPair>,
    /// Links, of exporters whose counter samples are used.
    pub links: Vec<Link>,
    /// What is wrong, for people.
    pub problems: Vec<String>,
}

/// Bytes that links with a rate carry together in a time.
fn carried(rate: Rate, time: Time) -> u64 {
    (rate.as_bps() as f64 / 8.0 * time.as_secs_f64()) as u64
}

impl Flows {
    /// Nothing yet, at `now`.
    pub fn new(settings: &Settings, racks: Racks, now: Time) -> Flows {
        let decoder = || match settings.protocol {
            Protocol::Sflow => Decoder::Sflow(Sflow::default()),
            Protocol::Ipfix => Decoder::Netflow(Netflow::default()),
        };
        let source = |exporter: &Exporter| Source {
            decoder: decoder(),
            racks: (!exporter.racks.is_empty())
                .then(|| exporter.racks.iter().filter_map(|rack| racks.named(rack)).collect()),
            ports: exporter.ports.clone(),
            sampling: Sampling { configured: exporter.sampling, ..Sampling::default() },
            most: carried(exporter.rate.unwrap_or(RATE), settings.window),
            sequence: Sequence::default(),
            meter: exporter.switch.as_ref().map(|name| Meter::new(name, exporter.settings.clone(), settings.keep)),
            bytes: BTreeMap::new(),
            heard: None,
        };
        let exporters = settings.exporters.iter().take(EXPORTERS_MAX);
        let exporters = exporters.map(|exporter| (exporter.address.to_canonical(), source(exporter))).collect();
        let (window, rounds, counts) = (settings.window, VecDeque::new(), FlowCounts::default());
        Flows { racks, exporters, window, rounds, last_round: now, counts }
    }

    /// A datagram that came at `now`.
    pub fn take(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        let Some(source) = self.exporters.get_mut(&from.ip().to_canonical()) else {
            self.counts.unknown += 1;
            return;
        };
        self.counts.datagrams += 1;
        source.heard = Some(now);
        let datagram = Datagram { at: now, port: from.port(), bytes: datagram };
        let Source { decoder, racks, ports, sampling, sequence, meter, bytes, most, .. } = source;
        let (all, counts) = (&self.racks, &mut self.counts);
        let mut count = |record: Record, counts: &mut FlowCounts| {
            if record.egress || !(ports.is_empty() || record.input.is_some_and(|input| ports.contains(&input))) {
                counts.elsewhere += 1;
                return;
            }
            let Some(pair) = all.of(record.from).zip(all.of(record.to)) else {
                counts.no_rack += 1;
                return;
            };
            if racks.as_ref().is_some_and(|racks| !racks.contains(&pair.0)) {
                counts.elsewhere += 1;
                return;
            }
            if bytes.len() >= PAIRS_MAX && !bytes.contains_key(&pair) {
                counts.pairs_beyond += 1;
                return;
            }
            let sampled = sampling.of(record.sampling).map(|one_of| record.bytes.saturating_mul(one_of));
            let Some(counted) = sampled.filter(|counted| *counted <= *most) else {
                counts.implausible += 1;
                return;
            };
            counts.counted += 1;
            let sum = bytes.entry(pair).or_default();
            *sum = sum.saturating_add(counted);
        };
        let understood = match decoder {
            Decoder::Netflow(netflow) => netflow.read(datagram, sequence, counts, &mut count),
            Decoder::Sflow(sflow) => {
                let mut port = |port| {
                    if let Some(meter) = meter.as_mut() {
                        let answer = SwitchCounters { switch: String::new(), ports: vec![port] };
                        meter.take(Moment::at(now), &answer);
                    }
                };
                sflow.read(datagram, sequence, counts, (&mut count, &mut port))
            }
        };
        self.counts.malformed += u64::from(!understood);
    }

    /// Ends a round at `now`.
    pub fn round(&mut self, now: Time) -> Round {
        let length = now.saturating_sub(self.last_round);
        self.last_round = now;
        let mut sums = Sums::new();
        let mut round = Round::default();
        for (address, source) in &mut self.exporters {
            let ended = source.sequence.end_round();
            self.counts.lost += ended.lost;
            if ended.lost_share() > LOSS_PROBLEM {
                let percent = 100.0 * ended.lost_share();
                let text =
                    format!("{address}: {percent:.0} % of its flow export was lost and is estimated from the rest");
                round.problems.push(text);
            }
            match source.heard {
                None => round.problems.push(format!("{address}: no flow export has come from it")),
                Some(at) if now.saturating_sub(at) > self.window.max(length) * 2 => {
                    round.problems.push(format!("{address}: no flow export for more than two windows"));
                }
                Some(_) => (),
            }
            if let Some((before, now)) = source.sampling.end_round() {
                let text = format!(
                    "{address}: its sampling jumped from 1 in {before} to 1 in {now}, and counts as 1 in {before} until it says so again"
                );
                round.problems.push(text);
            }
            for (pair, bytes) in std::mem::take(&mut source.bytes) {
                *sums.entry(pair).or_default() += bytes as f64 * ended.scale();
            }
            round.links.extend(source.meter.iter_mut().flat_map(|meter| meter.links(now)));
        }
        self.rounds.push_back((length, sums));
        let total = |rounds: &VecDeque<(Time, _)>| rounds.iter().fold(Time::ZERO, |sum, (length, _)| sum + *length);
        // As many as come nearest to the window. No round is exactly as long as it should be: if their number changed for that, a burst would
        // be in the mean of two rounds and then of one, and count one and a half times or half.
        while self.rounds.len() > ROUNDS_MAX
            || (self.rounds.len() > 1 && total(&self.rounds).saturating_sub(self.rounds[0].0 / 2) >= self.window)
        {
            self.rounds.pop_front();
        }
        let seconds = total(&self.rounds).as_secs_f64();
        let mut sums = Sums::new();
        for (pair, bytes) in self.rounds.iter().flat_map(|(_, round)| round) {
            if sums.len() < PAIRS_MAX || sums.contains_key(pair) {
                *sums.entry(*pair).or_default() += bytes;
            }
        }
        for ((from, to), bytes) in sums.into_iter().filter(|_| seconds > 0.0) {
            let (from_name, to_name) = (self.racks.name(from).to_string(), self.racks.name(to).to_string());
            let (rate, most) = ((8.0 * bytes / seconds) as u64, self.most(from));
            if rate > most {
                let most = Rate::from_bps(most.min(policy::COUNT_MAX));
                let text = format!(
                    "{from_name} to {to_name}: flow export says more than the `rate` of its exporters, and counts as {most}"
                );
                round.problems.push(text);
            }
            let rate = Rate::from_bps(rate.min(most).min(policy::COUNT_MAX));
            round.pairs.push(RackPair { from: from_name, to: to_name, rate });
        }
        round
    }

    /// Most that the exporters that count a rack's hosts can have counted, bit/s.
    fn most(&self, rack: u16) -> u64 {
        let counts = |source: &&Source| source.racks.as_ref().is_none_or(|racks| racks.contains(&rack));
        let window = self.window.as_secs_f64();
        self.exporters.values().filter(counts).map(|source| (8.0 * source.most as f64 / window) as u64).sum()
    }

    /// What has become of datagrams.
    pub fn counts(&self) -> FlowCounts {
        self.counts
    }

    /// What the meters of counter samples have met, all together.
    pub fn meters(&self) -> impl Iterator<Item = MeterCounts> {
        self.exporters.values().filter_map(|source| source.meter.as_ref()).map(Meter::counts)
    }
}
