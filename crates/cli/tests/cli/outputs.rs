//! A scenario with every output, and outputs compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Two flows on a small network for one simulated second: quick, with drops, and all tables.
pub const SMALL: &str = r#"
duration = "1 s"
[network]
topology = { dumbbell = { pairs = 2 } }
rate = "20 Mbit/s"
delay = "1 ms"
queue = { drop_tail = { packets = 20 } }
[tcp]
cc = "newreno"
[[traffic]]
random_pairs = { flows = 4, on_off = { rate = "20 Mbit/s", on = "100 ms", off = "50 ms" } }
[measure]
links = "50 ms"
cwnd = "50 ms"
packet_delay = true
"#;

/// Every file below a folder with its bytes, except `run.json`, which describes this machine.
pub fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().is_none_or(|name| name != "run.json") {
                files.insert(path.strip_prefix(folder).unwrap().to_path_buf(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// Names of the files that differ or exist on one side only.
pub fn differences(a: &Path, b: &Path) -> Vec<String> {
    let (a, b) = (files(a), files(b));
    let names: std::collections::BTreeSet<&PathBuf> = a.keys().chain(b.keys()).collect();
    names.into_iter().filter(|name| a.get(*name) != b.get(*name)).map(|name| name.display().to_string()).collect()
}
