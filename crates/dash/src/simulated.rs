//! A running simulation: the thread that simulates at the pace that browsers ask for, and the stream that they follow.

use crate::guard::{guard, is_foreign};
use crate::places::Places;
use crate::routes::{BODY_MAX, assets, refused};
use crate::serve::{From, Server};
use crate::stream::{browsers, stream};
use crate::{DashError, bind};
use axum::extract::{DefaultBodyLimit, Extension, State as Shared};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use scenario::Run;
use scope::{Frame, Outcome, Scope, Stage};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::broadcast;
use units::Time;

/// A run has about so many frames, and more where time goes slowly.
const FRAMES: u64 = 1500;
/// Frames that are kept for browsers that come later; beyond, every other one is dropped.
const KEPT_MAX: usize = 3000;
/// Numbers in them, for a large network.
const KEPT_NUMBERS_MAX: usize = 4_000_000;
/// Wall-clock time of a turn, and between turns.
const BUSY: Duration = Duration::from_millis(24);
const TURN: Duration = Duration::from_millis(33);
/// Packet-hops between two looks at the clock.
const HOPS: u64 = 200_000;
/// Wall-clock time of a run at its first pace, seconds.
const WHOLE_S: f64 = 20.0;
/// Messages that may wait for a browser, and commands that may wait for the simulation.
const WAITING_MAX: usize = 64;
const COMMANDS_MAX: usize = 16;

/// What a dashboard of a simulation needs.
pub struct Watched {
    /// Where the page is served.
    pub listen: SocketAddr,
    /// Names by which browsers may call it, beside IP addresses and `localhost`.
    pub names: Vec<String>,
    /// The run.
    pub run: Run,
}

/// What a browser asks for.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Command {
    Play,
    Pause,
    Restart,
    /// Simulated seconds a second; none: the run in [`WHOLE_S`].
    Pace(Option<f64>),
    /// As fast as it goes.
    Max,
}

/// How the simulation stands.
#[derive(Clone, Copy, Serialize)]
struct Standing {
    plays: bool,
    done: bool,
}

/// What browsers see.
struct Shown {
    stage: Stage,
    frames: Vec<Frame>,
    standing: Standing,
    outcome: Option<Outcome>,
}

struct Screen {
    shown: Mutex<Shown>,
    changes: broadcast::Sender<Bytes>,
}

#[derive(Clone)]
struct App {
    screen: Arc<Screen>,
    commands: SyncSender<Command>,
    browsers: Arc<Places>,
}

/// Serves a simulation until `stopped` returns true; it begins when the first browser looks. `say` gets the page's address.
///
/// # Errors
/// The address cannot be used, the system has no thread or socket, or the run cannot be set up.
pub fn watch(watched: Watched, stopped: &dyn Fn() -> bool, say: &mut dyn FnMut(&str)) -> Result<(), DashError> {
    let scope = Scope::of(watched.run.clone()).map_err(|error| DashError::Run(error.to_string()))?;
    let (listener, address) = bind(watched.listen)?;
    let (commands, asked) = sync_channel(COMMANDS_MAX);
    let standing = Standing { plays: false, done: false };
    let shown = Shown { stage: scope.stage(), frames: Vec::new(), standing, outcome: None };
    let screen = Arc::new(Screen { shown: Mutex::new(shown), changes: broadcast::channel(WAITING_MAX).0 });
    let app = App { screen: Arc::clone(&screen), commands, browsers: browsers() };
    let server = Server::start(listener, routes(app, watched.names))?;
    say(&format!("the simulation is at http://{address}/ and begins when somebody looks"));
    let mut player = Player::new(scope, watched.run, screen);
    while !stopped() {
        player.turn(&asked);
    }
    drop(server);
    Ok(())
}

fn routes(app: App, names: Vec<String>) -> Router {
    let names = Arc::new(names);
    assets("/simulation.html")
        .route("/events", get(events))
        .route("/api/run", post(command))
        .fallback(async || (StatusCode::NOT_FOUND, "there is nothing at this path\n"))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(middleware::from_fn(move |request, next| guard(Arc::clone(&names), request, next)))
        .with_state(app)
}

async fn events(Shared(app): Shared<App>, Extension(from): Extension<From>, headers: HeaderMap) -> Response {
    stream(&app.browsers, &from, &headers, || app.screen.follow())
}

async fn command(Shared(app): Shared<App>, headers: HeaderMap, Json(command): Json<Command>) -> Response {
    if is_foreign(&headers) {
        return refused(StatusCode::FORBIDDEN, "a page of another site may not ask for anything");
    }
    if let Command::Pace(Some(pace)) = command
        && !(1e-9..=1e6).contains(&pace)
    {
        return refused(StatusCode::BAD_REQUEST, "a pace is 1e-9 to 1e6 simulated seconds a second");
    }
    match app.commands.try_send(command) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(_) => refused(StatusCode::SERVICE_UNAVAILABLE, "others wait for the simulation already; try again"),
    }
}

impl Screen {
    /// Everything, and then each change.
    fn follow(&self) -> (Bytes, broadcast::Receiver<Bytes>) {
        let shown = self.shown();
        let changes = self.changes.subscribe();
        let mut full = message("stage", &shown.stage);
        full.push_str(&message("frames", &shown.frames));
        full.push_str(&message("standing", &shown.standing));
        if let Some(outcome) = &shown.outcome {
            full.push_str(&message("outcome", outcome));
        }
        (full.into(), changes)
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To all who follow; that nobody does is no error.
    fn send(&self, message: String) {
        let _ = self.changes.send(message.into());
    }

    fn begin(&self, stage: Stage) {
        let mut shown = self.shown();
        self.send(message("stage", &stage));
        (shown.stage, shown.frames, shown.outcome) = (stage, Vec::new(), None);
    }

    fn add(&self, frames: Vec<Frame>) {
        let mut shown = self.shown();
        self.send(message("frames", &frames));
        shown.frames.extend(frames);
        let numbers: usize = shown.frames.iter().map(|frame| frame.links.len()).sum();
        if shown.frames.len() > KEPT_MAX || numbers > KEPT_NUMBERS_MAX {
            shown.frames = thinned(std::mem::take(&mut shown.frames));
        }
    }

    fn stand(&self, standing: Standing) {
        let mut shown = self.shown();
        self.send(message("standing", &standing));
        shown.standing = standing;
    }

    fn end(&self, outcome: Outcome) {
        let mut shown = self.shown();
        self.send(message("outcome", &outcome));
        shown.outcome = Some(outcome);
    }
}

/// Every other frame and the last, with the flows that the ones between introduced.
fn thinned(frames: Vec<Frame>) -> Vec<Frame> {
    let (mut kept, mut new) = (Vec::with_capacity(frames.len() / 2 + 1), Vec::new());
    let last = frames.len().saturating_sub(1);
    for (i, mut frame) in frames.into_iter().enumerate() {
        new.append(&mut frame.new);
        if (last - i).is_multiple_of(2) {
            frame.new = std::mem::take(&mut new);
            kept.push(frame);
        }
    }
    kept
}

/// A message of the stream.
fn message(what: &str, content: &impl Serialize) -> String {
    let json = serde_json::to_string(content).expect("what is shown is JSON");
    format!("event: {what}\ndata: {json}\n\n")
}

/// The simulation, and how fast it goes.
struct Player {
    scope: Option<Scope>,
    run: Run,
    screen: Arc<Screen>,
    standing: Standing,
    /// Has anybody looked?
    begun: bool,
    /// Simulated seconds a second.
    pace: f64,
    last: Instant,
}

impl Player {
    fn new(scope: Scope, run: Run, screen: Arc<Screen>) -> Player {
        let pace = run.scenario.duration.as_secs_f64() / WHOLE_S;
        let standing = Standing { plays: false, done: false };
        Player { scope: Some(scope), run, screen, standing, begun: false, pace, last: Instant::now() }
    }

    /// Some milliseconds: what is asked for, and the simulation where it plays.
    fn turn(&mut self, asked: &Receiver<Command>) {
        let began = Instant::now();
        if !self.begun && self.screen.changes.receiver_count() > 0 {
            self.begun = true;
            self.play(true);
        }
        if self.standing.plays {
            self.simulate(began);
        }
        let is_fast = self.standing.plays && self.pace.is_infinite();
        let rest = if is_fast { Duration::ZERO } else { TURN.saturating_sub(began.elapsed()) };
        match asked.recv_timeout(rest) {
            Ok(command) => self.obey(command),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Play => self.play(true),
            Command::Pause => self.play(false),
            Command::Pace(Some(pace)) => self.pace = pace,
            Command::Pace(None) => self.pace = self.run.scenario.duration.as_secs_f64() / WHOLE_S,
            Command::Max => self.pace = f64::INFINITY,
            Command::Restart => {
                let scope = Scope::of(self.run.clone()).expect("it was set up before");
                self.screen.begin(scope.stage());
                self.scope = Some(scope);
                self.standing.done = false;
                self.play(true);
            }
        }
    }

    fn play(&mut self, plays: bool) {
        self.last = Instant::now();
        self.standing.plays = plays && !self.standing.done;
        self.screen.stand(self.standing);
    }

    fn simulate(&mut self, began: Instant) {
        let Some(scope) = &mut self.scope else { return };
        let end = scope.end();
        let since = began.duration_since(self.last).min(4 * TURN);
        self.last = began;
        let until = if self.pace.is_infinite() {
            end
        } else {
            (scope.now() + Time::from_secs_f64(self.pace * since.as_secs_f64())).min(end)
        };
        let mut frames = Vec::new();
        while scope.now() < until && began.elapsed() < BUSY {
            let next = on_grid(scope.now(), end).min(until);
            scope.advance(next, HOPS);
            if scope.now() >= next {
                frames.push(scope.frame());
            }
        }
        let is_done = scope.is_done();
        if !frames.is_empty() {
            self.screen.add(frames);
        }
        if is_done && let Some(scope) = self.scope.take() {
            self.screen.end(scope.finish());
            self.standing = Standing { plays: false, done: true };
            self.screen.stand(self.standing);
        }
    }
}

/// The next of [`FRAMES`] moments.
fn on_grid(now: Time, end: Time) -> Time {
    let step = (end / FRAMES).max(Time::from_ps(1));
    step * (now.as_ps() / step.as_ps() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_frames_keep_the_flows_that_were_introduced() {
        let ends = |flow| scope::Ends {
            flow,
            src: String::new(),
            dst: String::new(),
            algorithm: String::new(),
            entry: String::new(),
        };
        let frame = |t, flow| Frame { t, new: vec![ends(flow)], ..Frame::default() };
        let kept = thinned(vec![frame(1, 1), frame(2, 2), frame(3, 3), frame(4, 4)]);
        let of: Vec<(u64, Vec<usize>)> =
            kept.iter().map(|f| (f.t, f.new.iter().map(|ends| ends.flow).collect())).collect();
        assert_eq!(of, [(2, vec![1, 2]), (4, vec![3, 4])]);
    }

    #[test]
    fn moments_are_on_a_grid_of_the_run() {
        let end = Time::from_secs(30);
        assert_eq!(on_grid(Time::ZERO, end), Time::from_ms(20));
        assert_eq!(on_grid(Time::from_ms(20), end), Time::from_ms(40));
        assert_eq!(on_grid(Time::from_us(20_001), end), Time::from_ms(40));
    }
}
