//! The OCI image, made and run by podman.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{self, Command, Output};
use testkit::{Machine, or_skip, root};

/// Cgroups of version 2 alone, as podman wants them, whatever this machine has.
const RUN: &str = "mount -t tmpfs none /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec podman run --rm --network none \
                   --cgroups=disabled --ulimit nofile=1024:1024 --ulimit nproc=1000:1000 \"$@\"";

#[test]
fn the_image_runs_and_has_no_shell() {
    if or_skip(root()).is_none() {
        return;
    }
    if Command::new("podman").arg("--version").output().is_err() {
        eprintln!("skipped: podman is not installed (apt-get install podman)");
        return;
    }
    // the package's test moves this process between cgroups
    let _machine = Machine::share();
    let profile = Path::new(env!("CARGO_BIN_EXE_opentcp")).parent().and_then(Path::file_name).expect("target/PROFILE");
    let tag = Tag(format!("localhost/opentcp-test:{}", process::id()));
    let mut make = Command::new("tools/image");
    make.arg(profile).arg(&tag.0).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let made = make.output().expect("a shell");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

    let version = run(&tag, &[], &["--version"]);
    let said = String::from_utf8_lossy(&version.stderr);
    if said.contains("OCI permission denied") || said.contains("OCI runtime error") {
        eprintln!("skipped: this machine runs no containers: {said}");
        return;
    }
    assert_eq!(
        String::from_utf8_lossy(&version.stdout).trim(),
        concat!("opentcp ", env!("CARGO_PKG_VERSION")),
        "{said}"
    );
    let checked = run(&tag, &[], &["policy", "check", "/etc/opentcp/policy.toml"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let algorithms = run(&tag, &["--read-only", "--cap-drop=ALL", "--user=65532"], &["cc", "list", "--json"]);
    assert!(algorithms.status.success(), "{}", String::from_utf8_lossy(&algorithms.stderr));
    // as a secret is mounted: anybody could change the folder, if the file system were not read-only
    let folder = tempfile::tempdir().expect("a folder");
    let mut made = Command::new(env!("CARGO_BIN_EXE_opentcp"));
    made.args(["fleet", "init", "fleet", "--server", "nats.example"]);
    assert!(made.current_dir(folder.path()).status().expect("it runs").success());
    let identity = folder.path().join("fleet/oracle-0");
    fs::set_permissions(&identity, fs::Permissions::from_mode(0o1777)).expect("it is ours");
    for (how, is_taken) in [("ro", true), ("rw", false)] {
        let volume = format!("--volume={}:/identity:{how}", identity.display());
        let shown = run(&tag, &["--read-only", "--cap-drop=ALL", &volume], &["fleet", "show", "/identity"]);
        assert_eq!(shown.status.success(), is_taken, "{how}: {}", String::from_utf8_lossy(&shown.stderr));
    }
    assert!(!run(&tag, &["--entrypoint=/bin/sh"], &["-c", "true"]).status.success(), "there is no shell");
}

fn run(tag: &Tag, options: &[&str], arguments: &[&str]) -> Output {
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--cgroup", "--propagation", "private", "sh", "-c", RUN, "sh"]);
    unshare.args(options).arg(&tag.0).args(arguments).output().expect("util-linux is everywhere")
}

/// Removed with the test.
struct Tag(String);

impl Drop for Tag {
    fn drop(&mut self) {
        let _ = Command::new("podman").args(["rmi", "--force", &self.0]).output();
    }
}
