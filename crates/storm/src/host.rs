//! A host: its clocks, its disk, its agent, and the kernel in which the agent sets algorithms. A rule in the kernel ends at its deadline
//! by itself; the guardian ends all of them when the agent dies.

use crate::plan::Disk;
use crate::world::{HOLDS_S, LOSSY, World};
use agent::{Life, Places};
use bus::files::FileError;
use bus::{Clock, Effective, FctTimes, Hand, InForce, Peer, Report, Telemetry};
use policy::{AgentRule, CueError, Host, Identity, PublicKeys};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testkit::Random;
use units::Time;

/// How often a host measures.
const SAMPLE: Time = Time::from_ms(500);
/// Completion time without harm.
const FCT_US: u64 = 10_000;
/// Flows that end at a host in a period.
const FLOWS: u64 = 150;

/// A rule in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InKernel {
    pub policy: String,
    pub rule: String,
    /// Since boot.
    pub until: Duration,
}

/// A host.
pub struct SimulatedHost {
    pub name: String,
    pub peer: Peer,
    /// Started at this time of the storm, and how often.
    pub boot: (Time, u64),
    hand: Hand,
    folder: PathBuf,
    random: Random,
    pub life: Option<Life>,
    pub kernel: Vec<InKernel>,
    /// When the guardian restores what a dead agent has set.
    guardian_at: Option<Time>,
    sample_at: Time,
    pub is_full: bool,
    pub is_lying: bool,
    pub is_losing: bool,
    /// Old state, for a disk that comes back as it was.
    snapshot: BTreeMap<String, Vec<u8>>,
}

/// What an agent did in a step.
#[derive(Debug, Default)]
pub struct Did {
    /// Messages, and what became of each.
    pub took: Vec<(Vec<u8>, Result<bool, CueError>)>,
    /// A measurement that the guard had to judge, while these rules were in the kernel.
    pub judged: Option<Vec<InKernel>>,
    /// The rules were set anew.
    pub set: bool,
    /// It ended: its disk refused what must not be forgotten.
    pub ended: Option<String>,
}

impl SimulatedHost {
    pub fn new(number: usize, folder: PathBuf, seed: u64) -> SimulatedHost {
        let name = format!("h{number}");
        fs::create_dir_all(&folder).expect("a folder of the storm");
        SimulatedHost {
            peer: World::member(&name, bus::Role::Agent),
            name,
            boot: (Time::ZERO, 0),
            hand: Hand::default(),
            folder,
            random: Random(seed),
            life: None,
            kernel: Vec::new(),
            guardian_at: None,
            sample_at: Time::ZERO,
            is_full: false,
            is_lying: false,
            is_losing: false,
            snapshot: BTreeMap::new(),
        }
    }

    /// Moves its clocks.
    pub fn tick(&mut self, now: Time) {
        self.hand.set(since(now, self.boot.0));
        if self.guardian_at.is_some_and(|at| at <= now) {
            (self.guardian_at, self.kernel) = (None, Vec::new());
        }
        let boot = since(now, self.boot.0);
        self.kernel.retain(|rule| rule.until > boot);
    }

    /// Its agent starts, and restores what an earlier one had set. One whose files are damaged is started after they were removed, as its
    /// error says; whether that was so.
    pub fn start(&mut self, keys: &PublicKeys) -> bool {
        self.kernel.clear();
        self.guardian_at = None;
        let mut begun = self.begin(keys);
        let was_damaged = begun.is_err();
        while let Err(error) = &begun {
            assert!(remove(&self.folder, &error.to_string()), "{error}");
            begun = self.begin(keys);
        }
        let mut life = begun.expect("the errors are over");
        life.ask(self.question());
        self.life = Some(life);
        was_damaged
    }

    fn begin(&self, keys: &PublicKeys) -> Result<Life, FileError> {
        let places = Places { state: self.folder.clone(), pins: self.folder.join("pins") };
        let identity = Identity { host: self.name.clone(), ..Identity::default() };
        let clock: Clock = self.hand.begin();
        Life::begin(&places, identity, keys.clone(), clock, &format!("boot {}", self.boot.1))
    }

    fn question(&mut self) -> [u8; 32] {
        let mut question = [0; 32];
        question.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&self.random.next().to_le_bytes()));
        question
    }

    /// Its agent is killed, and perhaps the guardian.
    pub fn kill(&mut self, now: Time, guardian: bool) {
        if self.life.take().is_some() && guardian {
            self.guardian_at = Some(now + Time::from_ms(300));
        }
    }

    /// The machine starts anew.
    pub fn reboot(&mut self, now: Time) {
        self.life = None;
        self.kernel.clear();
        self.guardian_at = None;
        self.boot = (now, self.boot.1 + 1);
        self.sample_at = Time::ZERO;
        self.tick(now);
    }

    /// What becomes of its disk; whether what was on it may be forgotten.
    pub fn harm(&mut self, disk: Disk) -> bool {
        harm(&self.folder, disk, &self.snapshot, &mut self.random)
    }

    /// Keeps the disk's content, to come back later.
    pub fn keep(&mut self) {
        self.snapshot = content(&self.folder);
    }

    /// Whether its disk is full.
    pub fn fill(&mut self, is_full: bool) {
        if self.is_full != is_full {
            fill(&self.folder, &["epoch", "reverted"], is_full);
            self.is_full = is_full;
        }
    }

    /// A step of its agent.
    pub fn step(&mut self, messages: impl IntoIterator<Item = Vec<u8>>) -> Did {
        let mut did = Did::default();
        let Some(life) = &mut self.life else { return did };
        let mut changed = false;
        for message in messages {
            let taken = life.take(&message);
            changed |= taken == Ok(true);
            did.took.push((message, taken));
        }
        let _ = life.begin_period();
        let now = life.clock().now();
        if now >= self.sample_at {
            self.sample_at = now + SAMPLE;
            let lost = if self.is_losing { 2 * LOSSY } else { 1 };
            let host = Host { sent_segments: Some(2000), retransmitted_segments: Some(lost), ..Host::default() };
            if self.is_losing {
                did.judged = Some(self.kernel.clone());
            }
            changed |= life.on_measured(&host);
        }
        match life.settle(changed) {
            Ok(true) => {
                did.set = true;
                self.kernel = life.rules().iter().map(|rule| in_kernel(rule, life.clock())).collect();
            }
            Ok(false) => {}
            Err(error) => {
                did.ended = Some(error.to_string());
                self.life = None;
                self.kernel.clear();
            }
        }
        did
    }

    /// Its report, if one is due; its treated flows take so much longer, in percent.
    pub fn report(&mut self, hurts: u64) -> Option<Vec<u8>> {
        let is_treated = !self.kernel.is_empty();
        let life = self.life.as_mut()?;
        let now = life.clock().now();
        if !life.timetable().is_due(now) {
            return None;
        }
        life.timetable().reported(now);
        let mut times = FctTimes::default();
        let slower = if is_treated { 100 + hurts } else { 100 };
        (0..FLOWS).for_each(|_| times.record(FCT_US * slower / 100 + self.random.below(2000)));
        let group = if is_treated { "storm/fast" } else { "default" };
        let telemetry = Telemetry {
            group: group.into(),
            flows: FLOWS,
            bytes: FLOWS * 100_000,
            segments: FLOWS * 70,
            fct_us: times.bins(),
            ..Telemetry::default()
        };
        let in_force = life.rules().into_iter().map(|rule| InForce {
            left: rule.deadline.saturating_sub(now),
            policy: rule.policy,
            rule: rule.rule,
            effective: vec![Effective { setting: "cc".into(), ..Effective::default() }],
        });
        let mut report = Report {
            host: Host {
                name: self.name.clone(),
                rack: "r1".into(),
                cc: "cubic".into(),
                algorithms: vec!["cubic".into(), "bbr".into()],
                sent_segments: Some(2000),
                retransmitted_segments: Some(if self.is_losing { 2 * LOSSY } else { 1 }),
                srtt_us: vec![(1000, 10)],
                live_flows: Some(10.0),
                ..Host::default()
            },
            epoch: life.highest(),
            of_epoch: life.timetable().epoch(),
            question: life.question(),
            counts: life.counts(),
            in_force: in_force.collect(),
            telemetry: vec![telemetry],
            ..Report::default()
        };
        if self.is_lying {
            self.lie(&mut report);
        }
        Some(report.to_bytes())
    }

    fn lie(&mut self, report: &mut Report) {
        let any = self.random.next();
        match any % 5 {
            0 => report.epoch = Some(any >> 2),
            1 => report.of_epoch = Some(any >> 40),
            2 => report.host.sent_segments = Some(any),
            3 => report.host.name = format!("h{}", any >> 32),
            _ => report.telemetry.iter_mut().for_each(|telemetry| telemetry.flows = any >> 20),
        }
    }
}

fn in_kernel(rule: &AgentRule, clock: Clock) -> InKernel {
    InKernel { policy: rule.policy.clone(), rule: rule.rule.clone(), until: clock.boot_time(rule.deadline) }
}

/// As the standard library has it.
pub fn since(now: Time, then: Time) -> Duration {
    Duration::from_nanos(now.saturating_sub(then).as_ns())
}

/// The end of a name that a file has until it is complete.
const NEW: &str = ".new";

pub fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder of the storm").flatten().filter(|entry| entry.path().is_file());
    let file = |entry: fs::DirEntry| Some((entry.file_name().to_str()?.to_string(), fs::read(entry.path()).ok()?));
    // a file that is full is no file
    entries.filter_map(file).filter(|(name, _)| !name.ends_with(NEW)).collect()
}

/// Removes the file that an error names, as it says; whether there is one.
pub fn remove(folder: &Path, error: &str) -> bool {
    let name = content(folder).into_keys().find(|name| error.contains(&folder.join(name).display().to_string()));
    name.is_some_and(|name| fs::remove_file(folder.join(name)).is_ok())
}

/// Removes what is in a folder, folders aside.
fn wipe(folder: &Path) {
    for name in content(folder).into_keys() {
        fs::remove_file(folder.join(name)).expect("a file of the storm");
    }
}

/// What becomes of a disk; whether what was on it may be forgotten.
pub fn harm(folder: &Path, disk: Disk, before: &BTreeMap<String, Vec<u8>>, random: &mut Random) -> bool {
    let files = content(folder);
    match disk {
        Disk::Kept => return false,
        Disk::Lost => wipe(folder),
        Disk::Old => {
            wipe(folder);
            for (name, bytes) in before {
                fs::write(folder.join(name), bytes).expect("a file of the storm");
            }
        }
        Disk::Torn | Disk::Flipped => {
            let names: Vec<&String> =
                files.iter().filter(|(_, bytes)| !bytes.is_empty()).map(|(name, _)| name).collect();
            if names.is_empty() {
                return false;
            }
            let name = *random.any(&names);
            let mut bytes = files[name].clone();
            let at = random.below(bytes.len() as u64) as usize;
            if disk == Disk::Torn {
                bytes.truncate(at);
            } else {
                bytes[at] ^= 1 << random.below(8);
            }
            fs::write(folder.join(name), bytes).expect("a file of the storm");
        }
    }
    true
}

/// Makes a disk full, or not: what these files are replaced by cannot be written.
pub fn fill(folder: &Path, files: &[&str], is_full: bool) {
    for file in files {
        let beside = folder.join(format!("{file}{NEW}"));
        let _ = fs::remove_dir(&beside);
        if is_full {
            let _ = fs::remove_file(&beside);
            fs::create_dir(&beside).expect("a folder in a folder of the storm");
        }
    }
}

/// How long a revert is to last.
pub const REVERTED: Duration = Duration::from_secs(HOLDS_S);
