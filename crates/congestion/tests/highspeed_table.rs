//! The table of cc/highspeed.c, computed from the formulas of RFC 3649.

use std::fmt::Write as _;

const SOURCE: &str = include_str!("../../../cc/highspeed.c");

const LOW_WINDOW: f64 = 38.0;
const HIGH_WINDOW: f64 = 83_000.0;
const HIGH_DECREASE: f64 = 0.1;
/// Where Appendix B's program stops looking.
const LARGEST: u32 = 100_000;

/// Section 5: b falls with log w from 0.5 at Low_Window to High_Decrease at High_Window.
fn b(w: f64) -> f64 {
    let part = (libm::log(w) - libm::log(LOW_WINDOW)) / (libm::log(HIGH_WINDOW) - libm::log(LOW_WINDOW));
    (HIGH_DECREASE - 0.5) * part + 0.5
}

/// Section 5: a(w) = w² p(w) 2 b(w) / (2 − b(w)), with p(w) = 0.078 / w^1.2, which Appendix B writes 1 / (12.8 w^1.2).
fn a(w: f64) -> f64 {
    let p = 1.0 / (12.8 * libm::pow(w, 1.2));
    w * w * p * 2.0 * b(w) / (2.0 - b(w))
}

/// Appendix B: a row at 38, and one wherever a has grown by more than one since the last row.
fn rows() -> Vec<(u32, f64, f64)> {
    let mut rows = vec![(LOW_WINDOW as u32, 1.0, 0.5)];
    for w in LOW_WINDOW as u32..=LARGEST {
        let (w_f, last) = (f64::from(w), rows[rows.len() - 1].1);
        if a(w_f) > last + 1.0 {
            rows.push((w, a(w_f), b(w_f)));
        }
    }
    rows
}

#[test]
fn the_table_is_what_the_formulas_give() {
    let mut right = String::new();
    for five in rows().chunks(5) {
        let line: Vec<String> =
            five.iter().map(|&(w, _, b)| format!("{{ {w}, {} }},", libm::round(b * 65536.0))).collect();
        writeln!(right, "\t{}", line.join(" ")).expect("writing to a string");
    }
    let (_, rest) = SOURCE.split_once("formulas: begin */\n").expect("the table's beginning is marked");
    let (table, _) = rest.split_once("\t/* generated from the formulas: end").expect("the table's end is marked");
    assert!(table == right, "cc/highspeed.c has\n{table}\nand the formulas give\n{right}");
}

#[test]
fn a_row_is_a_whole_step_of_a() {
    let rows = rows();
    assert_eq!(rows.len(), 73);
    for (i, &(w, a, _)) in rows.iter().enumerate() {
        assert_eq!(a as usize, i + 1, "at {w}");
    }
}

/// Rows that Appendix B of the RFC prints: w, a(w), b(w) to two decimals.
#[test]
fn the_formulas_give_what_the_rfc_prints() {
    let rows = rows();
    for (w, a, b) in [(38, 1, "0.50"), (118, 2, "0.44"), (1058, 8, "0.33"), (10661, 30, "0.21"), (84035, 71, "0.10")] {
        let row = rows.iter().find(|row| row.0 == w).expect("a row of the RFC");
        assert_eq!((row.1 as u32, format!("{:.2}", row.2)), (a, b.to_string()), "at {w}");
    }
    assert_eq!(rows[72].0, 94717);
    // section 5: at High_Window the response is p = 10^-7 and b = 0.1
    assert_eq!(format!("{:.2}", b(HIGH_WINDOW)), "0.10");
    let p = 0.078 / libm::pow(HIGH_WINDOW, 1.2);
    assert!((0.95e-7..1.05e-7).contains(&p), "{p}");
}
