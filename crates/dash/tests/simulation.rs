//! A simulation over real sockets: it begins when somebody looks, obeys its buttons, and ends with the bytes of a run that nobody watched.

use dash::Watched;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use testkit::eventually;

fn run() -> scenario::Run {
    let text = include_str!("../../../scenarios/dumbbell.toml").replace("30 s", "8 s");
    scope::check("dumbbell.toml", &text).expect("an example is good").remove(0)
}

/// Sends a request; its answer.
fn send(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(address: SocketAddr, path: &str) -> String {
    send(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"))
}

fn ask(address: SocketAddr, what: &str, more: &str) -> String {
    let head = format!("POST /api/run HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}");
    send(address, &format!("{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{what}", what.len()))
}

/// The stream, message by message.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(address: SocketAddr) -> Stream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
        Stream(BufReader::new(stream))
    }

    fn next(&mut self) -> (String, Value) {
        let mut event = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            if let Some(what) = line.strip_prefix("event: ") {
                event = what.trim().to_string();
            } else if let Some(json) = line.strip_prefix("data: ") {
                return (event, serde_json::from_str(json).unwrap());
            }
        }
    }

    /// Messages up to one of this kind, which is returned.
    fn until(&mut self, kind: &str) -> Value {
        loop {
            let (event, content) = self.next();
            if event == kind {
                return content;
            }
        }
    }
}

#[test]
fn browsers_watch_a_run_and_set_its_pace() {
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&stop);
    let work = move || {
        let watched = Watched { listen, names: Vec::new(), run: run() };
        dash::watch(watched, &|| ended.load(Ordering::Relaxed), &mut |_| {}).unwrap();
    };
    let thread = thread::spawn(work);
    assert!(eventually(|| TcpStream::connect(listen).is_ok()));

    assert!(get(listen, "/").contains("/js/simulation.js"));
    assert!(get(listen, "/view/view.js").starts_with("HTTP/1.1 200"));
    let foreign = ask(listen, "\"pause\"", "Origin: http://elsewhere.example\r\n");
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    assert!(ask(listen, r#"{"pace":0}"#, "").starts_with("HTTP/1.1 400"));

    let mut stream = Stream::open(listen);
    let (first, stage) = stream.next();
    assert_eq!((first.as_str(), stage["size"].as_str()), ("stage", Some("4 hosts, 2 switches, 5 cables")));
    assert_eq!(stream.until("frames").as_array().unwrap().len(), 0, "nobody had looked before");
    let frames = stream.until("frames");
    assert!(frames[0]["t"].as_u64() > Some(0), "{frames}");
    assert!(ask(listen, "\"pause\"", "").starts_with("HTTP/1.1 204"));
    while stream.until("standing")["plays"] != false {}
    for command in ["\"max\"", "\"play\""] {
        assert!(ask(listen, command, "").starts_with("HTTP/1.1 204"));
    }
    let outcome = stream.until("outcome");
    let run = run();
    let measured = sim::simulate(&run.scenario, &mut ()).unwrap();
    let results = plan::titled(measured, &run.name, &plan::parameters(&run), &run.scenario);
    assert_eq!(outcome["summary"].as_str(), Some(results::RunSummary::of(&results).to_json().as_str()));

    // who comes later sees all of it
    let mut late = Stream::open(listen);
    late.until("stage");
    assert!(late.until("frames").as_array().unwrap().len() > 1000);
    assert_eq!(late.until("outcome")["summary"], outcome["summary"]);
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}
