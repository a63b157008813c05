//! Processes of this machine: identity, launch, signal, exit, locks.
