//! Size limits of a request head (`http-api` §0.2, H75).

use crate::error::Refusal;
use poem::http::{HeaderMap, StatusCode, Uri};

/// Longest request target, bytes.
pub(crate) const TARGET: usize = 8 * 1024;
/// Largest header block, bytes: names, values and the four bytes around them.
pub(crate) const HEADER_BLOCK: usize = 32 * 1024;
/// Most header fields.
pub(crate) const HEADER_FIELDS: usize = 100;

/// Checks target and headers.
///
/// # Errors
/// 414 or 431; both close the connection.
pub(crate) fn check(uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
    if target > TARGET {
        return Err(Refusal::too_large(
            StatusCode::URI_TOO_LONG,
            "the request target is longer than 8 KiB; use a shorter one",
        ));
    }
    let block: usize =
        headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if headers.len() > HEADER_FIELDS || block > HEADER_BLOCK {
        return Err(Refusal::too_large(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "the request has more than 100 header fields or 32 KiB of them; send fewer",
        ));
    }
    Ok(())
}
