//! What the page takes of a browser's core: 4,000 hosts, ten updates a second. Printed if DASH_COST=SECONDS asks for it; it takes a machine
//! of which nothing else takes the cores. DASH_PACKAGES is a folder in which `npm ci` has installed `browser/package.json`.

#[path = "../examples/fleet.rs"]
#[allow(dead_code, reason = "an example has a main of its own")]
mod fleet;

use serde_json::{Value, json};
use std::net::TcpStream;
use std::process::Command;
use std::{env, thread};
use testkit::{asked, browser, eventually, or_skip};

#[test]
fn the_page_of_4000_hosts_with_ten_updates_a_second_takes_less_than_a_third_of_a_core() {
    let (Some(seconds), Ok(packages)) = (asked::<f64>("DASH_COST"), env::var("DASH_PACKAGES")) else {
        eprintln!("skipped: DASH_COST=20 DASH_PACKAGES=folder asks for it");
        return;
    };
    let Some(browser) = or_skip(browser()) else { return };
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    thread::spawn(move || fleet::serve(4000, 10.0, address, None));
    assert!(eventually(|| TcpStream::connect(address).is_ok()));
    let asked = json!({ "url": format!("http://{address}/"), "browser": browser, "seconds": seconds });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/browser/page.mjs");
    let output = Command::new("node")
        .args([script, "cost", &asked.to_string()])
        .env("NODE_PACKAGES", packages)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("{found}");
    assert_eq!(found["hosts"], 4000);
    assert!(found["updates_per_s"].as_f64() > Some(9.0), "{found}");
    assert!(found["share_of_a_core"].as_f64() < Some(0.3), "{found}");
}
