//! What operators see of an Oracle: its metrics, and what it answers to `status`.

use crate::board::{Board, part};
use crate::gather::Gathered;
use crate::happened::Happened;
use crate::overview::{
    DECISIONS_MAX, DecisionLine, HostLine, LINKS_MAX, LinkLine, Overview, QuantityLine, RevertedLine, RuleLine,
    VerdictLine, clipped,
};
use crate::status::Status;
use bus::{BoardList, Tripped};
use policy::{Decision, Host, LINKS_ADVICE, Link, Mode, NetworkView, RuleReport, Turn, Variable, VerdictReport};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use units::Time;

/// Links that have a series of their own: those between switches first, by name.
pub const SERIES_LINKS_MAX: usize = 256;

/// What is kept between two decisions.
#[derive(Debug, Default)]
pub struct Watch {
    /// Of the last decision, except for its age and its hosts.
    overview: Overview,
    hosts: Vec<HostLine>,
    /// In the order of their names, those between switches first.
    links: Vec<LinkLine>,
    decisions: VecDeque<DecisionLine>,
    /// What became of rules, and what happened beside.
    happened: Happened,
    /// When it was, on the Oracle's clock.
    decided: Time,
    /// Since the start.
    pub(crate) decisions_total: u64,
    pub(crate) cues_total: u64,
    pub(crate) status: Status,
}

/// A period that has just ended.
#[derive(Clone, Copy, Debug)]
pub struct PeriodEnd<'a> {
    /// The policy's name.
    pub policy: &'a str,
    /// Its period.
    pub period: Time,
    /// Now, on the Oracle's clock.
    pub now: Time,
    /// Now, in seconds since the Unix epoch.
    pub unix_s: f64,
    /// What was seen.
    pub view: &'a NetworkView,
    /// What was decided.
    pub decision: &'a Decision,
    /// Messages with CUEs that were sent.
    pub sent: usize,
    /// The comparison so far.
    pub verdict: &'a VerdictReport,
    /// How the Oracle is.
    pub status: &'a Status,
    /// What agents say of themselves, and whom the decision treats.
    pub gathered: &'a Gathered,
}

/// Which hosts are listed.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostsAsked<'a> {
    /// By which column: `name`, `rack`, `cc`, `flows`, `retransmits`, `rate`, `rules`, `guards`, `differs`, `heard`; empty: what needs an
    /// operator's attention first.
    pub sort: &'a str,
    /// A part of their names or racks; empty: all.
    pub filter: &'a str,
    /// At most so many.
    pub limit: usize,
}

impl Watch {
    /// Nothing was decided yet, by a policy of this name and period.
    pub fn new(policy: &str, period: Time) -> Watch {
        let overview = Overview {
            policy: clipped(policy, 64),
            period_s: period.as_secs_f64(),
            leads: true,
            ..Overview::default()
        };
        Watch { overview, ..Watch::default() }
    }

    /// Takes a period that has ended.
    pub fn ended(&mut self, ended: &PeriodEnd<'_>) {
        let PeriodEnd { decision, view, verdict, gathered, .. } = *ended;
        let agents = gathered.agents();
        self.decided = ended.now;
        self.decisions_total += 1;
        self.cues_total += ended.sent as u64;
        self.status = ended.status.clone();
        let is_host: BTreeSet<&str> = view.hosts.iter().map(|host| host.name.as_str()).collect();
        self.links = view.links.iter().map(|link| link_line(link, &is_host)).collect();
        self.links.sort_by(|a, b| (a.at_host, &a.name).cmp(&(b.at_host, &b.name)));
        let at_hosts = at_hosts(&view.links, &is_host);
        self.hosts = view.hosts.iter().map(|host| host_line(host, ended, at_hosts.get(host.name.as_str()))).collect();
        self.hosts.sort_by(|a, b| a.name.cmp(&b.name));
        self.happened.decided(ended);
        let differing = agents.all().filter(|agent| agent.differing > 0).count();
        let expired = agents.all().map(|agent| agent.counts.expired).fold(0, u64::saturating_add);
        let rejected = agents.all().map(|agent| agent.counts.rejected).fold(0, u64::saturating_add);
        if self.decisions.len() == DECISIONS_MAX {
            self.decisions.pop_front();
        }
        self.decisions.push_back(DecisionLine {
            unix_s: ended.unix_s,
            epoch: decision.epoch,
            treated: decision.treated,
            hosts: decision.hosts,
            cues: ended.sent,
            words: clipped(&words(decision), 240),
        });
        self.overview = Overview {
            policy: clipped(ended.policy, 64),
            leads: true,
            mode: if decision.mode == Mode::Enforce { "enforce" } else { "observe" }.to_string(),
            outliers: self.status.outliers.hosts,
            period_s: ended.period.as_secs_f64(),
            epoch: decision.epoch,
            decided_unix_s: ended.unix_s,
            agents: ended.status.agents,
            hosts: decision.hosts,
            treated: decision.treated,
            treating: decision.treating,
            guard_trips: agents.guard_trips(),
            expired,
            rejected,
            differing,
            refused: self.status.refusals().map(|(reason, count)| (reason.to_string(), count)).collect(),
            rules: decision.rules.iter().enumerate().map(|(i, rule)| self.rule_line(i, rule)).collect(),
            constraints: decision.constraints.iter().map(|one| (clipped(&one.name, 64), one.holds)).collect(),
            verdict: verdict_line(verdict),
            ..Overview::default()
        };
    }

    /// The answer to `status`, at `now` on the Oracle's clock.
    pub fn overview(&self, now: Time, asked: HostsAsked<'_>) -> Overview {
        let mut links = self.links.clone();
        links.sort_by(|a, b| b.utilization.unwrap_or(-1.0).total_cmp(&a.utilization.unwrap_or(-1.0)));
        let links_total = links.len();
        links.truncate(LINKS_MAX);
        let (host_lines, hosts_matched) = self.hosts(asked);
        let age_s = (self.decisions_total > 0).then(|| now.saturating_sub(self.decided).as_secs_f64());
        let decisions = self.decisions.iter().rev().cloned().collect();
        let more =
            Overview { age_s, links, links_total, host_lines, hosts_matched, decisions, ..self.overview.clone() };
        more.fitted()
    }

    /// A part of a list for a dashboard.
    pub fn board(&self, list: BoardList, from: usize) -> Board {
        let epoch = self.overview.epoch;
        match list {
            BoardList::Hosts => Board { hosts: part(&self.hosts, from), total: self.hosts.len(), ..Board::of(epoch) },
            BoardList::Links => Board { links: part(&self.links, from), total: self.links.len(), ..Board::of(epoch) },
            BoardList::Spans => {
                let spans = self.happened.spans();
                Board { total: spans.len(), spans: part(&spans, from), ..Board::of(epoch) }
            }
            BoardList::Events => {
                let events = self.happened.events();
                Board { total: events.len(), events: part(&events, from), ..Board::of(epoch) }
            }
        }
    }

    /// Takes something that happened, as the audit log has it, at `unix_s`.
    pub fn noted(&mut self, unix_s: f64, kind: audit::Kind, body: &serde_json::Value) {
        self.happened.noted(unix_s, kind, body);
    }

    /// The policy's rule `i`, on the hosts as they are.
    fn rule_line(&self, i: usize, rule: &RuleReport) -> RuleLine {
        let name = clipped(&rule.name, 64);
        let is_in_force = |host: &&HostLine| i < u64::BITS as usize && host.in_force >> i & 1 == 1;
        let is_reverted = |host: &&HostLine| host.reverted.iter().any(|of| of.rule == name);
        RuleLine {
            matched: rule.hosts.matched,
            on: rule.hosts.addressed,
            in_force: self.hosts.iter().filter(is_in_force).count(),
            reverted: self.hosts.iter().filter(is_reverted).count(),
            withheld: rule.withheld.as_ref().map(|why| clipped(why, 160)),
            why: clipped(&kept_back(rule).or_else(|| not_known(rule)).unwrap_or_else(|| why(rule)), 240),
            name,
            ..RuleLine::default()
        }
    }

    fn hosts(&self, asked: HostsAsked<'_>) -> (Vec<HostLine>, usize) {
        let is_asked = |host: &&HostLine| host.name.contains(asked.filter) || host.rack.contains(asked.filter);
        let mut hosts: Vec<&HostLine> = self.hosts.iter().filter(is_asked).collect();
        let matched = hosts.len();
        let key = |host: &HostLine| match asked.sort {
            "flows" => host.flows.unwrap_or(-1.0),
            "retransmits" => host.retransmits.unwrap_or(-1.0),
            "rate" => host.send_bps.map_or(-1.0, |bps| bps as f64),
            "rules" => host.rules as f64,
            "guards" => host.guard_trips as f64,
            "differs" => host.differing as f64,
            "heard" => host.heard_s,
            // what an operator should look at: reverted, not as set, then losses
            _ => host.guard_trips as f64 * 1e6 + host.differing as f64 * 1e3 + host.retransmits.unwrap_or(0.0),
        };
        match asked.sort {
            "name" => hosts.sort_by(|a, b| a.name.cmp(&b.name)),
            "rack" => hosts.sort_by(|a, b| (&a.rack, &a.name).cmp(&(&b.rack, &b.name))),
            "cc" => hosts.sort_by(|a, b| (&a.cc, &a.name).cmp(&(&b.cc, &b.name))),
            _ => hosts.sort_by(|a, b| key(b).total_cmp(&key(a)).then_with(|| a.name.cmp(&b.name))),
        }
        let limit = if asked.limit == 0 { crate::overview::HOSTS_MAX } else { asked.limit };
        hosts.truncate(limit.min(crate::overview::HOSTS_MAX));
        (hosts.into_iter().cloned().collect(), matched)
    }

    /// Whether this Oracle decides.
    pub fn leads(&mut self, leads: bool) {
        self.overview.leads = leads;
    }

    /// The last period's, for metrics.
    pub(crate) fn last(&self) -> &Overview {
        &self.overview
    }

    /// All links, those between switches first.
    pub(crate) fn links(&self) -> &[LinkLine] {
        &self.links
    }
}

/// The host that an end of a link is, if it is one.
fn host_at<'a>(end: &'a str, is_host: &BTreeSet<&str>) -> Option<&'a str> {
    [Some(end), end.strip_prefix("host ")].into_iter().flatten().find(|end| is_host.contains(end))
}

/// Of each host, how much its busiest link is used, and what is at the other end of it.
fn at_hosts<'a>(links: &'a [Link], is_host: &BTreeSet<&str>) -> BTreeMap<&'a str, (f64, &'a str)> {
    let mut busiest: BTreeMap<&str, (f64, &str)> = BTreeMap::new();
    for link in links {
        let Some(used) = link.utilization else { continue };
        for (end, far) in [(&link.from, &link.to), (&link.to, &link.from)] {
            let Some(host) = host_at(end, is_host) else { continue };
            let most = busiest.entry(host).or_insert((used, far));
            if used > most.0 {
                *most = (used, far);
            }
        }
    }
    busiest
}

fn link_line(link: &Link, is_host: &BTreeSet<&str>) -> LinkLine {
    LinkLine {
        name: clipped(&link.name, 64),
        from: clipped(&link.from, 64),
        to: clipped(&link.to, 64),
        up: link.up,
        at_host: [&link.from, &link.to].into_iter().any(|end| host_at(end, is_host).is_some()),
        rate_bps: link.rate.map(units::Rate::as_bps),
        utilization: link.utilization,
        drop_rate: link.drop_rate,
        mark_rate: link.mark_rate,
        queue_bytes: link.queue.map(units::Bytes::get),
    }
}

fn host_line(host: &Host, ended: &PeriodEnd<'_>, link: Option<&(f64, &str)>) -> HostLine {
    let seen = ended.gathered.agents().of(&host.name).cloned().unwrap_or_default();
    let heard = ended.now.saturating_sub(seen.at);
    let reverted = |of: &Tripped| RevertedLine {
        rule: clipped(&of.rule, 64),
        why: clipped(&of.why, 160),
        left_s: of.left.saturating_sub(heard).as_secs_f64(),
        hold_s: of.hold.as_secs_f64(),
    };
    HostLine {
        name: clipped(&host.name, 64),
        rack: clipped(&host.rack, 32),
        treated: ended.gathered.treats(&host.name),
        cc: clipped(&host.cc, 32),
        flows: host.live_flows,
        retransmits: host.drop_rate(),
        send_bps: host.send_rate.map(units::Rate::as_bps),
        rules: seen.rules,
        in_force: seen.in_force,
        utilization: link.map(|(used, _)| *used),
        leaf: link.map_or(String::new(), |(_, far)| clipped(far, 64)),
        epoch: seen.epoch,
        guard_trips: seen.counts.reverted,
        reverted: seen.reverted.iter().filter(|of| of.left > heard).map(reverted).collect(),
        differing: seen.differing,
        notes: seen.notes,
        heard_s: heard.as_secs_f64(),
    }
}

pub(crate) fn verdict_line(verdict: &VerdictReport) -> VerdictLine {
    let quantity = |quantity: &policy::QuantityReport| QuantityLine {
        name: quantity.name.to_string(),
        judgement: quantity.judgement.as_str().to_string(),
        pairs: quantity.pairs,
        change: quantity.change,
        interval: quantity.interval,
    };
    VerdictLine {
        judgement: verdict.judgement.as_str().to_string(),
        roll_back: verdict.roll_back,
        reason: clipped(&verdict.reason, 240),
        quantities: verdict.quantities.iter().map(quantity).collect(),
    }
}

/// Why no host gets a CUE of a rule although its condition holds, if that is so and the rule is not withheld as a whole.
pub(crate) fn kept_back(rule: &RuleReport) -> Option<String> {
    let hosts = &rule.hosts;
    if hosts.addressed > 0 || rule.withheld.is_some() {
        return None;
    }
    let first = |names: &[String]| if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    let reasons = [
        (hosts.no_algorithm, format!("hosts lack its algorithm{}", first(&rule.lacking))),
        (hosts.no_ecn, "hosts have a hop that does not mark, and its algorithm needs marks".to_string()),
        (hosts.held_off, "hosts are kept off by its hold time".to_string()),
        (hosts.flap_limited, "hosts are kept off because they changed too often".to_string()),
    ];
    let words: Vec<String> = reasons.into_iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}")).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// What a rule for which no host is on would have to know, and who would say it.
fn not_known(rule: &RuleReport) -> Option<String> {
    let is_unknown = rule.turn == Some(Turn::Unknown) || rule.hosts.unknown > 0;
    if !is_unknown || rule.hosts.addressed > 0 {
        return None;
    }
    let missing = rule.seen.iter().find(|seen| seen.least.is_none())?;
    let advice = Variable::named(&missing.what).and_then(Variable::advice);
    let advice = advice.or_else(|| missing.what.contains("link").then_some(LINKS_ADVICE));
    Some(format!("{} is not known{}", missing.what, advice.map_or(String::new(), |advice| format!(": {advice}"))))
}

/// What a rule's condition was made of.
pub(crate) fn why(rule: &RuleReport) -> String {
    if rule.values.is_empty() {
        rule.seen.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    } else {
        rule.values.join(", ")
    }
}

/// A decision in a line.
fn words(decision: &Decision) -> String {
    let rule = |rule: &RuleReport| {
        let RuleReport { name, hosts, .. } = rule;
        match &rule.withheld {
            Some(why) => format!("{name} withheld: {why}"),
            None if hosts.addressed > 0 => format!("{name} on for {}", hosts.addressed),
            None if hosts.unknown > 0 => format!("{name} off: not known"),
            None if hosts.flap_limited > 0 => format!("{name} off: changed too often"),
            None => format!("{name} off"),
        }
    };
    let broken = decision.constraints.iter().filter(|one| one.holds == Some(false));
    let broken = broken.map(|one| format!("{} does not hold", one.name));
    broken.chain(decision.rules.iter().map(rule)).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
