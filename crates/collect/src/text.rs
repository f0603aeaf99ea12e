//! Texts of switches: names of ports, neighbours and queues.

/// Longest text that is kept of a switch, bytes: SNMP's DisplayString and LLDP's texts are not longer.
pub(crate) const TEXT_MAX: usize = 255;

/// A text of a switch, for names and messages: at most [`TEXT_MAX`] bytes of UTF-8, without control characters and spaces at its ends.
pub(crate) fn clean(bytes: &[u8]) -> String {
    // No text grows by more than threefold: one byte that is not UTF-8 becomes a replacement character of three.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(TEXT_MAX)]);
    // Some agents end texts with a NUL, and a terminal obeys control characters.
    let text: String =
        text.trim_matches(|c: char| c.is_control() || c.is_whitespace()).chars().map(printable).collect();
    let end = (0..=TEXT_MAX.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    text[..end].to_string()
}

/// Text as it is, another character in place of what a terminal would obey.
fn printable(c: char) -> char {
    if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }
}

/// `aa:bb:cc`: an address that is no text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().take(TEXT_MAX / 3).map(|byte| format!("{byte:02x}")).collect();
    pairs.join(":")
}

/// `HOST:PORT` of an operator's address, also of an IPv6 address without brackets; `port` if there is none.
pub(crate) fn with_port(address: &str, port: u16) -> String {
    let is_bare_ipv6 = address.parse::<std::net::Ipv6Addr>().is_ok();
    match address {
        bare if is_bare_ipv6 => format!("[{bare}]:{port}"),
        bracketed if bracketed.ends_with(']') => format!("{bracketed}:{port}"),
        full if full.contains(':') => full.to_string(),
        host => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_number_is_added_where_there_is_none() {
        let cases = [
            ("switch", "switch:161"),
            ("switch:1161", "switch:1161"),
            ("192.0.2.1", "192.0.2.1:161"),
            ("2001:db8::1", "[2001:db8::1]:161"),
            ("[2001:db8::1]", "[2001:db8::1]:161"),
            ("[2001:db8::1]:1161", "[2001:db8::1]:1161"),
        ];
        for (written, meant) in cases {
            assert_eq!(with_port(written, 161), meant);
        }
    }

    #[test]
    fn a_text_is_short_and_printable() {
        assert_eq!(clean(b" Ethernet1/1\0"), "Ethernet1/1");
        assert_eq!(clean(b"a\x1b[2Jb\xff"), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(clean(&[b'x'; 1000]).len(), TEXT_MAX);
        assert!(clean(&[0xff; 1000]).len() <= TEXT_MAX);
        assert_eq!(hex(&[0, 0x1b, 0x21]), "00:1b:21");
    }
}
