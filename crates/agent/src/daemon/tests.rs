//! What the agent's loop says, reports, and reckons between its looks at the kernel.

use super::*;
use bus::Hub as _;

#[test]
fn hosts_that_are_heard_and_round_trip_times_are_reported() {
    let with = |srtt_us| Connection {
        remote: "10.0.0.1".parse().unwrap(),
        local_port: 1,
        remote_port: 2,
        algorithm: "cubic".into(),
        rto_us: 204_000,
        ato_us: 40_000,
        srtt_us,
        cwnd: 10,
        rcv_ssthresh: 1,
        max_pacing_rate: u64::MAX,
        ecn: false,
        heard_ms: None,
        cgroup: None,
        inode: 0,
    };
    let from = |remote: &str, heard_ms| Connection { remote: remote.parse().unwrap(), heard_ms, ..with(1) };
    let open = [
        from("10.0.0.2", Some(999)),
        from("10.0.0.2", Some(3)),
        from("fd00::3", Some(0)),
        from("10.0.0.4", Some(1001)),
        from("10.0.0.5", None),
        from("127.0.0.1", Some(0)),
    ];
    assert_eq!(heard(&open), 2, "two other hosts within a second");
    // 100 us lies between 2^6.5 = 90.5 and 2^6.75 = 107.6
    assert_eq!(rtt_steps(&[with(100), with(64), with(107), with(0)]), [(64, 1), (108, 2)]);
}

#[test]
fn of_all_connections_a_process_knows_its_own() {
    use std::net::{TcpListener, TcpStream};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let open = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let find = || kernel::connections().unwrap().into_iter().find(|one| one.remote_port == port).map(|one| one.inode);
    let inode = find().expect("it is open");
    assert!(own_sockets().unwrap().contains(&inode));
    drop(open);
    assert!(!own_sockets().unwrap().contains(&inode), "it is closed");
}

/// An agent without a program in the kernel, and its Oracle's end of a bus within the process.
struct Alone {
    _folder: tempfile::TempDir,
    config: Config,
    mind: Mind,
    tuner: Tuner,
    oracle: bus::ChannelOracle,
    said: Vec<String>,
}

fn config(folder: &Path) -> Config {
    Config {
        identity: policy::Identity { host: "h1".into(), ..policy::Identity::default() },
        rack: String::new(),
        key: bus::files::generate(&folder.join("key")).unwrap(),
        bus: bus::Address::Unix(folder.join("nobody")),
        places: crate::config::Places { state: folder.to_path_buf(), pins: folder.join("pins") },
        cgroup: folder.to_path_buf(),
        means: crate::config::Means::Routes,
        racks: Vec::new(),
        links: Vec::new(),
        needs_ecn: BTreeSet::new(),
        metrics: None,
        guardian: None,
    }
}

#[test]
fn a_link_that_names_no_interface_is_refused_with_those_that_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    let mut with = |interface: &str| {
        config.links = vec![(interface.to_string(), Rate::from_gbps(1))];
        check(&config)
    };
    with("lo").unwrap();
    let error = with("eht0").unwrap_err().to_string();
    assert!(error.contains("--link eht0: there is no such interface here; there are"), "{error}");
    assert!(error.contains("lo"), "{error}");
}

impl Alone {
    fn new() -> Alone {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let (mut mind, (tuner, notes)) = (Mind::new(&config).unwrap(), Tuner::take_over(&config).unwrap());
        assert!(notes.is_empty(), "{notes:?}");
        let mut oracle = bus::channel();
        mind.bus = Some(Box::new(oracle.agent().expect("the first one")));
        Alone { _folder: folder, config, mind, tuner, oracle, said: Vec::new() }
    }

    fn listen(&mut self) -> bool {
        self.mind.listen(Duration::ZERO, &mut |line| self.said.push(line.to_string()))
    }

    fn report(&mut self, now: Time) {
        report(&self.config, &mut self.mind, &self.tuner, now, &mut |line| self.said.push(line.to_string()));
    }

    /// The epochs of the reports that have come, and how many flows each has.
    fn reported(&mut self) -> Vec<(Option<u64>, u64)> {
        let mut all = Vec::new();
        while let Some(message) = self.oracle.receive(Duration::ZERO).unwrap() {
            let report = Report::from_bytes(&message.bytes).unwrap();
            all.push((report.of_epoch, report.telemetry.iter().map(|kind| kind.flows).sum()));
        }
        all
    }
}

/// Connections that have ended.
fn ended(flows: u32) -> Ended {
    let mut ended = Ended::default();
    for _ in 0..flows {
        let record = kernel::retune::Record {
            netns: 1,
            began: Duration::from_secs(1),
            ended: Duration::from_secs(2),
            bytes_acked: 1,
            bytes_received: 1,
            remote: "10.1.2.3".parse().unwrap(),
            local_port: 1,
            remote_port: 2,
            active: true,
            rule: 0,
            segs_out: 3,
            data_segs_out: 2,
            retransmits: 0,
            delivered: 2,
            delivered_ce: 0,
            srtt_us: 100,
            min_rtt_us: 90,
            cwnd: 10,
            initial_cwnd: None,
            algorithm: "cubic".to_string(),
        };
        ended.add(&record, &Names::default(), &[]);
    }
    ended
}

#[test]
fn rtts_are_those_of_open_connections_or_where_none_is_open_just_now_of_ended_ones() {
    let mut mind = Alone::new().mind;
    for (live_flows, open, steps) in [
        (Some(2.5), vec![], vec![(108, 3)]),
        (Some(2.5), vec![(64, 1)], vec![(64, 1)]),
        (Some(0.0), vec![], vec![]),
        (None, vec![], vec![]),
    ] {
        mind.host.live_flows = live_flows;
        mind.host.srtt_us = open;
        assert_eq!(mind.measured(&ended(3)).srtt_us, steps, "{live_flows:?}");
    }
}

#[test]
fn a_thousand_rejected_cues_fill_no_log() {
    let mut alone = Alone::new();
    for _ in 0..60 {
        alone.oracle.send(b"noise").unwrap();
    }
    assert!(!alone.listen());
    assert_eq!(alone.mind.life.counts().rejected, 60);
    // the first, the second, the fourth, ...
    let numbers: Vec<&str> =
        alone.said.iter().filter_map(|line| line.strip_prefix("CUE rejected (")?.split(' ').next()).collect();
    assert_eq!(numbers, ["1", "2", "4", "8", "16", "32"], "{:?}", alone.said);
}

#[test]
fn an_oracle_that_comes_and_goes_is_reported_once_each() {
    let mut alone = Alone::new();
    let mut said = Vec::new();
    assert!(alone.mind.reach(&mut |line| said.push(line.to_string())));
    assert!(!alone.mind.reach(&mut |line| said.push(line.to_string())), "it was reached before");
    assert_eq!(said, ["connected to the Oracle"]);
    let (other, oracle) = (bus::channel(), std::mem::replace(&mut alone.oracle, bus::channel()));
    drop((other, oracle));
    assert!(!alone.listen());
    assert_eq!(alone.said, ["the connection to the Oracle is lost: its CUEs remain until they expire"]);
    assert!(alone.mind.bus.is_none(), "another may be looked for");
    // there is none at its place: the first attempt is reported, those that follow come a second later and are not
    let (config, mind) = (&alone.config, &mut alone.mind);
    let mut said = Vec::new();
    for ms in [5, 6, 1004, 1005] {
        assert!(!mind.connect(config, Time::from_ms(ms), &mut |line| said.push(format!("{ms}: {line}"))));
    }
    assert!(said.len() == 1 && said[0].starts_with("5: no Oracle yet: "), "{said:?}");
    assert_eq!(mind.retry_at, Time::from_ms(2005));
}

#[test]
fn what_ended_in_earlier_periods_is_reported_first_and_not_lost_to_a_busy_oracle() {
    let mut alone = Alone::new();
    alone.mind.earlier = [(3, ended(30)), (4, ended(40))].into();
    alone.mind.ended = ended(50);
    // a full queue: the Oracle reads nothing
    let noise = b"noise";
    while alone.mind.bus.as_mut().unwrap().send(noise).is_ok() {}
    let now = Time::from_secs(1);
    alone.report(now);
    while alone.oracle.receive(Duration::ZERO).unwrap().is_some() {}
    let waiting: Vec<u64> = alone.mind.earlier.iter().map(|(epoch, _)| *epoch).collect();
    assert_eq!(waiting, [3, 4], "they wait");
    alone.report(now);
    assert_eq!(alone.reported(), [(Some(3), 30), (Some(4), 40), (None, 50)]);
    alone.report(now);
    assert_eq!(alone.reported(), [(None, 0)], "once");
}

#[test]
fn of_periods_that_an_oracle_misses_the_last_two_are_kept() {
    let mut alone = Alone::new();
    for epoch in 1..=4 {
        alone.mind.ended = ended(epoch * 10);
        alone.mind.begin_period(u64::from(epoch));
    }
    alone.report(Time::from_secs(1));
    assert_eq!(alone.reported(), [(Some(3), 30), (Some(4), 40), (None, 0)]);
}

#[test]
fn what_does_not_fit_a_report_is_refused_before_an_agent_begins() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    assert!(check(&config).is_ok());
    let link = || ("lo".to_string(), Rate::from_gbps(1));
    config.links = (0..LINKS_MAX / 2).map(|_| link()).collect();
    assert!(check(&config).is_ok(), "each has two directions");
    config.links.push(link());
    let error = check(&config).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("this host cannot be reported: {} links; at most {}", LINKS_MAX / 2 + 1, LINKS_MAX / 2)
    );
    config.links.clear();
    config.racks = vec![("10.0.0.0/8".parse().unwrap(), "r".repeat(10_000))];
    assert!(check(&config).is_err_and(|error| error.is_input()));
    config.racks.clear();
    config.identity.host = String::new();
    assert!(check(&config).is_err());
}

#[test]
fn a_link_is_as_busy_as_what_it_carried_since_the_last_report() {
    let traffic = |received, sent, packets, dropped| Traffic { received, sent, packets, dropped };
    let host = Host { name: "h1".into(), ..Host::default() };
    let link = ("eth0".to_string(), Rate::from_mbps(8));
    // a megabyte a second: of 2 s, 1 MB out is half and 0.5 MB in a quarter; of 90 + 10 packets ten were dropped
    let (before, after) = (traffic(1_000, 2_000, 10, 1), traffic(501_000, 1_002_000, 100, 11));
    let [out, into] = &directions(&host, &link, Time::from_secs(2), (&before, &after))[..] else { panic!("two") };
    let row = |link: &Link| (link.name.clone(), link.from.clone(), link.to.clone(), link.utilization, link.drop_rate);
    let edge = || "switch of h1".to_string();
    assert_eq!(row(out), ("h1 eth0 out".into(), "h1".into(), edge(), Some(0.5), Some(0.1)));
    assert_eq!(row(into), ("h1 eth0 in".into(), edge(), "h1".into(), Some(0.25), None));
    let racked = Host { rack: "r7".into(), ..host };
    let quiet = directions(&racked, &link, Time::from_secs(2), (&before, &before));
    assert_eq!((quiet[0].to.as_str(), quiet[0].utilization, quiet[0].drop_rate), ("r7", Some(0.0), Some(0.0)));
    // counters that began anew, and more than the link can carry
    let anew = directions(&racked, &link, Time::from_secs(2), (&after, &before));
    assert_eq!((anew[0].utilization, anew[1].utilization), (Some(0.0), Some(0.0)));
    let fast = directions(&racked, &link, Time::from_ms(1), (&before, &after));
    assert_eq!(fast[0].utilization, Some(1.0));
}

#[test]
fn guards_are_fed_four_times_a_second_and_twice_while_nothing_is_sent() {
    assert_eq!(sample_after(true, false), Time::from_ms(250));
    assert_eq!(sample_after(true, true), Time::from_ms(500));
    assert_eq!([true, false].map(|is_quiet| sample_after(false, is_quiet)), [Time::from_secs(1); 2]);
}

#[test]
fn a_namespace_that_shifts_the_time_since_boot_is_seen() {
    assert!(!is_shifted(""), "kernels without them");
    assert!(!is_shifted("monotonic           0         0\nboottime            0         0\n"));
    assert!(
        !is_shifted("monotonic        1000         0\nboottime            0         0\n"),
        "deadlines count by the other"
    );
    assert!(is_shifted("monotonic           0         0\nboottime         1000         0\n"));
    assert!(is_shifted("monotonic           0         0\nboottime            0         5\n"));
}

#[test]
fn algorithms_and_cgroups_have_the_names_of_policies() {
    let names = ["reno\n", "ot_vegas\n", "cubic\n", ""].map(name_in_policies);
    assert_eq!(names, ["newreno", "vegas", "cubic", ""]);
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
    let named = |folder: &str| cgroup_name(Path::new(folder), &mounts);
    assert_eq!((named("/sys/fs/cgroup"), named("/sys/fs/cgroup/machine/web")), ("/".into(), "/machine/web".into()));
    assert_eq!(named("/sys/fs/cgroup/unified/web"), "/web", "below the nearest mount");
    assert_eq!(named("/elsewhere"), "/");
}
