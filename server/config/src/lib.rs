//! The configuration: schema, loading, checking, showing.
