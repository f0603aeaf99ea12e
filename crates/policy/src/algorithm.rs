//! Congestion-control algorithms as policies name them, and what a policy must know of one; the caller passes the list.
//!
//! A plain name is one of `cc/`, or of a file that `opentcp cc load` has loaded. `kernel:NAME` is Linux's own.

use document::{list, nearest, suggestion};

/// What the names of Linux's own algorithms begin with.
pub const KERNEL_PREFIX: &str = "kernel:";
/// Longest name that Linux gives an algorithm, bytes.
const KERNEL_NAME_MAX: usize = 15;

/// The signals that an algorithm takes for congestion.
#[allow(clippy::struct_excessive_bools, reason = "each is a signal of its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measures {
    /// Lost segments.
    pub loss: bool,
    /// A growing RTT.
    pub delay: bool,
    /// Marks.
    pub ecn: bool,
    /// A model of the path.
    pub model: bool,
}

impl std::fmt::Display for Measures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = [(self.loss, "loss"), (self.delay, "delay"), (self.ecn, "ECN"), (self.model, "a model of the path")];
        let names: Vec<&str> = all.into_iter().filter(|(does, _)| *does).map(|(_, name)| name).collect();
        f.write_str(&if names.is_empty() { "signals that are not known".to_string() } else { names.join(" and ") })
    }
}

impl Measures {
    /// Whether two algorithms react to different signals, so that one may starve the other. An algorithm of which no signal is
    /// known differs from none.
    pub(crate) fn differ(self, other: Measures) -> bool {
        self != other && [self, other].iter().all(|one| *one != Measures::default())
    }
}

/// An algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlgorithmFacts<'a> {
    /// As in policies.
    pub name: &'a str,
    /// What it reacts to; all false: not known.
    pub measures: Measures,
    /// Whether its connections must have negotiated ECN.
    pub needs_ecn: bool,
}

/// The algorithms that there are. Where none is a kernel's, the policy is for the simulator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// Each with a name of its own.
    pub algorithms: &'a [AlgorithmFacts<'a>],
}

impl<'a> Known<'a> {
    /// The algorithm of that name.
    pub fn named(&self, name: &str) -> Option<&'a AlgorithmFacts<'a>> {
        self.algorithms.iter().find(|algorithm| algorithm.name == name)
    }

    /// The signals of two algorithms, if these differ; `None` if those of one are not known.
    pub fn clash(&self, one: &str, other: &str) -> Option<(Measures, Measures)> {
        let (one, other) = (self.named(one)?.measures, self.named(other)?.measures);
        one.differ(other).then_some((one, other))
    }

    /// What is wrong with a name that is not among these, and what to write instead.
    pub(crate) fn unknown(&self, written: &str) -> (String, String) {
        let (linux, plain): (Vec<&str>, Vec<&str>) =
            self.algorithms.iter().map(|algorithm| algorithm.name).partition(|name| name.starts_with(KERNEL_PREFIX));
        if linux.is_empty() {
            return simulated(written, &plain);
        }
        let near = match Some(format!("{KERNEL_PREFIX}{written}")).filter(|own| linux.contains(&own.as_str())) {
            Some(own) => Some(own),
            None => nearest(written, plain.iter().chain(&linux).copied()).map(str::to_string),
        };
        let near = near.map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
        let own: Vec<&str> = linux.iter().filter_map(|name| name.strip_prefix(KERNEL_PREFIX)).collect();
        let help = format!(
            "{near}Allowed: {}, and Linux's own as `{KERNEL_PREFIX}NAME`, here {}. An algorithm of your own is allowed where \
             `opentcp cc load FILE` has loaded it",
            list(plain),
            own.join(", ")
        );
        (format!("unknown algorithm `{written}`"), help)
    }
}

/// The same for the simulator, which runs the algorithms of `cc/`.
fn simulated(written: &str, plain: &[&str]) -> (String, String) {
    let Some(own) = written.strip_prefix(KERNEL_PREFIX) else {
        return (format!("unknown algorithm `{written}`"), suggestion(written, plain));
    };
    let same = if own == "reno" { "newreno" } else { own };
    let instead = if plain.contains(&same) {
        format!("write `{same}`, or run it on Linux hosts: --backend emu")
    } else {
        format!("run it on Linux hosts, by --backend emu; here are allowed: {}", list(plain.iter().copied()))
    };
    (format!("the simulator has no kernel, so no `{written}`"), instead)
}

/// Whether a name can be one of Linux's algorithms, or of a file that was loaded.
pub(crate) fn is_plain(name: &str) -> bool {
    let own = name.strip_prefix(KERNEL_PREFIX).unwrap_or(name);
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    !own.is_empty() && own.len() <= KERNEL_NAME_MAX && own.chars().all(allowed)
}

/// Of the algorithms that a host has, by their names in policies, the one that `cc` stands for there: that of this name, or for a plain
/// name Linux's own of the same name (of `newreno`, `reno`). `None`: the host lacks it.
pub fn provided<'a>(cc: &str, algorithms: &'a [String]) -> Option<&'a str> {
    let own = format!("{KERNEL_PREFIX}{}", if cc == "newreno" { "reno" } else { cc });
    let has = |name: &str| algorithms.iter().find(|known| *known == name).map(String::as_str);
    has(cc).or_else(|| has(&own))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn facts(name: &'static str) -> AlgorithmFacts<'static> {
        AlgorithmFacts {
            name,
            measures: Measures { loss: true, delay: false, ecn: false, model: false },
            needs_ecn: false,
        }
    }

    #[test]
    fn a_plain_name_is_the_loaded_algorithm_or_linuxs_own_and_a_kernels_name_is_linuxs_alone() {
        let host = ["kernel:reno", "kernel:cubic", "cubic", "mine"].map(str::to_string);
        assert_eq!(provided("cubic", &host), Some("cubic"));
        assert_eq!(provided("kernel:cubic", &host), Some("kernel:cubic"));
        assert_eq!(provided("newreno", &host), Some("kernel:reno"));
        assert_eq!(provided("mine", &host), Some("mine"));
        assert_eq!([provided("kernel:mine", &host), provided("bbr", &host)], [None, None]);
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_and_what_is_allowed() {
        let hosts =
            Known { algorithms: &[facts("cubic"), facts("newreno"), facts("kernel:reno"), facts("kernel:bbr")] };
        let (message, help) = hosts.unknown("reno");
        assert_eq!(message, "unknown algorithm `reno`");
        assert!(
            help.starts_with("did you mean `kernel:reno`? Allowed: `cubic` or `newreno`, and Linux's own"),
            "{help}"
        );
        assert!(help.contains("here reno, bbr.") && help.contains("opentcp cc load"), "{help}");
        assert!(hosts.unknown("kernel:bbbr").1.starts_with("did you mean `kernel:bbr`?"));
        let simulator = Known { algorithms: &[facts("cubic"), facts("newreno")] };
        assert_eq!(
            simulator.unknown("kernel:reno"),
            (
                "the simulator has no kernel, so no `kernel:reno`".to_string(),
                "write `newreno`, or run it on Linux hosts: --backend emu".to_string()
            )
        );
        assert!(simulator.unknown("kernel:lp").1.ends_with("here are allowed: `cubic` or `newreno`"));
        assert!(simulator.unknown("cubi").1.starts_with("did you mean `cubic`?"));
    }

    #[test]
    fn an_algorithm_of_which_no_signal_is_known_clashes_with_none() {
        let delay = Measures { delay: true, ..Measures::default() };
        assert!(!Measures::default().differ(delay) && !delay.differ(Measures::default()));
        assert!(delay.differ(Measures { loss: true, ..Measures::default() }));
    }
}
