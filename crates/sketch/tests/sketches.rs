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
