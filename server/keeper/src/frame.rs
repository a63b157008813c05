//! Frames: a length of 4 bytes, big-endian, and that many bytes of JSON.

use crate::message::MAX_FRAME_BYTES;
use serde::Serialize;

/// Bytes of the length.
pub(crate) const HEAD: usize = 4;

/// Why bytes are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {0} bytes is longer than allowed")]
pub(crate) struct TooLong(pub(crate) u32);

/// A message as a frame.
///
/// # Errors
/// It is longer than [`MAX_FRAME_BYTES`] or cannot be written.
pub(crate) fn encode(message: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEAD];
    serde_json::to_writer(&mut bytes, message)?;
    let body = bytes.len() - HEAD;
    if body > MAX_FRAME_BYTES {
        return Err(std::io::Error::other("the frame is longer than allowed"));
    }
    let length = u32::try_from(body).unwrap_or(u32::MAX).to_be_bytes();
    for (to, from) in bytes.iter_mut().zip(length) {
        *to = from;
    }
    Ok(bytes)
}

/// The length of a frame's body.
///
/// # Errors
/// It is longer than [`MAX_FRAME_BYTES`].
pub(crate) fn body_length(head: [u8; HEAD]) -> Result<usize, TooLong> {
    let length = u32::from_be_bytes(head);
    let fits = usize::try_from(length).ok().filter(|length| *length <= MAX_FRAME_BYTES);
    fits.ok_or(TooLong(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_its_length_and_an_excessive_length_is_refused() {
        let bytes = encode(&"ab").unwrap();
        assert_eq!(bytes, b"\0\0\0\x04\"ab\"");
        assert_eq!(body_length([0, 0x10, 0, 0]), Ok(MAX_FRAME_BYTES));
        assert_eq!(body_length([0, 0x10, 0, 1]), Err(TooLong(0x0010_0001)));
        assert_eq!(body_length([0x80, 0, 0, 0]), Err(TooLong(0x8000_0000)));
        assert!(encode(&"x".repeat(MAX_FRAME_BYTES)).is_err());
    }
}
