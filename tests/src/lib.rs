//! Black-box tests and the agent simulator.

pub mod sim;
