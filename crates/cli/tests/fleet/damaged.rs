//! Files in which a byte has changed since they were written.

use crate::world::World;
use bus::files::stored_epoch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::{inside, until};

/// One byte in so many is changed.
const STEP: usize = 7;
/// A bit of it, or all.
const CHANGES: [u8; 2] = [0x01, 0xff];
/// Starts at the same time: one that goes on waits a while before it ends.
const AT_ONCE: usize = 8;

/// A start that is to be tried: a file, and a byte of it.
struct Case {
    file: PathBuf,
    at: usize,
    change: u8,
}

/// How a process ended that was stopped once it had begun.
struct Outcome {
    code: Option<i32>,
    said: String,
}

/// All bytes to be changed in these files of a folder.
fn cases(folder: &Path, files: &[&str]) -> Vec<Case> {
    let mut all = Vec::new();
    for file in files {
        let bytes = fs::read(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        // of a log only the last line is read at a start
        let last_line = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let places = (if file.contains(".jsonl") { last_line } else { 0 }..bytes.len()).step_by(STEP);
        all.extend(places.flat_map(|at| CHANGES.map(|change| Case { file: file.into(), at, change })));
    }
    all
}

/// Starts a program, and stops it when it has said this.
fn tried(machine: &str, mut command: Command, log: &Path, begun: &str) -> Outcome {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(log).unwrap());
    let mut child = inside(machine, || command.spawn().unwrap());
    let began = Instant::now();
    let said = || String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let mut is_stopped = false;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Outcome { code: status.code(), said: said() };
        }
        if !is_stopped && said().contains(begun) {
            kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
            is_stopped = true;
        }
        if began.elapsed() > testkit::PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("it neither begins nor ends: {}", said());
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Tries each case with a copy of the folder, several at a time. `check` gets the copy and what happened.
fn try_all(
    world: &World,
    (folder, cases): (&str, &[Case]),
    start: impl Fn(&str) -> (usize, Command, &'static str) + Sync,
    check: impl Fn(&Case, &Path, &Outcome) + Sync,
) {
    let (next, refused, went_on) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let examples = Mutex::new(Vec::<(PathBuf, String)>::new());
    let began = Instant::now();
    let work = || {
        while let Some((i, case)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, cases.get(i)?))) {
            let name = format!("{folder}-{i}");
            let copy = world.path(&name);
            let copied = Command::new("cp").arg("-a").arg(world.path(folder)).arg(&copy).status();
            assert!(copied.is_ok_and(|status| status.success()));
            let file = copy.join(&case.file);
            let mut bytes = fs::read(&file).unwrap();
            bytes[case.at] ^= case.change;
            fs::write(&file, bytes).unwrap();
            let (machine, command, begun) = start(&name);
            let outcome = tried(&world.machines[machine], command, &world.path(&format!("{name}.log")), begun);
            let Outcome { code, said } = &outcome;
            let what = format!("{} byte {} ^ {:#x}: {code:?} {said}", case.file.display(), case.at, case.change);
            assert!(!said.contains("panicked"), "{what}");
            match code {
                Some(0) => went_on.fetch_add(1, Ordering::Relaxed),
                // 1 of the command that only shows
                Some(1 | 2) => {
                    let errors = said.lines().filter(|line| line.starts_with("error: ")).count();
                    assert!(errors == 1 && said.contains(&*case.file.to_string_lossy()), "{what}");
                    refused.fetch_add(1, Ordering::Relaxed)
                }
                _ => panic!("{what}"),
            };
            let mut examples = examples.lock().unwrap();
            if !examples.iter().any(|(file, _)| *file == case.file) {
                examples.push((case.file.clone(), said.clone()));
            }
            drop(examples);
            check(case, &copy, &outcome);
            fs::remove_dir_all(&copy).unwrap();
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    println!(
        "{folder}: {} starts in {:.1} s, {} refused, {} went on",
        cases.len(),
        began.elapsed().as_secs_f64(),
        refused.into_inner(),
        went_on.into_inner()
    );
    for (file, said) in examples.into_inner().unwrap() {
        println!("{}: {}", file.display(), said.lines().rfind(|line| !line.contains("no server")).unwrap_or_default());
    }
}

/// The only file of an Oracle's audit log.
fn log_of(state: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(state.join("audit")).ok()?.flatten().map(|entry| entry.path());
    files.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
}

/// The epoch with which the last start began, by the audit log.
fn began_with(state: &Path) -> Option<u64> {
    let log = fs::read(log_of(state)?).ok()?;
    let mut lines = log.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    lines.rfind(|line| line["kind"] == "started")?["body"]["epoch"].as_u64()
}

#[test]
fn a_changed_byte_in_a_state_file_is_refused_or_changes_nothing() {
    let Some(mut world) = World::new() else { return };
    let oracle = world.oracle();
    let mut agents = world.agents(1..=1);
    until("it is steered", || world.is_set(1));
    // the applied policy, and what it replaced, are in files then
    let policy = fs::read_to_string(world.path("policy.toml")).unwrap();
    fs::write(world.path("new.toml"), policy.replace("= 20", "= 30")).unwrap();
    world.done(0, &["policy", "apply", "new.toml", "--yes", "--identity", "fleet/operator"], "");
    until("it has the new policy", || world.has_window(1, 30));
    oracle.stop();
    let epoch = stored_epoch(&world.path("oracle/epoch")).unwrap().unwrap();

    // an agent that dies together with its guardian leaves all of its files
    let agent = agents.remove(0);
    let guardian = children(agent.id());
    assert_eq!(guardian.len(), 1);
    agent.pause(true);
    kill(Pid::from_raw(guardian[0]), Signal::SIGKILL).unwrap();
    agent.kill();
    let known = stored_epoch(&world.path("h1-state/epoch")).unwrap().unwrap();
    assert!(world.has_window(1, 30), "nobody has restored it");
    // so nobody is met
    world.server.kill();

    let log = format!("audit/{}", log_of(&world.path("oracle")).unwrap().file_name().unwrap().display());
    let oracle_cases = cases(&world.path("oracle"), &["epoch", "rollout.json", "policies.json", "audit/head", &log]);
    let start = |state: &str| {
        let arguments = ["oracle", "policy.toml", "--identity", "fleet/oracle-0", "--state", state];
        (0, world.command(&arguments), "agents at")
    };
    try_all(&world, ("oracle", &oracle_cases), start, |case, copy, outcome| {
        if outcome.code == Some(0) {
            let what = || format!("{} byte {}: {}", case.file.display(), case.at, outcome.said);
            let began = began_with(copy).unwrap_or_else(|| panic!("{}", what()));
            assert!(began >= epoch, "{began}, not {epoch}: {}", what());
            assert!(stored_epoch(&copy.join("epoch")).unwrap() >= Some(epoch), "{}", what());
            let is_of_log = case.file.starts_with("audit");
            assert!(is_of_log && outcome.said.contains("the audit log's end was repaired"), "{}", what());
        }
    });

    let agent_cases = cases(&world.path("h1-state"), &["epoch", "journal.json"]);
    let agent = |state: &str| {
        let arguments = ["agent", "--identity", "h1", "--state", state, "--pins", "pins", "--means", "routes"];
        (1, world.command(&arguments), "taking CUEs from")
    };
    try_all(&world, ("h1-state", &agent_cases), agent, |case, _, outcome| {
        assert_eq!(outcome.code, Some(2), "{} byte {}: {}", case.file.display(), case.at, outcome.said);
    });
    assert!(world.has_window(1, 30), "a damaged journal restores nothing");
    let status_cases = cases(&world.path("h1-state"), &["status.json"]);
    let status = |state: &str| (1, world.command(&["agent", "status", "--state", state, "--pins", state]), "\0");
    try_all(&world, ("h1-state", &status_cases), status, |case, _, outcome| {
        assert_eq!(outcome.code, Some(1), "byte {}: {}", case.at, outcome.said);
    });
    // an agent writes a new one
    try_all(&world, ("h1-state", &status_cases[..1]), agent, |_, copy, outcome| {
        assert_eq!(outcome.code, Some(0), "{}", outcome.said);
        let epoch = stored_epoch(&copy.join("epoch")).unwrap();
        assert!(epoch >= Some(known), "{epoch:?}, not {known}: {}", outcome.said);
    });
    assert!(!world.has_window(1, 30), "a sound journal restores everything");
    fs::remove_file(world.path("h1-state/journal.json")).unwrap();
    fs::remove_file(world.path("h1-state/status.json")).unwrap();
    world.untouched();
}

/// The processes that this one has started.
fn children(process: u32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap();
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}
