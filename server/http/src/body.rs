//! Request bodies: strict JSON first, then members by name with field-precise errors.

pub(crate) mod fields;
pub(crate) mod json;
