//! A CUE as bytes: what is signed and sent.
//!
//! One version byte, then the fields in the order of [`Cue`]; numbers as LEB128 (seven bits a byte, least first), texts with
//! one byte of length, what may be absent behind a bit mask. Times are in picoseconds. Reading takes whatever bytes it is
//! given: each length is bounded before anything is allocated for it.
//!
//! A later version may add fields behind the last one: a number, the length, and the bytes. A reader that does not know one with an even
//! number ignores it. One with an odd number changes what the rest means, such as a restriction to fewer sessions: who does not know it
//! must refuse the message.

use crate::cue::{Addressees, Cue, CueGuard, CueScope, NAMED_MAX, TEXT_MAX};
use crate::select::{Prefix, Sessions};
use crate::settings::Settings;
use std::collections::BTreeMap;
use std::net::IpAddr;
use units::{Bytes, Rate, Time};

/// First byte.
const VERSION: u8 = 1;
/// Its bit in the mask of settings: the first after those of the first version.
const WINDOW_TOTAL_BIT: u32 = 11;
/// Most patterns, and most labels.
const LIST_MAX: usize = 16;

/// Why bytes are not a CUE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// They end within a field.
    #[error("it is truncated")]
    Short,
    /// A later version's field, which changes what the others mean.
    #[error("it has field {0}, which this version does not know and must not ignore")]
    Field(u64),
    /// Another version of this format.
    #[error("version {0} of the format is not known here")]
    Version(u8),
    /// A value that no CUE has.
    #[error("its {0} cannot be")]
    Value(&'static str),
}

impl Cue {
    /// The bytes, without a signature.
    ///
    /// # Panics
    /// If a text or a list is longer than a CUE holds; `decide` makes none.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        number(&mut out, self.epoch);
        number(&mut out, u64::from(self.id));
        text(&mut out, &self.policy);
        text(&mut out, &self.rule);
        number(&mut out, u64::from(self.rank));
        number(&mut out, self.lifetime.as_ps());
        scope(&mut out, &self.scope);
        settings(&mut out, &self.set);
        out.push(u8::from(self.guard.is_some()));
        if let Some(guard) = &self.guard {
            text(&mut out, &guard.revert_if);
            number(&mut out, guard.hold.as_ps());
        }
        text(&mut out, &self.reason);
        out
    }

    /// Reads what [`Cue::to_bytes`] wrote.
    ///
    /// # Errors
    /// Why the bytes are not a CUE.
    pub fn from_bytes(bytes: &[u8]) -> Result<Cue, WireError> {
        let mut input = Input::new(bytes);
        match input.byte()? {
            VERSION => {}
            version => return Err(WireError::Version(version)),
        }
        let cue = Cue {
            epoch: input.number()?,
            id: input.small("id")?,
            policy: input.text()?,
            rule: input.text()?,
            rank: input.small("rank")?,
            lifetime: Time::from_ps(input.number()?),
            scope: input.scope()?,
            set: input.settings()?,
            guard: if input.flag("guard")? {
                Some(CueGuard { revert_if: input.text()?, hold: Time::from_ps(input.number()?) })
            } else {
                None
            },
            reason: input.text()?,
        };
        extensions(&mut input)?;
        Ok(cue)
    }
}

/// Reads a later version's fields, to the end.
pub(crate) fn extensions(input: &mut Input<'_>) -> Result<(), WireError> {
    while !input.rest.is_empty() {
        let field = input.number()?;
        let length = usize::try_from(input.number()?).map_err(|_| WireError::Short)?;
        input.take(length)?;
        if field % 2 == 1 {
            return Err(WireError::Field(field));
        }
    }
    Ok(())
}

pub(crate) fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn text(out: &mut Vec<u8>, text: &str) {
    assert!(text.len() <= TEXT_MAX, "a text of a CUE has at most {TEXT_MAX} bytes");
    out.push(text.len() as u8);
    out.extend_from_slice(text.as_bytes());
}

fn scope(out: &mut Vec<u8>, scope: &CueScope) {
    match &scope.hosts {
        Addressees::All => out.push(0),
        Addressees::UpTo(place) => {
            out.push(1);
            out.extend_from_slice(&place.to_le_bytes());
        }
        Addressees::Named(names) => {
            assert!(names.len() <= NAMED_MAX, "a CUE names at most {NAMED_MAX} hosts");
            out.push(2);
            out.push(names.len() as u8);
            for name in names {
                text(out, name);
            }
        }
    }
    assert!(scope.names.len() <= LIST_MAX && scope.labels.len() <= LIST_MAX, "a policy's lists are as short");
    out.push(scope.names.len() as u8);
    scope.names.iter().for_each(|name| text(out, name));
    out.push(scope.labels.len() as u8);
    for (label, value) in &scope.labels {
        text(out, label);
        text(out, value);
    }
    let Sessions { remote, port, cgroup } = &scope.sessions;
    out.push(u8::from(remote.is_some()) | u8::from(port.is_some()) << 1 | u8::from(cgroup.is_some()) << 2);
    if let Some(prefix) = remote {
        out.push(prefix.bits());
        match prefix.address() {
            IpAddr::V4(address) => {
                out.push(4);
                out.extend_from_slice(&address.octets());
            }
            IpAddr::V6(address) => {
                out.push(6);
                out.extend_from_slice(&address.octets());
            }
        }
    }
    if let Some(port) = port {
        number(out, u64::from(*port));
    }
    if let Some(cgroup) = cgroup {
        text(out, cgroup);
    }
}

fn settings(out: &mut Vec<u8>, set: &Settings) {
    let flags = [set.pacing, set.ecn];
    let numbers = [
        set.initial_cwnd.map(u64::from),
        set.rto_min.map(Time::as_ps),
        set.cwnd_clamp.map(u64::from),
        set.max_pacing_rate.map(Rate::as_bps),
        set.delayed_ack_max.map(Time::as_ps),
        set.window_clamp.map(Bytes::get),
    ];
    // a bit for each number and the algorithm, two for each flag: there, and true
    let mut mask = u64::from(set.cc.is_some());
    for (i, value) in numbers.iter().enumerate() {
        mask |= u64::from(value.is_some()) << (1 + i);
    }
    for (i, flag) in flags.iter().enumerate() {
        mask |= u64::from(flag.is_some()) << (7 + 2 * i) | u64::from(*flag == Some(true)) << (8 + 2 * i);
    }
    // a reader of an earlier version refuses a bit that it does not know
    mask |= u64::from(set.window_total.is_some()) << WINDOW_TOTAL_BIT;
    number(out, mask);
    if let Some(cc) = &set.cc {
        text(out, cc);
    }
    numbers.into_iter().flatten().for_each(|value| number(out, value));
    if let Some(total) = set.window_total {
        number(out, total.get());
    }
}

/// Bytes that are read from their begin.
pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { rest: bytes }
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(WireError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        self.take(N)?.try_into().map_err(|_| WireError::Short)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, WireError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn number(&mut self) -> Result<u64, WireError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // the tenth byte has one bit left
            if shift == 63 && bits > 1 {
                return Err(WireError::Value("number"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError::Value("number"))
    }

    fn small<T: TryFrom<u64>>(&mut self, what: &'static str) -> Result<T, WireError> {
        T::try_from(self.number()?).map_err(|_| WireError::Value(what))
    }

    fn flag(&mut self, what: &'static str) -> Result<bool, WireError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(WireError::Value(what)),
        }
    }

    fn text(&mut self) -> Result<String, WireError> {
        let n = usize::from(self.byte()?);
        String::from_utf8(self.take(n)?.to_vec()).map_err(|_| WireError::Value("text"))
    }

    fn texts(&mut self, most: usize) -> Result<Vec<String>, WireError> {
        let n = usize::from(self.byte()?);
        if n > most {
            return Err(WireError::Value("list"));
        }
        (0..n).map(|_| self.text()).collect()
    }

    fn scope(&mut self) -> Result<CueScope, WireError> {
        let hosts = match self.byte()? {
            0 => Addressees::All,
            1 => Addressees::UpTo(u64::from_le_bytes(self.array()?)),
            2 => Addressees::Named(self.texts(NAMED_MAX)?),
            _ => return Err(WireError::Value("scope")),
        };
        let names = self.texts(LIST_MAX)?;
        let n = usize::from(self.byte()?);
        if n > LIST_MAX {
            return Err(WireError::Value("list"));
        }
        let labels: BTreeMap<String, String> =
            (0..n).map(|_| Ok((self.text()?, self.text()?))).collect::<Result<_, _>>()?;
        let mask = self.byte()?;
        if mask > 7 {
            return Err(WireError::Value("sessions"));
        }
        let remote = if mask & 1 != 0 { Some(self.prefix()?) } else { None };
        let port = if mask & 2 != 0 { Some(self.small("port")?) } else { None };
        let cgroup = if mask & 4 != 0 { Some(self.text()?) } else { None };
        Ok(CueScope { hosts, names, labels, sessions: Sessions { remote, port, cgroup } })
    }

    fn prefix(&mut self) -> Result<Prefix, WireError> {
        let bits = self.byte()?;
        let address = match self.byte()? {
            4 => IpAddr::from(self.array::<4>()?),
            6 => IpAddr::from(self.array::<16>()?),
            _ => return Err(WireError::Value("address")),
        };
        Prefix::new(address, bits).ok_or(WireError::Value("prefix"))
    }

    fn settings(&mut self) -> Result<Settings, WireError> {
        let mask = self.number()?;
        let flag = |i: u32| (mask >> (7 + 2 * i) & 1 != 0).then_some(mask >> (8 + 2 * i) & 1 != 0);
        if mask >> (WINDOW_TOTAL_BIT + 1) != 0 {
            return Err(WireError::Value("settings"));
        }
        let cc = if mask & 1 != 0 { Some(self.text()?) } else { None };
        let mut value = |i: u32| if mask >> (1 + i) & 1 != 0 { self.number().map(Some) } else { Ok(None) };
        let segments = |value: Option<u64>| {
            value.map(u32::try_from).transpose().map_err(|_| WireError::Value("number of segments"))
        };
        Ok(Settings {
            cc,
            initial_cwnd: segments(value(0)?)?,
            rto_min: value(1)?.map(Time::from_ps),
            cwnd_clamp: segments(value(2)?)?,
            max_pacing_rate: value(3)?.map(Rate::from_bps),
            delayed_ack_max: value(4)?.map(Time::from_ps),
            window_clamp: value(5)?.map(Bytes::new),
            window_total: value(WINDOW_TOTAL_BIT - 1)?.map(Bytes::new),
            pacing: flag(0),
            ecn: flag(1),
        })
    }
}
