//! The gNMI reader against the fake target of openconfig/gnmi, which plays what a text says: with TLS, timestamps and their delays.
//!
//! It is built by Go from the module proxy.

use collect::gnmi::{Options, Reader, Tls};
use collect::{PortCounters, ReadError, Reader as _, SwitchCounters};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use testkit::{or_skip, until};
use units::{Bytes, Rate, Time};

const FAKE: &str = "github.com/openconfig/gnmi/testing/fake/gnmi/cmd/fake_server";
const VERSION: &str = "v0.14.1";
/// Interval of the played samples.
const INTERVAL: Time = Time::from_secs(1);
/// First readings until one is answered in time, at most.
const TRIES: usize = 4;
/// Bytes a second of the played counters, 12.5 MB/s: 1 % of 10 Gbit/s.
const RATE: u64 = 12_500_000;

/// The fake target's program; `None`, and a printed reason, where it cannot be built.
fn program() -> Option<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || {
        // beside the build's other files: the next test finds it
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("openconfig-gnmi-{VERSION}"));
        let program = folder.join("fake_server");
        if program.exists() {
            return Ok(program);
        }
        let path = format!("{}:/usr/local/go/bin", env::var("PATH").unwrap_or_default());
        let output = Command::new("sh")
            .args(["-c", &format!("go install {FAKE}@{VERSION}")])
            .env("PATH", path)
            .env("GOBIN", &folder)
            .output()
            .map_err(|error| error.to_string())?;
        let why = || format!("the fake gNMI target is not built: {}", String::from_utf8_lossy(&output.stderr).trim());
        if output.status.success() { Ok(program) } else { Err(why()) }
    };
    or_skip(BUILT.get_or_init(build).clone())
}

/// A target that plays `responses`.
struct Target {
    process: std::process::Child,
    folder: TempDir,
    port: u16,
}

impl Target {
    /// `more`: settings of the fake. It waits as the timestamps say.
    fn start(more: &str, responses: &str) -> Option<Target> {
        Target::start_with(&["-allow_no_client_auth"], more, responses)
    }

    fn start_with(arguments: &[&str], more: &str, responses: &str) -> Option<Target> {
        let program = program()?;
        let folder = tempfile::tempdir().expect("there is room for a folder");
        certify(folder.path());
        let text = format!(
            "target: \"switch-1\"\nclient_type: GRPC_GNMI\ndisable_sync: true\nenable_delay: true\n{more}\nfixed {{\n{responses}}}\n"
        );
        fs::write(folder.path().join("target.txt"), text).expect("the folder is ours");
        let log = folder.path().join("log");
        let process = Command::new(program)
            .args(["-logtostderr", "-text", "-port", "0", "-config", "target.txt"])
            .args(["-server_crt", "target.pem", "-server_key", "target.key"])
            .args(arguments)
            .current_dir(folder.path())
            .stderr(fs::File::create(&log).expect("the folder is ours"))
            .spawn()
            .expect("it has been built");
        let mut target = Target { process, folder, port: 0 };
        until("the target listens", || {
            let said = fs::read_to_string(&log).expect("the log is ours");
            let port = said.split_once("RPC server on address: ").and_then(|(_, rest)| rest.split_whitespace().next());
            target.port = port.and_then(|address| address.rsplit(':').next()?.parse().ok()).unwrap_or(0);
            target.port != 0
        });
        Some(target)
    }

    fn options(&self) -> Options {
        let ca = self.folder.path().join("ca.pem");
        Options {
            tls: Some(Tls { ca, name: None, identity: None }),
            timeout: Time::from_secs(20),
            ..Options::new("leaf-1", format!("127.0.0.1:{}", self.port), INTERVAL)
        }
    }

    /// For a target that does not answer.
    fn hasty(&self) -> Options {
        Options { timeout: Time::from_secs(2), ..self.options() }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An authority `ca.pem`, another `other.pem`, and certificates of the first for the target (127.0.0.1) and for a collector; two that are their own
/// authority and of no address, `own.pem` and `own2.pem`, as `openssl req -x509` makes them.
fn certify(folder: &Path) {
    let authority = |file: &str, name: &str| {
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names are names");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        fs::write(folder.join(file).with_extension("key"), key.serialize_pem()).expect("the folder is ours");
        let issuer = CertifiedIssuer::self_signed(parameters, key).expect("it is signed");
        fs::write(folder.join(file), issuer.pem()).expect("the folder is ours");
        issuer
    };
    let issuer = authority("ca.pem", "ca.pem");
    authority("other.pem", "other.pem");
    authority("own.pem", "leaf-1");
    authority("own2.pem", "leaf-1");
    for (file, name) in [("target", "127.0.0.1"), ("collector", "collector.example")] {
        let key = KeyPair::generate().expect("a key");
        let parameters = CertificateParams::new(vec![name.to_string()]).expect("it is a name");
        let certificate = parameters.signed_by(&key, &issuer).expect("it is signed");
        fs::write(folder.join(format!("{file}.pem")), certificate.pem()).expect("the folder is ours");
        fs::write(folder.join(format!("{file}.key")), key.serialize_pem()).expect("the folder is ours");
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("there are descriptors").block_on(work)
}

/// Nanoseconds since 1970.
fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_nanos() as u64
}

/// `/a/b[key=value]` as protobuf's text.
fn elements(path: &str) -> String {
    let mut text = String::new();
    for element in path.split('/').filter(|element| !element.is_empty()) {
        let (name, key) = element.split_once('[').unwrap_or((element, ""));
        let key = key.trim_end_matches(']').split_once('=');
        let key = key.map(|(key, value)| format!("key {{ key: \"{key}\" value: \"{value}\" }}")).unwrap_or_default();
        write!(text, "elem {{ name: \"{name}\" {key} }} ").expect("writing to a text");
    }
    text
}

fn update(path: &str, value: &str) -> String {
    format!("update {{ path {{ {} }} val {{ {value} }} }} ", elements(path))
}

fn delete(path: &str) -> String {
    format!("delete {{ {} }} ", elements(path))
}

fn notification(ns: u64, prefix: &str, contents: &str) -> String {
    format!("responses {{ update {{ timestamp: {ns} prefix {{ {} }} {contents} }} }}\n", elements(prefix))
}

const SYNC: &str = "responses { sync_response: true }\n";

/// A sample of `eth0` after `n` intervals.
fn sample(began: u64, n: u64, more: &str) -> String {
    let octets = n * RATE;
    let contents = update("in-octets", &format!("uint_val: {octets}"))
        + &update("out-octets", &format!("json_ietf_val: \"\\\"{}\\\"\"", octets / 10))
        + more;
    notification(began + n * INTERVAL.as_ns(), "/interfaces/interface[name=eth0]/state/counters", &contents)
}

/// The first reading by a hasty reader, whose target may be late on a busy machine. Then it is asked again, as by the collector.
async fn first_read(reader: &mut Reader) -> Result<SwitchCounters, ReadError> {
    for _ in 1..TRIES {
        match reader.read().await {
            Err(ReadError::Unreachable(late)) if late.contains("no answer within") => println!("late: {late}"),
            read => return read,
        }
    }
    reader.read().await
}

fn port<'a>(switch: &'a SwitchCounters, name: &str) -> &'a PortCounters {
    switch.ports.iter().find(|port| port.name == name).unwrap_or_else(|| panic!("{name} is not in {switch:?}"))
}

/// Bytes a second between two answers, by the target's clock.
fn rate(before: &SwitchCounters, after: &SwitchCounters) -> [f64; 2] {
    let [before, after] = [before, after].map(|switch| port(switch, "eth0"));
    [(before.received, after.received), (before.sent, after.sent)].map(|(before, after)| {
        let bytes = after.bytes.expect("it is counted") - before.bytes.expect("it is counted");
        let [from, to] = [before, after].map(|counts| counts.at.expect("it has a time").as_secs_f64());
        bytes as f64 / (to - from)
    })
}

#[test]
fn values_of_all_encodings_are_read() {
    let began = now_ns();
    let state = "/interfaces/interface[name=eth0]/state/";
    let queue = "/qos/interfaces/interface[interface-id=eth0]/output/queues/queue[name=lossless]/state";
    let neighbour = "/lldp/interfaces/interface[name=eth0]/neighbors/neighbor[id=1]/state";
    let first = update(&format!("{state}oper-status"), "string_val: \"UP\"")
        + &update(
            "/interfaces/interface[name=eth0]/ethernet/state/port-speed",
            "string_val: \"openconfig-if-ethernet:SPEED_10GB\"",
        )
        + &update(&format!("{state}counters/in-pkts"), "int_val: 7")
        + &update(&format!("{state}counters/out-unicast-pkts"), "double_val: 5")
        + &update(&format!("{state}counters/out-multicast-pkts"), "json_val: \"2\"")
        + &update(&format!("{state}counters/in-discards"), "leaflist_val { element { uint_val: 3 } }")
        + &update(&format!("{state}counters/out-discards"), "decimal_val { digits: 400 precision: 2 }")
        + &update(&format!("{state}counters/in-errors"), "ascii_val: \"6\"")
        + &update(&format!("{state}counters/out-errors"), "float_val: 8")
        + &update(&format!("{state}counters/last-clear"), "string_val: \"1700000000000000000\"")
        + &update(&format!("{state}description"), "string_val: \"not read\"");
    let container = update(
        queue,
        "json_ietf_val: \"{\\\"openconfig-qos:transmit-pkts\\\": \\\"100\\\", \\\"dropped-pkts\\\": 1, \
         \\\"ecn-marked-pkts\\\": 20, \\\"avg-queue-len\\\": \\\"1500\\\", \\\"name\\\": \\\"lossless\\\"}\"",
    );
    let heard = update(&format!("{neighbour}/system-name"), "string_val: \"spine-2\"")
        + &update(&format!("{neighbour}/port-id"), "string_val: \"Ethernet7\"");
    // the second port's counters come as one container
    let second = update(
        "/interfaces/interface[name=eth1]/state",
        "json_ietf_val: \"{\\\"counters\\\": {\\\"in-octets\\\": \\\"18446744073709551615\\\"}, \\\"oper-status\\\": \\\"LOWER_LAYER_DOWN\\\"}\"",
    );
    let responses = notification(began, "", &(first + &container + &heard + &second)) + &sample(began, 0, "") + SYNC;
    let Some(target) = Target::start("disable_eof: true", &responses) else { return };
    let (read, ignored) = run(async {
        let mut reader = Reader::new(target.options());
        (reader.read().await.expect("the target plays"), reader.ignored())
    });
    assert_eq!((read.switch.as_str(), ignored), ("leaf-1", 0));
    let eth0 = port(&read, "eth0");
    assert_eq!((eth0.rate, eth0.up, eth0.width), (Some(Rate::from_gbps(10)), Some(true), 64));
    let counts =
        |counts: collect::Counts| [counts.bytes, counts.packets, counts.dropped, counts.errors].map(Option::unwrap);
    assert_eq!((counts(eth0.received), counts(eth0.sent)), ([0, 7, 3, 6], [0, 7, 4, 8]));
    assert_eq!(eth0.discontinuity, Some(1_700_000_000_000_000_000));
    let [queue] = &eth0.queues[..] else { panic!("{eth0:?}") };
    assert_eq!(
        (queue.name.as_str(), queue.packets, queue.dropped, queue.marked, queue.length),
        ("lossless", Some(100), Some(1), Some(20), Some(Bytes::new(1500)))
    );
    let neighbour = eth0.neighbour.as_ref().expect("one is heard");
    assert_eq!((neighbour.system.as_str(), neighbour.port.as_str()), ("spine-2", "Ethernet7"));
    let eth1 = port(&read, "eth1");
    assert_eq!((eth1.received.bytes, eth1.up), (Some(u64::MAX), Some(false)));
    println!("{read:#?}");
}

#[test]
fn rates_are_the_targets_and_deletes_are_obeyed() {
    let began = now_ns();
    let clear =
        delete("/interfaces/interface[name=eth9]") + &delete("/interfaces/interface[name=eth0]/state/oper-status");
    let mut responses = notification(
        began,
        "/interfaces",
        &(update("interface[name=eth9]/state/counters/in-octets", "uint_val: 1")
            + &update("interface[name=eth0]/state/oper-status", "string_val: \"UP\"")),
    );
    responses += &sample(began, 0, "");
    responses += SYNC;
    for n in 1..=5 {
        responses += &sample(began, n, "");
        if n == 3 {
            responses += &notification(began + n * INTERVAL.as_ns(), "", &clear);
        }
    }
    let Some(target) = Target::start("disable_eof: true", &responses) else { return };
    run(async {
        let mut reader = Reader::new(target.hasty());
        let start = Instant::now();
        let mut answers = vec![first_read(&mut reader).await.expect("the target plays")];
        for _ in 1..6 {
            answers.push(reader.read().await.expect("the target plays"));
        }
        println!("six samples in {:?}", start.elapsed());
        for pair in answers.windows(2) {
            let [received, sent] = rate(&pair[0], &pair[1]);
            println!("received {received} B/s, sent {sent} B/s, utilization of 10 Gbit/s {}", received * 8.0 / 1e10);
            assert!((received - RATE as f64).abs() < 1.0 && (sent - RATE as f64 / 10.0).abs() < 1.0);
        }
        let has = |answer: &SwitchCounters, name: &str| answer.ports.iter().any(|port| port.name == name);
        assert!(has(&answers[2], "eth9") && !has(&answers[4], "eth9"), "{answers:?}");
        assert_eq!((port(&answers[0], "eth0").up, port(&answers[5], "eth0").up), (Some(true), None));

        // it plays no more: a target that stalls
        let error = reader.read().await.expect_err("it stalls");
        assert!(matches!(&error, ReadError::Interrupted(text) if text.contains("no byte counters")), "{error}");
        println!("stalled: {error}");
        let again = first_read(&mut reader).await.expect("a new subscription plays from the beginning");
        assert!(has(&again, "eth9"));
    });
}

#[test]
fn garbage_is_unknown_and_counted() {
    let began = now_ns();
    let garbage = update("in-pkts", "string_val: \"many\"")
        + &update("out-pkts", "int_val: -1")
        + &update("in-errors", "json_ietf_val: \"{\\\"not\\\": \"")
        + &update("out-errors", "double_val: nan")
        + &update("in-discards", "leaflist_val { }")
        + &update("out-discards", "decimal_val { digits: 1 precision: 4000000000 }");
    let good = ["in-pkts", "out-pkts", "in-errors", "out-errors", "in-discards", "out-discards"];
    let good: String = good.map(|leaf| update(leaf, "uint_val: 1")).concat();
    let odd = notification(began, "/interfaces/interface[name=*]/state/counters", &update("in-octets", "uint_val: 1"))
        + &notification(began, "/interfaces/interface/state/counters", &update("in-octets", "uint_val: 1"))
        + &notification(began, &"/x".repeat(40), &update("in-octets", "uint_val: 1"))
        + &notification(
            began,
            &format!("/interfaces/interface[name={}]/state/counters", "x".repeat(300)),
            &update("in-octets", "uint_val: 1"),
        )
        + "responses { update { timestamp: 0 } }\nresponses { update { update { } } }\nresponses { }\n";
    let responses = sample(began, 0, &good) + &odd + SYNC + &sample(began, 1, &garbage) + &sample(began, 2, &good);
    let Some(target) = Target::start("disable_eof: true", &responses) else { return };
    run(async {
        let mut reader = Reader::new(target.options());
        let counts = |read: &SwitchCounters| {
            assert_eq!(read.ports.len(), 1, "{read:?}");
            let eth0 = port(read, "eth0");
            [eth0.received, eth0.sent].map(|counts| [counts.packets, counts.errors, counts.dropped])
        };
        let first = reader.read().await.expect("the target plays");
        assert_eq!(counts(&first), [[Some(1); 3]; 2]);
        let second = reader.read().await.expect("the target plays");
        assert_eq!(counts(&second), [[None; 3]; 2]);
        assert_eq!(second.ports[0].received.bytes, Some(RATE), "what is beside it is read");
        println!("{} values ignored", reader.ignored());
        // six garbage values and the path that is too long
        assert_eq!(reader.ignored(), 7);
        let third = reader.read().await.expect("the target plays");
        assert_eq!(counts(&third), [[Some(1); 3]; 2]);
    });
}

#[test]
fn a_clock_that_is_set_gives_no_rate() {
    let began = now_ns();
    let day = 86_400_000_000_000;
    // The fake waits as timestamps say, so these come at once.
    let responses = sample(began, 0, "") + SYNC + &sample(began - day, 1, "") + &sample(began - day, 2, "");
    let Some(target) = Target::start("disable_eof: true", &responses) else { return };
    let read = run(async { Reader::new(target.options()).read().await.expect("the target plays") });
    let received = port(&read, "eth0").received;
    assert_eq!((received.bytes, received.at), (Some(2 * RATE), None));
}

#[test]
fn a_target_that_asks_for_a_certificate_gets_it() {
    let responses = sample(now_ns(), 0, "") + SYNC;
    let Some(target) = Target::start_with(&["-ca_crt", "ca.pem"], "disable_eof: true", &responses) else { return };
    let mut options = target.options();
    let error = run(Reader::new(options.clone()).read()).expect_err("it wants a certificate");
    assert!(matches!(&error, ReadError::Refused(text) if text.contains("`tls.certificate`")), "{error}");
    println!("no certificate: {error}");
    let file = |name: &str| target.folder.path().join(name);
    options.tls.as_mut().expect("it has TLS").identity = Some((file("collector.pem"), file("collector.key")));
    run(Reader::new(options).read()).expect("the target plays");
}

#[test]
fn a_certificate_that_is_its_own_authority_is_taken_if_it_is_the_one_that_is_named() {
    let responses = sample(now_ns(), 0, "") + SYNC + &sample(now_ns(), 1, "");
    let own = ["-allow_no_client_auth", "-server_crt", "own.pem", "-server_key", "own.key"];
    let Some(target) = Target::start_with(&own, "disable_eof: true", &responses) else { return };
    let trusting = |file: &str| {
        let mut options = target.options();
        options.tls.as_mut().expect("it has TLS").ca = target.folder.path().join(file);
        options
    };
    run(async {
        let error = Reader::new(trusting("own2.pem")).read().await.expect_err("another's certificate of that name");
        assert!(matches!(&error, ReadError::Refused(text) if text.contains("certificate")), "{error}");
        let read = first_read(&mut Reader::new(trusting("own.pem"))).await.expect("the target plays");
        assert_eq!(read.ports.len(), 1);
    });
}

#[test]
fn each_end_of_a_call_has_its_own_error() {
    let began = now_ns();
    // closes after its values
    let Some(target) = Target::start("", &(sample(began, 0, "") + SYNC + &sample(began, 1, ""))) else { return };
    run(async {
        let mut reader = Reader::new(target.options());
        reader.read().await.expect("the target plays");
        let error = loop {
            if let Err(error) = reader.read().await {
                break error;
            }
        };
        assert_eq!(error, ReadError::Closed);
        println!("closed: {error}");

        let mut options = target.options();
        options.tls.as_mut().expect("it has TLS").ca = target.folder.path().join("other.pem");
        let error = Reader::new(options).read().await.expect_err("another authority");
        assert!(matches!(&error, ReadError::Refused(text) if text.contains("UnknownIssuer")), "{error}");
        println!("wrong authority: {error}");

        let mut options = target.options();
        options.tls.as_mut().expect("it has TLS").name = Some("another.example".into());
        let error = Reader::new(options).read().await.expect_err("another name");
        assert!(matches!(&error, ReadError::Refused(text) if text.contains("certificate")), "{error}");
        println!("wrong name: {error}");

        let mut options = target.options();
        options.tls = None;
        let error = Reader::new(options).read().await.expect_err("it wants TLS");
        assert!(matches!(&error, ReadError::Refused(text) if text.contains("TLS")), "{error}");
        println!("no TLS: {error}");

        let mut options = target.options();
        options.tls.as_mut().expect("it has TLS").ca = "/nonexistent/ca.pem".into();
        let error = Reader::new(options).read().await.expect_err("no such file");
        assert!(matches!(&error, ReadError::Io(text) if text.contains("ca.pem")), "{error}");
        println!("no file: {error}");

        let mut options = target.options();
        options.address = "127.0.0.1:9".into();
        let error = Reader::new(options).read().await.expect_err("nobody listens");
        assert!(matches!(error, ReadError::Unreachable(_)), "{error}");
        println!("nobody: {error}");
    });
}

#[test]
fn what_is_beyond_a_limit_or_does_not_come_has_its_own_error() {
    let began = now_ns();
    // never says that the first state is complete
    let Some(target) = Target::start("disable_eof: true", &sample(began, 0, "")) else { return };
    run(async {
        let error = first_read(&mut Reader::new(target.hasty())).await.expect_err("no end");
        assert!(matches!(&error, ReadError::Interrupted(text) if text.contains("sync_response")), "{error}");
        println!("no sync: {error}");
    });

    // one message beyond the limit
    let long = update(
        "/interfaces/interface[name=eth0]/state/description",
        &format!("string_val: \"{}\"", "x".repeat(5 << 20)),
    );
    let Some(target) = Target::start("disable_eof: true", &notification(began, "", &long)) else { return };
    run(async {
        let error = Reader::new(target.options()).read().await.expect_err("it is too long");
        assert_eq!(error, ReadError::Beyond { what: "bytes of a message", most: 4 << 20 });
        println!("long: {error}");
    });

    // more ports than a switch has
    let ports: String =
        (0..5000).map(|i| update(&format!("interface[name=p{i}]/state/counters/in-octets"), "uint_val: 1")).collect();
    let Some(target) = Target::start("disable_eof: true", &(notification(began, "/interfaces", &ports) + SYNC)) else {
        return;
    };
    run(async {
        let error = Reader::new(target.options()).read().await.expect_err("too many");
        assert_eq!(error, ReadError::Beyond { what: "ports", most: 4096 });
        println!("many: {error}");
    });

    // suspended in the middle
    let began = now_ns();
    let stream: String = (1..20).map(|n| sample(began, n, "")).collect();
    let Some(target) = Target::start("disable_eof: true", &(sample(began, 0, "") + SYNC + &stream)) else { return };
    run(async {
        let mut reader = Reader::new(target.hasty());
        first_read(&mut reader).await.expect("the target plays");
        testkit::command("kill", &format!("-STOP {}", target.process.id()));
        let error = loop {
            if let Err(error) = reader.read().await {
                break error;
            }
        };
        assert!(matches!(&error, ReadError::Interrupted(text) if text.contains("no byte counters")), "{error}");
        println!("suspended: {error}");
        let error = reader.read().await.expect_err("it is suspended");
        assert!(matches!(&error, ReadError::Unreachable(text) if text.contains("no answer within 2 s")), "{error}");
        println!("suspended, anew: {error}");
    });
}
