//! A file of another kind, given in place of a scenario or a policy: what it is, and which command takes it.

use std::path::Path;

/// What this text is instead of a scenario, in two lines; `name` is its file's.
pub(crate) fn for_scenario(name: &str, text: &str) -> Option<String> {
    let ending = ending(name);
    Some(match ending.as_str() {
        "c" => format!(
            "{name} is an algorithm in C, not a scenario\n`opentcp cc check {name}` checks it, and a scenario runs it by `cc = \"{name}\"` in its `[tcp]`"
        ),
        "py" => format!(
            "{name} is a Python file, not a scenario\nThe package `opentcp` runs it (docs/python.md); `opentcp init scenario NAME` writes a scenario"
        ),
        _ if is_policy(text) => format!(
            "{name} is a policy, not a scenario\n`opentcp policy check {name}` checks it, and `opentcp policy try {name} --scenario FILE` simulates it"
        ),
        "toml" => return None,
        _ if is_toml(text) => return None,
        _ => format!(
            "{name} is not TOML, as scenarios are\n`opentcp init scenario NAME` writes a first one; docs/explain/coming-from.md has the words of ns-3 and Mininet"
        ),
    })
}

/// What this text is instead of a policy, in two lines.
pub(crate) fn for_policy(name: &str, text: &str) -> Option<String> {
    (is_scenario(text) && !is_policy(text)).then(|| {
        format!(
            "{name} is a scenario, not a policy\n`opentcp scenario check {name}` checks it, and `opentcp run {name}` runs it"
        )
    })
}

fn ending(name: &str) -> String {
    Path::new(name).extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// Whether a table of this name begins somewhere in the text.
fn has_table(text: &str, names: &[&str]) -> bool {
    text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).any(|line| names.contains(&line))
}

fn is_policy(text: &str) -> bool {
    has_table(text, &["[[rule]]"]) && !is_scenario(text)
}

fn is_scenario(text: &str) -> bool {
    has_table(text, &["[network]", "[[traffic]]"])
}

fn is_toml(text: &str) -> bool {
    document::tree::parse_document(0, text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_kind_is_named_with_the_command_for_it() {
        let policy = "mode = \"enforce\"\n[[rule]]\nname = \"a\"\n";
        let scenario = "duration = \"1 s\"\n[network]\n[[traffic]] # one\n";
        for (name, text, words) in [
            ("mine.c", "int main;", "opentcp cc check mine.c"),
            ("mine.py", "import opentcp", "Python"),
            ("p.toml", policy, "opentcp policy try p.toml --scenario FILE"),
            ("dumbbell.cc", "NodeContainer nodes;", "opentcp init scenario NAME"),
        ] {
            let said = for_scenario(name, text).unwrap_or_default();
            assert!(said.contains(words) && said.lines().count() == 2, "{name}: {said}");
        }
        for (name, text) in [("a.toml", scenario), ("a.toml", "duration = "), ("scenario", scenario)] {
            assert_eq!(for_scenario(name, text), None, "{name} {text}");
        }
        assert!(for_policy("a.toml", scenario).unwrap_or_default().contains("opentcp run a.toml"));
        assert_eq!(for_policy("p.toml", policy), None);
    }
}
