//! Two Open vSwitches of the user-space datapath, cabled, with a host at each: namespaces and daemons of the test's own.

use nix::sys::socket::{setsockopt, sockopt};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use tempfile::TempDir;
use testkit::{End, Namespaces, OpenVSwitch, PATIENCE, cable, inside, ip, or_skip, root};

/// Where the first switch listens; the second connects to us.
pub const PASSIVE: &str = "127.0.0.1:6653";

/// `sw1` (ports `p1` to host 1, `c1`) and `sw2` (`p2` to host 2, `c2`), with a cable between `c1` and `c2`. Removed when dropped.
pub struct Lab {
    pub switches: OpenVSwitch,
    _place: TempDir,
    /// The switches', and the two hosts'.
    spaces: Namespaces<3>,
}

impl Lab {
    /// Or a printed reason why the test is skipped.
    pub fn new() -> Option<Lab> {
        or_skip(root())?;
        if !OpenVSwitch::is_installed() {
            return None;
        }
        let spaces = Namespaces::new(["switches", "host-1", "host-2"]);
        let [switches, ..] = &*spaces;
        ip(&format!("-n {switches} link set lo up"));
        for number in [1, 2] {
            let host = &spaces[number];
            let [port, address] = [format!("p{number}"), format!("10.98.{number}.1/16")];
            let there = End { host, name: "eth0", address: Some(&address) };
            cable([there, End { host: switches, name: &port, address: None }]);
            OpenVSwitch::disable_offloads(host, "eth0");
            ip(&format!("-n {host} link set lo up"));
        }
        let end = |name| End { host: switches.as_str(), name, address: None };
        cable([end("c1"), end("c2")]);
        let place = tempfile::tempdir().expect("there is room");
        let lab = Lab { switches: OpenVSwitch::start(switches, place.path()), _place: place, spaces };
        for (switch, datapath, [host, between]) in [("sw1", 1, ["p1", "c1"]), ("sw2", 2, ["p2", "c2"])] {
            lab.switches.vsctl(&format!(
                "add-br {switch} -- set bridge {switch} datapath_type=netdev other-config:datapath-id={datapath:016x} \
                 -- add-port {switch} {host} -- add-port {switch} {between}"
            ));
        }
        lab.switches.vsctl(&format!("set-controller sw1 ptcp:{}", PASSIVE.rsplit(':').next().expect("it has a port")));
        Some(lab)
    }

    /// A switch's flow entries, without what counts.
    pub fn entries(&self, switch: &str) -> Vec<String> {
        let all = self.switches.ofctl(switch, "--no-stats dump-flows SWITCH");
        all.lines().map(|line| line.trim().to_string()).filter(|line| !line.is_empty()).collect()
    }

    /// Bytes that its flow entries of this match have counted, as it shows them.
    pub fn flow_bytes(&self, switch: &str, matched: &str) -> u64 {
        let all = self.switches.ofctl(switch, &format!("dump-flows SWITCH {matched}"));
        let counts = all.split("n_bytes=").skip(1).filter_map(|rest| rest.split(',').next()?.parse::<u64>().ok());
        counts.sum()
    }

    /// Runs `work` where the switches are, in a tokio runtime of one thread.
    pub fn run<T: Send>(&self, work: impl AsyncFnOnce() -> T + Send) -> T {
        inside(&self.spaces[0], || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("the kernel has descriptors").block_on(work())
        })
    }

    /// The same for a program.
    pub fn program(&self, command: &mut Command) -> String {
        let output =
            inside(&self.spaces[0], || command.output().unwrap_or_else(|error| panic!("{command:?}: {error}")));
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What Linux counted at a host's own end of its cable to the switch.
    pub fn linux(&self, host: usize) -> Linux {
        Linux::of(&self.spaces[host], "eth0")
    }

    /// What Linux counted at the switches' end.
    pub fn linux_port(&self, port: &str) -> Linux {
        Linux::of(&self.spaces[0], port)
    }

    /// Host 1 sends this many bytes to host 2 over TCP; they have arrived when it returns.
    pub fn send(&self, bytes: usize) {
        self.send_by([1, 2], bytes);
    }

    /// The same between these hosts.
    pub fn send_by(&self, [from, to]: [usize; 2], bytes: usize) {
        let address = format!("10.98.{to}.1:0");
        let listener = inside(&self.spaces[to], || TcpListener::bind(address).expect("it is its address"));
        // fewer bytes on the way than a port of the user-space datapath buffers, so that none are retransmitted and counted twice
        setsockopt(&listener, sockopt::RcvBuf, &(64 * 1024)).expect("it is a socket");
        let address = listener.local_addr().expect("it is bound");
        let mut sender = inside(&self.spaces[from], || TcpStream::connect(address).expect("the switches forward"));
        let (mut receiver, _) = listener.accept().expect("it has connected");
        for socket in [&sender, &receiver] {
            socket.set_read_timeout(Some(PATIENCE)).expect("it is not 0");
            socket.set_write_timeout(Some(PATIENCE)).expect("it is not 0");
        }
        thread::scope(|scope| {
            scope.spawn(|| {
                let block = vec![7; 64 * 1024];
                let mut left = bytes;
                while left > 0 {
                    let n = left.min(block.len());
                    sender.write_all(&block[..n]).expect("the receiver reads");
                    left -= n;
                }
            });
            let mut buffer = vec![0; 64 * 1024];
            let mut left = bytes;
            while left > 0 {
                let n = receiver.read(&mut buffer).expect("the sender writes");
                assert!(n > 0, "it ended {left} bytes too early");
                left -= n;
            }
        });
    }
}

/// An interface's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Linux {
    pub received_bytes: u64,
    pub received_packets: u64,
    pub sent_bytes: u64,
    pub sent_packets: u64,
}

impl Linux {
    fn of(space: &str, interface: &str) -> Linux {
        let text = ip(&format!("-n {space} -json -s link show dev {interface}"));
        let links: Value = serde_json::from_str(&text).expect("ip prints JSON");
        let count = |way: &str, what: &str| links[0]["stats64"][way][what].as_u64().expect("a count");
        Linux {
            received_bytes: count("rx", "bytes"),
            received_packets: count("rx", "packets"),
            sent_bytes: count("tx", "bytes"),
            sent_packets: count("tx", "packets"),
        }
    }
}
