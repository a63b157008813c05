//! Ids of launches.

use crate::AppError;
use svc_domain::identity::LaunchId;

/// A random launch id.
pub(crate) fn new_launch_id() -> Result<LaunchId, AppError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| AppError::internal(error.to_string()))?;
    hex::encode(bytes).parse().map_err(AppError::internal)
}
