//! What the redactor masks, and what it leaves alone.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn masks(raw: &str, expected: &str) {
    assert_eq!(redact_text(raw), expected, "from {raw:?}");
}

#[track_caller]
fn leaves(raw: &str) {
    assert_eq!(redact_text(raw), raw);
}

/// One text per rule, and the part of it that must never be seen.
pub(super) const SAMPLES: &[(&str, &str)] = &[
    ("env_9K2mQ7xT", "9K2mQ7xT"),
    ("session_01AB23CD45_backup", "01AB23CD45"),
    ("my_env_01AB23CD45", "01AB23CD45"),
    ("cse_abcdef", "abcdef"),
    ("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", "4b5a-6978-8796"),
    ("ghp_abcdefghijklmnopqrst", "abcdefghijklmnopqrst"),
    ("github_pat_11ABCDEFG0abcdefghij_k", "11ABCDEFG0abcdefghij"),
    ("glpat-abcdefghij_klmn-op", "abcdefghij_klmn-op"),
    ("AKIAABCDEFGHIJKLMNOP", "ABCDEFGHIJKLMNOP"),
    ("ASIAABCDEFGHIJKLMNOPQRS", "ABCDEFGHIJKLMNOPQRS"),
    ("sk-demo-0123456789abcdef", "demo-0123456789abcdef"),
    ("xoxb-0000000000-aa", "0000000000-aa"),
    ("svc_pat_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAA"),
    ("Bearer abc.def-ghi.jkl", "abc.def-ghi.jkl"),
    ("eyJhbGciOi.eyJzdWIiOi.c2lnbmF0", "eyJzdWIiOi"),
    ("https://bob:pw@h/x", "bob:pw"),
    ("https://h/x?token=abc123", "abc123"),
    ("https://h/x#access_token=abc", "abc"),
    ("DB_PASSWORD=hunter2hunter2", "hunter2hunter2"),
    ("Authorization: Basic QWxhZGRpbjpvcGVu", "QWxhZGRpbjpvcGVu"),
    ("AIzaSyA-0123456789_abcdefghijklmnopqrstu", "0123456789_abcdefghij"),
    ("svc_session_0123456789ab=cookie.value", "cookie.value"),
    ("svc_elevation_0123456789ab=x.y", "x.y"),
];

#[test]
fn every_row_of_the_table_is_masked() {
    masks("env_9K2mQ7xT", "env_<redacted>");
    masks("session_01AB23CD45_backup", "session_<redacted>_backup");
    masks("my_env_01AB23CD45", "my_env_<redacted>");
    masks("id cse_01AbCdEfGh.", "id cse_<redacted>.");
    masks("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", MASK);
    masks("0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0", MASK);
    masks("Bearer abc.def-ghi.jkl", "Bearer <redacted>");
    masks("BEARER   abc.def-ghi.jkl/+= x", "BEARER   <redacted> x");
    masks("https://bob:pw@h/x", "https://<redacted>@h/x");
    masks("https://bob:p@w@h/x", "https://<redacted>@h/x");
    masks("GET /x?page=2&token=abc123&x=1", "GET /x?page=2&token=<redacted>&x=1");
    masks("DB_PASSWORD=hunter2hunter2", "DB_PASSWORD=<redacted>");
    masks("svc_session_a1b2c3d4e5f6=a.b; Path=/", "svc_session_a1b2c3d4e5f6=<redacted>; Path=/");
    for (raw, secret) in SAMPLES {
        let out = redact_text(raw);
        assert!(!out.contains(secret) && out.contains(MASK), "{raw:?} became {out:?}");
    }
}

#[test]
fn what_only_resembles_a_secret_stays() {
    for raw in [
        "env_abc",
        "session_max_age_seconds",
        "session_01",
        "0f1e2d3c-4b5a",
        "ghp_short",
        "AKIA12",
        "sk-8",
        "xox-1",
        "svc_pat_",
        "bearer short",
        "eyJ.a",
        "https://h/a@b",
        "https://h/x?page=2",
        "author: Ada Lovelace",
        "author: ada.lovelace",
        "co-authors = everybody-here",
        "max_tokens: 8",
        r#"{"max_tokens":8192,"temperature":0.5,"model":"large"}"#,
        r#"{"token":null,"other":"something"}"#,
        "password: short",
        "basic training is over",
        "ten past eight: everything is fine",
        "-----BEGIN CERTIFICATE-----",
        "================================================================",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ] {
        leaves(raw);
    }
}

#[test]
fn secret_keys_are_known_in_every_notation() {
    for raw in [
        "password: hunter2hunter2",
        "password = \"hunter2hunter2\"",
        "\"db.passwd\" : 'hunter2hunter2'",
        "{\"apiKey\":\"hunter2hunter2\",\"a\":1}",
        r#"log: "{\"client_secret\":\"hunter2hunter2\"}""#,
        r#"log: "{\\\"credential\\\":\\\"hunter2hunter2\\\"}""#,
        "X-Auth: hunter2hunter2",
        "oauth=>hunter2hunter2",
        "config['auth']= hunter2hunter2",
        "token=hunter2hunter2,more",
        "token=12,hunter2hunter2",
        "password=\"12,hunter2hunter2\"",
        "authorization: hunter2hunter2",
        "Authorization: ApiKey hunter2hunter2",
        "Proxy-Authorization: Digest hunter2hunter2",
        "secret=\"hunter2hunter2 never closed",
        "https://h/?my_token=hunter2hunter2&page=2",
    ] {
        let out = redact_text(raw);
        assert!(!out.contains("hunter2hunter2"), "{raw:?} became {out:?}");
    }
    masks("{\"token\":\"0123456789\",\"n\":1}", "{\"token\":\"<redacted>\",\"n\":1}");
    masks("/?my_token=0123456789&page=2", "/?my_token=<redacted>&page=2");
}

#[test]
fn every_token_of_a_chain_is_masked() {
    for raw in [
        "env_01AAAAAAAAsession_01BBBBBBBBcse_01CCCCCCCC",
        "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0f1e2-4b5a-6978-8796-a5b4c3d2e1f0",
        "ghp_aaaaaaaaaaaaaaaaaaaaghp_bbbbbbbbbbbbbbbbbbbb",
        "AKIAABCDEFGHIJKLMNOPAKIAABCDEFGHIJKLMNOP",
        "xoxb-aaaaaaaaaaghp_bbbbbbbbbbbbbbbbbbbb",
        "eyJa.eyJb.sigeyJc.eyJd.sig",
        "bearer aaaaaaaaaaaabearer bbbbbbbbbbbbbbb",
        "https://a:b@c://d:e@f",
    ] {
        let out = redact_text(raw);
        for leak in ["AAAA", "BBBB", "CCCC", "5a-6978", "aaaaa", "bbbbb", "KLMN", "eyJd", "d:e"] {
            assert!(!out.contains(leak), "{raw:?} became {out:?}");
        }
    }
}

#[test]
fn an_escape_or_invisible_character_hides_nothing() {
    for noise in [
        "\u{1b}[31m",
        "\u{1b}[38;5;12m",
        "\u{1b}[3\u{0}1m",
        "\u{9b}31m",
        "\u{1b}(B",
        "\u{1b}7",
        "\u{1b}]0;title\u{7}",
        "\u{1b}]8;;https://h\u{1b}\\",
        "\u{1b}P1$r\u{1b}\\",
        "\u{1b}_x\u{9c}",
        "\u{9d}x\u{9c}",
        "\u{200b}",
        "\u{feff}",
        "\u{ad}",
        "\u{202e}",
        "\u{e0041}",
        "\u{0}",
        "\u{7f}",
        "\u{85}",
    ] {
        let id = format!("env_{noise}01AB23CD45");
        assert_eq!(redact_text(&id), "env_<redacted>", "{noise:?}");
        let before = format!("sess{noise}ion_01AB23CD45");
        assert_eq!(redact_text(&before), "session_<redacted>", "{noise:?}");
        let every: String =
            "sk-demo-0123456789abcdef".chars().map(|c| format!("{c}{noise}")).collect();
        assert_eq!(redact_text(&every), MASK, "{noise:?}");
    }
}

#[test]
fn an_escape_inside_an_encoded_string_hides_nothing_either() {
    for noise in [r"\u001b[31m", r"\x1b[0m", r"\033[1m", r"\u200b", "%E2%80%8B", "%1B%5B31m"] {
        let out = redact_text(&format!("\"env_{noise}01AB23CD45\""));
        assert_eq!(out, "\"env_<redacted>\"", "{noise:?}");
    }
    // What the encoded sequence itself carries is on the wire as well.
    let out = redact_text(r"\u001b]0;env%5F01AB23CD45\u0007");
    assert!(!out.contains("01AB23CD45"), "{out}");
}

/// Beginnings of escape sequences that take visible characters after them.
const OPENINGS: [&str; 15] = [
    "\u{1b}[",
    "\u{9b}",
    "\u{1b}",
    "\u{1b}(",
    "\u{1b}#",
    "\u{1b} ",
    "\u{1b}\u{1b}",
    "\u{1b}]",
    "\u{1b}P",
    "\u{1b}X",
    "\u{1b}^",
    "\u{1b}_",
    "\u{90}",
    "\u{9d}",
    "\u{9f}",
];
/// The same with parameters.
const OPENINGS_WITH_PARAMETERS: [&str; 8] = [
    "\u{1b}[ ",
    "\u{1b}[3;",
    "\u{1b}[?2",
    "\u{1b}[3\u{0}1",
    "\u{1b}[!",
    "\u{9b}38;5",
    "\u{1b}]0;",
    "\u{9d}8;;",
];

#[test]
fn h66_an_escape_sequence_takes_no_part_of_a_secret_out_of_sight() {
    for (raw, secret) in SAMPLES {
        for opening in OPENINGS.into_iter().chain(OPENINGS_WITH_PARAMETERS) {
            for end in ["", "\u{7}", "\u{1b}\\", "\u{9c}", "\u{1b}[0m"] {
                hides(&format!("a {opening}{raw}{end} z"), secret);
            }
        }
        for (cut, _) in raw.char_indices() {
            let (before, after) = raw.split_at(cut);
            // Behind the mark of a character set the first part is lost.
            for opening in OPENINGS.iter().filter(|it| !it.ends_with(['(', '#', ' '])) {
                hides(&format!("a {before}{opening}{after} z"), secret);
            }
        }
    }
}

/// No piece of a secret is shown that is longer than a third of it.
#[track_caller]
fn hides(raw: &str, secret: &str) {
    let out = redact_text(raw);
    let piece = (secret.len() / 3 + 1).max(4).min(secret.len());
    let shown = (0..=secret.len() - piece).find(|at| out.contains(&secret[*at..at + piece]));
    assert!(shown.is_none(), "{raw:?} became {out:?}");
}

#[test]
fn h66_what_a_sequence_takes_may_be_encoded_or_a_private_key() {
    masks("\u{1b}[ env_01AB23CD45", "env_<redacted>");
    masks("\u{1b}[0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", MASK);
    masks("\u{1b}[ %65nv_01AB23CD45 z", "env_<redacted> z");
    masks(r#""\u001b[ env_01AB23CD45" z"#, r#""\u001b[ env_<redacted>" z"#);
    let key = "-----BEGIN PRIVATE KEY-----\nshort==\n-----END PRIVATE KEY-----";
    for opening in OPENINGS {
        let out = redact_text(&format!("{opening}{key}"));
        assert!(!out.contains("short"), "{opening:?}: {out:?}");
    }
    let encoded = key.replace("PRIVATE", "\\u001b[1mPRIVATE\\u001b[0m").replace('\n', "\\n");
    assert!(!redact_text(&encoded).contains("short"), "{encoded}");
    // The text behind a title or a link may be the end of a secret that began in it.
    masks("\u{1b}]8;;https://h/?token=abc123\u{7}link\u{1b}]8;;\u{7} x", "<redacted> x");
    masks("\u{1b}]8;;https://h/\u{7}link\u{1b}]8;;\u{7} x", "link x");
    masks("\u{1b}[2K\u{1b}[1Aprogress \u{1b}[?25h100 %", "progress 100 %");
}

#[test]
fn escape_sequences_and_invisible_characters_go_and_text_stays() {
    masks("\u{1b}[1mbold\u{1b}[0m \u{1b}]0;t\u{7}x\ty\r", "bold x\ty\r");
    masks("a\u{1b}[", "a");
    masks("a\u{1b}", "a");
    masks("\u{1b}é", "é");
    // An unterminated string sequence cannot hide the rest of its line or the next ones.
    masks("a\u{1b}]0;visible\nnext\u{7}", "a0;visible\nnext");
    masks("a\u{1b}]0;visible\rnext\u{7}", "a0;visible\rnext");
    assert_eq!(strip_ansi("\u{1b}[31menv_01AB23CD45"), "env_01AB23CD45");
}

#[test]
fn h66_encoded_forms_are_masked() {
    for raw in [
        "env%5F01AB23CD45",
        "env%255f01AB23CD45",
        "env%25255f01AB23CD45",
        r"env\u005f01AB23CD45",
        r"env\\u005f01AB23CD45",
        r"env\u{5f}01AB23CD45",
        r"env\x5f01AB23CD45",
        "%65nv_01AB23CD45",
        r"\nenv_abcdefgh",
        "%0Aenv_abcdefgh",
        r"0f1e2d3c\u002d4b5a\u002d6978\u002d8796\u002da5b4c3d2e1f0",
        "0f1e2d3c%2D4b5a%2d6978%2D8796%2Da5b4c3d2e1f0",
        "https%3A%2F%2Fbob:pw@h",
        r"sk\u002ddemo\u002d0123456789abcdef",
        "Bearer%20abc.def-ghi.jkl",
        r"env%5Cu005f01AB23CD45",
        r"sk\u005Cu002ddemo%5Cu002d0123456789abcdef",
    ] {
        let out = redact_text(raw);
        assert!(out.contains(MASK), "{raw:?} became {out:?}");
        for leak in ["01AB23CD45", "abcdef", "4b5a", "bob:pw", "abc.def"] {
            assert!(!out.contains(leak), "{raw:?} became {out:?}");
        }
    }
    leaves("100% sure, 50%25 off, C:\\new\\table \\u12 %zz %E9");
}

#[test]
fn a_private_key_is_masked_as_a_whole() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    let key =
        format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\nshort==\n-----END RSA PRIVATE KEY-----");
    masks(
        &format!("before\nkey: {key} after\nlast"),
        "before\nkey: <redacted>\n<redacted>\n<redacted>\n<redacted> after\nlast",
    );
    let escaped = key.replace('\n', "\\n");
    masks(&format!("\"{escaped}\" tail"), "\"<redacted>\" tail");
    let encoded = key.replace(' ', "%20").replace('\n', "%0A");
    masks(&format!("k={encoded} tail"), "k=<redacted> tail");
    let coloured = key.replace("PRIVATE", "\u{1b}[1mPRIVATE\u{1b}[0m");
    assert!(!redact_text(&coloured).contains("short"));
}

#[test]
fn a_stream_joined_inside_a_private_key_shows_none_of_it() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    masks(
        &format!("{body}\nqL8x==\n-----END PRIVATE KEY-----\nnext"),
        "<redacted>\n<redacted>\n<redacted>\nnext",
    );
}

#[test]
fn a_stray_begin_line_does_not_blank_the_log_for_ever() {
    let mut redactor = Redactor::new(Colour::Strip);
    redactor.line("-----BEGIN PRIVATE KEY-----");
    for _ in 0..1_000 {
        assert_eq!(redactor.line("ordinary"), MASK);
    }
    assert!((0..2).any(|_| redactor.line("ordinary") == "ordinary"));
}

#[test]
fn colour_stays_only_where_it_touches_no_secret() {
    let mut keep = Redactor::new(Colour::Keep);
    assert_eq!(
        keep.line("\u{1b}[32mok\u{1b}[0m env_01AB23CD45 \u{1b}[31mred\u{1b}[m"),
        "\u{1b}[32mok\u{1b}[0m env_<redacted> \u{1b}[31mred\u{1b}[m"
    );
    assert_eq!(keep.line("\u{1b}[32menv_01AB23CD45\u{1b}[0m"), "\u{1b}[32menv_<redacted>\u{1b}[0m");
    assert_eq!(keep.line("\u{1b}[32mok\u{1b}[0m env_01\u{1b}[1mAB23CD45"), "ok env_<redacted>");
    // Only colour is kept, whatever else the line carries.
    assert_eq!(
        keep.line("\u{1b}[2J\u{1b}]52;c;eA==\u{7}\u{1b}[32mok\u{202e}\u{1b}[?25l\u{1b}[0m"),
        "\u{1b}[32mok\u{1b}[0m"
    );
}

#[test]
fn h66_hostile_repetition_ends() {
    // Each is quadratic or worse for a matcher that starts over at every opening.
    for unit in [
        "sk-",
        "env_01",
        "eyJa.",
        "://",
        "://a@",
        "\u{1b}]",
        "\u{9d}",
        "\u{1b}[",
        "bearer ",
        "auth:",
        "auth=\"",
        "password='",
        "\\",
        "%25",
        "\\u",
        "-----BEGIN",
        "AKIA",
        "?key=",
        "authorization basic ",
        "0f1e2d3c-",
        "token: ",
        "\u{200b}",
        "auth: \\\"",
        "-----BEGIN PRIVATE KEY-----",
        "bearer=aaaaaaaaaaaaa",
        "bearer aaaaaaaaaaaa",
    ] {
        let flood = unit.repeat(100_000 / unit.len());
        let _ = redact_text(&flood);
    }
}

/// Pieces that make matches likely, put together at random.
fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(
            &[
                "env_",
                "session_01",
                "AB23CD45",
                "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
                "sk-",
                "bearer ",
                "password=",
                "\"",
                "\\\"",
                ":",
                "=",
                "token",
                " ",
                "\u{1b}[31m",
                "\u{1b}]",
                "\u{7}",
                "\u{200b}",
                "%5F",
                "\\u002d",
                "\\n",
                "https://",
                "a:b",
                "@h/",
                "eyJ",
                "a.b",
                "-----BEGIN PRIVATE KEY-----",
                "-----END PRIVATE KEY-----",
                "é",
                "ghp_",
                "abcdefghijklmnop",
                "SECRET",
                "toKen=",
                "api.Key",
                "?\u{212a}ey=",
                "&pa\u{17f}sword=",
                "Authorization",
                " basic ",
                "svc_session_0a=",
                "svc_pat_",
                "github_pat_",
                "glpat-",
                "AKIA",
                "ABCDEFGHIJKLMNOP",
                "xoxb-",
                "AIza",
                ".eyJ",
                "&sig=",
                ";code=",
                "cse_01",
                "-",
                "0123456789",
                "%25",
                "\\u0065",
                "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
            ][..]
        )
        .prop_map(str::to_owned),
        "\\PC{0,6}",
        any::<char>().prop_map(String::from),
    ]
}

fn hostile_line() -> impl Strategy<Value = String> {
    prop::collection::vec(fragment(), 0..24).prop_map(|parts| parts.concat().replace('\n', " "))
}

/// Whether the text contains a complete identifier or UUID, by separate code.
fn shows_identifier(text: &str) -> bool {
    let welded = regex::Regex::new("(?:env|session|cse)_01[A-Za-z0-9]{8,}").unwrap();
    let uuid = regex::Regex::new("(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").unwrap();
    welded.is_match(text) || uuid.is_match(text)
}

proptest! {
    #[test]
    fn no_line_comes_out_with_an_identifier_or_a_control_character(raw in hostile_line()) {
        let out = Redactor::default().line(&raw);
        prop_assert!(!shows_identifier(&out), "{out:?}");
        prop_assert!(!out.chars().any(escape::is_invisible), "{out:?}");
    }

    #[test]
    fn a_secret_is_masked_in_any_company(
        before in "[ -~]{0,12}", sample in prop::sample::select(SAMPLES), after in "[ -~]{0,12}",
    ) {
        let (raw, secret) = sample;
        // A quote or a mark in front may belong to the secret's own notation: keep a blank.
        let raw = format!("{before} {raw} {after}");
        let out = Redactor::default().line(&raw);
        prop_assert!(!out.contains(secret), "{out:?}");
    }

    #[test]
    fn keeping_colour_changes_nothing_but_colour(raw in hostile_line()) {
        let kept = Redactor::new(Colour::Keep).line(&raw);
        let stripped = Redactor::new(Colour::Strip).line(&raw);
        prop_assert_eq!(strip_ansi(&kept).into_owned(), stripped);
    }

    #[test]
    fn a_rule_that_is_not_asked_had_nothing_to_say(
        lines in prop::collection::vec(hostile_line(), 1..6), keeps in any::<bool>(),
    ) {
        let colour = if keeps { Colour::Keep } else { Colour::Strip };
        let (mut quick, mut thorough) = (Redactor::new(colour), Redactor::new(colour));
        for line in lines {
            let every = thorough.line_by_every_rule(&line);
            prop_assert_eq!(quick.line(&line), every);
            prop_assert_eq!(quick.pem, thorough.pem);
        }
    }

    #[test]
    fn a_second_pass_shows_nothing_that_the_first_one_hid(raw in hostile_line()) {
        let once = Redactor::default().line(&raw);
        let twice = Redactor::default().line(&once);
        prop_assert!(!shows_identifier(&twice));
    }
}
