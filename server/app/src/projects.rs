//! Projects: what a person allows the agent to do in their directories.

mod trusting;
