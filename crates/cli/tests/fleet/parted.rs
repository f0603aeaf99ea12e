//! Half of the hosts are parted from the server.

use crate::world::{HOSTS, POLICY, World};
use policy::Epoch;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};
use testkit::{ip, until};

/// T of the policy here, seconds. Of a shorter one a busy machine's disk, on which each epoch is stored before it counts, takes a good part.
const PERIOD_S: u64 = 2;
/// How often is looked: each time takes four processes.
const LOOK: Duration = Duration::from_millis(100);
const PARTED: [usize; 2] = [3, 4];
const OTHERS: [usize; 2] = [1, 2];

/// What is seen from the outside: hosts' epochs and the Oracle's decisions, and when they came.
struct Watch<'a> {
    world: &'a World,
    began: Instant,
    epochs: [Epoch; HOSTS],
    at: [Instant; HOSTS],
    decided: (usize, Instant),
    /// The longest time between two epochs of the hosts that are not parted, and between two decisions.
    longest: [Duration; 2],
    /// For a failure's message.
    lines: Vec<String>,
}

impl Watch<'_> {
    fn new(world: &World) -> Watch<'_> {
        let now = Instant::now();
        let epochs = std::array::from_fn(|i| world.epoch(i + 1));
        let decided = (world.decisions("oracle").len(), now);
        let longest = [Duration::ZERO; 2];
        Watch { world, began: now, epochs, at: [now; HOSTS], decided, longest, lines: Vec::new() }
    }

    /// Looks at the hosts; an epoch must not be lower than before.
    fn look(&mut self) {
        sleep(LOOK);
        let decided = self.world.decisions("oracle").len();
        let now = Instant::now();
        if decided > self.decided.0 {
            self.longest[1] = self.longest[1].max(now - self.decided.1);
            self.decided = (decided, now);
            self.note(&format!("decision {decided}"));
        }
        for host in 1..=HOSTS {
            let epoch = self.world.epoch(host);
            assert!(epoch >= self.epochs[host - 1], "h{host} has taken {epoch} after {}", self.epochs[host - 1]);
            if epoch > self.epochs[host - 1] {
                if OTHERS.contains(&host) {
                    self.longest[0] = self.longest[0].max(now - self.at[host - 1]);
                }
                (self.epochs[host - 1], self.at[host - 1]) = (epoch, now);
                self.note(&format!("h{host} has epoch {epoch}"));
            }
        }
        for host in OTHERS {
            assert!(self.world.is_set(host), "h{host} has lost its rule: {}\n{}", self.counts(), self.lines.join("\n"));
        }
    }

    fn note(&mut self, what: &str) {
        self.lines.push(format!("{:7.2} s: {what}", self.began.elapsed().as_secs_f64()));
    }

    fn counts(&self) -> String {
        let count = |host| format!("h{host}: {}", self.world.status(host)["report"]["counts"]);
        (1..=HOSTS).map(count).collect::<Vec<_>>().join("; ")
    }
}

#[test]
fn parted_hosts_return_to_their_defaults_and_the_others_go_on() {
    let Some(world) = World::new() else { return };
    let policy = POLICY.replace("\"1 s\"", &format!("\"{PERIOD_S} s\"\nlifetime = \"{} s\"", 3 * PERIOD_S));
    fs::write(world.path("policy.toml"), policy).unwrap();
    let oracle = world.oracle();
    let agents = world.agents(1..=HOSTS);
    until("all are steered", || (1..=HOSTS).all(|host| world.is_set(host)));
    let hub = &world.machines[0];
    let mut watch = Watch::new(&world);
    // one's cable is cut; what goes to the other is lost without a word, and what comes from it is not
    ip(&format!("-n {hub} link set eth3 down"));
    ip(&format!("-n {hub} route add blackhole 10.97.4.2/32"));
    let parted = Instant::now();
    let mut ended = [false; 2];
    until("the parted have their own settings", || {
        watch.look();
        for (host, ended) in PARTED.into_iter().zip(&mut ended) {
            if !*ended && !world.is_set(host) {
                *ended = true;
                let took = parted.elapsed().as_secs_f64();
                println!(
                    "h{host} is back at its defaults {took:.2} s after it was parted, lifetime {} s",
                    3 * PERIOD_S
                );
            }
        }
        ended == [true; 2]
    });
    let (decided, before) = (watch.decided.0, PARTED.map(|host| world.epoch(host)));
    until("the Oracle decides on", || {
        watch.look();
        watch.decided.0 >= decided + 2
    });
    assert_eq!(PARTED.map(|host| (world.is_set(host), world.epoch(host))), before.map(|epoch| (false, epoch)));
    until("the others have newer epochs", || {
        watch.look();
        OTHERS.into_iter().all(|host| before.iter().all(|before| watch.epochs[host - 1] > *before))
    });

    let newest = world.decisions("oracle").last().and_then(|last| last["epoch"].as_u64()).map(Epoch::of).unwrap();
    ip(&format!("-n {hub} link set eth3 up"));
    ip(&format!("-n {hub} route del blackhole 10.97.4.2/32"));
    let healed = Instant::now();
    let mut steered = [false; 2];
    until("the parted have the newest epoch", || {
        watch.look();
        for (host, steered) in PARTED.into_iter().zip(&mut steered) {
            if !*steered && watch.epochs[host - 1] > newest && world.is_set(host) {
                *steered = true;
                println!("h{host} is steered {:.2} s after the network was whole", healed.elapsed().as_secs_f64());
            }
        }
        steered == [true; 2]
    });
    for (host, expired) in OTHERS.map(|host| (host, 0)).into_iter().chain(PARTED.map(|host| (host, 1))) {
        assert_eq!(world.count(host, "expired"), expired, "h{host}: {}", watch.counts());
    }
    let [epochs, decisions] = watch.longest.map(|longest| longest.as_secs_f64());
    println!(
        "T = {PERIOD_S} s: at most {decisions:.2} s between two decisions, {epochs:.2} s between two epochs of a host; {}",
        watch.counts()
    );
    agents.into_iter().for_each(testkit::Running::stop);
    oracle.stop();
    world.untouched();
}
