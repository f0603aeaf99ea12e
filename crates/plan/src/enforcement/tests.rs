//! Where a scenario's enforcers are, and what their rules are for.

use super::*;

fn enforcements(enforcers: &str) -> (Vec<Enforcement>, Topology) {
    let text = format!(
        "duration = \"1 s\"\n[network]\ntopology = {{ dumbbell = {{ pairs = 2 }} }}\n[[traffic]]\nidle = {{ flows = 1 }}\n{enforcers}"
    );
    let scenario = testkit::scenario(&text);
    let topology = crate::topology(&scenario).expect("a checked scenario has a network");
    (Enforcement::of(&scenario, &topology).expect("its algorithms are built in"), topology)
}

#[test]
fn a_rule_for_a_host_is_for_its_address() {
    let rules = "[[enforcer]]\nat = \"s1\"\nflows = 7\nbuffer = \"2 MB\"\n[[enforcer.rule]]\ncc = \"bbr\"\nsrc = \"left2\"\ndst = \"10.64.0.0/30\"\n\
                 [[enforcer.rule]]\ncc = \"cubic\"\nport = 5001\n";
    let (enforcements, _) = enforcements(rules);
    let [enforcement] = &enforcements[..] else { panic!("there is one") };
    let [first, second] = &enforcement.rules[..] else { panic!("it has two rules") };
    // left2 is the second host: 10.64.0.2
    assert_eq!(first.servers.map(|prefix| prefix.to_string()).as_deref(), Some("10.64.0.2/32"));
    assert_eq!(first.clients.map(|prefix| prefix.to_string()).as_deref(), Some("10.64.0.0/30"));
    assert!(matches!(&first.treatment, Treatment::Enforce(config) if config.algorithm.name() == "bbr"));
    assert_eq!((second.servers, second.clients, second.port), (None, None, Some(5001)));
    assert_eq!((enforcement.limits.flows, enforcement.limits.buffer_bytes), (7, 2_000_000));
    assert_eq!(enforcement.prefix, "enforcer");
}

#[test]
fn of_several_enforcers_each_counts_under_its_nodes_name() {
    let rule = "[[enforcer.rule]]\ncc = \"bbr\"\n";
    let (enforcements, topology) =
        enforcements(&format!("[[enforcer]]\nat = \"s1\"\n{rule}[[enforcer]]\nat = \"left1\"\n{rule}"));
    let names: Vec<&str> = enforcements.iter().map(|one| one.prefix.as_str()).collect();
    assert_eq!(names, ["enforcer.s1", "enforcer.left1"]);
    assert_eq!(topology.node(enforcements[1].at).name, "left1");
}

#[test]
fn at_a_host_only_what_it_sends_is_enforced_and_at_a_switch_all_that_passes() {
    let at = |node: &str| {
        let (mut enforcements, topology) =
            enforcements(&format!("[[enforcer]]\nat = \"{node}\"\n[[enforcer.rule]]\ncc = \"bbr\"\n"));
        (enforcements.remove(0), topology)
    };
    let (host, topology) = at("left2");
    // hosts are numbered from 0: left2 is number 1
    assert_eq!(host.direction(&topology, 1, true), Some(Direction::Out));
    assert_eq!(host.direction(&topology, 1, false), Some(Direction::In), "the acknowledgments that come back");
    assert_eq!(host.direction(&topology, 0, true), None);
    let (switch, topology) = at("s1");
    assert_eq!(switch.direction(&topology, 0, true), Some(Direction::Out));
    assert_eq!(switch.direction(&topology, 3, false), Some(Direction::In));
}
