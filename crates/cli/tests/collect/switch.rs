//! The switch between hosts.

use std::path::Path;
use std::process::{Command, Stdio};
use testkit::OpenVSwitch;

/// Whether it and these programs are installed; if not, a printed reason why the test is skipped.
pub fn are_installed(programs: &[&str]) -> bool {
    OpenVSwitch::is_installed()
        && programs.iter().all(|program| {
            let found = Command::new("which").arg(program).stdout(Stdio::null()).status();
            let is_missing = found.is_ok_and(|status| !status.success());
            if is_missing {
                eprintln!("skipped: {program} is not installed");
            }
            !is_missing
        })
}

/// A switch `sw` between these interfaces of the namespace; its sockets and files are in the folder.
pub fn between(namespace: &str, folder: &Path, ports: &[&str]) -> OpenVSwitch {
    let started = OpenVSwitch::start(namespace, folder);
    started.vsctl("add-br sw -- set bridge sw datapath_type=netdev protocols=OpenFlow13");
    let ports: Vec<String> = ports.iter().map(|port| format!("add-port sw {port}")).collect();
    started.vsctl(&ports.join(" -- "));
    started
}
