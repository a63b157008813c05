//! The line ends of a text that is edited.

/// What was typed, with the line ends of the text that was read.
///
/// A field gives its text with line feeds alone: a file of another system would be changed in each
/// of its lines.
#[must_use]
pub fn as_in(read: &str, typed: String) -> String {
    let is_other = read.contains("\r\n") && !read.replace("\r\n", "").contains('\n');
    if is_other { typed.replace("\r\n", "\n").replace('\n', "\r\n") } else { typed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_stay_as_they_were_read() {
        let typed = || "one\ntwo\n".to_owned();
        assert_eq!(as_in("a\r\nb", typed()), "one\r\ntwo\r\n");
        assert_eq!(as_in("a\r\nb", "one\r\ntwo".to_owned()), "one\r\ntwo");
        // Mixed ones are kept as the field gives them.
        for read in ["a\nb", "a\r\nb\nc", "", "a"] {
            assert_eq!(as_in(read, typed()), typed());
        }
    }
}
