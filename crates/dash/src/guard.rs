//! Who may ask for what: the names by which a browser may call the dashboard, the token, and the headers that keep the page to itself.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use fleet::files::{FileError, Guard, owned};
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use subtle::ConstantTimeEq as _;

/// Fewest bytes of a token.
pub const TOKEN_LEAST: usize = 16;
/// Most bytes of a token.
const TOKEN_MOST: usize = 256;

/// Only this page's own files, no script in the page, and no page around it.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// What whoever changes something has to know.
pub struct Token(String);

impl Token {
    /// Reads it from a file that only its owner reads.
    ///
    /// # Errors
    /// It cannot be read, others may read it, or its content is no token.
    pub fn read(path: &Path) -> Result<Token, FileError> {
        let text = owned(path, Guard::Secret)?;
        Token::new(text.trim()).ok_or_else(|| FileError::Content {
            path: path.to_path_buf(),
            reason: format!(
                "a token has {TOKEN_LEAST} to {TOKEN_MOST} letters, digits or other visible ASCII characters; \
                 `openssl rand -hex 16` makes one"
            ),
        })
    }

    /// `None` of a text that is none.
    pub fn new(text: &str) -> Option<Token> {
        let is_right =
            (TOKEN_LEAST..=TOKEN_MOST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_right.then(|| Token(text.to_string()))
    }

    /// Whether a request has it, in a time that does not tell how much of it was right.
    pub fn is_in(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        given.is_some_and(|given| given.ct_eq(self.0.as_bytes()).into())
    }
}

/// Refuses what is not asked of this dashboard by a name of its own, and adds the headers.
pub async fn guard(names: Arc<Vec<String>>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let mut response = if is_own(host, &names) {
        next.run(request).await
    } else {
        let name = name_of(host);
        let words =
            format!("this dashboard is not called `{name}`; `opentcp dash --name {name}` lets browsers call it so\n");
        (StatusCode::MISDIRECTED_REQUEST, words).into_response()
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    response
}

/// Whether a page of another site asks. Browsers say which kind of site only to servers that they trust, such as those of this machine;
/// the origin they send to all.
pub fn is_foreign(headers: &HeaderMap) -> bool {
    let bytes = |name: header::HeaderName| headers.get(name).map(HeaderValue::as_bytes);
    let site = bytes(header::HeaderName::from_static("sec-fetch-site"));
    let origin = bytes(header::ORIGIN).map(|origin| origin.split(|byte| *byte == b'/').next_back());
    site.is_some_and(|site| site != b"same-origin" && site != b"none")
        || origin.is_some_and(|origin| origin != bytes(header::HOST))
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

/// Whoever makes a name of theirs lead to this machine has a name, and not its address.
fn is_own(host: &str, names: &[String]) -> bool {
    let name = name_of(host);
    let is_address =
        if host.starts_with('[') { name.parse::<Ipv6Addr>().is_ok() } else { name.parse::<IpAddr>().is_ok() };
    is_address || name.eq_ignore_ascii_case("localhost") || names.iter().any(|own| own.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_calls_it_by_an_address_or_a_name_of_its_own() {
        let names = ["dash.example".to_string()];
        for host in
            ["127.0.0.1:8080", "127.0.0.1", "[::1]:8080", "localhost:8080", "LOCALHOST", "10.0.0.7", "Dash.example:1"]
        {
            assert!(is_own(host, &names), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "[evil]:1",
            "[::1",
        ] {
            assert!(!is_own(host, &names), "{host}");
        }
    }

    #[test]
    fn a_token_is_whole_or_wrong() {
        assert!(Token::new("short").is_none() && Token::new("with a blank in the middle").is_none());
        let token = Token::new("0123456789abcdef").unwrap();
        let with = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(value));
            token.is_in(&headers)
        };
        assert!(with("Bearer 0123456789abcdef"));
        for wrong in [
            "0123456789abcdef",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer ",
            "Basic 0123456789abcdef",
        ] {
            assert!(!with(wrong), "{wrong}");
        }
        assert!(!token.is_in(&HeaderMap::new()));
    }
}
