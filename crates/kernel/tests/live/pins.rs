//! Algorithms that stay in the kernel: loaded, replaced, and unloaded without a trace.

use crate::support::{self, Connection, Path, algorithm, choose, holdings, left_behind};
use kernel::{Change, PinError};
use libbpf_rs::Link;
use libbpf_rs::query::{LinkTypeInfo, MapInfoIter};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use testkit::eventually;

#[test]
fn loading_and_unloading_over_and_over_leaves_nothing() {
    let Some(kernel) = support::pinning() else { return };
    let before = holdings();
    let start = Instant::now();
    for _ in 0..1000 {
        assert_eq!(kernel.load("newreno"), Change::Loaded);
        kernel.unload("ot_newreno");
    }
    println!("1000 cycles of newreno: {:.1} s", start.elapsed().as_secs_f64());
    for _ in 0..20 {
        for name in kernel::builtins() {
            assert_eq!(kernel.load(name), Change::Loaded);
        }
        assert_eq!(kernel::pinned().len(), kernel::builtins().count());
        for name in kernel::pinned() {
            kernel.unload(&name);
        }
    }
    println!("and 20 of all: {:.1} s", start.elapsed().as_secs_f64());
    assert!(!fs::exists("/sys/fs/bpf/opentcp").expect("bpffs can be looked at"));
    // Programs and tables are freed after a grace period.
    assert_eq!(left_behind(&before), [""; 0]);
}

/// Another algorithm under the name of cubic.
const OTHER_CUBIC: &str = r#"
#include "tcp.h"
CC_HOOK(u32, other_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }
CC_HOOK(void, other_cong_avoid, struct sock *sk, u32 ack, u32 acked) { (void)ack; tcp_reno_cong_avoid(sk, acked); }
CC_HOOK(u32, other_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }
CC_OPS(cubic, .ssthresh = other_ssthresh, .cong_avoid = other_cong_avoid, .undo_cwnd = other_undo_cwnd);
"#;

const FLOWS: usize = 100;

#[test]
fn replacing_an_algorithm_under_a_hundred_flows_breaks_none() {
    let Some(kernel) = support::pinning() else { return };
    let (before, path) = (holdings(), Path::new(2000, 4_000_000));
    let other = support::compile("other_cubic", OTHER_CUBIC);
    assert_eq!(kernel.load("cubic"), Change::Loaded);
    let link = pinned_link();
    let connections: Vec<Connection> = (0..FLOWS).map(|_| path.connect("ot_cubic", "ot_cubic")).collect();

    let (stop, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let flows: Vec<_> =
            connections.into_iter().map(|flow| scope.spawn(|| carry_until(flow, &stop, &rounds))).collect();
        for round in 1..=10 {
            // Every flow has carried something since the last replacement.
            let reached = eventually(|| rounds.load(Ordering::Relaxed) >= round * FLOWS);
            assert!(reached || flows.iter().any(thread::ScopedJoinHandle::is_finished), "the flows stall");
            let (id, table) = pinned_link();
            let change = if round % 2 == 1 { kernel.load_object(&other) } else { kernel.load("cubic") };
            assert_eq!(change, Change::Replaced);
            assert_eq!(pinned_link().0, id, "the same registration");
            assert_ne!(pinned_link().1, table, "of another table");
        }
        stop.store(true, Ordering::Relaxed);
        for flow in flows {
            flow.join().expect("the flow carried every byte");
        }
    });
    assert_eq!(pinned_link().0, link.0);

    kernel.unload("ot_cubic");
    assert_eq!(left_behind(&before), [""; 0]);
}

/// Sends blocks until stopped; each byte is checked at the other end.
fn carry_until(mut flow: Connection, stop: &AtomicBool, rounds: &AtomicUsize) {
    while !stop.load(Ordering::Relaxed) {
        flow.carry(100_000);
        rounds.fetch_add(1, Ordering::Relaxed);
    }
    assert_eq!(algorithm(&flow.source), "ot_cubic");
    flow.close();
}

/// The number of cubic's pinned link, and of the table that it has registered.
fn pinned_link() -> (u32, u32) {
    let info = Link::open("/sys/fs/bpf/opentcp/cc/ot_cubic").and_then(|link| link.info()).expect("cubic is pinned");
    match info.info {
        LinkTypeInfo::StructOps(ops) => (info.id, ops.map_id),
        other => panic!("{other:?}"),
    }
}

#[test]
fn new_connections_get_the_version_that_replaced_the_old_one() {
    let Some(kernel) = support::pinning() else { return };
    let path = Path::new(100, 100_000);
    kernel.load("cubic");
    let (_, replaced) = pinned_link();
    let tables = || -> Vec<u32> { MapInfoIter::default().map(|map| map.id).collect() };
    let old = path.connect("ot_cubic", "reno");
    kernel.load_object(&support::compile("other_cubic", OTHER_CUBIC));
    let (_, table) = pinned_link();
    assert_ne!(table, replaced);
    assert!(tables().contains(&replaced), "the old connection keeps its version");
    old.close();
    assert!(eventually(|| !tables().contains(&replaced)), "and nothing else does");
    assert!(tables().contains(&table));
    path.connect("ot_cubic", "reno").close();
}

#[test]
fn a_pinned_file_of_a_detached_algorithm_does_not_hinder_loading() {
    let Some(kernel) = support::pinning() else { return };
    assert_eq!(kernel.load("vegas"), Change::Loaded);
    Link::open("/sys/fs/bpf/opentcp/cc/ot_vegas").and_then(|link| link.detach()).expect("Linux 6.11 can");
    assert_eq!(kernel.load("vegas"), Change::Loaded);
    kernel.unload("ot_vegas");
}

#[test]
fn another_programs_algorithm_is_neither_replaced_nor_unloaded() {
    let Some(kernel) = support::pinning() else { return };
    let theirs = kernel.kernel.load("bic").unwrap_or_else(|error| panic!("{error}"));
    let object = kernel::object("bic").expect("a built-in algorithm");
    let mine = kernel.kernel.prepare(object, "bic").unwrap_or_else(|error| panic!("{error}"));
    let error = kernel.pins.load(mine).expect_err("the name is taken");
    assert!(matches!(error, PinError::Load(kernel::Error::Exists { .. })), "{error}");
    let error = kernel.pins.unload("ot_bic").expect_err("it is not pinned");
    assert!(matches!(error, PinError::NotOurs { .. }), "{error}");
    drop(theirs);
    let gone = eventually(|| matches!(kernel.pins.unload("ot_bic"), Err(PinError::NotLoaded { .. })));
    assert!(gone, "{:?}", kernel.pins.unload("ot_bic"));
}

/// In the environment of the same test, run again by a user without rights.
const AS_NOBODY: &str = "OPENTCP_TEST_AS_NOBODY";

#[test]
fn a_user_without_rights_may_choose_a_loaded_algorithm() {
    if let Ok(names) = env::var(AS_NOBODY) {
        return choose_each(&names);
    }
    let Some(kernel) = support::pinning() else { return };
    kernel.load("dctcp");
    // Without flags of its own on who may choose it.
    kernel.load_object(&support::compile("other_cubic", OTHER_CUBIC));

    // The user nobody may not enter this program's folder.
    let program = env::temp_dir().join(format!("opentcp-as-nobody-{}", std::process::id()));
    fs::copy(env::current_exe().expect("a program has a path"), &program).expect("there is room");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut test = Command::new(&program);
    test.args(["--exact", "pins::a_user_without_rights_may_choose_a_loaded_algorithm", "--nocapture"]);
    let output = test.current_dir("/").env(AS_NOBODY, "ot_dctcp ot_cubic").uid(65534).gid(65534).output();
    let _ = fs::remove_file(&program);
    let output = output.expect("a copy of this program runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("chose ot_dctcp ot_cubic"), "{said}");
}

fn choose_each(names: &str) {
    assert_ne!(fs::metadata("/proc/self").expect("/proc is mounted").uid(), 0);
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
    for name in names.split(' ') {
        choose(&socket, name).unwrap_or_else(|errno| panic!("{name}: {errno}"));
        assert_eq!(algorithm(&socket), name);
    }
    println!("chose {names}");
}

#[test]
fn a_second_program_waits_for_the_first() {
    let Some(kernel) = support::pinning() else { return };
    let (opened, start) = (AtomicBool::new(false), Instant::now());
    thread::scope(|scope| {
        let second = scope.spawn(|| {
            let pins = kernel::Pins::open();
            opened.store(true, Ordering::Relaxed);
            pins.map(|_| start.elapsed())
        });
        thread::sleep(Duration::from_millis(100));
        assert!(!opened.load(Ordering::Relaxed), "both are in the folder");
        drop(kernel);
        let waited = second.join().expect("it does not panic").unwrap_or_else(|error| panic!("{error}"));
        assert!(waited >= Duration::from_millis(100));
    });
}
