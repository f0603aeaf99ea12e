//! The rights of this process: its effective capabilities.

use std::fs;

/// A right of capabilities(7), by its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Capability {
    /// Interfaces, routes, network sysctls.
    NetAdmin = 12,
    /// Raw and AF_XDP sockets.
    NetRaw = 13,
    /// Locked memory.
    IpcLock = 14,
    /// Mounts and namespaces; before Linux 5.8 also BPF.
    SysAdmin = 21,
    /// Reading the kernel's memory from BPF.
    Perfmon = 38,
    /// BPF.
    Bpf = 39,
}

impl Capability {
    /// As capabilities(7) writes it: `CAP_BPF`.
    pub fn name(self) -> &'static str {
        match self {
            Capability::NetAdmin => "CAP_NET_ADMIN",
            Capability::NetRaw => "CAP_NET_RAW",
            Capability::IpcLock => "CAP_IPC_LOCK",
            Capability::SysAdmin => "CAP_SYS_ADMIN",
            Capability::Perfmon => "CAP_PERFMON",
            Capability::Bpf => "CAP_BPF",
        }
    }
}

/// A set of capabilities, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights(u64);

impl Rights {
    /// The capabilities of this process; none if unknown.
    pub fn effective() -> Rights {
        Rights::read(&fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    fn read(status: &str) -> Rights {
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        Rights(effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0))
    }

    /// Whether it contains `right`. CAP_SYS_ADMIN includes those that were split off from it.
    pub fn has(self, capability: Capability) -> bool {
        let bit = |capability: Capability| self.0 & (1 << capability as u32) != 0;
        let split_off = matches!(capability, Capability::Bpf | Capability::Perfmon);
        bit(capability) || (split_off && bit(Capability::SysAdmin))
    }

    /// The members of `needed` that it lacks.
    pub fn lacking(self, needed: &[Capability]) -> Vec<Capability> {
        needed.iter().copied().filter(|capability| !self.has(*capability)).collect()
    }

    /// Whether it may load programs of congestion control.
    pub fn may_load_programs(self) -> bool {
        self.lacking(&[Capability::NetAdmin, Capability::Bpf, Capability::Perfmon]).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_capability_stands_for_those_of_bpf() {
        // bits 12 and 21
        let rights = Rights::read("Name:\topentcp\nCapEff:\t0000000000201000\n");
        assert!(rights.may_load_programs());
        assert_eq!(rights.lacking(&[Capability::NetRaw, Capability::Bpf]), [Capability::NetRaw]);
        // 12 and 39: without CAP_PERFMON the verifier refuses pointers
        let rights = Rights::read("CapEff:\t0000008000001000\n");
        assert!(!rights.may_load_programs());
        assert!(!Rights::read("").has(Capability::NetAdmin));
    }
}
