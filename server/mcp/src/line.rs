//! Lines of bounded length from a stream.

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// Longest line, without its end (H137).
pub(crate) const LONGEST: usize = 8 * 1024 * 1024;

/// A line that was read to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Its bytes, without the end of the line.
    Whole(Vec<u8>),
    /// It was longer than allowed; its bytes are gone.
    TooLong,
}

/// The next line; `None` at the end of the input.
/// What follows the last line end counts as one.
pub(crate) async fn next_line(
    input: &mut (impl AsyncBufRead + Unpin),
    longest: usize,
) -> std::io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let buffer = input.fill_buf().await?;
        if buffer.is_empty() {
            let is_something = is_too_long || !line.is_empty();
            return Ok(is_something.then(|| finished(line, is_too_long)));
        }
        let end = memchr::memchr(b'\n', buffer);
        let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
        if !is_too_long && line.len() + part.len() > longest {
            is_too_long = true;
            line = Vec::new();
        }
        if !is_too_long {
            line.extend_from_slice(part);
        }
        let used = end.map_or(buffer.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(finished(line, is_too_long)));
        }
    }
}

fn finished(line: Vec<u8>, is_too_long: bool) -> Line {
    if is_too_long { Line::TooLong } else { Line::Whole(line) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::BufReader;

    async fn lines(input: &[u8], longest: usize) -> Vec<Line> {
        // A tiny buffer, so that lines cross its end.
        let mut input = BufReader::with_capacity(3, input);
        let mut all = Vec::new();
        while let Some(line) = next_line(&mut input, longest).await.unwrap() {
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn a_long_line_is_dropped_and_the_next_one_is_whole() {
        let whole = |text: &str| Line::Whole(text.into());
        assert_eq!(
            lines(b"one\n12345678\n1234567\n\nend", 7).await,
            [whole("one"), Line::TooLong, whole("1234567"), whole(""), whole("end")]
        );
        assert_eq!(lines(b"123456789", 7).await, [Line::TooLong]);
        assert_eq!(lines(b"", 7).await, []);
    }
}
