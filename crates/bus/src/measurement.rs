//! A collector's message to the Oracle: what it measured of links, and of the traffic between racks.

use crate::MESSAGE_MAX;
use crate::kind::MEASUREMENT;
use policy::{Link, RackPair};
use serde::{Deserialize, Serialize};

/// Most links of one message.
pub const MEASURED_LINKS_MAX: usize = 1024;
/// Most pairs of racks of one message.
pub const MEASURED_PAIRS_MAX: usize = 1024;
/// Most problems of one message.
pub const PROBLEMS_MAX: usize = 64;
/// Longest name and longest problem, bytes.
const TEXT_MAX: usize = 255;
/// What a message has beside its lists, bytes: the names of its members, a source with every character escaped.
const FRAME_MAX: usize = 2048;

/// What a collector measured: JSON behind [`MEASUREMENT`], in as many messages as it needs ([`Measurement::to_messages`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measurement {
    /// Which collector it is, unique in the fleet.
    pub source: String,
    /// Counts the rounds of this collector, rising. A newer round's pairs of racks replace those of the older.
    pub round: u64,
    /// Links, each with the age that its counters have as this is sent. Each replaces the link of its name.
    pub links: Vec<Link>,
    /// Traffic from rack to rack.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matrix: Vec<RackPair>,
    /// What could not be measured, for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// Why bytes are no measurement.
#[derive(Debug, thiserror::Error)]
pub enum MeasurementError {
    /// Not JSON behind [`MEASUREMENT`], or not of this shape.
    #[error("not a measurement: {0}")]
    Json(#[from] serde_json::Error),
    /// It begins as something else.
    #[error("not a measurement")]
    Kind,
    /// A list, a text or a number is larger than a collector sends.
    #[error("a measurement out of range: {0}")]
    Range(String),
}

impl Measurement {
    /// Whether a message says that it is one.
    pub fn is(bytes: &[u8]) -> bool {
        bytes.starts_with(MEASUREMENT)
    }

    /// The messages, at least one, each of at most [`MESSAGE_MAX`] bytes. Problems beyond [`PROBLEMS_MAX`] are left out.
    ///
    /// # Panics
    /// If the source, or a link, is beyond what [`Measurement::from_bytes`] takes.
    pub fn to_messages(mut self) -> Vec<Vec<u8>> {
        assert!(
            self.check().is_ok() || self.links.len() > MEASURED_LINKS_MAX || self.matrix.len() > MEASURED_PAIRS_MAX
        );
        self.problems.truncate(PROBLEMS_MAX);
        let (links, matrix) = (std::mem::take(&mut self.links), std::mem::take(&mut self.matrix));
        let empty = Measurement { source: self.source.clone(), round: self.round, ..Measurement::default() };
        let problems: usize = self.problems.iter().map(json_length).sum();
        let (mut part, mut length) = (self, FRAME_MAX + problems);
        let mut messages = Vec::new();
        let mut add = |long: usize, put: &mut dyn FnMut(&mut Measurement)| {
            let full = part.links.len() >= MEASURED_LINKS_MAX || part.matrix.len() >= MEASURED_PAIRS_MAX;
            if full || length + long > MESSAGE_MAX {
                messages.push(std::mem::replace(&mut part, empty.clone()).to_bytes());
                length = FRAME_MAX;
            }
            length += long;
            put(&mut part);
        };
        for link in links {
            let long = json_length(&link);
            let mut link = Some(link);
            add(long, &mut |part| part.links.extend(link.take()));
        }
        for pair in matrix {
            let long = json_length(&pair);
            let mut pair = Some(pair);
            add(long, &mut |part| part.matrix.extend(pair.take()));
        }
        messages.push(part.to_bytes());
        messages
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MEASUREMENT.to_vec();
        serde_json::to_writer(&mut bytes, self).expect("a measurement is plain data");
        debug_assert!(bytes.len() <= MESSAGE_MAX, "{} bytes", bytes.len());
        bytes
    }

    /// Reads one of the messages that [`Measurement::to_messages`] wrote. Every list, text and number of it is in range.
    ///
    /// # Errors
    /// It is something else, or something is out of range.
    pub fn from_bytes(bytes: &[u8]) -> Result<Measurement, MeasurementError> {
        let json = bytes.strip_prefix(MEASUREMENT).ok_or(MeasurementError::Kind)?;
        let measurement: Measurement = serde_json::from_slice(json)?;
        measurement.check().map_err(MeasurementError::Range)?;
        Ok(measurement)
    }

    fn check(&self) -> Result<(), String> {
        if self.source.is_empty() || self.source.len() > TEXT_MAX || self.source.contains(char::is_control) {
            return Err("its `source` is empty, too long, or has a control character".to_string());
        }
        let lists = [
            ("links", self.links.len(), MEASURED_LINKS_MAX),
            ("pairs of racks", self.matrix.len(), MEASURED_PAIRS_MAX),
            ("problems", self.problems.len(), PROBLEMS_MAX),
        ];
        if let Some((what, length, most)) = lists.into_iter().find(|(_, length, most)| length > most) {
            return Err(format!("{length} {what}; at most {most}"));
        }
        if self.problems.iter().any(|text| text.len() > TEXT_MAX || text.contains(char::is_control)) {
            return Err("a problem too long, or with a control character".to_string());
        }
        self.links.iter().try_for_each(Link::check)?;
        self.matrix.iter().try_for_each(RackPair::check)
    }
}

/// With the comma behind it.
fn json_length(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len() + 1)
}
