//! From an object file to an algorithm that sockets can choose.

use crate::log::captured;
use crate::probe::Features;
use libbpf_rs::{ErrorKind, Link, MapCore, MapType, Object, ObjectBuilder, OpenObject};
use std::ffi::OsStr;

/// Why an algorithm was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `name` is not a built-in algorithm.
    #[error("there is no algorithm {name:?}; there are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// libbpf cannot read the object file.
    #[error("{label} is not a BPF object file that can be loaded:\n{log}")]
    Object {
        /// The object.
        label: String,
        /// The end of libbpf's messages.
        log: String,
    },
    /// The object holds none, or more than one, table of operations.
    #[error("{label} declares {found} algorithms; exactly one CC_OPS(...) is needed")]
    NotOneAlgorithm {
        /// The object.
        label: String,
        /// How many there are.
        found: usize,
    },
    /// The algorithm uses the hook cong_control in a form that this kernel does not have.
    #[error("{label} has the hook cong_control, whose four-argument form needs Linux 6.10 or newer; this is {release}")]
    CongControl {
        /// The object.
        label: String,
        /// The running kernel.
        release: String,
    },
    /// The kernel's verifier, or the kernel's check of the table of operations, refused it.
    #[error("the kernel refuses {label}; the end of its log:\n{log}")]
    Refused {
        /// The object.
        label: String,
        /// The end of the verifier's log and of libbpf's messages.
        log: String,
    },
    /// The kernel has an algorithm of that name.
    #[error(
        "the kernel already has an algorithm {name:?}: another process has loaded it, or a socket still uses an older one"
    )]
    Exists {
        /// The kernel's name of the algorithm.
        name: String,
    },
    /// The algorithm was verified but could not be registered.
    #[error("the algorithm {name:?} could not be registered: {reason}\n{log}")]
    Attach {
        /// The kernel's name of the algorithm.
        name: String,
        /// The system call's error.
        reason: String,
        /// The end of libbpf's messages.
        log: String,
    },
}

/// An algorithm that is in the kernel as long as this lives.
///
/// Dropping it takes the name away: no further socket can choose the algorithm, those that have chosen it keep it.
#[derive(Debug)]
#[must_use = "dropping it removes the algorithm from the kernel"]
pub struct Loaded {
    name: String,
    // Fields drop in this order: first the registration, then the programs.
    link: Link,
    _object: Object,
}

impl Loaded {
    /// The kernel's name of it, what `TCP_CONGESTION` takes: `ot_bbr`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's number of the registration (a BPF link), as `bpftool link` shows it.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn link_id(&self) -> Result<u32, libbpf_rs::Error> {
        Ok(self.link.info()?.id)
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

/// What the verifier accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The kernel's name of the algorithm.
    pub name: String,
    /// Its hooks.
    pub programs: Vec<Program>,
}

/// The embedded object of `name`.
pub(crate) fn builtin(name: &str) -> Result<&'static [u8], Error> {
    crate::object(name).ok_or_else(|| Error::Unknown {
        name: name.to_string(),
        known: crate::builtins().collect::<Vec<_>>().join(", "),
    })
}

pub(crate) fn load(features: &Features, bytes: &[u8], label: &str) -> Result<Loaded, Error> {
    let (name, mut object) = verified(features, bytes, label)?;
    let mut map = object.maps_mut().find(|map| is_ops(map.map_type())).expect("verified() found one");
    let (link, log) = captured(|| map.attach_struct_ops());
    match link {
        Ok(link) => Ok(Loaded { name, link, _object: object }),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Error::Exists { name }),
        Err(error) => Err(Error::Attach { name, reason: error.to_string(), log }),
    }
}

pub(crate) fn verify(features: &Features, bytes: &[u8], label: &str) -> Result<Verified, Error> {
    let (name, object) = verified(features, bytes, label)?;
    let programs = object
        .progs()
        .map(|program| Program { name: text(program.name()), instructions: program.insn_cnt() })
        .collect();
    Ok(Verified { name, programs })
}

/// Opens the object and lets the kernel verify its programs; the algorithm is not registered yet.
fn verified(features: &Features, bytes: &[u8], label: &str) -> Result<(String, Object), Error> {
    let label = label.to_string();
    let (open, log) = captured(|| ObjectBuilder::default().open_memory(bytes));
    let Ok(open) = open else {
        return Err(Error::Object { label, log });
    };
    let names: Vec<String> = open.maps().filter(|map| is_ops(map.map_type())).map(|map| text(map.name())).collect();
    let [name] = names.as_slice() else {
        return Err(Error::NotOneAlgorithm { label, found: names.len() });
    };
    if features.cong_control_arguments != 4 && has_cong_control(&open) {
        return Err(Error::CongControl { label, release: features.release.clone() });
    }
    match captured(|| open.load()) {
        (Ok(object), _) => Ok((name.clone(), object)),
        (Err(_), log) => Err(Error::Refused { label, log }),
    }
}

fn is_ops(kind: MapType) -> bool {
    kind == MapType::StructOps
}

/// CC_HOOK's functions are named FILE_HOOK throughout `cc/`.
fn has_cong_control(open: &OpenObject) -> bool {
    open.progs().any(|program| text(program.name()).ends_with("cong_control"))
}

fn text(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}
