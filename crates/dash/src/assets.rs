//! The page's files, built in.

/// A file of the page.
pub struct Asset {
    /// Its path.
    pub path: &'static str,
    /// Its type.
    pub content: &'static str,
    /// Its bytes.
    pub bytes: &'static [u8],
}

macro_rules! asset {
    ($path:literal, $file:literal, $content:literal) => {
        Asset { path: $path, content: $content, bytes: include_bytes!(concat!("../assets/", $file)) }
    };
}

/// All of them; a file that is not here is not served.
pub const ASSETS: &[Asset] = &[
    asset!("/index.html", "index.html", "text/html; charset=utf-8"),
    asset!("/dash.css", "dash.css", "text/css; charset=utf-8"),
    asset!("/js/main.js", "js/main.js", "text/javascript; charset=utf-8"),
    asset!("/js/format.js", "js/format.js", "text/javascript; charset=utf-8"),
    asset!("/js/state.js", "js/state.js", "text/javascript; charset=utf-8"),
    asset!("/js/panels.js", "js/panels.js", "text/javascript; charset=utf-8"),
    asset!("/js/map.js", "js/map.js", "text/javascript; charset=utf-8"),
    asset!("/js/charts.js", "js/charts.js", "text/javascript; charset=utf-8"),
    asset!("/js/timeline.js", "js/timeline.js", "text/javascript; charset=utf-8"),
    asset!("/js/grid.js", "js/grid.js", "text/javascript; charset=utf-8"),
    asset!("/js/actions.js", "js/actions.js", "text/javascript; charset=utf-8"),
    asset!("/js/theme.js", "js/theme.js", "text/javascript; charset=utf-8"),
    asset!("/simulation.html", "simulation.html", "text/html; charset=utf-8"),
    asset!("/js/simulation.js", "js/simulation.js", "text/javascript; charset=utf-8"),
    asset!("/view/view.css", "../../scope/view/view.css", "text/css; charset=utf-8"),
    asset!("/view/view.js", "../../scope/view/view.js", "text/javascript; charset=utf-8"),
    asset!("/view/parts.js", "../../scope/view/parts.js", "text/javascript; charset=utf-8"),
    asset!("/view/network.js", "../../scope/view/network.js", "text/javascript; charset=utf-8"),
    asset!("/view/series.js", "../../scope/view/series.js", "text/javascript; charset=utf-8"),
    asset!("/vendor/uPlot.iife.min.js", "vendor/uPlot.iife.min.js", "text/javascript; charset=utf-8"),
    asset!("/vendor/uPlot.min.css", "vendor/uPlot.min.css", "text/css; charset=utf-8"),
    asset!("/vendor/uPlot.LICENSE", "vendor/uPlot.LICENSE", "text/plain; charset=utf-8"),
    asset!("/icon.svg", "icon.svg", "image/svg+xml"),
];
