//! A whole collector, on a configuration's text, with a switch of this test.

use super::*;
use crate::openflow::tests::faulty::{answer, rightly};
use std::net::{SocketAddr, TcpListener};
use std::thread;

/// An address of this machine where nobody listens.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// What a collector that is started with `--once` prints, and what it says.
fn once(text: &str) -> (Seen, Vec<String>) {
    let config = Config::parse("c.toml", text).unwrap_or_else(|error| panic!("{error:?}"));
    let (mut seen, mut said) = (Seen::default(), Vec::new());
    let mut keep = |what: &Seen| {
        seen = what.clone();
        Ok(())
    };
    run(config, &Target::Once, None, &|| false, &mut keep, &mut |line| said.push(line.to_string())).unwrap();
    (seen, said)
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
        let (seen, _) = once(&format!(
            "interval = \"1 s\"\n[[switch]]\nname = \"sw\"\nprotocol = \"openflow\"\nlisten = \"{at}\"\n{peers}"
        ));
        let links: Vec<&str> = seen.view.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(links, ["sw c1 out", "sw c1 in", "sw p1 out", "sw p1 in"], "{:?}", seen.sources);
        assert_eq!(seen.sources[0].problems, [""; 0]);
        switch.join().unwrap();
    }
}
