//! The running kernel's algorithms: their origin, and how many sockets use each.

use crate::{NAME_PREFIX, bpffs, pins, sockets};
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, MapInfoIter};
use std::collections::{BTreeMap, BTreeSet};
use std::{fs, io};

/// Where an algorithm of the running kernel comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The kernel's own.
    BuiltIn,
    /// A kernel module.
    Module,
    /// This program's: pinned until it is unloaded.
    Loaded,
    /// A BPF program that somebody else has loaded, or that is not pinned.
    OtherBpf,
    /// Unloaded; sockets that chose it before still use it.
    Unloaded,
}

impl Origin {
    /// For people: `built-in`, `loaded`.
    pub fn words(self) -> &'static str {
        match self {
            Origin::BuiltIn => "built-in",
            Origin::Module => "module",
            Origin::Loaded => "loaded",
            Origin::OtherBpf => "BPF of another program",
            Origin::Unloaded => "unloaded, in use",
        }
    }
}

/// An algorithm of the running kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The kernel's name of it.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Sockets of the caller's network namespace that use it; `None` if the kernel does not report it.
    pub sockets: Option<usize>,
}

/// The algorithms of the running kernel, sorted by name. Without bpffs, or without the right to see pinned files or BPF
/// programs, names with our prefix count as this program's.
///
/// # Errors
/// The kernel's list cannot be read (/proc is not mounted).
pub fn running() -> io::Result<Vec<Running>> {
    let available = sockets::available()?;
    let sockets = sockets::sockets_by_algorithm().ok();
    let (pinned, bpf, modules) = (pins::pinned(), bpf_names(), modules());
    // Without bpffs, or without the right to read it, our prefix must do.
    let blind = !bpffs::is_mounted() || bpf.is_empty();
    let origin = |name: &String| {
        if !available.contains(name) {
            Origin::Unloaded
        } else if pinned.contains(name) || (blind && name.starts_with(NAME_PREFIX)) {
            Origin::Loaded
        } else if bpf.contains(name) {
            Origin::OtherBpf
        } else if modules.contains(&format!("tcp_{name}")) {
            Origin::Module
        } else {
            Origin::BuiltIn
        }
    };
    let used = sockets.iter().flat_map(BTreeMap::keys);
    let names: BTreeSet<&String> = available.iter().chain(used).collect();
    let of = |name: &String| sockets.as_ref().map(|counts| counts.get(name).copied().unwrap_or(0));
    Ok(names.into_iter().map(|name| Running { name: name.clone(), origin: origin(name), sockets: of(name) }).collect())
}

/// Names of the tables that BPF links have registered; for `cc/`'s files the algorithms' names.
fn bpf_names() -> BTreeSet<String> {
    let registered: BTreeSet<u32> = LinkInfoIter::default()
        .filter_map(|link| match link.info {
            LinkTypeInfo::StructOps(ops) => Some(ops.map_id),
            _ => None,
        })
        .collect();
    let maps = MapInfoIter::default().filter(|map| registered.contains(&map.id));
    maps.map(|map| map.name.to_string_lossy().into_owned()).collect()
}

fn modules() -> BTreeSet<String> {
    let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
    modules.lines().filter_map(|line| line.split(' ').next()).map(str::to_string).collect()
}
