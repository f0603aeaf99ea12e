use super::*;

/// What is wrong with two switches that connect to us, each with these keys.
fn problems(one: &str, other: &str) -> Vec<String> {
    let switch = |name: &str, more: &str| {
        format!("[[switch]]\nname = \"{name}\"\nprotocol = \"openflow\"\nlisten = \"127.0.0.1:6653\"\n{more}\n")
    };
    let text = switch("a", one) + &switch("b", other);
    let Err(diagnostic) = Config::parse("c.toml", &text) else { return Vec::new() };
    diagnostic.problems().iter().map(|problem| problem.message.clone()).collect()
}

#[test]
fn a_port_that_is_ignored_has_no_other_settings() {
    let switch = |port: &str| {
        let text = format!(
            "[[switch]]\nname = \"a\"\nprotocol = \"openflow\"\naddress = \"192.0.2.1\"\n[switch.ports]\nbr0 = {{ {port} }}\n"
        );
        Config::parse("c.toml", &text).map(|config| config.switches[0].ports["br0"].ignore)
    };
    assert!(switch("ignore = true").unwrap());
    assert!(!switch("rate = \"1 Gbit/s\"").unwrap());
    let refused = switch("ignore = true, end = \"h1\"").unwrap_err();
    assert!(refused.problems()[0].message.contains("of a port that is ignored"), "{refused:?}");
}

#[test]
fn switches_that_connect_to_one_address_are_distinguished() {
    let apart = |one, other| assert_eq!(problems(one, other), [""; 0]);
    apart("peers = [\"192.0.2.1\"]", "peers = [\"192.0.2.2\"]");
    apart("datapath = 1", "datapath = 2");
    apart("datapath = 1", "");
    let same = |one, other| {
        let found = problems(one, other);
        assert!(matches!(&found[..], [one] if one.contains("nothing tells `a` and `b` apart")), "{found:?}");
    };
    same("", "");
    same("", "peers = [\"192.0.2.2\"]");
    same("datapath = 1\npeers = [\"192.0.2.1\"]", "datapath = 1\npeers = [\"192.0.2.2\", \"192.0.2.1\"]");
    let none = problems("peers = []", "peers = [\"192.0.2.2\"]");
    assert!(matches!(&none[..], [one] if one.contains("no switch could connect")), "{none:?}");
}
