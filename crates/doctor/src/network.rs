//! Namespaces, TAPs, AF_XDP sockets: each is created and removed.

use crate::machine::how_to_get_rights;
use crate::{Check, Need};
use nix::sched::{CloneFlags, unshare};
use packet_io::Tap;
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;
use std::thread;

/// A host of the emulator: a network namespace with a TAP. Both end with the thread.
pub fn namespaces() -> Check {
    let check = Check::new("TAP", &[Need::Emulate, Need::Shell]);
    let made = thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| ("a network namespace", io::Error::from(errno)))?;
        Tap::open("probe").map_err(|error| ("a TAP", error)).map(drop)
    });
    match made.join() {
        Ok(Ok(())) => check.ok("network namespaces and TAPs work"),
        Ok(Err((what, error))) => {
            refused(check, what, &error, "load the module (`modprobe tun`), or give the container /dev/net/tun")
        }
        Err(_) => check.missing("the attempt failed", "run it again, and report what it printed"),
    }
}

/// Sockets that receive an interface's packets for the enforcer.
pub fn af_xdp() -> Check {
    let check = Check::new("AF_XDP", &[Need::Enforce]);
    match socket(AddressFamily::XDP, SocketType::RAW, None) {
        Ok(_) => check.ok("sockets work"),
        Err(errno) => refused(check, "a socket", &errno.into(), "the kernel needs CONFIG_XDP_SOCKETS=y"),
    }
}

/// Missing rights, or the cause that `advice` is for.
fn refused(check: Check, what: &str, error: &io::Error, advice: &str) -> Check {
    let found = format!("{what} cannot be created: {error}");
    if error.kind() == io::ErrorKind::PermissionDenied {
        return check.missing(found, how_to_get_rights());
    }
    check.missing(found, advice)
}
