//! The report as a page.

use super::observed::{facts, heading, lasting, lead};
use crate::failure::Failure;
use crate::terminal::{note, print};
use audit::Zone;
use oracle::log::Observed;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Writes the page; `-` is stdout.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, observed: &Observed, zone: &Zone) -> Result<(), Failure> {
    let page = page(observed, zone);
    if path == Path::new("-") {
        return print(&page);
    }
    fs::write(path, page).map_err(|error| Failure::Input(format!("--out {}: {error}", path.display())))?;
    note!("wrote {}", path.display());
    Ok(())
}

fn page(observed: &Observed, zone: &Zone) -> String {
    let title = if observed.enforcing == 0 { "What the policy would have done" } else { "What the policy did" };
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title>\n<style>{}.share{{min-width:8rem}}.share div{{background:var(--c1);height:.8rem;margin-top:.3rem}}</style>\n\
         <body><h1>{title}</h1>\n<p class=\"lead\">{}</p>\n",
        results::STYLE,
        escaped(&lead(observed, zone))
    );
    let mut add = |text: String| html.push_str(&text);
    add("<div class=\"scroll\"><table><thead><tr><th>policy<th>rule<th>set<th class=\"n\">decisions<th class=\"n\">on<th class=\"n\">time \
         on<th>share of decisions<th class=\"n\">hosts, at most<tbody>\n"
        .to_string());
    for rule in &observed.rules {
        let percent = 100.0 * rule.on as f64 / rule.decisions.max(1) as f64;
        add(format!(
            "<tr><td>{}<td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"share\" title=\"{percent:.1} \
             %\"><div style=\"width:{percent:.1}%\"></div><td class=\"n\">{}\n",
            escaped(&rule.policy),
            escaped(&rule.rule),
            escaped(&rule.set),
            rule.decisions,
            rule.on,
            lasting(rule.on_s),
            rule.hosts_most
        ));
    }
    add("</table></div>\n".to_string());
    for rule in &observed.rules {
        let mut rows = String::new();
        for (what, words) in facts(rule) {
            write!(rows, "<tr><th>{what}<td>{}\n", escaped(&words)).expect("writing to a string");
        }
        add(format!(
            "<h2>{}</h2>\n<div class=\"scroll\"><table><tbody>{rows}</table></div>\n",
            escaped(&heading(rule))
        ));
    }
    html.push_str("</body></html>\n");
    html
}

/// As text in HTML: names come from policies and hosts.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
