//! What a host measures of itself: counters of its network namespace (/proc/net/snmp, netstat and dev), over a sliding second.

use policy::Host;
use std::collections::VecDeque;
use std::{fs, io};
use units::{Rate, Time};

/// Over which guards look.
pub const WINDOW: Time = Time::from_secs(1);

/// The counters at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sample {
    at: Time,
    /// Data segments sent for the first time.
    sent: u64,
    /// Segments sent again.
    again: u64,
    /// Connections begun, by either side.
    begun: u64,
    /// Open now.
    open: u64,
    /// Bytes of IP sent.
    bytes: u64,
}

/// The last second's samples, and one before.
#[derive(Debug, Default)]
pub struct Counters {
    samples: VecDeque<Sample>,
}

impl Counters {
    /// From the next sample on only what comes after it counts: what was before a guard is not the guard's.
    pub fn begin(&mut self) {
        self.samples.clear();
    }

    /// Reads the counters of the calling thread's namespace, and adds what they say of the second before `now` to `host`.
    ///
    /// # Errors
    /// /proc does not have them.
    pub fn sample(&mut self, now: Time, host: &mut Host) -> io::Result<()> {
        let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
        self.push(sample(now, &read("snmp")?, &read("netstat")?)?);
        let (Some(first), Some(last)) = (self.samples.front(), self.samples.back()) else { return Ok(()) };
        host.live_flows = Some(last.open as f64);
        let seconds = last.at.saturating_sub(first.at).as_secs_f64();
        if seconds == 0.0 {
            (host.sent_segments, host.retransmitted_segments) = (None, None);
        } else {
            let again = last.again.saturating_sub(first.again);
            host.sent_segments = Some(last.sent.saturating_sub(first.sent) + again);
            host.retransmitted_segments = Some(again);
            host.flow_starts = Some(last.begun.saturating_sub(first.begun) as f64 / seconds);
            host.send_rate =
                Some(Rate::from_bps((8.0 * last.bytes.saturating_sub(first.bytes) as f64 / seconds) as u64));
        }
        Ok(())
    }

    /// Keeps the youngest sample that is at least a second old, and those after it.
    fn push(&mut self, sample: Sample) {
        while self.samples.get(1).is_some_and(|second| second.at.saturating_add(WINDOW) <= sample.at) {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }
}

fn sample(at: Time, snmp: &str, netstat: &str) -> io::Result<Sample> {
    let value = |text: &str, group: &str, name: &str| {
        counter(text, group, name).ok_or_else(|| io::Error::other(format!("/proc/net does not count {group} {name}")))
    };
    Ok(Sample {
        at,
        sent: value(netstat, "TcpExt:", "TCPOrigDataSent")?,
        again: value(snmp, "Tcp:", "RetransSegs")?,
        begun: value(snmp, "Tcp:", "ActiveOpens")? + value(snmp, "Tcp:", "PassiveOpens")?,
        open: value(snmp, "Tcp:", "CurrEstab")?,
        bytes: value(netstat, "IpExt:", "OutOctets")?,
    })
}

/// A line of names, and one of numbers below.
fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let at = lines.next()?.split_whitespace().position(|word| word == name)?;
    lines.next()?.split_whitespace().nth(at)?.parse().ok()
}

/// Bytes received and sent by an interface, and packets dropped on the way out.
pub struct Traffic {
    /// Bytes.
    pub received: u64,
    /// Bytes.
    pub sent: u64,
    /// Packets that went out.
    pub packets: u64,
    /// Packets that did not.
    pub dropped: u64,
}

/// What the interface has carried; `None` if there is none of that name.
pub fn traffic(interface: &str) -> Option<Traffic> {
    of_dev(&fs::read_to_string("/proc/thread-self/net/dev").ok()?, interface)
}

fn of_dev(text: &str, interface: &str) -> Option<Traffic> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // eight of what was received, then what was sent: bytes, packets, errors, drops
    let [received, _, _, _, _, _, _, _, sent, packets, _, dropped, ..] = numbers[..] else { return None };
    Some(Traffic { received, sent, packets, dropped })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str =
        "Ip: Forwarding\nIp: 1\nTcp: RtoMin ActiveOpens PassiveOpens CurrEstab RetransSegs\nTcp: 200 5 7 3 11\n";
    const NETSTAT: &str =
        "TcpExt: SyncookiesSent TCPOrigDataSent\nTcpExt: 0 4000\nIpExt: InOctets OutOctets\nIpExt: 1 9000\n";

    #[test]
    fn counters_are_found_by_their_names() {
        let read = sample(Time::from_secs(3), SNMP, NETSTAT).unwrap();
        let right = Sample { at: Time::from_secs(3), sent: 4000, again: 11, begun: 12, open: 3, bytes: 9000 };
        assert_eq!(read, right);
        assert!(sample(Time::ZERO, SNMP, "").unwrap_err().to_string().contains("TCPOrigDataSent"));
    }

    #[test]
    fn the_window_slides_and_is_never_much_longer_than_a_second() {
        let mut counters = Counters::default();
        for quarter in 0..40 {
            counters.push(Sample { at: Time::from_ms(250 * quarter), ..Sample::default() });
            let span = counters.samples.back().unwrap().at.saturating_sub(counters.samples[0].at);
            assert_eq!(span, Time::from_ms(250 * quarter.min(4)), "after {quarter} quarters of a second");
        }
    }

    #[test]
    fn an_interfaces_line_is_its_own() {
        let text = "Inter-|   Receive\n face |bytes\n  eth10: 9 9 9 9 9 9 9 9 9 9 9 9 0 0 0 0\n  eth1: 100 2 0 0 0 0 0 0 300 4 0 5 0 0 0 0\n";
        let eth1 = of_dev(text, "eth1").unwrap();
        assert_eq!((eth1.received, eth1.sent, eth1.packets, eth1.dropped), (100, 300, 4, 5));
        assert!(of_dev(text, "eth2").is_none());
    }
}
