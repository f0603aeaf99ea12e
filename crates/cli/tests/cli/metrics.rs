//! The reference of metrics in the documentation is that of the code. `make reference` writes it.

use metrics::{Metric, reference};
use std::fs;
use std::path::Path;

const TABLES: [(&str, &[&Metric]); 5] = [
    ("common", &metrics::COMMON),
    ("oracle", &oracle::METRICS),
    ("agent", &agent::METRICS),
    ("enforcer", &enforced::METRICS),
    ("collector", &collect::watch::METRICS),
];

#[test]
fn the_reference_has_every_metric() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/monitor.md");
    let text = fs::read_to_string(&path).unwrap();
    let mut right = text.clone();
    for (name, metrics) in TABLES {
        let begin = format!("<!-- metrics: {name} -->\n");
        let from = right.find(&begin).unwrap_or_else(|| panic!("docs/monitor.md lacks {begin}")) + begin.len();
        let to = from + right[from..].find("<!-- end -->").expect("each table ends");
        right.replace_range(from..to, &reference(metrics));
    }
    if std::env::var_os("OPENTCP_WRITE_DOCS").is_some() {
        fs::write(&path, &right).unwrap();
        return;
    }
    assert!(text == right, "docs/monitor.md is not what the code says; run `make reference`");
}

#[test]
fn names_follow_the_conventions_and_no_label_grows_with_the_traffic() {
    // each is bounded by a policy, a configuration or a list in the code
    let bounded = [
        "algorithm",
        "class",
        "constraint",
        "event",
        "kind",
        "link",
        "protocol",
        "quantity",
        "reason",
        "result",
        "rule",
        "side",
        "state",
        "switch",
        "version",
    ];
    for (table, metrics) in TABLES {
        for metric in metrics {
            let name = metric.full_name();
            let prefix = format!("opentcp_{table}_");
            assert!(table == "common" || name.starts_with(&prefix), "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert!(!metric.name.ends_with("_total") && !name.contains("_ms") && metric.help.ends_with('.'), "{name}");
            assert!(metric.labels.iter().all(|label| bounded.contains(label)), "{name}: {:?}", metric.labels);
        }
    }
}
