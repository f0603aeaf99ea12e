//! The processes of a cgroup, by files that look like those of a kernel.

use super::*;

#[test]
fn processes_of_nested_cgroups_are_found_too() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("web/shop");
    fs::create_dir_all(&inner).unwrap();
    fs::write(folder.path().join("cgroup.procs"), "1\n22\n").unwrap();
    fs::write(inner.join("cgroup.procs"), "333\n").unwrap();
    fs::write(inner.join("memory.max"), "4444\n").unwrap();
    let mut found = Vec::new();
    collect(folder.path(), &mut |process| found.push(process.to_string()));
    assert_eq!(found, ["1", "22", "333"]);
    let mut none = 0;
    collect(&folder.path().join("gone"), &mut |_| none += 1);
    assert_eq!(none, 0);
}

#[test]
fn work_is_done_once_in_the_namespace_that_a_process_is_in_already() {
    let folder = tempfile::tempdir().unwrap();
    // this process, and one that has ended: the largest number that Linux gives is 4,194,304
    fs::write(folder.path().join("cgroup.procs"), format!("{}\n4194305\n", std::process::id())).unwrap();
    let mut times = 0;
    in_each(folder.path(), || times += 1);
    assert_eq!(times, 1 + named_with_connections());
}

/// This machine's own.
fn named_with_connections() -> usize {
    let mut times = 0;
    in_each(Path::new("/nonexistent"), || times += 1);
    times - 1
}

#[test]
fn sockets_in_use_are_those_of_both_families() {
    let text = "sockets: used 300\nTCP: inuse 7 orphan 0 tw 3 alloc 9 mem 1\nUDP: inuse 4 mem 0\nTCP6: inuse 2\nUDP6: inuse 5\n";
    assert_eq!((in_use(text), in_use("TCP: inuse 0 orphan 0\nTCP6: inuse 0\n"), in_use("")), (9, 0, 0));
}
