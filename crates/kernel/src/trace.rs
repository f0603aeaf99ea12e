//! An algorithm's tracing build in the kernel, and the records of its calls.

use crate::error::Error;
use crate::log::captured;
use crate::probe::Kernel;
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{
    ErrorKind, Link, MapCore, MapFlags, MapType, Object, ObjectBuilder, Program, RingBuffer, RingBufferBuilder,
};
use std::fmt;
use std::os::fd::AsFd as _;

include!(concat!(env!("OUT_DIR"), "/traced.rs"));

/// Prefix that makes a file's id the kernel's name of the traced algorithm.
const TRACE_PREFIX: &str = "tr_";

/// A traced algorithm that is in the kernel as long as this lives: the same source as [`Kernel::load`]'s, every hook wrapped
/// by a recorder (`bpf/trace.c`, which describes the record).
#[must_use = "dropping it removes the algorithm from the kernel"]
pub struct Trace {
    name: String,
    // Fields drop in this order: first the registrations, then the programs.
    _links: [Link; 2],
    object: Object,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The object file of the tracing build of `name`, for tools and tests.
pub fn traced_object(name: &str) -> Option<&'static [u8]> {
    TRACED.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}

impl Kernel {
    /// Loads the tracing build of the built-in algorithm `name` (as in [`crate::builtins`]); the kernel knows it as `tr_NAME`.
    ///
    /// # Errors
    /// No such algorithm, refused by the verifier, or the kernel has an algorithm of that name already.
    pub fn trace(&self, name: &str) -> Result<Trace, Error> {
        let label = format!("the tracing build of {name}");
        let bytes = traced_object(name).ok_or_else(|| Error::Unknown {
            name: name.to_string(),
            known: crate::builtins().collect::<Vec<_>>().join(", "),
        })?;
        let (object, log) =
            captured(|| ObjectBuilder::default().open_memory(bytes).and_then(libbpf_rs::OpenObject::load));
        let Ok(mut object) = object else {
            return Err(Error::Refused { label, log });
        };
        let name = format!("{TRACE_PREFIX}{name}");
        let (links, log) = captured(|| attach(&mut object));
        match links {
            Ok(links) => Ok(Trace { name, _links: links, object }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Error::Exists { name }),
            Err(error) => Err(Error::Attach { name, reason: error.to_string(), log }),
        }
    }
}

/// The table of operations, and the program at the kernel's tracepoint.
fn attach(object: &mut Object) -> Result<[Link; 2], libbpf_rs::Error> {
    let state = object.progs_mut().find(|program| program.name() == "trace_state").expect("trace.c has it").attach()?;
    let mut ops = object.maps_mut().find(|map| map.map_type() == MapType::StructOps).expect("CC_OPS made it");
    Ok([ops.attach_struct_ops()?, state])
}

impl Trace {
    /// The kernel's name of it, what `TCP_CONGESTION` takes: `tr_bbr`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A reader of the records: it calls `record` with the bytes of each, in the order of a socket's calls.
    ///
    /// # Errors
    /// The kernel's buffer cannot be mapped.
    pub fn reader<'a>(&'a self, mut record: impl FnMut(&[u8]) + 'a) -> Result<Reader<'a>, libbpf_rs::Error> {
        let ring = self.object.maps().find(|map| map.name() == "trace_ring").expect("trace.c has it");
        let mut builder = RingBufferBuilder::new();
        builder.add(&ring, move |bytes| {
            record(bytes);
            0
        })?;
        Ok(Reader { ring: builder.build()? })
    }

    /// Calls that left no record because the buffer was full.
    ///
    /// # Errors
    /// The kernel's query fails.
    pub fn lost(&self) -> Result<u64, libbpf_rs::Error> {
        let counters = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss")).expect("a global");
        let value = counters.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        Ok(value.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes)))
    }

    /// Calls that the kernel skipped by its own count (a program is not run within itself).
    ///
    /// # Errors
    /// The kernel's query fails.
    pub fn skipped(&self) -> Result<u64, libbpf_rs::Error> {
        let ids =
            self.object.progs().map(|program| Program::id_from_fd(program.as_fd())).collect::<Result<Vec<_>, _>>()?;
        Ok(ProgInfoIter::default().filter(|info| ids.contains(&info.id)).map(|info| info.recursion_misses).sum())
    }
}

/// Reads records; [`Trace::reader`] makes it.
#[derive(Debug)]
pub struct Reader<'a> {
    ring: RingBuffer<'a>,
}

impl Reader<'_> {
    /// Passes on what has been recorded since the last call.
    ///
    /// # Errors
    /// The kernel's buffer cannot be read.
    pub fn drain(&self) -> Result<(), libbpf_rs::Error> {
        self.ring.consume()
    }
}
