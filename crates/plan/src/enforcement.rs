//! The enforcer of a scenario: its place, its rules, and its results.

#[cfg(test)]
mod tests;

use crate::address::{address, host_of};
use congestion::Algorithm;
use enforcer::{Direction, Enforcer, Limits, Packet, Record, Rule, Treatment};
use net::{NodeId, Topology};
use policy::Prefix;
use results::{EnforcerRow, Summary};
use scenario::{self as file, Hosts, Scenario};
use std::net::IpAddr;
use std::sync::Arc;
use units::Time;

/// An enforcer, and where it is.
pub struct Enforcement {
    /// The node.
    pub at: NodeId,
    /// Begins the names of its counters: `enforcer`, and where there are several, the node.
    prefix: String,
    rules: Vec<Rule>,
    limits: Limits,
    seed: u64,
}

impl Enforcement {
    /// Those of `scenario`.
    ///
    /// # Errors
    /// An algorithm is missing, or a user's file is not one.
    pub fn of(scenario: &Scenario, topology: &Topology) -> Result<Vec<Enforcement>, String> {
        let is_alone = scenario.enforcer.len() == 1;
        let one = |section: &file::Enforcer| {
            let prefix = if is_alone { "enforcer".to_string() } else { format!("enforcer.{}", section.at) };
            Enforcement::new(section, topology, prefix, scenario.seed)
        };
        scenario.enforcer.iter().map(one).collect()
    }

    fn new(section: &file::Enforcer, topology: &Topology, prefix: String, seed: u64) -> Result<Enforcement, String> {
        let at = topology.find_node(&section.at).ok_or_else(|| format!("there is no node `{}`", section.at))?;
        let addresses = |hosts: &Option<Hosts>| match hosts {
            None => None,
            Some(Hosts::Prefix(prefix)) => Some(*prefix),
            Some(Hosts::Named(name)) => {
                let host = topology.find_node(name)?;
                Prefix::new(IpAddr::V4(address(host.0)), 32)
            }
        };
        let rule = |rule: &file::EnforcerRule| {
            let treatment = match &rule.treatment {
                file::Treatment::Enforce(cc) => Treatment::Enforce(Arc::new(tcp::Config::linux(algorithm(cc)?))),
                file::Treatment::Echo => Treatment::Echo,
                file::Treatment::Mark(share) => Treatment::Mark(share.fraction()),
            };
            let (servers, clients) = (addresses(&rule.src), addresses(&rule.dst));
            let (port, window_total) = (rule.port, rule.window_total);
            Ok(Rule { servers, clients, port, dscp: None, treatment, window_total })
        };
        let rules = section.rule.iter().map(rule).collect::<Result<_, String>>()?;
        let limits = Limits {
            flows: section.flows as usize,
            buffer_bytes: usize::try_from(section.buffer.get()).unwrap_or(usize::MAX),
            ..Limits::default()
        };
        Ok(Enforcement { at, prefix, rules, limits, seed })
    }

    /// An enforcer of these rules.
    pub fn enforcer<P: Packet>(&self) -> Enforcer<P> {
        Enforcer::new(self.limits, self.rules.clone(), self.seed)
    }

    /// Which way a packet goes, of a flow whose data `server` sends; `None` if that is not enforced here, such as other hosts'
    /// data at a host.
    pub fn direction(&self, topology: &Topology, server: u32, forward: bool) -> Option<Direction> {
        let elsewhere = self.at.index() < topology.n_hosts() && self.at.0 != server;
        let direction = if forward { Direction::Out } else { Direction::In };
        (!elsewhere).then_some(direction)
    }
}

/// An algorithm that a scenario names.
///
/// # Errors
/// There is none, or the file is not one.
pub fn algorithm(cc: &file::Algorithm) -> Result<&'static Algorithm, String> {
    match cc {
        file::Algorithm::BuiltIn(name) => {
            Algorithm::named(name).ok_or_else(|| format!("there is no algorithm `{name}`"))
        }
        file::Algorithm::File(data) => Algorithm::load(&data.file.path).map_err(|error| error.to_string()),
    }
}

/// Adds the counters of `enforcer` to `summary`, and returns the rows of the table `enforcer`: of the flows in `ended`, each with
/// its number, and of the open ones at `now`.
pub fn summarize<P: Packet>(
    (enforcement, enforcer, now): (&Enforcement, &Enforcer<P>, Time),
    topology: &Topology,
    ended: Vec<(Record, Option<u32>)>,
    flow_of: impl Fn(&Record) -> Option<u32>,
    summary: &mut Summary,
) -> Vec<EnforcerRow> {
    let mut put = |name: &str, value: f64| summary.insert(format!("{}.{name}", enforcement.prefix), value);
    for (name, value) in enforcer.counters().named() {
        put(name, value as f64);
    }
    let kept = enforcer.kept();
    put("kept_median", f64::from(kept.quantile(0.5)));
    put("kept_mean", kept.mean());
    put("kept_p99", f64::from(kept.quantile(0.99)));
    put("kept_max", f64::from(kept.max()));
    put("buffered_bytes_max", enforcer.buffered_bytes_max() as f64);
    let open = enforcer.open_records(now).map(|record| {
        let flow = flow_of(&record);
        (record, flow)
    });
    let name = |address: IpAddr| -> Arc<str> {
        let host = match address {
            IpAddr::V4(v4) => host_of(v4, topology.n_hosts() as u32),
            IpAddr::V6(_) => None,
        };
        host.map_or_else(|| address.to_string(), |host| topology.node(NodeId(host)).name.clone()).into()
    };
    let node: Arc<str> = topology.node(enforcement.at).name.as_str().into();
    let row = |(record, flow): (Record, Option<u32>)| EnforcerRow {
        node: node.clone(),
        flow: flow.map(u64::from),
        server: name(record.server.ip()),
        server_port: record.server.port,
        client: name(record.client.ip()),
        client_port: record.client.port,
        algorithm: record.algorithm.as_str().into(),
        start_ns: record.began.as_ns(),
        end_ns: record.ended.as_ns(),
        ending: record.ending.map_or("open", enforcer::Ending::as_str),
        bytes_acked: record.bytes_acked,
        data_packets_sent: u64::from(record.data_segments_sent),
        retransmits: u64::from(record.retransmits),
        rtos: u64::from(record.rtos),
        absorbed: u64::from(record.absorbed),
        hidden: u64::from(record.hidden),
        delivered_ce: u64::from(record.delivered_ce),
        min_rtt_us: (record.min_rtt_us != u32::MAX).then_some(u64::from(record.min_rtt_us)),
        srtt_us: (record.srtt_us > 0).then_some(u64::from(record.srtt_us)),
        final_cwnd: u64::from(record.cwnd),
    };
    ended.into_iter().chain(open).map(row).collect()
}
