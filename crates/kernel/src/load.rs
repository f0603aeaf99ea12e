//! From an object file to an algorithm that sockets can choose.

use crate::error::Error;
use crate::features::Features;
use crate::log::{captured, relevant};
use crate::sys;
use crate::table::Layout;
use libbpf_rs::libbpf_sys::BPF_F_LINK;
use libbpf_rs::{ErrorKind, Link, MapCore, MapMut, MapType, Object, ObjectBuilder, OpenObject};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// An algorithm that is in the kernel as long as this lives.
///
/// Dropping it removes the name: no further socket can choose the algorithm, those that have chosen it keep it.
#[derive(Debug)]
#[must_use = "dropping it removes the algorithm from the kernel"]
pub struct Loaded {
    name: String,
    // Fields drop in this order: first the registration, then the programs.
    link: Link,
    object: Object,
}

impl Loaded {
    /// The kernel's name of it, what `TCP_CONGESTION` takes: `ot_bbr`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's number of the registration (a BPF link), as `bpftool link` shows it.
    ///
    /// # Errors
    /// The kernel's query fails.
    pub fn link_id(&self) -> Result<u32, libbpf_rs::Error> {
        Ok(self.link.info()?.id)
    }
}

impl Loaded {
    /// The kernel's numbers of its programs.
    pub(crate) fn programs(&self) -> Vec<u32> {
        let ids = self.object.progs().map(|program| libbpf_rs::Program::id_from_fd(program.as_fd()));
        ids.collect::<Result<_, _>>().unwrap_or_default()
    }
}

/// One hook of a verified algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The C function's name.
    pub name: String,
    /// BPF instructions that the compiler made.
    pub instructions: usize,
}

/// A verified algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The kernel's name of the algorithm.
    pub name: String,
    /// Its hooks.
    pub programs: Vec<Program>,
}

/// An algorithm that the verifier has accepted; no socket can choose it yet.
#[derive(Debug)]
#[must_use = "dropping it removes its programs from the kernel"]
pub struct Prepared {
    name: String,
    object: Object,
}

impl Prepared {
    /// What the kernel will call it: `ot_bbr`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Registers it for as long as the result lives.
    ///
    /// # Errors
    /// The kernel has an algorithm of that name, or refuses the registration.
    pub fn register(mut self) -> Result<Loaded, Error> {
        let link = self.link()?;
        Ok(Loaded { name: self.name, link, object: self.object })
    }

    /// Registers it in place of the algorithm of the same name that `link` registered.
    ///
    /// # Errors
    /// `link` is of another name, or was detached.
    pub(crate) fn replace(mut self, link: BorrowedFd<'_>) -> io::Result<()> {
        // A link can only take up a table that is ready, and only the attempt to register it makes it ready. The name is in
        // use, so the attempt fails.
        match self.link() {
            Err(Error::Exists { .. }) => sys::update_link(link, ops_of(&mut self.object).as_fd()),
            Err(error) => Err(io::Error::other(error.to_string())),
            Ok(_) => Err(io::Error::new(io::ErrorKind::NotFound, "the algorithm was unloaded meanwhile")),
        }
    }

    pub(crate) fn link(&mut self) -> Result<Link, Error> {
        let (link, log) = captured(|| ops_of(&mut self.object).attach_struct_ops());
        link.map_err(|error| {
            let name = self.name.clone();
            match error.kind() {
                ErrorKind::AlreadyExists => Error::Exists { name },
                _ => Error::Attach { name, reason: error.to_string(), log },
            }
        })
    }
}

/// The embedded object of `name`.
pub(crate) fn builtin(name: &str) -> Result<&'static [u8], Error> {
    crate::object(name).ok_or_else(|| Error::Unknown {
        name: name.to_string(),
        known: crate::builtins().collect::<Vec<_>>().join(", "),
    })
}

/// The name that the object's algorithm will have in the kernel. Needs nothing from the kernel.
pub(crate) fn name(bytes: &[u8], label: &str) -> Result<String, Error> {
    open(bytes, label).map(|opened| opened.name)
}

pub(crate) fn verify(features: &Features, bytes: &[u8], label: &str) -> Result<Verified, Error> {
    let Prepared { name, object } = prepare(features, bytes, label)?;
    let programs = object
        .progs()
        .map(|program| Program { name: text(program.name()), instructions: program.insn_cnt() })
        .collect();
    Ok(Verified { name, programs })
}

/// Opens the object and lets the kernel verify its programs.
pub(crate) fn prepare(features: &Features, bytes: &[u8], label: &str) -> Result<Prepared, Error> {
    let opened = open(bytes, label)?;
    if features.cong_control_arguments != 4 && opened.has_cong_control {
        return Err(Error::CongControl { label: label.to_string(), release: features.release.clone() });
    }
    match captured(|| opened.object.load()) {
        (Ok(object), _) => Ok(Prepared { name: opened.name, object }),
        (Err(_), log) => Err(Error::Refused { label: label.to_string(), log: relevant(&log) }),
    }
}

/// An object file that holds one whole algorithm.
struct Opened {
    name: String,
    has_cong_control: bool,
    object: OpenObject,
}

/// Reads the object and completes its table.
fn open(bytes: &[u8], label: &str) -> Result<Opened, Error> {
    let label = label.to_string();
    let (object, log) = captured(|| ObjectBuilder::default().open_memory(bytes));
    let Ok(mut object) = object else {
        return Err(Error::Object { label, log: relevant(&log) });
    };
    let found = object.maps().filter(|map| map.map_type() == MapType::StructOps).count();
    let (layout, _) = captured(|| Layout::of(bytes));
    let (1, Some(layout)) = (found, layout) else {
        return Err(Error::NotOneAlgorithm { label, found });
    };
    let mut map = object.maps_mut().find(|map| map.map_type() == MapType::StructOps).expect("counted above");
    let symbol = text(map.name());
    let table = map.initial_value_mut().expect("libbpf holds the table from opening on");
    let name = layout.name(table, &label, &symbol)?;
    let missing = layout.lacks(table).join(", ");
    if !missing.is_empty() {
        return Err(Error::Incomplete { label, missing });
    }
    layout.open_to_all(table);
    let has_cong_control = layout.has(table, "cong_control");
    // A table in SEC(".struct_ops") would be registered without a link: nothing to pin, replace or detach.
    map.set_map_flags(map.map_flags() | BPF_F_LINK).expect("a table that is not loaded yet");
    Ok(Opened { name, has_cong_control, object })
}

fn ops_of(object: &mut Object) -> MapMut<'_> {
    object.maps_mut().find(|map| map.map_type() == MapType::StructOps).expect("open() found one")
}

fn text(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}
