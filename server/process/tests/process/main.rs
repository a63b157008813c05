//! The crate against real processes of this machine.

// The attribute tells the lints that the helpers of these tests are tests, too.
#[cfg(test)]
mod exits;
#[cfg(test)]
mod launches;
#[cfg(test)]
mod locks;
#[cfg(test)]
mod signals;
#[cfg(test)]
mod support;
