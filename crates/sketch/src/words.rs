//! Links and traffic in words, and the hosts of a traffic entry.

use net::{LinkTier, NodeId, Topology};
use scenario::{
    AllReduce, Arrivals, Collective, Datagrams, EnforcerRule, Job, JobShape, Limit, Pace, Queue, Reduction, Scenario,
    Senders, Sizes, SizesSource, Think, Tier, Topology as Shape, Traffic, TrafficKind, Treatment, Workload,
};
use std::fmt::Display;

/// Cables of one kind.
#[derive(PartialEq)]
pub struct Links {
    /// Which: `host`, `core`.
    pub tier: String,
    /// How many.
    pub cables: usize,
    /// `10 Gbit/s`.
    pub rate: String,
    /// `5 us`.
    pub delay: String,
    /// At the switch's port: `drop-tail, 100 packets`.
    pub queue: String,
}

/// The cables, equal ones grouped.
pub fn links(scenario: &Scenario, topology: &Topology) -> Vec<Links> {
    if let Shape::Explicit { links, .. } = &scenario.network.topology {
        let mut kinds: Vec<Links> = Vec::new();
        for cable in links {
            let (rate, delay, queue) = (cable.rate.to_string(), cable.delay.to_string(), queue(&cable.queue));
            match kinds.iter_mut().find(|kind| (&kind.rate, &kind.delay, &kind.queue) == (&rate, &delay, &queue)) {
                Some(kind) => kind.cables += 1,
                None => {
                    kinds.push(Links { tier: format!("{}-{}, …", cable.a, cable.b), cables: 1, rate, delay, queue });
                }
            }
        }
        return kinds;
    }
    let count = |tier: Tier| {
        topology
            .links()
            .iter()
            .filter(|link| link.tier != LinkTier::FromHost && plan::tier_of(link.tier) == Some(tier))
            .count()
    };
    let settings = scenario.network.tier.iter();
    let links = settings.map(|(tier, settings)| Links {
        tier: tier.key().to_string(),
        // one of the two links of a host's cable is the host's own
        cables: if *tier == Tier::Host { count(*tier) } else { count(*tier) / 2 },
        rate: settings.rate.to_string(),
        delay: settings.delay.to_string(),
        queue: queue(&settings.queue),
    });
    links.collect()
}

fn queue(queue: &Queue) -> String {
    match queue {
        Queue::DropTail(limit) => format!("drop-tail, {}", amount(*limit)),
        Queue::ThresholdEcn { mark, limit } => format!("{}, ECN marks from {}", amount(*limit), amount(*mark)),
        Queue::Red(red) => format!("RED, {} packets, from {} to {}", red.packets, red.min, red.max),
        Queue::Pie(pie) => format!("PIE, {} packets, {}", pie.packets, pie.target),
        Queue::Codel(codel) => format!("CoDel, {} packets, {}", codel.packets, codel.control.target),
        Queue::FqCodel(fq) => format!("FQ-CoDel, {} packets, {}", fq.packets, fq.control.target),
        Queue::DualPi2(dual) => format!("DualPI2, {} packets, {} and {}", dual.packets, dual.step, dual.target),
    }
}

fn amount(limit: Limit) -> String {
    match limit {
        Limit::Packets(n) => format!("{n} packets"),
        Limit::Bytes(bytes) => bytes.to_string(),
    }
}

/// The hosts of an entry of the traffic.
pub struct Ends {
    /// By host number: whether it sends.
    pub sends: Vec<bool>,
    /// Whether it receives.
    pub receives: Vec<bool>,
}

impl Ends {
    /// Of this entry.
    pub fn of(kind: &TrafficKind, topology: &Topology) -> Ends {
        let n = topology.n_hosts();
        let mut ends = Ends { sends: vec![false; n], receives: vec![false; n] };
        let at = |name: &str| topology.find_node(name).map_or(0, NodeId::index);
        match kind {
            TrafficKind::Bulk { from, to, .. } | TrafficKind::Udp { from, to, .. } => {
                ends.sends[at(from)] = true;
                ends.receives[at(to)] = true;
            }
            TrafficKind::Incast { senders, receiver, .. } => {
                let receiver = at(receiver);
                ends.receives[receiver] = true;
                match senders {
                    Senders::First(count) => {
                        (0..n).filter(|i| *i != receiver).take(*count as usize).for_each(|i| ends.sends[i] = true);
                    }
                    Senders::Named(names) => names.iter().for_each(|name| ends.sends[at(name)] = true),
                }
            }
            TrafficKind::AllToAll(Collective { hosts: Some(names), .. })
            | TrafficKind::Exchange(Collective { hosts: Some(names), .. }) => {
                for i in names.iter().map(|name| at(name)) {
                    (ends.sends[i], ends.receives[i]) = (true, true);
                }
            }
            TrafficKind::Job(Job { hosts: Some(names), .. }) => {
                for i in names.iter().map(|name| at(name)) {
                    (ends.sends[i], ends.receives[i]) = (true, true);
                }
            }
            TrafficKind::Trace { flows, .. } => {
                for flow in flows.iter() {
                    ends.sends[at(&flow.from)] = true;
                    ends.receives[at(&flow.to)] = true;
                }
            }
            _ => (ends.sends, ends.receives) = (vec![true; n], vec![true; n]),
        }
        ends
    }
}

/// `h1 → h3, unlimited, cubic`.
pub fn sentence(traffic: &Traffic, scenario: &Scenario) -> String {
    let mut parts = vec![what(&traffic.kind)];
    if traffic.kind.datagrams().is_none() {
        parts.push(traffic.cc.as_ref().unwrap_or(&scenario.tcp.cc).label().to_string());
    }
    if traffic.start.as_ps() > 0 {
        parts.push(format!("from {}", traffic.start));
    }
    parts.extend(traffic.stop.map(|stop| format!("until {stop}")));
    parts.join(", ")
}

fn what(kind: &TrafficKind) -> String {
    match kind {
        TrafficKind::RandomPairs { flows, workload } => {
            format!("{} between random pairs, {}", plural(u64::from(*flows), "flow"), load(workload))
        }
        TrafficKind::Permutation { workload, .. } => {
            format!("each host to another one and from another one, {}", load(workload))
        }
        TrafficKind::Bulk { from, to, count, bytes } => {
            let many = if *count == 1 { String::new() } else { format!(" on {count} connections") };
            format!("{from} → {to}{many}, {}", unlimited(bytes.as_ref()))
        }
        TrafficKind::Udp { from, to, datagrams } => format!("{from} → {to}, {}", udp(datagrams)),
        TrafficKind::Incast { senders, receiver, bytes, repeat, pace, deadline } => {
            let senders = match senders {
                Senders::First(n) => plural(u64::from(*n), "host"),
                Senders::Named(names) => names.join(", "),
            };
            let pace = match pace {
                Pace::Barrier => "the next when the last has finished".to_string(),
                Pace::Interval(interval) => format!("each {interval}"),
            };
            let within = deadline.map_or(String::new(), |deadline| format!(" within {deadline}"));
            let rounds = plural(u64::from(*repeat), "round");
            format!("{senders} → {receiver} at once, {bytes} each{within}, {rounds}, {pace}")
        }
        TrafficKind::AllToAll(collective) => format!("all to all, {}", rounds(collective)),
        TrafficKind::Exchange(collective) => format!("each to its two neighbours in a ring, {}", rounds(collective)),
        TrafficKind::Poisson { arrivals, sizes, from, to, .. } => {
            let arrivals = match arrivals {
                Arrivals::Load(load) => format!("{load} load"),
                Arrivals::FlowsPerSecond(rate) => format!("{rate} flows/s"),
            };
            let hosts = |names: &Option<Vec<String>>| match names.as_deref() {
                None => "any host".to_string(),
                Some(names @ ([_] | [_, _] | [_, _, _])) => names.join(", "),
                Some(names) => plural(names.len() as u64, "host"),
            };
            let pairs = match (from, to) {
                (None, None) => "between random pairs".to_string(),
                _ => format!("from {} to {}", hosts(from), hosts(to)),
            };
            format!("Poisson arrivals {pairs}, {arrivals}, sizes {}", source(sizes))
        }
        TrafficKind::Trace { file, flows } => {
            format!("{} of {}", plural(flows.len() as u64, "flow"), file.file.written)
        }
        TrafficKind::Job(job) => of_job(job),
        TrafficKind::Idle { flows } => format!("{} without traffic", plural(u64::from(*flows), "connection")),
    }
}

fn plural(n: u64, word: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") }
}

fn of_job(job: &Job) -> String {
    let what = match &job.shape {
        JobShape::MapReduce { mappers, reducers, bytes, .. } => {
            format!(
                "{} and {}, {bytes} shuffled",
                plural(u64::from(*mappers), "mapper"),
                plural(u64::from(*reducers), "reducer")
            )
        }
        JobShape::AllReduce(AllReduce { algorithm: Reduction::Ring, bytes, .. }) => {
            format!("allreduce of {bytes} in a ring")
        }
        JobShape::AllReduce(AllReduce { algorithm: Reduction::Tree, bytes, .. }) => {
            format!("allreduce of {bytes} in a tree")
        }
        JobShape::AllToAll { bytes, .. } => format!("all to all, {bytes} each"),
        JobShape::Pipeline { bytes, batches, .. } => format!("{batches} batches of {bytes} through a pipeline"),
        JobShape::File(file) => {
            format!("{} of {}", plural(file.graph.tasks.len() as u64, "task"), file.file.file.written)
        }
    };
    format!("{what}, {}", plural(u64::from(job.repeat), "run"))
}

fn udp(datagrams: &Datagrams) -> String {
    format!("UDP, {} in packets of {}", datagrams.rate, datagrams.packet)
}

fn load(workload: &Workload) -> String {
    match workload {
        Workload::OnOff { rate, on, off, .. } => format!("{rate} for {on}, then nothing for {off} (means)"),
        Workload::Bulk { bytes } => unlimited(bytes.as_ref()),
        Workload::Udp(datagrams) => udp(datagrams),
    }
}

fn unlimited(bytes: Option<&impl Display>) -> String {
    bytes.map_or("unlimited".to_string(), ToString::to_string)
}

fn rounds(collective: &Collective) -> String {
    let sizes: Vec<String> = collective.bytes.iter().map(ToString::to_string).collect();
    let jobs = if collective.jobs == 1 { String::new() } else { format!(" in {} jobs", collective.jobs) };
    let think = match collective.think {
        None => String::new(),
        Some(Think::Exponential(mean)) => format!(", {mean} of computing in between (mean)"),
        Some(Think::Fixed(time)) => format!(", {time} of computing in between"),
    };
    format!("{} a message, {} rounds{jobs}{think}", sizes.join(", "), collective.rounds)
}

fn source(sizes: &Sizes) -> &str {
    match &sizes.source {
        SizesSource::Published(name) => name,
        SizesSource::File(file) => &file.file.written,
    }
}

/// Failures, losses, the enforcer and the policy, a line each.
pub fn remarks(scenario: &Scenario) -> Vec<String> {
    let mut remarks = Vec::new();
    for failure in &scenario.network.failure {
        let until = failure.until.map_or("for good".to_string(), |until| format!("until {until}"));
        remarks.push(format!("{} fails at {}, {until}", failure.link, failure.at));
    }
    for loss in &scenario.network.loss {
        remarks.push(format!("{} loses {} of its packets", loss.link, loss.probability));
    }
    for enforcer in &scenario.enforcer {
        let word = |rule: &EnforcerRule| match &rule.treatment {
            Treatment::Enforce(cc) => cc.label().to_string(),
            Treatment::Echo => "echo".to_string(),
            Treatment::Mark(share) => format!("mark {share}"),
        };
        let rules: Vec<String> = enforcer.rule.iter().map(word).collect();
        remarks.push(format!("an enforcer at {}: {}", enforcer.at, rules.join(", ")));
    }
    if let Some(control) = &scenario.policy {
        remarks.push(format!("an Oracle with the policy {}", control.file.file.written));
    }
    remarks
}

/// `h1`, `h1–h3`, or the first and how many more.
pub fn range(topology: &Topology, nodes: &[NodeId]) -> String {
    let name = |id: &NodeId| topology.node(*id).name.as_str();
    let follow = nodes.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1);
    match nodes {
        [] => String::new(),
        [one] => name(one).to_string(),
        [first, .., last] if follow => format!("{}–{}", name(first), name(last)),
        [first, rest @ ..] if rest.len() < 4 => {
            rest.iter().fold(name(first).to_string(), |text, id| format!("{text} {}", name(id)))
        }
        [first, rest @ ..] => format!("{} and {} more", name(first), rest.len()),
    }
}
