//! `opentcp dash` of a real Oracle with three real agents, in a real browser: how it looks, by keys, for a screen reader, and what it
//! changes. Only root can run this; without a browser or npm it says that it was skipped. Pictures stay in the target's folder for a person
//! to look at.

mod browser;
mod world;

use browser::Browser;
use serde_json::json;
use std::process::Command;
use testkit::eventually;
use world::{TOKEN, World};

#[test]
fn operators_see_a_fleet_act_on_it_and_hear_when_its_oracle_is_gone() {
    let Some(browser) = Browser::find() else { return };
    let Some(mut world) = World::new() else { return };
    let (reading, acting) = (world.dash(false), world.dash(true));
    // hosts have reported, rules are in force on them, and the series have a few points
    assert!(
        world.until(|status| status["hosts"] == 3 && status["rules"][0]["on"].as_u64() > Some(0)),
        "{}",
        world.said()
    );
    assert!(world.until(|status| status["epoch"].as_u64() > Some(8)), "{}", world.said());

    let status = world.opentcp(&["status", "--socket", "sock", "--json"]);
    assert!(
        status.contains("hosts have a hop that does not mark") || status.contains("hosts lack its algorithm"),
        "{status}"
    );
    let looked = browser.does("look", &reading, &json!({}));
    println!("axe: {}", looked["axe"]);
    let keys = browser.does("keys", &reading, &json!({}));
    assert!(keys["state"].as_str().unwrap().contains("enforcing"), "{keys}");
    assert_eq!(keys["rows"], 4, "three hosts and the head");

    let refused = browser.does("act", &reading, &json!({}));
    assert!(refused["why"].as_str().unwrap().contains("read-only"), "{refused}");
    let acted = browser.does("act", &acting, &json!({ "token": TOKEN }));
    assert!(acted["said"].as_str().unwrap().starts_with("Paused until "), "{acted}");
    assert!(acted["compared"].as_str().unwrap().contains("no policy was in force before this one"), "{acted}");
    let history = world.opentcp(&["history", "--state", "oracle", "--kind", "pause", "--kind", "resume"]);
    assert!(history.contains("by dash from 127.0.0.1"), "{history}");

    let lines = browser.follows("gone", &reading, |line| match line["at"].as_str() {
        Some("open") => world.kill_oracle(),
        Some("gone") => world.start_oracle(),
        _ => {}
    });
    let words = lines.last().unwrap()["words"].as_str().unwrap().to_string();
    assert!(words.contains("The Oracle does not answer since") && words.contains("what is shown is old"), "{words}");
}

#[test]
fn a_token_that_others_can_read_or_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = |text: &str, mode: u32| {
        use std::os::unix::fs::PermissionsExt as _;
        let file = folder.path().join("token");
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_opentcp"));
        let output = command.args(["dash", "--socket", "none", "--token"]).arg(&file).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, error) = run("short\n", 0o600);
    assert!(code == Some(2) && error.contains("a token has 16 to 256") && error.contains("openssl rand"), "{error}");
    let (code, error) = run(&format!("{TOKEN}\n"), 0o644);
    assert!(code == Some(2) && error.contains("other users can read"), "{error}");
}

#[test]
fn an_address_that_another_program_has_is_refused() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_opentcp"));
    let output = command.args(["dash", "--socket", "none", "--listen", &address]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && error.contains(&address) && error.contains("no other program has"),
        "{error}"
    );
    // it is served although there is no Oracle yet
    drop(taken);
    let mut dash = Command::new(env!("CARGO_BIN_EXE_opentcp"))
        .args(["dash", "--socket", "none", "--listen", &address])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let is_served = eventually(|| std::net::TcpStream::connect(&address).is_ok());
    let _ = dash.kill();
    let _ = dash.wait();
    assert!(is_served);
}
