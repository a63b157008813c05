//! The colours of the style sheet, checked against what people can read (WCAG 2.2).

use std::collections::HashMap;

const STYLES: &str = include_str!("../../styles/frame.css");

type Tokens = HashMap<&'static str, &'static str>;

/// The declarations of the block that begins with `selector`.
fn block(selector: &str) -> Tokens {
    let after = STYLES.split_once(selector).unwrap().1;
    let body = after.split_once('}').unwrap().0;
    body.split(';').filter_map(|line| line.trim().strip_prefix("--")?.split_once(": ")).collect()
}

fn light() -> Tokens {
    block(":root {")
}

fn dark() -> Tokens {
    block(":root[data-theme=\"dark\"] {")
}

fn luminance(hex: &str) -> f64 {
    let channel = |at: usize| {
        let part = u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let c = f64::from(part) / 255.0;
        if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

fn ratio(a: &str, b: &str) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[track_caller]
fn check(tokens: &Tokens, front: &str, back: &str, least: f64) {
    let found = ratio(tokens[front], tokens[back]);
    assert!(found >= least, "{front} on {back}: {found:.2}, wanted {least}");
}

#[test]
fn text_is_readable_on_every_surface_in_both_themes() {
    for tokens in [light(), dark()] {
        for back in ["bg", "surface", "surface-2", "hover"] {
            for front in ["text", "text-2", "text-muted", "primary"] {
                check(&tokens, front, back, 4.5);
            }
            check(&tokens, "border-strong", back, 3.0);
        }
        check(&tokens, "on-primary", "primary", 4.5);
        check(&tokens, "on-primary", "primary-hover", 4.5);
        check(&tokens, "on-danger", "danger-fill", 4.5);
        check(&tokens, "on-danger", "danger-hover", 4.5);
        check(&tokens, "primary", "info-tint", 4.5);
    }
}

#[test]
fn status_colours_are_readable_on_their_tints_and_on_surfaces() {
    for tokens in [light(), dark()] {
        for status in ["ok", "info", "warn", "danger", "violet", "neutral"] {
            let tint = format!("{status}-tint");
            for back in [tint.as_str(), "surface", "bg"] {
                check(&tokens, status, back, 4.5);
            }
            for front in ["text", "text-2", "text-muted"] {
                check(&tokens, front, &tint, 4.5);
            }
        }
    }
}

#[test]
fn every_dark_colour_replaces_a_light_one() {
    let missing: Vec<_> = dark().into_keys().filter(|token| !light().contains_key(token)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
