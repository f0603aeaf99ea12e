//! Redirects TCP packets that arrive at an interface to a program: `bpf/enforce.c`.
//!
//! The kernel redirects them to the AF_XDP sockets of [`Steering::hand_to`]. Packets without a socket pass as if the program
//! were absent: a socket vanishes with its process, and all packets pass while the process has not reported that it is alive
//! ([`Steering::beat`]).

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
/// The program that restores VLAN tags which the driver has removed from the frames, on kernels that report them.
const PROGRAM_TAGGED: &str = "enforce_tagged";
const SOCKETS: &str = "sockets";
const OWN: &str = "own";
const HEARTBEAT: &str = "heartbeat";
const BRIDGED: &str = "bridged";
/// The pinned attachment.
const LINK: &str = "link";

/// Queues of an interface that can have a socket; packets of others bypass the enforcer.
pub const QUEUES_MAX: u32 = 64;
/// After so long without a heartbeat of their process, packets bypass the enforcer; enforce.c has the same value.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// Addresses that [`Steering::attach`] accepts.
pub const OWN_MAX: usize = 4;

/// Why packets cannot be redirected.
#[derive(Debug, thiserror::Error)]
pub enum SteerError {
    /// The kernel refuses the program.
    #[error("the kernel does not take the enforcer's program:\n{0}")]
    Refused(String),
    /// The program cannot be attached.
    #[error(
        "{0}; it needs root, and no other XDP program there (`ip link show` lists one, `ip link set dev NAME xdp off` removes it)"
    )]
    Attach(String),
    /// The pinned files cannot be made, used or removed.
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

/// Whether a pinned file is the attachment of this interface, and still attached.
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

/// Where the program is attached, and how.
#[derive(Clone, Copy, Debug)]
pub struct Attachment<'a> {
    /// The interface's index.
    pub interface: u32,
    /// Hardware addresses of this machine, [`OWN_MAX`] at most: packets to them pass.
    pub own: &'a [[u8; 6]],
    /// Folder of the pinned files, in a BPF file system.
    pub folder: &'a Path,
    /// Frames may be longer than a page, which needs Linux 5.18.
    pub fragments: bool,
}

impl Steering {
    /// Attaches the program for good: it outlives this process, and replaces one that was pinned there before.
    ///
    /// # Errors
    /// No right to do so, another program is there, or a kernel that refuses the program.
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
            // left by an earlier interface of the same name
            fs::remove_file(&pin).map_err(|error| in_folder(&error))?;
        }
        let attached = program.attach_xdp(interface as i32);
        let mut link = attached.map_err(|error| SteerError::Attach(error.to_string()))?;
        link.pin(&pin).map_err(|error| in_folder(&error))?;
        Ok(Steering { object })
    }

    /// Redirects packets of this queue to `socket` from now on.
    ///
    /// # Errors
    /// Not an AF_XDP socket, or bound to another queue, or a queue beyond the limit.
    pub fn hand_to(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), SteerError> {
        let map = self.object.maps().find(|map| map.name() == SOCKETS).expect("enforce.c has it");
        Ok(map.update(&queue.to_ne_bytes(), &socket.as_raw_fd().to_ne_bytes(), MapFlags::ANY)?)
    }

    /// A heartbeat of the sockets' owner, needed more often than each [`PATIENCE`].
    ///
    /// # Errors
    /// The kernel fails.
    pub fn beat(&self) -> Result<(), SteerError> {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(io::Error::from).map_err(libbpf_rs::Error::from)?;
        let now_ns = Duration::from(now).as_nanos() as u64;
        let map = self.object.maps().find(|map| map.name() == HEARTBEAT).expect("enforce.c has it");
        Ok(map.update(&0_u32.to_ne_bytes(), &now_ns.to_ne_bytes(), MapFlags::ANY)?)
    }

    /// Frames that bypassed the enforcer since the program was first attached.
    ///
    /// # Errors
    /// The kernel's query fails.
    pub fn bridged(&self) -> Result<u64, SteerError> {
        let map = self.object.maps().find(|map| map.name() == BRIDGED).expect("enforce.c has it");
        let per_processor = map.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        let numbers = per_processor.iter().filter_map(|bytes| bytes.first_chunk());
        Ok(numbers.map(|bytes| u64::from_ne_bytes(*bytes)).sum())
    }

    /// Lets the queue's packets bypass the enforcer.
    ///
    /// # Errors
    /// They did so before.
    pub fn take_back(&self, queue: u32) -> Result<(), SteerError> {
        let map = self.object.maps().find(|map| map.name() == SOCKETS).expect("enforce.c has it");
        Ok(map.delete(&queue.to_ne_bytes())?)
    }

    /// Removes what [`Steering::attach`] left in `folder`; whether there was anything.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove(folder: &Path) -> Result<bool, SteerError> {
        objects::remove(folder).map_err(|error| SteerError::Folder { path: folder.into(), reason: error.to_string() })
    }
}
