//! The beacon: what the Oracle sends at the begin of each period, whether there are CUEs or not.
//!
//! From it agents know the period, and which epoch is the current one: what ended before it belongs to the epoch before.

use crate::epoch::EPOCH_MAX;
use crate::wire::{Input, WireError, extensions, number};
use units::Time;

/// Prefix of what is signed, which nothing else has; the fields and the signature of all of it follow.
pub(crate) const PERIOD: &[u8] = b"opentcp period\0";
/// First byte of the fields.
const VERSION: u8 = 1;

/// A period has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beacon {
    /// The decision at its begin.
    pub epoch: u64,
    /// How long it is: T.
    pub period: Time,
    /// The number of the Oracle that decided.
    pub oracle: u8,
}

impl Beacon {
    /// The bytes, without a signature.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut out = PERIOD.to_vec();
        out.push(VERSION);
        number(&mut out, self.epoch);
        number(&mut out, self.period.as_ps());
        out.push(self.oracle);
        out
    }

    /// Reads what follows the prefix.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Beacon, WireError> {
        let mut input = Input::new(bytes);
        match input.byte()? {
            VERSION => {}
            version => return Err(WireError::Version(version)),
        }
        let (epoch, period, oracle) = (input.number()?, Time::from_ps(input.number()?), input.byte()?);
        extensions(&mut input)?;
        if epoch > EPOCH_MAX {
            return Err(WireError::Value("epoch"));
        }
        if period == Time::ZERO {
            return Err(WireError::Value("period"));
        }
        Ok(Beacon { epoch, period, oracle })
    }
}
