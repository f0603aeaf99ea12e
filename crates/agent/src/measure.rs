//! Measures the host: counters of its network namespace (/proc/net/snmp, netstat and dev), over a sliding window.

use policy::{GuardWindow, Host};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use units::{Rate, Time};

/// The window of rates.
const WINDOW: Time = Time::from_secs(1);
/// Upper bound of a file of /proc/net, bytes.
const LONGEST: u64 = 1 << 20;

/// The counters at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sample {
    at: Time,
    /// Data segments sent for the first time.
    sent: u64,
    /// Segments retransmitted.
    retransmitted: u64,
    /// All segments sent for the first time, those without data too.
    out: u64,
    /// Connections opened, by either side.
    begun: u64,
    /// Open now.
    open: u64,
    /// Bytes of IP sent.
    bytes: u64,
}

impl Sample {
    /// Whether TCP has sent nothing since.
    fn has_sent_all_of(&self, snmp: &str) -> bool {
        counter(snmp, "Tcp:", "OutSegs") == Some(self.out)
            && counter(snmp, "Tcp:", "RetransSegs") == Some(self.retransmitted)
    }
}

/// The last samples: those of [`WINDOW`] and one before.
#[derive(Debug, Default)]
pub struct Counters {
    samples: VecDeque<Sample>,
    guards: GuardWindow,
    snmp: Counting,
    /// The longer file, which is read each second, and when TCP has sent something.
    netstat: Counting,
    all_read_at: Time,
    /// Open connections that are the agent's own, or that it does not set.
    others: u64,
}

/// A file of /proc/net that stays open, since opening it takes longer than reading it.
#[derive(Debug, Default)]
struct Counting {
    file: Option<File>,
    text: String,
}

impl Counting {
    /// Its content now, in the network namespace in which it was first read.
    fn read(&mut self, name: &str) -> io::Result<&str> {
        let mut file = match &self.file {
            Some(file) => file,
            None => self.file.insert(File::open(format!("/proc/thread-self/net/{name}"))?),
        };
        file.rewind()?;
        self.text.clear();
        file.take(LONGEST).read_to_string(&mut self.text)?;
        Ok(&self.text)
    }
}

impl Counters {
    /// Guards count only from the next sample on.
    pub fn begin_guarding(&mut self) {
        self.guards.begin();
    }

    /// Reads the counters of the calling thread's namespace, and adds to `host` those of the second before `now`, and what guards
    /// use.
    ///
    /// # Errors
    /// /proc lacks them.
    pub fn sample(&mut self, now: Time, host: &mut Host) -> io::Result<()> {
        let snmp = self.snmp.read("snmp")?;
        let quiet = self.samples.back().filter(|last| now < self.all_read_at + WINDOW && last.has_sent_all_of(snmp));
        let sample = if let Some(last) = quiet {
            Sample { at: now, ..last.clone() }
        } else {
            self.all_read_at = now;
            sample(now, snmp, self.netstat.read("netstat")?)?
        };
        self.push(sample);
        self.write_to(host);
        Ok(())
    }

    /// Leaves so many connections out of those that are open, in `host` too: the agent's own, and those that it does not set.
    pub fn leave_out(&mut self, others: u64, host: &mut Host) {
        self.others = others;
        self.write_to(host);
    }

    /// Whether TCP had sent nothing between the last two samples.
    pub fn is_quiet(&self) -> bool {
        let mut last = self.samples.iter().rev().map(|sample| (sample.out, sample.retransmitted));
        last.next().is_some_and(|sample| last.next() == Some(sample))
    }

    fn write_to(&self, host: &mut Host) {
        let (Some(last), Some(first)) = (self.samples.back(), self.samples.front()) else { return };
        host.live_flows = Some(last.open.saturating_sub(self.others) as f64);
        let counts = self.guards.counts();
        host.sent_segments = counts.map(|(sent, _)| sent);
        host.retransmitted_segments = counts.map(|(_, retransmitted)| retransmitted);
        let seconds = last.at.saturating_sub(first.at).as_secs_f64();
        if seconds > 0.0 {
            host.flow_starts = Some(last.begun.saturating_sub(first.begun) as f64 / seconds);
            host.send_rate =
                Some(Rate::from_bps((8.0 * last.bytes.saturating_sub(first.bytes) as f64 / seconds) as u64));
        }
    }

    fn push(&mut self, sample: Sample) {
        self.guards.add(sample.at, sample.sent.saturating_add(sample.retransmitted), sample.retransmitted);
        while self.samples.get(1).is_some_and(|begin| begin.at.saturating_add(WINDOW) <= sample.at) {
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
        retransmitted: value(snmp, "Tcp:", "RetransSegs")?,
        out: value(snmp, "Tcp:", "OutSegs")?,
        begun: value(snmp, "Tcp:", "ActiveOpens")?.saturating_add(value(snmp, "Tcp:", "PassiveOpens")?),
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
    /// Bytes received.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub dropped: u64,
}

/// What the interface has carried; `None` if there is none of that name.
pub fn traffic(interface: &str) -> Option<Traffic> {
    of_dev(&fs::read_to_string("/proc/thread-self/net/dev").ok()?, interface)
}

/// The names of this network namespace's interfaces.
pub fn interfaces() -> Vec<String> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_string())).collect()
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

    const SNMP: &str = "Ip: Forwarding\nIp: 1\nTcp: RtoMin ActiveOpens PassiveOpens CurrEstab OutSegs RetransSegs\nTcp: 200 5 7 3 4100 11\n";
    const NETSTAT: &str =
        "TcpExt: SyncookiesSent TCPOrigDataSent\nTcpExt: 0 4000\nIpExt: InOctets OutOctets\nIpExt: 1 9000\n";

    #[test]
    fn counters_are_found_by_their_names() {
        let read = sample(Time::from_secs(3), SNMP, NETSTAT).unwrap();
        let right = Sample {
            at: Time::from_secs(3),
            sent: 4000,
            retransmitted: 11,
            out: 4100,
            begun: 12,
            open: 3,
            bytes: 9000,
        };
        assert_eq!(read, right);
        assert!(right.has_sent_all_of(SNMP) && !right.has_sent_all_of(&SNMP.replace("4100", "4101")));
        assert!(!right.has_sent_all_of(&SNMP.replace("11", "12")));
        assert!(sample(Time::ZERO, SNMP, "").unwrap_err().to_string().contains("TCPOrigDataSent"));
    }

    #[test]
    fn the_window_slides_and_is_never_much_longer_than_a_second() {
        let mut counters = Counters::default();
        for quarter in 0..40 {
            counters.push(Sample { at: Time::from_ms(250 * quarter), sent: 250 * quarter, ..Sample::default() });
            let span = counters.samples.back().unwrap().at.saturating_sub(counters.samples[0].at);
            assert_eq!(span, Time::from_ms(250 * quarter.min(4)), "after {quarter} quarters of a second");
        }
    }

    #[test]
    fn a_host_that_sends_little_is_looked_at_for_longer_so_that_its_losses_have_a_share() {
        let mut counters = Counters::default();
        let mut host = Host::default();
        // 100 segments a second, of which four are lost in the tenth second
        for quarter in 0..400 {
            let retransmitted = quarter.clamp(36, 40) - 36;
            counters.push(Sample {
                at: Time::from_ms(250 * quarter),
                sent: 25 * quarter,
                retransmitted,
                begun: quarter,
                ..Sample::default()
            });
            counters.write_to(&mut host);
            if quarter == 20 {
                assert_eq!((host.sent_segments, host.drop_rate()), (Some(500), None), "too little to judge by");
            }
            assert!(
                host.flow_starts.is_none_or(|starts| (starts - 4.0).abs() < 1e-9),
                "of the last second all the same"
            );
            if (40..76).contains(&quarter) {
                assert!(host.drop_rate().unwrap() > 0.003, "{quarter}: {host:?}");
            } else if quarter > 85 {
                assert_eq!(host.drop_rate(), Some(0.0), "{quarter}");
            }
        }
        counters.begin_guarding();
        counters.write_to(&mut host);
        assert_eq!((host.sent_segments, host.flow_starts), (None, Some(4.0)));
    }

    #[test]
    fn the_agents_own_connections_are_left_out() {
        let (mut counters, mut host) = (Counters::default(), Host::default());
        counters.push(Sample { open: 3, ..Sample::default() });
        counters.leave_out(1, &mut host);
        assert_eq!(host.live_flows, Some(2.0));
        counters.push(Sample { open: 0, ..Sample::default() });
        counters.write_to(&mut host);
        assert_eq!(host.live_flows, Some(0.0), "it has ended since it was counted");
    }

    #[test]
    fn an_interfaces_line_is_its_own() {
        let text = "Inter-|   Receive\n face |bytes\n  eth10: 9 9 9 9 9 9 9 9 9 9 9 9 0 0 0 0\n  eth1: 100 2 0 0 0 0 0 0 300 4 0 5 0 0 0 0\n";
        let eth1 = of_dev(text, "eth1").unwrap();
        assert_eq!((eth1.received, eth1.sent, eth1.packets, eth1.dropped), (100, 300, 4, 5));
        assert!(of_dev(text, "eth2").is_none());
    }
}
