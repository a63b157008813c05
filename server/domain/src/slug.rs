//! The agent's directory name for a project path (`agent-cli` §6.1, agent 2.1.197).

/// Longest slug that carries no checksum.
const PLAIN: usize = 200;

/// The name of the agent's directory for the files of a path.
/// Every UTF-16 unit outside `[A-Za-z0-9]` becomes `-`, and a long name is cut and ends with a
/// checksum of the whole path.
///
/// Lossy: different paths can share a slug, so it is never read back into a path. `path` is the
/// absolute path with symbolic links resolved.
#[must_use]
pub fn slug(path: &str) -> String {
    let units: Vec<u16> = path.encode_utf16().collect();
    let letter = |unit: &u16| {
        let c = u8::try_from(*unit).ok().filter(u8::is_ascii_alphanumeric);
        c.map_or('-', char::from)
    };
    if units.len() <= PLAIN {
        return units.iter().map(letter).collect();
    }
    let hash =
        units.iter().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(*unit)));
    let mut slug: String = units.iter().take(PLAIN).map(letter).collect();
    slug.push('-');
    slug.push_str(&base36(hash.unsigned_abs()));
    slug
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn everything_but_letters_and_digits_becomes_a_dash() {
        assert_eq!(slug("/srv/p/my_app"), "-srv-p-my-app");
        assert_eq!(slug("/srv/p/my-app"), "-srv-p-my-app");
        assert_eq!(slug("/home/Ada/p.1 x"), "-home-Ada-p-1-x");
        assert_eq!(slug(""), "");
    }

    #[test]
    fn characters_count_as_utf_16_units() {
        assert_eq!(slug("/ü"), "--");
        assert_eq!(slug("/🚀"), "---");
    }

    /// Expected values computed with the JavaScript of the rule.
    #[test]
    fn a_long_path_is_cut_and_gets_a_checksum() {
        let at_limit = format!("/{}", "a".repeat(199));
        assert_eq!(slug(&at_limit), format!("-{}", "a".repeat(199)));
        for (path, checksum) in [
            (format!("/{}", "a".repeat(200)), "b6ymvl"),
            (format!("/srv/{}/x", "é".repeat(198)), "9lzsfk"),
            ("🚀".repeat(101), "a431n3"),
        ] {
            let slug = slug(&path);
            assert_eq!(slug.get(200..), Some(format!("-{checksum}").as_str()), "{path}");
        }
    }

    #[test]
    fn base_36_has_no_leading_zero_and_reaches_the_largest_hash() {
        assert_eq!(base36(0), "0");
        assert_eq!(base36(35), "z");
        assert_eq!(base36(36), "10");
        assert_eq!(base36(i32::MIN.unsigned_abs()), "zik0zk");
    }

    proptest! {
        #[test]
        fn a_slug_is_always_one_plain_file_name(path in "\\PC{0,300}") {
            let slug = slug(&path);
            prop_assert!(slug.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
            prop_assert!(slug.len() <= 200 + 1 + 6);
        }
    }
}
