//! `opentcp collect check`: every mistake has its place, and says what to write.

use crate::common::Place;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const GOOD: &str = r#"name = "c1"
interval = "10 s"
bus = "/run/opentcp/oracle.sock"
[racks]
"10.1.0.0/16" = "r1"
"10.2.0.0/16" = "r2"
[[switch]]
name = "tor1"
protocol = "snmp"
address = "10.0.0.1:161"
credentials = "tor1.snmp"
timeout = "2 s"
[switch.ports]
eth1 = { end = "h1", rate = "10 Gbit/s", marks = true }
[[switch]]
name = "tor2"
protocol = "openflow"
listen = "0.0.0.0:6653"
peers = ["10.0.0.2"]
datapath = "00000000000000a1"
racks = ["r2"]
[[switch]]
name = "tor4"
protocol = "gnmi"
address = "10.0.0.5"
credentials = "tor4.gnmi"
encoding = "json"
queues = false
tls = { ca = "ca.pem", name = "tor4.example", certificate = "c.pem", key = "c.key" }
[[flows]]
protocol = "sflow"
listen = "0.0.0.0:6343"
window = "30 s"
[[flows.exporter]]
address = "10.0.0.3"
switch = "tor3"
racks = ["r1"]
[[flows.exporter]]
address = "10.0.0.4"
ports = [1, 2]
sampling = 400
"#;

/// What is wrong, in place of what, and part of the message.
const BAD: [(&str, &str, &str); 46] = [
    ("name = \"c1\"", "name = \"c 1\"", "is not a name"),
    ("interval = \"10 s\"", "interval = \"10\"", "10"),
    ("interval = \"10 s\"", "interval = \"10 ms\"", "from 1 s to 1 h"),
    ("interval = \"10 s\"", "interval = \"120 min\"", "from 1 s to 1 h"),
    ("interval = \"10 s\"", "intervall = \"10 s\"", "did you mean `interval`"),
    ("bus = \"/run/opentcp/oracle.sock\"", "bus = 7", "a text in quotes"),
    ("\"10.1.0.0/16\" = \"r1\"", "\"10.1.0.1/16\" = \"r1\"", "its network is `10.1.0.0/16`"),
    ("\"10.1.0.0/16\" = \"r1\"", "\"10.1/16\" = \"r1\"", "is not a prefix"),
    ("\"10.2.0.0/16\" = \"r2\"", "\"10.2.0.0/16\" = \"\"\n\"10.3.0.0/16\" = \"r2\"", "1 to 255 bytes"),
    ("name = \"tor1\"", "name = \"tor 1\"", "has no space"),
    ("name = \"tor1\"\n", "", "lacks `name`"),
    ("name = \"tor2\"", "name = \"tor1\"", "two sources are called `tor1`"),
    ("protocol = \"snmp\"", "protocol = \"smtp\"", "did you mean `snmp`"),
    ("protocol = \"snmp\"\n", "", "lacks `protocol`"),
    ("address = \"10.0.0.1:161\"", "address = \"10.0.0.1:99999\"", "is not an address"),
    ("address = \"10.0.0.1:161\"\n", "", "lacks `address`"),
    ("credentials = \"tor1.snmp\"", "credentials = \"none\"", "none"),
    ("credentials = \"tor1.snmp\"\n", "", "lacks `credentials`"),
    ("timeout = \"2 s\"", "timeout = \"120 min\"", "from 100 ms to 1 min"),
    ("rate = \"10 Gbit/s\"", "rate = \"10\"", "10"),
    ("rate = \"10 Gbit/s\"", "rate = \"0 bit/s\"", "more than zero"),
    ("marks = true", "marks = 1", "`true` or `false`"),
    ("marks = true", "mark = true", "did you mean `marks`"),
    ("listen = \"0.0.0.0:6653\"\npeers = [\"10.0.0.2\"]", "", "lacks `address` or `listen`"),
    ("listen = \"0.0.0.0:6653\"", "listen = \"tor2:6653\"", "is not an address and a port"),
    ("listen = \"0.0.0.0:6653\"", "listen = \"0.0.0.0:6653\"\naddress = \"10.0.0.2\"", "exclude each other"),
    ("peers = [\"10.0.0.2\"]", "peers = [\"tor2\"]", "is not an IP address"),
    ("datapath = \"00000000000000a1\"", "datapath = \"tor2\"", "is not the number of a datapath"),
    ("racks = [\"r2\"]", "racks = [\"r3\"]", "has no rack `r3`"),
    ("protocol = \"gnmi\"", "protocol = \"gmni\"", "did you mean `gnmi`"),
    ("address = \"10.0.0.5\"", "address = \"http://10.0.0.5\"", "is not an address"),
    ("address = \"10.0.0.5\"\n", "", "lacks `address`"),
    ("credentials = \"tor4.gnmi\"", "credentials = \"tor1.snmp\"", "lacks `user`"),
    ("credentials = \"tor4.gnmi\"", "credential = \"tor4.gnmi\"", "did you mean `credentials`"),
    ("encoding = \"json\"", "encoding = \"jsn\"", "did you mean `json`"),
    ("queues = false", "queues = \"no\"", "`true` or `false`"),
    ("ca = \"ca.pem\", ", "", "lacks `ca`"),
    ("ca = \"ca.pem\"", "ca = \"none.pem\"", "none.pem"),
    ("key = \"c.key\"", "key = \"none.key\"", "none.key"),
    (", key = \"c.key\"", "", "`certificate` without `key`"),
    ("certificate = \"c.pem\", ", "", "`key` without `certificate`"),
    (
        "tls = { ca = \"ca.pem\", name = \"tor4.example\", certificate = \"c.pem\", key = \"c.key\" }",
        "",
        "through TLS only",
    ),
    ("protocol = \"sflow\"", "protocol = \"flow\"", "did you mean `sflow`"),
    ("window = \"30 s\"", "window = \"120 min\"", "from 1 s to 1 h"),
    ("address = \"10.0.0.4\"\nports = [1, 2]", "address = \"10.0.0.4\"", "counts all packets, among several"),
    ("sampling = 400", "sampling = 0", "from 1 to"),
];

fn place() -> Place {
    let place = Place::new();
    let files = [
        ("tor1.snmp", "community = \"public\"\n"),
        ("tor4.gnmi", "user = \"opentcp\"\npassword = \"secret\"\n"),
        ("ca.pem", ""),
        ("c.pem", ""),
        ("c.key", ""),
    ];
    for (name, text) in files {
        place.write(name, text);
        fs::set_permissions(place.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    place
}

#[test]
fn a_good_configuration_and_the_one_that_is_shipped_are_right() {
    let place = place();
    place.write("c.toml", GOOD);
    let done = place.succeed(&["collect", "check", "c.toml"]);
    assert_eq!(done.stdout, "c.toml: 3 switches, 1 receivers of flow export\n");
    let shipped = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/collect.toml")).unwrap();
    place.write("shipped.toml", &shipped);
    place.succeed(&["collect", "check", "shipped.toml"]);
}

#[test]
fn a_mistake_is_one_located_error() {
    for (good, bad, message) in BAD {
        let place = place();
        assert!(GOOD.contains(good), "{good}");
        place.write("c.toml", &GOOD.replacen(good, bad, 1));
        let done = place.opentcp(&["collect", "check", "c.toml"]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{bad}: {}", done.stderr);
        assert_eq!(done.stderr.matches("c.toml:").count(), 1, "one place for {bad}: {}", done.stderr);
        assert!(done.stderr.replace('\n', " ").contains(message), "{bad} lacks `{message}`: {}", done.stderr);
    }
}

#[test]
fn a_configuration_that_collects_nothing_or_is_no_toml_is_refused() {
    let place = place();
    let cases = [
        ("name = \"c\"\n", "nothing is collected"),
        ("[[switch]\n", "not TOML"),
        (
            "[[flows]]\nprotocol = \"sflow\"\nlisten = \"[::]:1\"\n[[flows.exporter]]\naddress = \"::1\"\n",
            "without racks",
        ),
        ("switch = 7\n", "a list of tables"),
    ];
    for (text, message) in cases {
        place.write("c.toml", text);
        let done = place.opentcp(&["collect", "c.toml", "--once"]);
        assert_eq!(done.code, Some(2), "{text}");
        assert!(done.stderr.contains(message) && done.stderr.contains("c.toml:1:"), "{text}: {}", done.stderr);
    }
    let done = place.opentcp(&["collect", "check", "missing.toml"]);
    assert!(done.code == Some(2) && done.stderr.contains("missing.toml"), "{}", done.stderr);
}
