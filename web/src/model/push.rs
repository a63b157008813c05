//! How notifications of this device stand while the page is closed.

/// What is known of this browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The configuration offers them.
    pub is_offered: bool,
    /// The address is encrypted, or this machine.
    pub is_secure: bool,
    /// The browser can do it.
    pub is_supported: bool,
    /// The browser can do it only for pages that are installed, and this one is not.
    pub needs_install: bool,
    /// The person refused, in the browser.
    pub is_denied: bool,
    /// They were switched on here, and the browser still has them.
    pub is_on: bool,
}

/// How they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The browser was not asked yet.
    Asking,
    /// The configuration does not offer them.
    NotOffered,
    /// The address is not encrypted.
    Insecure,
    /// The page has to be installed first.
    NotInstalled,
    /// The browser has none.
    Unsupported,
    /// The person refused, in the browser.
    Denied,
    /// They are off.
    Off,
    /// They are on.
    On,
}

impl Standing {
    /// Whether a person can change it here.
    #[must_use]
    pub fn can_change(self) -> bool {
        matches!(self, Self::Off | Self::On)
    }
}

/// How they stand: the first obstacle, else whether they are on.
#[must_use]
pub fn standing(facts: Facts) -> Standing {
    match facts {
        Facts { is_offered: false, .. } => Standing::NotOffered,
        Facts { is_secure: false, .. } => Standing::Insecure,
        Facts { needs_install: true, .. } => Standing::NotInstalled,
        Facts { is_supported: false, .. } => Standing::Unsupported,
        Facts { is_denied: true, .. } => Standing::Denied,
        Facts { is_on: true, .. } => Standing::On,
        _ => Standing::Off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Facts = Facts {
        is_offered: true,
        is_secure: true,
        is_supported: true,
        needs_install: false,
        is_denied: false,
        is_on: false,
    };

    #[test]
    fn the_first_obstacle_is_named() {
        for (facts, expected) in [
            (GOOD, Standing::Off),
            (Facts { is_on: true, ..GOOD }, Standing::On),
            (Facts { is_on: true, is_denied: true, ..GOOD }, Standing::Denied),
            (Facts { is_supported: false, ..GOOD }, Standing::Unsupported),
            (Facts { is_supported: false, needs_install: true, ..GOOD }, Standing::NotInstalled),
            (Facts { is_supported: false, is_secure: false, ..GOOD }, Standing::Insecure),
            (Facts { is_offered: false, is_secure: false, ..GOOD }, Standing::NotOffered),
        ] {
            assert_eq!(standing(facts), expected, "{facts:?}");
            assert_eq!(
                expected.can_change(),
                matches!(expected, Standing::Off | Standing::On),
                "{expected:?}"
            );
        }
    }
}
