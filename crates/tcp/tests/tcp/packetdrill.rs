//! A small language for packet scripts, after packetdrill: one endpoint under test, a scripted peer, a line per event.
//!
//! ```text
//! 0     write 3000              the application writes
//! 0     > 1:3001                the endpoint sends these bytes, in segments of at most 1000
//! 20    < ack 1001              the peer's ACK arrives
//! 240~5 > 1001:2001             ... at 240 ms, give or take 5
//! 300   quiet                   nothing has been sent up to now that no line expected
//! ```
//!
//! Times are milliseconds since the connection was established, sequence numbers relative (the SYN is 0). Words after
//! `>` and `<`: `syn fin rst`, `A:B` the data, `ack N`, `sack A:B` (repeated, in order), `nosack`, `ece`, `noece`, `cwr`,
//! `nocwr`, `psh`, `ce`, `ect`, `noect`, `win N`. What a line does not name may be anything. Other events: `write N`, `close`,
//! `read on`, `read off`, `cwnd N`, `ssthresh N`, `state N`, `received N`.

use congestion::Algorithm;
use std::collections::VecDeque;
use std::sync::Arc;
use tcp::{Config, Ecn, Endpoint, SackBlock, Segment, flags};
use units::Time;

/// Round trip of the handshake.
pub const RTT_MS: f64 = 20.0;

/// Linux's defaults with NewReno, segments of 1000 bytes and no timestamps, so that numbers stay round.
pub fn config() -> Config {
    let newreno = Algorithm::named("newreno").expect("newreno is built in");
    Config { mtu: 1040, timestamps: false, ..Config::linux(newreno) }
}

/// An endpoint under test and what it has sent that no line expected yet.
pub struct Drill {
    pub endpoint: Endpoint,
    /// When the connection was established.
    zero: Time,
    now: Time,
    iss: u32,
    peer_iss: u32,
    /// Relative number after the last byte that the peer has sent.
    peer_next: u32,
    window: u32,
    sent: VecDeque<(Time, Segment)>,
    /// Of the handshake, for tests that look at them.
    pub handshake: Vec<Segment>,
}

/// One line, taken apart.
struct Line<'a> {
    text: &'a str,
    at_ms: f64,
    tolerance_ms: f64,
    op: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn parse(text: &'a str) -> Line<'a> {
        let mut words = text.split_whitespace();
        let time = words.next().expect("a line begins with its time");
        let (at, tolerance) = time.split_once('~').unwrap_or((time, "0.05"));
        let number = |word: &str| word.parse().unwrap_or_else(|_| panic!("`{text}`: `{word}` is no time"));
        let op = words.next().unwrap_or_else(|| panic!("`{text}` says only a time"));
        Line { text, at_ms: number(at), tolerance_ms: number(tolerance), op, words: words.collect() }
    }

    fn number(&self, index: usize) -> u64 {
        let word = self.words.get(index).copied().unwrap_or("nothing");
        word.parse().unwrap_or_else(|_| panic!("`{}`: `{word}` is no number", self.text))
    }

    fn check(&self, is: u64) {
        assert_eq!(is, self.number(0), "`{}`", self.text);
    }

    /// The range of the data; those after `sack` are something else.
    fn data(&self) -> Option<(u32, u32)> {
        let of_sack = |index: usize| index > 0 && self.words[index - 1] == "sack";
        self.words.iter().enumerate().find_map(|(index, word)| range(word).filter(|_| !of_sack(index)))
    }
}

fn range(word: &str) -> Option<(u32, u32)> {
    let (start, end) = word.split_once(':')?;
    Some((start.parse().ok()?, end.parse().ok()?))
}

/// The client's initial sequence number, unless a test asks for another.
pub const ISS: u32 = 500_000;

impl Drill {
    /// A client whose connection has just been established: the SYN-ACK came [`RTT_MS`] after its SYN.
    pub fn client(config: Config) -> Drill {
        Drill::client_with(config, ISS, |_| ())
    }

    /// The same with this initial sequence number and this SYN-ACK.
    pub fn client_with(config: Config, iss: u32, change: impl FnOnce(&mut Segment)) -> Drill {
        let mut drill = Drill::connecting(config, iss);
        let syn = drill.handshake[0];
        let mut syn_ack = drill.answer(&syn);
        change(&mut syn_ack);
        drill.zero = drill.now + Time::from_secs_f64(RTT_MS / 1e3);
        drill.run_until(drill.zero);
        drill.endpoint.on_segment(drill.now, &syn_ack);
        drill.collect();
        let (_, ack) = drill.sent.pop_front().expect("the SYN-ACK is acknowledged");
        assert_eq!((ack.flags, ack.len, ack.ack), (flags::ACK, 0, drill.peer_iss.wrapping_add(1)));
        drill.handshake.extend([syn_ack, ack]);
        drill
    }

    /// A client that has sent its SYN; time zero is that of the SYN.
    pub fn connecting(config: Config, iss: u32) -> Drill {
        let config = Arc::new(config);
        let now = Time::from_secs(1);
        let mut drill = Drill::around(Endpoint::connect(&config, iss, 7), now, iss);
        drill.collect();
        let (_, syn) = drill.sent.pop_front().expect("a SYN leaves at once");
        assert_eq!((syn.flags & flags::SYN, syn.seq), (flags::SYN, iss));
        drill.handshake.push(syn);
        drill
    }

    /// A server that has answered a SYN.
    pub fn listening(config: Config) -> Drill {
        let now = Time::from_secs(1);
        let ecn = config.algorithm.needs_ecn() || config.ecn == tcp::EcnMode::On;
        let config = Arc::new(config);
        let mut drill = Drill::around(Endpoint::listen(&config, ISS, 7), now, ISS);
        let syn = Segment {
            seq: drill.peer_iss,
            window: 65_535,
            mss: 1000,
            sack_permitted: config.sack,
            window_scale: if config.window_scaling { 8 } else { 0 },
            has_timestamp: config.timestamps,
            flags: flags::SYN | if ecn { flags::ECE | flags::CWR } else { 0 },
            ..Segment::default()
        };
        drill.endpoint.on_segment(now, &syn);
        drill.collect();
        let (_, syn_ack) = drill.sent.pop_front().expect("a SYN is answered");
        assert_eq!(syn_ack.flags & (flags::SYN | flags::ACK), flags::SYN | flags::ACK);
        drill.handshake.extend([syn, syn_ack]);
        drill
    }

    fn around(endpoint: Endpoint, now: Time, iss: u32) -> Drill {
        Drill {
            endpoint,
            zero: now,
            now,
            iss,
            peer_iss: 90_000,
            peer_next: 1,
            window: 1 << 22,
            sent: VecDeque::new(),
            handshake: Vec::new(),
        }
    }

    /// A SYN-ACK with the options of `syn`.
    pub fn answer(&self, syn: &Segment) -> Segment {
        Segment {
            seq: self.peer_iss,
            ack: self.iss.wrapping_add(1),
            window: 65_535,
            mss: 1000,
            flags: flags::SYN | flags::ACK | (syn.flags & flags::ECE),
            sack_permitted: syn.sack_permitted,
            window_scale: syn.window_scale,
            has_timestamp: syn.has_timestamp,
            tsecr: syn.tsval,
            ..Segment::default()
        }
    }

    /// An ACK of the SYN with `len` bytes.
    fn plain(&self, len: u16) -> Segment {
        Segment {
            seq: self.peer_iss.wrapping_add(self.peer_next),
            ack: self.iss.wrapping_add(1),
            window: self.window,
            flags: flags::ACK,
            len,
            ..Segment::default()
        }
    }

    /// Milliseconds since the connection was established.
    pub fn ms(&self, at: Time) -> f64 {
        (at.as_secs_f64() - self.zero.as_secs_f64()) * 1e3
    }

    /// Runs the lines of `script`; panics at the first that does not hold.
    pub fn run(&mut self, script: &str) -> &mut Drill {
        for text in script.lines().map(|line| line.split("//").next().expect("a first part").trim()) {
            if !text.is_empty() {
                let line = Line::parse(text);
                self.step(&line);
            }
        }
        self
    }

    fn step(&mut self, line: &Line<'_>) {
        let at = Time::from_secs_f64(self.zero.as_secs_f64() + line.at_ms / 1e3);
        if line.op == ">" {
            return self.expect(line);
        }
        self.run_until(at);
        if line.op != "write" && line.op != "close" && line.op != "<" || self.sent.iter().any(|(time, _)| *time < at) {
            self.nothing_sent(line);
        }
        match line.op {
            "quiet" => {}
            "<" => {
                let segment = self.incoming(line);
                self.endpoint.on_segment(self.now, &segment);
            }
            "write" => {
                let bytes = line.number(0);
                assert_eq!(self.endpoint.write(self.now, bytes), bytes, "`{}`: the buffer is full", line.text);
            }
            "close" => self.endpoint.close(self.now),
            "read" => self.endpoint.set_reading(self.now, line.words[0] == "on"),
            "cwnd" => line.check(self.endpoint.sock().snd_cwnd as u64),
            "ssthresh" => line.check(self.endpoint.sock().snd_ssthresh as u64),
            "state" => line.check(self.endpoint.sock().icsk_ca_state as u64),
            "received" => line.check(self.endpoint.received()),
            op => panic!("`{}`: unknown event `{op}`", line.text),
        }
        self.collect();
    }

    fn nothing_sent(&self, line: &Line<'_>) {
        if let Some((at, segment)) = self.sent.front() {
            panic!("`{}`: unexpected at {:.2} ms: {}", line.text, self.ms(*at), self.show(segment));
        }
    }

    fn run_until(&mut self, at: Time) {
        while self.endpoint.poll_timeout() <= at {
            self.now = self.now.max(self.endpoint.poll_timeout());
            self.endpoint.on_timer(self.now);
            self.collect();
        }
        self.now = self.now.max(at);
        self.collect();
    }

    fn collect(&mut self) {
        let mut segment = Segment::default();
        loop {
            let wanted = self.endpoint.wants_transmit();
            if !self.endpoint.poll_transmit(self.now, &mut segment) {
                break;
            }
            assert!(wanted, "a host that asks first would have missed {segment:?}");
            self.sent.push_back((self.now, segment));
        }
    }

    fn expect(&mut self, line: &Line<'_>) {
        let data = line.data();
        let mut next = data.map(|(start, _)| start);
        self.collect();
        loop {
            let limit = Time::from_secs_f64(self.zero.as_secs_f64() + (line.at_ms + line.tolerance_ms) / 1e3);
            while self.sent.is_empty() && self.endpoint.poll_timeout() <= limit {
                self.run_until(self.endpoint.poll_timeout());
            }
            let Some((at, segment)) = self.sent.pop_front() else {
                panic!("`{}`: nothing is sent", line.text);
            };
            let late = self.ms(at) - line.at_ms;
            let shown = self.show(&segment);
            assert!(late.abs() <= line.tolerance_ms, "`{}`: sent at {:.2} ms: {shown}", line.text, self.ms(at));
            if let Err(what) = self.matches(&segment, line, next, data) {
                panic!("`{}`: {what}: {shown}", line.text);
            }
            let end = segment.seq.wrapping_add(segment.len as u32).wrapping_sub(self.iss);
            match (data, &mut next) {
                (Some((_, last)), Some(next)) if end != last => *next = end,
                _ => return,
            }
        }
    }

    /// `start` is where the data of this segment is to begin, `data` the range of the whole line.
    fn matches(
        &self,
        segment: &Segment,
        line: &Line<'_>,
        start: Option<u32>,
        data: Option<(u32, u32)>,
    ) -> Result<(), String> {
        let has = |flag: u8| segment.flags & flag != 0;
        let check = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_string()) };
        if let Some(start) = start {
            let seq = segment.seq.wrapping_sub(self.iss);
            check(seq == start && segment.len > 0, &format!("it does not begin at {start}"))?;
        } else {
            check(segment.len == 0, "it carries data")?;
        }
        let end = segment.seq.wrapping_add(segment.len as u32).wrapping_sub(self.iss);
        let last = data.is_none_or(|(_, last)| last == end);
        check(has(flags::FIN) == (last && line.words.contains(&"fin")), "FIN")?;
        check(has(flags::SYN) == line.words.contains(&"syn"), "SYN")?;
        check(has(flags::RST) == line.words.contains(&"rst"), "RST")?;
        let mut blocks = segment.sack[..segment.sack_count as usize].iter();
        for (index, &word) in line.words.iter().enumerate() {
            match word {
                "ack" => {
                    let ack = segment.ack.wrapping_sub(self.peer_iss) as u64;
                    check(ack == line.number(index + 1), "another ACK")?;
                }
                "sack" => {
                    let (start, end) = range(line.words[index + 1]).expect("a range follows sack");
                    let block = blocks.next().copied().ok_or("no such SACK block")?;
                    let seen = (block.start.wrapping_sub(self.peer_iss), block.end.wrapping_sub(self.peer_iss));
                    check(seen == (start, end), "another SACK block")?;
                }
                "nosack" => check(segment.sack_count == 0, "SACK blocks")?,
                "ece" => check(has(flags::ECE), "no ECE")?,
                "noece" => check(!has(flags::ECE), "ECE")?,
                "cwr" => check(has(flags::CWR), "no CWR")?,
                "nocwr" => check(!has(flags::CWR), "CWR")?,
                "ect" => check(segment.ecn == Ecn::Ect0, "not ECT(0)")?,
                "noect" => check(segment.ecn == Ecn::NotEct, "ECT")?,
                "win" => check(segment.window as u64 == line.number(index + 1), "another window")?,
                _ => {}
            }
        }
        Ok(())
    }

    fn incoming(&mut self, line: &Line<'_>) -> Segment {
        let mut segment = self.plain(0);
        segment.has_timestamp = self.handshake.first().is_some_and(|syn| syn.has_timestamp);
        let mut index = 0;
        while index < line.words.len() {
            let word = line.words[index];
            match word {
                "syn" => segment = self.answer(&self.handshake[0]),
                "fin" => segment.flags |= flags::FIN,
                "rst" => segment.flags |= flags::RST,
                "ece" => segment.flags |= flags::ECE,
                "cwr" => segment.flags |= flags::CWR,
                "psh" => segment.flags |= flags::PSH,
                "ce" => segment.ecn = Ecn::Ce,
                "ect" => segment.ecn = Ecn::Ect0,
                "ack" | "win" => {
                    index += 1;
                    let number = line.number(index) as u32;
                    if word == "ack" {
                        segment.ack = self.iss.wrapping_add(number);
                    } else {
                        self.window = number;
                        segment.window = number;
                    }
                }
                "sack" => {
                    index += 1;
                    let (start, end) = range(line.words[index]).expect("a range follows sack");
                    let block = SackBlock { start: self.iss.wrapping_add(start), end: self.iss.wrapping_add(end) };
                    segment.sack[segment.sack_count as usize] = block;
                    segment.sack_count += 1;
                }
                _ => {
                    let (start, end) = range(word).unwrap_or_else(|| panic!("`{}`: `{word}`?", line.text));
                    segment.seq = self.peer_iss.wrapping_add(start);
                    segment.len = (end - start) as u16;
                }
            }
            index += 1;
        }
        let end = segment.end_seq().wrapping_sub(self.peer_iss);
        self.peer_next = self.peer_next.max(end);
        segment
    }

    /// A segment in relative numbers.
    pub fn show(&self, segment: &Segment) -> String {
        let seq = segment.seq.wrapping_sub(self.iss);
        let mut text = format!("{seq}:{} ack {}", seq.wrapping_add(segment.len as u32), {
            segment.ack.wrapping_sub(self.peer_iss)
        });
        for (flag, name) in
            [(flags::FIN, "fin"), (flags::SYN, "syn"), (flags::RST, "rst"), (flags::ECE, "ece"), (flags::CWR, "cwr")]
        {
            if segment.flags & flag != 0 {
                text = format!("{text} {name}");
            }
        }
        for block in &segment.sack[..segment.sack_count as usize] {
            let (start, end) = (block.start.wrapping_sub(self.peer_iss), block.end.wrapping_sub(self.peer_iss));
            text = format!("{text} sack {start}:{end}");
        }
        format!("{text} win {} {:?}", segment.window, segment.ecn)
    }

    /// Times (ms) and segments sent up to `ms` that no line expected, taken out.
    pub fn sent_until(&mut self, ms: f64) -> Vec<(f64, Segment)> {
        self.run_until(Time::from_secs_f64(self.zero.as_secs_f64() + ms / 1e3));
        let sent: Vec<_> = self.sent.drain(..).collect();
        sent.into_iter().map(|(at, segment)| (self.ms(at), segment)).collect()
    }
}
