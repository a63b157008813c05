//! A secret never leaves through an error, a warning, a listing or a debug form.

use crate::Fixture;
use svc_config::{View, show, table};

const CANARY: &str = "x7Kq9mZ2vB4nR8tY1wP5sD3fG6hJ0cLa";

/// Not in anything printed, and not in a debug form either.
#[track_caller]
fn is_hidden(fixture: &Fixture, content: &str, variables: &[(&str, &str)]) {
    is_not_printed(fixture, content, variables);
    let debug = match fixture.load(content, variables) {
        Ok(loaded) => format!("{loaded:?}"),
        Err(errors) => format!("{errors:?}"),
    };
    without_canary(&debug, content);
}

#[track_caller]
fn is_not_printed(fixture: &Fixture, content: &str, variables: &[(&str, &str)]) {
    let mut seen = String::new();
    match fixture.load(content, variables) {
        Ok(loaded) => {
            for view in [View::Configured, View::Effective] {
                for row in show(&loaded, view) {
                    seen.push_str(&format!("{row:?} {}\n", row.text()));
                }
            }
            for warning in &loaded.warnings {
                seen.push_str(&format!("{warning}\n"));
            }
        }
        Err(errors) => seen.push_str(&errors.to_string()),
    }
    without_canary(&seen, content);
}

#[track_caller]
fn without_canary(seen: &str, content: &str) {
    // Not even a part of it.
    assert!(!seen.contains(&CANARY[..12]), "{content}\n{seen}");
}

/// `a.b` and `value` as a block mapping.
fn yaml(key: &str, value: &str) -> String {
    let mut out = String::new();
    for (depth, part) in key.split('.').enumerate() {
        out.push_str(&format!("\n{}{part}:", "  ".repeat(depth)));
    }
    format!("{out} {value}\n")
}

#[test]
fn a_secret_in_the_file_stays_there_whatever_is_wrong_with_it() {
    let fixture = Fixture::new();
    for leaf in table::leaves().filter(|leaf| leaf.secret) {
        for value in [
            CANARY.to_owned(),
            format!("[{CANARY}]"),
            format!("['https://{CANARY}@x/{CANARY}?{CANARY}']"),
            format!("{{{CANARY}: {CANARY}}}"),
            format!("{{{CANARY}: 1, {CANARY}: 2}}")
                .replace(CANARY, if leaf.key == "claude.env" { "NAME" } else { CANARY }),
            format!("{{NAME: {CANARY}}}"),
            format!("{{NAME: [{CANARY}]}}"),
            format!("\"{CANARY}\\0\""),
            format!("\"{CANARY}"),
            format!("!{CANARY} x"),
            format!("*{CANARY}"),
            format!("{CANARY}: {CANARY}"),
            format!("|\n{CANARY}"),
        ] {
            if leaf.key == "claude.env" && value.starts_with(&format!("{{{CANARY}")) {
                // Names of variables are no secrets.
                continue;
            }
            is_hidden(&fixture, &yaml(leaf.key, &value), &[]);
        }
    }
}

#[test]
fn a_secret_in_a_variable_stays_there() {
    let fixture = Fixture::new();
    let file = fixture.write("secret-file", format!("{CANARY}\u{1}"));
    for leaf in table::leaves().filter(|leaf| leaf.secret) {
        let Some(name) = leaf.variable() else { continue };
        for value in
            [CANARY.to_owned(), format!("[\"{CANARY}\", 1]"), format!("{CANARY}\n{CANARY}")]
        {
            is_hidden(&fixture, "", &[(&name, &value)]);
        }
        is_hidden(&fixture, "", &[(&format!("{name}_FILE"), file.to_str().unwrap())]);
    }
    is_hidden(&fixture, "", &[("SVC_SESSION_SECRET", CANARY)]);
    is_hidden(&fixture, "", &[("SVC_SESSION_SECRET", &CANARY[..20])]);
    is_hidden(&fixture, "", &[("SVC_AUTH_PASSWORDHASH", CANARY)]);
}

#[test]
fn a_secret_that_slipped_elsewhere_is_not_repeated() {
    let fixture = Fixture::new();
    for content in [
        // A missing blank makes the value a part of the key, or of the section.
        format!("auth: {{password_hash:\"{CANARY}\"}}\n"),
        format!("auth:\n  password_hash:{CANARY}\n"),
        format!("auth:\n  password_hash={CANARY}\n"),
        format!("auth:\n  pasword_hash: {CANARY}\n"),
        format!("auht: {{password_hash: {CANARY}}}\n"),
        format!("database_url: postgres://u:{CANARY}@h/d\n"),
        // A URL where none belongs.
        format!("host: https://u:{CANARY}@h/\n"),
        format!("claude: {{binary: 'a', launch_mode: 'u:{CANARY}@h'}}\n"),
        format!("auth: {{allowed_origins: ['https://u:{CANARY}@h']}}\n"),
    ] {
        is_not_printed(&fixture, &content, &[]);
    }
}
