//! An enforcer with real packets, in real time: every byte arrives, and it takes as long as in the simulator. Root only; one test at
//! a time on a machine.

use crate::run_support::{machine, valid_run};
use emu::address::address;
use scenario::Scenario;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;
use testkit::{LossyDownload, scenario};

/// 10 Mbit/s and 30 ms with these losses of data, queues of 50 packets, and BBR enforced at `at`.
fn download(at: &str, loss: &str) -> Scenario {
    scenario(
        &LossyDownload { duration: "8 s", bytes: "5 MB", loss, enforced_at: Some(at), ..LossyDownload::default() }
            .text(),
    )
}

#[test]
fn a_download_takes_as_long_as_simulated() {
    let Some(_machine) = machine() else { return };
    for at in ["s1", "left1"] {
        let scenario = download(at, "0.3 %");
        let simulated = sim::simulate(&scenario, &mut ()).expect("nothing stops it");
        let Some(emulated) = valid_run(&format!("enforced at {at}"), 1.0, &scenario) else { return };
        let seconds = |results: &results::RunResults| results.flows[0].fct_ns().expect("it ends") as f64 / 1e9;
        let (sim, emu) = (seconds(&simulated), seconds(&emulated.results));
        let counted = |name: &str| {
            let of = |results: &results::RunResults| results.summary.extra[&format!("enforcer.{name}")];
            [of(&simulated), of(&emulated.results)]
        };
        println!(
            "at {at}: simulated {sim:.3} s, emulated {emu:.3} s; retransmitted {:?}, absorbed {:?}, kept {:?}",
            counted("retransmitted"),
            counted("absorbed"),
            counted("kept_median")
        );
        assert!((emu / sim - 1.0).abs() < 0.05, "at {at}: simulated {sim}, emulated {emu}");
        assert!(counted("flows_opened").iter().all(|count| (count - 1.0).abs() < 0.1), "one flow each");
        let row = &emulated.results.enforcer[0];
        assert_eq!((row.flow, &*row.server, &*row.client, &*row.algorithm), (Some(0), "left1", "right1", "bbr"));
        assert!(row.bytes_acked >= 5_000_000, "{row:?}");
    }
}

const PORT: u16 = 80;
const BYTES: usize = 3_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Byte number `at` of the stream from `end`.
fn byte(end: usize, at: usize) -> u8 {
    (at % 251) as u8 ^ (end as u8)
}

/// Sends all data of `end`, then a FIN.
fn send(mut stream: &TcpStream, end: usize) {
    let bytes: Vec<u8> = (0..BYTES).map(|at| byte(end, at)).collect();
    stream.write_all(&bytes).expect("the bytes leave in time");
    stream.shutdown(std::net::Shutdown::Write).expect("it is open");
}

/// Receives all data of the other end, up to its FIN.
fn receive(mut stream: &TcpStream, from: usize) {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("the bytes arrive in time");
    assert_eq!(bytes.len(), BYTES, "from end {from}");
    let wrong = bytes.iter().enumerate().find(|(at, have)| **have != byte(from, *at));
    assert_eq!(wrong, None, "from end {from}");
}

#[test]
fn every_byte_of_both_ends_arrives_through_losses() {
    let Some(_machine) = machine() else { return };
    let scenario = download("s1", "2 %");
    let exchange = |network: &emu::Network| {
        let hosts = network.hosts();
        let listener = hosts[0].enter(|| TcpListener::bind((address(0), PORT))).and_then(|it| it).expect("a port");
        let target = SocketAddr::from((address(0), PORT));
        let client = hosts[1].enter(move || TcpStream::connect_timeout(&target, PATIENCE)).and_then(|it| it);
        let (server, _) = listener.accept().expect("a connection waits");
        let ends = [server, client.expect("it listens")];
        for end in &ends {
            end.set_read_timeout(Some(PATIENCE)).expect("a socket takes it");
            end.set_write_timeout(Some(PATIENCE)).expect("a socket takes it");
        }
        thread::scope(|scope| {
            for (number, end) in ends.iter().enumerate() {
                scope.spawn(move || send(end, number));
                scope.spawn(move || receive(end, 1 - number));
            }
        });
        // other protocols than TCP pass
        let socket =
            |host: u32| hosts[host as usize].enter(move || UdpSocket::bind((address(host), PORT))).and_then(|it| it);
        let [server, client] = [0, 1].map(|host| socket(host).expect("a port"));
        server.set_read_timeout(Some(PATIENCE)).expect("a socket takes it");
        client.send_to(b"hello", target).expect("it leaves");
        assert_eq!(server.recv(&mut [0; 8]).expect("it arrives"), 5);
    };
    let cpus = thread::available_parallelism().expect("there are some");
    let ((), counted) = emu::open(&scenario, None, exchange).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(thread::available_parallelism().ok(), Some(cpus), "the next network's engine needs one too");
    let counters = *counted.gates[0].counters();
    println!("{counters:?}");
    assert_eq!((counters.flows_opened, counters.passed_malformed), (1, 1));
    // of some 2000 packets 2 % are lost behind the enforcer, which retransmits them
    assert!(counters.retransmitted > 10, "{counters:?}");
    assert!(counters.data_taken as usize > BYTES / 1448, "{counters:?}");
}
