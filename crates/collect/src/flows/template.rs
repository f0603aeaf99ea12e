//! Templates of NetFlow 9 and IPFIX, and the records that they describe (RFC 3954, RFC 7011).

use std::collections::BTreeMap;

/// Most templates of a domain, most fields of one, and most parts of all of them. Open vSwitch 3.1 sends 88 templates, of up to 67 fields.
pub(super) const TEMPLATES_MAX: usize = 512;
const FIELDS_MAX: usize = 512;
pub(super) const PARTS_MAX: usize = 8192;
/// A field of this length begins with its own length.
const VARIABLE: u16 = 65_535;
/// Sets from this number on hold records of the template of that number.
pub(super) const DATA_MIN: u16 = 256;

/// How templates are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    V9,
    Ipfix,
}

/// Templates of a domain.
#[derive(Debug, Default)]
pub(super) struct Templates {
    by_number: BTreeMap<u16, Template>,
    /// Parts of all templates.
    parts: usize,
}

#[derive(Debug)]
pub(super) struct Template {
    /// It describes the exporter rather than flows.
    pub options: bool,
    parts: Box<[Part]>,
    /// Length of the shortest record, bytes; not zero.
    shortest: usize,
}

/// A field that is used here, or several that are not (element 0).
#[derive(Clone, Copy, Debug)]
struct Part {
    element: u16,
    length: u16,
}

impl Templates {
    pub fn get(&self, number: u16) -> Option<&Template> {
        self.by_number.get(&number)
    }

    /// Reads a set of templates: `None` if it ends within one, else how many were one too many.
    pub fn read(&mut self, form: Form, options: bool, set: &[u8], used: &[u16]) -> Option<u64> {
        let (mut rest, mut ignored) = (Reader(set), 0);
        // less than a head is padding
        while rest.0.len() >= 4 {
            let (number, count) = (rest.number16()?, rest.number16()?);
            if number < DATA_MIN {
                // padding, or the withdrawal of all
                return Some(ignored);
            }
            let template = match (form, options) {
                (Form::Ipfix, _) if count == 0 => {
                    self.remove(number);
                    continue;
                }
                (_, false) => fields(form, &mut rest, usize::from(count), 0, used)?,
                (Form::Ipfix, true) => {
                    rest.number16()?;
                    fields(form, &mut rest, usize::from(count), 0, used)?
                }
                (Form::V9, true) => {
                    // lengths in bytes; fields of the scope have numbers of their own
                    let scope = usize::from(count) / 4;
                    let others = usize::from(rest.number16()?) / 4;
                    fields(form, &mut rest, scope + others, scope, used)?
                }
            };
            ignored += u64::from(!self.put(number, options, template));
        }
        Some(ignored)
    }

    /// False if it is empty or one too many.
    fn put(&mut self, number: u16, options: bool, parts: Option<Box<[Part]>>) -> bool {
        // what a template was before is no longer true
        self.remove(number);
        let Some(parts) = parts else { return false };
        let shortest = |part: &Part| if part.length == VARIABLE { 1 } else { usize::from(part.length) };
        let shortest: usize = parts.iter().map(shortest).sum();
        if shortest == 0 || self.by_number.len() >= TEMPLATES_MAX || self.parts + parts.len() > PARTS_MAX {
            return false;
        }
        self.parts += parts.len();
        self.by_number.insert(number, Template { options, parts, shortest });
        true
    }

    fn remove(&mut self, number: u16) {
        if let Some(before) = self.by_number.remove(&number) {
            self.parts -= before.parts.len();
        }
    }

    /// How many templates and parts there are.
    #[cfg(test)]
    pub fn size(&self) -> (usize, usize) {
        assert_eq!(self.parts, self.by_number.values().map(|template| template.parts.len()).sum::<usize>());
        (self.by_number.len(), self.parts)
    }
}

/// The fields of a template; outer `None` if it is cut off, inner if they are too many.
#[allow(clippy::option_option, reason = "cut off, or too many: the caller treats them differently")]
fn fields(form: Form, rest: &mut Reader<'_>, count: usize, scope: usize, used: &[u16]) -> Option<Option<Box<[Part]>>> {
    // a set has at most 65,535 bytes, so these are at most some thousand
    let mut parts: Vec<Part> = Vec::new();
    for i in 0..count {
        let (mut element, length) = (rest.number16()?, rest.number16()?);
        if form == Form::Ipfix && element >= 0x8000 {
            // an enterprise's own
            rest.take(4)?;
            element = 0;
        }
        if i < scope || !used.contains(&element) {
            element = 0;
        }
        // NetFlow 9 has no fields of variable length
        match parts.last_mut() {
            Some(last) if (last.element, element) == (0, 0) && last.length.saturating_add(length) < VARIABLE => {
                last.length += length;
            }
            _ => parts.push(Part { element, length }),
        }
    }
    Some((count <= FIELDS_MAX).then(|| parts.into_boxed_slice()))
}

impl Template {
    /// Gives `take` the used fields of each record of a set; how many records there were, and false if the set ends within one.
    pub fn records<'a>(&self, set: &'a [u8], mut take: impl FnMut(&[(u16, &'a [u8])])) -> (u32, bool) {
        let (mut rest, mut count) = (Reader(set), 0);
        let mut values = Vec::with_capacity(self.parts.len());
        // what is shorter than a record is padding
        while rest.0.len() >= self.shortest {
            values.clear();
            for part in &self.parts {
                let Some(value) = rest.value(part.length) else { return (count, false) };
                if part.element != 0 {
                    values.push((part.element, value));
                }
            }
            count += 1;
            take(&values);
        }
        (count, true)
    }
}

/// What is left of a text of numbers, most significant byte first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn number16(&mut self) -> Option<u16> {
        self.take(2)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
    }

    pub fn number32(&mut self) -> Option<u32> {
        self.take(4)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// The next set: its number and what it holds.
    pub fn set(&mut self) -> Option<(u16, &'a [u8])> {
        let (number, length) = (self.number16()?, usize::from(self.number16()?));
        Some((number, self.take(length.checked_sub(4)?)?))
    }

    fn value(&mut self, length: u16) -> Option<&'a [u8]> {
        let length = match length {
            VARIABLE => match self.take(1)?[0] {
                255 => usize::from(self.number16()?),
                short => usize::from(short),
            },
            fixed => usize::from(fixed),
        };
        self.take(length)
    }
}
