//! Flows that begin by themselves: once, at random, from a trace, at a constant rate.

use super::*;

const SIZES: (&str, &str) = ("s.csv", "bytes,cdf\n1000,0\n20000,0.9\n60000,1\n");

#[test]
fn a_transfer_closes_after_its_bytes_and_one_without_an_end_does_not() {
    let bulk = "bulk = { from = \"h1\", to = \"h3\", count = 2, bytes = \"5 MB\" }";
    let two = play(&star("1 s", &entry(bulk)), one_ms);
    assert_eq!(two.opened(), [(Time::ZERO, 0, 2); 2]);
    assert_eq!((two.paper.reserved, two.written()), (2, vec![(Time::ZERO, 0, 5_000_000), (Time::ZERO, 1, 5_000_000)]));
    assert_eq!((two.times(Asked::Close(1)), two.times(Asked::Finish(1))), (vec![Time::ZERO], vec![ms(1)]));
    let endless = "start = \"2 ms\"\nstop = \"7 ms\"\nbulk = { from = \"h1\", to = \"h3\" }";
    let endless = play(&star("1 s", &entry(endless)), one_ms);
    assert_eq!(endless.written(), [(ms(2), 0, UNLIMITED)]);
    assert_eq!(endless.count(|asked| matches!(asked, Asked::Close(_) | Asked::NotifyAt(..) | Asked::Finish(_))), 0);
    assert_eq!(endless.times(Asked::StopWriting(0)), [ms(7)]);
}

#[test]
fn as_many_flows_arrive_as_were_asked_for_and_none_after_the_stop() {
    let poisson = |more: &str| {
        let poisson = format!("{more}\npoisson = {{ flows_per_second = 1000, sizes = \"s.csv\", flows = 20 }}");
        play(&star_with("1 s", &entry(&poisson), &[SIZES]), one_ms)
    };
    let all = poisson("");
    assert_eq!(all.opened().len(), 20);
    assert!(all.opened().iter().all(|(_, src, dst)| src != dst));
    assert!(all.written().iter().all(|(_, _, bytes)| (1000..=60_000).contains(bytes)), "{:?}", all.written());
    let tenth = all.opened()[9].0;
    let stop = format!("stop = \"{} us\"", tenth.as_us() + 1);
    let stopped = poisson(&stop);
    assert_eq!(stopped.opened(), all.opened()[..10], "the same ones until then");
}

#[test]
fn what_an_entry_draws_depends_on_its_name_and_the_seed_alone() {
    let web = "name = \"web\"\npoisson = { flows_per_second = 1000, sizes = \"s.csv\", flows = 20 }";
    let other = "name = \"other\"\npoisson = { flows_per_second = 3000, sizes = \"s.csv\", flows = 50 }";
    let drawn = |traffic: &str, of: u32| {
        let play = play(&star_with("1 s", traffic, &[SIZES]), one_ms);
        let flows = play.paper.asked.iter().filter_map(|(at, asked)| match asked {
            Asked::Open(opening, src, dst) if opening.entry == of => Some((*at, opening.name, *src, *dst)),
            _ => None,
        });
        let bytes = play.written().into_iter().filter(|(_, flow, _)| play.paper.flows[*flow as usize] == of);
        (flows.collect::<Vec<_>>(), bytes.map(|(at, _, bytes)| (at, bytes)).collect::<Vec<_>>())
    };
    let alone = drawn(&entry(web), 0);
    assert_eq!(alone.0.len(), 20);
    assert_eq!(drawn(&[entry(other), entry(web)].concat(), 1), alone, "behind another entry");
    assert_eq!(drawn(&[entry(web), entry(other)].concat(), 0), alone, "before it");
    assert_ne!(drawn(&entry(&web.replace("\"web\"", "\"wob\"")), 0), alone, "of another name");
    let names = alone.0.iter().map(|(_, name, ..)| *name);
    let numbered = (0..20).map(|number| FlowName::new("web", number));
    assert_eq!(names.collect::<Vec<_>>(), numbered.collect::<Vec<_>>());
}

#[test]
fn a_trace_is_played_from_the_entrys_start() {
    let rows = "time_s,src,dst,bytes\n0,h1,h2,1000\n0.002,h2,h3,2000\n0.002,h4,h1,3000\n0.005,h3,h1,4000\n";
    let trace = "start = \"10 ms\"\ntrace = { file = \"t.csv\" }";
    let play = play(&star_with("1 s", &entry(trace), &[("t.csv", rows)]), one_ms);
    assert_eq!(play.opened(), [(ms(10), 0, 1), (ms(12), 1, 2), (ms(12), 3, 0), (ms(15), 2, 0)]);
    assert_eq!(play.written().into_iter().map(|(_, _, bytes)| bytes).collect::<Vec<_>>(), [1000, 2000, 3000, 4000]);
}

#[test]
fn datagrams_leave_at_their_rate_until_the_stop_whatever_becomes_of_them() {
    // 1 kB at 8 Mbit/s: one a millisecond, the first at a random time within the first
    let udp = "stop = \"5 ms\"\nudp = { from = \"h1\", to = \"h2\", rate = \"8 Mbit/s\", packet = \"1 kB\" }";
    let play = play(&star("1 s", &entry(udp)), one_ms);
    let sent = play.times(Asked::Datagram(0, 1000));
    assert_eq!(sent.len(), 5);
    assert!(sent[0] < ms(1), "{sent:?}");
    assert!(sent.windows(2).all(|pair| pair[1] - pair[0] == ms(1)), "{sent:?}");
    assert_eq!(play.count(|asked| matches!(asked, Asked::Write(..) | Asked::Close(_))), 0);
}

#[test]
fn idle_connections_are_opened_one_after_the_other_and_never_written_to() {
    let play = play(&star("1 s", &entry("idle = { flows = 3 }")), one_ms);
    let times: Vec<Time> = play.opened().into_iter().map(|(at, ..)| at).collect();
    assert_eq!(times, [0, 100, 200].map(Time::from_us));
    assert_eq!((play.paper.reserved, play.written().len()), (3, 0));
}

#[test]
fn in_a_permutation_each_host_sends_and_receives_once() {
    let play = play(&star("1 s", &entry("permutation = { bulk = { bytes = \"1 MB\" } }")), one_ms);
    let of = |end: fn(&(Time, u32, u32)) -> u32| {
        let mut hosts: Vec<u32> = play.opened().iter().map(end).collect();
        hosts.sort_unstable();
        hosts
    };
    assert_eq!(of(|(_, src, _)| *src), [0, 1, 2, 3]);
    assert_eq!(of(|(_, _, dst)| *dst), [0, 1, 2, 3]);
    assert!(play.opened().iter().all(|(_, src, dst)| src != dst));
}

#[test]
fn messages_of_the_warm_up_are_left_out_of_their_table() {
    let message = |begun| Message { flow: 7, entry: 1, job: 2, round: 3, begun, bytes: 1000 };
    let arrived = [ms(4), ms(5)].map(|begun| Arrived { message: message(begun), end: ms(9), retransmits: 6 });
    let rows = message_rows(&arrived, ms(5), &["a".into(), "b".into()]);
    assert_eq!(rows.len(), 1, "one that begins with the measurement counts");
    let row = &rows[0];
    assert_eq!((row.flow, &*row.entry, row.job, row.round, row.bytes, row.retransmits), (7, "b", 2, 3, 1000, 6));
    assert_eq!((row.start_ns, row.end_ns), (ms(5).as_ns(), ms(9).as_ns()));
}
