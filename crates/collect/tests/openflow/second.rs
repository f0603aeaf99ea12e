//! A second implementation, os-ken, reads the same switch.

use crate::lab::Lab;
use crate::{read_until, reads};
use collect::openflow::OpenFlow;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An application of os-ken: asks the first switch that connects for its port statistics, and prints them.
const APPLICATION: &str = r#"
import json
import os
import sys

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import hub
from os_ken.ofproto import ofproto_v1_3


class Reader(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    @set_ev_cls(ofp_event.EventOFPStateChange, MAIN_DISPATCHER)
    def on_switch(self, event):
        path = event.datapath
        path.send_msg(path.ofproto_parser.OFPPortStatsRequest(path, 0, path.ofproto.OFPP_ANY))

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def on_statistics(self, event):
        names = ["port_no", "rx_packets", "rx_bytes", "rx_dropped", "rx_errors"]
        names += ["tx_packets", "tx_bytes", "tx_dropped", "tx_errors"]
        print(json.dumps([[getattr(port, name) for name in names] for port in event.msg.body]), flush=True)
        os._exit(0)


if __name__ == "__main__":
    cfg.CONF(args=sys.argv[1:], project="os_ken", default_config_files=[])
    manager = app_manager.AppManager.get_instance()
    manager.load_apps(["os_ken.controller.ofp_handler", "reader"])
    manager.instantiate_apps(**manager.create_contexts())
    hub.sleep(60)
    sys.exit("no switch has connected")
"#;

/// A Python that has os-ken, kept for later runs; or a printed reason why the test is skipped.
fn python() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("os-ken-4.2.2");
    let python = folder.join("bin/python3");
    if python.exists() {
        return Some(python);
    }
    let parts = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target folder can be written");
    let made = parts.path().join("venv");
    let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "os-ken==4.2.2"];
    let steps =
        [(Path::new("python3"), vec!["-m", "venv", made.to_str()?]), (&made.join("bin/python3"), quiet.to_vec())];
    for (program, arguments) in steps {
        let output = Command::new(program).args(&arguments).output();
        let why = match output {
            Ok(output) if output.status.success() => continue,
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        eprintln!("skipped: {} {}: {why}", program.display(), arguments.join(" "));
        return None;
    }
    // another test run may have been faster
    let _ = fs::rename(made, &folder);
    Some(python)
}

#[test]
fn os_ken_reads_the_same_counters() {
    let Some(python) = python() else { return };
    let Some(lab) = Lab::new() else { return };
    lab.send(2_000_000);
    fs::write(lab.switches.file("reader.py"), APPLICATION).expect("there is room");
    // both controllers at once
    lab.switches.vsctl(
        "-- --id=@theirs create controller target=\"tcp:127.0.0.1:6700\" type=service \
         -- --id=@ours create controller target=\"ptcp:6654\" -- set bridge sw2 controller=@theirs,@ours",
    );
    let mut application = Command::new(python);
    application.arg(lab.switches.file("reader.py")).args([
        "--ofp-listen-host",
        "127.0.0.1",
        "--ofp-tcp-listen-port",
        "6700",
    ]);
    application.current_dir(lab.switches.file(""));
    let theirs: Value = serde_json::from_str(&lab.program(&mut application)).expect("it prints JSON");
    let ours = lab.run(async || {
        let mut switch = OpenFlow::connect(reads("sw2"), "127.0.0.1:6654".to_string(), None);
        read_until(&mut switch, "it answers", |_| true).await
    });
    let mut compared = 0;
    for port in &ours.ports {
        let theirs = theirs.as_array().into_iter().flatten().find(|theirs| theirs[0] == port.number);
        let theirs = theirs.unwrap_or_else(|| panic!("os-ken has no port {}: {theirs:?}", port.number));
        let counted = [port.received, port.sent].map(|way| [way.packets, way.bytes, way.dropped, way.errors]);
        for (at, count) in counted.as_flattened().iter().enumerate() {
            assert_eq!(theirs[at + 1].as_u64(), *count, "{}, number {at} of {theirs}", port.name);
            compared += 1;
        }
    }
    assert_eq!(compared, 2 * 8, "two ports");
    eprintln!("{compared} counters are the same by os-ken: {theirs}");
}
