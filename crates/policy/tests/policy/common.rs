//! Algorithms as `cc/` has them, and policies to change.

use policy::{AlgorithmFacts, Diagnostic, Known, Measures, Policy};

const LOSS: Measures = Measures { loss: true, delay: false, ecn: false, model: false };
const fn algorithm(name: &'static str, measures: Measures, needs_ecn: bool) -> AlgorithmFacts<'static> {
    AlgorithmFacts { name, measures, needs_ecn }
}

pub const KNOWN: Known<'static> = Known {
    algorithms: &[
        algorithm("newreno", LOSS, false),
        algorithm("cubic", LOSS, false),
        algorithm("bic", LOSS, false),
        algorithm("vegas", Measures { delay: true, ..LOSS }, false),
        algorithm("dctcp", Measures { ecn: true, ..LOSS }, true),
    ],
};

/// A policy in which each line can be wrong.
pub const GOOD: &str = r#"mode = "enforce"
period = "60 s"
lifetime = "90 s"
[collect]
links = ["utilization"]
hosts = ["drop_rate"]
[objective]
minimize = "network.fct_p99"
[[constraint]]
name = "few drops"
holds = "network.drop_rate < 0.01"
[[rule]]
name = "calm"
when = "network.max_link_utilization < 0.70"
match = { hosts = "treated", remote = "10.0.0.0/8" }
set = { initial_cwnd = 20, rto_min = "2 ms" }
guard = { revert_if = "host.drop_rate > 0.001" }
[rollout]
fraction = 0.5
"#;

pub fn parse(text: &str) -> Result<Policy, Diagnostic> {
    Policy::parse("p.toml", text, KNOWN)
}
