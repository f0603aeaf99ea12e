//! The whole loop for long: an Oracle, an agent at the client and an enforcer for the server, which follow its CUEs. Connections come and go,
//! policies change, agents are restarted and killed, enforcers too; no byte may be wrong, nothing may grow, and nothing may be left.
//!
//! `tools/soak` runs it for two hours.

use crate::world::World;
use crate::{check, send};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::{Running, asked, eventually, policy_for_all, until};

/// Without SOAK_MINUTES: enough for every kind of change.
const SHORT: Duration = Duration::from_secs(30);
/// From so long on, growth fails the test; in less than that, caches and pools still fill.
const JUDGED: Duration = Duration::from_secs(20 * 60);
/// Between two changes.
const PAUSE: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(60));
/// How often processes are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// What a process may grow by in an hour, of its memory.
const GROWTH_MAX: f64 = 0.05;
const BYTES: usize = 200_000;

/// Algorithms of the policies that are applied in turn, and the kernel's names of them: its own, and of ours where another program, as
/// an emulation, has loaded it.
const ALGORITHMS: [(&str, [&str; 2]); 2] =
    [("newreno", [" reno ", " ot_newreno "]), ("cubic", [" cubic ", " ot_cubic "])];

/// What happens to the daemons, again and again.
#[derive(Clone, Copy)]
enum Change {
    StopAgent,
    KillAgent,
    StopEnforcer,
    KillEnforcer,
    ApplyPolicy,
}

const CHANGES: [Change; 6] = [
    Change::StopAgent,
    Change::ApplyPolicy,
    Change::KillEnforcer,
    Change::KillAgent,
    Change::ApplyPolicy,
    Change::StopEnforcer,
];

/// A look at a process.
#[derive(Clone, Copy)]
struct Look {
    /// Since the beginning.
    hours: f64,
    resident_kb: f64,
    descriptors: f64,
}

impl Look {
    fn at(process: u32, began: Instant) -> Option<Look> {
        let place = Path::new("/proc").join(process.to_string());
        let status = fs::read_to_string(place.join("status")).ok()?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(Look {
            hours: began.elapsed().as_secs_f64() / 3600.0,
            resident_kb: resident.split_whitespace().next()?.parse().ok()?,
            descriptors: fs::read_dir(place.join("fd")).ok()?.count() as f64,
        })
    }
}

/// A daemon, started again and again, and what was seen of each of its processes.
struct Watched {
    name: &'static str,
    running: Option<Running>,
    lives: Vec<Vec<Look>>,
}

impl Watched {
    fn new(name: &'static str, running: Running) -> Watched {
        Watched { name, running: Some(running), lives: vec![Vec::new()] }
    }

    /// The messages of the present process.
    fn said(&self) -> String {
        format!("{}:\n{}\n", self.name, self.running.as_ref().map(Running::said).unwrap_or_default())
    }

    fn look(&mut self, began: Instant) {
        let running = self.running.as_mut().expect("it is started again at once");
        assert!(!running.has_ended(), "{} ended by itself: {}", self.name, running.said());
        let look = Look::at(running.id(), began).expect("it runs");
        self.lives.last_mut().expect("there is one").push(look);
    }

    /// Ends it by `end`, and starts the next.
    fn again(&mut self, end: impl FnOnce(Running), start: impl FnOnce() -> Running) {
        end(self.running.take().expect("it runs"));
        self.running = Some(start());
        self.lives.push(Vec::new());
    }

    /// By how much a value grows in an hour: one line through the looks at each process, all with the same slope, without the first fifth
    /// of each life, in which a process allocates what it will need. Long lives count most.
    fn slope(&self, value: fn(&Look) -> f64) -> f64 {
        let (mut along, mut square) = (0.0, 0.0);
        for life in &self.lives {
            let life = &life[life.len() / 5..];
            let n = life.len().max(1) as f64;
            let mean = |value: fn(&Look) -> f64| life.iter().map(value).sum::<f64>() / n;
            let (hours, middle) = (mean(|look| look.hours), mean(value));
            for look in life {
                along += (look.hours - hours) * (value(look) - middle);
                square += (look.hours - hours).powi(2);
            }
        }
        if square > 0.0 { along / square } else { 0.0 }
    }

    fn last(&self, value: fn(&Look) -> f64) -> f64 {
        self.lives.iter().rev().find_map(|life| life.last()).map_or(0.0, value)
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (resident, descriptors) = (|look: &Look| look.resident_kb, |look: &Look| look.descriptors);
        write!(
            f,
            "{}: {} processes; {:.0} kB resident, {:+.0} kB an hour; {:.0} file descriptors, {:+.2} an hour",
            self.name,
            self.lives.len(),
            self.last(resident),
            self.slope(resident),
            self.last(descriptors),
            self.slope(descriptors),
        )
    }
}

/// Short transfers from the server, each on a connection of its own, until all is over; how many there were.
fn traffic(world: &World, over: &AtomicBool) -> u64 {
    let mut transfers = 0;
    while !over.load(Ordering::Relaxed) {
        let (mut client, mut server) = world.connection();
        thread::scope(|scope| {
            scope.spawn(|| send(&mut server, BYTES, Some(2_000_000)));
            check(&mut client, BYTES, &AtomicU64::new(0));
        });
        transfers += 1;
    }
    transfers
}

fn start_agent(world: &World) -> Running {
    world.agent_at_client(&["--host", "web"])
}

fn start_enforcer(world: &World) -> Running {
    let oracle = ["--oracle", "oracle.sock", "--key", "oracle.key.pub", "--state", "enforcer"];
    world.enforce(&[&["--host", "db=10.97.0.1/32"][..], &oracle].concat())
}

/// Both hosts follow the policy: the enforcer runs its algorithm, and so does a new connection of the client.
fn wait_for_effect(world: &World, daemons: &[Watched], (algorithm, names): (&str, [&str; 2])) {
    let enforced = || world.status()["flows_by_algorithm"][algorithm].as_u64() >= Some(1);
    let at_client = || {
        let (client, _server) = world.connection();
        let shown = world.shown_at_client(&client);
        names.iter().any(|name| shown.contains(name))
    };
    let said = || daemons.iter().map(Watched::said).collect::<String>();
    assert!(eventually(enforced), "the enforcer does not run {algorithm}\n{}", said());
    assert!(eventually(at_client), "the client does not run {algorithm}\n{}", said());
}

fn routes(world: &World) -> String {
    world.run(2, "ip route show table all")
}

#[test]
fn the_loop_runs_for_long_without_growing() {
    let Some(world) = World::new() else { return };
    let length = asked("SOAK_MINUTES").map_or(SHORT, |minutes: u64| Duration::from_secs(60 * minutes));
    let pause = (length / 100).clamp(PAUSE.0, PAUSE.1);
    let routes_before = routes(&world);
    let (code, _, error) = world.opentcp(&["keygen", "--out", "oracle.key"]);
    assert_eq!(code, Some(0), "{error}");
    for (algorithm, _) in ALGORITHMS {
        let policy = policy_for_all("1 s", &format!(r#"cc = "{algorithm}", initial_cwnd = 20"#));
        fs::write(world.path(&format!("{algorithm}.toml")), policy).expect("there is room");
    }
    let places = ["--key", "oracle.key", "--socket", "oracle.sock", "--state", "oracle"];
    let oracle = world.start_in_between("oracle-log", &[&["oracle", "newreno.toml"][..], &places].concat());
    until("the Oracle listens", || world.path("oracle.sock").exists());
    let mut daemons = [
        Watched::new("oracle", oracle),
        Watched::new("agent", start_agent(&world)),
        Watched::new("enforcer", start_enforcer(&world)),
    ];
    let (over, began) = (AtomicBool::new(false), Instant::now());
    let transfers = thread::scope(|scope| {
        let transfers = scope.spawn(|| traffic(&world, &over));
        // also when something here fails: the scope waits for the traffic
        let ends = EndOf(&over);
        let mut applied = 0;
        wait_for_effect(&world, &daemons, ALGORITHMS[applied]);
        for change in CHANGES.into_iter().cycle() {
            if began.elapsed() >= length {
                break;
            }
            let [_, agent, enforcer] = &mut daemons;
            // a process that is judged has to live for long, so in the last third only policies change
            let is_calm = length >= JUDGED && began.elapsed() >= length * 2 / 3;
            let change = if is_calm { Change::ApplyPolicy } else { change };
            match change {
                Change::StopAgent => agent.again(Running::stop, || start_agent(&world)),
                Change::KillEnforcer => enforcer.again(Running::kill, || start_enforcer(&world)),
                Change::KillAgent => agent.again(Running::kill, || start_agent(&world)),
                Change::StopEnforcer => enforcer.again(Running::stop, || start_enforcer(&world)),
                Change::ApplyPolicy => {
                    applied = 1 - applied;
                    let file = format!("{}.toml", ALGORITHMS[applied].0);
                    let apply = ["policy", "apply", &file, "--socket", "oracle.sock", "--yes"];
                    // an Oracle that has decided nothing yet has nothing to compare it with
                    until("the policy is applied", || world.opentcp(&apply).0 == Some(0));
                }
            }
            let changed = Instant::now();
            wait_for_effect(&world, &daemons, ALGORITHMS[applied]);
            while changed.elapsed() < pause {
                for daemon in &mut daemons {
                    daemon.look(began);
                }
                thread::sleep(LOOK);
            }
        }
        drop(ends);
        transfers.join().expect("every byte was right")
    });
    println!("{transfers} transfers in {:.1} min", began.elapsed().as_secs_f64() / 60.0);
    for daemon in &daemons {
        println!("{daemon}");
        if length >= JUDGED {
            let growth = daemon.slope(|look| look.resident_kb) / daemon.last(|look| look.resident_kb);
            assert!(growth < GROWTH_MAX, "{daemon}");
            assert!(daemon.slope(|look| look.descriptors) < 1.0, "{daemon}");
        }
    }
    for daemon in daemons.iter_mut().rev() {
        daemon.running.take().expect("it runs").stop();
    }
    assert_nothing_is_left(&world, &routes_before);
}

fn assert_nothing_is_left(world: &World, routes_before: &str) {
    assert_eq!(routes(world), routes_before);
    until("the kernel has removed the program", || !world.has_xdp());
    assert!(!World::pins().exists(), "pinned programs are left");
    for socket in ["oracle.sock", "enforce.sock"] {
        assert!(!world.path(socket).exists(), "{socket} is left");
    }
}

/// Ends the traffic when dropped.
struct EndOf<'a>(&'a AtomicBool);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
