//! The dashboard over real sockets: what it serves to whom, and what browsers get of an Oracle that comes and goes.

use bus::{Address, Hub as _, Peer, Reply, Request, UnixOracle};
use dash::{Config, Token};
use oracle::{Board, HostLine, Overview};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use testkit::eventually;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// An Oracle's end of the bus, which answers as long as this lives.
struct FakeOracle {
    stop: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<Request>>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeOracle {
    /// With so many hosts. An `old` one knows no boards.
    fn start(socket: &std::path::Path, hosts: usize, is_old: bool) -> FakeOracle {
        let mut bus = UnixOracle::listen(socket).unwrap();
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (ended, seen) = (Arc::clone(&stop), Arc::clone(&asked));
        let work = move || {
            while !ended.load(Ordering::Relaxed) {
                let Ok(Some(message)) = bus.receive(Duration::from_millis(20)) else { continue };
                assert_eq!(message.from, Peer::Local);
                let Some(Ok(request)) = Request::from_bytes(&message.bytes) else { continue };
                let reply = answer(&request, hosts, is_old);
                seen.lock().unwrap().push(request);
                bus.answer(&message.reply, &reply.to_bytes()).unwrap();
            }
        };
        FakeOracle { stop, asked, thread: Some(thread::spawn(work)) }
    }

    fn requests(&self, what: &str) -> Vec<Request> {
        let asked = self.asked.lock().unwrap();
        let is = |request: &&Request| serde_json::to_value(&request.ask).unwrap()["command"] == what;
        asked.iter().filter(is).cloned().collect()
    }
}

impl Drop for FakeOracle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn line(i: usize) -> HostLine {
    HostLine { name: format!("<b>h{i}</b>"), rack: "r1".into(), treated: i.is_multiple_of(2), ..HostLine::default() }
}

fn answer(request: &Request, hosts: usize, is_old: bool) -> Reply {
    use bus::{Ask, BoardList};
    match &request.ask {
        Ask::Status { hosts: query } => {
            let limit = query.as_ref().map_or(0, |query| query.limit);
            let shown = if limit == 0 { hosts.min(128) } else { limit };
            let overview = Overview {
                policy: "p".into(),
                period_s: 0.2,
                epoch: 7,
                age_s: Some(1.0),
                hosts,
                hosts_matched: hosts,
                host_lines: (0..shown).map(line).collect(),
                ..Overview::default()
            };
            Reply::answer(&request.id, &overview)
        }
        Ask::Board { .. } if is_old => {
            Reply::refused("", "the request cannot be read: unknown variant `board`".to_string(), true)
        }
        Ask::Board { list: BoardList::Hosts, from } => {
            let part = (*from..hosts.min(from + 100)).map(line).collect();
            Reply::answer(&request.id, &Board { epoch: 7, total: hosts, hosts: part, ..Board::default() })
        }
        Ask::Board { .. } => Reply::answer(&request.id, &Board { epoch: 7, ..Board::default() }),
        Ask::Pause { .. } => Reply::answer(&request.id, &json!({ "by": request.by, "at": "now", "until": null })),
        _ => Reply::refused(&request.id, "`p` is not paused".to_string(), true),
    }
}

/// A dashboard that runs.
struct Dash {
    address: SocketAddr,
    socket: PathBuf,
    said: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Dash {
    fn start(token: Option<&str>, names: &[&str]) -> Dash {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("sock");
        let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = Config {
            listen,
            names: names.iter().map(ToString::to_string).collect(),
            oracle: Address::Unix(socket.clone()),
            token: token.map(|token| Token::new(token).unwrap()),
            operator: "alice (uid 7)".to_string(),
        };
        let (stop, said) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (ended, lines) = (Arc::clone(&stop), Arc::clone(&said));
        let work = move || {
            let stopped = || ended.load(Ordering::Relaxed);
            dash::run(config, &stopped, &mut |line| lines.lock().unwrap().push(line.to_string())).unwrap();
        };
        let thread = Some(thread::spawn(work));
        let dash = Dash { address: listen, socket, said, stop, thread, _folder: folder };
        assert!(eventually(|| TcpStream::connect(dash.address).is_ok()));
        dash
    }

    /// Sends a request as it is, and returns the head and the body of the answer.
    fn send(&self, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_lowercase(), body.to_string())
    }

    fn get(&self, path: &str, host: &str) -> (String, String) {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    }

    fn post(&self, path: &str, authorization: &str, body: &str) -> (String, String) {
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{authorization}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    fn follow(&self) -> Stream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        Stream { lines: BufReader::new(stream) }
    }
}

impl Drop for Dash {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A stream of events.
struct Stream {
    lines: BufReader<TcpStream>,
}

impl Stream {
    /// The next event: its name and data.
    fn next(&mut self) -> Option<(String, Value)> {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(event) = line.strip_prefix("event: ") {
                name = event.trim().to_string();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data).unwrap()));
            }
        }
    }

    /// Whether it has ended, and not only has nothing more.
    fn until_end(&mut self) -> bool {
        let mut rest = Vec::new();
        self.lines.read_to_end(&mut rest).is_ok()
    }

    /// Reads until an event is right, at most a hundred.
    fn until(&mut self, right: impl Fn(&Value) -> bool) -> Value {
        (0..100).find_map(|_| self.next().map(|(_, data)| data).filter(&right)).expect("the event comes")
    }
}

#[test]
fn the_page_and_its_files_keep_to_themselves() {
    let dash = Dash::start(None, &[]);
    for (path, content) in [
        ("/", "text/html"),
        ("/dash.css", "text/css"),
        ("/js/main.js", "text/javascript"),
        ("/vendor/uPlot.LICENSE", "text/plain"),
    ] {
        let (head, body) = dash.get(path, "localhost");
        assert!(
            head.starts_with("http/1.1 200") && head.contains(&format!("content-type: {content}")) && !body.is_empty(),
            "{path}: {head}"
        );
        for header in [
            "content-security-policy: default-src 'self';",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "x-frame-options: deny",
        ] {
            assert!(head.contains(header), "{path}: {header}: {head}");
        }
    }
    let (_, page) = dash.get("/", "localhost");
    let outside = ["http://", "https://", "<style", "style=", "onclick", "<script>"];
    assert!(
        !outside.iter().any(|word| page.contains(word)),
        "the page loads nothing from elsewhere, and has no script in it"
    );
    for (path, status) in [("/none", "404"), ("/../Cargo.toml", "404"), ("/api/pause", "403")] {
        assert!(dash.get(path, "localhost").0.starts_with(&format!("http/1.1 {status}")), "{path}");
    }
}

#[test]
fn who_makes_a_name_of_theirs_lead_here_gets_nothing() {
    let dash = Dash::start(None, &["dash.example"]);
    for host in ["127.0.0.1", "localhost:8090", "[::1]:8090", "dash.example"] {
        assert!(dash.get("/", host).0.starts_with("http/1.1 200"), "{host}");
    }
    for path in ["/", "/events", "/dash.css"] {
        let (head, body) = dash.get(path, "evil.example");
        assert!(head.starts_with("http/1.1 421") && body.contains("--name evil.example"), "{head}{body}");
    }
    let foreign = "GET /events HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\nConnection: close\r\n\r\n";
    assert!(dash.send(foreign).0.starts_with("http/1.1 403"));
}

#[test]
fn only_who_has_the_token_changes_something_and_the_oracle_hears_from_where() {
    let dash = Dash::start(Some(TOKEN), &[]);
    let oracle = FakeOracle::start(&dash.socket, 3, false);
    for authorization in
        ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic abc\r\n", &format!("Cookie: token={TOKEN}\r\n")]
    {
        for path in ["/api/token", "/api/pause", "/api/resume", "/api/compare", "/api/rollback"] {
            let (head, body) = dash.post(path, authorization, "{}");
            assert!(head.starts_with("http/1.1 401") && body.contains("not right"), "{path} {authorization}: {head}");
        }
    }
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    for wrong in
        ["", "{", "[]", "{\"seconds\": -1}", "{\"seconds\": 0}", "{\"seconds\": 99999999999}", "{\"other\": 1}"]
    {
        assert!(dash.post("/api/pause", &bearer, wrong).0.starts_with("http/1.1 4"), "{wrong}");
    }
    let long = format!("{{\"seconds\": {}1}}", " ".repeat(5000));
    assert!(dash.post("/api/pause", &bearer, &long).0.starts_with("http/1.1 413"));
    assert!(oracle.requests("pause").is_empty(), "nothing of this reached the Oracle");
    let (head, body) = dash.post("/api/pause", &bearer, "{\"seconds\": 60}");
    assert!(head.starts_with("http/1.1 200"), "{head}{body}");
    let asked = oracle.requests("pause");
    assert_eq!((asked.len(), asked[0].by.as_str()), (1, "alice (uid 7), by dash from 127.0.0.1"));
    let (head, body) = dash.post("/api/resume", &bearer, "");
    assert!(head.starts_with("http/1.1 409") && body.contains("`p` is not paused"), "{head}{body}");
    assert!(dash.said.lock().unwrap().iter().any(|line| line == "pause, asked for from 127.0.0.1: done"));
}

#[test]
fn without_a_token_nothing_can_be_changed() {
    let dash = Dash::start(None, &[]);
    let oracle = FakeOracle::start(&dash.socket, 3, false);
    let (head, body) = dash.post("/api/pause", &format!("Authorization: Bearer {TOKEN}\r\n"), "{}");
    assert!(head.starts_with("http/1.1 403") && body.contains("read-only"), "{head}{body}");
    assert!(oracle.requests("pause").is_empty());
}

#[test]
fn the_stream_says_when_the_oracle_goes_and_when_it_is_back() {
    let dash = Dash::start(None, &[]);
    let mut stream = dash.follow();
    let (name, first) = stream.next().unwrap();
    assert_eq!((name.as_str(), &first["overview"], &first["acts"]), ("full", &Value::Null, &json!(false)));
    assert!(first["trouble"].is_string());
    let oracle = FakeOracle::start(&dash.socket, 250, false);
    let seen = stream.until(|data| data["trouble"].is_null() && data.get("hosts").is_some());
    let (fixed, total) = (&seen["hosts"]["fixed"], &seen["hosts"]["total"]);
    assert_eq!((fixed.as_array().unwrap().len(), total), (250, &json!(250)), "three parts make the list");
    assert_eq!(fixed[0][0], "<b>h0</b>", "markup is data");
    drop(oracle);
    let gone = stream.until(|data| data["trouble"].is_string());
    assert!(gone["answered"].as_f64() > Some(1e9), "it says when the last answer came: {gone}");
    let _oracle = FakeOracle::start(&dash.socket, 250, false);
    stream.until(|data| data["trouble"].is_null());
    // who comes later gets all at once
    let (name, full) = dash.follow().next().unwrap();
    assert_eq!((name.as_str(), full["hosts"]["fixed"].as_array().unwrap().len()), ("full", 250));
}

#[test]
fn the_oracle_is_asked_once_for_all_browsers_and_at_a_bounded_rate() {
    let dash = Dash::start(None, &[]);
    let oracle = FakeOracle::start(&dash.socket, 250, false);
    let mut streams: Vec<Stream> = (0..20).map(|_| dash.follow()).collect();
    for stream in &mut streams {
        stream.until(|data| data["trouble"].is_null());
    }
    let before = oracle.requests("status").len();
    thread::sleep(Duration::from_secs(2));
    let more = oracle.requests("status").len() - before;
    // T = 200 ms: ten times a second, however many follow
    assert!((4..=22).contains(&more), "{more} questions in two seconds");
    assert_eq!(
        oracle.requests("board").len(),
        6,
        "lists are asked for once a decision: three parts of hosts, one of each other"
    );
}

#[test]
fn the_oldest_stream_of_an_address_makes_room_for_another_browser() {
    let dash = Dash::start(None, &[]);
    let mut streams: Vec<Stream> = (0..32).map(|_| dash.follow()).collect();
    for stream in &mut streams {
        stream.next().unwrap();
    }
    assert!(dash.follow().next().is_some());
    assert!(streams[0].until_end(), "it was the first");
    // the others follow still
    streams[1].lines.get_ref().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(!streams[1].until_end());
}

#[test]
fn connections_without_a_request_keep_nobody_out() {
    let dash = Dash::start(None, &[]);
    let mut stream = dash.follow();
    stream.next().unwrap();
    let idle: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(dash.address).unwrap()).collect();
    let began = std::time::Instant::now();
    let (head, _) = dash.get("/", "localhost");
    // an idle one has 20 s
    assert!(head.starts_with("http/1.1 200") && began.elapsed() < Duration::from_secs(10), "{head}");
    // who follows is none of them
    stream.lines.get_ref().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(!stream.until_end());
    drop(idle);
}

#[test]
fn an_oracle_of_an_earlier_version_is_shown_as_far_as_it_answers() {
    let dash = Dash::start(None, &[]);
    let _oracle = FakeOracle::start(&dash.socket, 250, true);
    let mut stream = dash.follow();
    let seen = stream.until(|data| data["hosts"]["total"] == 250);
    assert_eq!(seen["hosts"]["fixed"].as_array().unwrap().len(), 128);
    assert!(seen["note"].as_str().unwrap().contains("earlier version"), "{seen}");
}
