//! Why no server is connected, said once for each reason.

/// Most reasons that are said of one absence: two servers may fail in turns.
const REASONS_MAX: usize = 4;

/// The reasons that were said since the servers are away. A server that is restarted refuses connections first, and then may present a
/// certificate that has expired: people need the second.
#[derive(Debug, Default)]
pub struct Reasons(Vec<String>);

impl Reasons {
    /// Whether this reason is to be said: it is new, apart from the numbers in it, and few were said.
    pub fn is_news(&mut self, why: &str) -> bool {
        let words: String = why.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        let is_news = self.0.len() < REASONS_MAX && !self.0.contains(&words);
        if is_news {
            self.0.push(words);
        }
        is_news
    }

    /// Whether one was said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A server is connected; all reasons are new again.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_said_once_in_each_absence() {
        let mut reasons = Reasons::default();
        let said = ["refused", "expired 12 s ago", "expired 13 s ago", "refused", "a", "b", "c"];
        let said: Vec<&str> = said.into_iter().filter(|why| reasons.is_news(why)).collect();
        assert_eq!(said, ["refused", "expired 12 s ago", "a", "b"]);
        assert!(!reasons.is_empty());
        reasons.clear();
        assert!(reasons.is_empty() && reasons.is_news("refused"));
    }
}
