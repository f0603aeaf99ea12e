//! The stream that browsers follow: everything, then what changes.

use crate::guard::is_foreign;
use crate::places::{Beyond, Place, Places};
use crate::routes::refused;
use crate::serve::From;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream::unfold;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::timeout;

/// Most browsers that follow at a time.
pub const BROWSERS_MAX: usize = 32;

/// Longest time without a message.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// A browser's place in the stream.
type Following = (Option<Bytes>, broadcast::Receiver<Bytes>, Place);

/// Places for browsers that follow.
pub fn browsers() -> Arc<Places> {
    Places::new(BROWSERS_MAX, Beyond::Refused)
}

/// Answers a browser that wants to follow, if there is a place among `browsers`; `follow` gives everything, and then each change.
pub fn stream(
    browsers: &Arc<Places>,
    from: &From,
    headers: &HeaderMap,
    follow: impl FnOnce() -> (Bytes, broadcast::Receiver<Bytes>),
) -> Response {
    if is_foreign(headers) {
        return refused(StatusCode::FORBIDDEN, "a page of another site may not follow");
    }
    let Some(place) = browsers.take(from.address.ip()) else {
        let words = format!("{BROWSERS_MAX} browsers follow already; close one, and reload");
        return refused(StatusCode::SERVICE_UNAVAILABLE, &words);
    };
    from.follows();
    let (full, changes) = follow();
    // nothing else comes on a connection that has released its own place
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONNECTION, "close"),
    ];
    (headers, Body::from_stream(unfold((Some(full), changes, place), next))).into_response()
}

/// The next message; of a browser that is too far behind there is none, and it begins anew. While nothing changes, an empty comment shows
/// whether the browser is still there: one that is not must not keep its place. One that has lost its place to another may ask for one anew.
async fn next((first, mut changes, mut place): Following) -> Option<(Result<Bytes, Infallible>, Following)> {
    let message = if let Some(first) = first {
        first
    } else {
        tokio::select! {
            change = timeout(SILENCE_MAX, changes.recv()) => match change {
                Ok(change) => change.ok()?,
                Err(_) => Bytes::from_static(b":\n\n"),
            },
            () = place.lost() => return None,
        }
    };
    Some((Ok(message), (None, changes, place)))
}
