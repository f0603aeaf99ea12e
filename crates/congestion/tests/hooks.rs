//! Algorithms that are not C: called as C's are, and what goes wrong in one is reported.

use congestion::{AckSample, Algorithm, CaEvent, Call, Hook, Hooks, RateSample, TcpSock, check_invariants, take_fault};
use std::path::Path;

/// NewReno, by C's helpers.
struct Reno {
    lacks: Option<Hook>,
    fails: bool,
}

impl Hooks for Reno {
    fn has(&self, hook: Hook) -> bool {
        [Hook::Ssthresh, Hook::CongAvoid, Hook::UndoCwnd].contains(&hook) && self.lacks != Some(hook)
    }

    fn needs_ecn(&self) -> bool {
        true
    }

    fn call(&self, sock: &mut TcpSock, call: Call<'_>) -> Result<u32, String> {
        if self.fails {
            return Err(format!("no {}", call.hook().name()));
        }
        Ok(match call {
            Call::Ssthresh => sock.reno_ssthresh(),
            Call::UndoCwnd => sock.reno_undo_cwnd(),
            Call::CongAvoid { acked, .. } => {
                sock.reno_cong_avoid(acked);
                0
            }
            other => panic!("{other:?} is not one of its hooks"),
        })
    }
}

fn registered(path: &str, lacks: Option<Hook>, fails: bool) -> Result<&'static Algorithm, String> {
    Algorithm::register(Path::new(path), "twin", Box::new(Reno { lacks, fails }))
}

#[test]
fn its_hooks_do_what_their_twin_in_c_does() {
    let twin = registered("/nowhere/twin.py", None, false).expect("it has what is required");
    assert_eq!((twin.name(), twin.needs_ecn()), ("twin", true));
    let loaded = Algorithm::load(Path::new("/nowhere/twin.py")).expect("no file is needed");
    assert!(std::ptr::eq(loaded, twin));
    let sock = |algorithm: &Algorithm| TcpSock {
        icsk_ca_ops: Some(algorithm.ops()),
        snd_cwnd: 10,
        snd_ssthresh: 12,
        snd_cwnd_clamp: 1000,
        is_cwnd_limited: 1,
        prior_cwnd: 40,
        ..TcpSock::default()
    };
    let mut both = [sock(twin), sock(Algorithm::named("newreno").expect("built in"))];
    let states = both.each_mut().map(|sock| {
        let mut seen = Vec::new();
        sock.ca_init();
        for acked in [1, 2, 5, 9, 30] {
            sock.ca_cong_avoid(0, acked);
            seen.push((sock.snd_cwnd, sock.snd_cwnd_cnt));
        }
        sock.ca_cwnd_event(CaEvent::TxStart);
        sock.ca_pkts_acked(&AckSample { pkts_acked: 1, rtt_us: 100, in_flight: 1 });
        sock.ca_cong_control(0, 4, &RateSample::default());
        seen.push((sock.ca_ssthresh(), sock.ca_undo_cwnd()));
        sock.ca_release();
        seen
    });
    assert_eq!(states[0], states[1]);
    // 10 + 1 + 1 to ssthresh; one left over, then 5 and 9 make 15 of 12: one more, 3 kept; 33 of 13: two more
    assert_eq!(states[0][4], (15, 7));
    assert_eq!(take_fault(), None);
    let report = check_invariants(twin).expect("it keeps the invariants");
    assert!(report.to_string().contains("operations, windows up to"), "{report}");
}

#[test]
fn a_fault_is_kept_once_and_the_hooks_then_do_nothing() {
    let broken = registered("/nowhere/broken.py", None, true).expect("it has what is required");
    let mut sock = TcpSock { icsk_ca_ops: Some(broken.ops()), snd_cwnd: 10, snd_ssthresh: 20, ..TcpSock::default() };
    assert_eq!(sock.ca_ssthresh(), 20);
    assert_eq!(sock.ca_undo_cwnd(), 10);
    assert_eq!(take_fault().as_deref(), Some("no ssthresh"), "the first one");
    assert_eq!(take_fault(), None);
}

#[test]
fn a_required_hook_is_missed_and_an_unknown_file_in_python_is_refused() {
    let lacking = registered("/nowhere/lacking.py", Some(Hook::UndoCwnd), false);
    assert_eq!(lacking.err().as_deref(), Some("its table of operations lacks undo_cwnd"));
    let unknown = Algorithm::load(Path::new("/nowhere/else.py")).expect_err("nothing registered it");
    assert!(unknown.to_string().contains("opentcp.Algorithm.from_python"), "{unknown}");
}
