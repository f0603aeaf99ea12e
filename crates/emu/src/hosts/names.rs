//! Hosts' names for their programs: an /etc/hosts that only they see.

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

/// The file that programs read before they ask a name server.
const HOSTS: &str = "/etc/hosts";

/// Runs `job` on a temporary thread for which, and for the programs that it starts, /etc/hosts has these names before the machine's
/// own. `file` holds the text meanwhile. `job` runs in any case, and gets whether that succeeded.
///
/// # Errors
/// No thread can be started.
pub fn with_names<T: Send>(
    names: &[(&str, Ipv4Addr)],
    file: &Path,
    job: impl FnOnce(io::Result<()>) -> T + Send,
) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, || job(give(names, file)))?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

fn give(names: &[(&str, Ipv4Addr)], file: &Path) -> io::Result<()> {
    fs::write(file, table(names, &fs::read_to_string(HOSTS)?))?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    let none = None::<&str>;
    // mounts made here must not propagate to others
    mount(none, "/", none, MsFlags::MS_SLAVE | MsFlags::MS_REC, none)?;
    Ok(mount(Some(file), HOSTS, none, MsFlags::MS_BIND, none)?)
}

/// The first line with a name counts, so the network's come before the machine's.
fn table(names: &[(&str, Ipv4Addr)], machine: &str) -> String {
    let mut text = String::new();
    for (name, address) in names {
        writeln!(text, "{address} {name}").expect("writing to a string");
    }
    text + machine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_name_comes_before_the_machines_own_of_the_same() {
        let text = table(&[("h1", Ipv4Addr::new(10, 0, 0, 1))], "127.0.0.1 localhost h1\n");
        assert_eq!(text, "10.0.0.1 h1\n127.0.0.1 localhost h1\n");
    }
}
