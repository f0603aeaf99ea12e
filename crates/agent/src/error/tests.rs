//! Which errors are the operator's, who gets exit code 2, and which the machine's.

use super::*;
use rustix::io::Errno;

#[test]
fn what_an_operator_can_mend_is_distinguished_from_what_has_failed() {
    let file = |error: Errno| {
        AgentError::File(FileError::Io { path: PathBuf::from("/state/epoch"), source: io::Error::from(error) })
    };
    let input = [
        AgentError::Running(PathBuf::from("/state")),
        AgentError::NotRoot,
        AgentError::Clock,
        AgentError::Bpf("no BPF here\n".into()),
        AgentError::Host("its name is empty".into()),
        AgentError::Retune(RetuneError::TooMany(33)),
        file(Errno::ACCESS),
    ];
    let failed = [file(Errno::NOSPC), AgentError::Guardian(Errno::NOENT.into()), AgentError::Io(Errno::IO.into())];
    for (errors, is_input) in [(input.as_slice(), true), (failed.as_slice(), false)] {
        for error in errors {
            assert_eq!(error.is_input(), is_input, "{error}");
        }
    }
}

#[test]
fn a_message_says_what_to_do_instead() {
    let says = |error: AgentError, what: &str| {
        let text = error.to_string();
        assert!(text.contains(what), "{text}");
    };
    says(AgentError::Bpf("no BPF here\n".into()), "no BPF here\nwithout BPF: --means routes");
    says(
        AgentError::Running(PathBuf::from("/s")),
        "/s: another agent is running; a second one on this host needs its own --state",
    );
    says(AgentError::NotRoot, "run it with `sudo`");
    says(AgentError::Clock, "run the agent outside of it");
}
