//! An operator's rule, as text: what is done with which flows.

use congestion::{Algorithm, check_invariants};
use enforcer::{Rule, Treatment};
use policy::{Prefix, WINDOW_TOTAL};
use std::path::Path;
use std::sync::Arc;
use units::Bytes;

/// The algorithm's name in rules that leave flows untouched.
const UNTOUCHED: &str = "none";
/// The same in rules by which marks are echoed in clients' places.
const ECHO: &str = "echo";
/// The same in rules by which data is marked.
const MARK: &str = "mark";

/// Parses a rule: an algorithm, then conditions: `bbr clients=198.51.100.0/24 port=443`. `say` gets warnings about an algorithm in a file.
///
/// # Errors
/// What is wrong with it.
pub fn rule(text: &str, say: &mut dyn FnMut(&str)) -> Result<Rule, String> {
    let mut words = text.split_whitespace();
    let name = words.next().ok_or("name an algorithm")?;
    let treatment = match name {
        UNTOUCHED => Treatment::Pass,
        ECHO => Treatment::Echo,
        MARK => Treatment::Mark(0.0),
        name => Treatment::Enforce(Arc::new(tcp::Config::linux(algorithm(name, say)?))),
    };
    let mut rule = Rule { servers: None, clients: None, port: None, dscp: None, treatment, window_total: None };
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not KEY=VALUE"))?;
        let prefix = || value.parse::<Prefix>().map(Some).map_err(|error| error.to_string());
        match key {
            "share" if name == MARK => rule.treatment = Treatment::Mark(share(value)?),
            "servers" => rule.servers = prefix()?,
            "clients" => rule.clients = prefix()?,
            "port" => rule.port = Some(value.parse().ok().filter(|port| *port > 0).ok_or("a port is from 1 to 65535")?),
            "dscp" => rule.dscp = Some(value.parse().ok().filter(|dscp| *dscp < 64).ok_or("a DSCP is from 0 to 63")?),
            "window_total" => rule.window_total = Some(total(value)?),
            "share" => return Err("only `mark` has a `share`: write mark share=1%".to_string()),
            _ => return Err(format!("`{key}` is not known; a rule has servers, clients, port, dscp and window_total")),
        }
    }
    if !matches!(rule.treatment, Treatment::Enforce(_)) && rule.window_total.is_some() {
        return Err(format!("`{name}` enforces no window, so such flows have no `window_total`"));
    }
    if matches!(rule.treatment, Treatment::Mark(0.0)) {
        return Err("say which share of packets is marked: mark share=1%".to_string());
    }
    Ok(rule)
}

/// A share of packets.
fn share(value: &str) -> Result<f64, String> {
    let percent = value.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
    percent
        .map(|percent| percent / 100.0)
        .ok_or("a share is more than 0 % and at most 100 %, as in share=1%".to_string())
}

/// A total of windows.
fn total(value: &str) -> Result<Bytes, String> {
    let (least, most) = (Bytes::new(WINDOW_TOTAL.0), Bytes::new(WINDOW_TOTAL.1));
    let bytes = value.parse().ok().filter(|bytes| (least..=most).contains(bytes));
    bytes.ok_or_else(|| format!("a window_total is from {least} to {most}, as in window_total=130kB"))
}

/// A built-in algorithm, or one in a file.
fn algorithm(name: &str, say: &mut dyn FnMut(&str)) -> Result<&'static Algorithm, String> {
    if Path::new(name).extension().is_some_and(|extension| extension == "c") {
        let algorithm = Algorithm::load(Path::new(name)).map_err(|error| error.to_string())?;
        if let Err(violation) = check_invariants(algorithm) {
            say(&format!("warning: {violation}\n`opentcp cc check {name}` explains"));
        }
        return Ok(algorithm);
    }
    built_in(name).map_err(|why| format!("{why}, and files of your own (*.c)"))
}

/// A built-in algorithm.
pub fn built_in(name: &str) -> Result<&'static Algorithm, String> {
    Algorithm::named(name).ok_or_else(|| {
        let names: Vec<&str> = Algorithm::builtins().iter().map(Algorithm::name).collect();
        format!("there is no algorithm `{name}` in the enforcer: it runs {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Result<Rule, String> {
        super::rule(text, &mut |line| panic!("{line}"))
    }

    #[test]
    fn a_rule_says_which_algorithm_for_which_flows() {
        let all = rule("bbr servers=10.0.0.0/8 clients=2001:db8::/32 port=443 dscp=46").expect("a rule");
        assert!(matches!(all.treatment, Treatment::Enforce(config) if config.algorithm.name() == "bbr"));
        assert_eq!(all.servers, "10.0.0.0/8".parse().ok());
        assert_eq!(all.clients, "2001:db8::/32".parse().ok());
        assert_eq!((all.port, all.dscp), (Some(443), Some(46)));
        assert_eq!(all.window_total, None);
        let total = rule("cubic clients=10.0.0.7/32 window_total=130kB").expect("a rule").window_total;
        assert_eq!(total, Some(Bytes::new(130_000)));
        assert!(rule("none port=22").is_ok_and(|rule| matches!(rule.treatment, Treatment::Pass)));
        assert!(rule("echo clients=10.0.0.0/8").is_ok_and(|rule| matches!(rule.treatment, Treatment::Echo)));
        let marks = rule("mark share=2.5% port=5001").map(|rule| rule.treatment);
        assert!(matches!(marks, Ok(Treatment::Mark(share)) if (share - 0.025).abs() < 1e-12));
        for (text, why) in [
            ("", "name an algorithm"),
            ("bbr2", "no algorithm `bbr2`"),
            ("bbr port=0", "1 to 65535"),
            ("bbr port", "KEY=VALUE"),
            ("bbr dscp=64", "0 to 63"),
            ("bbr window_total=many", "as in window_total=130kB"),
            ("bbr window_total=1B", "from "),
            ("none window_total=130kB", "enforces no window"),
            ("echo window_total=130kB", "enforces no window"),
            ("mark", "mark share=1%"),
            ("mark share=0%", "more than 0 %"),
            ("mark share=1", "as in share=1%"),
            ("bbr host=h1", "`host` is not known"),
            ("bbr share=1%", "only `mark` has a `share`"),
            ("bbr servers=10.0.0.0/33", "33"),
        ] {
            let error = rule(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
