//! A server on loopback, and clients that behave or do not.

use metrics::{Kind, Metric, Page, Server, Unit};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

static SEEN: Metric = Metric { name: "test_seen", kind: Kind::Counter, unit: Unit::Count, labels: &[], help: "Seen." };
/// Longer than the server's patience.
const PATIENCE: Duration = Duration::from_secs(20);

fn server() -> Server {
    Server::bind(([127, 0, 0, 1], 0).into()).expect("loopback has a free port")
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket has timeouts");
    stream
}

/// What is answered to these bytes.
fn asked(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = connect(address);
    // a server that has answered may not take the rest
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).expect("text")
}

fn metrics_of(address: SocketAddr) -> String {
    asked(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
}

#[test]
fn what_was_published_last_is_served() {
    let server = server();
    let empty = metrics_of(server.address());
    assert!(empty.starts_with("HTTP/1.1 200 OK\r\n") && empty.ends_with("# EOF\n"), "{empty}");
    for value in [3, 4] {
        let mut page = Page::default();
        page.count(&SEEN, value);
        server.publish(page);
    }
    let answer = metrics_of(server.address());
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    assert!(body.contains("test_seen_total 4.0\n") && body.contains("process_resident_memory_bytes "), "{body}");
    let head = asked(server.address(), b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n") && head.contains("200 OK"), "{head}");
    assert!(asked(server.address(), b"GET /healthz HTTP/1.0\r\n\r\n").ends_with("ok\n"));
}

#[test]
fn other_requests_are_refused() {
    let server = server();
    let status = |request: &[u8]| asked(server.address(), request).lines().next().unwrap_or_default().to_string();
    assert_eq!(status(b"GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
    assert_eq!(status(b"POST /metrics HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi"), "HTTP/1.1 405 Method Not Allowed");
    assert_eq!(status(b"\x16\x03\x01\x02\x00\n\n"), "HTTP/1.1 400 Bad Request");
    let long = [b"GET /metrics HTTP/1.1\r\nX: ", &vec![b'a'; 1 << 20][..]].concat();
    let said = status(&long);
    assert!(said.is_empty() || said == "HTTP/1.1 431 Request Header Fields Too Large", "{said}");
}

#[test]
fn clients_that_say_nothing_do_not_keep_others_out() {
    let server = server();
    // more than the server has room for; none of them says anything, or only half of it
    let silent: Vec<TcpStream> = (0..40)
        .map(|n| {
            let mut stream = connect(server.address());
            if n % 2 == 0 {
                stream.write_all(b"GET /metr").expect("it is open");
            }
            stream
        })
        .collect();
    for _ in 0..20 {
        assert!(metrics_of(server.address()).ends_with("# EOF\n"));
    }
    // in the end all of them are closed
    for mut stream in silent {
        let mut rest = Vec::new();
        let closed = stream.read_to_end(&mut rest);
        assert!(rest.is_empty() && closed.is_ok_and(|n| n == 0) || rest.is_empty(), "{rest:?}");
    }
    // half a connection is answered as well
    let mut half = connect(server.address());
    half.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").expect("it is open");
    half.shutdown(Shutdown::Write).expect("it is open");
    let mut answer = String::new();
    half.read_to_string(&mut answer).expect("an answer");
    assert!(answer.ends_with("ok\n"), "{answer}");
}

#[test]
fn a_server_survives_random_bytes() {
    let server = server();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let address = server.address();
    for _ in 0..300 {
        let bytes: Vec<u8> = (0..random() % 6000).map(|_| random() as u8).collect();
        let mut stream = connect(address);
        let _ = stream.write_all(&bytes);
        if random() % 2 == 0 {
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
    assert!(metrics_of(address).ends_with("# EOF\n"));
    let published = thread::scope(|scope| {
        let publishes = scope.spawn(|| (0..10_000).for_each(|_| server.publish(Page::default())));
        let answers: Vec<String> = (0..50).map(|_| metrics_of(address)).collect();
        publishes.join().expect("it publishes");
        answers
    });
    assert!(published.iter().all(|answer| answer.ends_with("# EOF\n")));
    drop(server);
    assert!(TcpStream::connect_timeout(&address, PATIENCE).is_err(), "it is gone");
}
