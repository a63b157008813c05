//! How often the screen changes.
//!
//! Steps that come close together are shown together.

/// Least time between two changes of the screen, milliseconds.
///
/// A change that follows another at once has to be painted within 100 ms. Building and painting it
/// takes a part of that.
const STEP_MS: f64 = 50.0;
/// What comes within the time of a frame is shown with it.
const FRAME_MS: f64 = 16.0;

/// How long to wait before the next change of the screen.
///
/// `since_last` is the time since the last one, milliseconds.
#[must_use]
pub fn wait_ms(since_last: f64) -> f64 {
    (STEP_MS - since_last).clamp(FRAME_MS, STEP_MS)
}

#[cfg(test)]
mod tests {
    use super::wait_ms;

    #[test]
    fn what_comes_alone_is_shown_in_the_next_frame() {
        assert_eq!(wait_ms(10_000.0), 16.0);
        assert_eq!(wait_ms(50.0), 16.0);
    }

    #[test]
    fn what_follows_at_once_is_shown_soon_and_a_flood_twenty_times_a_second() {
        assert_eq!(wait_ms(0.0), 50.0);
        assert_eq!(wait_ms(20.0), 30.0);
        assert_eq!(wait_ms(-5_000.0), 50.0); // the clock of the device stepped back
    }
}
