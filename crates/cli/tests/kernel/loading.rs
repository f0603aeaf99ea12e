//! `opentcp cc load`, `unload` and `list` in the running kernel.

use crate::common::{Done, Place};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use serde_json::Value;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, thread};
use testkit::{Machine, or_skip};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The running kernel, for one test at a time, of all crates; cleaned on drop, also by a failing test.
pub struct Exclusive {
    pub place: Place,
    _machine: Machine,
}

impl Exclusive {
    /// Or a printed reason why the test is skipped.
    pub fn new() -> Option<Exclusive> {
        or_skip(kernel::Kernel::probe())?;
        let machine = Machine::take();
        assert_eq!(kernel::pinned(), [""; 0], "first unload what is loaded here: opentcp cc unload all");
        Some(Exclusive { place: Place::new(), _machine: machine })
    }

    pub fn succeed(&self, args: &[&str]) -> String {
        self.place.succeed(args).stdout
    }

    /// Runs a command that must be refused as bad input and change nothing; returns stderr.
    fn refused(&self, args: &[&str]) -> String {
        refused(&self.place, args)
    }

    /// `cc list --json`.
    fn listed(&self) -> Value {
        serde_json::from_str(&self.succeed(&["cc", "list", "--json"])).unwrap()
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        let _ = self.place.opentcp(&["cc", "unload", "all"]);
    }
}

fn refused(place: &Place, args: &[&str]) -> String {
    let before = available();
    let done = place.opentcp(args);
    check_refusal(&done, args);
    assert_eq!(available(), before, "{args:?} changed something");
    done.stderr
}

fn check_refusal(done: &Done, args: &[&str]) {
    assert_eq!(done.code, Some(2), "{args:?}: {}{}", done.stdout, done.stderr);
    assert_eq!(done.stdout, "", "stdout is for data");
    assert!(done.stderr.starts_with("error: ") && !done.stderr.contains("\nerror: "), "{}", done.stderr);
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
}

/// The algorithms that sockets of this namespace can choose.
pub fn available() -> String {
    fs::read_to_string(AVAILABLE).unwrap()
}

/// Runs `work` in a network namespace of its own, which has a loopback interface and is removed afterwards.
fn in_a_namespace<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
            work()
        });
        worker.join().unwrap()
    })
}

/// A connection over loopback: the end that uses `algorithm`, and the other one.
fn connection(algorithm: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    setsockopt(&sender, TcpCongestion, &OsString::from(algorithm)).unwrap();
    (sender, listener.accept().unwrap().0)
}

/// The entry called `name` in a list of the JSON object.
fn entry<'a>(listed: &'a Value, list: &str, name: &str) -> &'a Value {
    listed[list].as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap_or(&Value::Null)
}

#[test]
fn all_are_loaded_listed_with_their_sockets_and_unloaded() {
    let Some(kernel) = Exclusive::new() else { return };
    let before = available();
    let loaded = kernel.succeed(&["cc", "load", "all"]);
    assert_eq!(loaded.lines().count(), kernel::builtins().count(), "{loaded}");
    assert!(loaded.lines().all(|line| line.starts_with("ot_") && line.ends_with(" loaded")), "{loaded}");
    in_a_namespace(|| {
        for name in kernel::builtins() {
            let kernel_name = format!("ot_{name}");
            let (mut sender, mut sink) = connection(&kernel_name);
            sender.write_all(b"carried").unwrap();
            let mut bytes = [0; 7];
            sink.read_exact(&mut bytes).unwrap();
            assert_eq!(&bytes, b"carried");

            let listed = kernel.listed();
            let ours = entry(&listed, "algorithms", name);
            assert_eq!((&ours["loaded"], &ours["sockets"]), (&true.into(), &1.into()), "{listed}");
            assert_eq!(entry(&listed, "kernel", &kernel_name)["origin"], "loaded", "{listed}");
            // The other end has the namespace's default, whichever that is.
            let own: u64 = ["reno", "cubic", "bbr"]
                .iter()
                .filter_map(|name| entry(&listed, "kernel", name)["sockets"].as_u64())
                .sum();
            assert_eq!(own, 1, "{listed}");
            assert_eq!(entry(&listed, "kernel", "reno")["origin"], "built-in", "{listed}");
            let table = kernel.succeed(&["cc", "list"]);
            let row = table.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
            assert!(row.contains(&format!("loaded as {kernel_name}")), "{table}");
        }
    });
    let unloaded = kernel.succeed(&["cc", "unload", "all"]);
    assert_eq!(unloaded.lines().count(), kernel::builtins().count(), "{unloaded}");
    assert_eq!(available(), before);
    assert!(!fs::exists("/sys/fs/bpf/opentcp").unwrap());
    assert_eq!(kernel.place.succeed(&["cc", "unload", "all"]).stderr, "nothing is loaded\n");
}

#[test]
fn a_socket_keeps_what_is_unloaded_and_the_list_says_so() {
    let Some(kernel) = Exclusive::new() else { return };
    kernel.succeed(&["cc", "load", "vegas"]);
    in_a_namespace(|| {
        let _open = connection("ot_vegas");
        let said = kernel.succeed(&["cc", "unload", "ot_vegas"]);
        assert!(said.contains("a socket of this network namespace keeps it"), "{said}");
        let listed = kernel.listed();
        assert_eq!(entry(&listed, "algorithms", "vegas")["loaded"], false, "{listed}");
        assert_eq!(entry(&listed, "algorithms", "vegas")["sockets"], 1, "{listed}");
        assert_eq!(entry(&listed, "kernel", "ot_vegas")["origin"], "unloaded, in use", "{listed}");
    });
}

#[test]
fn files_written_for_libbpf_are_loaded_under_their_own_names() {
    let Some(kernel) = Exclusive::new() else { return };
    let before = available();
    // One table is in `.struct_ops.link`, the other in `.struct_ops`.
    for (file, name) in [("cubic.c", "rfc_cubic"), ("dctcp.c", "rfc_dctcp"), ("before_6_10.c", "bpf_aged_dctcp")] {
        let path = foreign(file);
        let path = path.to_str().unwrap();
        assert_eq!(kernel.succeed(&["cc", "load", path]), format!("{name:<16}loaded\n"));
        in_a_namespace(|| {
            let (mut sender, mut sink) = connection(name);
            sender.write_all(b"carried").unwrap();
            let mut bytes = [0; 7];
            sink.read_exact(&mut bytes).unwrap();
            let listed = kernel.listed();
            let ours = entry(&listed, "kernel", name);
            assert_eq!((&ours["origin"], &ours["sockets"]), (&"loaded".into(), &1.into()), "{listed}");
            let said = kernel.succeed(&["cc", "load", path]);
            assert!(said.starts_with(&format!("{name:<16}replaced")), "{said}");
        });
    }
    assert_eq!(kernel.succeed(&["cc", "unload", "rfc_cubic"]), "rfc_cubic       unloaded\n");
    let path = foreign("dctcp.c");
    assert_eq!(kernel.succeed(&["cc", "unload", path.to_str().unwrap()]), "rfc_dctcp       unloaded\n");
    kernel.succeed(&["cc", "unload", "bpf_aged_dctcp"]);
    assert_eq!(available(), before);
    assert!(!fs::exists("/sys/fs/bpf/opentcp").unwrap());
}

/// A file that was written for libbpf.
fn foreign(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../congestion/tests/foreign").join(name)
}

/// The text of an algorithm of `cc/`.
pub fn source(name: &str) -> String {
    fs::read_to_string(format!("{}/../../cc/{name}.c", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn a_users_file_is_loaded_replaced_and_unloaded_by_its_file_or_name() {
    let Some(kernel) = Exclusive::new() else { return };
    kernel.place.write(
        "mine.c",
        &source("newreno").replace("CC_OPS(newreno", "CC_OPS(mine").replace("CC_INFO(newreno", "CC_INFO(mine"),
    );
    assert_eq!(kernel.succeed(&["cc", "load", "mine.c"]), "ot_mine         loaded\n");
    assert_eq!(entry(&kernel.listed(), "kernel", "ot_mine")["origin"], "loaded");
    assert!(kernel.succeed(&["cc", "list"]).lines().any(|line| line.starts_with("ot_mine ")));
    let said = kernel.succeed(&["cc", "load", "./mine.c"]);
    assert!(said.starts_with("ot_mine         replaced"), "{said}");
    assert_eq!(kernel.succeed(&["cc", "unload", "mine.c"]), "ot_mine         unloaded\n");
    kernel.succeed(&["cc", "load", "mine.c"]);
    assert_eq!(kernel.succeed(&["cc", "unload", "mine"]), "ot_mine         unloaded\n");
}

#[test]
fn what_cannot_be_loaded_is_refused_in_one_line_of_reason() {
    let Some(kernel) = Exclusive::new() else { return };
    let newreno = source("newreno");
    let clamp = newreno.replace("return tcp_reno_ssthresh(sk);", "tcp_sk(sk)->snd_cwnd_clamp = 1;\n\treturn 2;");
    for (file, text) in [
        ("clamp.c", clamp.as_str()),
        ("long.c", &newreno.replace("(newreno,", "(new_reno_of_mine,")),
        ("broken.c", "#include \"tcp.h\"\nint broken(void) { return nothing; }\n"),
        ("empty.c", "#include \"tcp.h\"\n"),
        ("lacking.c", &newreno.replace("\t.undo_cwnd = newreno_undo_cwnd,\n", "").replace(&undo(&newreno), "")),
        (
            "foreign.c",
            &fs::read_to_string(foreign("cubic.c")).unwrap().replace("\"rfc_cubic\"", "\"cubic_of_rfc_9438\""),
        ),
        ("same.c", &newreno.replace("tcp_reno_cong_avoid(sk, acked)", "tcp_reno_cong_avoid(sk, 1)")),
    ] {
        kernel.place.write(file, text);
    }
    kernel.succeed(&["cc", "load", "bic"]);
    let cases: [(&[&str], &[&str]); 11] = [
        (&["load", "cubic", "cubicc"], &["no algorithm \"cubicc\"", "highspeed"]),
        (&["load", "nothing.c"], &["nothing.c: No such file"]),
        (&["load", "broken.c"], &["broken.c:2:27", "nothing"]),
        (&["load", "empty.c"], &["empty.c declares 0 algorithms"]),
        (&["load", "lacking.c"], &["lacking.c lacks undo_cwnd"]),
        (&["load", "long.c"], &["\"ot_new_reno_of_mine\", 19 characters", "shorten NAME to 12"]),
        (&["load", "foreign.c"], &["foreign.c names its algorithm \"cubic_of_rfc_943\"", "shorten its .name"]),
        (
            &["load", "cubic", "clamp.c"],
            &[
                "verifier refuses clamp.c",
                "hook newreno_ssthresh",
                "snd_cwnd_clamp = 1",
                "no write support to tcp_sock",
            ],
        ),
        (&["load", "newreno", "same.c"], &["newreno and same.c are both called ot_newreno"]),
        (&["unload", "cubic"], &["ot_cubic is not loaded; loaded: ot_bic"]),
        (&["unload", "bic", "vegas"], &["ot_vegas is not loaded"]),
    ];
    for (args, words) in cases {
        let said = kernel.refused(&[&["cc"], args].concat());
        for part in words {
            assert!(said.contains(part), "{args:?}: expected {part:?} in\n{said}");
        }
    }
}

/// The hook undo_cwnd of newreno.
fn undo(source: &str) -> String {
    let start = source.find("CC_HOOK(u32, newreno_undo_cwnd").unwrap();
    let end = start + source[start..].find("}\n").unwrap() + 2;
    source[start..end].to_string()
}

#[test]
fn without_rights_loading_is_refused_but_listing_works() {
    let Some(kernel) = Exclusive::new() else { return };
    kernel.succeed(&["cc", "load", "westwood"]);
    let [load, unload, list] =
        as_nobody([&["cc", "load", "cubic"], &["cc", "unload", "all"], &["cc", "list", "--json"]]);
    for output in [load, unload] {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with("error: loading algorithms into the kernel needs root"), "{said}");
    }
    let listed: Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(entry(&listed, "algorithms", "westwood")["loaded"], true, "{listed}");
}

/// Runs the program as a user without rights.
pub fn as_nobody<const N: usize>(commands: [&[&str]; N]) -> [Output; N] {
    // The user nobody may not enter the programs' folder.
    let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
    let program = folder.path().join("opentcp");
    fs::copy(env!("CARGO_BIN_EXE_opentcp"), &program).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_opentcp-agent"), folder.path().join("opentcp-agent")).unwrap();
    let run = |args: &[&str]| Command::new(&program).args(args).current_dir("/").uid(65534).gid(65534).output();
    let outputs = commands.map(run);
    outputs.map(|output| output.unwrap())
}

/// Runs the program in a mount namespace that `change` has changed.
pub fn with_mounts(kernel: &Exclusive, change: impl FnOnce() + Send, args: &[&str]) -> Done {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let none = None::<&str>;
            unshare(CloneFlags::CLONE_NEWNS).unwrap();
            mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none).unwrap();
            change();
            kernel.place.opentcp(args)
        });
        worker.join().unwrap()
    })
}

/// Hides the kernel's BTF.
pub fn hide_btf() {
    mount(Some("none"), "/sys/kernel/btf", Some("tmpfs"), MsFlags::empty(), None::<&str>).unwrap();
}

#[test]
fn a_kernel_without_btf_and_mounts_that_would_not_last_are_reported() {
    let Some(kernel) = Exclusive::new() else { return };
    let args = ["cc", "load", "cubic"];
    let done = with_mounts(&kernel, hide_btf, &args);
    check_refusal(&done, &args);
    assert!(done.stderr.contains("CONFIG_DEBUG_INFO_BTF=y"), "{}", done.stderr);

    // Hides the BPF file system, if there is one.
    let hide = || while umount2("/sys/fs/bpf", MntFlags::MNT_DETACH).is_ok() {};
    let done = with_mounts(&kernel, hide, &args);
    check_refusal(&done, &args);
    assert!(done.stderr.contains("mounts of its own"), "{}", done.stderr);
    let name = format!("otc-{}", std::process::id());
    let ip = |args: &[&str]| assert!(Command::new("ip").args(args).status().unwrap().success());
    ip(&["netns", "add", &name]);
    let output = Command::new("ip").args(["netns", "exec", &name, env!("CARGO_BIN_EXE_opentcp")]).args(args).output();
    ip(&["netns", "del", &name]);
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("nsenter --net=/run/netns/{name}")), "{said}");
    assert!(!available().contains("ot_"), "{}", available());
}
