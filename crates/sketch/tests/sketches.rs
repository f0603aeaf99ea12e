//! Pictures and texts of small and of large networks.

use scenario::Scenario;
use sketch::Sketch;
use testkit::scenario;

/// A network with this shape, and more.
fn network(shape: &str, more: &str) -> Scenario {
    scenario(&format!(
        "duration = \"1 s\"\n[network]\ntopology = {{ {shape} }}\nrate = \"1 Gbit/s\"\ndelay = \"1 us\"\n{more}"
    ))
}

const PAIRS: &str = "[[traffic]]\nrandom_pairs = { flows = 4, bulk = {} }\n";

fn count(text: &str, piece: &str) -> usize {
    text.matches(piece).count()
}

#[test]
fn four_hosts_have_a_row_each_and_senders_and_receivers_are_marked() {
    let scenario = network(
        "star = { hosts = 4 }",
        "[[network.failure]]\nlink = \"h2-s1\"\nat = \"500 ms\"\n[[traffic]]\nincast = { senders = 3, receiver = \"h4\", bytes = \
         \"1 kB\", repeat = 2 }\n[[traffic]]\nbulk = { from = \"h1\", to = \"h3\" }\n",
    );
    let page = Sketch::of(&scenario).expect("a network").page();
    for host in ["h1", "h2", "h3", "h4"] {
        assert_eq!(count(&page, &format!(">{host}</text>")), 1, "{host}");
    }
    // three dots and an arrowhead of the first lane, one and one of the second
    assert_eq!((count(&page, "<circle class=\"f0\" cx=\"2"), count(&page, "<path class=\"f0\"")), (3, 1), "{page}");
    assert_eq!((count(&page, "<circle class=\"f1\" cx=\"2"), count(&page, "<path class=\"f1\"")), (1, 1), "{page}");
    assert_eq!(count(&page, "class=\"cable fails\""), 1);
}

#[test]
fn a_fat_tree_has_a_row_for_each_edge_switch() {
    let scenario = network("fat_tree = { k = 6 }", PAIRS);
    let sketch = Sketch::of(&scenario).expect("a network");
    let page = sketch.page();
    assert_eq!(count(&page, "class=\"switch\""), 45);
    assert!(page.contains(">h1–h3</text>") && page.contains(">h52–h54</text>"));
    assert_eq!(count(&page, "class=\"both s0\""), 18);
    // 108 cables between switches, 18 rows of hosts
    assert_eq!(count(&page, "class=\"cable\""), 126);
    let text = sketch.text();
    assert!(text.contains("c1–c9\na1–a18\n") && text.contains("e18 ── h52–h54"), "{text}");
}

#[test]
fn switches_of_an_explicit_network_stand_as_far_from_hosts_as_they_are() {
    let explicit = "explicit = { nodes = [{ name = \"a\", kind = \"host\" }, { name = \"b\", kind = \"host\" }, \
                    { name = \"x\", kind = \"switch\" }, { name = \"y\", kind = \"switch\" }, { name = \"z\", kind = \"switch\" }], \
                    links = [{ a = \"a\", b = \"x\" }, { a = \"x\", b = \"y\" }, { a = \"y\", b = \"z\" }, { a = \"z\", b = \"b\" }] }";
    let scenario = network(explicit, PAIRS);
    let text = Sketch::of(&scenario).expect("a network").text();
    assert!(text.contains("\ny\n") && text.contains("x ── a") && text.contains("z ── b"), "{text}");
}

#[test]
fn a_network_too_large_for_a_picture_has_its_numbers() {
    let scenario = network("fat_tree = { k = 20 }", PAIRS);
    let page = Sketch::of(&scenario).expect("a network").page();
    // 500 switches; 2000 hosts
    assert_eq!(count(&page, "<rect"), 0);
    assert!(page.contains("Too many switches") && page.contains("2000 × host"), "{page}");
}

#[test]
fn what_a_user_writes_is_text_in_the_page() {
    let scenario = scenario(
        "title = \"<script>\"\nduration = \"1 s\"\n[network]\ntopology = { star = { hosts = 2 } }\nrate = \"1 Gbit/s\"\n\
         delay = \"1 us\"\n[[traffic]]\nbulk = { from = \"h1\", to = \"h2\" }\n",
    );
    let page = Sketch::of(&scenario).expect("a network").page();
    assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"), "{page}");
}

#[test]
fn data_center_networks_are_drawn_with_what_their_servers_join() {
    let drawn = |shape: &str| {
        let scenario = network(shape, PAIRS);
        let sketch = Sketch::of(&scenario).expect("a network");
        (sketch.page(), sketch.text())
    };
    let (page, text) = drawn("vl2 = { aggregation_ports = 4, intermediate_ports = 4, hosts_per_tor = 5 }");
    // 8 cables of ToRs, 8 of intermediate switches, 20 hosts
    assert_eq!((count(&page, "class=\"switch\""), count(&page, "class=\"cable\"")), (10, 36), "{text}");
    assert!(text.contains("i1–i2\na1–a4\n") && text.contains("t4 ── h16–h20         to a3–a4"), "{text}");
    let (page, text) = drawn("bcube = { n = 4, k = 1, forwarding_delay = \"1 us\" }");
    // a server each: 16 to switches of level 0, 16 to those of level 1
    assert_eq!((count(&page, "class=\"switch\""), count(&page, "class=\"cable\"")), (8, 32), "{text}");
    assert!(text.contains("s5–s8\n") && text.contains("s1 ── h1–h4           to s5–s8"), "{text}");
    let (page, text) = drawn("dcell = { n = 4, l = 1, forwarding_delay = \"1 us\" }");
    assert_eq!((count(&page, "class=\"switch\""), count(&page, "class=\"cable\"")), (5, 30), "{text}");
    assert!(text.contains("s1 ── h1–h4           to s2–s5"), "{text}");
    let (_, text) = drawn("jellyfish = { switches = 8, ports = 5, hosts_per_switch = 2 }");
    assert!(text.contains("s8 ── h15–h16         to "), "{text}");
    let (page, text) = drawn("dragonfly = { hosts_per_switch = 2, switches_per_group = 2, global_ports = 1 }");
    assert_eq!(count(&page, "class=\"cable\""), 3 + 3 + 12, "{text}");
}
