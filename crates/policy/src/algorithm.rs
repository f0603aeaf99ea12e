//! What a policy must know of a congestion-control algorithm; the caller tells it.

/// The signals that an algorithm takes for congestion.
#[allow(clippy::struct_excessive_bools, reason = "each is a signal of its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measures {
    /// Lost segments.
    pub loss: bool,
    /// A growing round-trip time.
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
        f.write_str(&if names.is_empty() { "nothing that it tells".to_string() } else { names.join(" and ") })
    }
}

/// An algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlgorithmFacts<'a> {
    /// As in scenarios.
    pub name: &'a str,
    /// What it reacts to.
    pub measures: Measures,
    /// Whether its connections must have negotiated ECN.
    pub needs_ecn: bool,
}

/// The algorithms that there are.
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

    /// Whether two algorithms react to different signals, so that one may starve the other; `None` if one is not known.
    pub fn clash(&self, one: &str, other: &str) -> Option<(Measures, Measures)> {
        let (one, other) = (self.named(one)?.measures, self.named(other)?.measures);
        (one != other).then_some((one, other))
    }
}
