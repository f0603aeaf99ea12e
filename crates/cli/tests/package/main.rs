//! The Debian package, on a Debian of its own with systemd: installed, used, upgraded, removed, purged.

mod debian;
mod image;
mod kubernetes;

use debian::Debian;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};
use testkit::{eventually, until};

const UNITS: [&str; 4] = ["opentcp-oracle", "opentcp-agent", "opentcp-enforcer", "opentcp-collector"];

#[test]
fn the_package_installs_runs_upgrades_and_purges_without_a_trace() {
    let Some(debian) = Debian::boot() else { return };
    let Some([first, second]) = packages(&debian) else { return };
    let before = debian.files();
    let pins = || debian.run("find /sys/fs/bpf | sort");
    let pinned = pins();

    debian.run(&format!("dpkg -i {}", first.display()));
    let installed = added(&before, &debian.files());
    let listed: BTreeSet<PathBuf> = debian.run("dpkg -L opentcp").lines().map(PathBuf::from).collect();
    let stray: Vec<&PathBuf> = installed.iter().filter(|path| !listed.contains(*path)).collect();
    assert!(stray.is_empty(), "files that dpkg does not know: {stray:?}");
    let agents = ["/usr/bin/opentcp-agent", "/usr/share/man/man1/opentcp-agent.1.gz"];
    for expected in ["/usr/bin/opentcp", "/etc/opentcp/policy.toml"].into_iter().chain(agents) {
        assert!(listed.contains(Path::new(expected)), "{expected} of {listed:?}");
    }
    for unit in UNITS {
        assert_eq!(debian.fails(&format!("systemctl is-enabled {unit}")).trim(), "disabled", "{unit}");
        assert_eq!(debian.fails(&format!("systemctl is-active {unit}")).trim(), "inactive", "{unit}");
        // below 5 is what systemd calls OK
        let score = debian.run(&format!("systemd-analyze security --no-pager {unit} | tail -n 1"));
        println!("{}", score.trim());
        let level: f64 = score.split_whitespace().find_map(|word| word.parse().ok()).expect("a level");
        assert!(level < 5.0, "{score}");
    }

    debian.run("opentcp keygen");
    let policy = fs::read_to_string(debian.path("/etc/opentcp/policy.toml")).expect("the package has one");
    let enforced = policy.replace("mode = \"observe\"", "mode = \"enforce\"").replace("fraction = 0.5", "fraction = 1");
    let enforced = enforced.replace("network.max_link_utilization < 0.70", "network.live_flows >= 0");
    let enforced = enforced.replace("period = \"60 s\"", "period = \"1 s\"");
    fs::write(debian.path("/etc/opentcp/policy.toml"), &enforced).expect("a file of our own");
    debian.run("systemctl enable --now opentcp-oracle opentcp-agent");
    let in_force = || debian.run("opentcp agent status").contains("in force: policy/calm network");
    assert!(eventually(in_force), "{}\n{}", debian.run("opentcp agent status"), debian.log());
    let mut connection = debian.inside(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let one = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        (one, listener.accept().expect("it was asked").0)
    });
    exchange(&mut connection);

    start_enforcer(&debian);
    let pids = || {
        ["opentcp-oracle", "opentcp-agent", "opentcp-enforcer"]
            .map(|unit| debian.run(&format!("systemctl show -P MainPID {unit}")))
    };
    let old = pids();
    debian.run("systemctl reload opentcp-enforcer");
    until("the reloaded enforcer is the service", || pids()[2] != old[2]);
    debian.run("systemctl is-active opentcp-enforcer && opentcp enforce --status");
    let old = pids();
    debian.run(&format!("dpkg -i --force-confold {}", second.display()));
    assert!(debian.run("dpkg -s opentcp").contains("Version: 99.0.0"));
    let said = debian.run("journalctl --no-pager --unit opentcp-enforcer");
    assert_eq!(said.matches("took over with 0 flows").count(), 2, "a reload and an upgrade: {said}");
    debian.run("systemctl is-active opentcp-enforcer && opentcp enforce --status");
    until("the upgraded daemons run", || pids().iter().zip(&old).all(|(new, old)| new != old && new.trim() != "0"));
    exchange(&mut connection);
    assert!(eventually(in_force), "after the upgrade: {}\n{}", debian.run("opentcp agent status"), debian.log());
    let kept = fs::read_to_string(debian.path("/etc/opentcp/policy.toml")).expect("it is still there");
    assert_eq!(kept, enforced, "the operator's changes are kept");

    debian.run("dpkg -r opentcp");
    exchange(&mut connection);
    assert!(debian.path("/etc/opentcp/oracle.key").exists(), "to remove is not to purge");
    assert_eq!(pins(), pinned, "what is pinned in the kernel");
    debian.run("dpkg -P opentcp");
    let left = added(&before, &debian.files());
    println!("{} files installed; {} left after purge", installed.len(), left.len());
    assert!(left.is_empty(), "left behind: {left:?}");
    let lost = added(&debian.files(), &before);
    assert!(lost.is_empty(), "taken away: {lost:?}");
}

/// Starts the enforcer between two ports of a bridge.
fn start_enforcer(debian: &Debian) {
    debian.run("ip link add br0 type bridge && ip link set br0 up");
    for port in ["s", "c"] {
        debian.run(&format!("ip link add {port} type veth peer name {port}0"));
        debian.run(&format!("ip link set {port}0 up && ip link set {port} master br0 up"));
    }
    let options = "ENFORCE=--between s c --rule 'none port=22' --rule cubic\n";
    fs::write(debian.path("/etc/opentcp/enforcer.conf"), options).expect("a file of our own");
    debian.run("systemctl enable --now opentcp-enforcer");
    assert!(eventually(|| debian.run("opentcp enforce --status || true").contains("flows")), "{}", debian.log());
}

/// Two versions of the package, inside; or a printed reason why the test is skipped.
fn packages(debian: &Debian) -> Option<[PathBuf; 2]> {
    let built = Path::new(env!("CARGO_BIN_EXE_opentcp"));
    let profile = built.parent().and_then(Path::file_name).expect("target/PROFILE/opentcp");
    let make = |version: &str| {
        let made =
            Command::new("tools/package").arg(profile).env("OPENTCP_DEB_VERSION", version).current_dir(root()).output();
        let made = made.expect("a shell");
        if !made.status.success() {
            eprintln!("skipped: no package could be made: {}", String::from_utf8_lossy(&made.stderr));
            return None;
        }
        let package = String::from_utf8(made.stdout).expect("a path");
        let inside = PathBuf::from(format!("/var/tmp/opentcp-{version}.deb"));
        fs::copy(root().join(package.trim()), debian.path(inside.to_str().expect("ASCII"))).expect("room");
        Some(inside)
    };
    Some([make("0.1.0")?, make("99.0.0")?])
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn exchange((one, other): &mut (TcpStream, TcpStream)) {
    let data = vec![7; 100_000];
    let mut got = vec![0; data.len()];
    std::thread::scope(|scope| {
        scope.spawn(|| one.write_all(&data).expect("the connection lives"));
        other.read_exact(&mut got).expect("the connection lives");
    });
    assert_eq!(got, data);
}

fn added(before: &BTreeSet<PathBuf>, after: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    after.difference(before).cloned().collect()
}
