//! Switches that send by gNMI with TLS: the fake target of openconfig/gnmi, and one with the kernel's counters. Go builds both from the
//! module proxy.

use serde_json::Value;
use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use testkit::{or_skip, until};

const FAKE: &str = "github.com/openconfig/gnmi/testing/fake/gnmi/cmd/fake_server@v0.14.1";
/// 1 % of 10 Gbit/s in one direction, a tenth of it in the other.
const BYTES_A_SECOND: u64 = 12_500_000;

/// The fake's program; where there is none, the crate's own tests of gNMI have built it, or Go does.
fn program() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openconfig-gnmi-v0.14.1");
    let program = folder.join("fake_server");
    if program.exists() {
        return Ok(program);
    }
    let mut command = Command::new("sh");
    go(command.args(["-c", &format!("go install {FAKE}")]).env("GOBIN", &folder))?;
    Ok(program)
}

/// A gNMI target that has this machine's own counters (`gnmi_target/main.go`), built anew if it has changed.
pub fn target() -> Result<PathBuf, String> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gnmi_target");
    let mut command = Command::new("sh");
    command.args(["-c", "go build -o \"$0\""]).arg(&program);
    go(command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/collect/gnmi_target")))?;
    Ok(program)
}

/// Lets Go build.
fn go(command: &mut Command) -> Result<(), String> {
    let path = format!("{}:/usr/local/go/bin", env::var("PATH").unwrap_or_default());
    let output = command.env("PATH", path).output().map_err(|error| error.to_string())?;
    let why = || format!("the gNMI target is not built: {}", String::from_utf8_lossy(&output.stderr).trim());
    if output.status.success() { Ok(()) } else { Err(why()) }
}

/// An authority, and the target's certificate for an address, by OpenSSL.
pub fn certify(folder: &Path, address: &str) -> Result<(), String> {
    fs::write(folder.join("extensions"), format!("subjectAltName=IP:{address}\n")).unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    for line in [
        format!("req -x509 {key} -days 2 -subj /CN=authority -keyout ca.key -out ca.pem"),
        format!("req {key} -subj /CN=target -keyout target.key -out target.csr"),
        "x509 -req -in target.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile extensions -out target.pem"
            .to_string(),
    ] {
        let mut command = Command::new("openssl");
        let output = command.args(line.split_whitespace()).current_dir(folder).output();
        let output = output.map_err(|error| format!("openssl: {error}"))?;
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// What the fake plays: a sample each second, of counters that rise as [`BYTES_A_SECOND`] says.
fn played() -> String {
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let port = "elem { name: \"interfaces\" } elem { name: \"interface\" key { key: \"name\" value: \"eth0\" } }";
    let mut text = format!(
        "responses {{ update {{ timestamp: {began} prefix {{ {port} }} update {{ path {{ elem {{ name: \"ethernet\" }} \
         elem {{ name: \"state\" }} elem {{ name: \"port-speed\" }} }} val {{ string_val: \"SPEED_10GB\" }} }} }} }}\n"
    );
    for n in 0..20 {
        let at = began + n * 1_000_000_000;
        let update = |leaf: &str, value: u64| {
            format!("update {{ path {{ elem {{ name: \"{leaf}\" }} }} val {{ uint_val: {value} }} }} ")
        };
        let counts = update("in-octets", n * BYTES_A_SECOND)
            + &update("out-octets", n * BYTES_A_SECOND / 10)
            + &update("in-pkts", n * 10_000)
            + &update("out-pkts", n * 1000);
        writeln!(
            text,
            "responses {{ update {{ timestamp: {at} prefix {{ {port} elem {{ name: \"state\" }} elem {{ name: \"counters\" }} }} {counts} }} }}"
        )
        .unwrap();
        if n == 0 {
            text.push_str("responses { sync_response: true }\n");
        }
    }
    text
}

/// Killed when dropped.
struct Target(Child);

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_switch_is_measured_once_by_gnmi() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = or_skip(program()) else { return };
    let Some(()) = or_skip(certify(place.path(), "127.0.0.1")) else { return };
    let target = format!(
        "target: \"switch\"\nclient_type: GRPC_GNMI\ndisable_sync: true\nenable_delay: true\ndisable_eof: true\nfixed {{\n{}}}\n",
        played()
    );
    fs::write(place.path().join("target.txt"), target).unwrap();
    let log = place.path().join("log");
    let mut command = Command::new(program);
    command.args(["-logtostderr", "-text", "-port", "0", "-config", "target.txt", "-allow_no_client_auth"]);
    command.args(["-server_crt", "target.pem", "-server_key", "target.key"]).current_dir(&place);
    let _target = Target(command.stdin(Stdio::null()).stderr(File::create(&log).unwrap()).spawn().unwrap());
    let mut port = None;
    until("the target listens", || {
        let said = fs::read_to_string(&log).unwrap();
        let address = said.split_once("RPC server on address: ").and_then(|(_, rest)| rest.split_whitespace().next());
        port = address.and_then(|address| address.rsplit(':').next()?.parse::<u16>().ok());
        port.is_some()
    });
    let port = port.expect("it listens");
    let switch = format!(
        "[[switch]]\nname = \"leaf\"\nprotocol = \"gnmi\"\naddress = \"127.0.0.1:{port}\"\ntls = {{ ca = \"ca.pem\" }}\n\
         interval = \"1 s\"\n[switch.ports]\neth0 = {{ end = \"h1\" }}\n"
    );
    // the collector ends as soon as there are two samples, or after three of its own intervals
    fs::write(place.path().join("c.toml"), format!("interval = \"10 s\"\n{switch}")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_opentcp"));
    let done = command.args(["collect", "c.toml", "--once", "--json"]).current_dir(&place).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let view: Value = serde_json::from_slice(&done.stdout).unwrap();
    let used = |name: &str| -> f64 {
        let link = view["links"].as_array().unwrap().iter().find(|link| link["name"] == name);
        link.and_then(|link| link["utilization"].as_f64()).unwrap_or_else(|| panic!("{name}: {view}"))
    };
    let [sent, received] = [used("leaf eth0 out"), used("leaf eth0 in")];
    println!("utilization by gNMI: {received} in, {sent} out");
    assert!((received - 0.01).abs() < 1e-6 && (sent - 0.001).abs() < 1e-6, "by the target's own times");
}
