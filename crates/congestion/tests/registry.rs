//! The built-in algorithms' descriptions.

use congestion::{Algorithm, Category, CongestionOps};

/// The study's Table 1: protocol, target environment, category.
#[test]
fn algorithms_declare_what_the_studys_table_says() {
    use Category::{DelayBased, Hybrid, LossBased};
    for (name, title, environment, category) in [
        ("newreno", "NewReno", "wired, low bandwidth, small delay", LossBased),
        ("vegas", "Vegas", "wired, low bandwidth, small delay", DelayBased),
        ("highspeed", "HighSpeed", "high BDP", LossBased),
        ("scalable", "Scalable", "high-speed WANs", LossBased),
        ("westwood", "Westwood+", "wireless networks with high number of random losses", LossBased),
        ("bic", "BIC", "high BDP", LossBased),
        ("yeah", "YeAH", "high BDP", Hybrid),
    ] {
        let algorithm = Algorithm::named(name).expect("a file of cc/");
        assert_eq!((algorithm.title(), algorithm.environment()), (title, environment));
        assert_eq!(algorithm.category(), category, "{name}");
        assert!(algorithm.measures_loss(), "{name} reduces on loss");
        assert_eq!(algorithm.measures_delay(), category != LossBased, "{name}");
        assert!(!algorithm.measures_ecn() && !algorithm.measures_model() && !algorithm.needs_ecn(), "{name}");
    }
}

#[test]
fn every_algorithm_names_its_source_and_only_those_that_need_marks_negotiate_them() {
    let builtins = Algorithm::builtins();
    assert_eq!(builtins.len(), 13);
    assert!(builtins.is_sorted_by_key(Algorithm::name));
    for algorithm in builtins {
        assert!(!algorithm.title().is_empty() && !algorithm.environment().is_empty(), "{}", algorithm.name());
        assert!(!algorithm.reference().is_empty(), "{}", algorithm.name());
        assert_eq!(algorithm.needs_ecn(), algorithm.measures_ecn(), "{}", algorithm.name());
    }
}

#[test]
fn names_are_found_and_misspelt_ones_are_not() {
    assert_eq!(Algorithm::named("yeah").expect("built in").title(), "YeAH");
    assert!(Algorithm::named("YeAH").is_none());
}

#[test]
fn a_table_without_a_required_hook_is_refused() {
    let empty: &'static CongestionOps = Box::leak(Box::default());
    assert_eq!(Algorithm::from_ops(empty).expect_err("empty"), "its table of operations lacks ssthresh");
}
