//! The page around the picture.

use crate::Sketch;
use crate::picture::{escaped, picture};
use crate::words::{remarks, sentence};
use std::fmt::Write as _;

/// Style of the picture, added to that of reports.
const STYLE: &str = "figure.network{max-width:38rem}.cable{stroke:var(--dim);stroke-opacity:.45;fill:none}\
.fails{stroke:var(--c3);stroke-opacity:1;stroke-dasharray:4 3}.switch{fill:var(--tint);stroke:var(--dim)}\
.switch.enforces{stroke:var(--c8);stroke-width:2}text.enforces{font-weight:700}\
.lane{fill:none;stroke-width:1.5;stroke-opacity:.6}.both{fill:var(--page);stroke-width:1.6}.network svg text{font-size:11px}\
.entries td:first-child{padding-right:0}.entries svg{width:.9rem;height:.9rem;margin-top:.2rem}";

/// The whole page.
pub fn page(sketch: &Sketch<'_>) -> String {
    let scenario = sketch.scenario;
    let name = escaped(&scenario.name);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{name}</title>\n<style>{}{STYLE}</style>\n<body><h1>{name}</h1>\n",
        results::STYLE
    );
    let mut add = |text: String| html.push_str(&text);
    if let Some(title) = &scenario.title {
        add(format!("<p class=\"lead\">{}</p>\n", escaped(title)));
    }
    add(format!("<p>{}; {} long, seed {}.</p>\n", sketch.size(), scenario.duration, scenario.seed));
    match picture(sketch) {
        Some(picture) => add(format!("<figure class=\"network\">{picture}</figure>\n")),
        None => add("<p>Too many switches for a picture; the numbers are below.</p>\n".to_string()),
    }
    add(entries(sketch));
    add(links(sketch));
    let remarks: Vec<String> = remarks(scenario).iter().map(|line| format!("<li>{}</li>", escaped(line))).collect();
    if !remarks.is_empty() {
        add(format!("<h2>Also</h2>\n<ul>{}</ul>\n", remarks.concat()));
    }
    html.push_str("</body></html>\n");
    html
}

/// The traffic, with the colours of its lanes.
fn entries(sketch: &Sketch<'_>) -> String {
    let mut html =
        "<h2>Traffic</h2>\n<p class=\"sub\">In the picture: a dot sends, an arrowhead receives, a dot in a ring does \
                    both.</p>\n<div class=\"scroll\"><table class=\"entries\"><tbody>\n"
            .to_string();
    for (i, traffic) in sketch.scenario.traffic.iter().enumerate() {
        writeln!(
            html,
            "<tr><td><svg viewBox=\"0 0 10 10\"><circle class=\"f{}\" cx=\"5\" cy=\"5\" r=\"5\"/></svg></td><th>{}</th><td>{}</td></tr>",
            i % 10,
            escaped(&traffic.name),
            escaped(&sentence(traffic, sketch.scenario))
        )
        .expect("writing to a string");
    }
    html + "</tbody></table></div>\n"
}

fn links(sketch: &Sketch<'_>) -> String {
    let mut html = "<h2>Cables</h2>\n<p class=\"sub\">Queues are those of switches' ports.</p>\n<div class=\"scroll\"><table><thead><tr><th>cables</th><th class=\"n\">rate</th>\
                    <th class=\"n\">delay</th><th>queue</th></tr></thead><tbody>\n"
        .to_string();
    for kind in &sketch.links {
        writeln!(
            html,
            "<tr><th>{} × {}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
            kind.cables,
            escaped(&kind.tier),
            kind.rate,
            kind.delay,
            kind.queue
        )
        .expect("writing to a string");
    }
    html + "</tbody></table></div>\n"
}
