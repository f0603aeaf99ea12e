//! NetFlow versions 5 and 9, and IPFIX (RFC 3954, RFC 7011), through `netflow_parser`.
//!
//! Templates belong to a domain of an exporter, so each domain has a parser of its own.

use super::sequence::{STREAMS_MAX, Sequence};
use super::{FlowCounts, Record};
use netflow_parser::variable_versions::{ipfix, v9};
use netflow_parser::{FieldValue, IpfixField, NetflowPacket, NetflowParser};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// Most templates of a domain, and most fields of one.
const TEMPLATES_MAX: usize = 128;
const FIELDS_MAX: usize = 256;
/// Most records of a set.
const RECORDS_MAX: usize = 4096;

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

/// An exporter's domains.
#[derive(Default)]
pub(super) struct Netflow {
    domains: BTreeMap<u64, Domain>,
}

struct Domain {
    parser: NetflowParser,
    /// One of so many packets is sampled, as options say.
    sampling: u32,
}

impl fmt::Debug for Netflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Netflow").field("domains", &self.domains.len()).finish_non_exhaustive()
    }
}

impl Netflow {
    /// Reads a datagram; false if it could not be read to its end.
    pub fn read(
        &mut self,
        datagram: &[u8],
        sequence: &mut Sequence,
        counts: &mut FlowCounts,
        count: &mut dyn FnMut(Record, &mut FlowCounts),
    ) -> bool {
        let Some(key) = domain_of(datagram) else { return false };
        if self.domains.len() >= STREAMS_MAX && !self.domains.contains_key(&key) {
            counts.ignored += 1;
            return true;
        }
        let domain = self.domains.entry(key).or_insert_with(|| Domain { parser: parser(), sampling: 1 });
        let parsed = domain.parser.parse_bytes(datagram);
        for packet in &parsed.packets {
            domain.packet(key, packet, sequence, counts, count);
        }
        parsed.error.is_none()
    }
}

impl Domain {
    fn packet(
        &mut self,
        key: u64,
        packet: &NetflowPacket,
        sequence: &mut Sequence,
        counts: &mut FlowCounts,
        count: &mut dyn FnMut(Record, &mut FlowCounts),
    ) {
        match packet {
            NetflowPacket::V5(packet) => {
                let header = &packet.header;
                sequence.take(key, header.flow_sequence, packet.flowsets.len() as u32);
                // the upper two bits are the mode
                let sampling = u32::from(header.sampling_interval & 0x3fff).max(1);
                for flow in &packet.flowsets {
                    let (from, to) = (flow.src_addr.into(), flow.dst_addr.into());
                    let (bytes, input) = (u64::from(flow.d_octets), Some(u32::from(flow.input)));
                    count(Record { from, to, bytes, sampling, input, egress: false }, counts);
                }
            }
            NetflowPacket::V9(packet) => {
                sequence.take(key, packet.header.sequence_number, 1);
                for set in &packet.flowsets {
                    self.set_of_v9(&set.body, counts, count);
                }
            }
            NetflowPacket::IPFix(packet) => {
                let mut records = 0;
                for set in &packet.flowsets {
                    records += self.set_of_ipfix(&set.body, counts, count);
                }
                // unlike NetFlow 9, it numbers records; those without a template cannot be counted
                sequence.take(key, packet.header.sequence_number, records);
            }
            _ => (),
        }
    }

    fn set_of_v9(
        &mut self,
        body: &v9::FlowSetBody,
        counts: &mut FlowCounts,
        count: &mut dyn FnMut(Record, &mut FlowCounts),
    ) {
        match body {
            v9::FlowSetBody::Data(data) => {
                for fields in &data.fields {
                    let fields = fields.iter().map(|(field, value)| (u16::from(*field), value));
                    if let Some(record) = record(fields, self.sampling) {
                        count(record, counts);
                    }
                }
            }
            v9::FlowSetBody::OptionsData(data) => {
                for options in &data.fields {
                    let fields = options.options_fields.iter().map(|(field, value)| (u16::from(*field), value));
                    self.options(fields);
                }
            }
            v9::FlowSetBody::NoTemplate(_) => counts.no_template += 1,
            _ => (),
        }
    }

    /// How many records it has.
    fn set_of_ipfix(
        &mut self,
        body: &ipfix::FlowSetBody,
        counts: &mut FlowCounts,
        count: &mut dyn FnMut(Record, &mut FlowCounts),
    ) -> u32 {
        match body {
            ipfix::FlowSetBody::Data(data) => {
                for fields in &data.fields {
                    let fields = fields.iter().map(|(field, value)| (element(*field), value));
                    if let Some(record) = record(fields, self.sampling) {
                        count(record, counts);
                    }
                }
                data.fields.len() as u32
            }
            ipfix::FlowSetBody::OptionsData(data) => {
                for options in &data.fields {
                    self.options(options.iter().map(|(field, value)| (element(*field), value)));
                }
                data.fields.len() as u32
            }
            ipfix::FlowSetBody::NoTemplate(_) => {
                counts.no_template += 1;
                0
            }
            _ => 0,
        }
    }

    /// What an exporter says of its sampling.
    fn options<'a>(&mut self, fields: impl Iterator<Item = (u16, &'a FieldValue)>) {
        let (mut sampled, mut skipped) = (None, None);
        for (field, value) in fields {
            let number = || number(value).and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
            match field {
                SAMPLING_INTERVAL | SAMPLER_INTERVAL => self.sampling = number().unwrap_or(self.sampling),
                SAMPLED_PACKETS => sampled = number(),
                SKIPPED_PACKETS => skipped = number(),
                _ => (),
            }
        }
        if let Some((sampled, skipped)) = sampled.zip(skipped) {
            self.sampling = (sampled.saturating_add(skipped) / sampled).max(1);
        }
    }
}

/// The number of an element that is used here, else zero.
fn element(field: IpfixField) -> u16 {
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
    USED.into_iter().find(|number| field == IpfixField::new(*number, None)).unwrap_or(0)
}

/// A flow; `None` if its ends or its bytes are not among the fields.
fn record<'a>(fields: impl Iterator<Item = (u16, &'a FieldValue)>, sampling: u32) -> Option<Record> {
    let (mut from, mut to, mut bytes, mut input, mut egress) = (None, None, None, None, false);
    for (field, value) in fields {
        match field {
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
fn address(value: &FieldValue) -> Option<IpAddr> {
    let address = match value {
        FieldValue::Ip4Addr(address) => IpAddr::V4(*address),
        FieldValue::Ip6Addr(address) => IpAddr::V6(*address),
        _ => return None,
    };
    (!address.is_unspecified()).then_some(address)
}

fn number(value: &FieldValue) -> Option<u64> {
    match value {
        FieldValue::DataNumber(number) => number.as_u64(),
        _ => None,
    }
}

/// The version and the domain of a datagram.
fn domain_of(datagram: &[u8]) -> Option<u64> {
    let word = |at: usize| datagram.get(at..at + 4)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    let version = u16::from_be_bytes(*datagram.first_chunk()?);
    let domain = match version {
        // type and number of the engine
        5 => word(20)? >> 16,
        9 => word(16)?,
        10 => word(12)?,
        _ => return None,
    };
    Some(u64::from(version) << 32 | u64::from(domain))
}

fn parser() -> NetflowParser {
    NetflowParser::builder()
        .with_cache_size(TEMPLATES_MAX)
        .with_max_field_count(FIELDS_MAX)
        .with_max_records_per_flowset(RECORDS_MAX)
        .with_max_error_sample_size(1)
        .with_allowed_versions(&[5, 9, 10])
        .build()
        .expect("these limits are a parser's")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_has_a_parser_and_domains_are_bounded() {
        let (mut netflow, mut sequence, mut counts) = (Netflow::default(), Sequence::default(), FlowCounts::default());
        let mut read = |domain: u8| {
            // a message of IPFIX without sets
            let mut message = [0; 16];
            (message[1], message[3], message[15]) = (10, 16, domain);
            netflow.read(&message, &mut sequence, &mut counts, &mut |_, _| ())
        };
        assert!((0..100).all(&mut read));
        assert_eq!((netflow.domains.len(), counts.ignored), (STREAMS_MAX, 100 - STREAMS_MAX as u64));
        assert!(!netflow.read(&[0, 7], &mut sequence, &mut counts, &mut |_, _| ()));
    }
}
