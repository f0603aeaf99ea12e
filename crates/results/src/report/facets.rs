//! Which parameters distinguish the runs of a sweep: they decide what is a bar, a panel, or a common setting.

use crate::{digest::Digest, palette::Palette};

/// The parameter whose values give ranges, not bars: runs that differ only in it are repetitions.
const REPETITION: &str = "seed";
/// The parameter that decides the colours when it varies.
const ALGORITHM: &str = "algorithm";
/// The parameter of emulated runs that are not valid: it says why, and distinguishes nothing.
pub(super) const SELF_CHECK: &str = "self-check";
/// Before the name of such a run, wherever it is drawn.
const MARK: &str = "NOT VALID: ";

/// How the runs of one report are arranged.
pub(super) struct Facets {
    /// Same in every run, in order.
    pub common: Vec<(String, String)>,
    /// Different in some, in order.
    pub varying: Vec<String>,
    bar_key: Option<String>,
    palette: Palette,
}

impl Facets {
    pub fn of(runs: &[Digest]) -> Self {
        let mut keys: Vec<&str> = Vec::new();
        for (key, _) in runs.iter().flat_map(|run| &run.parameters) {
            if !keys.contains(&key.as_str()) {
                keys.push(key);
            }
        }
        let (mut common, mut varying) = (Vec::new(), Vec::new());
        for key in keys {
            let first = runs[0].parameter(key);
            match first {
                Some(value) if runs.iter().all(|run| run.parameter(key) == first) => {
                    common.push((key.to_owned(), value.to_owned()));
                }
                _ => varying.push(key.to_owned()),
            }
        }
        let candidates = || varying.iter().filter(|key| ![REPETITION, SELF_CHECK].contains(&key.as_str()));
        let algorithm = candidates().find(|key| *key == ALGORITHM);
        let bar_key = algorithm.or_else(|| candidates().next()).cloned();
        let mut facets = Self { common, varying, bar_key, palette: Palette::default() };
        let owners: Vec<String> = runs.iter().map(|run| facets.colour_owner(run)).collect();
        facets.palette = Palette::of(owners.iter().map(String::as_str));
        facets
    }

    /// The bar that a run belongs to: its algorithm where that varies.
    pub fn bar(&self, run: &Digest) -> String {
        let fallback = || run.parameter(ALGORITHM).unwrap_or(&run.name);
        match &self.bar_key {
            Some(key) => run.parameter(key).unwrap_or("–").to_owned(),
            None if self.varying.is_empty() => run.name.clone(),
            None => fallback().to_owned(),
        }
    }

    /// The panel that a run belongs to: the other parameters that vary, `routing: ecmp`; empty if none does.
    pub fn panel(&self, run: &Digest) -> String {
        let plain =
            |key: &&String| Some(*key) != self.bar_key.as_ref() && ![REPETITION, SELF_CHECK].contains(&key.as_str());
        let others = self.varying.iter().filter(plain);
        let parts = others.map(|key| format!("{key}: {}", run.parameter(key).unwrap_or("–")));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// Everything that distinguishes a run, in a few words.
    pub fn label(&self, run: &Digest) -> String {
        let values = self.varying.iter().filter(|key| *key != SELF_CHECK).map(|key| {
            let value = run.parameter(key).unwrap_or("–");
            match key.as_str() {
                REPETITION => format!("seed {value}"),
                _ => value.to_owned(),
            }
        });
        let label = values.collect::<Vec<_>>().join(" · ");
        format!("{}{}", mark(run), if label.is_empty() { &run.name } else { &label })
    }

    /// What distinguishes a run from the others of its panel.
    pub fn label_in_panel(&self, run: &Digest) -> String {
        let bar = format!("{}{}", mark(run), self.bar(run));
        match run.parameter(REPETITION) {
            Some(seed) if self.varying.iter().any(|key| key == REPETITION) => {
                format!("{bar} · seed {seed}")
            }
            _ => bar,
        }
    }

    /// The colour of a run.
    pub fn colour(&self, run: &Digest) -> usize {
        self.palette.colour(&self.colour_owner(run))
    }

    /// Bars have colours of their own; a single run has its algorithm's.
    fn colour_owner(&self, run: &Digest) -> String {
        match run.parameter(ALGORITHM) {
            Some(algorithm) if self.varying.is_empty() => algorithm.to_owned(),
            _ => self.bar(run),
        }
    }

    /// What the bars are, as a heading: `algorithm`.
    pub fn bar_heading(&self) -> &str {
        self.bar_key.as_deref().unwrap_or("run")
    }
}

/// A mark, if the run is not valid.
pub(super) fn mark(run: &Digest) -> &'static str {
    if run.parameter(SELF_CHECK).is_some() { MARK } else { "" }
}

/// The mark of runs of which one is not valid.
pub(super) fn mark_of<'a>(runs: impl IntoIterator<Item = &'a Digest>) -> &'static str {
    runs.into_iter().map(mark).max().unwrap_or_default()
}

/// Groups items by a key, in order of first appearance.
pub(super) fn grouped<'a, T>(
    items: impl IntoIterator<Item = &'a T>,
    key: impl Fn(&T) -> String,
) -> Vec<(String, Vec<&'a T>)> {
    let mut groups: Vec<(String, Vec<&T>)> = Vec::new();
    for item in items {
        let key = key(item);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}
