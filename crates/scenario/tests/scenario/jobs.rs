//! Jobs: correct ones, wrong values, and wrong files.

use crate::common::{Memory, one, parse, parse_with};
use scenario::{Graph, TrafficKind, Work};

fn text(line: &str) -> String {
    format!("duration = \"1 s\"\n[network]\ntopology = {{ star = {{ hosts = 4 }} }}\n[[traffic]]\n{line}\n")
}

#[test]
fn a_wrong_job_is_refused_where_it_is_wrong() {
    let cases = [
        ("job = {}", "5:7 this job does not say what its tasks are"),
        (
            "job = { all_to_all = { bytes = \"1 kB\" }, pipeline = { bytes = \"1 kB\", batches = 1 } }",
            "this job is already `all_to_all`",
        ),
        ("job = { allreduce = { bytes = \"0 B\" } }", "5:31 `0 B` is out of range"),
        ("job = { allreduce = { bytes = \"1 kB\", algorithm = \"star\" } }", "`star` is not known here"),
        ("job = { mapreduce = { mappers = 0, reducers = 1, bytes = \"1 kB\" } }", "5:33 `0` is out of range"),
        ("job = { all_to_all = { bytes = \"1 kB\" }, hosts = [\"h1\"] }", "this job needs 2 hosts, and there are 1"),
        ("job = { pipeline = { bytes = \"1 kB\", batches = 1000000 } }", "this job has 8000000 tasks on 4 hosts"),
        (
            "job = { all_to_all = { bytes = \"1 kB\" }, stragglers = { probability = \"5 %\", factor = 0.5 } }",
            "`0.5` is out of range: from 1 to 1000",
        ),
        ("job = { file = \"job.txt\" }", "`job.txt` is not a job"),
        ("job = { file = \"none.json\" }", "cannot read `none.json`"),
        ("incast = { senders = 2, bytes = \"1 kB\", deadline = \"0 s\" }", "5:52 `0 s` is out of range"),
    ];
    for (line, expected) in cases {
        let error = parse(&text(line), &[]).expect_err(line);
        let found: Vec<String> =
            error.problems().iter().map(|p| format!("{}:{} {}", p.line, p.column, p.message)).collect();
        assert!(found.iter().any(|found| found.contains(expected)), "{line}: expected {expected}, found {found:#?}");
    }
}

#[test]
fn a_mistake_in_a_file_points_into_that_file() {
    let task = |task: &str| {
        format!(
            "{{ \"ranks\": 2, \"tasks\": [\n  {{ \"id\": \"a\", \"rank\": 0, \"compute\": \"1 ms\" }},\n  {task} ] }}\n"
        )
    };
    let json = [
        ("{ \"tasks\": [] }".to_string(), "1 `ranks`, the number of hosts, comes before `tasks`"),
        ("{ \"ranks\": 2, \"tasks\": [] }".to_string(), "1 there is no task"),
        (task("{ \"id\": \"a\", \"rank\": 1, \"compute\": \"1 ms\" }"), "3 task `a`: a task above has this id"),
        (
            task("{ \"id\": \"b\", \"rank\": 2, \"compute\": \"1 ms\" }"),
            "3 task `b`: there is no rank 2: ranks are from 0 to 1",
        ),
        (task("{ \"id\": \"b\", \"rank\": 1, \"compute\": \"1\" }"), "3 task `b`: `compute` is a time"),
        (
            task("{ \"id\": \"b\", \"from\": 1, \"to\": 1, \"send\": \"1 kB\" }"),
            "3 task `b`: rank 1 would send to itself",
        ),
        (task("{ \"id\": \"b\", \"from\": 1, \"to\": 0, \"send\": \"0 B\" }"), "3 task `b`: `send` is a size"),
        (task("{ \"id\": \"b\", \"rank\": 1 }"), "3 task `b`: a task has `rank` and `compute`, or"),
        (
            task("{ \"id\": \"b\", \"rank\": 1, \"compute\": \"1 ms\", \"after\": [\"c\"] }"),
            "3 task `b`: there is no `c` above it",
        ),
        (
            task(
                "{ \"id\": \"b\", \"rank\": 5, \"compute\": \"1 ms\" },\n\n  { \"id\": \"c\", \"rank\": 0, \"compute\": \"1 ms\" }",
            ),
            "3 task `b`: there is no rank 5",
        ),
        (task("{ \"id\": \"b\", \"rnk\": 1 }"), "3 unknown field `rnk`"),
        (task("{ \"id\": "), "3 expected value"),
    ];
    let goal = [
        ("rank 0 {\n}", "1 the first line is `num_ranks N`"),
        ("", "1 the first line is `num_ranks N`"),
        ("num_ranks 0", "1 the number of ranks is from 1 to"),
        ("num_ranks 2\nrank 2 {\n}", "2 there is no rank `2`"),
        ("num_ranks 2\nrank 0 {\n}\nrank 0 {\n}", "4 a second rank 0"),
        ("num_ranks 2\nrank 0 {\nl1: calc 5", "3 the last rank has no `}`"),
        ("num_ranks 2\nrank 0 {\n}\n", "1 no rank has an operation"),
        ("num_ranks 2\nrank 0 {\nl1: calc x\n}", "3 `x` is not a number of nanoseconds"),
        ("num_ranks 2\nrank 0 {\nl1: put 1b to 1\n}", "3 an operation is"),
        ("num_ranks 2\nrank 0 {\nl1: send 0b to 1\n}", "3 `0b` is not a number of bytes"),
        ("num_ranks 2\nrank 0 {\nl1: send 1b to 0\n}", "3 rank 0 would send to itself"),
        ("num_ranks 2\nrank 0 {\nl1: send 1b to 1 tag\n}", "3 `tag` has no number"),
        ("num_ranks 2\nrank 0 {\nl1: calc 1\nl1: calc 2\n}", "4 a second `l1` in rank 0"),
        ("num_ranks 2\nrank 0 {\nl1: calc 1\nl1 requires l2\n}", "4 there is no `l2` above"),
        ("num_ranks 2\nrank 0 {\nl1: send 1b to 1 tag 3\n}", "3 this send has no counterpart"),
        ("num_ranks 2\nrank 0 {\nl1: recv 1b from 1 tag 3\n}", "3 this recv has no counterpart"),
        (
            "num_ranks 1\nrank 0 {\nl1: calc 1\nl2: calc 1\nl1 requires l2\nl2 requires l1\n}",
            "this operation waits for itself",
        ),
    ];
    let goal = goal.into_iter().map(|(text, expected)| ("j.goal", text.to_string(), expected));
    for (name, file, expected) in json.into_iter().map(|(text, expected)| ("j.json", text, expected)).chain(goal) {
        let error = parse_with(&text(&format!("job = {{ file = \"{name}\" }}")), &[], &Memory::of(&[(name, &file)]));
        let error = error.expect_err(&file);
        let problem = &error.problems()[0];
        assert_eq!(problem.file, name, "{file}");
        let found = format!("{} {}", problem.line, problem.message);
        assert!(found.contains(expected), "{file}\nexpected {expected}\nfound {found}");
    }
    let wide = ("j.goal", "num_ranks 5\nrank 0 {\nl1: calc 1\n}\n");
    let error = parse_with(&text("job = { file = \"j.goal\" }"), &[], &Memory::of(&[wide])).unwrap_err();
    assert!(error.problems()[0].message.contains("this job needs 5 hosts, and there are 4"), "{error}");
}

#[test]
fn a_job_written_out_is_the_same_job() {
    let lines = [
        "job = { mapreduce = { mappers = 2, reducers = 3, bytes = \"1 MB\", map = \"1 ms\", waves = 2 }, repeat = 2 }",
        "job = { allreduce = { bytes = \"1 MB\" }, connections = \"reuse\", think = { exponential = \"1 ms\" } }",
        "job = { pipeline = { bytes = \"1 MB\", batches = 2 }, stragglers = { probability = \"5 %\", factor = 2 } }",
        "job = { all_to_all = { bytes = \"1 MB\" }, hosts = [\"h2\", \"h1\"] }",
        "incast = { senders = 2, bytes = \"1 kB\", deadline = \"3 ms\" }",
    ];
    for line in lines {
        let first = one(&text(line), &[]);
        assert_eq!(one(&first.to_toml(), &[]), first, "{line}");
    }
    let goal = ("a/j.goal", "num_ranks 1\nrank 0 {\nl1: calc 1\n}\n");
    let loaded = parse_with(&text("job = { file = \"a/j.goal\" }"), &[], &Memory::of(&[goal])).unwrap();
    let bundle = loaded.runs[0].scenario.bundle();
    assert_eq!(
        bundle.files.iter().map(|(name, text)| (name.as_str(), &**text)).collect::<Vec<_>>(),
        [("files/j.goal", goal.1)]
    );
    let files = Memory::of(&[("files/j.goal", goal.1)]);
    let again = parse_with(&bundle.toml, &[], &files).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.runs[0].scenario.bundle(), bundle);
}

#[test]
fn generators_send_what_their_formulas_say() {
    let of = |line: &str| {
        let scenario = one(&text(line), &[]);
        let TrafficKind::Job(job) = &scenario.traffic[0].kind else { panic!("it is a job") };
        let graph = job.shape.graph(4);
        let sent: Vec<u64> = graph
            .tasks
            .iter()
            .filter_map(|task| match task.work {
                Work::Send { bytes, .. } => Some(bytes.get()),
                Work::Compute { .. } => None,
            })
            .collect();
        (sent.len() as u64, sent.iter().sum::<u64>())
    };
    // n hosts, S bytes: a ring sends 2 (n - 1) n messages of S / n, a tree 2 (n - 1) of S
    assert_eq!(of("job = { allreduce = { bytes = \"4 MB\" } }"), (24, 24_000_000));
    assert_eq!(of("job = { allreduce = { algorithm = \"tree\", bytes = \"4 MB\" } }"), (6, 24_000_000));
    assert_eq!(of("job = { all_to_all = { bytes = \"1 MB\" } }"), (12, 12_000_000));
    assert_eq!(of("job = { pipeline = { bytes = \"1 MB\", batches = 5 } }"), (15, 15_000_000));
    // six pairs, of which mapper 0 and reducer 2 are on one of the 4 hosts
    assert_eq!(of("job = { mapreduce = { mappers = 2, reducers = 3, bytes = \"6 MB\" } }"), (5, 5_000_000));
}

proptest::proptest! {
    #[test]
    fn any_text_is_a_job_or_an_error(text in "(num_ranks 2\n)?(rank [012] \\{\n)?([lcalsend:recvq0-9b \\{\\}/*]{0,16}\n){0,6}") {
        let _ = (Graph::from_goal(&text), Graph::from_json(&text));
    }
}
