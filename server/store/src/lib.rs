//! The registry: SQLite, migrations, compare-and-swap.
