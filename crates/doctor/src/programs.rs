//! The kernel's version, its types, and programs of congestion control.

use crate::{Check, Need};
use kernel::{Kernel, Missing, Rights};
use std::fs;

const NEEDS: [Need; 4] = [Need::Load, Need::Emulate, Need::Agent, Need::Enforce];
/// The built-in algorithm for the verifier: the smallest.
const TRIED: &str = "newreno";

/// The kernel, BTF, and struct_ops.
pub fn all() -> [Check; 3] {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string();
    let looked = Kernel::look();
    [version(&release), btf(&looked), struct_ops(&looked)]
}

fn version(release: &str) -> Check {
    let check = Check::new("kernel", &NEEDS);
    let found = format!("Linux {release}");
    match numbers(release) {
        Some(version) if version < (6, 4) => check.missing(found, "algorithms in the kernel need Linux 6.4 or newer"),
        Some(version) if version < (6, 10) => check.limited(found, "bbr needs Linux 6.10 or newer; the others work"),
        Some(_) => check.ok(found),
        None => check.limited(found, "its version cannot be read; the checks below say what it can do"),
    }
}

/// `6.18.44-generic` is (6, 18).
fn numbers(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn btf(looked: &Result<Kernel, Missing>) -> Check {
    let check = Check::new("BTF", &NEEDS);
    match looked {
        Err(missing @ Missing::Btf) => check.missing("none", missing.to_string()),
        _ => check.ok("the kernel describes its types"),
    }
}

fn struct_ops(looked: &Result<Kernel, Missing>) -> Check {
    let check = Check::new("struct_ops", &[Need::Load, Need::Emulate, Need::Agent]);
    let kernel = match looked {
        Ok(kernel) => kernel,
        Err(Missing::Btf) => return check.untried("unknown without BTF"),
        Err(missing) => return check.missing("not offered", missing.to_string()),
    };
    if !Rights::effective().may_load_programs() {
        return check.untried("offered; not tried, because rights are missing");
    }
    let object = kernel::object(TRIED).expect("a built-in algorithm");
    match kernel.verify(object, TRIED) {
        Ok(_) => check.ok(format!("the verifier takes {TRIED}")),
        Err(error) => {
            let reason = error.to_string();
            let last =
                reason.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("refused").trim().to_string();
            check.missing(
                last,
                "BPF is blocked here (a container's seccomp, kernel.lockdown): run the command outside of it",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    #[test]
    fn a_kernels_version_decides_what_can_be_loaded() {
        assert_eq!(numbers("6.18.44-fc"), Some((6, 18)));
        assert_eq!(numbers("none"), None);
        let states = ["6.1.0-23-amd64", "6.4.0", "6.9.12", "6.10.1", "7.0"].map(|release| version(release).state);
        assert_eq!(states, [State::Missing, State::Limited, State::Limited, State::Ok, State::Ok]);
    }
}
