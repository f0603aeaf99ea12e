//! libbpf's messages: kept for error messages instead of printed.

use libbpf_rs::{PrintLevel, set_print};
use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

/// Lines of a log that an error carries: the verifier gives its reason at the end.
const LINES: usize = 16;

/// The lines that libbpf writes around the verifier's log of a program.
const LOG_BEGINS: &str = "-- BEGIN PROG LOAD LOG --";
const LOG_ENDS: &str = "-- END PROG LOAD LOG --";

thread_local! {
    static MESSAGES: RefCell<String> = const { RefCell::new(String::new()) };
}

/// libbpf has one global callback: capturing takes this lock.
static CAPTURING: Mutex<()> = Mutex::new(());

/// Runs `work` and returns its result with libbpf's warnings.
pub(crate) fn captured<T>(work: impl FnOnce() -> T) -> (T, String) {
    let guard = CAPTURING.lock().unwrap_or_else(PoisonError::into_inner);
    MESSAGES.with_borrow_mut(String::clear);
    let previous = set_print(Some((PrintLevel::Warn, keep)));
    let result = work();
    set_print(previous);
    drop(guard);
    (result, MESSAGES.take())
}

/// The part of libbpf's messages that explains a refusal: the program, the last lines of source with their
/// instructions, and the verifier's reason, which is the last line. Without a program, the end of the messages.
pub(crate) fn relevant(messages: &str) -> String {
    let Some((before, rest)) = messages.split_once(LOG_BEGINS) else {
        return last(&messages.lines().collect::<Vec<_>>()).join("\n");
    };
    let program = before.rsplit('\'').nth(1).unwrap_or_default();
    let log = rest.split(LOG_ENDS).next().unwrap_or_default();
    let lines: Vec<&str> = log.lines().filter(|line| tells_something(line)).collect();
    let mut report = vec![format!("in the hook {program}:")];
    report.extend(last(&lines).iter().map(|line| format!("  {line}")));
    report.join("\n")
}

/// Statistics, and what libbpf writes after the log: not part of the reason.
fn tells_something(line: &str) -> bool {
    let noise = ["processed ", "libbpf: ", "verification time ", "stack depth ", "insns processed "];
    !line.trim().is_empty() && !noise.iter().any(|start| line.starts_with(start))
}

fn last<'a, 'b>(lines: &'a [&'b str]) -> &'a [&'b str] {
    &lines[lines.len().saturating_sub(LINES)..]
}

#[allow(clippy::needless_pass_by_value, reason = "the type of libbpf's callback")]
fn keep(_: PrintLevel, message: String) {
    MESSAGES.with_borrow_mut(|messages| messages.push_str(&message));
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: &str = "\
libbpf: prog 'mine_ssthresh': BPF program load failed: -EACCES
libbpf: prog 'mine_ssthresh': -- BEGIN PROG LOAD LOG --
0: R1=ctx() R10=fp0
; tcp_sk(sk)->snd_cwnd_clamp = 1; @ mine.c:3
2: (63) *(u32 *)(r1 +1234) = r2
no write support to tcp_sock at off 1234
processed 3 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0
-- END PROG LOAD LOG --
libbpf: prog 'mine_ssthresh': failed to load: -EACCES
libbpf: failed to load object ''
";

    #[test]
    fn of_a_refusal_the_hook_the_source_and_the_reason_remain() {
        let lines = relevant(REFUSED);
        let lines: Vec<&str> = lines.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "in the hook mine_ssthresh:",
                "0: R1=ctx() R10=fp0",
                "; tcp_sk(sk)->snd_cwnd_clamp = 1; @ mine.c:3",
                "2: (63) *(u32 *)(r1 +1234) = r2",
                "no write support to tcp_sock at off 1234",
            ]
        );
    }

    #[test]
    fn of_a_long_log_the_end_remains() {
        let long = REFUSED.replace("0: R1=ctx() R10=fp0\n", &"1: (bf) r6 = r1\n".repeat(1000));
        let lines = relevant(&long);
        assert_eq!(lines.lines().count(), 1 + LINES);
        assert!(lines.ends_with("no write support to tcp_sock at off 1234"), "{lines}");
    }
}
