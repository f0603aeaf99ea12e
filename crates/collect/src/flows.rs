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
//! leave here is bounded: templates, domains, ports and pairs of racks by constants.

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
use std::net::IpAddr;
use units::{Rate, Time};

/// Most exporters of a receiver.
pub const EXPORTERS_MAX: usize = 256;
/// Most rounds of the window over which a matrix is the mean.
const ROUNDS_MAX: usize = 64;
/// Longest datagram, bytes.
pub const DATAGRAM_MAX: usize = 65_535;
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
    /// Domains or ports of an exporter that were ignored: more than are kept.
    pub ignored: u64,
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
    sampling: Option<u32>,
    sequence: Sequence,
    meter: Option<Meter>,
    /// From rack to rack in this round.
    bytes: BTreeMap<(u16, u16), u64>,
    heard: Option<Time>,
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
            sampling: exporter.sampling,
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
    pub fn take(&mut self, now: Time, from: IpAddr, datagram: &[u8]) {
        let Some(source) = self.exporters.get_mut(&from.to_canonical()) else {
            self.counts.unknown += 1;
            return;
        };
        self.counts.datagrams += 1;
        source.heard = Some(now);
        let Source { decoder, racks, ports, sampling, sequence, meter, bytes, .. } = source;
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
            counts.counted += 1;
            let rate = u64::from(sampling.unwrap_or(record.sampling).max(1));
            let sum = bytes.entry(pair).or_default();
            *sum = sum.saturating_add(record.bytes.saturating_mul(rate));
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
        if seconds > 0.0 {
            round.pairs.extend(sums.into_iter().map(|((from, to), bytes)| RackPair {
                from: self.racks.name(from).to_string(),
                to: self.racks.name(to).to_string(),
                rate: Rate::from_bps(((8.0 * bytes / seconds) as u64).min(policy::COUNT_MAX)),
            }));
        }
        round
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
