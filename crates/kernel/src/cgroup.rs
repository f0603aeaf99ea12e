//! Where cgroups are.

use std::fs;
use std::path::PathBuf;

/// Where cgroups of version 2 are mounted. Of several mounts at one place the last hides the others.
pub fn cgroup_mounts() -> Vec<PathBuf> {
    of_version_2(&fs::read_to_string("/proc/mounts").unwrap_or_default())
}

fn of_version_2(mounts: &str) -> Vec<PathBuf> {
    let place = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let place = words.next()?;
        (words.next()? == "cgroup2").then(|| place.into())
    };
    mounts.lines().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn mounts_of_version_2_are_found_whatever_their_device_is_called() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      none /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(of_version_2(mounts), [Path::new("/sys/fs/cgroup/unified")]);
    }
}
