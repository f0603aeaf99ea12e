//! TCP's packets that come in at an interface, handed to a program: `bpf/enforce.c`.
//!
//! The kernel hands them to the sockets (AF_XDP) that [`Steering::hand_to`] was given; whatever it has no socket for goes on as if
//! nothing were there. A socket is out of it with its process, and everything goes on so while that does not say that it is at work
//! ([`Steering::say_at_work`]).

use crate::objects::{self, pin_maps};
use libbpf_rs::libbpf_sys::{BPF_F_XDP_DEV_BOUND_ONLY, BPF_F_XDP_HAS_FRAGS};
use libbpf_rs::query::{LinkTypeInfo, XdpLinkInfo};
use libbpf_rs::{Link, MapCore as _, MapFlags, Object, OpenObject};
use nix::time::{ClockId, clock_gettime};
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/enforce.bpf.o"));

/// Names in enforce.c.
const PROGRAM: &str = "enforce";
/// The program that takes up tags which are beside their frames, of kernels and drivers that tell of them.
const PROGRAM_TAGGED: &str = "enforce_tagged";
const SOCKETS: &str = "sockets";
const OWN: &str = "own";
const AT_WORK: &str = "at_work";
const BRIDGED: &str = "bridged";
/// The file that holds the attachment.
const LINK: &str = "link";

/// Queues of an interface that have a place; packets of others go their own way.
pub const QUEUES_MAX: u32 = 64;
/// After so long without a word from their process, packets go their own way; enforce.c has the same.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// Addresses that [`Steering::attach`] takes.
pub const OWN_MAX: usize = 4;

/// Why packets are not handed over.
#[derive(Debug, thiserror::Error)]
pub enum SteerError {
    /// The kernel does not take the program.
    #[error("the kernel does not take the enforcer's program:\n{0}")]
    Refused(String),
    /// Nor attach it.
    #[error(
        "{0}; it takes root, and no other XDP program there (`ip link show` tells of one, `ip link set dev NAME xdp off` takes it out)"
    )]
    Attach(String),
    /// The files by which it stays cannot be made, used or removed.
    #[error("{}: {reason}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system call's error.
        reason: String,
    },
    /// A map could not be written.
    #[error("the kernel's tables: {0}")]
    Map(#[from] libbpf_rs::Error),
}

/// Whether what a file holds is the attachment of this interface, which is not gone.
fn is_at(link: &Link, interface: u32) -> bool {
    let known = link.info().map(|link| link.info);
    matches!(known, Ok(LinkTypeInfo::Xdp(XdpLinkInfo { ifindex, .. })) if ifindex == interface)
}

/// The program at an interface. It stays when this is dropped.
pub struct Steering {
    object: Object,
}

impl fmt::Debug for Steering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steering").finish_non_exhaustive()
    }
}

/// Where the program is attached, and what it looks at.
#[derive(Clone, Copy, Debug)]
pub struct Attachment<'a> {
    /// The interface's index.
    pub interface: u32,
    /// Hardware addresses of this machine, [`OWN_MAX`] at most: packets to them are left alone.
    pub own: &'a [[u8; 6]],
    /// In a BPF file system; its files hold the program.
    pub folder: &'a Path,
    /// Frames may be longer than a page, which takes Linux 5.18.
    pub fragments: bool,
}

impl Steering {
    /// Attaches the program for good: it outlives this process, and takes over from one that stayed there before.
    ///
    /// # Errors
    /// No right to, another program is there, or a kernel that refuses the program.
    pub fn attach(to: Attachment<'_>) -> Result<Steering, SteerError> {
        let attach = |name| Steering::attach_program(name, to);
        attach(PROGRAM_TAGGED).or_else(|_| attach(PROGRAM))
    }

    fn attach_program(name: &str, to: Attachment<'_>) -> Result<Steering, SteerError> {
        let Attachment { interface, own, folder, fragments } = to;
        let in_folder =
            |error: &dyn fmt::Display| SteerError::Folder { path: folder.into(), reason: error.to_string() };
        fs::create_dir_all(folder).map_err(|error| in_folder(&error))?;
        let prepare = |object: &mut OpenObject| {
            for mut program in object.progs_mut() {
                program.set_autoload(program.name() == name);
                let mut flags = if fragments { BPF_F_XDP_HAS_FRAGS } else { 0 };
                if program.name() == PROGRAM_TAGGED {
                    program.set_ifindex(interface);
                    flags |= BPF_F_XDP_DEV_BOUND_ONLY;
                }
                program.set_flags(flags);
            }
        };
        let mut object = objects::load_as(OBJECT, Some(folder), prepare).map_err(SteerError::Refused)?;
        pin_maps(&mut object, folder).map_err(|error| in_folder(&error))?;
        let map = object.maps().find(|map| map.name() == OWN).expect("enforce.c has it");
        let mut value = [0; OWN_MAX * 8];
        for (address, place) in own.iter().zip(value.chunks_exact_mut(8)) {
            let number = address.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            place.copy_from_slice(&number.to_ne_bytes());
        }
        map.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY)?;
        let pin = folder.join(LINK);
        let program = object.progs_mut().find(|program| program.name() == name).expect("enforce.c has it");
        if pin.exists() {
            let mut link = Link::open(&pin).map_err(|error| in_folder(&error))?;
            if is_at(&link, interface) {
                link.update_prog(&program).map_err(|error| in_folder(&error))?;
                return Ok(Steering { object });
            }
            // of an interface that had this one's name before it
            fs::remove_file(&pin).map_err(|error| in_folder(&error))?;
        }
        let attached = program.attach_xdp(interface as i32);
        let mut link = attached.map_err(|error| SteerError::Attach(error.to_string()))?;
        link.pin(&pin).map_err(|error| in_folder(&error))?;
        Ok(Steering { object })
    }

    /// Packets of this queue of the interface come to `socket` from now on.
    ///
    /// # Errors
    /// It is no such socket, or bound to another queue, or there is no place for the queue.
    pub fn hand_to(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), SteerError> {
        let map = self.object.maps().find(|map| map.name() == SOCKETS).expect("enforce.c has it");
        Ok(map.update(&queue.to_ne_bytes(), &socket.as_raw_fd().to_ne_bytes(), MapFlags::ANY)?)
    }

    /// Whoever has the sockets looks into them. To be said well within each [`PATIENCE`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn say_at_work(&self) -> Result<(), SteerError> {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(io::Error::from).map_err(libbpf_rs::Error::from)?;
        let now_ns = Duration::from(now).as_nanos() as u64;
        let map = self.object.maps().find(|map| map.name() == AT_WORK).expect("enforce.c has it");
        Ok(map.update(&0_u32.to_ne_bytes(), &now_ns.to_ne_bytes(), MapFlags::ANY)?)
    }

    /// Frames that went their own way, since the program was first attached.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn bridged(&self) -> Result<u64, SteerError> {
        let map = self.object.maps().find(|map| map.name() == BRIDGED).expect("enforce.c has it");
        let per_processor = map.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        let numbers = per_processor.iter().filter_map(|bytes| bytes.first_chunk());
        Ok(numbers.map(|bytes| u64::from_ne_bytes(*bytes)).sum())
    }

    /// They go their own way again.
    ///
    /// # Errors
    /// They did so before.
    pub fn take_back(&self, queue: u32) -> Result<(), SteerError> {
        let map = self.object.maps().find(|map| map.name() == SOCKETS).expect("enforce.c has it");
        Ok(map.delete(&queue.to_ne_bytes())?)
    }

    /// Takes out what [`Steering::attach`] left in `folder`; whether there was anything.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove(folder: &Path) -> Result<bool, SteerError> {
        objects::remove(folder).map_err(|error| SteerError::Folder { path: folder.into(), reason: error.to_string() })
    }
}
