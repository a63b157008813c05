//! The service: use-cases, supervisor, HTTP and command line.
