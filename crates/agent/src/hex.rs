//! Bytes in JSON, as digits.

use serde::{Deserialize, Deserializer, Serializer, de};
use std::fmt::Write as _;

/// Writes them.
pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("writing to a string");
    }
    serializer.serialize_str(&text)
}

/// Reads them.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = || de::Error::custom("not an even number of hexadecimal digits");
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8).ok_or_else(wrong);
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return Err(wrong()) };
    pairs.iter().map(|[high, low]| Ok(digit(*high)? << 4 | digit(*low)?)).collect()
}
