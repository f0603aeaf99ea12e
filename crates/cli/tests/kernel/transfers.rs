//! Every algorithm transfers real data over an emulated wide-area link, in the running kernel. Only root can run this.

use crate::loading::{Exclusive, available};
use congestion::Algorithm;
use std::process::Command;

/// 1 Gbit/s and 5 ms from end to end.
const NETWORK: &str = r#"duration = "60 s"
[network]
topology = { star = { hosts = 2 } }
rate = "1 Gbit/s"
delay = "2.5 ms"
[tcp]
cc = "kernel:reno"
[[traffic]]
bulk = { from = "h1", to = "h2" }
"#;
const BYTES: &str = "20000000";

#[test]
fn every_algorithm_carries_twenty_megabytes_and_is_observed_doing_so() {
    let Some(kernel) = Exclusive::new() else { return };
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: no python3 here");
        return;
    }
    kernel.place.write("network.toml", NETWORK);
    kernel.place.write("serve.py", include_str!("transfers/serve.py"));
    kernel.place.write("send.py", include_str!("transfers/send.py"));
    kernel.succeed(&["cc", "load", "all"]);
    let names: Vec<String> = Algorithm::builtins().iter().map(|algorithm| format!("ot_{}", algorithm.name())).collect();
    let command =
        format!("h2 python3 serve.py {} & h1 python3 send.py $h2 {BYTES} {}; wait", names.len(), names.join(" "));
    let said = kernel.succeed(&["emu", "shell", "network.toml", "-c", &command]);
    println!("{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), names.len(), "{said}");
    for (line, name) in lines.iter().zip(&names) {
        assert!(line.starts_with(&format!("{name} seen whole ")), "{line}");
    }
    kernel.succeed(&["cc", "unload", "all"]);
    assert!(!available().contains("ot_"), "{}", available());
}
