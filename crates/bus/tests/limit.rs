//! An Oracle that may open few files turns agents away, and serves those that it has.

use bus::{Bus as _, Hub as _, UnixAgent, UnixOracle};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Duration;

#[test]
fn more_agents_than_a_process_may_open_files_for_are_turned_away() {
    const FILES: u64 = 200;
    let usual = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), ..usual }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("oracle.sock");
    let mut oracle = UnixOracle::listen(&path).unwrap();
    // the agents are of this process, too
    setrlimit(Resource::Nofile, Rlimit { current: Some(1000), ..usual }).unwrap();
    let mut agents: Vec<UnixAgent> = (0..100).map(|_| UnixAgent::connect(&path).unwrap()).collect();
    assert_eq!(oracle.receive(Duration::ZERO).unwrap(), None);
    agents.extend((0..100).map(|_| UnixAgent::connect(&path).unwrap()));
    agents[7].send(b"report").unwrap();
    assert_eq!(oracle.receive(Duration::from_secs(20)).unwrap().unwrap().bytes, b"report");
    let counts = oracle.counts();
    assert_eq!((counts.peers, counts.refused), (FILES as usize - 64, 200 - (FILES - 64)));
    setrlimit(Resource::Nofile, usual).unwrap();
}
