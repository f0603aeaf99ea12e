//! What is served at which path.

use crate::assets::ASSETS;
use crate::board::Board;
use crate::feed::Action;
use crate::guard::{Token, guard};
use crate::places::Places;
use crate::serve::From;
use crate::stream::{browsers, stream};
use axum::extract::{DefaultBodyLimit, Extension, State as Shared};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bus::{Ask, Target};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use tokio::sync::oneshot;
use units::Time;

/// Longest body of a request, bytes.
pub const BODY_MAX: usize = 4096;
/// Longest pause that is asked for, seconds: thirty days.
const PAUSE_MAX: u64 = 30 * 86_400;

/// What requests need.
#[derive(Clone)]
pub struct State {
    /// What is shown.
    pub board: Arc<Board>,
    /// What whoever changes something has to know.
    pub token: Option<Arc<Token>>,
    /// To the thread that asks the Oracle.
    pub actions: SyncSender<Action>,
}

#[derive(Clone)]
struct App {
    state: State,
    browsers: Arc<Places>,
}

/// Everything that is served. A browser may call it by these names.
pub fn routes(state: State, names: Vec<String>) -> Router {
    let app = App { state, browsers: browsers() };
    let actions = Router::new()
        .route("/api/token", post(async || StatusCode::NO_CONTENT))
        .route("/api/pause", post(pause))
        .route("/api/resume", post(resume))
        .route("/api/compare", post(compare))
        .route("/api/rollback", post(roll_back))
        .route_layer(middleware::from_fn_with_state(app.clone(), authorized));
    let names = Arc::new(names);
    assets("/index.html")
        .route("/events", get(events))
        .merge(actions)
        .fallback(async || (StatusCode::NOT_FOUND, "there is nothing at this path\n"))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(middleware::from_fn(move |request, next| guard(Arc::clone(&names), request, next)))
        .with_state(app)
}

/// The page's files, the page itself at `/`.
pub fn assets<S: Clone + Send + Sync + 'static>(page: &str) -> Router<S> {
    let mut router = Router::new();
    for asset in ASSETS {
        let file = || async { ([(header::CONTENT_TYPE, asset.content)], asset.bytes) };
        router = router.route(if asset.path == page { "/" } else { asset.path }, get(file));
    }
    router
}

async fn events(Shared(app): Shared<App>, Extension(from): Extension<From>, headers: HeaderMap) -> Response {
    stream(&app.browsers, &from, &headers, || app.state.board.follow())
}

/// Lets only those pass who have the token.
async fn authorized(Shared(app): Shared<App>, request: axum::extract::Request, next: middleware::Next) -> Response {
    match &app.state.token {
        None => refused(
            StatusCode::FORBIDDEN,
            "this dashboard is read-only; `opentcp dash --token FILE` lets those who have the token change something",
        ),
        Some(token) if token.is_in(request.headers()) => next.run(request).await,
        Some(_) => refused(StatusCode::UNAUTHORIZED, "the token is not right"),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pause {
    /// For how long; absent: until it is resumed.
    seconds: Option<u64>,
}

async fn pause(Shared(app): Shared<App>, Extension(from): Extension<From>, Json(body): Json<Pause>) -> Response {
    let lasts = match body.seconds {
        Some(seconds) if !(1..=PAUSE_MAX).contains(&seconds) => {
            return refused(StatusCode::BAD_REQUEST, &format!("a pause lasts 1 to {PAUSE_MAX} seconds"));
        }
        seconds => seconds.map(Time::from_secs),
    };
    act(&app, from, Ask::Pause { lasts }).await
}

async fn resume(Shared(app): Shared<App>, Extension(from): Extension<From>) -> Response {
    act(&app, from, Ask::Resume).await
}

async fn compare(Shared(app): Shared<App>, Extension(from): Extension<From>) -> Response {
    act(&app, from, Ask::Diff { to: Target::Before }).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RollBack {
    /// The hash of the policy with which the one before was compared.
    against: String,
}

async fn roll_back(Shared(app): Shared<App>, Extension(from): Extension<From>, Json(body): Json<RollBack>) -> Response {
    let ask = Ask::Apply { to: Target::Before, against: body.against, allow_lacking: false, trial: None };
    act(&app, from, ask).await
}

/// Has something done, and says what became of it.
async fn act(app: &App, from: From, ask: Ask) -> Response {
    let (done, became) = oneshot::channel();
    if app.state.actions.try_send(Action { ask, from: from.address.ip().to_string(), done }).is_err() {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "others wait for the Oracle already; try again");
    }
    match became.await {
        Ok(Ok(answer)) => Json(json!({ "answer": answer })).into_response(),
        Ok(Err(why)) => refused(StatusCode::CONFLICT, &why),
        Err(_) => refused(StatusCode::SERVICE_UNAVAILABLE, "the dashboard is being stopped"),
    }
}

/// A refusal in words.
pub fn refused(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "why": why }))).into_response()
}
