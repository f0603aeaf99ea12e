//! The system calls for which the libraries have no safe form.

#![allow(unsafe_code, reason = "foreign functions; each call states why it is sound")]

use libbpf_rs::libbpf_sys::{
    BPF_CGROUP_SOCK_OPS, BPF_F_ALLOW_MULTI, BPF_STATS_RUN_TIME, bpf_enable_stats, bpf_link_update, bpf_prog_query,
};
use nix::libc::{SOL_SOCKET, c_int, getsockopt, socklen_t};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Replaces the table of operations that `link` registered by `map`, under the same name. Sockets that
/// use the old one keep it.
///
/// # Errors
/// The kernel's error: the names differ (EINVAL), the link was detached, the kernel is older than 6.4.
pub(crate) fn update_link(link: BorrowedFd<'_>, map: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both descriptors are open for the length of the call, and a null pointer means no options.
    let code = unsafe { bpf_link_update(link.as_raw_fd(), map.as_raw_fd(), std::ptr::null()) };
    // libbpf returns 0 or the negative error number.
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) }
}

/// Makes the kernel count calls and time of every BPF program until the result is dropped (about 20 ns a call).
///
/// # Errors
/// The kernel's error: not root, or older than 5.8.
pub(crate) fn count_run_times() -> io::Result<OwnedFd> {
    // SAFETY: the call takes a number and makes a descriptor.
    let fd = unsafe { bpf_enable_stats(BPF_STATS_RUN_TIME) };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel has just made this descriptor for us; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Most programs of a cgroup (BPF_CGROUP_MAX_PROGS).
const PROGRAMS_MAX: usize = 64;

/// The numbers of the `sock_ops` programs that are attached to a cgroup itself, in the order in which they are called; and whether it admits
/// others beside them.
///
/// # Errors
/// The kernel's error.
pub(crate) fn sock_ops(cgroup: BorrowedFd<'_>) -> io::Result<(Vec<u32>, bool)> {
    let (mut ids, mut count, mut flags) = ([0_u32; PROGRAMS_MAX], PROGRAMS_MAX as u32, 0_u32);
    // SAFETY: the descriptor is open for the length of the call, which writes at most `count` numbers to `ids`.
    let code = unsafe {
        let (flags, count) = (&raw mut flags, &raw mut count);
        bpf_prog_query(cgroup.as_raw_fd(), BPF_CGROUP_SOCK_OPS, 0, flags, ids.as_mut_ptr(), count)
    };
    if code < 0 {
        return Err(io::Error::from_raw_os_error(-code));
    }
    Ok((ids[..PROGRAMS_MAX.min(count as usize)].to_vec(), count == 0 || flags & BPF_F_ALLOW_MULTI != 0))
}

/// Of asm-generic/socket.h; the libc crate does not have it yet.
const SO_NETNS_COOKIE: c_int = 71;

/// The cookie of a socket's network namespace.
///
/// # Errors
/// The kernel's error: it is older than 5.14.
pub(crate) fn netns_cookie(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let (mut cookie, mut length) = (0_u64, size_of::<u64>() as socklen_t);
    let (value, fd) = ((&raw mut cookie).cast(), socket.as_raw_fd());
    // SAFETY: the descriptor is open for the length of the call, which writes at most `length` bytes to `cookie`.
    let code = unsafe { getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, value, &raw mut length) };
    if code == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}
