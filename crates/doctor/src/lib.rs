//! Checks what the commands need of this machine, and what to do about what is missing.
//!
//! [`examine`] tries each thing as the commands would: it verifies a program, makes a namespace and a TAP that end
//! at once, and times a busy loop. It changes nothing that lasts. Which command needs what is defined once, in [`Need`].
#![forbid(unsafe_code)]

mod machine;
mod network;
mod programs;

use serde::Serialize;

/// Commands of `opentcp` that need something of the machine, as a user writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The simulator, and with it `reproduce`, `policy try` and `demo` without root.
    Simulate,
    /// A C file of the user's own, in a scenario or checked.
    OwnAlgorithm,
    /// An algorithm in the running kernel.
    Load,
    /// Scenarios on real kernels.
    Emulate,
    /// A network of real kernels for the user's own programs.
    Shell,
    /// The agent, which sets the host's TCP.
    Agent,
    /// Congestion control between two interfaces.
    Enforce,
}

impl Need {
    /// All commands.
    pub const ALL: [Need; 7] =
        [Need::Simulate, Need::OwnAlgorithm, Need::Load, Need::Emulate, Need::Shell, Need::Agent, Need::Enforce];

    /// As a user writes it.
    pub fn command(self) -> &'static str {
        match self {
            Need::Simulate => "run",
            Need::OwnAlgorithm => "cc check",
            Need::Load => "cc load",
            Need::Emulate => "run --backend emu",
            Need::Shell => "emu shell",
            Need::Agent => "agent",
            Need::Enforce => "enforce",
        }
    }
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Present.
    Ok,
    /// Commands work, with a limit that is named.
    Limited,
    /// Commands that need it fail.
    Missing,
    /// Not tried, because something is missing that another check reports.
    Untried,
}

/// A check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Its subject: `kernel`, `BTF`, `AF_XDP`.
    pub name: &'static str,
    /// Its result.
    pub state: State,
    /// What was found, in a few words.
    pub found: String,
    /// The commands that need it.
    #[serde(serialize_with = "as_commands")]
    pub needed_by: Vec<Need>,
    /// What to do, unless all is fine.
    pub advice: Option<String>,
}

fn as_commands<S: serde::Serializer>(needs: &[Need], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(needs.iter().map(|need| need.command()))
}

impl Check {
    fn new(name: &'static str, needed_by: &[Need]) -> Check {
        Check { name, state: State::Ok, found: String::new(), needed_by: needed_by.to_vec(), advice: None }
    }

    fn ok(self, found: impl Into<String>) -> Check {
        Check { state: State::Ok, found: found.into(), ..self }
    }

    fn limited(self, found: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { state: State::Limited, found: found.into(), advice: Some(advice.into()), ..self }
    }

    fn missing(self, found: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { state: State::Missing, found: found.into(), advice: Some(advice.into()), ..self }
    }

    fn untried(self, found: impl Into<String>) -> Check {
        Check { state: State::Untried, found: found.into(), ..self }
    }
}

/// Whether a command works on this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ability {
    /// As a user writes it.
    pub command: &'static str,
    /// Whether everything that it needs is there.
    pub works: bool,
    /// Names of the failed checks.
    pub lacks: Vec<&'static str>,
    /// Names of the checks that limit it.
    pub limits: Vec<&'static str>,
}

/// The results of all checks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Examination {
    /// Nothing essential is missing: the simulator works.
    pub fit: bool,
    /// Command by command.
    pub commands: Vec<Ability>,
    /// The checks, in the order of display.
    pub checks: Vec<Check>,
}

impl Examination {
    fn of(checks: Vec<Check>) -> Examination {
        let commands: Vec<Ability> = Need::ALL.map(|need| ability(need, &checks)).into();
        let fit = commands[0].works;
        Examination { fit, commands, checks }
    }
}

fn ability(need: Need, checks: &[Check]) -> Ability {
    let names = |states: &[State]| -> Vec<&'static str> {
        let needed = checks.iter().filter(|check| check.needed_by.contains(&need) && states.contains(&check.state));
        needed.map(|check| check.name).collect()
    };
    let lacks = names(&[State::Missing, State::Untried]);
    Ability { command: need.command(), works: lacks.is_empty(), lacks, limits: names(&[State::Limited]) }
}

/// Runs all checks; takes about half a second.
pub fn examine() -> Examination {
    let mut checks = vec![machine::cores(), machine::folders(), machine::rights()];
    checks.extend(programs::all());
    checks.extend([machine::bpffs(), machine::cgroup(), network::namespaces(), network::af_xdp()]);
    checks.extend(machine::compilers());
    checks.push(machine::nsenter());
    Examination::of(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_works_unless_something_that_it_needs_is_missing() {
        let checks = vec![
            Check::new("one", &[Need::Simulate]).ok("there"),
            Check::new("two", &[Need::Load, Need::Agent]).missing("not there", "get it"),
            Check::new("three", &[Need::Agent, Need::Emulate]).limited("small", "a larger one"),
            Check::new("four", &[Need::Enforce]).untried("not tried"),
        ];
        let examined = Examination::of(checks);
        assert!(examined.fit);
        let of = |need: Need| examined.commands.iter().find(|one| one.command == need.command()).expect("all are");
        assert_eq!((of(Need::Load).works, &of(Need::Load).lacks[..]), (false, &["two"][..]));
        assert_eq!((of(Need::Agent).works, &of(Need::Agent).limits[..]), (false, &["three"][..]));
        assert_eq!((of(Need::Emulate).works, &of(Need::Emulate).limits[..]), (true, &["three"][..]));
        assert!(!of(Need::Enforce).works && of(Need::Shell).works);
        assert!(!Examination::of(vec![Check::new("one", &[Need::Simulate]).missing("no", "yes")]).fit);
    }

    #[test]
    fn this_machine_is_examined_and_every_trouble_comes_with_advice() {
        let examined = examine();
        for check in &examined.checks {
            assert!(!check.found.is_empty() && !check.needed_by.is_empty(), "{check:?}");
            let troubled = matches!(check.state, State::Limited | State::Missing);
            assert_eq!(check.advice.as_ref().is_some(), troubled, "{check:?}");
        }
    }
}
