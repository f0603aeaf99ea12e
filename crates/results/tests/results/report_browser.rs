//! The report in a real headless browser: it draws, runs without errors and fits a phone.
//! Skipped, with a message, where there is no Chromium. The pages and pictures of
//! them stay in the target folder for a person to look at.

use crate::common;
use crate::devtools::Browser;
use results::{write_run, write_sweep};
use std::{fs, path::Path};
use testkit::or_skip;

/// Reports, from inside the page, errors that a person would see.
const PROBE: &str = "<script>addEventListener('load',()=>{const e=document.scrollingElement;\
document.querySelector('table.runs thead th.n')?.click();\
const c=[...document.querySelectorAll('svg[data-x]')],tip=document.querySelector('.tip'),speaks=()=>!tip.hidden&&tip.children.length===3&&!/NaN|undefined|Infinity/.test(tip.textContent);\
const hover=c.filter(s=>{const b=s.getBoundingClientRect();s.dispatchEvent(new PointerEvent('pointermove',{clientX:b.left+b.width/2,clientY:b.top+b.height/2}));return speaks()}).length;\
const keys=c.filter(s=>{s.focus();const before=tip.textContent;['End','ArrowLeft','ArrowDown'].forEach(key=>s.dispatchEvent(new KeyboardEvent('keydown',{key})));return speaks()&&tip.textContent!==before}).length;\
dispatchEvent(new KeyboardEvent('keydown',{key:'Escape'}));\
document.body.dataset.probe=[innerWidth,e.scrollWidth,document.querySelectorAll('svg').length,window.faults.length,c.length,hover,keys,+tip.hidden].join(' ')})</script>";
const CATCH: &str = "<script>window.faults=[];addEventListener('error',e=>window.faults.push(e.message))</script>";

/// Opens a copy of the page that measures itself; returns the number of pictures it drew.
fn check(browser: &mut Browser, place: &Path, page: &Path, width: u32) -> usize {
    let html = fs::read_to_string(page).unwrap();
    let probed = html.replacen("<head>", &format!("<head>{CATCH}"), 1);
    let probed = probed.replacen("</body>", &format!("{PROBE}</body>"), 1);
    let copy = place.join("probed.html");
    fs::write(&copy, probed).unwrap();
    browser.resize(width, 900);
    browser.open(&copy);
    let probe = browser.evaluate("document.body.dataset.probe");
    let probe = probe.as_str().expect("the probe ran");
    let numbers: Vec<usize> = probe.split(' ').map(|number| number.parse().unwrap()).collect();
    let [inner, scroll, pictures, faults, charts, by_pointer, by_keys, hidden] = numbers[..] else {
        panic!("eight numbers, not {numbers:?}");
    };
    assert_eq!(inner, width as usize, "the window has the width that was asked for");
    assert!(scroll <= inner, "the page is {scroll} wide in a window of {inner}");
    assert_eq!(faults, 0, "script errors");
    assert!(charts > 2 && by_pointer == charts, "{by_pointer} of {charts} charts show a value under the pointer");
    assert_eq!(by_keys, charts, "charts that show other values by the keys");
    assert_eq!(hidden, 1, "Escape hides the value");
    pictures
}

fn photograph(browser: &mut Browser, page: &Path, name: &str, (width, height): (u32, u32)) {
    browser.resize(width, height);
    browser.open(page);
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), browser.picture()).unwrap();
}

#[test]
fn reports_draw_without_errors_and_fit_every_width() {
    let Some(program) = or_skip(testkit::browser()) else { return };
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let runs = common::study(1);
    let sweep = place.join("sweep");
    write_sweep(&sweep, &runs, &common::story(&runs), None).unwrap();
    let single = place.join("single");
    write_run(&single, &runs[1], None).unwrap();
    let mut browser = Browser::start(&program, place);
    for (name, folder, least) in [("sweep", &sweep, 40), ("run", &single, 3)] {
        let page = folder.join("report.html");
        for width in [360, 390, 768, 1280] {
            let pictures = check(&mut browser, place, &page, width);
            assert!(pictures >= least, "{pictures} pictures in {name}");
        }
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.html"));
        fs::copy(&page, kept).unwrap();
        photograph(&mut browser, &page, &format!("{name}-phone.png"), (390, 6000));
        photograph(&mut browser, &page, &format!("{name}-desktop.png"), (1280, 5000));
    }
}
