//! Linux's own modules: what runs natively unmodified, and how the rest is refused.

use congestion::{Algorithm, CaEvent, LoadError, TcpSock, check_invariants, compile_for_bpf};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/modules").join(name)
}

fn load(path: &Path) -> &'static Algorithm {
    Algorithm::load(path).unwrap_or_else(|error| panic!("{error}"))
}

/// The fixture `average.c` with one piece replaced.
fn changed(piece: &str, other: &str) -> Result<&'static Algorithm, LoadError> {
    let desk = TempDir::new().expect("a temporary folder");
    let text = fs::read_to_string(fixture("average.c")).expect("readable");
    assert!(text.contains(piece), "{piece}");
    fs::copy(fixture("average.h"), desk.path().join("average.h")).expect("copied");
    let path = desk.path().join("average.c");
    fs::write(&path, text.replace(piece, other)).expect("written");
    Algorithm::load(&path)
}

fn refusal(piece: &str, other: &str) -> String {
    changed(piece, other).expect_err("a module that uses what is not there").to_string()
}

fn line_of(piece: &str) -> usize {
    let text = fs::read_to_string(fixture("average.c")).expect("readable");
    text.lines().position(|line| line.contains(piece)).expect("it is there") + 1
}

#[test]
fn a_module_sees_what_the_kernel_would_answer() {
    let algorithm = load(&fixture("seen.c"));
    assert_eq!((algorithm.name(), algorithm.title(), algorithm.warnings()), ("seen", "What a module sees", ""));
    assert!(algorithm.needs_ecn());
    let mut sock =
        TcpSock { icsk_ca_ops: Some(algorithm.ops()), tcp_mstamp: 5_000_123, cc_random_state: 7, ..TcpSock::default() };
    sock.ca_init();
    let words =
        |sock: &TcpSock| sock.icsk_ca_priv.iter().flat_map(|w| [*w as u32, (w >> 32) as u32]).collect::<Vec<_>>();
    let [_, _, ticks, random, below, start, events, tx_starts, state, quotient, bits] = words(&sock)[..11] else {
        panic!("26 words")
    };
    assert_eq!((ticks, start, state), (5_000, 42, 1), "ticks of a millisecond; filled at the start; established");
    assert!(random != 0 && below < 10, "{random} {below}");
    assert_eq!((quotient, bits), (4 + 4 + 2 + 4, 1 | 5 << 1), "arithmetic, and bitfields");
    assert_eq!((events, tx_starts, sock.sk_pacing_status), (0, 0, 1));
    sock.ca_cwnd_event(CaEvent::TxStart);
    sock.ca_cwnd_event(CaEvent::Loss);
    assert_eq!(words(&sock)[6..8], [1, 1], "the start of a transmission has a hook of its own since Linux 7");
    let mut again =
        TcpSock { icsk_ca_ops: Some(algorithm.ops()), tcp_mstamp: 5_000_123, cc_random_state: 7, ..TcpSock::default() };
    again.ca_init();
    assert_eq!(words(&again)[3], random, "of the run's seed");
}

#[test]
fn functions_of_a_module_beside_it_are_linked() {
    for file in ["average.c", "seen.c"] {
        let report = check_invariants(load(&fixture(file))).unwrap_or_else(|violation| panic!("{file}: {violation}"));
        assert!(report.window_max > 1000, "{file}: {report}");
    }
}

#[test]
fn what_a_host_does_not_have_is_named_with_its_line() {
    let error = refusal("average_add(inet_csk_ca(sk)", "average_add((void *)&tcp_sk(sk)->rx_opt");
    let line = line_of("average_add(inet_csk_ca(sk)");
    assert!(error.contains(&format!("line {line}: struct tcp_sock has no field rx_opt")), "{error}");
    let error = refusal("average->samples++;", "kcalloc(4, 4, GFP_ATOMIC);");
    let line = line_of("average->samples++;");
    assert!(error.contains(&format!("line {line}: kcalloc is not known")) && error.contains("no memory"), "{error}");
    let error = refusal("#include <linux/module.h>", "#include <linux/module.h>\n#include <linux/netfilter.h>");
    assert!(error.contains("the header linux/netfilter.h") && error.contains("net/tcp.h"), "{error}");
}

#[test]
fn a_module_that_does_not_start_is_refused() {
    let error = refusal("return tcp_register_congestion_control(&average);", "return -EINVAL;");
    assert!(error.contains("module_init fails or registers no algorithm: -22"), "{error}");
    let twice = "tcp_register_congestion_control(&average); return tcp_register_congestion_control(&average);";
    let error = refusal("return tcp_register_congestion_control(&average);", twice);
    assert!(error.contains("module_init fails or registers no algorithm: -16"), "{error}");
    let error = refusal("module_init(average_register);", "");
    assert!(error.contains("declares no algorithm"), "{error}");
    let error = refusal(".undo_cwnd = tcp_reno_undo_cwnd,", "");
    assert!(error.contains("lacks undo_cwnd"), "{error}");
}

#[test]
fn a_hook_cannot_write_what_would_carry_to_another_run() {
    let algorithm = changed("average->samples++;", "static u32 all; all++; average->samples++;");
    let algorithm = algorithm.unwrap_or_else(|error| panic!("{error}"));
    let violation = check_invariants(algorithm).expect_err("the variable is constant once the module has started");
    assert!(violation.to_string().contains("SIGSEGV"), "{violation}");
}

#[test]
fn a_module_is_no_bpf_program() {
    let error = compile_for_bpf(&fixture("average.c")).expect_err("the kernel loads it otherwise");
    assert!(matches!(error, LoadError::Module { .. }) && error.to_string().contains("modprobe"), "{error}");
}

/// What of Linux's modules runs, and why the others do not; whether every invariant of `cc check` holds too, some of which Linux does not
/// have (hybla sets the clamp of the window, illinois and westwood jump, vegas lets ssthresh be 1, bic and yeah divide by what init fills).
const LINUX: [(&str, Result<bool, &str>); 16] = [
    ("bbr", Ok(true)),
    ("bic", Ok(false)),
    ("cdg", Err("kzalloc_objs is not known")),
    ("cubic", Ok(true)),
    ("dctcp", Ok(true)),
    ("highspeed", Ok(true)),
    ("htcp", Ok(true)),
    ("hybla", Ok(false)),
    ("illinois", Ok(false)),
    ("lp", Err("struct tcp_sock has no field rx_opt")),
    ("nv", Ok(true)),
    ("scalable", Ok(true)),
    ("vegas", Ok(false)),
    ("veno", Ok(true)),
    ("westwood", Ok(false)),
    ("yeah", Ok(false)),
];

#[test]
fn linuxs_own_modules_run_unmodified() {
    let Some(folder) = linux() else {
        println!("skipped: there is no source of Linux; tools/linux-source fetches it");
        return;
    };
    for (name, expected) in LINUX {
        match (Algorithm::load(&folder.join(format!("tcp_{name}.c"))), expected) {
            (Ok(algorithm), Ok(keeps_all)) => {
                assert_eq!((algorithm.name(), algorithm.warnings()), (name, ""));
                let report = check_invariants(algorithm);
                assert_eq!(report.is_ok(), keeps_all, "{name}: {report:?}");
            }
            (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{name}: {error}"),
            (got, _) => panic!("{name}: {got:?} instead of {expected:?}"),
        }
    }
}

/// The newest of the sources that `tools/linux-source` has fetched, beside this program.
fn linux() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let sources = program.ancestors().map(|folder| folder.join("linux")).find(|folder| folder.is_dir())?;
    let mut versions: Vec<PathBuf> = fs::read_dir(sources).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    versions.retain(|folder| folder.join("tcp_cubic.c").is_file());
    versions.sort();
    versions.pop()
}
