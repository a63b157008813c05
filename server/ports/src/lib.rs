//! Traits over the outside world, only where there is more than one implementation:
//! processes (Linux with pidfd, any Unix with polling, a fake in tests) and the clock.

pub mod clock;
pub mod process;

pub use clock::Clock;
pub use process::ProcessHost;
