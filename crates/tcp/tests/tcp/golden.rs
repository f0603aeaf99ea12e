//! Reads `golden/linux-6.18-hook-sequences.txt`.

use crate::recorder::Row;
use congestion::sock::TCP_INFINITE_SSTHRESH;

const TEXT: &str = include_str!("../golden/linux-6.18-hook-sequences.txt");

/// The rows of one script.
pub fn rows(script: u32) -> Vec<Row> {
    let head = format!("===== {script} ");
    let rows: Vec<Row> = TEXT
        .lines()
        .skip_while(|line| !line.starts_with(&head))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(row)
        .collect();
    assert!(!rows.is_empty(), "the golden file has no script {script}");
    rows
}

fn row(line: &str) -> Row {
    let mut words = line.split_whitespace().filter(|&word| word != "|").peekable();
    let ms = words.next().expect("a time").parse().expect("a time in milliseconds");
    let side = words.next_if(|&word| word == "S" || word == "R").map_or('S', |word| word.as_bytes()[0] as char);
    let mut column = || match words.next().expect("eight columns") {
        "inf" => TCP_INFINITE_SSTHRESH,
        number => number.parse().expect("a number of segments"),
    };
    let [cwnd, ssthresh, out, sacked, lost, retrans, delivered] = std::array::from_fn(|_| column());
    let hook = words.next().expect("a hook").to_string();
    // the recorder distinguished the sides by a port that a released socket no longer has: the receiver, which has delivered
    // its SYN and its FIN alone, is labelled S there
    let side = if hook == "release" && delivered == 2 { 'R' } else { side };
    let args = words
        .map(|word| match word.split_once('=') {
            Some((key, "max")) => (key.to_string(), i64::MAX),
            Some((key, value)) => (key.to_string(), value.parse().expect("a number")),
            None => ("event".to_string(), word.parse().expect("an event's number")),
        })
        .collect();
    Row { side, ms, cwnd, ssthresh, out, sacked, lost, retrans, delivered, hook, args }
}
