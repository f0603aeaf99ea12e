//! Everything that a test has created is deleted, also when the test failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use testkit::{End, LossyDownload, Namespaces, Running, cable, inside, ip, or_skip, root, scenario};

fn exists(namespace: &str) -> bool {
    Path::new("/run/netns").join(namespace).exists()
}

#[test]
fn namespaces_and_programs_end_with_a_test_that_fails() {
    let Some(()) = or_skip(root()) else { return };
    let (mut names, mut process) = (Vec::new(), 0);
    let failing = AssertUnwindSafe(|| {
        let hosts = Namespaces::new(["one", "other"]);
        names = hosts.to_vec();
        let log = std::env::temp_dir().join(format!("{}.log", names[0]));
        let sleep = Running::start(&hosts[0], Command::new("sleep").arg("60"), log.clone());
        std::fs::remove_file(log).expect("it was made");
        process = sleep.id();
        assert!(names.iter().all(|name| exists(name)) && Path::new(&format!("/proc/{process}")).exists());
        panic!("on purpose");
    });
    assert!(catch_unwind(failing).is_err());
    assert!(process > 0 && !Path::new(&format!("/proc/{process}")).exists());
    assert!(!names.iter().any(|name| exists(name)), "{names:?}");
}

#[test]
fn a_cable_connects_its_ends() {
    let Some(()) = or_skip(root()) else { return };
    let hosts = Namespaces::new(["one", "other"]);
    let end = |host: usize, address| End { host: &hosts[host], name: "eth0", address: Some(address) };
    cable([end(0, "10.66.0.1/24"), end(1, "10.66.0.2/24")]);
    let listener = inside(&hosts[1], || std::net::TcpListener::bind("10.66.0.2:0").expect("its address is up"));
    let target = listener.local_addr().expect("it is bound");
    inside(&hosts[0], || std::net::TcpStream::connect(target)).expect("the other end listens");
    assert!(ip(&format!("-n {} route", hosts[0])).contains("10.66.0.0/24 dev eth0"));
}

#[test]
fn a_lossy_download_is_a_scenario() {
    let read = scenario(&LossyDownload { enforced_at: Some("s1"), buffers: Some("1 MB"), ..Default::default() }.text());
    assert!(!read.enforcer.is_empty() && read.traffic.len() == 1);
}
