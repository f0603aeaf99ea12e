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
    assert_eq!(times, 1);
}
