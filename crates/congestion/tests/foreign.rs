//! Files written for libbpf: what runs natively unmodified, and how the rest is refused.

use congestion::{Algorithm, LoadError, TcpSock, check_invariants, compile_for_bpf};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(name)
}

#[test]
fn the_fixtures_run_natively_and_behave() {
    for (file, name, ecn) in
        [("cubic.c", "rfc_cubic", false), ("dctcp.c", "rfc_dctcp", true), ("before_6_10.c", "bpf_aged_dctcp", true)]
    {
        let algorithm = Algorithm::load(&fixture(file)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((algorithm.name(), algorithm.needs_ecn()), (name, ecn));
        let report = check_invariants(algorithm).unwrap_or_else(|violation| panic!("{name}: {violation}"));
        assert!(report.window_max > 1000, "{name}: {report}");
        let object = compile_for_bpf(&fixture(file)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(object[18..20], [247, 0], "{name} is BPF code");
    }
}

#[test]
fn a_helper_that_finds_nothing_warns_at_its_line() {
    let dctcp = Algorithm::load(&fixture("dctcp.c")).unwrap_or_else(|error| panic!("{error}"));
    let line = line_of(&fs::read_to_string(fixture("dctcp.c")).expect("readable"), "int *seed");
    let words =
        "bpf_sk_storage_get: in the simulator it answers NULL: no other program has stored anything with the socket";
    assert_eq!(dctcp.warnings(), format!("{}:{line}: {words}\n", fixture("dctcp.c").display()));
    let cubic = Algorithm::load(&fixture("cubic.c")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(cubic.warnings(), "");
}

/// A file that uses much of what libbpf's world has; each test changes a piece.
const WHOLE: &str = r#"
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "bpf_tracing_net.h"

#define TCP_INFINITE_SSTHRESH 0x7fffffff
char _license[] SEC("license") = "GPL";
extern unsigned long CONFIG_HZ __kconfig;
extern int LINUX_KERNEL_VERSION __kconfig;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

static bool before(__u32 seq1, __u32 seq2)
{
	return (__s32)(seq1 - seq2) < 0;
}

struct seen { __u64 time_ns; __u32 random, jiffies, hz, version, later; __u8 state, pad[3]; };

SEC("struct_ops/whole_init")
void BPF_PROG(whole_init, struct sock *sk)
{
	struct seen *ca = inet_csk_ca(sk);

	ca->time_ns = bpf_ktime_get_ns();
	ca->random = bpf_get_prandom_u32();
	ca->jiffies = tcp_jiffies32;
	ca->hz = CONFIG_HZ;
	ca->version = LINUX_KERNEL_VERSION;
	ca->later = before(BPF_CORE_READ(sk, sk_pacing_status), 1);
	ca->state = BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state);
}

SEC("struct_ops")
__u32 BPF_PROG(whole_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }

SEC("struct_ops")
void BPF_PROG(whole_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	/* body */
	tcp_reno_cong_avoid(sk, ack, acked + tp->lost * 0);
}

SEC("struct_ops")
__u32 BPF_PROG(whole_undo, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

SEC(".struct_ops.link")
struct tcp_congestion_ops whole = {
	.init = (void *)whole_init,
	.ssthresh = (void *)whole_ssthresh,
	.cong_avoid = (void *)whole_cong_avoid,
	.undo_cwnd = (void *)whole_undo,
	.name = "whole",
};
"#;

fn load(text: &str) -> Result<&'static Algorithm, LoadError> {
    let desk = TempDir::new().expect("a temporary folder");
    let path = desk.path().join("theirs.c");
    fs::write(&path, text).expect("written");
    Algorithm::load(&path)
}

/// WHOLE with one piece replaced, refused.
fn refusal(piece: &str, other: &str) -> String {
    assert!(WHOLE.contains(piece), "{piece}");
    load(&WHOLE.replace(piece, other)).expect_err("a file that uses what is not supported").to_string()
}

fn line_of(text: &str, piece: &str) -> usize {
    text.lines().position(|line| line.contains(piece)).expect("it is there") + 1
}

/// A refusal of what stands in cong_avoid's body names its line.
#[track_caller]
fn refused_in_body(body: &str, words: &[&str]) {
    let error = refusal("/* body */", body);
    let line = line_of(WHOLE, "/* body */");
    let all = [format!("line {line}: ")];
    for word in all.iter().map(String::as_str).chain(words.iter().copied()) {
        assert!(error.contains(word), "{word:?} is not in: {error}");
    }
}

#[test]
fn a_hook_sees_its_sockets_clock_and_random_numbers() {
    let algorithm = load(WHOLE).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(algorithm.warnings(), "");
    let mut sock = TcpSock {
        icsk_ca_ops: Some(algorithm.ops()),
        tcp_mstamp: 5_000_123,
        cc_random_state: 7,
        icsk_ca_state: 3,
        ..TcpSock::default()
    };
    sock.ca_init();
    let state = sock.icsk_ca_priv;
    assert_eq!(state[0], 5_000_123_000, "ns");
    assert_eq!(state[1] >> 32, 5_000, "ticks of a millisecond, as lsndtime");
    assert_ne!(state[1] as u32, 0, "random");
    assert_eq!((state[2] as u32, state[2] >> 32), (1000, 0x0006_1200), "CONFIG_HZ, and version 6.18");
    assert_eq!((state[3] as u32, state[3] >> 32), (1, 3), "before() and a bitfield");
    let other = TcpSock { cc_random_state: 7, ..sock.clone() };
    let mut other = TcpSock { tcp_mstamp: 1_000, ..other };
    other.ca_init();
    assert_eq!(other.icsk_ca_priv[0], 1_000_000, "the clock is the socket's whose hook runs");
    assert_eq!(other.icsk_ca_priv[1] as u32, state[1] as u32, "the same stream");
}

#[test]
fn what_an_older_file_includes_is_there() {
    let text = WHOLE
        .replace("#include \"vmlinux.h\"", "#include <linux/bpf.h>\n#include <linux/types.h>\n#include <linux/tcp.h>")
        .replace("#include \"bpf_tracing_net.h\"", "#include \"bpf_tcp_helpers.h\"")
        .replace("/* body */", "if (min_not_zero(tp->snd_cwnd, 5u) > div64_u64(acked, 3)) tp->snd_cwnd_cnt = 0;");
    load(&text).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_kernels_own_hooks_are_those_of_cc() {
    let text = WHOLE
        .replace("tcp_reno_cong_avoid(", "cubictcp_cong_avoid(")
        .replace("tcp_reno_ssthresh(", "cubictcp_recalc_ssthresh(")
        .replace("/* body */", "bpf_printk(\"%u\", acked);");
    let algorithm = load(&text).unwrap_or_else(|error| panic!("{error}"));
    let mut sock = TcpSock { icsk_ca_ops: Some(algorithm.ops()), snd_cwnd: 100, ..TcpSock::default() };
    assert_eq!(sock.ca_ssthresh(), 70, "CUBIC's beta, not Reno's half");
}

#[test]
fn every_kernel_function_that_is_offered_links() {
    let kfuncs = include_str!("../src/foreign/kfuncs.c");
    let (mut declared, mut used) = (String::new(), String::new());
    for line in kfuncs.lines() {
        for (start, answer) in [("HOOK_VOID(", "void"), ("HOOK_U32(", "__u32")] {
            if let Some((name, _)) = line.strip_prefix(start).and_then(|rest| rest.split_once(',')) {
                declared.push_str(&["extern ", answer, " ", name, "() __ksym;\n"].concat());
                used.push_str(&["(void *)", name, ", "].concat());
            }
        }
    }
    assert!(declared.lines().count() == 20, "{declared}");
    let text = WHOLE.replace("struct seen {", &format!("{declared}void *const used[] = {{ {used} }};\nstruct seen {{"));
    load(&text).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn loops_and_random_numbers_of_bpf_run() {
    let body = "int i; tp->snd_cwnd = 0; bpf_for(i, 2, 5) tp->snd_cwnd += i; bpf_repeat(3) tp->snd_cwnd++; \
                bpf_loop(acked, (void *)step, tp, 0); return;";
    let step = "static long step(__u32 i, struct tcp_sock *tp) { tp->snd_cwnd += 100; return i == 3; }\nstruct seen {";
    let text = WHOLE.replace("/* body */", body).replace("struct seen {", step);
    let algorithm = load(&text).unwrap_or_else(|error| panic!("{error}"));
    let mut sock = TcpSock { icsk_ca_ops: Some(algorithm.ops()), ..TcpSock::default() };
    sock.ca_cong_avoid(0, 2);
    assert_eq!(sock.snd_cwnd, 2 + 3 + 4 + 3 + 200);
    sock.ca_cong_avoid(0, 9);
    assert_eq!(sock.snd_cwnd, 2 + 3 + 4 + 3 + 400, "the callback ends the loop");
}

#[test]
fn an_unknown_field_is_named_with_those_there_are() {
    refused_in_body(
        "tp->snd_cwnd = tp->prr_out;",
        &["struct tcp_sock has no field prr_out", "struct tcp_sock has inet_conn, snd_cwnd,"],
    );
}

#[test]
fn several_lines_are_reported_at_once() {
    let error =
        refusal("/* body */", "tp->snd_cwnd = tp->prr_out;\n\ttp->snd_cwnd += tp->reordering; bpf_redirect(1);");
    let line = line_of(WHOLE, "/* body */");
    assert!(error.contains(&format!("line {line}: struct tcp_sock has no field prr_out")), "{error}");
    assert!(error.contains(&format!("line {}: struct tcp_sock has no field reordering", line + 1)), "{error}");
    assert!(error.contains(&format!("line {}: bpf_redirect is not known", line + 1)), "{error}");
}

#[test]
fn an_unknown_helper_is_named_with_those_there_are() {
    refused_in_body("bpf_redirect(1, 0);", &["bpf_redirect is not known", "helpers available: bpf_jiffies64"]);
}

#[test]
fn maps_timers_locks_and_storage_are_refused_at_their_line() {
    refused_in_body(
        "tp->snd_cwnd = !!bpf_map_lookup_elem(sk, &ack);",
        &["bpf_map_lookup_elem: maps are not supported"],
    );
    refused_in_body("tp->snd_cwnd = bpf_timer_start(sk, 1, 0);", &["bpf_timer_start: timers are not supported"]);
    refused_in_body("tp->snd_cwnd = bpf_spin_lock(sk);", &["bpf_spin_lock: locks are not supported"]);
    let made = "tp->snd_cwnd = !!bpf_sk_storage_get(tp, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);";
    refused_in_body(made, &["bpf_sk_storage_get: making storage for a socket is not supported"]);
}

#[test]
fn an_unknown_kernel_function_is_named_where_it_is_declared() {
    let error = refusal("tcp_reno_ssthresh(", "tcp_vegas_ssthresh(");
    let line = line_of(WHOLE, "tcp_reno_ssthresh(struct");
    assert!(error.contains(&format!("line {line}: tcp_vegas_ssthresh")), "{error}");
    assert!(error.contains("tcp_slow_start, tcp_cong_avoid_ai"), "{error}");
}

#[test]
fn an_unknown_header_is_named_with_those_there_are() {
    let error = refusal("#include <bpf/bpf_core_read.h>", "#include <bpf/usdt.bpf.h>");
    assert!(error.contains("line 5: the header bpf/usdt.bpf.h") && error.contains("bpf/bpf_tracing.h"), "{error}");
}

#[test]
fn variables_that_outlive_a_run_are_refused_by_their_names() {
    let text =
        WHOLE.replace("struct seen {", "int flows = 0;\nint *count(void) { flows++; return &flows; }\nstruct seen {");
    let error = load(&text).expect_err("a run would depend on those before it").to_string();
    assert!(error.contains("global variables that can be written (flows)"), "{error}");
}

#[test]
fn a_file_declares_one_table() {
    let error = refusal("SEC(\".struct_ops.link\")\n", "");
    assert!(error.contains("no struct tcp_congestion_ops has SEC(\".struct_ops\")"), "{error}");
    let second =
        "SEC(\".struct_ops\") struct tcp_congestion_ops second = { .name = \"second\" };\nSEC(\".struct_ops.link\")";
    let error = refusal("SEC(\".struct_ops.link\")", second);
    assert!(error.contains("declares 2 algorithms (second, whole)"), "{error}");
}

#[test]
fn a_licence_of_the_kernels_is_needed() {
    let error = refusal("char _license[] SEC(\"license\") = \"GPL\";", "");
    assert!(error.contains("it has no licence"), "{error}");
    let error = refusal("\"GPL\"", "\"MIT\"");
    assert!(error.contains("the licence \"MIT\"; they accept \"GPL\""), "{error}");
}

#[test]
fn floating_point_is_refused() {
    let error = refusal("/* body */", "tp->snd_cwnd = (__u32)((double)tp->snd_cwnd * 1.5);");
    // gcc at the line, clang when it is linked
    let line = line_of(WHOLE, "/* body */");
    assert!(error.contains(&format!("theirs.c:{line}:")) || error.contains("it uses floating point"), "{error}");
}

#[test]
fn a_hook_takes_what_the_host_passes() {
    let older = "SEC(\"struct_ops\")\nvoid BPF_PROG(whole_main, struct sock *sk, const struct rate_sample *rs) { }\n\
                 SEC(\".struct_ops.link\")";
    let text = WHOLE.replace("SEC(\".struct_ops.link\")", older);
    let line = line_of(&text, "whole_main");
    let text = text.replace(".cong_avoid = (void *)whole_cong_avoid", ".cong_control = (void *)whole_main");
    let error = load(&text).expect_err("two of four parameters").to_string();
    assert!(
        error.contains(&format!("line {line}: whole_main(struct sock *sk, const struct rate_sample *rs)")),
        "{error}"
    );
    assert!(error.contains("its cong_control, which takes (struct sock *sk, u32 ack, int flag, "), "{error}");
    let error =
        refusal("__u32 BPF_PROG(whole_undo, struct sock *sk) { return", "void BPF_PROG(whole_undo, struct sock *sk) {");
    assert!(error.contains("whole_undo is its undo_cwnd, which returns u32"), "{error}");
    let error = refusal("(void *)whole_undo", "(void *)before");
    assert!(error.contains("its .undo_cwnd is not a function declared by BPF_PROG"), "{error}");
}

#[test]
fn the_tables_members_and_name_are_the_kernels() {
    let error = refusal("	.undo_cwnd = (void *)whole_undo,\n", "");
    assert!(error.contains("lacks undo_cwnd"), "{error}");
    let error = refusal(".undo_cwnd", ".get_info");
    assert!(error.contains("struct tcp_congestion_ops has no field get_info"), "{error}");
    assert!(error.contains("struct tcp_congestion_ops has init, release, ssthresh, cong_avoid,"), "{error}");
    let error = refusal("\"whole\"", "\"\"");
    assert!(error.contains("has no .name"), "{error}");
    let error = refusal("\"whole\"", "\"sixteen_letters_\"");
    assert!(error.contains("use 1 to 15 characters"), "{error}");
}

#[test]
fn the_contracts_header_is_not_mixed_in() {
    let error = load(&format!("#include \"tcp.h\"\n{WHOLE}")).expect_err("both worlds").to_string();
    assert!(error.contains("a file includes tcp.h (the contract) or vmlinux.h"), "{error}");
}

#[test]
fn a_plain_read_of_a_bitfield_does_not_compile_for_bpf() {
    let desk = TempDir::new().expect("a temporary folder");
    let path = desk.path().join("theirs.c");
    fs::write(&path, WHOLE.replace("/* body */", "if (inet_csk(sk)->icsk_ca_state) return;")).expect("written");
    let error = compile_for_bpf(&path).expect_err("the place differs between kernels").to_string();
    assert!(error.contains("icsk_ca_state is a bitfield: read it with BPF_CORE_READ_BITFIELD"), "{error}");
}

/// Else a foreign file that has a function of its own under such a name would not compile.
#[test]
fn every_function_of_the_contract_is_out_of_the_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let contract = fs::read_to_string(root.join("../../cc/include/tcp.h")).expect("readable");
    let shim = fs::read_to_string(root.join("src/foreign/vmlinux.h")).expect("readable");
    let functions: Vec<&str> = contract
        .lines()
        .filter_map(|line| line.strip_prefix("CC_INLINE "))
        .map(|rest| rest.split('(').next().unwrap_or(rest))
        .filter_map(|head| head.rsplit([' ', '*']).next())
        .collect();
    assert!(functions.len() > 25, "{functions:?}");
    for name in functions {
        assert!(
            shim.contains(&format!("#define {name} cc_native_")) || shim.contains(&format!("#define {name}(")),
            "{name}"
        );
        assert!(shim.contains(&format!("#undef {name}\n")), "{name}");
    }
}

#[test]
fn names_of_algorithms_and_smaller_numbers_that_are_not_zero_are_compared_as_in_the_helpers_before_6_10() {
    let text = r#"
#include <stdint.h>
#include "bpf_trace_helpers.h"
#include "bpf_tcp_helpers.h"
char _license[] SEC("license") = "GPL";

BPF_TCP_OPS_1(seen_init, void, struct sock *, sk)
{
	const char full[TCP_CA_NAME_MAX] = "fifteen_letters", other[TCP_CA_NAME_MAX] = "fifteen_letterz";
	uint32_t *ca = inet_csk_ca(sk);

	ca[0] = tcp_cc_eq("cubic", "cubic") << 0 | tcp_cc_eq("cubic", "cubi") << 1 | tcp_cc_eq("reno", "renounce") << 2
		| tcp_cc_eq(full, full) << 3 | tcp_cc_eq(full, other) << 4;
	ca[1] = min_not_zero(0u, 7u);
	ca[2] = min_not_zero(7u, 0u);
	ca[3] = min_not_zero(9u, 7u);
}

BPF_TCP_OPS_0(seen_ssthresh, __u32) { return 2; }
BPF_TCP_OPS_1(seen_undo, __u32, struct sock *, sk) { return tcp_sk(sk)->snd_cwnd; }
BPF_TCP_OPS_4(seen_control, void, struct sock *, sk, __u32, ack, int, flag, const struct rate_sample *, rs)
{
	tcp_sk(sk)->snd_cwnd = 10;
}

SEC(".struct_ops")
struct tcp_congestion_ops seen = {
	.init = (void *)seen_init, .ssthresh = (void *)seen_ssthresh, .undo_cwnd = (void *)seen_undo,
	.cong_control = (void *)seen_control, .name = "seen",
};
"#;
    let algorithm = load(text).unwrap_or_else(|error| panic!("{error}"));
    let mut sock = TcpSock { icsk_ca_ops: Some(algorithm.ops()), ..TcpSock::default() };
    sock.ca_init();
    let state = sock.icsk_ca_priv;
    assert_eq!((state[0] as u32, state[0] >> 32, state[1] as u32, state[1] >> 32), (0b01001, 7, 7, 7));
}
