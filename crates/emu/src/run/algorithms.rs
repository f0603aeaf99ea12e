//! The algorithms of a scenario, in the kernel for as long as the run lasts.

use crate::error::EmuError;
use crate::linux::{KERNEL_PREFIX, algorithms, paces, policy_algorithms};
use crate::sockets::EntryStack;
use congestion::compile_for_bpf;
use kernel::{Error, Kernel, Loaded, NAME_PREFIX};
use scenario::{Algorithm, Scenario};
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

/// An unloaded algorithm remains until its last socket is freed, which the kernel does in its own time.
const PATIENCE: Duration = Duration::from_secs(3);

/// The loaded algorithms, and what each traffic entry uses.
pub struct Algorithms {
    /// What sockets call them.
    names: BTreeMap<Algorithm, String>,
    entries: Vec<EntryStack>,
    /// By entry: its name in the results.
    labels: Vec<String>,
    loaded: Vec<Loaded>,
}

impl Algorithms {
    /// Loads what the traffic of `scenario` needs, and what its policy may set.
    ///
    /// # Errors
    /// The kernel takes no algorithms, or refuses one of these.
    pub fn load(scenario: &Scenario) -> Result<Algorithms, EmuError> {
        Algorithms::load_with(scenario, &[])
    }

    /// The same, and those that programs in the hosts of `others`, such as the runs of a sweep, are to find: each host's own, and the
    /// traffic's.
    ///
    /// # Errors
    /// As [`Algorithms::load`].
    pub fn load_with(scenario: &Scenario, others: &[Scenario]) -> Result<Algorithms, EmuError> {
        let mut names: BTreeMap<Algorithm, String> = BTreeMap::new();
        let mut loaded = Vec::new();
        let mut kernel = None;
        let named = others.iter().flat_map(|other| algorithms(other).chain([&other.tcp.cc]));
        for cc in algorithms(scenario).chain(named) {
            if names.contains_key(cc) {
                continue;
            }
            let name = if let Some(own) = cc.label().strip_prefix(KERNEL_PREFIX) {
                own.to_string()
            } else {
                let algorithm = load(probed(&mut kernel)?, cc)?;
                let name = algorithm.name().to_string();
                loaded.push(algorithm);
                name
            };
            names.insert(cc.clone(), name);
        }
        // those that the policy may set
        let names_loaded: BTreeSet<String> = loaded.iter().map(|algorithm| algorithm.name().to_string()).collect();
        // the others are the kernel's own, or a user's, which stay loaded
        let ours = |name: &&str| kernel::object(name).is_some();
        let of_policies = others.iter().chain([scenario]).flat_map(policy_algorithms);
        for name in of_policies.filter(ours).collect::<BTreeSet<_>>() {
            if !names_loaded.contains(&format!("{NAME_PREFIX}{name}")) {
                loaded.push(load(probed(&mut kernel)?, &Algorithm::BuiltIn(name.to_string()))?);
            }
        }
        let entry = |cc: &Algorithm| EntryStack { algorithm: names[cc].clone(), paces: paces(cc) };
        let labels = algorithms(scenario).map(|cc| cc.label().to_string()).collect();
        let entries = algorithms(scenario).map(entry).collect();
        Ok(Algorithms { names, entries, labels, loaded })
    }

    /// What sockets call this one, if it was asked for.
    pub fn name(&self, cc: &Algorithm) -> Option<&str> {
        self.names.get(cc).map(String::as_str)
    }

    /// What sockets call those that are loaded.
    pub fn loaded(&self) -> impl Iterator<Item = &str> {
        self.loaded.iter().map(Loaded::name)
    }

    /// By traffic entry: the names that sockets choose.
    pub fn entries(&self) -> &[EntryStack] {
        &self.entries
    }

    /// The name of an entry's algorithm in the results.
    pub fn label(&self, entry: u32) -> &str {
        &self.labels[entry as usize]
    }
}

/// The kernel, probed once.
fn probed(kernel: &mut Option<Kernel>) -> Result<&Kernel, EmuError> {
    match kernel {
        Some(kernel) => Ok(kernel),
        None => Ok(kernel.insert(Kernel::probe()?)),
    }
}

fn load(kernel: &Kernel, cc: &Algorithm) -> Result<Loaded, EmuError> {
    let failed = |error: &dyn std::fmt::Display| EmuError::Algorithm(error.to_string());
    let object = match cc {
        Algorithm::BuiltIn(_) => None,
        Algorithm::File(file) => Some(compile_for_bpf(&file.file.path).map_err(|error| failed(&error))?),
    };
    let began = Instant::now();
    loop {
        let loaded = match &object {
            None => kernel.load(cc.label()),
            Some(object) => kernel.load_object(object, cc.label()),
        };
        match loaded {
            Err(Error::Exists { .. }) if began.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(20)),
            other => return other.map_err(|error| failed(&error)),
        }
    }
}
