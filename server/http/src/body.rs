//! Request bodies: strict JSON, then members by name with errors for each field.

pub(crate) mod fields;
pub(crate) mod json;
