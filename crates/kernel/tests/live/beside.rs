//! The agent's program beside another one on the same cgroup, and on a cgroup that is made anew. Root only.

use crate::support;
use kernel::retune::{RetuneError, Retuner, Rule, Sessions, Tuning, boot_time, netns_cookie};
use libbpf_rs::libbpf_sys::{BPF_SOCK_OPS_PARSE_HDR_OPT_CB, bpf_prog_attach, bpf_prog_detach2};
use libbpf_rs::{MapCore as _, MapFlags, Object, ObjectBuilder};
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;
use std::time::Duration;
use testkit::{Cgroup, Entered, Namespaces, eventually, inside, ip, or_skip, talk};

/// A cgroup and a namespace of the test's own.
struct World {
    host: Namespaces<1>,
    folder: std::path::PathBuf,
    _cgroup: Cgroup,
    _kernel: support::Exclusive,
}

impl World {
    fn new() -> Option<World> {
        let kernel = support::quiet_kernel()?;
        let cgroup = or_skip(Cgroup::new("beside"))?;
        let host = Namespaces::new(["beside"]);
        ip(&format!("-n {} link set lo mtu 1500 up", host[0]));
        Some(World { host, folder: cgroup.below("service"), _cgroup: cgroup, _kernel: kernel })
    }

    /// Both ends of a new connection of the cgroup, and what the kernel shows of it.
    fn connection(&self) -> ((TcpStream, TcpStream), kernel::Connection) {
        let _entered = Entered::into(&self.folder);
        inside(&self.host[0], || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let both = (one, listener.accept().unwrap().0);
            talk(&both);
            let port = both.0.local_addr().unwrap().port();
            let mut all = kernel::connections().unwrap().into_iter();
            let shown = all.find(|one| one.local_port == port).expect("it is open");
            (both, shown)
        })
    }

    /// Reno on all connections.
    fn set(&self, retuner: &mut Retuner) {
        let netns = inside(&self.host[0], || netns_cookie().unwrap());
        let sessions = Sessions { netns: Some(netns), remote: ("127.0.0.0".parse().unwrap(), 8), port: None };
        let tuning = Tuning { algorithm: Some("reno".to_string()), ..Tuning::default() };
        let deadline = boot_time() + Duration::from_secs(60);
        retuner.set(&[Rule { number: 7, sessions, tuning, deadline }]).unwrap();
    }
}

fn other() -> Object {
    let file = support::compile_to_file("other", include_str!("other.bpf.c"));
    ObjectBuilder::default().open_file(file).unwrap().load().unwrap()
}

/// How often the other program was called for options of headers, for which it has asked.
fn headers(other: &Object) -> u64 {
    let map = other.maps().next().unwrap();
    let bytes = map.lookup(&BPF_SOCK_OPS_PARSE_HDR_OPT_CB.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
    u64::from_ne_bytes(*bytes.first_chunk().unwrap())
}

fn attach(other: &mut Object, cgroup: &Path) -> libbpf_rs::Link {
    let folder = File::open(cgroup).unwrap();
    other.progs_mut().next().unwrap().attach_cgroup(folder.as_raw_fd()).unwrap()
}

/// Both programs do what they are for.
fn assert_both_work(world: &World, retuner: &Retuner, other: &Object) {
    let (before, mut records) = (headers(other), 0);
    retuner.ended(|_| {}).unwrap();
    let (both, shown) = world.connection();
    assert_eq!(shown.algorithm, "reno");
    assert!(shown.ecn, "the other's answer stays");
    assert!(headers(other) > before, "the other has its callbacks");
    drop(both);
    let has_ended = || {
        retuner.ended(|_| records += 1).unwrap();
        records > 0
    };
    assert!(eventually(has_ended), "the agent's program has its own");
}

#[test]
fn another_program_on_the_cgroup_keeps_its_callbacks_and_its_answers() {
    let Some(world) = World::new() else { return };
    let mut other = other();
    let before = attach(&mut other, &world.folder);
    let mut retuner = Retuner::attach(&world.folder).unwrap();
    world.set(&mut retuner);
    assert_both_work(&world, &retuner, &other);
    assert!(!retuner.stay_attached(&world.folder).unwrap(), "it is the last already");
    drop(before);
    // one that comes later is called later, and takes away the callbacks of those before it
    let _after = attach(&mut other, &world.folder);
    assert!(retuner.stay_attached(&world.folder).unwrap());
    assert_both_work(&world, &retuner, &other);
    assert!(!retuner.stay_attached(&world.folder).unwrap());
}

#[test]
fn a_program_that_admits_no_other_is_named() {
    let Some(world) = World::new() else { return };
    let other = other();
    let folder = File::open(&world.folder).unwrap();
    let program = other.progs_mut().next().unwrap();
    let (fd, to, kind) = (program.as_fd().as_raw_fd(), folder.as_raw_fd(), libbpf_rs::libbpf_sys::BPF_CGROUP_SOCK_OPS);
    attach_alone(fd, to, kind);
    let refused = Retuner::attach(&world.folder).unwrap_err();
    assert!(matches!(refused, RetuneError::Exclusive { .. }), "{refused}");
    assert!(refused.to_string().contains("beside the program other (number "), "{refused}");
    detach(fd, to, kind);
    Retuner::attach(&world.folder).map(drop).unwrap();
}

#[allow(unsafe_code, reason = "libbpf's safe form attaches beside others only")]
fn attach_alone(program: i32, cgroup: i32, kind: u32) {
    // SAFETY: both descriptors are open for the length of the call.
    assert_eq!(unsafe { bpf_prog_attach(program, cgroup, kind, 0) }, 0);
}

#[allow(unsafe_code, reason = "as above")]
fn detach(program: i32, cgroup: i32, kind: u32) {
    // SAFETY: both descriptors are open for the length of the call.
    assert_eq!(unsafe { bpf_prog_detach2(program, cgroup, kind) }, 0);
}

#[test]
fn a_cgroup_that_is_made_anew_is_attached_to_again() {
    let Some(world) = World::new() else { return };
    let mut retuner = Retuner::attach(&world.folder).unwrap();
    world.set(&mut retuner);
    assert_eq!(world.connection().1.algorithm, "reno");
    assert!(eventually(|| fs::remove_dir(&world.folder).is_ok()));
    assert!(!retuner.stay_attached(&world.folder).unwrap(), "there is none");
    fs::create_dir(&world.folder).unwrap();
    assert_ne!(world.connection().1.algorithm, "reno");
    assert!(retuner.stay_attached(&world.folder).unwrap());
    assert_eq!(world.connection().1.algorithm, "reno");
    assert!(!retuner.stay_attached(&world.folder).unwrap());
}
