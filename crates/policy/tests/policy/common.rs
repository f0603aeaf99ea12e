//! Algorithms as `cc/` has them, policies to change, and numbers from a seed.

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

/// A generator whose numbers are its seed's (SplitMix64, Steele 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In `0..n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// In [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
