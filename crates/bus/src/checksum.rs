//! The last line of a file: a checksum of what is above it (CRC-32 of IEEE 802.3), so that a damaged file is not taken for a sound one.
//!
//! Files of earlier versions have no such line and are read as they are.

use std::fmt::Write as _;

/// How the line begins.
const BEGINS: &str = "crc32 ";
/// Its length, with eight digits and the end of the line.
const LENGTH: usize = BEGINS.len() + 8 + 1;

/// `content` and its checksum line. Content that does not end with a line gets an end.
pub fn with_checksum(content: &[u8]) -> Vec<u8> {
    let mut bytes = content.to_vec();
    if bytes.last() != Some(&b'\n') {
        bytes.push(b'\n');
    }
    let mut line = String::from(BEGINS);
    writeln!(line, "{:08x}", crc32(&bytes)).expect("a text takes what is written");
    bytes.extend_from_slice(line.as_bytes());
    bytes
}

/// The content above the checksum line, or all of a file without one; `None`: the checksum is of other content.
pub fn without_checksum(bytes: &[u8]) -> Option<&[u8]> {
    let Some((content, line)) = bytes.split_at_checked(bytes.len().saturating_sub(LENGTH)) else { return Some(bytes) };
    let is_line = line.len() == LENGTH && line.ends_with(b"\n") && content.ends_with(b"\n");
    let digits = line.strip_prefix(BEGINS.as_bytes()).filter(|_| is_line).map(|digits| &digits[..8]);
    let Some(digits) = digits else { return Some(bytes) };
    let stored =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let stored = stored.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    (stored == Some(crc32(content))).then_some(content)
}

/// Polynomial 0x04C11DB7, reflected, with its complement at both ends. Every error of up to 32 bits in a row is seen.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_ieee_802_3() {
        // the check value of every catalogue of CRCs
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(
            with_checksum(b"123456789\n"),
            b"123456789\ncrc32 e0117757\n".to_vec(),
            "{:08x}",
            crc32(b"123456789\n")
        );
    }

    #[test]
    fn what_was_changed_is_noticed_and_older_files_are_read() {
        let sound = with_checksum(b"{\"a\": 1}");
        assert_eq!(without_checksum(&sound), Some(&b"{\"a\": 1}\n"[..]));
        assert_eq!(without_checksum(b"41\n"), Some(&b"41\n"[..]));
        assert_eq!(without_checksum(b""), Some(&b""[..]));
        for at in 0..sound.len() {
            for byte in 0..=255 {
                let mut changed = sound.clone();
                changed[at] = byte;
                let read = without_checksum(&changed);
                // a line that is no checksum any more stays in the content, which no format takes
                let is_noticed = read.is_none() || read == Some(&changed);
                // the digits of a checksum may be of either case
                assert!(is_noticed || read == Some(b"{\"a\": 1}\n"), "byte {at} as {byte}");
            }
        }
    }
}
