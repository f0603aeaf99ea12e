//! The numbers in a policy's text: where each is written, how, and between which values it is searched.

use document::tree::{Entry, Node, Value, parse_document};
use std::ops::Range;
use units::{Bytes, Rate, Time};

/// Unless a range is given, a number is searched from this part of its value to as many times it.
const REACH: f64 = 4.0;
/// Digits of a number that is tried: more make no difference, and nobody would read them.
const DIGITS: i32 = 2;

/// A number of a policy.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number {
    /// Its key, dotted; the second in the same expression ends with `#2`.
    pub name: String,
    /// Its bytes in the policy's text.
    span: Range<usize>,
    unit: Unit,
    /// As the policy has it, in the smallest unit.
    pub written: f64,
    /// Least and largest value.
    pub range: (f64, f64),
    /// Whether it is searched if the user names none: it is part of a condition, or set.
    pub by_default: bool,
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Whole,
    Decimal,
    Time,
    Rate,
    Bytes,
}

impl Number {
    /// `None` for what has no logarithm.
    fn new(name: String, span: Range<usize>, unit: Unit, written: f64) -> Option<Number> {
        if !(written > 0.0 && written.is_finite()) {
            return None;
        }
        let share = unit == Unit::Decimal && written <= 1.0;
        let most = if share { (written * REACH).min(1.0) } else { written * REACH };
        let range = (unit.round(written / REACH), unit.round(most));
        Some(Number { name, span, unit, written, range, by_default: false })
    }

    fn by_default(mut self) -> Number {
        self.by_default = true;
        self
    }

    /// A value of it as it would be written, in its range.
    pub fn rounded(&self, value: f64) -> f64 {
        self.unit.round(value).clamp(self.range.0, self.range.1)
    }

    /// A value in words, with its unit.
    pub fn words(&self, value: f64) -> String {
        match self.unit {
            Unit::Whole | Unit::Decimal => format!("{value}"),
            Unit::Time => Time::from_ps(value as u64).to_string(),
            Unit::Rate => Rate::from_bps(value as u64).to_string(),
            Unit::Bytes => Bytes::new(value as u64).to_string(),
        }
    }

    /// The text in the file.
    fn text(&self, value: f64) -> String {
        match self.unit {
            // what was written with a point stays a decimal number
            Unit::Decimal if value.fract() == 0.0 => format!("{value:.1}"),
            _ => self.words(value),
        }
    }

    /// Searches it between the two ends of `LOW..HIGH`.
    ///
    /// # Errors
    /// What is wrong with the range.
    pub fn restrict(&mut self, range: &str) -> Result<(), String> {
        let example = || format!("write LOW..HIGH, such as {}..{}", self.words(self.range.0), self.words(self.range.1));
        let (low, high) = range.split_once("..").ok_or_else(example)?;
        let read =
            |text: &str| self.unit.read(text.trim()).ok_or_else(|| format!("`{text}` is no value here; {}", example()));
        let (low, high) = (read(low)?, read(high)?);
        if !(low > 0.0 && low < high) {
            return Err(format!("the range must begin above zero and end above its beginning; {}", example()));
        }
        self.range = (low, high);
        Ok(())
    }
}

impl Unit {
    /// To two digits, and to a whole number of the smallest unit.
    fn round(self, value: f64) -> f64 {
        if value <= 0.0 {
            return 0.0;
        }
        let rounded = format!("{value:.*e}", DIGITS as usize - 1).parse().unwrap_or(value);
        match self {
            Unit::Decimal => rounded,
            _ => f64::max(rounded.round(), 1.0),
        }
    }

    fn read(self, text: &str) -> Option<f64> {
        match self {
            Unit::Whole => text.parse::<u64>().ok().map(|value| value as f64),
            Unit::Decimal => text.parse().ok(),
            Unit::Time => text.parse::<Time>().ok().map(|value| value.as_ps() as f64),
            Unit::Rate => text.parse::<Rate>().ok().map(|value| value.as_bps() as f64),
            Unit::Bytes => text.parse::<Bytes>().ok().map(|value| value.get() as f64),
        }
    }

    /// The unit of a quantity that is written as a text.
    fn of(text: &str) -> Option<(Unit, f64)> {
        [Unit::Time, Unit::Rate, Unit::Bytes].into_iter().find_map(|unit| Some((unit, unit.read(text)?)))
    }
}

/// The policy's text with other values.
pub(super) fn with_values(text: &str, numbers: &[Number], values: &[f64]) -> String {
    let mut places: Vec<(&Number, f64)> = numbers.iter().zip(values.iter().copied()).collect();
    places.sort_by_key(|(number, _)| number.span.start);
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (number, value) in places {
        out.push_str(&text[at..number.span.start]);
        // one that is not changed stays as it is written
        let same = value.total_cmp(&number.written).is_eq();
        out.push_str(&if same { text[number.span.clone()].to_string() } else { number.text(value) });
        at = number.span.end;
    }
    out + &text[at..]
}

/// All numbers of a policy whose text is right, in the order of the file.
pub(super) fn numbers(text: &str) -> Vec<Number> {
    let Ok(root) = parse_document(0, text) else { return Vec::new() };
    let mut found = Vec::new();
    for key in ["period", "lifetime", "smoothing"] {
        found.extend(get(&root, key).and_then(|node| value(key.to_string(), node, text)));
    }
    for constraint in entries(&root, "constraint") {
        let holds = expression(&named("constraint", constraint, "holds"), get(constraint, "holds"), text);
        found.extend(holds.into_iter().map(Number::by_default));
    }
    for rule in entries(&root, "rule") {
        for key in ["when", "until"] {
            let condition = expression(&named("rule", rule, key), get(rule, key), text);
            found.extend(condition.into_iter().map(Number::by_default));
        }
        found.extend(get(rule, "hold").and_then(|node| value(named("rule", rule, "hold"), node, text)));
        for Entry { key, value: node, .. } in get(rule, "set").map_or(&[][..], table) {
            found.extend(value(named("rule", rule, &format!("set.{key}")), node, text).map(Number::by_default));
        }
        let guard = get(rule, "guard");
        let revert = guard.and_then(|guard| get(guard, "revert_if"));
        found.extend(expression(&named("rule", rule, "guard.revert_if"), revert, text));
        let hold = guard.and_then(|guard| get(guard, "hold"));
        found.extend(hold.and_then(|node| value(named("rule", rule, "guard.hold"), node, text)));
    }
    found.sort_by_key(|number| number.span.start);
    found
}

fn table(node: &Node) -> &[Entry] {
    match &node.value {
        Value::Table(entries) => entries,
        _ => &[],
    }
}

fn get<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    table(node).iter().find(|entry| entry.key == key).map(|entry| &entry.value)
}

fn entries<'n>(root: &'n Node, key: &str) -> &'n [Node] {
    match get(root, key).map(|node| &node.value) {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

/// `rule.calm network.when`.
fn named(list: &str, entry: &Node, key: &str) -> String {
    match get(entry, "name").map(|node| &node.value) {
        Some(Value::Text(name)) => format!("{list}.{name}.{key}"),
        _ => format!("{list}.{key}"),
    }
}

/// The number that a key has, with or without a unit.
fn value(name: String, node: &Node, text: &str) -> Option<Number> {
    let span = node.at.span.clone();
    match &node.value {
        Value::Integer(Some(value)) => Number::new(name, span, Unit::Whole, *value as f64),
        Value::Float(value) => Number::new(name, span, Unit::Decimal, *value),
        Value::Text(written) => {
            let (unit, value) = Unit::of(written)?;
            let quote = quote_of(&text[span.clone()]);
            Number::new(name, span.start + quote..span.end - quote, unit, value)
        }
        _ => None,
    }
}

/// How long the quotes around a text are.
fn quote_of(written: &str) -> usize {
    if written.starts_with("\"\"\"") || written.starts_with("'''") { 3 } else { 1 }
}

/// The constants of an expression: numbers, and the quantities in `duration("2 ms")`, `rate("…")` and `size("…")`.
fn expression(name: &str, node: Option<&Node>, text: &str) -> Vec<Number> {
    let Some(node) = node else { return Vec::new() };
    let quote = quote_of(&text[node.at.span.clone()]);
    let (mut at, end) = (node.at.span.start + quote, node.at.span.end - quote);
    let (mut found, mut of) = (Vec::new(), "");
    while at < end {
        let rest = &text[at..end];
        let first = rest.chars().next().unwrap_or(' ');
        let long = |is: fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        if first.is_alphabetic() || first == '_' {
            let length = long(|c| c.is_alphanumeric() || "_.".contains(c));
            of = &rest[..length];
            at += length;
        } else if first.is_ascii_digit() {
            let length = number_length(rest);
            let unit = if rest[..length].contains(['.', 'e', 'E']) { Unit::Decimal } else { Unit::Whole };
            found.extend(unit.read(&rest[..length]).map(|value| (at..at + length, unit, value)));
            at += length;
        } else if first == '"' || first == '\'' {
            // a text; in a basic string of TOML its quotes are escaped
            let inside = &rest[1..];
            let length = inside.find(first).unwrap_or(inside.len());
            let inner = inside[..length].trim_end_matches('\\');
            if matches!(of, "duration" | "rate" | "size")
                && let Some((unit, value)) = Unit::of(inner)
            {
                found.push((at + 1..at + 1 + inner.len(), unit, value));
            }
            at += 1 + length + 1;
        } else {
            at += first.len_utf8();
        }
    }
    let name = |i: usize| if i == 0 { name.to_string() } else { format!("{name}#{}", i + 1) };
    let found = found.into_iter().enumerate();
    found.filter_map(|(i, (span, unit, value))| Number::new(name(i), span, unit, value)).collect()
}

/// How long the number is that a text begins with: digits, a point, an exponent.
fn number_length(text: &str) -> usize {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let length = digits(text);
    let Some(exponent) = text[length..].strip_prefix(['e', 'E']) else { return length };
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    match digits(unsigned) {
        0 => length,
        more => text.len() - unsigned.len() + more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
mode = "enforce"   # 7 of them
period = "60 s"
[[constraint]]
name = "age"
holds = 'links.exists(l, l.age < duration("2 min")) && network.x2 < 3'
[[rule]]
name = "calm 1"
when = "network.max_link_utilization < 0.70 && host.name != \"h9\" && host.srtt < duration(\"1.5 ms\")"
set = { initial_cwnd = 20, cc = "dctcp", rto_min = "2 ms", pacing = true }
guard = { revert_if = "host.drop_rate > 0.001", hold = "60 s" }
"#;

    #[test]
    fn every_number_is_found_where_it_is_written() {
        let numbers = numbers(POLICY);
        let seen: Vec<_> = numbers
            .iter()
            .map(|number| (number.name.as_str(), &POLICY[number.span.clone()], number.by_default))
            .collect();
        let expected = [
            ("period", "60 s", false),
            ("constraint.age.holds", "2 min", true),
            ("constraint.age.holds#2", "3", true),
            ("rule.calm 1.when", "0.70", true),
            ("rule.calm 1.when#2", "1.5 ms", true),
            ("rule.calm 1.set.initial_cwnd", "20", true),
            ("rule.calm 1.set.rto_min", "2 ms", true),
            ("rule.calm 1.guard.revert_if", "0.001", false),
            ("rule.calm 1.guard.hold", "60 s", false),
        ];
        assert_eq!(seen, expected);
        assert_eq!(numbers[3].range, (0.17, 1.0), "a share ends at one");
        assert_eq!(numbers[5].range, (5.0, 80.0));
    }

    #[test]
    fn a_number_ends_with_its_exponent() {
        let numbers = numbers("[[rule]]\nname = \"r\"\nwhen = \"0 < a.b && a.b < 2.5e-3 && c > 7 * e1\"\n");
        let seen: Vec<_> = numbers.iter().map(|number| (number.name.as_str(), number.written)).collect();
        assert_eq!(seen, [("rule.r.when#2", 2.5e-3), ("rule.r.when#3", 7.0)], "zero has no range around it");
    }

    #[test]
    fn other_values_change_nothing_else() {
        let numbers = numbers(POLICY);
        let mut values: Vec<f64> = numbers.iter().map(|number| number.written).collect();
        assert_eq!(with_values(POLICY, &numbers, &values), POLICY);
        (values[3], values[4], values[5]) = (1.0, 750e6, 33.0);
        let expected = POLICY.replace("0.70", "1.0").replace("1.5 ms", "750 us").replace("cwnd = 20", "cwnd = 33");
        assert_eq!(with_values(POLICY, &numbers, &values), expected);
    }

    #[test]
    fn a_range_is_in_the_numbers_unit() {
        let mut numbers = numbers(POLICY);
        numbers[6].restrict("1 ms..200 ms").unwrap();
        assert_eq!(numbers[6].range, (1e9, 200e9));
        for (range, words) in
            [("1..200", "`1` is no value here"), ("5 ms", "LOW..HIGH, such as"), ("2 ms..1 ms", "end above")]
        {
            let error = numbers[6].restrict(range).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
