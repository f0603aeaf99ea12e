//! The simulator for a browser. `page/simulator.js` is the other side of these functions.
//!
//! JavaScript writes a text where [`text_of`] says, calls a function, and reads the answer, which is JSON, at
//! [`answer`] ([`answer_bytes`] long). There is one simulation at a time.

#![allow(
    unsafe_code,
    reason = "JavaScript finds a function by its name, so the names are exported; nothing else is unsafe"
)]

use congestion::Algorithm;
use scenario::Run;
use scope::{Mistake, Scope};
use serde::Serialize;
use std::cell::RefCell;
use units::Time;

#[derive(Default)]
struct State {
    text: Vec<u8>,
    answer: String,
    scope: Option<Scope>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// What a call answers; one of them is there.
#[derive(Default, Serialize)]
struct Answer<T: Serialize> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<T>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mistakes: Vec<Mistake>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

/// An algorithm of `cc/`.
#[derive(Serialize)]
struct About {
    name: &'static str,
    title: &'static str,
    category: &'static str,
}

/// Room for a text of so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn text_of(bytes: usize) -> *mut u8 {
    with(|state| {
        state.text = vec![0; bytes];
        state.text.as_mut_ptr()
    })
}

/// Where the last answer is.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    with(|state| state.answer.as_ptr())
}

/// How long it is.
#[unsafe(no_mangle)]
pub extern "C" fn answer_bytes() -> usize {
    with(|state| state.answer.len())
}

/// From now on a panic is an answer: call it first.
#[unsafe(no_mangle)]
pub extern "C" fn begin() {
    std::panic::set_hook(Box::new(|panic| {
        let words = format!("the simulator broke an invariant: {panic}");
        STATE.with(|state| {
            // where the panic came while the state was in use, the module stops without words
            if let Ok(mut state) = state.try_borrow_mut() {
                state.answer = json(&Answer::<()> { failure: Some(words), ..Answer::default() });
            }
        });
    }));
}

/// The algorithms that scenarios may name.
#[unsafe(no_mangle)]
pub extern "C" fn algorithms() {
    let about = |a: &'static Algorithm| About { name: a.name(), title: a.title(), category: a.category().words() };
    let all: Vec<About> = Algorithm::builtins().iter().map(about).collect();
    with(|state| state.answer = json(&all));
}

/// Checks the text, which is a file's name, a line break, and a scenario; the answer is the names of its runs.
#[unsafe(no_mangle)]
pub extern "C" fn check() {
    answer_with(|state| Ok(runs(state)?.into_iter().map(|run| run.name).collect::<Vec<_>>()));
}

/// Sets run number `number` of the text up; the answer is its stage.
#[unsafe(no_mangle)]
pub extern "C" fn open(number: usize) {
    answer_with(|state| {
        state.scope = None;
        let run = runs(state)?.into_iter().nth(number).ok_or_else(|| Refusal::of("there is no such run"))?;
        let scope = Scope::of(run).map_err(|error| Refusal::of(&error.to_string()))?;
        let stage = scope.stage();
        state.scope = Some(scope);
        Ok(stage)
    });
}

/// Runs up to `until` nanoseconds, or until about `hops` packet-hops are done; how many were.
#[unsafe(no_mangle)]
pub extern "C" fn advance(until: f64, hops: f64) -> f64 {
    with_scope(|scope| scope.advance(Time::from_ns(until as u64), hops as u64) as f64).unwrap_or(0.0)
}

/// The simulated time, ns.
#[unsafe(no_mangle)]
pub extern "C" fn now() -> f64 {
    with_scope(|scope| scope.now().as_ns() as f64).unwrap_or(0.0)
}

/// The moment.
#[unsafe(no_mangle)]
pub extern "C" fn frame() {
    answer_with(|state| {
        let scope = state.scope.as_mut().ok_or_else(|| Refusal::of("nothing runs"))?;
        Ok(scope.frame())
    });
}

/// Runs what is left, and ends the run; the answer is its outcome.
#[unsafe(no_mangle)]
pub extern "C" fn finish() {
    answer_with(|state| {
        let scope = state.scope.take().ok_or_else(|| Refusal::of("nothing runs"))?;
        Ok(scope.finish())
    });
}

/// Why a call has no result.
struct Refusal {
    mistakes: Vec<Mistake>,
    failure: Option<String>,
}

impl Refusal {
    fn of(words: &str) -> Refusal {
        Refusal { mistakes: Vec::new(), failure: Some(words.to_string()) }
    }
}

fn runs(state: &State) -> Result<Vec<Run>, Refusal> {
    let text = String::from_utf8_lossy(&state.text);
    let (name, scenario) = text.split_once('\n').unwrap_or(("scenario.toml", &text));
    scope::check(name, scenario).map_err(|mistakes| Refusal { mistakes, failure: None })
}

fn answer_with<T: Serialize>(work: impl FnOnce(&mut State) -> Result<T, Refusal>) {
    // Taken out, so that a panic finds the state free to say so.
    let mut state = with(std::mem::take);
    let answer = match work(&mut state) {
        Ok(ok) => Answer { ok: Some(ok), mistakes: Vec::new(), failure: None },
        Err(Refusal { mistakes, failure }) => Answer { ok: None, mistakes, failure },
    };
    state.answer = json(&answer);
    with(|place| *place = state);
}

fn with_scope<T>(work: impl FnOnce(&mut Scope) -> T) -> Option<T> {
    let mut scope = with(|state| state.scope.take())?;
    let result = work(&mut scope);
    with(|state| state.scope = Some(scope));
    Some(result)
}

fn with<T>(work: impl FnOnce(&mut State) -> T) -> T {
    STATE.with(|state| work(&mut state.borrow_mut()))
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what is answered is JSON")
}
