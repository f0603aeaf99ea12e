//! What a rule can set on TCP, and on which connections it takes effect.

use crate::algorithm::is_plain;
use serde::{Deserialize, Serialize};
use units::{Bytes, Rate, Time};

/// Segments of an initial window, from and to.
pub(crate) const INITIAL_CWND: (u32, u32) = (1, 1000);
/// Segments that a window may be limited to, from and to.
pub(crate) const CWND_CLAMP: (u32, u32) = (2, 1_000_000);
/// Minimum of any time.
pub(crate) const TIME_LEAST: Time = Time::from_us(1);
/// Largest minimum RTO.
pub(crate) const RTO_MIN_MOST: Time = Time::from_secs(60);
/// Longest delayed ACK.
pub(crate) const DELAYED_ACK_MOST: Time = Time::from_secs(1);

/// Bytes of the receive windows of a host's connections, from and to.
pub const WINDOW_TOTAL: (u64, u64) = (1500, 1_000_000_000);

/// Values for TCP; what is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_cwnd: Option<u32>,
    /// Minimum RTO.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto_min: Option<Time>,
    /// Congestion control: a name of `cc/` or of a loaded file, or `kernel:NAME` for Linux's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cc: Option<String>,
    /// Whether segments are paced over the RTT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<bool>,
    /// Maximum congestion window, segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwnd_clamp: Option<u32>,
    /// Maximum sending rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pacing_rate: Option<Rate>,
    /// Maximum delay of a delayed ACK.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack_max: Option<Time>,
    /// Maximum receive window that is advertised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_clamp: Option<Bytes>,
    /// Sum of the receive windows of the connections on which a host receives; see [`Share`](crate::Share).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_total: Option<Bytes>,
    /// Whether new connections negotiate ECN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
}

/// One of the settings, for `--list`.
pub struct Setting {
    /// As in `set`.
    pub name: &'static str,
    /// How it is written.
    pub example: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Which connections it applies to, and how it is reverted.
    pub reaches: &'static str,
}

impl Setting {
    /// All settings, in the order of [`Settings`].
    pub fn all() -> &'static [Setting] {
        SETTINGS
    }
}

const NEW: &str = "new connections only; those keep it until they close";
const LIVE: &str = "new and open connections";

const fn setting(name: &'static str, example: &'static str, reaches: &'static str, doc: &'static str) -> Setting {
    Setting { name, example, doc, reaches }
}

static SETTINGS: &[Setting] = &[
    setting("initial_cwnd", "20", NEW, "initial congestion window in segments, 1 to 1000"),
    setting("rto_min", "\"2 ms\"", LIVE, "minimum RTO, 1 us to 60 s; a kernel rounds it up to its own granularity"),
    setting(
        "cc",
        "\"dctcp\"",
        "new and open connections; one that needs ECN only connections that negotiated it",
        "congestion control: a name of `opentcp cc list`, one that `opentcp cc load` has loaded, or \"kernel:NAME\" for Linux's own",
    ),
    setting(
        "pacing",
        "true",
        "new and open connections; on an open one it cannot be reverted",
        "paces segments over the RTT",
    ),
    setting("cwnd_clamp", "100", LIVE, "maximum congestion window in segments, 2 to 1000000"),
    setting("max_pacing_rate", "\"200 Mbit/s\"", LIVE, "maximum sending rate of a connection; turns pacing on"),
    setting("delayed_ack_max", "\"5 ms\"", LIVE, "maximum delay of a delayed ACK, 1 us to 1 s"),
    setting(
        "window_clamp",
        "\"64 kB\"",
        LIVE,
        "maximum receive window that is advertised: limits the sender at the other end",
    ),
    setting(
        "window_total",
        "\"200 kB\"",
        "new and open connections that receive; the host follows their number by itself",
        "sum of the receive windows of the host's connections, 1.5 kB to 1 GB: each has an equal share, in whole segments",
    ),
    setting("ecn", "true", NEW, "whether connections negotiate ECN"),
];

/// Does something with every setting.
macro_rules! each_setting {
    ($do:ident!($($args:expr),*)) => {
        $do!($($args,)* initial_cwnd, rto_min, cc, pacing, cwnd_clamp, max_pacing_rate, delayed_ack_max, window_clamp, window_total, ecn)
    };
}

macro_rules! clashes {
    ($one:expr, $other:expr, $($field:ident),*) => {{
        let mut names: Vec<&'static str> = Vec::new();
        $(if $one.$field.is_some() && $other.$field.is_some() && $one.$field != $other.$field {
            names.push(stringify!($field));
        })*
        names
    }};
}

macro_rules! or {
    ($one:expr, $other:expr, $($field:ident),*) => {
        Settings { $($field: $one.$field.or_else(|| $other.$field.clone())),* }
    };
}

impl Settings {
    /// Whether some of it acts on what a host sends: how long a connection takes is then decided by the end that sends more.
    pub(crate) fn acts_where_sent(&self) -> bool {
        Settings { delayed_ack_max: None, window_clamp: None, window_total: None, ..self.clone() }
            != Settings::default()
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Settings::default()
    }

    /// The first value that no policy can have: what is signed may still be wrong.
    pub(crate) fn impossible(&self) -> Option<&'static str> {
        let count = |value: Option<u32>, (from, to)| value.is_some_and(|value| !(from..=to).contains(&value));
        let time = |value: Option<Time>, most| value.is_some_and(|value| !(TIME_LEAST..=most).contains(&value));
        let total =
            |value: Option<Bytes>| value.is_some_and(|value| !(WINDOW_TOTAL.0..=WINDOW_TOTAL.1).contains(&value.get()));
        let all = [
            ("cc", self.cc.as_ref().is_some_and(|cc| !is_plain(cc))),
            ("initial_cwnd", count(self.initial_cwnd, INITIAL_CWND)),
            ("rto_min", time(self.rto_min, RTO_MIN_MOST)),
            ("cwnd_clamp", count(self.cwnd_clamp, CWND_CLAMP)),
            ("max_pacing_rate", self.max_pacing_rate == Some(Rate::from_bps(0))),
            ("delayed_ack_max", time(self.delayed_ack_max, DELAYED_ACK_MOST)),
            ("window_clamp", self.window_clamp == Some(Bytes::new(0))),
            ("window_total", total(self.window_total)),
        ];
        all.into_iter().find(|(_, is_impossible)| *is_impossible).map(|(name, _)| name)
    }

    /// The names of what both set, to different values.
    pub fn clashes(&self, other: &Settings) -> Vec<&'static str> {
        each_setting!(clashes!(self, other))
    }

    /// These, and of `other` what is absent here.
    #[must_use]
    pub fn or(self, other: &Settings) -> Settings {
        each_setting!(or!(self, other))
    }
}

impl std::fmt::Display for Settings {
    /// `initial_cwnd = 20, rto_min = 2 ms`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = serde_json::to_value(self).map_err(|_| std::fmt::Error)?;
        // in the order of the table, which a JSON object of serde does not keep
        let set = SETTINGS.iter().filter_map(|setting| {
            let value = value.get(setting.name)?;
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
            Some(format!("{} = {text}", setting.name))
        });
        f.write_str(&set.collect::<Vec<_>>().join(", "))
    }
}
