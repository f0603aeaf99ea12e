//! What a process that runs a stranger's hooks may ask of the kernel: memory, and its own end. No files, no network, no other processes, no
//! new privileges: a filter of system calls (seccomp, Linux 3.5), whose breach is SIGSYS. Kernels without it leave the limits of `check.rs`.

use libc::sock_filter;

/// The machine's number in what a filter sees (AUDIT_ARCH_*).
#[cfg(target_arch = "x86_64")]
const MACHINE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const MACHINE: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: u32 = 0;

/// For the own allocations of the model, and the end.
const ALLOWED: [libc::c_long; 9] = [
    libc::SYS_brk,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_rt_sigreturn,
];

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IS_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const fn step(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

/// Confines this process, for good.
pub(crate) fn to_computing() {
    if MACHINE == 0 {
        return;
    }
    let mut filter = [step(RETURN, libc::SECCOMP_RET_ALLOW); ALLOWED.len() + 6];
    filter[0] = step(LOAD, ARCHITECTURE);
    filter[1] = sock_filter { jt: 1, ..step(IS_EQUAL, MACHINE) };
    filter[2] = step(RETURN, libc::SECCOMP_RET_KILL_PROCESS);
    filter[3] = step(LOAD, NUMBER);
    for (i, number) in ALLOWED.into_iter().enumerate() {
        // to the last step, which allows
        filter[4 + i] = sock_filter { jt: (ALLOWED.len() - i) as u8, ..step(IS_EQUAL, number as u32) };
    }
    filter[4 + ALLOWED.len()] = step(RETURN, libc::SECCOMP_RET_KILL_PROCESS);
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: plain system calls on values of our own, which the kernel copies.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 {
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program);
        }
    }
}
