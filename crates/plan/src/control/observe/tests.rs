//! What a view says of a period, from counters that the test sets.

use super::*;
use crate::control::{Completed, FlowState};
use net::QueueLength;
use policy::AgentRule;
use results::Arm;

/// A network with these counters.
#[derive(Default)]
struct Paper {
    counters: LinkCounters,
    queued: u64,
    flows: Vec<FlowState>,
    completed: Vec<Completed>,
}

impl Managed for Paper {
    fn link(&self, _link: LinkId) -> (LinkCounters, QueueLength) {
        (self.counters, QueueLength { packets: 1, bytes: self.queued })
    }

    fn flows(&mut self, take: &mut dyn FnMut(FlowState)) {
        self.flows.iter().copied().for_each(take);
    }

    fn segments(&mut self, _hosts: &mut [Segments]) {}

    fn completed(&mut self, take: &mut dyn FnMut(Completed)) {
        self.completed.drain(..).for_each(take);
    }

    fn retune(&mut self, _host: u32, _rules: &[AgentRule]) {}

    fn assign(&mut self, _host: u32, _arm: Arm) {}
}

/// Two leaves of two hosts: h1 and h2 at l1, h3 and h4 at l2, links of 8 Mbit/s; two entries with one label, and one with another.
fn observer(more: &str) -> Observer {
    let text = format!(
        "duration = \"60 s\"\n[network]\ntopology = {{ leaf_spine = {{ leaves = 2, spines = 1, hosts_per_leaf = 2 }} }}\nrate = \"8 Mbit/s\"\n{more}\n\
         [tcp]\ncc = \"kernel:cubic\"\n[policy]\nfile = \"p.toml\"\nlabel = [{{ hosts = [\"h*\"], set = {{ site = \"one\" }} }}, {{ hosts = [\"h2\"], set = {{ role = \"db\" }} }}]\n\
         [[traffic]]\nname = \"a\"\nlabel = \"web\"\nbulk = {{ from = \"h1\", to = \"h2\" }}\n\
         [[traffic]]\nname = \"b\"\nlabel = \"backup\"\nbulk = {{ from = \"h1\", to = \"h3\" }}\n\
         [[traffic]]\nname = \"c\"\nlabel = \"web\"\nbulk = {{ from = \"h4\", to = \"h3\" }}\n"
    );
    let scenario = testkit::scenario_with(&text, &[("p.toml", &testkit::policy_for_all("10 s", "initial_cwnd = 20"))]);
    let topology = crate::topology(&scenario).expect("a checked scenario has a network");
    Observer::new(&scenario, &topology)
}

fn flow(flow: u32, entry: u32, (src, dst): (u32, u32), bytes: u64) -> FlowState {
    let segments = Segments { sent: bytes / 1000, retransmitted: bytes / 10_000 };
    FlowState { flow, entry, src, dst, bytes, segments, arm: Arm::Control, srtt_us: Some(200), open: true }
}

#[test]
fn a_view_names_hosts_racks_and_labels_as_the_scenario_does() {
    let observer = observer("");
    let [first, second, third, _] = observer.hosts() else { panic!("four hosts") };
    assert_eq!((first.name.as_str(), first.rack.as_str(), first.cc.as_str()), ("h1", "l1", "cubic"));
    assert_eq!((second.rack.as_str(), third.rack.as_str()), ("l1", "l2"));
    let labels = |host: &Host| host.labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
    assert_eq!(
        (labels(first), labels(second)),
        (vec!["site=one".to_string()], vec!["role=db".to_string(), "site=one".to_string()])
    );
    let groups: Vec<&str> = observer.view().groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(groups, ["backup", "web"], "entries of one label are one group");
}

#[test]
fn links_are_measured_over_the_period() {
    let (mut observer, mut paper) = (observer(""), Paper::default());
    // the first look has no period behind it
    observer.see(Time::ZERO, &mut paper);
    assert_eq!(observer.view().links[0].utilization, None);
    // 3 MB accepted, half a megabyte still queued: 2.5 MB in 10 s, at a megabyte a second
    paper.counters =
        LinkCounters { accepted: 90, accepted_bytes: 3_000_000, dropped: 10, marked: 9, ..LinkCounters::default() };
    paper.queued = 500_000;
    observer.see(Time::from_secs(10), &mut paper);
    let link = &observer.view().links[0];
    assert_eq!((link.utilization, link.queue), (Some(0.25), Some(Bytes::new(500_000))));
    // of 100 offered ten were dropped; of 90 accepted nine marked
    assert_eq!((link.drop_rate, link.mark_rate), (Some(0.1), Some(0.1)));
    // in the next period 2 MB more leave, with those that waited, and nothing is lost
    paper.counters.accepted += 50;
    paper.counters.accepted_bytes += 1_500_000;
    paper.queued = 0;
    observer.see(Time::from_secs(20), &mut paper);
    let link = &observer.view().links[0];
    assert_eq!((link.utilization, link.drop_rate, link.mark_rate), (Some(0.2), Some(0.0), Some(0.0)));
}

#[test]
fn hosts_groups_and_racks_are_sums_of_their_flows_in_the_period() {
    let (mut observer, mut paper) = (observer(""), Paper::default());
    observer.see(Time::ZERO, &mut paper);
    let closed = FlowState { open: false, ..flow(1, 1, (0, 2), 2_000_000) };
    paper.flows = vec![flow(0, 0, (0, 1), 1_000_000), closed, flow(2, 2, (3, 2), 0)];
    observer.see(Time::from_secs(10), &mut paper);
    let view = observer.view();
    // h1: two flows begun in 10 s, of which one is open; 3 MB are 2.4 Mbit/s, and 3000 segments 300 a second
    let first = &view.hosts[0];
    assert_eq!((first.live_flows, first.flow_starts), (Some(1.0), Some(0.2)));
    assert_eq!((first.send_rate, first.sent_segments), (Some(Rate::from_bps(2_400_000)), Some(300)));
    assert_eq!(first.retransmitted_segments, Some(30));
    assert_eq!(first.srtt_us, [(200, 1)], "of open flows");
    // h3 has heard from h1 alone: the flow from h4 has carried nothing
    let fan_in = |view: &NetworkView| view.hosts.iter().map(|host| host.fan_in).collect::<Vec<_>>();
    assert_eq!(fan_in(view), [Some(0.0), Some(1.0), Some(1.0), Some(0.0)]);
    let group = |view: &NetworkView, at: usize| (view.groups[at].live_flows, view.groups[at].retransmit_rate);
    assert_eq!(group(view, 0), (Some(0.0), Some(0.1)), "backup");
    assert_eq!(group(view, 1), (Some(2.0), Some(0.1)), "web");
    let pairs = view.matrix.iter().map(|pair| (pair.from.as_str(), pair.to.as_str(), pair.rate.as_bps()));
    assert_eq!(pairs.collect::<Vec<_>>(), [("l1", "l1", 800_000), ("l1", "l2", 1_600_000)], "no pair without traffic");
    // what a flow had carried before does not count again
    paper.flows = vec![flow(0, 0, (0, 1), 1_500_000)];
    observer.see(Time::from_secs(20), &mut paper);
    let first = &observer.view().hosts[0];
    assert_eq!((first.send_rate, first.flow_starts), (Some(Rate::from_bps(400_000)), Some(0.0)));
}

#[test]
fn completion_times_are_by_nearest_rank_of_all_of_a_host_and_of_a_group() {
    let ms = Time::from_ms;
    let of = |times: &[u64]| {
        let Percentiles { p50, p90, p99 } = percentiles(times.iter().copied().map(ms).collect());
        [p50, p90, p99]
    };
    // of 1 to 100: numbers 50, 90, 99; of three: ceil(1.5), ceil(2.7), ceil(2.97)
    assert_eq!(of(&(1..=100).rev().collect::<Vec<_>>()), [50, 90, 99].map(|at| Some(ms(at))));
    assert_eq!(of(&[30, 10, 20]), [20, 30, 30].map(|at| Some(ms(at))));
    assert_eq!((of(&[7]), of(&[])), ([Some(ms(7)); 3], [None; 3]));
    let (mut observer, mut paper) = (observer(""), Paper::default());
    observer.see(Time::ZERO, &mut paper);
    let done = |src, entry, took, arm| Completed { src, entry, bytes: 1, took: ms(took), arm };
    paper.completed = vec![done(0, 0, 5, Arm::Treated), done(0, 1, 9, Arm::Control), done(3, 2, 7, Arm::Control)];
    observer.see(Time::from_secs(10), &mut paper);
    let view = observer.view();
    assert_eq!((view.fct.p50, view.fct.p99), (Some(ms(7)), Some(ms(9))));
    assert_eq!((view.hosts[0].fct.p50, view.hosts[1].fct.p50), (Some(ms(5)), None));
    assert_eq!((view.groups[0].fct.p50, view.groups[1].fct.p99), (Some(ms(9)), Some(ms(7))));
    let [treated, control] = observer.take_arms();
    assert_eq!((treated.fct_ns.len(), control.fct_ns.len()), (1, 2));
    assert_eq!(observer.take_arms()[1].fct_ns.len(), 0, "once");
}

#[test]
fn a_run_begins_on_a_monday_at_midnight() {
    let (mut observer, mut paper) = (observer(""), Paper::default());
    let mut at = |hours: u64| {
        observer.see(Time::from_secs(hours * 3600), &mut paper);
        (observer.view().hour, observer.view().weekday)
    };
    assert_eq!(at(0), (Some(0.0), Some(1)));
    assert_eq!(at(18), (Some(18.0), Some(1)));
    // a day and a half later, on the eighth day
    assert_eq!(at(36), (Some(12.0), Some(2)));
    assert_eq!(at(24 * 7), (Some(0.0), Some(1)));
}

#[test]
fn a_link_is_down_from_its_failure_to_its_repair() {
    let failure = "[[network.failure]]\nlink = \"l1->s1\"\nat = \"11 s\"\nuntil = \"25 s\"";
    let (mut observer, mut paper) = (observer(failure), Paper::default());
    let mut up = |seconds: u64| {
        observer.see(Time::from_secs(seconds), &mut paper);
        observer
            .view()
            .links
            .iter()
            .filter(|link| link.up == Some(false))
            .map(|link| link.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(up(10), Vec::<String>::new());
    assert_eq!((up(20), up(30)), (vec!["l1->s1".to_string()], Vec::new()));
}

#[test]
fn a_hosts_own_interface_needs_no_marks_and_a_switchs_does() {
    let marks = |queue: &str| {
        let observer = observer(queue);
        let of = |name: &str| observer.view().links.iter().find(|link| link.name == name).and_then(|link| link.marks);
        (of("h1->l1"), of("l1->h1"))
    };
    assert_eq!(marks("queue = { drop_tail = { packets = 50 } }"), (Some(true), Some(false)));
    assert_eq!(marks("queue = { threshold_ecn = { mark_packets = 5, packets = 50 } }"), (Some(true), Some(true)));
}
