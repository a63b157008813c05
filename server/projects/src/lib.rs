//! Project directories: discovery, watching, git facts.
