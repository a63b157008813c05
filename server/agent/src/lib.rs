//! The agent CLI: probes, its files, its logs.
