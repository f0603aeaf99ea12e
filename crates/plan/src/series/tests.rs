//! Samples and rows of links whose counters the test sets.

use super::*;
use net::Topology;

/// Links that have counted this, each the same.
struct Counted {
    counters: LinkCounters,
    queue: QueueLength,
}

impl Links for Counted {
    fn counters(&self, _link: LinkId) -> LinkCounters {
        self.counters
    }

    fn queue_len(&self, _link: LinkId, _at: Time) -> QueueLength {
        self.queue
    }
}

fn counted(counters: LinkCounters, queue: (u32, u64)) -> Counted {
    Counted { counters, queue: QueueLength { packets: queue.0, bytes: queue.1 } }
}

/// Two hosts at a switch, with links of 8 Mbit/s: a byte a microsecond.
fn network(measure: &str) -> (Scenario, Topology) {
    let text = format!(
        "duration = \"1 s\"\n[network]\ntopology = {{ star = {{ hosts = 2 }} }}\nrate = \"8 Mbit/s\"\n[[traffic]]\n\
         bulk = {{ from = \"h1\", to = \"h2\" }}\n[measure]\n{measure}\n"
    );
    let scenario = testkit::scenario(&text);
    let topology = crate::topology(&scenario).expect("a checked scenario has a network");
    (scenario, topology)
}

#[test]
fn a_sample_says_what_has_happened_since_the_one_before() {
    let (_, topology) = network("");
    let link = topology.find_link("s1->h2").expect("a star has it");
    let mut series = Series::new(&[link], &topology);
    // 1500 B accepted, of which 500 wait: 1000 B in a millisecond are all that the link can send
    let first = LinkCounters { accepted: 3, accepted_bytes: 1500, marked: 1, dropped: 4, ..LinkCounters::default() };
    series.sample(&counted(first, (1, 500)), Time::from_ms(1));
    // 250 B more and those 500, in another millisecond; 2 dropped by the queue, 3 with the link or because it was down
    let second =
        LinkCounters { accepted: 4, accepted_bytes: 1750, marked: 6, dropped: 6, lost: 1, refused: 2, ..first };
    series.sample(&counted(second, (0, 0)), Time::from_ms(2));
    let samples = series.samples();
    assert_eq!((samples[0].time_ns, samples[0].link), (1_000_000, link.0));
    assert_eq!((samples[0].queue_packets, samples[0].queue_bytes), (1, 500));
    let changes = |sample: &LinkSample| (Some(sample.utilization), sample.drops, sample.marks);
    assert_eq!(changes(&samples[0]), (Some(1.0), 4, 1));
    assert_eq!(changes(&samples[1]), (Some(0.75), 2 + 3, 5));
}

#[test]
fn totals_leave_out_the_warm_up() {
    let (_, topology) = network("");
    let n = topology.links().len();
    let mut series = Series::new(&[], &topology);
    let before = LinkCounters {
        accepted: 10,
        accepted_bytes: 4000,
        delivered: 10,
        dropped: 3,
        dropped_bytes: 300,
        marked: 2,
        ..LinkCounters::default()
    };
    series.begin_counting(&counted(before, (0, 0)), n, Time::from_ms(4));
    // 3000 B more, of which 500 have not left after 10 ms: 2500 of 10,000 B
    let after = LinkCounters {
        accepted: 17,
        accepted_bytes: 7000,
        delivered: 14,
        dropped: 5,
        dropped_bytes: 700,
        marked: 9,
        lost: 1,
        refused: 3,
        queue_max: 6,
    };
    let links = counted(after, (1, 500));
    let rows = series.rows(&links, &topology, &vec![2; n], Time::from_ms(14));
    let row = rows.iter().find(|row| &*row.link == "s1->h2").expect("a star has it");
    assert_eq!((&*row.from, &*row.to, &*row.tier, row.from_host), ("s1", "h2", "to-host", false));
    assert_eq!((row.packets, row.bytes, row.delivered, row.in_flight), (7, 3000, 4, 2));
    assert_eq!((row.dropped, row.dropped_bytes, row.dropped_by_failure, row.marked), (2, 400, 4, 7));
    assert_eq!((row.max_queue_packets, Some(row.utilization)), (6, Some(0.25)));
    let of_host = rows.iter().find(|row| &*row.link == "h1->s1").expect("a star has it");
    assert!(of_host.from_host && &*of_host.tier == "from-host");
}

#[test]
#[should_panic(expected = "does not add up")]
fn a_link_that_has_lost_count_of_a_packet_makes_the_run_invalid() {
    let (_, topology) = network("");
    let lossy = LinkCounters { accepted: 3, delivered: 1, ..LinkCounters::default() };
    let under_way = vec![1; topology.links().len()];
    Series::new(&[], &topology).rows(&counted(lossy, (0, 0)), &topology, &under_way, Time::from_ms(1));
}

#[test]
fn a_scenario_says_which_links_are_sampled_and_how_often() {
    let sampled = |measure: &str| {
        let (scenario, topology) = network(measure);
        let (links, interval) = sampled(&scenario, &topology);
        (links.into_iter().map(|link| topology.link_name(link)).collect::<Vec<_>>(), interval)
    };
    let all = ["h1->s1", "s1->h1", "h2->s1", "s1->h2"].map(str::to_string).to_vec();
    assert_eq!(sampled("links = \"7 ms\"\nqueues = [\"s1->h2\"]"), (all.clone(), Some(Time::from_ms(7))));
    assert_eq!(sampled("queues = \"all\"\nqueue_sample = \"3 ms\""), (all, Some(Time::from_ms(3))));
    let named = vec!["s1->h2".to_string(), "s1->h1".to_string()];
    assert_eq!(sampled("queues = [\"s1->h2\", \"s1->h1\"]\nqueue_sample = \"3 ms\""), (named, Some(Time::from_ms(3))));
    assert_eq!(sampled(""), (Vec::new(), None));
}

#[test]
fn a_link_cannot_be_busier_than_always() {
    let rate = Rate::from_mbps(8);
    assert_eq!(Some(utilization(1500, rate, Time::from_ms(1))), Some(1.0), "what was counted at another instant");
    assert_eq!(Some(utilization(250, rate, Time::from_ms(1))), Some(0.25));
    assert_eq!(Some(utilization(250, rate, Time::ZERO)), Some(0.0));
}
