//! An Oracle on a Unix socket, and hosts that report to it and take its CUEs: clients of the protocol without a kernel.

use crate::common::{Done, Place};
use bus::{Address, FctTimes, Report, Telemetry};
use policy::{Cue, Host, PublicKey};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use testkit::eventually;

/// T of the tests' policies.
pub const PERIOD: &str = "200 ms";

/// A policy of one rule.
pub fn policy(set: &str) -> String {
    format!(
        "name = \"p\"\nmode = \"enforce\"\nperiod = \"{PERIOD}\"\nlifetime = \"1 s\"\nallow_mixed_measures = true\n[[rule]]\nname = \
         \"r\"\nwhen = \"network.live_flows >= 0\"\nset = {{ {set} }}\n"
    )
}

/// Hosts and their Oracle.
pub struct Fleet {
    /// A file system that is mounted for the state; unmounted first.
    _mounted: Option<Mounted>,
    pub place: Place,
    oracle: Option<Child>,
    hosts: Vec<FakeHost>,
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

struct FakeHost {
    stop: Arc<AtomicBool>,
    taken: Arc<Mutex<Vec<Cue>>>,
    reverted: Arc<Mutex<u64>>,
    transfers: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Fleet {
    /// Hosts `h0`, `h1`, … with these algorithms, and an Oracle by `p.toml`.
    pub fn start(text: &str, algorithms: &[&[&str]]) -> Fleet {
        Fleet::start_at((Place::new(), None), text, algorithms)
    }

    /// The same, with the Oracle's state on a disk of 256 kB, or a printed reason why the test is skipped.
    pub fn start_on_small_disk(text: &str, algorithms: &[&[&str]]) -> Option<Fleet> {
        let place = Place::new();
        let state = place.join("state");
        fs::create_dir(&state).unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&state).output();
        if !mount.as_ref().is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: no tmpfs can be mounted: {mount:?}");
            return None;
        }
        Some(Fleet::start_at((place, Some(Mounted(state))), text, algorithms))
    }

    fn start_at((place, mounted): (Place, Option<Mounted>), text: &str, algorithms: &[&[&str]]) -> Fleet {
        place.write("p.toml", text);
        place.succeed(&["keygen", "--out", "key"]);
        let mut fleet = Fleet { _mounted: mounted, place, oracle: None, hosts: Vec::new() };
        fleet.start_oracle(&[]);
        for (i, algorithms) in algorithms.iter().enumerate() {
            let host = fleet.host(&format!("h{i}"), algorithms);
            fleet.hosts.push(host);
        }
        let n = algorithms.len();
        assert!(fleet.until(|status| status["hosts"] == n), "{}", fleet.said());
        fleet
    }

    /// Starts the Oracle, with more arguments.
    pub fn start_oracle(&mut self, more: &[&str]) {
        let mut args = vec!["oracle", "p.toml", "--key", "key", "--socket", "sock", "--state", "state"];
        args.extend(more);
        let log = File::options().append(true).create(true).open(self.place.join("log")).unwrap();
        let mut command = self.place.command(&args);
        self.oracle = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        assert!(eventually(|| self.place.opentcp(&["status", "--socket", "sock"]).code == Some(0)), "{}", self.said());
    }

    /// Ends the Oracle as `kill -9` does.
    pub fn kill_oracle(&mut self) {
        let mut oracle = self.oracle.take().unwrap();
        oracle.kill().unwrap();
        oracle.wait().unwrap();
    }

    /// What the Oracle said.
    pub fn said(&self) -> String {
        fs::read_to_string(self.place.join("log")).unwrap_or_default()
    }

    /// `opentcp policy …` at the fleet's socket.
    pub fn policy(&self, args: &[&str]) -> Done {
        self.place.opentcp(&[&["policy"], args, &["--socket", "sock"]].concat())
    }

    /// The same, which must succeed.
    pub fn succeed(&self, args: &[&str]) -> String {
        let done = self.policy(args);
        assert_eq!(done.code, Some(0), "{args:?}: {}{}", done.stderr, self.said());
        done.stdout
    }

    /// `opentcp history …` of the fleet's Oracle.
    pub fn history(&self, args: &[&str]) -> Done {
        self.place.opentcp(&[&["history", "--state", "state"], args].concat())
    }

    /// Waits until the Oracle's status is right.
    pub fn until(&self, right: impl Fn(&serde_json::Value) -> bool) -> bool {
        eventually(|| {
            let status = self.place.opentcp(&["status", "--socket", "sock", "--json"]).stdout;
            serde_json::from_str(&status).is_ok_and(|status| right(&status))
        })
    }

    /// Takes what host `i` was sent since the last call.
    pub fn taken(&self, i: usize) -> Vec<Cue> {
        std::mem::take(&mut *self.hosts[i].taken.lock().unwrap())
    }

    /// Waits until host `i` gets a CUE with these settings.
    pub fn gets(&self, i: usize, set: &str) -> bool {
        self.taken(i);
        eventually(|| self.taken(i).iter().any(|cue| cue.set.to_string() == set))
    }

    /// Whether host `i` gets no CUE for a second, five periods, once it has got what was sent before: on a busy machine that may take one or two
    /// seconds more.
    pub fn is_quiet(&self, i: usize) -> bool {
        thread::sleep(Duration::from_millis(400));
        (0..3).any(|_| {
            self.taken(i);
            thread::sleep(Duration::from_secs(1));
            self.taken(i).is_empty()
        })
    }

    /// From now on host `i` reports so many reverted rules.
    pub fn revert(&self, i: usize, times: u64) {
        *self.hosts[i].reverted.lock().unwrap() = times;
    }

    /// From now on all hosts report transfers of 20 kB.
    pub fn transfer(&self) {
        self.hosts.iter().for_each(|host| host.transfers.store(true, Ordering::Relaxed));
    }

    fn host(&self, name: &str, algorithms: &[&str]) -> FakeHost {
        let address = Address::Unix(self.place.join("sock"));
        let key = PublicKey::from_hex(&fs::read_to_string(self.place.join("key.pub")).unwrap()).unwrap();
        let algorithms = algorithms.iter().map(ToString::to_string).collect();
        let srtt_us = vec![(200, 3)];
        let host = Host { name: name.to_string(), algorithms, live_flows: Some(0.0), srtt_us, ..Host::default() };
        let stop = Arc::new(AtomicBool::new(false));
        let (taken, reverted) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let transfers = Arc::new(AtomicBool::new(false));
        let busy = Arc::clone(&transfers);
        let (ended, cues, guards) = (Arc::clone(&stop), Arc::clone(&taken), Arc::clone(&reverted));
        let work = move || {
            while !ended.load(Ordering::Relaxed) {
                // it comes again when the Oracle does
                let Ok(mut bus) = address.connect() else {
                    thread::sleep(Duration::from_millis(20));
                    continue;
                };
                let mut report = Report { host: host.clone(), ..Report::default() };
                loop {
                    report.counts.reverted = *guards.lock().unwrap();
                    report.telemetry = if busy.load(Ordering::Relaxed) { vec![transfer()] } else { Vec::new() };
                    if ended.load(Ordering::Relaxed) || bus.send(&report.clone().to_bytes()).is_err() {
                        break;
                    }
                    let Ok(message) = bus.receive(Duration::from_millis(40)) else { break };
                    if let Some(cue) = message.and_then(|bytes| key.open(&bytes).ok()) {
                        let mut cues = cues.lock().unwrap();
                        if cues.len() < 1000 && cue.is_for(&host.name, &host.labels) {
                            cues.push(cue);
                        }
                    }
                }
            }
        };
        FakeHost { stop, taken, reverted, transfers, thread: Some(thread::spawn(work)) }
    }

    /// A file of the Oracle's state.
    pub fn state(&self, name: &str) -> PathBuf {
        self.place.join("state").join(name)
    }
}

/// One connection that has ended.
fn transfer() -> Telemetry {
    let mut times = FctTimes::default();
    times.record(900);
    let (group, size) = ("default".to_string(), "under 100 kB".to_string());
    Telemetry { group, size, flows: 1, bytes: 20_000, segments: 14, fct_us: times.bins(), ..Telemetry::default() }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for host in &mut self.hosts {
            host.stop.store(true, Ordering::Relaxed);
            let _ = host.thread.take().map(JoinHandle::join);
        }
        if let Some(oracle) = &mut self.oracle {
            let _ = oracle.kill();
            let _ = oracle.wait();
        }
    }
}
