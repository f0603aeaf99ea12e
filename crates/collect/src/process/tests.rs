//! A whole collector, on a configuration's text, with a switch of this test.

use super::*;
use crate::openflow::tests::faulty::{answer, rightly};
use std::net::{SocketAddr, TcpListener};
use std::thread;

/// An address of this machine where nobody listens.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// What a collector that is started with `--once` prints, and how it ends.
fn once(text: &str) -> (Seen, Result<(), CollectError>) {
    let config = Config::parse("c.toml", text).unwrap_or_else(|error| panic!("{error:?}"));
    let mut seen = Seen::default();
    let mut keep = |what: &Seen| {
        seen = what.clone();
        Ok(())
    };
    let ended = run(config, &Target::Once, None, &|| false, &mut keep, &mut |_| ());
    (seen, ended)
}

/// A switch that connects to its controller as soon as one listens, and answers until it hangs up.
fn connecting_switch(controller: SocketAddr) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let connected = async {
                loop {
                    match tokio::net::TcpStream::connect(controller).await {
                        Ok(stream) => return stream,
                        Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                    }
                }
            };
            let stream = tokio::time::timeout(testkit::PATIENCE, connected).await.expect("the collector listens");
            let _ = answer(stream, rightly).await;
        });
    })
}

#[test]
fn a_switch_that_connects_is_read_from_any_address_unless_peers_are_named() {
    for peers in ["", "peers = [\"::ffff:127.0.0.1\"]\n"] {
        let at = free();
        let switch = connecting_switch(at);
        let (seen, ended) = once(&format!(
            "interval = \"1 s\"\n[[switch]]\nname = \"sw\"\nprotocol = \"openflow\"\nlisten = \"{at}\"\n{peers}"
        ));
        let links: Vec<&str> = seen.view.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(links, ["sw c1 out", "sw c1 in", "sw p1 out", "sw p1 in"], "{:?}", seen.sources);
        assert_eq!(seen.sources[0].problems, [""; 0]);
        ended.unwrap();
        switch.join().unwrap();
    }
}

#[test]
fn a_measurement_that_lacks_a_switch_fails_and_names_it() {
    let at = free();
    let switch = connecting_switch(at);
    let (seen, ended) = once(&format!(
        "interval = \"1 s\"\n[[switch]]\nname = \"here\"\nprotocol = \"openflow\"\nlisten = \"{at}\"\n\
         [[switch]]\nname = \"gone\"\nprotocol = \"gnmi\"\naddress = \"{}\"\n",
        free()
    ));
    assert_eq!(seen.view.links.len(), 4, "what is known is printed");
    let text = ended.unwrap_err().to_string();
    assert!(text.starts_with("not measured: gone: not reachable: ") && !text.contains("here"), "{text}");
    switch.join().unwrap();
}

#[test]
fn a_switch_without_a_link_is_not_measured() {
    let at = free();
    let switch = connecting_switch(at);
    let ignored = "[switch.ports]\np1 = { ignore = true }\nc1 = { ignore = true }\n";
    let (_, ended) = once(&format!(
        "interval = \"1 s\"\n[[switch]]\nname = \"sw\"\nprotocol = \"openflow\"\nlisten = \"{at}\"\n{ignored}"
    ));
    assert_eq!(ended.unwrap_err().to_string(), "not measured: sw: it shows no interface that is a link");
    switch.join().unwrap();
}
