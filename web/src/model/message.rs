//! A message while it is typed and sent.
//!
//! Nothing of it is lost, and nothing is sent twice.

/// What stands in a message box, and what is on its way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    /// What stands in the box.
    pub text: String,
    /// What was sent and is not answered.
    pub sent: Option<String>,
}

impl Draft {
    /// Takes what stands in the box on its way.
    ///
    /// Nothing is taken while another message is, or while the box is empty.
    pub fn begin(&mut self) -> Option<String> {
        if self.sent.is_some() || self.text.trim().is_empty() {
            return None;
        }
        let sent = std::mem::take(&mut self.text);
        self.sent = Some(sent.clone());
        Some(sent)
    }

    /// Takes the answer to a message: refused, it stands in the box again.
    pub fn end(&mut self, message: &str, is_taken: bool) {
        if self.sent.as_deref() == Some(message) {
            self.sent = None;
            if !is_taken {
                self.text = joined(message, &self.text);
            }
        } else if is_taken && let Some(rest) = self.text.strip_prefix(message) {
            // It was refused before, and was repeated from what was said of that.
            let rest = rest.strip_prefix('\n').or(Some("").filter(|_| rest.is_empty()));
            if let Some(rest) = rest {
                self.text = rest.to_owned();
            }
        }
    }

    /// Everything that the service has not taken yet.
    #[must_use]
    pub fn untaken(&self) -> String {
        joined(self.sent.as_deref().unwrap_or_default(), &self.text)
    }
}

/// Two texts below each other.
fn joined(first: &str, second: &str) -> String {
    match (first, second) {
        ("", one) | (one, "") => one.to_owned(),
        (first, second) => format!("{first}\n{second}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Draft {
        Draft { text: text.to_owned(), sent: None }
    }

    #[test]
    fn a_message_that_is_taken_is_gone_and_the_next_one_stays() {
        let mut draft = typed("go on");
        assert_eq!(draft.begin().as_deref(), Some("go on"));
        // The same words once more are another message.
        draft.text = "go on".to_owned();
        assert_eq!(draft.begin(), None, "one after the other");
        assert_eq!(draft.untaken(), "go on\ngo on");
        draft.end("go on", true);
        assert_eq!(draft, typed("go on"));
    }

    #[test]
    fn a_message_that_is_refused_stands_before_what_was_typed_since() {
        let mut draft = typed("first");
        draft.begin();
        draft.text = "second".to_owned();
        draft.end("first", false);
        assert_eq!(draft, typed("first\nsecond"));
        // Repeated from the notice it goes, and the rest stays.
        draft.end("first", true);
        assert_eq!(draft, typed("second"));
        assert_eq!(typed("firsthand").untaken(), "firsthand");
        let mut other = typed("firsthand");
        other.end("first", true);
        assert_eq!(other, typed("firsthand"), "another message");
        assert_eq!(typed(" \n").begin(), None);
    }
}
