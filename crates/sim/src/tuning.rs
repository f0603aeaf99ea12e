//! Settings of agents on the hosts of a controlled network, and the stacks of connections that follow from them.

use crate::fanin::FanIn;
use congestion::Algorithm;
use plan::{Completed, RECEIVER_PORT, Segments, address};
use policy::{AgentRule, End, Settings};
use results::Arm;
use std::net::IpAddr;
use std::sync::Arc;
use tcp::{Config, EcnMode, PacingMode};

/// Settings of agents, and the treated hosts.
#[derive(Default)]
pub struct Tuning {
    pub hosts: Vec<Host>,
    /// To which end connections belong.
    counted_at: End,
    /// Stacks derived from others by settings.
    made: Vec<Made>,
    /// Flows that were open at the last look, in order, and the first that has not been looked at.
    pub open: Vec<u32>,
    pub next: u32,
    /// Completed since the last query.
    pub completed: Vec<Completed>,
}

/// A stack derived from another.
struct Made {
    of: Arc<Config>,
    by: Settings,
    /// Its share of the host's windows.
    window: Option<u32>,
    stack: Arc<Config>,
}

/// Payload of a full segment.
pub fn mss(config: &Config) -> u32 {
    config.mtu - 40 - if config.timestamps { 12 } else { 0 }
}

/// A host, as its agent has set it.
pub struct Host {
    pub rules: Vec<AgentRule>,
    pub arm: Arm,
    /// Its incoming connections, while a rule bounds the sum of their windows.
    pub fan_in: Option<Box<FanIn>>,
    /// What its closed flows have sent.
    pub closed: Segments,
}

impl Tuning {
    /// Hosts without rules.
    pub fn new(hosts: usize, counted_at: End) -> Tuning {
        let host = || Host { rules: Vec::new(), arm: Arm::Control, fan_in: None, closed: Segments::default() };
        Tuning { hosts: (0..hosts).map(|_| host()).collect(), counted_at, ..Tuning::default() }
    }

    /// The arm of a connection that is opened now.
    pub fn arm(&self, src: u32, dst: u32) -> Arm {
        self.hosts[self.counted_at.of(src, dst) as usize].arm
    }

    /// A flow or message has ended.
    pub fn complete(&mut self, completed: Completed) {
        self.completed.push(completed);
    }

    /// The stack of a new connection's end at `host`, whose entry has `base`.
    pub fn stack(&mut self, base: &Arc<Config>, host: u32, remote: u32, entry: u32) -> Arc<Config> {
        let settings = self.settings(host, remote, entry);
        self.made_of(base, &settings, None)
    }

    /// The settings of `host` for a connection with `remote`.
    pub fn settings(&self, host: u32, remote: u32, entry: u32) -> Settings {
        let rules = &self.hosts[host as usize].rules;
        AgentRule::settings_of(rules, IpAddr::from(address(remote)), RECEIVER_PORT + entry as u16, "")
    }

    /// The stack that `settings` and a share of the windows make of `base`: one for all connections that have the same.
    pub fn made_of(&mut self, base: &Arc<Config>, settings: &Settings, window: Option<u32>) -> Arc<Config> {
        if settings.is_empty() {
            return base.clone();
        }
        let same = |made: &&Made| Arc::ptr_eq(&made.of, base) && made.by == *settings && made.window == window;
        if let Some(known) = self.made.iter().find(same) {
            return known.stack.clone();
        }
        let mut changed = changed(base, settings);
        if let Some(window) = window {
            changed.window_clamp = window;
            // Linux announces at once a window that has doubled, of which a second segment would not always come
            if window < 3 * mss(base) {
                changed.delayed_ack.segments = 1;
            }
        }
        let stack = Arc::new(changed);
        self.made.push(Made { of: base.clone(), by: settings.clone(), window, stack: stack.clone() });
        stack
    }
}

/// A stack with settings.
fn changed(base: &Config, settings: &Settings) -> Config {
    let mut config = base.clone();
    let Settings {
        initial_cwnd,
        rto_min,
        cc,
        pacing,
        cwnd_clamp,
        max_pacing_rate,
        delayed_ack_max,
        window_clamp,
        window_total: _,
        ecn,
    } = settings;
    config.initial_cwnd = initial_cwnd.unwrap_or(config.initial_cwnd);
    config.rto_min = rto_min.unwrap_or(config.rto_min);
    config.cwnd_clamp = cwnd_clamp.unwrap_or(config.cwnd_clamp);
    config.algorithm = cc.as_ref().and_then(|name| Algorithm::named(name)).unwrap_or(config.algorithm);
    config.max_pacing_rate = max_pacing_rate.map_or(config.max_pacing_rate, |rate| rate.as_bps() / 8);
    config.pacing = match pacing {
        Some(true) => PacingMode::On,
        Some(false) => PacingMode::Auto,
        None => config.pacing,
    };
    if let Some(most) = delayed_ack_max {
        config.delayed_ack.timeout_max = *most;
        config.delayed_ack.timeout = config.delayed_ack.timeout.min(*most);
    }
    if let Some(most) = window_clamp {
        config.receive_buffer = config.receive_buffer.min(u32::try_from(most.get()).unwrap_or(u32::MAX));
    }
    config.ecn = match ecn {
        Some(true) => EcnMode::On,
        Some(false) => EcnMode::Off,
        None => config.ecn,
    };
    config
}
