//! What a configured password hash is worth (H22).
//! It may be too cheap, too costly, or no hash at all.

use crate::secret::Secret;
use password_hash::PasswordHash;
use svc_domain::posture::HashQuality;

/// Most memory, KiB, and most passes: every wrong password takes that much.
const MOST_KIB: u32 = 1024 * 1024;
const MOST_PASSES: u32 = 16;
/// Least memory, KiB, and least memory times passes.
///
/// The cheapest of the equivalent settings that the OWASP password storage cheat sheet (2023)
/// accepts are 7 MiB with 5 passes. Its other ones (9 MiB and 4, 12 and 3, 19 and 2, 46 and 1) are
/// above this line.
const LEAST_KIB: u32 = 7 * 1024;
const LEAST_WORK: u64 = 7 * 1024 * 5;
/// Least salt and least output, bytes.
/// RFC 9106 allows no shorter salt, and a shorter output makes other passwords match.
const LEAST_SALT: usize = 8;
const LEAST_OUTPUT: usize = 16;
/// The version of RFC 9106.
/// The one before it reuses memory in a way that attackers gain from.
const VERSION: u32 = 19;

/// Judges the hash of the configuration.
pub(super) fn quality(hash: Option<&Secret>) -> HashQuality {
    let Some(hash) = hash else { return HashQuality::Missing };
    let Ok(hash) = PasswordHash::new(hash.expose()) else { return HashQuality::Unusable };
    let Some(output) = hash.hash.filter(|_| hash.algorithm.as_str() == "argon2id") else {
        return HashQuality::Unusable;
    };
    // What is not written is taken for nothing: `svc hash-password` writes everything.
    let cost = |name: &str| hash.params.get_decimal(name).unwrap_or(0);
    let (memory, passes) = (cost("m"), cost("t"));
    if memory > MOST_KIB || passes > MOST_PASSES {
        return HashQuality::Costly;
    }
    let mut space = [0; 64];
    let salt = hash.salt.and_then(|salt| salt.decode_b64(&mut space).ok().map(<[u8]>::len));
    let is_weak = memory < LEAST_KIB
        || u64::from(memory) * u64::from(passes) < LEAST_WORK
        || hash.version != Some(VERSION)
        || salt.is_none_or(|salt| salt < LEAST_SALT)
        || output.len() < LEAST_OUTPUT;
    if is_weak { HashQuality::Weak } else { HashQuality::Sound }
}
