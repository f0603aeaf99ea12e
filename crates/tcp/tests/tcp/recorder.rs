//! Algorithms that do nothing but write down what a host calls: those that recorded `golden/`.
//!
//! `renoish` keeps the rules of the recordings' header: ssthresh is half of the window; slow start adds `acked`, capped
//! at ssthresh; then one segment per window acknowledged; undo takes the larger of the window and `prior_cwnd`.
//! `holding` is the one of scripts 14 to 17: its cong_control holds the window at 20.

use congestion::sock::{TCP_CONG_NEEDS_ECN, TcpSock};
use congestion::{AckSample, Algorithm, CongestionOps, RateSample};
use std::cell::RefCell;
use std::ffi::c_char;
use std::fmt;
use std::sync::LazyLock;
use units::Time;

/// One call of a hook, with the socket's columns as the hook found them.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// 'S'ender or 'R'eceiver.
    pub side: char,
    /// Since the SYN-ACK's arrival.
    pub ms: f64,
    pub cwnd: u32,
    pub ssthresh: u32,
    pub out: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub delivered: u32,
    pub hook: String,
    pub args: Vec<(String, i64)>,
}

impl Row {
    /// The argument called `name`.
    pub fn arg(&self, name: &str) -> Option<i64> {
        self.args.iter().find(|(key, _)| key == name).map(|&(_, value)| value)
    }

    /// Is it `hook` with this event or new state?
    pub fn is(&self, hook: &str, key: &str, value: i64) -> bool {
        self.hook == hook && self.arg(key) == Some(value)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ssthresh = match self.ssthresh {
            congestion::sock::TCP_INFINITE_SSTHRESH => "inf".to_string(),
            n => n.to_string(),
        };
        write!(
            f,
            "{:9.2} {} {:5} {:>4} {:3} {:3} {:3} {:3} {:4}  {}",
            self.ms,
            self.side,
            self.cwnd,
            ssthresh,
            self.out,
            self.sacked,
            self.lost,
            self.retrans,
            self.delivered,
            self.hook
        )?;
        self.args.iter().try_for_each(|(key, value)| write!(f, " {key}={value}"))
    }
}

struct Log {
    side: char,
    now: Time,
    rows: Vec<Row>,
}

thread_local! {
    static LOG: RefCell<Log> = const { RefCell::new(Log { side: 'S', now: Time::ZERO, rows: Vec::new() }) };
}

/// The zero of the rows' clock: late enough for a handshake to come before it.
pub const EPOCH: Time = Time::from_secs(1);

/// Says whose hooks the following calls are, and when.
pub fn enter(side: char, now: Time) {
    LOG.with_borrow_mut(|log| {
        log.side = side;
        log.now = now;
    });
}

/// Takes what was recorded on this thread.
pub fn take() -> Vec<Row> {
    LOG.with_borrow_mut(|log| std::mem::take(&mut log.rows))
}

/// Milliseconds since [`EPOCH`].
pub fn ms_of(now: Time) -> f64 {
    (now.as_secs_f64() - EPOCH.as_secs_f64()) * 1e3
}

/// [`EPOCH`] plus `ms` milliseconds.
pub fn time_of(ms: f64) -> Time {
    Time::from_secs_f64(EPOCH.as_secs_f64() + ms / 1e3)
}

fn record(sk: &TcpSock, hook: &str, args: &[(&str, i64)]) {
    LOG.with_borrow_mut(|log| {
        let row = Row {
            side: log.side,
            ms: ms_of(log.now),
            cwnd: sk.snd_cwnd,
            ssthresh: sk.snd_ssthresh,
            out: sk.packets_out,
            sacked: sk.sacked_out,
            lost: sk.lost_out,
            retrans: sk.retrans_out,
            delivered: sk.delivered,
            hook: hook.to_string(),
            args: args.iter().map(|&(key, value)| (key.to_string(), value)).collect(),
        };
        log.rows.push(row);
    });
}

extern "C" fn on_init(sk: &mut TcpSock) {
    record(sk, "init", &[]);
}

extern "C" fn on_release(sk: &mut TcpSock) {
    record(sk, "release", &[]);
}

extern "C" fn on_ssthresh(sk: &mut TcpSock) -> u32 {
    record(sk, "ssthresh", &[("state", sk.icsk_ca_state as i64), ("prior_cwnd", sk.prior_cwnd as i64)]);
    (sk.snd_cwnd / 2).max(2)
}

extern "C" fn on_ssthresh_holding(sk: &mut TcpSock) -> u32 {
    record(sk, "ssthresh", &[]);
    sk.snd_ssthresh
}

extern "C" fn on_cong_avoid(sk: &mut TcpSock, _ack: u32, acked: u32) {
    record(sk, "cong_avoid", &[("acked", acked as i64), ("is_cwnd_limited", sk.is_cwnd_limited as i64)]);
    let room = sk.snd_ssthresh.saturating_sub(sk.snd_cwnd);
    let slow_start = acked.min(room);
    sk.snd_cwnd += slow_start;
    sk.snd_cwnd_cnt += acked - slow_start;
    if sk.snd_cwnd_cnt >= sk.snd_cwnd {
        sk.snd_cwnd_cnt -= sk.snd_cwnd;
        sk.snd_cwnd += 1;
    }
}

extern "C" fn on_set_state(sk: &mut TcpSock, new_state: u8) {
    record(sk, "set_state", &[("old", sk.icsk_ca_state as i64), ("new", new_state as i64)]);
}

extern "C" fn on_cwnd_event(sk: &mut TcpSock, event: u32) {
    record(sk, "cwnd_event", &[("event", event as i64), ("ack.pending", sk.icsk_ack_pending as i64)]);
}

extern "C" fn on_in_ack_event(sk: &mut TcpSock, flags: u32) {
    record(sk, "in_ack_event", &[("flags", flags as i64)]);
}

extern "C" fn on_pkts_acked(sk: &mut TcpSock, sample: &AckSample) {
    record(
        sk,
        "pkts_acked",
        &[("n", sample.pkts_acked as i64), ("rtt", sample.rtt_us as i64), ("inflight", sample.in_flight as i64)],
    );
}

extern "C" fn on_cong_control(sk: &mut TcpSock, _ack: u32, _flag: i32, rs: &RateSample) {
    record(
        sk,
        "cong_control",
        &[
            ("state", sk.icsk_ca_state as i64),
            ("delivered", rs.delivered as i64),
            ("interval_us", rs.interval_us),
            ("snd_us", rs.snd_interval_us as i64),
            ("rcv_us", rs.rcv_interval_us as i64),
            ("rtt_us", rs.rtt_us),
            ("losses", rs.losses as i64),
            ("acked_sacked", rs.acked_sacked as i64),
            ("prior_in_flight", rs.prior_in_flight as i64),
            ("prior_delivered", rs.prior_delivered as i64),
            ("app_limited", rs.is_app_limited as i64),
            ("retrans", rs.is_retrans as i64),
            ("ack_delayed", rs.is_ack_delayed as i64),
            ("tp_app_limited", sk.app_limited as i64),
            ("pacing", i64::try_from(sk.sk_pacing_rate).unwrap_or(i64::MAX)),
        ],
    );
    sk.snd_cwnd = 20;
}

extern "C" fn on_undo_cwnd(sk: &mut TcpSock) -> u32 {
    record(sk, "undo_cwnd", &[("prior_cwnd", sk.prior_cwnd as i64)]);
    sk.snd_cwnd.max(sk.prior_cwnd)
}

const fn name(text: &[u8]) -> [c_char; 16] {
    let mut name = [0; 16];
    let mut i = 0;
    while i < text.len() {
        name[i] = text[i] as c_char;
        i += 1;
    }
    name
}

const RENOISH: CongestionOps = CongestionOps {
    init: Some(on_init),
    release: Some(on_release),
    ssthresh: Some(on_ssthresh),
    cong_avoid: Some(on_cong_avoid),
    set_state: Some(on_set_state),
    cwnd_event: Some(on_cwnd_event),
    in_ack_event: Some(on_in_ack_event),
    pkts_acked: Some(on_pkts_acked),
    cong_control: None,
    undo_cwnd: Some(on_undo_cwnd),
    min_tso_segs: None,
    sndbuf_expand: None,
    name: name(b"renoish"),
    flags: 0,
    cc_pad: 0,
};

static RENOISH_OPS: CongestionOps = RENOISH;
static RENOISH_ECN_OPS: CongestionOps =
    CongestionOps { flags: TCP_CONG_NEEDS_ECN, name: name(b"renoish-ecn"), ..RENOISH };
static HOLDING_OPS: CongestionOps = CongestionOps {
    ssthresh: Some(on_ssthresh_holding),
    cong_avoid: None,
    in_ack_event: None,
    pkts_acked: None,
    cong_control: Some(on_cong_control),
    name: name(b"holding"),
    ..RENOISH
};

fn algorithm(ops: &'static CongestionOps) -> Algorithm {
    Algorithm::from_ops(ops).expect("the table has every required hook")
}

/// Scripts 1 to 11.
pub static RENOISH_CC: LazyLock<Algorithm> = LazyLock::new(|| algorithm(&RENOISH_OPS));
/// Scripts 12 and 13: the same, and it needs ECN.
pub static RENOISH_ECN_CC: LazyLock<Algorithm> = LazyLock::new(|| algorithm(&RENOISH_ECN_OPS));
/// Scripts 14 to 17.
pub static HOLDING_CC: LazyLock<Algorithm> = LazyLock::new(|| algorithm(&HOLDING_OPS));
