//! AF_XDP: frames of one queue of an interface, in and out, past the kernel's network stack (Documentation/networking/af_xdp.rst).

use crate::offload::complete;
use crate::vnet::VnetHeader;
use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::SndBufForce;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

/// Size of a frame's piece of memory: the first that is large enough. In small pieces frames start at more different cache
/// sets, which makes a packet a fifth cheaper.
const PIECES: [usize; 2] = [2048, 4096];
/// Offset of a received frame in its piece.
const HEADROOM: usize = 256;
/// Largest number of frames waiting to be read, and to be sent. A thousand flows send more than 512 at once, and often more than 1024.
const FRAMES: u32 = 2048;
/// Bytes of a frame that fit one of the larger pieces. A longer frame needs several, which needs Linux 6.6 and a program for multi-buffer.
pub const XDP_PIECE_BYTES_MAX: usize = PIECES[1] - HEADROOM;
/// Pieces of one frame, at most: enough for an MTU of 9,600 bytes and more.
const FRAME_PIECES_MAX: usize = 3;
/// Longest frame, bytes.
pub const XDP_FRAME_BYTES_MAX: usize = FRAME_PIECES_MAX * XDP_PIECE_BYTES_MAX;
/// How often in a row the kernel is called to send waiting frames: it takes 32 at a time.
const KICKS: u32 = 2 * FRAMES / 32;

/// A piece of memory that is shared with the kernel.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to no thread; the rings' protocol says who may write where.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a file from `offset` on; `populate`: all of it now.
    fn new(fd: BorrowedFd<'_>, offset: i64, bytes: usize, populate: bool) -> io::Result<Mapping> {
        let kind = libc::MAP_SHARED | if populate { libc::MAP_POPULATE } else { 0 };
        let (access, file) = (libc::PROT_READ | libc::PROT_WRITE, fd.as_raw_fd());
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, file, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(start.cast()).map(|start| Mapping { start, bytes }).ok_or_else(|| io::ErrorKind::Other.into())
    }

    /// Huge pages, so that addresses need few TLB entries. The kernel's answer does not matter.
    fn prefer_large_pages(&self) {
        // SAFETY: it is ours, whole, and its contents stay.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, libc::MADV_HUGEPAGE) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is ours, whole, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// One of the four rings, of entries `T`, which are plain numbers.
#[derive(Debug)]
struct Ring<T> {
    mapping: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    /// Our own side's position, which may not be published to the kernel yet.
    at: u32,
    _entries: std::marker::PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn map(fd: BorrowedFd<'_>, page: i64, offset: &libc::xdp_ring_offset) -> io::Result<Ring<T>> {
        let entries = offset.desc as usize;
        Ok(Ring {
            mapping: Mapping::new(fd, page, entries + FRAMES as usize * size_of::<T>(), true)?,
            producer: offset.producer as usize,
            consumer: offset.consumer as usize,
            flags: offset.flags as usize,
            entries,
            at: 0,
            _entries: std::marker::PhantomData,
        })
    }

    /// Another process has used it: our position is the one that the kernel knows.
    fn resume(&mut self, own: usize) {
        self.at = self.word(own).load(Ordering::Acquire);
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at + 4 <= self.mapping.bytes);
        // SAFETY: the kernel's offset is of a 32-bit word inside of the mapping, which both sides use atomically.
        unsafe { AtomicU32::from_ptr(self.mapping.start.as_ptr().add(at).cast()) }
    }

    fn entry(&self, number: u32) -> *mut T {
        let index = (number % FRAMES) as usize;
        // SAFETY: the mapping is as long as its header and FRAMES entries.
        unsafe { self.mapping.start.as_ptr().add(self.entries).cast::<T>().add(index) }
    }

    /// The kernel's entries, up to `most`; they return to the kernel by [`Ring::release`].
    fn filled(&self, most: u32) -> impl Iterator<Item = T> {
        let there = self.word(self.producer).load(Ordering::Acquire).wrapping_sub(self.at).min(most);
        let from = self.at;
        // SAFETY: between the two positions entries are ours to read.
        (0..there).map(move |i| unsafe { self.entry(from.wrapping_add(i)).read() })
    }

    fn release(&mut self, n: u32) {
        self.at = self.at.wrapping_add(n);
        self.word(self.consumer).store(self.at, Ordering::Release);
    }

    /// Adds an entry that the kernel sees after [`Ring::publish`]; false if the ring is full.
    fn put(&mut self, entry: T) -> bool {
        if self.at.wrapping_sub(self.word(self.consumer).load(Ordering::Acquire)) >= FRAMES {
            return false;
        }
        // SAFETY: entries that the kernel has consumed are ours to write.
        unsafe { self.entry(self.at).write(entry) };
        self.at = self.at.wrapping_add(1);
        true
    }

    fn publish(&self) {
        self.word(self.producer).store(self.at, Ordering::Release);
    }

    /// Whether the kernel needs a system call to see new entries.
    fn wants_wakeup(&self) -> bool {
        self.word(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    fn waits_for_kernel(&self) -> bool {
        self.word(self.consumer).load(Ordering::Acquire) != self.at
    }
}

/// What another process needs to take over an [`XdpSocket`], beside its two files.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct XdpState {
    /// Entries of each ring.
    #[prost(uint32, tag = "1")]
    pub frames: u32,
    /// Bytes of a piece.
    #[prost(uint32, tag = "2")]
    pub piece: u32,
    /// Pieces that a frame may have.
    #[prost(uint32, tag = "3")]
    pub pieces_max: u32,
    /// Pieces that may be sent from.
    #[prost(uint64, repeated, tag = "4")]
    pub free: Vec<u64>,
    /// The start of a frame whose other pieces follow.
    #[prost(bytes = "vec", tag = "5")]
    pub joined: Vec<u8>,
}

/// A socket for the frames of one queue of an interface. An XDP program decides which frames it gets; poll it through its
/// file descriptor.
#[derive(Debug)]
pub struct XdpSocket {
    // fields drop in this order: the socket before the memory that it uses
    fd: OwnedFd,
    receive: Ring<libc::xdp_desc>,
    send: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    complete: Ring<u64>,
    memory: Mapping,
    /// The memory as a file, for another process.
    memory_fd: OwnedFd,
    /// Bytes of a piece.
    piece: u64,
    /// Pieces that a frame may have.
    pieces_max: usize,
    /// Pieces that may be sent from.
    free: Vec<u64>,
    /// The start of a frame whose other pieces follow.
    joined: Vec<u8>,
}

impl XdpSocket {
    /// Binds to a queue of an interface, by its index, whose frames have `longest` bytes at most.
    ///
    /// # Errors
    /// No right to, no such queue, frames longer than [`XDP_FRAME_BYTES_MAX`] (or than [`XDP_PIECE_BYTES_MAX`] before Linux 6.6), or
    /// another socket has it (EBUSY).
    pub fn open(interface: u32, queue: u32, longest: usize) -> io::Result<XdpSocket> {
        if longest > XDP_FRAME_BYTES_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let piece = PIECES.into_iter().find(|piece| longest + HEADROOM <= *piece).unwrap_or(PIECES[1]);
        let pieces_max = if longest + HEADROOM <= piece { 1 } else { FRAME_PIECES_MAX };
        // SAFETY: it takes numbers and returns a new file descriptor, or -1.
        let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: see above.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let memory_fd = memory_file(2 * FRAMES as usize * piece)?;
        let memory = Mapping::new(memory_fd.as_fd(), 0, 2 * FRAMES as usize * piece, false)?;
        memory.prefer_large_pages();
        let region = libc::xdp_umem_reg {
            addr: memory.start.as_ptr() as u64,
            len: memory.bytes as u64,
            chunk_size: piece as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set(&fd, libc::XDP_UMEM_REG, &region)?;
        // a card may hold a ring's worth of frames; where that is refused, fewer
        let _ = setsockopt(&fd, SndBufForce, &(FRAMES as usize * piece));
        for ring in [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING] {
            set(&fd, ring, &FRAMES)?;
        }
        let free = (u64::from(FRAMES)..2 * u64::from(FRAMES)).map(|n| n * piece as u64).collect();
        let mut socket = XdpSocket::map([fd, memory_fd], memory, (piece as u64, pieces_max), free)?;
        let piece = socket.piece;
        for n in 0..u64::from(FRAMES) {
            socket.fill.put(n * piece);
        }
        socket.fill.publish();
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_USE_NEED_WAKEUP | if pieces_max > 1 { libc::XDP_USE_SG } else { 0 },
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        // SAFETY: `address` is whole, and only read.
        let bound = unsafe {
            libc::bind(
                socket.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
            )
        };
        if bound < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
    }

    /// Maps the rings of a socket that has them.
    fn map(
        [fd, memory_fd]: [OwnedFd; 2],
        memory: Mapping,
        (piece, pieces_max): (u64, usize),
        free: Vec<u64>,
    ) -> io::Result<XdpSocket> {
        let offsets = offsets(&fd)?;
        Ok(XdpSocket {
            receive: Ring::map(fd.as_fd(), libc::XDP_PGOFF_RX_RING, &offsets.rx)?,
            send: Ring::map(fd.as_fd(), libc::XDP_PGOFF_TX_RING, &offsets.tx)?,
            fill: Ring::map(fd.as_fd(), libc::XDP_UMEM_PGOFF_FILL_RING as i64, &offsets.fr)?,
            complete: Ring::map(fd.as_fd(), libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, &offsets.cr)?,
            memory,
            memory_fd,
            piece,
            pieces_max,
            joined: Vec::new(),
            free,
            fd,
        })
    }

    /// What another process needs to map it and to [`XdpSocket::resume`] it, beside its [`XdpSocket::files`].
    pub fn state(&self) -> XdpState {
        XdpState {
            frames: FRAMES,
            piece: self.piece as u32,
            pieces_max: self.pieces_max as u32,
            free: self.free.clone(),
            joined: self.joined.clone(),
        }
    }

    /// The socket, and the memory of its frames.
    pub fn files(&self) -> [BorrowedFd<'_>; 2] {
        [self.fd.as_fd(), self.memory_fd.as_fd()]
    }

    /// Maps a socket of another process, which is still in use there. Nothing is changed by this; [`XdpSocket::resume`] follows.
    ///
    /// # Errors
    /// The state is not of such a socket, or of a version with other rings; or the kernel fails.
    pub fn map_other(files: [OwnedFd; 2], state: &XdpState) -> io::Result<XdpSocket> {
        let is_ours = state.frames == FRAMES
            && PIECES.contains(&(state.piece as usize))
            && [1, FRAME_PIECES_MAX].contains(&(state.pieces_max as usize));
        let bytes = 2 * FRAMES as usize * state.piece as usize;
        let file = File::from(files[1].try_clone()?);
        if !is_ours || file.metadata()?.len() != bytes as u64 {
            return Err(other_rings());
        }
        let memory = Mapping::new(file.as_fd(), 0, bytes, true)?;
        XdpSocket::map(files, memory, (u64::from(state.piece), state.pieces_max as usize), Vec::new())
    }

    /// Takes over the socket that was mapped, with the frames that wait in it, from a process that no longer uses it.
    ///
    /// # Errors
    /// The state is not of this socket.
    pub fn resume(&mut self, state: &XdpState) -> io::Result<()> {
        let bytes = self.memory.bytes as u64;
        let is_piece = |place: &u64| place.is_multiple_of(self.piece) && *place < bytes;
        let is_its = u64::from(state.piece) == self.piece
            && state.joined.len() <= XDP_FRAME_BYTES_MAX
            && state.free.len() <= 2 * FRAMES as usize
            && state.free.iter().all(is_piece);
        if !is_its {
            return Err(other_rings());
        }
        self.receive.resume(self.receive.consumer);
        self.complete.resume(self.complete.consumer);
        self.send.resume(self.send.producer);
        self.fill.resume(self.fill.producer);
        self.free.clone_from(&state.free);
        self.joined.clone_from(&state.joined);
        Ok(())
    }

    /// Longer frames do not arrive.
    pub fn frame_bytes_max(&self) -> usize {
        self.pieces_max * (self.piece as usize - HEADROOM)
    }

    /// Passes received frames to `take`, in at most `most` pieces; returns the number of pieces.
    pub fn receive(&mut self, most: u32, mut take: impl FnMut(&[u8])) -> u32 {
        let mut n = 0;
        for piece in self.receive.filled(most) {
            let (start, len) = (piece.addr as usize, piece.len as usize);
            if start.saturating_add(len) <= self.memory.bytes {
                // SAFETY: the kernel has put the bytes there, inside of the memory, and leaves them to us until the piece is returned.
                let bytes = unsafe { std::slice::from_raw_parts(self.memory.start.as_ptr().add(start), len) };
                if piece.options & libc::XDP_PKT_CONTD == 0 && self.joined.is_empty() {
                    take(bytes);
                } else {
                    self.joined.extend_from_slice(bytes);
                    if piece.options & libc::XDP_PKT_CONTD == 0 {
                        take(&self.joined);
                        self.joined.clear();
                    }
                }
            }
            let _there_is_room = self.fill.put(piece.addr & !(self.piece - 1));
            n += 1;
        }
        self.receive.release(n);
        self.fill.publish();
        if n > 0 && self.fill.wants_wakeup() {
            // SAFETY: it takes no memory.
            unsafe {
                libc::recvfrom(
                    self.fd.as_raw_fd(),
                    ptr::null_mut(),
                    0,
                    libc::MSG_DONTWAIT,
                    ptr::null_mut(),
                    ptr::null_mut(),
                );
            }
        }
        n
    }

    /// Queues a copy of a frame in two parts, with the work of `header` done. It leaves with the next
    /// [`XdpSocket::flush`]. False: it is too long, or the queue is full.
    pub fn send(&mut self, header: &VnetHeader, parts: [&[u8]; 2]) -> bool {
        let len = parts[0].len() + parts[1].len();
        let pieces = len.div_ceil(self.piece as usize);
        if pieces > self.pieces_max {
            return false;
        }
        if self.free.len() < pieces {
            self.reap();
        }
        if pieces > 1 { self.send_in_pieces(header, parts, pieces) } else { self.send_whole(header, parts) }
    }

    fn send_whole(&mut self, header: &VnetHeader, [first, second]: [&[u8]; 2]) -> bool {
        let Some(piece) = self.free.pop() else { return false };
        let len = first.len() + second.len();
        let frame = self.piece_of_ours(piece, len);
        frame[..first.len()].copy_from_slice(first);
        frame[first.len()..].copy_from_slice(second);
        complete(header, frame);
        // the ring has room for each piece
        self.send.put(libc::xdp_desc { addr: piece, len: len as u32, options: 0 })
    }

    /// A checksum covers all pieces, so it is computed before the frame is cut.
    fn send_in_pieces(&mut self, header: &VnetHeader, parts: [&[u8]; 2], pieces: usize) -> bool {
        if self.free.len() < pieces {
            return false;
        }
        let mut frame = parts.concat();
        complete(header, &mut frame);
        let mut chunks = frame.chunks(self.piece as usize).peekable();
        while let Some(chunk) = chunks.next() {
            let piece = self.free.pop().expect("there are enough");
            self.piece_of_ours(piece, chunk.len()).copy_from_slice(chunk);
            let options = if chunks.peek().is_some() { libc::XDP_PKT_CONTD } else { 0 };
            self.send.put(libc::xdp_desc { addr: piece, len: chunk.len() as u32, options });
        }
        true
    }

    /// The first `len` bytes of a piece that was taken from those which are free.
    fn piece_of_ours(&mut self, piece: u64, len: usize) -> &mut [u8] {
        debug_assert!(len as u64 <= self.piece);
        // SAFETY: the piece is inside of the memory, at least that long, and ours until it is put into the ring.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start.as_ptr().add(piece as usize), len) }
    }

    /// Has the kernel send waiting frames, and returns how many the driver had no room for. The rest is sent the next
    /// time.
    pub fn flush(&mut self) -> u64 {
        let mut lost = 0;
        self.send.publish();
        for _ in 0..KICKS {
            if !self.send.waits_for_kernel() {
                break;
            }
            // SAFETY: it takes no memory.
            let sent = unsafe { libc::sendto(self.fd.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
            match io::Error::last_os_error().kind() {
                _ if sent >= 0 => {}
                // more frames wait
                io::ErrorKind::WouldBlock => {}
                io::ErrorKind::ResourceBusy => lost += 1,
                // other errors may be temporary
                _ => break,
            }
        }
        self.reap();
        lost
    }

    /// Whether frames wait that the kernel has not taken yet.
    pub fn is_waiting(&self) -> bool {
        self.send.waits_for_kernel()
    }

    /// Frames for this socket that were dropped for lack of room.
    pub fn missed(&self) -> u64 {
        // SAFETY: it is numbers alone.
        let mut statistics: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        let mut len = size_of::<libc::xdp_statistics>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes.
        let done = unsafe {
            let to = (&raw mut statistics).cast();
            libc::getsockopt(self.fd.as_raw_fd(), libc::SOL_XDP, libc::XDP_STATISTICS, to, &raw mut len)
        };
        if done < 0 { 0 } else { statistics.rx_dropped + statistics.rx_ring_full }
    }

    /// Frees pieces whose frames have left.
    fn reap(&mut self) {
        let mut n = 0;
        for place in self.complete.filled(FRAMES) {
            self.free.push(place & !(self.piece - 1));
            n += 1;
        }
        self.complete.release(n);
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Memory that another process can map too.
fn memory_file(bytes: usize) -> io::Result<OwnedFd> {
    let fd = memfd_create(c"opentcp frames", MFdFlags::MFD_CLOEXEC)?;
    File::from(fd.try_clone()?).set_len(bytes as u64)?;
    Ok(fd)
}

fn other_rings() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "its rings are of another version")
}

fn set<T>(fd: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as `value` has.
    let done = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            option,
            ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Offsets in the rings.
fn offsets(fd: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: it is numbers alone.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::xdp_mmap_offsets>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes.
    let done = unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, (&raw mut offsets).cast(), &raw mut len)
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    if len as usize != size_of::<libc::xdp_mmap_offsets>() {
        // before Linux 5.4 there are no flags
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(offsets)
}
