//! A request's head, and what is answered.

/// Longest head of a request, bytes.
pub const HEAD_MAX: usize = 4096;

/// What is answered to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The metrics.
    Metrics {
        /// `HEAD`: only the answer's head.
        head_only: bool,
    },
    /// That the process lives.
    Health {
        /// `HEAD`: only the answer's head.
        head_only: bool,
    },
    /// 400: no request of HTTP/1.
    Bad,
    /// 404: nothing is at that path.
    NotFound,
    /// 405: neither `GET` nor `HEAD`.
    Method,
    /// 431: the head is longer than [`HEAD_MAX`].
    Long,
}

/// The answer to what has come so far; `None`: its end has not come yet.
pub fn answer(bytes: &[u8]) -> Option<Answer> {
    let Some(end) = end_of_head(bytes) else { return (bytes.len() >= HEAD_MAX).then_some(Answer::Long) };
    if end > HEAD_MAX {
        return Some(Answer::Long);
    }
    Some(line(bytes[..end].split(|byte| *byte == b'\n').next().unwrap_or_default()))
}

/// Where the empty line begins that ends the head. A line ends with CR LF; a lone LF is taken as well (RFC 9112 2.2).
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let find = |end: &[u8]| bytes.windows(end.len()).position(|window| window == end);
    find(b"\r\n\r\n").into_iter().chain(find(b"\n\n")).min()
}

/// The answer to a request line: `GET /metrics HTTP/1.1`.
fn line(line: &[u8]) -> Answer {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else { return Answer::Bad };
    let is_token = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_graphic);
    if !is_token(method) || !is_token(target) || !version.starts_with(b"HTTP/1.") {
        return Answer::Bad;
    }
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let head_only = method == b"HEAD";
    let wanted = match path {
        b"/metrics" => Answer::Metrics { head_only },
        b"/healthz" => Answer::Health { head_only },
        _ => return Answer::NotFound,
    };
    if head_only || method == b"GET" { wanted } else { Answer::Method }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_line_says_what_is_answered() {
        let of = |line: &str| answer(format!("{line}\r\nHost: x\r\n\r\n").as_bytes());
        assert_eq!(of("GET /metrics HTTP/1.1"), Some(Answer::Metrics { head_only: false }));
        assert_eq!(of("GET /metrics?name[]=a HTTP/1.0"), Some(Answer::Metrics { head_only: false }));
        assert_eq!(of("HEAD /metrics HTTP/1.1"), Some(Answer::Metrics { head_only: true }));
        assert_eq!(of("GET /healthz HTTP/1.1"), Some(Answer::Health { head_only: false }));
        assert_eq!(of("GET / HTTP/1.1"), Some(Answer::NotFound));
        assert_eq!(of("GET /metrics/ HTTP/1.1"), Some(Answer::NotFound));
        assert_eq!(of("POST /metrics HTTP/1.1"), Some(Answer::Method));
        assert_eq!(of("POST /other HTTP/1.1"), Some(Answer::NotFound));
        for bad in ["GET /metrics", "GET  /metrics HTTP/1.1", "GET /metrics HTTP/2", "", " ", "\u{1} /metrics HTTP/1.1"]
        {
            assert_eq!(of(bad), Some(Answer::Bad), "{bad}");
        }
        assert_eq!(answer(b"GET /healthz HTTP/1.1\n\n"), Some(Answer::Health { head_only: false }));
        assert_eq!(answer(b"GET /metrics HTTP/1.1\r\nHost: x\r\n"), None, "more comes");
        assert_eq!(answer(&[b'a'; HEAD_MAX]), Some(Answer::Long));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn random_bytes_are_no_request(bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
            // one in 2^64 such strings begins with a request line
            prop_assert!(matches!(answer(&bytes), None | Some(Answer::Bad | Answer::Long | Answer::NotFound)));
        }

        #[test]
        fn what_is_answered_does_not_change_with_what_follows(
            head in "[A-Z]{1,5} /[a-z?=/]{0,9} HTTP/1\\.[01]\r\n([A-Z]: [a-z]{0,9}\r\n){0,5}\r\n",
            rest in proptest::collection::vec(any::<u8>(), 0..600),
            cut in 0_usize..64,
        ) {
            let whole = [head.as_bytes(), &rest].concat();
            let alone = answer(head.as_bytes());
            prop_assert!(alone.is_some());
            prop_assert_eq!(alone, answer(&whole));
            // what has not ended has no answer yet
            prop_assert_eq!(answer(&head.as_bytes()[..head.len().saturating_sub(2 + cut)]), None);
        }
    }
}
