//! NetFlow versions 5 and 9, and IPFIX (RFC 3954, RFC 7011): the fields that give traffic from address to address.
//!
//! Templates belong to a domain of an exporting program. Their fields are read by length; those that are not used here are skipped.

use super::sequence::{Sequence, Stream, Streams};
use super::template::{DATA_MIN, Form, Reader, Templates};
use super::{Datagram, FlowCounts, Record};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Information elements of IPFIX (iana.org/assignments/ipfix), and of NetFlow 9, which has the same numbers.
const OCTETS: u16 = 1;
const FROM_IPV4: u16 = 8;
const INPUT: u16 = 10;
const TO_IPV4: u16 = 12;
const FROM_IPV6: u16 = 27;
const TO_IPV6: u16 = 28;
const SAMPLING_INTERVAL: u16 = 34;
const SAMPLER_INTERVAL: u16 = 50;
const DIRECTION: u16 = 61;
const OCTETS_TOTAL: u16 = 85;
const SAMPLED_PACKETS: u16 = 305;
const SKIPPED_PACKETS: u16 = 306;
const USED: [u16; 12] = [
    OCTETS,
    FROM_IPV4,
    INPUT,
    TO_IPV4,
    FROM_IPV6,
    TO_IPV6,
    SAMPLING_INTERVAL,
    SAMPLER_INTERVAL,
    DIRECTION,
    OCTETS_TOTAL,
    SAMPLED_PACKETS,
    SKIPPED_PACKETS,
];

/// What takes records.
type Count<'a> = &'a mut dyn FnMut(Record, &mut FlowCounts);

/// The domains of an exporter's programs.
#[derive(Debug, Default)]
pub(super) struct Netflow {
    domains: Streams<Domain>,
}

#[derive(Debug, Default)]
struct Domain {
    templates: Templates,
    /// One of so many packets is sampled, as options say; 0: nothing says it.
    sampling: u32,
}

impl Netflow {
    /// Reads a datagram; false if it could not be read to its end.
    pub fn read(
        &mut self,
        Datagram { at, port, bytes }: Datagram<'_>,
        sequence: &mut Sequence,
        counts: &mut FlowCounts,
        count: Count<'_>,
    ) -> bool {
        let Some(head) = Head::read(bytes) else { return false };
        let stream = Stream { port, agent: None, domain: head.domain };
        let Some(domain) = self.domains.of(stream, at) else {
            counts.ignored += 1;
            return true;
        };
        let mut body = Reader(head.body);
        match head.form {
            None => {
                let mut records = 0;
                let whole = (0..head.count).try_for_each(|_| {
                    count(record_of_v5(body.take(48)?, head.sampling)?, counts);
                    records += 1;
                    Some(())
                });
                sequence.take(at, stream, head.number, records);
                whole.is_some()
            }
            Some(form) => {
                let (mut records, mut whole, mut known) = (0, true, true);
                while whole && !body.0.is_empty() {
                    let Some((number, set)) = body.set() else {
                        // padding of less than a set's head
                        whole = body.0.len() < 4 && head.padded;
                        break;
                    };
                    let missing = counts.no_template;
                    let (some, is_whole) = domain.set(form, (number, set), counts, count);
                    (records, whole) = (records + some, whole && is_whole);
                    known &= counts.no_template == missing;
                }
                match form {
                    Form::V9 => {
                        sequence.take(at, stream, head.number, 1);
                    }
                    // it numbers records, and how many a set without a template holds is unknown
                    Form::Ipfix if whole && known => {
                        sequence.take(at, stream, head.number, records);
                        // domain 0 is that of the exporter as a whole (RFC 7011, section 3.1)
                        if head.domain as u32 == 0 {
                            sequence.share(at, stream, records);
                        }
                    }
                    Form::Ipfix => sequence.forget(at, stream, records),
                }
                whole
            }
        }
    }
}

impl Domain {
    /// How many records it has, and whether it could be read to its end.
    fn set(
        &mut self,
        form: Form,
        (number, set): (u16, &[u8]),
        counts: &mut FlowCounts,
        count: Count<'_>,
    ) -> (u32, bool) {
        let first = if form == Form::V9 { 0 } else { 2 };
        if number == first || number == first + 1 {
            let ignored = self.templates.read(form, number != first, set, &USED);
            counts.ignored += ignored.unwrap_or(0);
            return (0, ignored.is_some());
        }
        if number < DATA_MIN {
            // reserved
            return (0, true);
        }
        let Some(template) = self.templates.get(number) else {
            counts.no_template += 1;
            return (0, true);
        };
        let sampling = &mut self.sampling;
        template.records(set, |fields| {
            if template.options {
                *sampling = options(fields, *sampling);
            } else if let Some(record) = record(fields, *sampling) {
                count(record, counts);
            }
        })
    }
}

/// What a message begins with.
struct Head<'a> {
    /// `None`: NetFlow 5.
    form: Option<Form>,
    /// Version and domain.
    domain: u64,
    /// Its sequence number.
    number: u32,
    /// Records of NetFlow 5, and its sampling.
    count: u16,
    sampling: u32,
    /// Some exporters pad messages of NetFlow 9.
    padded: bool,
    body: &'a [u8],
}

impl<'a> Head<'a> {
    fn read(datagram: &'a [u8]) -> Option<Head<'a>> {
        let mut rest = Reader(datagram);
        let (version, count) = (rest.number16()?, rest.number16()?);
        let domain = |domain: u32| u64::from(version) << 32 | u64::from(domain);
        match version {
            5 => {
                rest.take(12)?;
                let number = rest.number32()?;
                // type and number of the engine; then the sampling, whose upper two bits are its mode
                let (engine, sampling) = (rest.number16()?, u32::from(rest.number16()? & 0x3fff).max(1));
                let domain = domain(u32::from(engine));
                Some(Head { form: None, domain, number, count, sampling, padded: false, body: rest.0 })
            }
            9 => {
                rest.take(8)?;
                let (number, domain) = (rest.number32()?, domain(rest.number32()?));
                Some(Head { form: Some(Form::V9), domain, number, count, sampling: 1, padded: true, body: rest.0 })
            }
            10 => {
                // here the count is the message's length
                let mut rest = Reader(datagram.get(4..usize::from(count))?);
                rest.take(4)?;
                let (number, domain) = (rest.number32()?, domain(rest.number32()?));
                Some(Head { form: Some(Form::Ipfix), domain, number, count, sampling: 1, padded: false, body: rest.0 })
            }
            _ => None,
        }
    }
}

fn record_of_v5(bytes: &[u8], sampling: u32) -> Option<Record> {
    let mut rest = Reader(bytes);
    let mut address = || Some(IpAddr::from(Ipv4Addr::from(rest.number32()?)));
    let (from, to, _next) = (address()?, address()?, address()?);
    let (input, _output, _packets) = (rest.number16()?, rest.number16()?, rest.number32()?);
    let bytes = u64::from(rest.number32()?);
    Some(Record { from, to, bytes, sampling, input: Some(u32::from(input)), egress: false })
}

/// The sampling that options give: one of so many packets.
fn options(fields: &[(u16, &[u8])], before: u32) -> u32 {
    let (mut sampling, mut sampled, mut skipped) = (before, None, None);
    for (field, value) in fields {
        let number = number(value).and_then(|number| u32::try_from(number).ok());
        match *field {
            SAMPLING_INTERVAL | SAMPLER_INTERVAL => sampling = number.filter(|number| *number > 0).unwrap_or(sampling),
            SAMPLED_PACKETS => sampled = number.filter(|number| *number > 0),
            SKIPPED_PACKETS => skipped = number,
            _ => (),
        }
    }
    match sampled.zip(skipped) {
        Some((sampled, skipped)) => (sampled.saturating_add(skipped) / sampled).max(1),
        None => sampling,
    }
}

/// A flow; `None` if its ends or its bytes are not among the fields.
fn record(fields: &[(u16, &[u8])], sampling: u32) -> Option<Record> {
    let (mut from, mut to, mut bytes, mut input, mut egress) = (None, None, None, None, false);
    for (field, value) in fields {
        match *field {
            FROM_IPV4 | FROM_IPV6 => from = address(value).or(from),
            TO_IPV4 | TO_IPV6 => to = address(value).or(to),
            OCTETS => bytes = number(value),
            OCTETS_TOTAL => bytes = bytes.or(number(value)),
            INPUT => input = number(value).and_then(|number| u32::try_from(number).ok()),
            DIRECTION => egress = number(value) == Some(1),
            _ => (),
        }
    }
    Some(Record { from: from?, to: to?, bytes: bytes?, sampling, input, egress })
}

/// An address that says something: templates for both kinds have zeros in the other's fields.
fn address(value: &[u8]) -> Option<IpAddr> {
    let address = match value.len() {
        4 => IpAddr::from(Ipv4Addr::from(*value.first_chunk::<4>()?)),
        16 => IpAddr::from(Ipv6Addr::from(*value.first_chunk::<16>()?)),
        _ => return None,
    };
    (!address.is_unspecified()).then_some(address)
}

/// A number of one to eight bytes: exporters may shorten them.
fn number(value: &[u8]) -> Option<u64> {
    (1..=8).contains(&value.len()).then(|| value.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

#[cfg(test)]
impl Netflow {
    /// Domains, and templates and their parts of each.
    pub fn size(&self) -> (usize, Vec<(usize, usize)>) {
        let sizes: Vec<_> = self.domains.all().map(|domain| domain.templates.size()).collect();
        (sizes.len(), sizes)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::sequence::STREAMS_MAX;
    use super::*;

    /// A form of messages.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Message {
        V5,
        V9,
        Ipfix,
    }

    /// A message with two flows of 1500 bytes from 10.1.0.1 to 10.2.0.1, and the template for them.
    pub fn message(form: Message, number: u32, domain: u32) -> Vec<u8> {
        let ends = [0x0a01_0001_u32, 0x0a02_0001];
        let mut sets = Vec::new();
        if form == Message::V5 {
            for _ in 0..2 {
                let words = [ends[0], ends[1], 0, 1 << 16, 1, 1500, 0, 0, 0, 0, 0, 0];
                sets.extend(words.iter().flat_map(|word| word.to_be_bytes()));
            }
            let mut head = [&[0, 5, 0, 2][..], &[0; 12], &number.to_be_bytes(), &domain.to_be_bytes()].concat();
            (head[20], head[21], head[22], head[23]) = (0, domain as u8, 0, 0);
            return [head, sets].concat();
        }
        // in IPFIX, also a field of an enterprise and one of variable length
        let fields: &[u16] = match form {
            Message::Ipfix => &[8, 4, 12, 4, 0x8001, 2, 0, 9, 82, VARIABLE, 61, 1, 1, 8],
            _ => &[8, 4, 12, 4, 61, 1, 1, 8],
        };
        let count = if form == Message::Ipfix { 6 } else { 4 };
        let set = u16::from(form == Message::Ipfix) * 2;
        let template = [set, 8 + 2 * fields.len() as u16, 280, count];
        sets.extend(template.iter().chain(fields).flat_map(|word| word.to_be_bytes()));
        let mut records = Vec::new();
        for name in ["eth0", &"x".repeat(300)] {
            records.extend(ends.iter().flat_map(|word| word.to_be_bytes()));
            if form == Message::Ipfix {
                records.extend([1, 2]);
                match u8::try_from(name.len()) {
                    Ok(short) => records.push(short),
                    Err(_) => records.extend([255, (name.len() >> 8) as u8, name.len() as u8]),
                }
                records.extend(name.as_bytes());
            }
            records.push(0);
            records.extend(1500_u64.to_be_bytes());
        }
        // padding
        records.extend([0; 2]);
        sets.extend([280, 4 + records.len() as u16].iter().flat_map(|word| word.to_be_bytes()));
        sets.extend(records);
        let mut head = Vec::new();
        if form == Message::V9 {
            head.extend([&[0, 9, 0, 3][..], &[0; 8]].concat());
        } else {
            head.extend([&[0, 10][..], &(16 + sets.len() as u16).to_be_bytes(), &[0; 4]].concat());
        }
        [head, number.to_be_bytes().to_vec(), domain.to_be_bytes().to_vec(), sets].concat()
    }

    const VARIABLE: u16 = 65_535;

    /// What Open vSwitch 3.1 sent: messages in hexadecimal, one a line.
    pub fn recorded() -> Vec<Vec<u8>> {
        let byte = |line: &str, at| u8::from_str_radix(&line[at..at + 2], 16).unwrap();
        let lines = include_str!("recorded.txt").lines();
        lines.map(|line| (0..line.len()).step_by(2).map(|at| byte(line, at)).collect()).collect()
    }

    #[test]
    fn domains_are_bounded() {
        let (mut netflow, mut sequence, mut counts) = (Netflow::default(), Sequence::default(), FlowCounts::default());
        let mut read = |domain: u8| {
            // a message of IPFIX without sets
            let mut message = [0; 16];
            (message[1], message[3], message[15]) = (10, 16, domain);
            netflow.read(Datagram::of(&message), &mut sequence, &mut counts, &mut |_, _| ())
        };
        assert!((0..100).all(&mut read));
        assert_eq!((netflow.size().0, counts.ignored), (STREAMS_MAX, 100 - STREAMS_MAX as u64));
        assert!(!netflow.read(Datagram::of(&[0, 7]), &mut sequence, &mut counts, &mut |_, _| ()));
    }
}
