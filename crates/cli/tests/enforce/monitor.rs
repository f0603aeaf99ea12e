//! What an operator sees of a real run: a Prometheus that scrapes an Oracle, an agent and an enforcer, the dashboard's and the alerts'
//! queries, and `opentcp top` in a terminal.

use crate::world::World;
use crate::{check, send};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::AtomicU64;
use std::thread;
use testkit::{PATIENCE, Running, eventually, until};

/// Sets something on connections that do not exist, so that nothing differs from what was set.
const POLICY: &str = r#"
name = "watched"
mode = "enforce"
period = "1 s"
allow_mixed_measures = true
[[constraint]]
name = "core"
holds = "network.max_link_utilization < 0.999"
[[rule]]
name = "always"
when = "network.live_flows >= 0"
match = { hosts = "all", port = 7007 }
set = { initial_cwnd = 20 }
"#;

/// Queries that may have no data after so short a run: two periods of 200 flows on either side are not compared yet.
const MAY_BE_EMPTY: [&str; 3] = [
    "max by (quantity) (opentcp_oracle_verdict_change_ratio)",
    "max by (quantity) (opentcp_oracle_verdict_change_low_ratio)",
    "max by (quantity) (opentcp_oracle_verdict_change_high_ratio)",
];
const BYTES: usize = 2 << 20;
const PORT: u16 = 9090;

fn dist(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist").join(name)
}

fn json_of(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every query of the dashboard, with its panel's title.
fn queries() -> Vec<(String, String)> {
    let board = json_of(&dist("grafana/opentcp.json"));
    let panels = board["panels"].as_array().expect("a dashboard has panels");
    let ids: BTreeSet<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has a number of its own");
    let each = panels.iter().flat_map(|panel| {
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        let title = panel["title"].as_str().expect("a panel has a title").to_string();
        assert!(panel["type"] == "row" || !targets.is_empty(), "{title} asks for nothing");
        targets.into_iter().map(move |target| (title.clone(), target["expr"].as_str().expect("a query").to_string()))
    });
    each.collect()
}

fn encoded(text: &str) -> String {
    let byte =
        |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(byte).collect()
}

/// An answer of Prometheus's, or of a daemon's: its body.
fn fetched(world: &World, port: u16, path: &str) -> Option<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = world.on(1, || TcpStream::connect_timeout(&address, PATIENCE).ok())?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_string())
}

/// The series that a query gives.
fn asked(world: &World, query: &str) -> Vec<Value> {
    let body = fetched(world, PORT, &format!("/api/v1/query?query={}", encoded(query))).expect("Prometheus answers");
    let answer: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{query}: {error}: {body}"));
    assert_eq!(answer["status"], "success", "{query}: {answer}");
    answer["data"]["result"].as_array().cloned().unwrap_or_default()
}

/// The names of the alerts that fire.
fn firing(world: &World) -> BTreeSet<String> {
    let body = fetched(world, PORT, "/api/v1/alerts").expect("Prometheus answers");
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    let alerts = answer["data"]["alerts"].as_array().cloned().unwrap_or_default();
    let fires = alerts.iter().filter(|alert| alert["state"] == "firing");
    fires.filter_map(|alert| alert["labels"]["alertname"].as_str().map(str::to_string)).collect()
}

/// Prometheus in between, which scrapes the daemons each second; alerts wait a second instead of minutes.
fn prometheus(world: &World) -> Running {
    let rules = fs::read_to_string(dist("prometheus/alerts.yml")).expect("it is in the repository");
    let quick: String = rules
        .lines()
        .map(|line| if line.trim().starts_with("for: ") { "        for: 1s\n" } else { line }.to_string() + "\n")
        .collect();
    fs::write(world.path("alerts.yml"), quick).expect("there is room");
    let config = fs::read_to_string(dist("prometheus/prometheus.yml")).expect("it is in the repository");
    fs::write(world.path("prometheus.yml"), config.replace(": 15s", ": 1s")).expect("there is room");
    let mut command = Command::new("prometheus");
    command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=tsdb", "--log.level=warn"]);
    command.arg(format!("--web.listen-address=127.0.0.1:{PORT}"));
    world.run_in_between("prometheus-log", &mut command)
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

/// The daemons that are watched.
struct Daemons {
    oracle: Running,
    agent: Running,
    _enforcer: Running,
    _collector: Running,
}

fn start_oracle(world: &World) -> Running {
    let places = ["--key", "oracle.key", "--socket", "oracle.sock", "--state", "oracle", "--metrics", "127.0.0.1:9815"];
    world.start_in_between("oracle-log", &[&["oracle", "policy.toml"][..], &places].concat())
}

/// Asks a switch that is not there, and receives flow export.
fn start_collector(world: &World) -> Running {
    let access = world.path("access");
    fs::write(&access, "community = \"public\"\n").expect("there is room");
    fs::set_permissions(&access, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let text = "interval = \"1 s\"\n[racks]\n\"10.1.0.0/16\" = \"r1\"\n[[switch]]\nname = \"gone\"\nprotocol = \"snmp\"\n\
                address = \"127.0.0.1\"\ncredentials = \"access\"\n[[flows]]\nprotocol = \"sflow\"\nlisten = \"127.0.0.1:6343\"\n\
                [[flows.exporter]]\naddress = \"127.0.0.1\"\n";
    fs::write(world.path("collect.toml"), text).expect("there is room");
    let places = ["--socket", "oracle.sock", "--metrics", "127.0.0.1:9818"];
    world.start_in_between("collect-log", &[&["collect", "collect.toml"][..], &places].concat())
}

fn start(world: &World) -> Daemons {
    fs::write(world.path("policy.toml"), POLICY).expect("there is room");
    let (code, _, error) = world.opentcp(&["keygen", "--out", "oracle.key"]);
    assert_eq!(code, Some(0), "{error}");
    let places =
        ["--key", "oracle.key.pub", "--socket", "oracle.sock", "--state", "agent", "--cgroup", "/", "--host", "h1"];
    let more = ["--means", "routes", "--link", "s=1 Gbit/s", "--metrics", "127.0.0.1:9816"];
    Daemons {
        oracle: start_oracle(world),
        agent: world.start_in_between("agent-log", &[&["agent"][..], &places, &more].concat()),
        _enforcer: world.enforce(&["--rule", "bbr", "--metrics", "127.0.0.1:9817"]),
        _collector: start_collector(world),
    }
}

fn transfer(world: &World) {
    let (mut client, mut server) = world.connection();
    thread::scope(|scope| {
        scope.spawn(|| send(&mut server, BYTES, None));
        check(&mut client, BYTES, &AtomicU64::new(0));
    });
}

#[test]
fn every_query_of_the_dashboard_has_data_and_alerts_fire_when_they_should() {
    if !has("prometheus") {
        return;
    }
    let Some(world) = World::new() else { return };
    world.run(1, "ip link set lo up");
    let daemons = start(&world);
    let prometheus = prometheus(&world);
    world.lose_at_client();
    let _open = world.connection();
    let ready = || fetched(&world, PORT, "/-/ready").is_some_and(|body| body.contains("Ready"));
    assert!(eventually(ready), "{}", prometheus.said());
    let decided = || {
        transfer(&world);
        let known = asked(&world, "opentcp_oracle_hosts == 1 and on () opentcp_oracle_decisions_total >= 5");
        !known.is_empty()
            && !asked(&world, "rate(opentcp_enforcer_events_total{event=\"retransmitted\"}[5s]) > 0").is_empty()
    };
    assert!(eventually(decided), "{}{}", daemons.oracle.said(), daemons.agent.said());

    let queries = queries();
    for (title, query) in &queries {
        let query = query.replace("$__rate_interval", "10s");
        let series = || asked(&world, &query).len();
        assert!(MAY_BE_EMPTY.contains(&&*query) || eventually(|| series() > 0), "{title} shows nothing: {query}");
    }
    println!("{} queries of the dashboard have data", queries.len() - MAY_BE_EMPTY.len());

    let rules: Value =
        serde_json::from_str(&fetched(&world, PORT, "/api/v1/rules").expect("it answers")).expect("JSON");
    let rules = rules["data"]["groups"][0]["rules"].as_array().cloned().expect("there are rules");
    for rule in &rules {
        assert_eq!(rule["health"], "ok", "{rule}");
        let series = asked(&world, rule["query"].as_str().expect("a query"));
        assert!(series.is_empty(), "{} holds although nothing is wrong: {series:?}", rule["name"]);
    }
    assert_eq!(firing(&world), BTreeSet::new());
    let stale = rules.iter().find(|rule| rule["name"] == "OpenTCPCollectorStale").expect("it is a rule");
    let stale = stale["query"].as_str().expect("a query").replace("> 120", "> 0");
    assert_eq!(asked(&world, &stale)[0]["metric"]["switch"], "gone", "{stale}: a switch that never answered");

    let (code, text, error) = world.opentcp(&["top", "--once", "--socket", "oracle.sock"]);
    assert!(code == Some(0) && text.contains("watched  enforcing") && text.contains("h1 "), "{text}{error}");
    let Daemons { oracle, agent, .. } = daemons;
    oracle.kill();
    let both = ["OpenTCPOracleGone", "OpenTCPAgentDisconnected"].map(str::to_string);
    assert!(
        eventually(|| both.iter().all(|alert| firing(&world).contains(alert))),
        "{:?}{}",
        firing(&world),
        agent.said()
    );
    println!("Oracle killed: {:?} fire", firing(&world));
    let _oracle = start_oracle(&world);
    assert!(eventually(|| firing(&world).is_empty()), "{:?}", firing(&world));
    agent.stop();
}

#[test]
fn the_alerts_are_rules_as_prometheus_checks_them() {
    if !has("promtool") {
        return;
    }
    let checked = Command::new("promtool").args(["check", "rules"]).arg(dist("prometheus/alerts.yml")).output();
    let checked = checked.expect("it was found");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let config = Command::new("promtool").args(["check", "config"]).arg(dist("prometheus/prometheus.yml")).output();
    assert!(config.expect("it was found").status.success());
    assert!(queries().len() > 30);
}

#[test]
fn each_alert_fires_at_its_time_and_not_before() {
    if !has("promtool") {
        return;
    }
    let rules = fs::read_to_string(dist("prometheus/alerts.yml")).expect("it is in the repository");
    let tests = include_str!("alerts.yml");
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(
            tests.contains(&format!("alertname: {alert}\n        exp_alerts:")),
            "{alert} never fires in the tests"
        );
    }
    let served = fs::read_to_string(dist("../docs/monitor.md")).expect("it is in the repository");
    for series in tests.split("series: ").skip(1) {
        let name = series.trim_start_matches('\'').split('{').next().expect("a first part");
        assert!(served.contains(&format!("`{name}`")), "no daemon serves {name}");
    }
    let folder = tempfile::tempdir().expect("there is room");
    fs::write(folder.path().join("alerts-under-test.yml"), rules).expect("there is room");
    fs::write(folder.path().join("tests.yml"), tests).expect("there is room");
    let tested = Command::new("promtool").current_dir(&folder).args(["test", "rules", "tests.yml"]).output();
    let tested = tested.expect("it was found");
    let said = [&*tested.stdout, &*tested.stderr].concat();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn top_shows_the_fleet_in_a_terminal_of_any_size() {
    if Command::new("tmux").arg("-V").output().is_err() {
        println!("skipped: tmux is not installed");
        return;
    }
    let Some(world) = World::new() else { return };
    world.run(1, "ip link set lo up");
    let daemons = start(&world);
    let mut terminal = Terminal::new(world.path("tmux"));
    terminal.start(&["NO_COLOR=1", env!("CARGO_BIN_EXE_opentcp"), "top", "--socket"], &world.path("oracle.sock"));
    let shows = |part: &str| {
        assert!(eventually(|| terminal.screen(false).contains(part)), "{part}:\n{}", terminal.screen(false));
    };
    shows("watched  enforcing");
    shows("always");
    shows("h1 ");
    let mut coloured = String::new();
    until("a frame is drawn", || {
        coloured = terminal.screen(true);
        coloured.contains("watched")
    });
    assert!(!["31", "32", "33"].iter().any(|colour| coloured.contains(&format!("\u{1b}[{colour}m"))), "{coloured:?}");
    println!("{}", terminal.screen(false));
    terminal.tmux(&["resize-window", "-x", "120", "-y", "40"]);
    shows("RACK");
    terminal.tmux(&["send-keys", "?"]);
    shows("this help");
    terminal.tmux(&["send-keys", "s", "/", "nothing", "Enter"]);
    shows("0 of 1, with `nothing`, by name");
    daemons.oracle.kill();
    shows("oracle.sock");
    terminal.tmux(&["send-keys", "q"]);
    assert!(eventually(|| !terminal.lives()), "q quits");
    daemons.agent.stop();
}

/// A terminal of tmux's, with a server of its own.
struct Terminal {
    socket: PathBuf,
    server: Child,
}

impl Terminal {
    /// A server that is a child of the test: where it ends, the test knows when and why.
    fn new(socket: PathBuf) -> Terminal {
        let server = Command::new("tmux").args(["-D", "-f", "/dev/null", "-S"]).arg(&socket).spawn();
        let terminal = Terminal { socket, server: server.expect("it was found") };
        until("its server answers", || terminal.answers(&["show-options", "-s"]));
        terminal
    }

    /// Starts a program, of whose arguments the last is a path, in a terminal of 80 columns and 24 lines, as of old. It is started without the
    /// user's shell, which may be any. Once it has ended, its last words stay on the screen.
    fn start(&mut self, program: &[&str], last: &Path) {
        let session = ["set-option", "-g", "remain-on-exit", "on", ";", "new-session", "-d"];
        let last = last.display().to_string();
        let arguments = [&session[..], &["-x", "80", "-y", "24", "env"], program, &[&last]].concat();
        let said = self.tmux(&arguments);
        assert!(self.lives(), "{said}{}, the server: {:?}", self.screen(false), self.server.try_wait());
    }

    /// Whether a command succeeds.
    fn answers(&self, arguments: &[&str]) -> bool {
        self.command(arguments).output().is_ok_and(|output| output.status.success())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-f", "/dev/null", "-S"]).arg(&self.socket).args(arguments).env("TERM", "xterm-256color");
        command
    }

    /// What tmux answers, or why it does not.
    fn tmux(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("it was found");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// What is shown, and what has been scrolled away, with its colours if asked for.
    fn screen(&self, colours: bool) -> String {
        let all = ["capture-pane", "-p", "-S", "-", "-e"];
        self.tmux(&all[..if colours { 5 } else { 4 }])
    }

    /// Whether the program runs.
    fn lives(&self) -> bool {
        self.tmux(&["list-panes", "-F", "#{pane_dead}"]).trim() == "0"
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
