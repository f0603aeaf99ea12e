//! A TAP: a network interface whose other end is this process.

use crate::vnet::{Frame, VnetHeader};
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

/// The buffer size for [`Tap::read`]: a header, an Ethernet header with two tags, and the longest IP packet.
pub const READ_BYTES_MAX: usize = VnetHeader::LEN + 14 + 8 + 65_535;

/// Pieces of one frame: a packet of 64 KB at an Ethernet MTU has 45.
const PARTS_MAX: usize = 128;

// linux/if_tun.h
const IFF_TAP: libc::c_short = 0x0002;
const IFF_NO_PI: libc::c_short = 0x1000;
const IFF_VNET_HDR: libc::c_short = 0x4000;
const TUN_F_CSUM: libc::c_ulong = 0x01;
const TUN_F_TSO4: libc::c_ulong = 0x02;
const TUN_F_TSO6: libc::c_ulong = 0x04;
const TUN_F_TSO_ECN: libc::c_ulong = 0x08;

mod ioctl {
    use nix::libc;

    const INT: usize = size_of::<libc::c_int>();
    nix::ioctl_write_ptr_bad!(tunsetiff, nix::request_code_write!(b'T', 202, INT), libc::ifreq);
    nix::ioctl_read_bad!(tungetiff, nix::request_code_read!(b'T', 210, INT), libc::ifreq);
    nix::ioctl_write_int_bad!(tunsetoffload, nix::request_code_write!(b'T', 208, size_of::<libc::c_uint>()));
    nix::ioctl_write_ptr_bad!(tunsetvnethdrsz, nix::request_code_write!(b'T', 216, INT), libc::c_int);
}

/// The near end of a TAP interface. An interface that it has created vanishes when this is dropped, or its process ends; a persistent
/// one (`ip tuntap add`) loses its carrier then.
///
/// It is opened in the calling thread's network namespace and then works from any thread. Reading never waits: poll it
/// through its file descriptor (level-triggered), or retry. Its host's TCP leaves segmentation and checksums to us.
#[derive(Debug)]
pub struct Tap {
    file: File,
}

impl Tap {
    /// Creates the interface `name` (at most 15 bytes), still down and without an address, or attaches to an existing one.
    ///
    /// # Errors
    /// No right to (EPERM), no TAP driver (ENOENT), another program is attached (EBUSY), Linux refuses the name, or
    /// the interface is of another kind (EINVAL).
    pub fn open(name: &str) -> io::Result<Tap> {
        let request = interface_request(name)?;
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun").map_err(
                |error| io::Error::new(error.kind(), format!("/dev/net/tun: {error}; the TAP driver is needed")),
            )?;
        let fd = file.as_raw_fd();
        let offload = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
        // SAFETY: fd is open for all three calls; `request` is a whole `ifreq` and the header's length an int, which the
        // kernel only reads; the offload flags are passed by value.
        unsafe {
            ioctl::tunsetiff(fd, &raw const request)?;
            ioctl::tunsetvnethdrsz(fd, &(VnetHeader::LEN as libc::c_int))?;
            ioctl::tunsetoffload(fd, offload as libc::c_int)?;
        }
        Ok(Tap { file })
    }

    /// Takes over the near end that another process has opened by [`Tap::open`].
    pub fn resume(file: OwnedFd) -> Tap {
        Tap { file: file.into() }
    }

    /// Whether the interface still exists; a persistent one may be deleted.
    pub fn is_there(&self) -> bool {
        // SAFETY: zero is a value of each of its fields; the kernel writes a whole one.
        unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            ioctl::tungetiff(self.file.as_raw_fd(), &raw mut request).is_ok()
        }
    }

    /// The next frame from the host; `None` if there is none now. `buffer` must have [`READ_BYTES_MAX`] bytes,
    /// or long frames are cut.
    ///
    /// # Errors
    /// The error of `read(2)`, except EAGAIN. A truncated frame is `InvalidData`.
    pub fn read<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<Option<Frame<'b>>> {
        let length = match self.file.read(buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        let (header, bytes) =
            buffer[..length].split_first_chunk_mut().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(Some(Frame { header: VnetHeader::from_bytes(*header), bytes }))
    }

    /// Sends the host one frame, whose pieces are `parts`. The host's stack runs before this returns, unless the
    /// interface's packets are steered to another CPU.
    ///
    /// # Errors
    /// The error of `writev(2)`: EIO when the interface is down, EINVAL for a header that does not fit the frame. More than
    /// 127 parts are `InvalidInput`.
    pub fn write(&mut self, header: &VnetHeader, parts: &[&[u8]]) -> io::Result<()> {
        let header = header.to_bytes();
        // The short list is the common one, and avoids clearing the long one.
        match parts {
            [one] => self.file.write_vectored(&[IoSlice::new(&header), IoSlice::new(one)])?,
            [one, two] => self.file.write_vectored(&[IoSlice::new(&header), IoSlice::new(one), IoSlice::new(two)])?,
            many => {
                let mut slices = [IoSlice::new(&[]); PARTS_MAX];
                let slices = slices.get_mut(..=many.len()).ok_or(io::ErrorKind::InvalidInput)?;
                slices[0] = IoSlice::new(&header);
                for (slice, part) in slices[1..].iter_mut().zip(many) {
                    *slice = IoSlice::new(part);
                }
                self.file.write_vectored(slices)?
            }
        };
        Ok(())
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for Tap {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: `ifreq` is a plain C struct of integers, pointers and a union of such, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero: it ends the name.
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains('\0') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("'{name}' is not the name of an interface")));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
    Ok(request)
}
