//! Every mistake of a user gets one clear message with its place, exit code 2, and leaves no files.

use crate::common::Place;
use crate::outputs::SMALL;

/// The scenario with one line changed.
fn broken(line: &str, instead: &str) -> String {
    assert!(SMALL.contains(line), "{line}");
    SMALL.replace(line, instead)
}

/// Runs `a.toml`; returns stderr without the frame around the lines.
fn refusal(place: &Place, args: &[&str]) -> String {
    let before = place.entries();
    let done = place.opentcp(args);
    assert_eq!(done.code, Some(2), "{args:?}: {}{}", done.stdout, done.stderr);
    assert_eq!(done.stdout, "", "stdout is for data");
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
    assert_eq!(place.entries(), before, "something was left behind by {args:?}");
    done.stderr
}

#[test]
fn broken_scenarios_are_reported_with_their_place_and_leave_nothing() {
    let topology = "topology = { dumbbell = { pairs = 2 } }";
    let cases = [
        (broken("delay = \"1 ms\"", "dellay = \"1 ms\""), "a.toml:6:1", "did you mean `delay`?"),
        (broken("\"20 Mbit/s\"\ndelay", "\"20 mbps\"\ndelay"), "a.toml:5:8", "has the unit `mbps`"),
        (broken("\"20 Mbit/s\"\ndelay", "\"20 ms\"\ndelay"), "a.toml:5:8", "has the unit `ms`; a rate"),
        (broken(topology, "topology = { fat_tree = { k = 5 } }"), "a.toml:4:31", "k = 5 is odd"),
        (broken("\"20 Mbit/s\"\ndelay", "\"0 Mbit/s\"\ndelay"), "a.toml:5:8", "out of range"),
        (broken("delay = \"1 ms\"", "delay = \"-1 ms\""), "a.toml:6:9", "is negative"),
        (broken("delay = \"1 ms\"", "delay = \"0 s\""), "a.toml:6:9", "from 1 ns"),
        (broken("cc = \"newreno\"", "cc = \"newrneo\""), "a.toml:9:6", "did you mean `newreno`?"),
        (broken("cc = \"newreno\"", "cc = \"mine.c\""), "a.toml:9:6", "cannot read `mine.c`"),
        (broken(topology, "topology = { star = { hosts = 1_000_000_000_000 } }"), "a.toml:4:31", "too many"),
        (broken("packets = 20", "packets = 0"), "a.toml:7:35", "out of range"),
        (
            broken("{ drop_tail = { packets = 20 } }", "{ red = { max_probability = \"130 %\" } }"),
            "a.toml:7:37",
            "`130 %` is out of range",
        ),
        (broken("flows = 4", "flows = -4"), "a.toml:11:26", "out of range"),
        (broken("duration = \"1 s\"", "duration = \"0 s\""), "a.toml:2:12", "out of range"),
        (broken("duration = \"1 s\"", "duration = 1"), "a.toml:2:12", "with its unit"),
        (broken("duration = \"1 s\"", "duration = 1 s"), "a.toml:2:12", "not TOML"),
        (broken("[tcp]", "[tpc]"), "a.toml:8:2", "did you mean `tcp`?"),
        (broken("links = \"50 ms\"", "queues = [\"s1->right9\"]"), "a.toml:13:11", "no node `right9`"),
        (format!("{SMALL}[sweep]\nseed = []\n"), "a.toml:17:8", "an empty sweep"),
        ("duration = \"1 s\"\n".to_string(), "a.toml:1:1", "lacks `network`"),
    ];
    for (text, place_of_mistake, words) in cases {
        let place = Place::with(&text);
        let said = refusal(&place, &["run", "a.toml"]);
        assert!(said.contains(place_of_mistake), "expected {place_of_mistake} in\n{said}");
        // the drawing wraps lines at the terminal's width
        let flat = said.replace("│", " ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "expected {words:?} in\n{said}");
    }
}

#[test]
fn an_algorithm_that_does_not_compile_is_reported_with_the_compilers_message() {
    let place = Place::with(&broken("cc = \"newreno\"", "cc = \"mine.c\""));
    place.write("mine.c", "#include \"tcp.h\"\nint broken(void) { return nothing; }\n");
    let said = refusal(&place, &["run", "a.toml"]);
    assert!(said.contains("mine.c:2:27"), "{said}");
    assert!(said.contains("nothing"), "{said}");
}

#[test]
fn an_algorithm_without_a_table_is_reported_with_what_it_lacks() {
    let place = Place::with(&broken("cc = \"newreno\"", "cc = \"mine.c\""));
    place.write("mine.c", "#include \"tcp.h\"\n");
    let said = refusal(&place, &["run", "a.toml"]);
    assert!(said.contains("CC_OPS"), "{said}");
}

#[test]
fn a_missing_scenario_is_reported() {
    let said = refusal(&Place::new(), &["run", "nothing.toml"]);
    assert!(said.contains("nothing.toml"), "{said}");
}

#[test]
fn a_wrong_override_points_at_the_flag() {
    let said = refusal(&Place::with(SMALL), &["run", "a.toml", "--set", "tcp.cc=vegsa"]);
    assert!(said.contains("--set:1:8") && said.contains("`vegas`"), "{said}");
}

#[test]
fn an_out_that_cannot_be_written_is_reported_before_anything_runs() {
    let place = Place::with(&broken("duration = \"1 s\"", "duration = \"5000 s\""));
    place.write("taken", "a user's file");
    let said = refusal(&place, &["run", "a.toml", "--out", "taken"]);
    assert!(said.contains("taken is not a folder: choose another folder (--out)"), "{said}");
    let said = refusal(&place, &["run", "a.toml", "--out", "taken/below"]);
    assert!(said.contains("taken"), "{said}");
    std::fs::create_dir(place.join("folder")).unwrap();
    std::fs::write(place.join("folder/precious.txt"), "do not replace").unwrap();
    let said = refusal(&place, &["run", "a.toml", "--out", "folder"]);
    assert!(said.contains("is not a results folder"), "{said}");
    let said = refusal(&place, &["reproduce", "cfi16", "--out", "taken"]);
    assert!(said.contains("taken is not a folder"), "{said}");
    assert!(place.join("folder/precious.txt").exists());
}

#[test]
fn flags_and_names_that_do_not_exist_are_reported_with_those_that_do() {
    let place = Place::with(SMALL);
    let cases: [(&[&str], &str); 13] = [
        (&["reproduce", "cfi61"], "'cfi16'"),
        (&["reproduce", "cfi16", "--seeds", "0"], "1..=1000"),
        (&["reproduce", "cfi16", "--seeds", "3", "--set", "seed=4"], "keep one of the two"),
        (&["reproduce", "cfi16", "--set", "sweep.duration=['1 s', '2 s']"], "opentcp run"),
        (&["run", "a.toml", "--jobs", "0"], "--jobs"),
        (&["run", "a.toml", "--backend", "ns3"], "emu"),
        (&["run", "a.toml", "--jsno"], "--json"),
        (&["run", "a.toml", "--slower", "8"], "--slower needs --backend emu"),
        (&["run", "a.toml", "--backend", "emu", "--slower", "65"], "auto, or a whole number from 1 to 64"),
        (&["reproduce", "cfi16", "--slower", "auto"], "--slower needs the study dctcp or opentcp"),
        (&["reproduce", "dctcp", "--backend", "sim", "--slower", "2"], "leave out --backend sim"),
        (&["cc", "check", "nothing.c"], "nothing.c"),
        (&["reprodce"], "`opentcp reproduce`"),
    ];
    for (args, words) in cases {
        let said = refusal(&place, args);
        assert!(said.contains(words), "{args:?}: expected {words:?} in\n{said}");
    }
}
