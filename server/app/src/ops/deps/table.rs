//! The optional parts, and the builds of them that this version trusts.
//!
//! A build is trusted by its SHA-256. Where an archive of a release lies, and what its digest is,
//! is known only when that release is made, so `cargo xtask package` hands both to the compiler.
//! A version that was built without them has no download, and says so.

/// What becomes of an optional part on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is in `svc` itself.
    BuiltIn,
    /// The daemon of Direct Sessions, which can be installed into the state directory.
    Program {
        /// Name of its file.
        file: &'static str,
        /// How to get it without this command.
        otherwise: &'static str,
    },
    /// It belongs to another system.
    Elsewhere(&'static str),
}

/// One optional part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extra {
    /// The name in commands.
    pub name: &'static str,
    /// The program or package it comes as.
    pub dist: &'static str,
    pub kind: Kind,
}

/// Every optional part.
pub(super) const EXTRAS: [Extra; 4] = [
    Extra { name: "pty", dist: "svc", kind: Kind::BuiltIn },
    Extra { name: "notify", dist: "svc", kind: Kind::BuiltIn },
    Extra {
        name: "hosted",
        dist: "svc-hosted",
        kind: Kind::Program {
            file: crate::hosted::PROGRAM,
            otherwise: "put the svc-hosted of the same release beside svc",
        },
    },
    Extra { name: "service-wrapper", dist: "shawl", kind: Kind::Elsewhere("Windows") },
];

/// A build that is trusted without being told its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin {
    /// Name of the part.
    pub extra: &'static str,
    /// The system, as the compiler calls it.
    pub os: &'static str,
    /// The processor, as the compiler calls it.
    pub arch: &'static str,
    /// Where it is, as `https://…#sha256=DIGEST`.
    pub source: &'static str,
}

macro_rules! pins {
    ($($extra:literal, $os:literal, $arch:literal, $variable:literal;)+) => {
        /// Every build that a release can pin; `None` where this one pins nothing.
        pub(super) const PINS: &[Option<Pin>] = &[$(match option_env!($variable) {
            Some(source) => Some(Pin { extra: $extra, os: $os, arch: $arch, source }),
            None => None,
        }),+];
    };
}

pins! {
    "hosted", "linux", "x86_64", "SVC_PIN_HOSTED_LINUX_X86_64";
    "hosted", "linux", "aarch64", "SVC_PIN_HOSTED_LINUX_ARM64";
    "hosted", "macos", "x86_64", "SVC_PIN_HOSTED_MACOS_X86_64";
    "hosted", "macos", "aarch64", "SVC_PIN_HOSTED_MACOS_ARM64";
    "hosted", "windows", "x86_64", "SVC_PIN_HOSTED_WINDOWS_X86_64";
    "hosted", "windows", "aarch64", "SVC_PIN_HOSTED_WINDOWS_ARM64";
}

impl Pin {
    /// Address and digest of the build.
    pub(super) fn parts(&self) -> Option<(&'static str, String)> {
        let (url, digest) = self.source.split_once("#sha256=")?;
        Some((url, digest_of(digest)?))
    }
}

/// A SHA-256 in hexadecimal digits, in lower case.
pub(crate) fn digest_of(text: &str) -> Option<String> {
    let fits = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    fits.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pinned_has_an_address_and_a_whole_digest() {
        for pin in PINS.iter().flatten() {
            let (url, _) = pin.parts().expect("a digest");
            assert!(url.starts_with("https://"), "{url}");
        }
        let pin = |source| Pin { extra: "hosted", os: "linux", arch: "x86_64", source };
        assert_eq!(pin("https://h/a.tar.gz").parts(), None);
        assert_eq!(pin("https://h/a.tar.gz#sha256=12").parts(), None);
        assert_eq!(digest_of(&"AB".repeat(32)), Some("ab".repeat(32)));
        assert_eq!(digest_of(&"ag".repeat(32)), None);
    }
}
