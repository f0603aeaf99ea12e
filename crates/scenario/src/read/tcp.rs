//! The `[tcp]` table and the presets behind it.

use super::{Reader, Section};
use crate::model::{Algorithm, DelayedAck, Ecn, LimitOutput, Pacing, Preset, Tcp};
use document::suggestion;
use document::tree::{Node, Value};
use units::{Bytes, Time};

/// Longest timeout that may be given.
const TIMEOUT_MAX: Time = Time::from_secs(3600);
/// Largest IP packet: a jumbo frame's.
const MTU_MAX: u32 = 9216;
/// Smallest: the least that IPv4 must carry (RFC 791), so that a full segment is longer than its headers.
const MTU_MIN: u32 = 128;

impl Reader<'_, '_> {
    /// The `[tcp]` table, or the defaults. Absent only if the table is no table.
    pub(super) fn tcp(&self, node: Option<&Node>) -> Option<Tcp> {
        let section = self.section_or_empty(node, "`[tcp]`")?;
        let presets = [("linux", Preset::Linux), ("ns-3.25", Preset::Ns3_25), ("linux-2.6.18", Preset::Linux2_6_18)];
        let preset = section.get("preset", |r, n| r.word(n, &presets)).unwrap_or(Preset::Linux);
        let mut tcp = defaults(preset);
        if let Some(cc) = section.get("cc", Reader::algorithm) {
            tcp.cc = cc;
        }
        read_segments(&section, &mut tcp);
        read_timeouts(&section, &mut tcp);
        read_recovery(&section, &mut tcp);
        read_sending(&section, &mut tcp);
        section.finish();
        Some(tcp)
    }

    /// A built-in algorithm's name, or a file: of C, or of Python where the caller has registered it.
    pub(super) fn algorithm(&self, node: &Node) -> Option<Algorithm> {
        let text = self.text(node)?;
        if std::path::Path::new(text).extension().is_some_and(|extension| extension == "c" || extension == "py") {
            return self.file(node).map(Algorithm::File);
        }
        if self.context.known.algorithms.contains(&text) {
            return Some(Algorithm::BuiltIn(text.to_string()));
        }
        let help = format!("{}; or the path of a C file", suggestion(text, self.context.known.algorithms));
        self.problem(&node.at, format!("unknown algorithm `{text}`"), Some(help))
    }
}

/// The values of a stack.
fn defaults(preset: Preset) -> Tcp {
    match preset {
        Preset::Linux => linux(),
        Preset::Linux2_6_18 => linux_2_6_18(),
        Preset::Ns3_25 => ns_3_25(),
    }
}

/// Linux 6: net/ipv4/tcp*.c and Documentation/networking/ip-sysctl.
fn linux() -> Tcp {
    Tcp {
        preset: Preset::Linux,
        cc: Algorithm::BuiltIn("cubic".into()),
        mss: 1448,
        initial_cwnd: 10,
        initial_ssthresh: None,
        rto_min: Time::from_ms(200),
        rto_max: Time::from_secs(120),
        rto_initial: Time::from_secs(1),
        syn_rto: Time::from_secs(1),
        syn_retries: 6,
        timer_tick: None,
        sack: true,
        timestamps: true,
        window_scaling: true,
        delayed_ack: DelayedAck {
            segments: 2,
            timeout: Time::from_ms(40),
            timeout_max: Time::from_ms(200),
            quickack: true,
        },
        rack: true,
        tlp: true,
        prr: true,
        frto: true,
        ecn: Ecn::Auto,
        ect1: false,
        ictcp: false,
        pacing: Pacing::Auto,
        slow_start_after_idle: true,
        send_buffer: Bytes::new(4 << 20),
        receive_buffer: Bytes::new(6 << 20),
        // 64 KiB less the headers, in segments of 1448 B.
        tso_segments: 45,
        limit_output: LimitOutput::Auto,
    }
}

/// Linux 2.6.18: RFC 2988's initial RTO of 3 s; rate halving, which PRR replaced, reduces over a round trip as PRR
/// does.
fn linux_2_6_18() -> Tcp {
    Tcp {
        preset: Preset::Linux2_6_18,
        cc: Algorithm::BuiltIn("bic".into()),
        initial_cwnd: 3,
        rto_initial: Time::from_secs(3),
        syn_rto: Time::from_secs(3),
        syn_retries: 5,
        rack: false,
        tlp: false,
        frto: false,
        send_buffer: Bytes::new(4 << 20),
        receive_buffer: Bytes::new(4 << 20),
        limit_output: LimitOutput::Off,
        ..linux()
    }
}

/// ns-3.25: `TcpSocketBase`, `TcpSocket` and `RttEstimator` attributes, `NewReno` recovery of RFC 6582.
fn ns_3_25() -> Tcp {
    Tcp {
        preset: Preset::Ns3_25,
        cc: Algorithm::BuiltIn("newreno".into()),
        initial_cwnd: 1,
        initial_ssthresh: Some(Bytes::new(2_000_000)),
        rto_min: Time::from_secs(1),
        rto_max: Time::from_secs(60),
        syn_rto: Time::from_secs(3),
        sack: false,
        delayed_ack: DelayedAck {
            segments: 2,
            timeout: Time::from_ms(200),
            timeout_max: Time::from_ms(200),
            quickack: false,
        },
        rack: false,
        tlp: false,
        prr: false,
        frto: false,
        slow_start_after_idle: false,
        send_buffer: Bytes::new(131_072),
        receive_buffer: Bytes::new(131_072),
        tso_segments: 1,
        limit_output: LimitOutput::Off,
        ..linux()
    }
}

/// Sizes: segment, options, first window.
fn read_segments(section: &Section, tcp: &mut Tcp) {
    if let Some(on) = section.get("timestamps", |r, n| r.boolean(n)) {
        tcp.timestamps = on;
    }
    let header = Tcp::header(tcp.timestamps);
    section.exclusive("mtu", "mss");
    let from_mtu = section.get("mtu", |r, n| r.count(n, MTU_MIN, MTU_MAX)).unwrap_or(1500) - header;
    tcp.mss = section.get("mss", |r, n| r.count(n, MTU_MIN - header, MTU_MAX - header)).unwrap_or(from_mtu);
    set(&mut tcp.window_scaling, section.get("window_scaling", |r, n| r.boolean(n)));
    set(&mut tcp.initial_cwnd, section.get("initial_cwnd", |r, n| r.count(n, 1, 65_535)));
    if let Some(node) = section.take("initial_ssthresh") {
        tcp.initial_ssthresh = match &node.value {
            Value::Text(text) if text == "unlimited" => None,
            _ => section.reader.positive(node),
        };
    }
    let buffer = |r: &Reader, n: &Node| {
        let most = Bytes::new(1 << 30);
        r.within(n, |bytes: &Bytes| bytes.get() >= 4096 && *bytes <= most, "from 4096 B to 1 GiB")
    };
    set(&mut tcp.send_buffer, section.get("send_buffer", buffer));
    set(&mut tcp.receive_buffer, section.get("receive_buffer", buffer));
}

fn read_timeouts(section: &Section, tcp: &mut Tcp) {
    let timeout = |r: &Reader, n: &Node| {
        let rule = format!("more than zero, at most {TIMEOUT_MAX}");
        r.within(n, |time: &Time| *time > Time::ZERO && *time <= TIMEOUT_MAX, &rule)
    };
    set(&mut tcp.rto_min, section.get("rto_min", timeout));
    set(&mut tcp.rto_max, section.get("rto_max", timeout));
    set(&mut tcp.rto_initial, section.get("rto_initial", timeout));
    set(&mut tcp.syn_rto, section.get("syn_rto", timeout));
    set(&mut tcp.syn_retries, section.get("syn_retries", |r, n| r.count(n, 0, 127)));
    tcp.timer_tick = section.get("timer_tick", timeout);
    if tcp.rto_min > tcp.rto_max {
        let key = if section.has("rto_min") { "rto_min" } else { "rto_max" };
        let message = format!("`rto_min` ({}) is above `rto_max` ({})", tcp.rto_min, tcp.rto_max);
        section.problem::<()>(key, message, None);
    }
    if tcp.rto_initial > tcp.rto_max {
        let key = if section.has("rto_initial") { "rto_initial" } else { "rto_max" };
        let message = format!("`rto_initial` ({}) is above `rto_max` ({})", tcp.rto_initial, tcp.rto_max);
        section.problem::<()>(key, message, None);
    }
    if let Some(node) = section.take("delayed_ack") {
        read_delayed_ack(section.reader, node, &mut tcp.delayed_ack);
    }
}

fn read_delayed_ack(reader: &Reader, node: &Node, ack: &mut DelayedAck) {
    let Some(section) = reader.section(node, "`delayed_ack`") else { return };
    // RFC 1122 4.2.3.2: an ACK is delayed by less than half a second, so that no sender times out meanwhile.
    let most = Time::from_secs(1);
    let wait = |r: &Reader, n: &Node| r.within(n, |time: &Time| *time <= most, "at most 1 s");
    set(&mut ack.segments, section.get("segments", |r, n| r.count(n, 1, 255)));
    if let Some(timeout) = section.get("timeout", wait) {
        ack.timeout = timeout;
        ack.timeout_max = ack.timeout_max.max(timeout);
    }
    set(&mut ack.timeout_max, section.get("timeout_max", wait));
    set(&mut ack.quickack, section.get("quickack", |r, n| r.boolean(n)));
    if ack.timeout > ack.timeout_max {
        let message = format!("`timeout_max` ({}) is below `timeout` ({})", ack.timeout_max, ack.timeout);
        section.problem::<()>("timeout_max", message, None);
    }
    if ack.segments > 1 && ack.timeout == Time::ZERO {
        let help = Some("acknowledge each segment with `segments = 1`".to_string());
        section.problem::<()>("timeout", "an acknowledgement that waits for a second segment needs a timeout", help);
    }
    section.finish();
}

fn read_recovery(section: &Section, tcp: &mut Tcp) {
    if let Some(sack) = section.get("sack", |r, n| r.boolean(n)) {
        tcp.sack = sack;
        // What depends on SACK is switched off with it, unless the file has it on, which is refused below.
        tcp.rack &= sack;
        tcp.tlp &= sack;
    }
    set(&mut tcp.rack, section.get("rack", |r, n| r.boolean(n)));
    set(&mut tcp.tlp, section.get("tlp", |r, n| r.boolean(n)));
    set(&mut tcp.prr, section.get("prr", |r, n| r.boolean(n)));
    set(&mut tcp.frto, section.get("frto", |r, n| r.boolean(n)));
    for (key, on) in [("rack", tcp.rack), ("tlp", tcp.tlp)] {
        if on && !tcp.sack {
            section.problem::<()>(key, format!("`{key}` needs `sack`"), Some("set `sack = true`".to_string()));
        }
    }
    let ecn = [("auto", Ecn::Auto), ("off", Ecn::Off), ("on", Ecn::On), ("accurate", Ecn::Accurate)];
    set(&mut tcp.ecn, section.get("ecn", |r, n| r.word(n, &ecn)));
    set(&mut tcp.ect1, section.get("ect1", |r, n| r.boolean(n)));
    set(&mut tcp.ictcp, section.get("ictcp", |r, n| r.boolean(n)));
}

fn read_sending(section: &Section, tcp: &mut Tcp) {
    let words = [("auto", Pacing::Auto), ("off", Pacing::Off), ("on", Pacing::On)];
    set(&mut tcp.pacing, section.get("pacing", |r, n| r.word(n, &words)));
    set(&mut tcp.slow_start_after_idle, section.get("slow_start_after_idle", |r, n| r.boolean(n)));
    set(&mut tcp.tso_segments, section.get("tso_segments", |r, n| r.count(n, 1, 1024)));
    set(&mut tcp.limit_output, section.get("limit_output", limit_output));
}

fn limit_output(reader: &Reader, node: &Node) -> Option<LimitOutput> {
    match &node.value {
        Value::Bool(false) => Some(LimitOutput::Off),
        Value::Text(text) if text == "auto" => Some(LimitOutput::Auto),
        _ => reader.problem(&node.at, "this is \"auto\" or false", None),
    }
}

/// Replaces a default by the file's value.
fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}
