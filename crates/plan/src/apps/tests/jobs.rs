//! Jobs: which task waits for which, what a connection carries, and when a run has ended.

use super::*;
use crate::apps::jobs::times;

/// Completion times of a job's runs.
fn took(play: &Play) -> Vec<Option<Time>> {
    let (jobs, _) = play.applications.jobs(Time::ZERO);
    jobs.iter().map(|job| job.jct_ns().map(Time::from_ns)).collect()
}

#[test]
fn a_stage_of_a_pipeline_waits_for_its_last_batch_and_for_the_stage_before() {
    let job = "job = { pipeline = { bytes = \"1 kB\", batches = 3, compute = \"10 ms\" } }";
    let play = play(&star("1 s", &entry(job)), one_ms);
    // the first batch: four stages of 10 ms, three messages of 1 ms; behind it two more batches at the last stage
    assert_eq!(took(&play), [Some(ms(4 * 10 + 3 + 2 * 10))]);
    assert_eq!(play.opened().len(), 3 * 3, "each message has a connection of its own");
    // what the first stage sends: when each of its batches is done
    let first: Vec<Time> = play.opened().into_iter().filter(|(_, src, _)| *src == 0).map(|(at, ..)| at).collect();
    assert_eq!(first, [ms(10), ms(20), ms(30)]);
}

#[test]
fn a_ring_takes_its_steps_one_after_the_other_and_its_coflows_follow_each_other() {
    let job = "job = { allreduce = { bytes = \"4 MB\", compute = \"5 ms\" }, connections = \"reuse\" }";
    let play = play(&star("1 s", &entry(job)), one_ms);
    // 5 ms of computing, then 2 (4 - 1) steps of 1 ms
    assert_eq!(took(&play), [Some(ms(5 + 6))]);
    let (jobs, coflows) = play.applications.jobs(Time::ZERO);
    // each of four hosts sends a quarter of 4 MB in each of six steps
    assert_eq!((jobs[0].tasks, jobs[0].messages, jobs[0].bytes), (4 + 24, 24, 24_000_000));
    let rows = coflows.iter().map(|row| (&*row.coflow, row.start_ns, row.end_ns, row.messages, row.bytes));
    let ns = |at: u64| Some(ms(at).as_ns());
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [("reduce-scatter", ns(5), ns(8), 12, 12_000_000), ("all-gather", ns(8), ns(11), 12, 12_000_000)]
    );
}

#[test]
fn connections_are_kept_for_all_runs_and_closed_after_the_last() {
    let job = |connections: &str| {
        let job = format!(
            "job = {{ allreduce = {{ bytes = \"4 MB\", compute = \"5 ms\" }}, repeat = 2, think = \"3 ms\", connections = \"{connections}\" }}"
        );
        play(&star("1 s", &entry(&job)), one_ms)
    };
    let kept = job("reuse");
    assert_eq!((took(&kept), kept.opened().len()), (vec![Some(ms(11)); 2], 4));
    // the second run begins 3 ms after the end of the first, and ends at 11 + 3 + 11 = 25 ms
    assert_eq!(kept.applications.jobs(Time::ZERO).0[1].start_ns, ms(14).as_ns());
    for flow in 0..4 {
        assert_eq!(kept.times(Asked::Close(flow)), [ms(25)]);
        assert_eq!(kept.times(Asked::Finish(flow)), [ms(25)]);
    }
    let anew = job("new");
    assert_eq!((took(&anew), anew.opened().len()), (vec![Some(ms(11)); 2], 2 * 24));
    assert_eq!(anew.count(|asked| matches!(asked, Asked::Finish(_))), 2 * 24);
}

#[test]
fn on_a_kept_connection_a_message_waits_until_the_one_before_has_arrived() {
    // one mapper, whose two waves end at 1 and 2 ms, and one reducer; a message takes 5 ms
    let job = |connections: &str| {
        let job = format!(
            "job = {{ mapreduce = {{ mappers = 1, reducers = 1, waves = 2, bytes = \"2 MB\", map = \"1 ms\", reduce = \"1 ms\" }}, \
             hosts = [\"h2\", \"h4\"], connections = \"{connections}\" }}"
        );
        play(&star("1 s", &entry(&job)), |_| ms(5))
    };
    let kept = job("reuse");
    assert_eq!(kept.written(), [(ms(1), 0, 1_000_000), (ms(6), 0, 1_000_000)]);
    // asked for by the bytes of both
    assert_eq!(kept.times(Asked::NotifyAt(0, 2_000_000)), [ms(6)]);
    let begun: Vec<(Time, Time)> = kept.paper.messages.iter().map(|(message, end)| (message.begun, *end)).collect();
    assert_eq!(begun, [(ms(1), ms(6)), (ms(6), ms(11))]);
    assert_eq!(took(&kept), [Some(ms(11 + 1))]);
    // side by side the second arrives at 2 + 5 ms
    let anew = job("new");
    assert_eq!(anew.opened(), [(ms(1), 1, 3), (ms(2), 1, 3)], "ranks are the job's hosts in order");
    assert_eq!(took(&anew), [Some(ms(7 + 1))]);
}

#[test]
fn a_straggler_computes_so_many_times_as_long() {
    let job = |more: &str| {
        let job = format!(
            "job = {{ pipeline = {{ bytes = \"1 kB\", batches = 1, compute = \"10 ms\" }}, hosts = [\"h1\", \"h2\"], \
             stragglers = {{ {more} }} }}"
        );
        took(&play(&star("1 s", &entry(&job)), one_ms))
    };
    // two stages of 3 x 10 ms and a message
    assert_eq!(job("probability = \"100 %\", factor = 3"), [Some(ms(61))]);
    assert_eq!(job("probability = \"100 %\", factor = 1"), [Some(ms(21))]);
}

#[test]
fn no_run_begins_once_the_entry_has_stopped() {
    let job = "stop = \"20 ms\"\njob = { allreduce = { bytes = \"4 MB\", compute = \"5 ms\" }, repeat = 9 }";
    let play = play(&star("1 s", &entry(job)), one_ms);
    // they begin at 0 and 11 ms, and the third would at 22
    assert_eq!(took(&play), [Some(ms(11)); 2]);
}

#[test]
fn runs_that_began_in_the_warm_up_are_in_no_table() {
    let job = "job = { allreduce = { bytes = \"4 MB\", compute = \"5 ms\" }, repeat = 3 }";
    let play = play(&star("1 s", &entry(job)), one_ms);
    // they begin at 0, 11 and 22 ms
    let numbers = |warmup| {
        let (jobs, coflows) = play.applications.jobs(warmup);
        let jobs: Vec<u32> = jobs.iter().map(|job| job.job).collect();
        (jobs, coflows.iter().map(|coflow| coflow.job).collect::<Vec<_>>())
    };
    assert_eq!(numbers(ms(11)), (vec![1, 2], vec![1, 1, 2, 2]), "one that begins with the measurement counts");
    assert_eq!(numbers(ms(12)), (vec![2], vec![2, 2]));
    let completed = |warmup| play.applications.extra(warmup)[0].clone();
    assert_eq!(completed(ms(12)), ("job.jobs_completed".to_string(), 1.0));
}

#[test]
fn a_job_whose_message_has_no_path_does_not_end_and_the_rest_of_it_goes_on() {
    let job = "job = { all_to_all = { bytes = \"1 kB\" }, hosts = [\"h1\", \"h2\", \"h3\"] }";
    let play = play_with(&star("1 s", &entry(job)), one_ms, Some((0, 1)));
    assert_eq!((took(&play), play.opened().len()), (vec![None], 5), "five of six messages");
    let (_, coflows) = play.applications.jobs(Time::ZERO);
    assert_eq!((coflows[0].messages, coflows[0].end_ns), (6, None));
    assert_eq!(play.count(|asked| matches!(asked, Asked::Finish(_))), 5);
    assert_eq!(
        play.applications.extra(Time::ZERO),
        [("job.jobs_completed".to_string(), 0.0), ("job.coflows_completed".to_string(), 0.0)]
    );
}

#[test]
fn times_are_summarized_by_nearest_rank() {
    let ns = |ms: u64| ms * 1_000_000;
    let rows = |all: Vec<u64>| times("x", "job", all).into_iter().map(|(_, value)| value).collect::<Vec<_>>();
    // of 10, 1, 3 and 2 ms: the mean 16 / 4; the median is the second, the 99th percentile number ceil(3.96) = 4
    assert_eq!(rows(vec![ns(10), ns(1), ns(3), ns(2)]), [4.0, 4.0, 2.0, 10.0, 10.0]);
    // of 1 to 200 ms: the median is number 100, the 99th percentile number 198
    assert_eq!(rows((1..=200).map(ns).collect()), [200.0, 100.5, 100.0, 198.0, 200.0]);
    assert_eq!(rows(Vec::new()), [0.0], "without any there is only their number");
    let names: Vec<String> = times("x", "job", vec![1]).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["x.jobs_completed", "x.job_ms_mean", "x.job_ms_median", "x.job_ms_p99", "x.job_ms_max"]);
}
