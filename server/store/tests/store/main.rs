//! The store against real files and real other processes.

// The attribute tells the lints that the helpers of these tests are tests, too.
#[cfg(test)]
mod access;
#[cfg(test)]
mod bridges;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod history;
#[cfg(test)]
mod odd_rows;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod start_states;
#[cfg(test)]
mod support;
#[cfg(test)]
mod ui_prefs;
