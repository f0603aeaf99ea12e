//! The study on real kernels: nginx serves, curl downloads, and the emulator's links and enforcer are between them.
//!
//! One network has all wide-area paths, so that all variants run in the same machine conditions. Another has the LAN, whose RTT is so short
//! that nothing else should run at the same time. Each has, for every stack of servers, a CUBIC server and one that runs the algorithms
//! themselves; a switch with the enforcer in front of them; and behind it clients, each at the end of its own path. A client downloads
//! one file after another, with the variants in turn. The server's route to the client selects the algorithm that the server runs, and
//! the port selects the enforced one.

use super::measured::{Measured, Run};
use super::nginx::{self, Site, ended};
use super::{BBR, Case, Compared, File, Host, LOSSES, Path, Stack, Variant};
use crate::emu::{self, Origin, failure};
use crate::failure::Failure;
use crate::known::parse_scenario;
use crate::monitor::{Monitor, Progress};
use crate::source::Source;
use crate::stop::Stop;
use ::emu::Network;
use ::emu::check::STOLEN_MAX;
use ::emu::cpu::Look;
use ::kernel::NAME_PREFIX;
use scenario::Disk;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs, process, thread};
use units::Time;

/// On this port nothing is enforced.
const PORT: u16 = 8080;
/// On this port and the following ones algorithms are enforced, one for each port.
const ENFORCED: u16 = 8081;
/// RTT between a server and the switch.
const NEAR: Time = Time::from_us(100);
/// A client and its downloads, in order, of cases that share a path, a stack and an algorithm.
#[derive(Clone)]
struct Lane {
    of: Case,
    downloads: Vec<(File, Variant)>,
}

/// The clients of a network.
struct Lanes(Vec<Lane>);

impl Lanes {
    /// The clients of the wide-area paths and of the LAN. The longest take nine and five minutes, with the largest files an hour. Each has at
    /// most `most` downloads of a file.
    fn all(full: bool, most: u32) -> [Lanes; 2] {
        let of = |clients: u32, of: Case, rounds: &[(File, u32)]| {
            let lane = |client| {
                let downloads = rounds.iter().flat_map(|(file, rounds)| {
                    let turn = move |round| Variant::ALL.map(|variant| (*file, variant.after(client + round)));
                    (0..most.min(*rounds)).flat_map(turn)
                });
                Lane { of: Case { host: Host::Kernel, ..of }, downloads: downloads.collect() }
            };
            (0..clients).map(lane).collect::<Vec<Lane>>()
        };
        let papers = |path, loss| Case::of(path, loss, File::MAIN);
        let mut far = Vec::new();
        let mut add = |clients, path, loss, rounds: &[_]| far.extend(of(clients, papers(path, loss), rounds));
        let [small, main, large] = File::ALL;
        add(6, Path::Shanghai, Path::Shanghai.loss(), &[(small, 5), (main, 5), (large, 1)]);
        add(10, Path::Oregon, Path::Oregon.loss(), &[(small, 3), (main, 3)]);
        for loss in LOSSES {
            add(2, Path::Shanghai, loss, &[(main, 3)]);
            add(3, Path::Oregon, loss, &[(main, 1)]);
        }
        // a download that takes minutes has a client to itself
        let mut long = vec![(Path::Oregon, large); most.min(5) as usize];
        if full {
            long.extend(Path::WAN.iter().flat_map(|path| File::FULL.map(|file| (*path, file))));
        }
        far.extend(long.iter().flat_map(|(path, file)| {
            let of = Case { host: Host::Kernel, ..papers(*path, path.loss()) };
            Variant::ALL.map(|variant| Lane { of, downloads: vec![(*file, variant)] })
        }));
        far.extend(Case::beyond().chain(with_own_bbr()).flat_map(|case| of(2, case, &[(main, 3)])));
        let largest = if full { File::FULL.map(|file| (file, 1)).to_vec() } else { Vec::new() };
        let rounds = [&[(small, 5), (main, 5), (large, 10)], &largest[..]].concat();
        let near = of(3, papers(Path::Lan, Path::Lan.loss()), &rounds);
        [far, near].map(Lanes)
    }

    /// The servers' stacks: each has two servers, of which the first runs CUBIC.
    fn stacks(&self) -> Vec<Stack> {
        let mut stacks: Vec<Stack> = self.0.iter().map(|lane| lane.of.stack).collect();
        stacks.sort_unstable();
        stacks.dedup();
        stacks
    }

    /// The algorithms, in the order of their ports.
    fn algorithms(&self) -> Vec<&'static str> {
        let mut algorithms: Vec<&str> = self.0.iter().map(|lane| lane.of.algorithm).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        algorithms
    }

    /// The number of the host from which a client downloads this variant, and the port.
    fn source(&self, of: &Case, variant: Variant) -> (usize, u16) {
        let place = |found: Option<usize>| found.expect("it belongs to one of the lanes");
        let server = 2 * place(self.stacks().iter().position(|stack| *stack == of.stack));
        let port = || ENFORCED + place(self.algorithms().iter().position(|name| *name == of.algorithm)) as u16;
        match variant {
            Variant::Cubic => (server, PORT),
            Variant::Native => (server + 1, PORT),
            Variant::Tcon => (server, port()),
        }
    }

    /// The number of hosts before the clients.
    fn servers(&self) -> usize {
        2 * self.stacks().len()
    }

    fn text(&self) -> String {
        let (mut nodes, mut links) = (String::from(r#"{ name = "s1", kind = "switch" }"#), Vec::new());
        for server in 0..self.servers() {
            let _ = write!(nodes, r#", {{ name = "w{server}", kind = "host" }}"#);
            let (near, queue) = (NEAR / 2, "queue = { drop_tail = { packets = 1000 } }");
            links.push(format!(r#"{{ a = "w{server}", b = "s1", rate = "1 Gbit/s", delay = "{near}", {queue} }}"#));
        }
        let mut losses = String::new();
        for (i, Lane { of, .. }) in self.0.iter().enumerate() {
            let (rate, delay) = (of.path.rate(), (of.path.rtt() - NEAR) / 2);
            let _ = write!(nodes, r#", {{ name = "c{i}", kind = "host" }}"#);
            links.push(format!(
                r#"{{ a = "s1", b = "c{i}", rate = "{rate}", delay = "{delay}", queue = {{ drop_tail = {{ packets = 50 }} }} }}"#
            ));
            if of.loss > 0 {
                let percent = f64::from(of.loss) / 10.0;
                let _ = writeln!(losses, "[[network.loss]]\nlink = \"s1->c{i}\"\nprobability = \"{percent} %\"");
            }
        }
        let (mut rules, mut traffic) = (String::new(), String::new());
        for (i, cc) in self.algorithms().iter().enumerate() {
            let _ = writeln!(rules, "[[enforcer.rule]]\nport = {}\ncc = \"{cc}\"", usize::from(ENFORCED) + i);
            // only so that the kernel loads the algorithm; routes select it
            let _ = writeln!(traffic, "[[traffic]]\ncc = \"{cc}\"\nbulk = {{ from = \"w1\", to = \"c0\" }}");
        }
        let links = links.join(", ");
        format!(
            "title = \"Downloads\"\nduration = \"1 s\"\n[network.topology.explicit]\nnodes = [{nodes}]\nlinks = [{links}]\n{losses}\
             [enforcer]\nat = \"s1\"\n{rules}{traffic}"
        )
    }
}

/// The kernel's own bbr on the server, to compare with ours enforced, if this kernel has it.
fn with_own_bbr() -> Option<Case> {
    let has_it = emu::algorithm_names(&[]).iter().any(|name| name == "kernel:bbr");
    let case = Case::of(Path::Shanghai, Path::Shanghai.loss(), File::SWEPT);
    has_it.then_some(Case { stack: Stack::OwnBbr, ..case })
}

/// Why this machine cannot run it, if so.
pub fn absent() -> Option<String> {
    let missing = |program: &&str| {
        let version = if *program == "nginx" { "-v" } else { "-V" };
        Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
    };
    let missing: Vec<&str> = ["nginx", "curl", "ip"].into_iter().filter(missing).collect();
    if !missing.is_empty() {
        return Some(format!("{} not found; on Debian: apt-get install nginx-light curl iproute2", missing.join(", ")));
    }
    emu::absent()
}

/// Downloads everything, with `full` also the largest files, each at most this many times; returns also problems.
///
/// # Errors
/// The network or the servers cannot be created, or the user stopped it.
pub fn downloads(full: bool, most: u32, monitor: Monitor<'_>) -> Result<Compared, Failure> {
    let [far, near] = Lanes::all(full, most);
    let (far, mut all) = (measure(&far, monitor)?, measure(&near, monitor)?);
    all.measured.extend(far.measured);
    all.findings.extend(far.findings);
    Ok(all)
}

fn measure(all: &Lanes, monitor: Monitor<'_>) -> Result<Compared, Failure> {
    let (text, lanes) = (all.text(), &all.0);
    let runs = parse_scenario("downloads.toml", &text, &[], &Disk { base: PathBuf::new() })?;
    let scenario = &runs[0].scenario;
    let (progress, stop) = (Progress::of(monitor, lanes.len()), monitor.stop());
    let _ = ::emu::hosts::clean();
    let before = Look::now();
    let opened = ::emu::open(scenario, None, |network| {
        let _servers = Servers::start(network, all, stop)?;
        thread::scope(|scope| {
            let client = |(i, _)| {
                let progress = &progress;
                scope.spawn(move || lane_of(network, all, i, progress, stop))
            };
            let clients: Vec<_> = lanes.iter().enumerate().map(client).collect();
            let of = |client: thread::ScopedJoinHandle<'_, _>| client.join().expect("a client does not panic");
            clients.into_iter().map(of).collect::<Result<Vec<Vec<Option<f64>>>, Failure>>()
        })
    });
    let source = Source::from("downloads.toml");
    let origin = Origin { source: &source, sets: &[] };
    let (seconds, counted) = opened.map_err(|error| failure(error, origin))?;
    let cpu = Look::now().since(&before);
    let late = counted.lateness.release.percentile(99.0);
    let rtt = lanes.iter().map(|lane| lane.of.path.rtt()).min().unwrap_or_default();
    let valid = if late > rtt / 2 {
        "NOT VALID, lateness exceeded half of the shortest RTT. "
    } else if cpu.stolen > STOLEN_MAX {
        "NOT VALID, this virtual machine's host stole too much CPU time. "
    } else {
        ""
    };
    let mut paths: Vec<&str> = lanes.iter().map(|lane| lane.of.path.name()).collect();
    paths.sort_unstable();
    paths.dedup();
    let counters = counted.gates.first().map(|gate| *gate.counters()).unwrap_or_default();
    let findings = vec![format!(
        "{valid}{}: the enforcer sent {} packets, {} of them retransmissions, and absorbed {} retransmissions of the server; lateness \
         (99 %) at most {late}; CPUs {:.0} % busy, {:.1} % stolen.",
        paths.join(" and "),
        counters.sent,
        counters.retransmitted,
        counters.absorbed,
        cpu.busy * 100.0,
        cpu.stolen * 100.0
    )];
    Ok(Compared { measured: gathered(lanes, &seconds?), findings })
}

/// The downloads' times by case: setting by setting, with its three variants in order.
fn gathered(lanes: &[Lane], seconds: &[Vec<Option<f64>>]) -> Vec<Measured> {
    let mut cases: Vec<(Case, Vec<Option<f64>>)> = Vec::new();
    let all = lanes.iter().zip(seconds);
    for (lane, (file, variant), took) in
        all.flat_map(|(lane, took)| lane.downloads.iter().zip(took).map(move |(what, took)| (lane, *what, *took)))
    {
        let of = |variant| Case { file, variant, ..lane.of };
        if !cases.iter().any(|(case, _)| *case == of(variant)) {
            cases.extend(Variant::ALL.map(|variant| (of(variant), Vec::new())));
        }
        let its = cases.iter_mut().find(|(case, _)| *case == of(variant)).expect("all cases are listed");
        its.1.push(took);
    }
    let measured = |(case, all): (Case, Vec<Option<f64>>)| {
        let seconds: Vec<f64> = all.iter().copied().flatten().collect();
        Measured::of(case, &[Run { unfinished: all.len() - seconds.len(), seconds, ..Run::default() }])
    };
    cases.into_iter().map(measured).collect()
}

/// The downloads of client `i`: their times, seconds; `None` for one that failed.
fn lane_of(
    network: &Network,
    lanes: &Lanes,
    i: usize,
    progress: &Progress<'_>,
    stop: &Stop,
) -> Result<Vec<Option<f64>>, Failure> {
    let (hosts, lane) = (network.hosts(), &lanes.0[i]);
    let path = lane.of.path;
    let (mut seconds, mut reported) = (Vec::new(), 0);
    for (file, variant) in &lane.downloads {
        let (server, port) = lanes.source(&lane.of, *variant);
        // ten times what the link needs, plus two minutes; with 3 % losses CUBIC takes six times as long
        let most = path.rate().serialization(file.kilobytes * 1000) * 10 + Time::from_secs(120);
        let from = (hosts[server].address(), port);
        seconds.push(match download(&hosts[lanes.servers() + i], from, *file, most, stop) {
            Ok(took) => Some(took),
            // one of hundreds: the findings report what is missing
            Err(Failure::Run(why)) => {
                progress.note(&format!("warning: {why}"));
                None
            }
            Err(failure) => return Err(failure),
        });
        let done = Progress::share(Time::from_secs(seconds.len() as u64), Time::from_secs(lane.downloads.len() as u64));
        progress.advance(done - reported);
        reported = done;
    }
    progress.finished(
        &Case { file: File::MAIN, ..lane.of }.setting(),
        &format!("{} downloads in {:.0} s", seconds.len(), seconds.iter().flatten().sum::<f64>()),
    );
    Ok(seconds)
}

/// Time that curl takes for a file, seconds.
fn download(
    client: &::emu::hosts::Host,
    (server, port): (Ipv4Addr, u16),
    file: File,
    most: Time,
    stop: &Stop,
) -> Result<f64, Failure> {
    let url = format!("http://{server}:{port}/{}", file.name());
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--output", "/dev/null"]);
    curl.args(["--write-out", "%{time_total} %{size_download}", "--max-time", &most.as_secs_f64().to_string(), &url]);
    let said = ended(client, curl, stop)?;
    let mut words = said.split_whitespace();
    let seconds = words.next().and_then(|word| word.parse().ok());
    let whole = words.next().is_some_and(|bytes| bytes == (file.kilobytes * 1000).to_string());
    seconds.filter(|_| whole).ok_or_else(|| Failure::Run(format!("{url}: curl says {said:?}")))
}

/// The web servers and their files. The servers end with their hosts.
struct Servers(PathBuf);

impl Servers {
    fn start(network: &Network, lanes: &Lanes, stop: &Stop) -> Result<Servers, Failure> {
        let servers = Servers(env::temp_dir().join(format!("opentcp-tcon-{}", process::id())));
        let (hosts, stacks) = (network.hosts(), lanes.stacks());
        let files = [&File::ALL[..], &File::FULL].concat();
        let ports = PORT..=PORT + lanes.algorithms().len() as u16;
        for (i, host) in hosts[..lanes.servers()].iter().enumerate() {
            let stack = stacks[i / 2];
            let mut script = String::from("set -e\n");
            for sysctl in stack.sysctls() {
                let _ = writeln!(script, "sysctl -q -w 'net.ipv4.{sysctl}'");
            }
            for (lane, client) in lanes.0.iter().zip(&hosts[lanes.servers()..]) {
                let ours = format!("{NAME_PREFIX}{}", lane.of.algorithm);
                let own = if stack == Stack::OwnBbr { BBR } else { &ours };
                let algorithm = if i % 2 == 0 { "cubic" } else { own };
                let (client, route) = (client.address(), stack.route());
                let _ = writeln!(script, "ip route add {client} dev eth0 congctl {algorithm} {route}");
            }
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]);
            ended(host, shell, stop)?;
            let folder = &servers.0.join(host.name());
            nginx::serve(host, Site { folder, files: &files, processes: 1, ports: ports.clone() }, stop)?;
        }
        Ok(servers)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Event;

    #[test]
    fn every_setting_has_its_three_variants_side_by_side() {
        let mut settings = 0;
        for lanes in Lanes::all(true, 1) {
            assert!(lanes.0.len() + lanes.servers() <= ::emu::limits::HOSTS_MAX, "{} clients", lanes.0.len());
            let mut seconds: Vec<Vec<Option<f64>>> =
                lanes.0.iter().map(|lane| vec![Some(1.0); lane.downloads.len()]).collect();
            let measured = gathered(&lanes.0, &seconds);
            assert!(measured.iter().all(|one| one.unfinished == 0));
            seconds[0][0] = None;
            assert_eq!(gathered(&lanes.0, &seconds).iter().map(|one| one.unfinished).sum::<usize>(), 1);
            for [cubic, native, tcon] in measured.as_chunks::<3>().0 {
                assert_eq!(cubic.case.setting(), tcon.case.setting());
                assert_eq!([cubic, native, tcon].map(|one| one.case.variant), Variant::ALL);
                assert!([cubic, native, tcon].iter().all(|one| !one.seconds.is_empty()), "{}", cubic.case.setting());
                settings += 1;
            }
        }
        // three paths with five files, two with five other loss rates, and the cases beyond the paper
        assert_eq!(settings, 15 + 10 + Case::beyond().chain(with_own_bbr()).count());
    }

    #[test]
    fn curl_downloads_from_nginx_directly_and_through_the_enforcer() {
        if let Some(reason) = absent() {
            eprintln!("skipped: {reason}");
            return;
        }
        let downloads = Variant::ALL.map(|variant| (File::ALL[0], variant)).to_vec();
        let of = |algorithm, stack| Lane {
            of: Case { host: Host::Kernel, algorithm, stack, ..Case::of(Path::Shanghai, 3, File::MAIN) },
            downloads: downloads.clone(),
        };
        let lanes = [(BBR, Stack::Linux), ("vegas", Stack::Linux), (BBR, Stack::SmallBuffers)];
        let lanes = Lanes(lanes.map(|(algorithm, stack)| of(algorithm, stack)).to_vec());
        let (unheard, stop) = (|_: Event<'_>| {}, Stop::default());
        let compared = measure(&lanes, Monitor::new(&unheard, &stop));
        let Compared { measured, findings } = compared.expect("the network is made and the files come");
        let names: Vec<&str> = measured[..4].iter().map(|one| one.case.variant_name()).collect();
        assert_eq!(names, ["cubic", "bbr", "tcon", "cubic"]);
        for one in &measured {
            // 1.7 MB at 10 Mbit/s
            assert!(one.seconds[0] > 1.4 && one.seconds[0] < 20.0, "{}: {:?}", one.case.setting(), one.seconds);
        }
        let sent = findings.last().and_then(|words| words.split_once("the enforcer sent ")?.1.split(' ').next());
        let sent: u64 = sent.and_then(|number| number.parse().ok()).expect("a number");
        assert!((3 * 1175..9000).contains(&sent), "three downloads of 1175 packets are enforced: {findings:?}");
    }
}
