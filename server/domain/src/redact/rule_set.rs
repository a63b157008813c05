//! Names of the rules, and sets of them.

/// A set of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules(pub(super) u32);

impl Rules {
    pub const NONE: Self = Self(0);
    pub const IDENTIFIER: Self = Self(1);
    pub const UUID: Self = Self(1 << 1);
    pub const GITHUB: Self = Self(1 << 2);
    pub const PAT: Self = Self(1 << 3);
    pub const GITLAB: Self = Self(1 << 4);
    pub const AWS: Self = Self(1 << 5);
    pub const SK: Self = Self(1 << 6);
    pub const SLACK: Self = Self(1 << 7);
    pub const JWT: Self = Self(1 << 8);
    pub const GOOGLE: Self = Self(1 << 9);
    pub const URL_USER: Self = Self(1 << 10);
    pub const QUERY: Self = Self(1 << 11);
    pub const COOKIE: Self = Self(1 << 12);
    pub const BEARER: Self = Self(1 << 13);
    pub const BASIC: Self = Self(1 << 14);
    pub const KEY_VALUE: Self = Self(1 << 15);
    pub const PEM: Self = Self(1 << 16);

    /// Whether one of `others` is among these.
    pub fn name(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
