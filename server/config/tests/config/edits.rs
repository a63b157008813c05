//! Changes of single values keep everything else in the file.

use crate::Fixture;
use proptest::prelude::*;
use serde_json::json;
use svc_config::{EditError, Wanted, candidate, load_text, old_names, reconciled};

/// A file as people write it.
const FILE: &str = "\
# The service of the build machine.
projects_root: /srv/projects   # on the big disk

x-common: &common   # an anchor for both
    verbose: yes
port: '7621'

claude:
    # The agent.
    binary: claude
    launch_mode: standard  # not pty yet
    startup_grace_seconds: \"60\"

    # min_version: 2.1.0
clone:
    allowed_schemes:
        # the usual ones
        - https  # always
        - ssh
    enabled: on
usage: {mode: cost, fx_rate: 1.0}  # in dollars
logs:
unknown_key: kept
";

#[track_caller]
fn set(text: &str, pairs: &[(&str, &str)]) -> String {
    let wanted: Vec<Wanted> =
        pairs.iter().map(|(key, value)| Wanted::from_text(key, value).unwrap()).collect();
    candidate(text, &wanted).unwrap()
}

/// The one line that changed, before and after.
#[track_caller]
fn change(key: &str, value: &str, before: &str, after: &str) {
    let expected = FILE.replacen(before, after, 1);
    assert_ne!(expected, FILE, "the example has no {before:?}");
    assert_eq!(set(FILE, &[(key, value)]), expected, "{key} {value}");
}

#[test]
fn a_value_is_replaced_where_it_stands() {
    change("port", "8080", "'7621'", "8080");
    change("projects_root", "/data", "/srv/projects ", "/data ");
    change("claude.launch_mode", "pty", "standard  #", "pty  #");
    change("claude.startup_grace_seconds", "5m", "\"60\"", "\"5m\"");
    change("usage.mode", "off", "mode: cost", "mode: \"off\"");
    change("clone.enabled", "off", "enabled: on", "enabled: false");
}

#[test]
fn a_missing_key_is_added_to_its_section_and_a_missing_section_at_the_end() {
    change("claude.min_version", "2.2.0", "\"60\"\n", "\"60\"\n    min_version: \"2.2.0\"\n");
    change("usage.currency", "EUR", "fx_rate: 1.0}", "fx_rate: 1.0, currency: EUR}");
    change("logs.keep_rotated", "3", "logs:\n", "logs:\n    keep_rotated: 3\n");
    let end = "unknown_key: kept\n";
    let more = format!("{end}restart:\n    policy: on-crash\n");
    change("restart.policy", "on-crash", end, &more);
    let more = format!("{end}auth:\n    reverse_proxy:\n        require_hmac: false\n");
    change("auth.reverse_proxy.require_hmac", "off", end, &more);
    let more = format!("{end}projects:\n    my.app:\n        restart: always\n");
    change("projects.my.app.restart", "always", end, &more);
    let more = format!("{end}webhooks:\n    events:\n        stop: false\n");
    change("webhooks.events.stop", "no", end, &more);
}

#[test]
fn entries_of_a_list_keep_their_lines() {
    let (ssh, https) = ("        - ssh\n", "        - https  # always\n");
    change("clone.allowed_schemes", "https, ssh, git", ssh, &format!("{ssh}        - git\n"));
    change("clone.allowed_schemes", "https", ssh, "");
    change("clone.allowed_schemes", "ssh", https, "");
    let cleared = set(FILE, &[("clone.allowed_schemes", "")]);
    assert!(cleared.contains("    allowed_schemes: []\n    enabled: on\n"), "{cleared}");
}

#[test]
fn what_the_file_says_already_stays_as_it_is_written() {
    let same = [("port", "7621"), ("claude.launch_mode", "standard")];
    assert_eq!(set(FILE, &same), FILE);
}

#[test]
fn other_line_ends_marks_and_missing_ends_are_kept() {
    let text = "\u{feff}port: 1\r\nclaude:\r\n  binary: a";
    let after = set(text, &[("claude.min_version", "2"), ("port", "2")]);
    assert_eq!(after, "\u{feff}port: 2\r\nclaude:\r\n  binary: a\r\n  min_version: \"2\"\r\n");
    assert_eq!(set("", &[("port", "2")]), "port: 2\n");
    assert_eq!(
        set("# nothing yet\n", &[("logs.keep_rotated", "2")]),
        "# nothing yet\nlogs:\n  keep_rotated: 2\n"
    );
    assert_eq!(
        set("auth: ~  # later\n", &[("auth.enabled", "yes")]),
        "auth:   # later\n  enabled: true\n"
    );
    assert_eq!(
        set("{\"port\": 1}\n", &[("logs.keep_rotated", "2")]),
        "{\"port\": 1, logs: {keep_rotated: 2}}\n"
    );
}

#[test]
fn a_shared_anchor_is_never_changed_for_everybody() {
    let text = "claude: &shared\n  min_version: &one 2.1.0\ninstance_defaults:\n  session_name_prefix: *one\n";
    let wanted = [Wanted::from_text("claude.min_version", "3").unwrap()];
    assert!(matches!(candidate(text, &wanted), Err(EditError::Shape { .. })));
    // The other end is free: the alias is what is written there.
    let after = set(text, &[("instance_defaults.session_name_prefix", "box")]);
    assert_eq!(after, text.replace("*one", "box"));
    let merged = "x-base: &base\n  capacity: 3\ninstance_defaults:\n  <<: *base\n  verbose: true\n";
    let after = set(merged, &[("instance_defaults.capacity", "9")]);
    assert_eq!(after, format!("{merged}  capacity: 9\n"));
}

#[test]
fn unreadable_text_is_not_touched_and_unknown_keys_are_named() {
    let wanted = [Wanted::from_text("port", "2").unwrap()];
    for text in ["port: [\n", "port: 1\nport: 2\n", "a: !run x\n"] {
        assert!(matches!(candidate(text, &wanted), Err(EditError::Unreadable { .. })), "{text}");
    }
    let unknown = Wanted::from_text("claude.launch_mod", "pty").unwrap_err();
    assert!(unknown.contains("did you mean claude.launch_mode?"), "{unknown}");
    assert!(Wanted::from_text("claude.env", "x").is_err());
    assert!(Wanted::from_text("port", "many").is_err());
    assert!(Wanted::from_json("port", &json!("8080")).is_err());
    assert!(Wanted::from_json("clone.allowed_schemes", &json!([1])).is_err());
}

#[test]
fn old_names_are_replaced_in_their_place() {
    let text = "claude:\n  resume_mode: pty  # since spring\ndatabase_url: sqlite://x\nusage:\n  \
                # no money\n  show_cost: false\nport: 1\n";
    let names = old_names(text).unwrap();
    assert_eq!(names.len(), 3);
    let after = reconciled(text, &names).unwrap();
    assert_eq!(
        after,
        "claude:\n  launch_mode: pty  # since spring\nusage:\n  # no money\n  mode: \"off\"\nport: 1\n"
    );
    assert!(old_names(&after).unwrap().is_empty());
    let both = "claude:\n  launch_mode: pty\n  resume_mode: standard\nusage:\n  show_cost: true\n";
    let after = reconciled(both, &old_names(both).unwrap()).unwrap();
    assert_eq!(after, "claude:\n  launch_mode: pty\nusage: {}\n");
}

/// Keys with values that load, for edits in any order.
const VALUES: [(&str, &[&str]); 12] = [
    ("port", &["1", "8080", "65535"]),
    ("log_level", &["debug", "info", "error"]),
    ("claude.launch_mode", &["pty", "standard"]),
    ("claude.startup_grace_seconds", &["1", "2.5", "90s", "5m"]),
    ("claude.min_version", &["2", "2.1.145", "3.0.0"]),
    ("clone.allowed_schemes", &["https", "https, ssh", "ssh", ""]),
    ("clone.allowed_private_cidrs", &["10.0.0.0/8", "", "10.0.0.0/8, fd00::/8"]),
    ("usage.mode", &["off", "cost", "tokens"]),
    ("usage.currency_symbol", &["null", "€", "it's", "\"#\""]),
    ("logs.keep_rotated", &["0", "7"]),
    ("restart.policy", &["never", "always"]),
    ("webhooks.events.crash", &["yes", "no"]),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The loader reads what was asked for.
    /// Every comment and unknown text is still there.
    #[test]
    fn any_edits_in_any_order_keep_the_rest(picks in prop::collection::vec((0..VALUES.len(), 0..4_usize), 1..20)) {
        let fixture = Fixture::new();
        let root = fixture.path("projects");
        let mut text = FILE.replace("/srv/projects", root.to_str().unwrap());
        text.push_str("state_dir: state\n");
        for (key, value) in picks {
            let (key, values) = VALUES[key];
            let value = values[value % values.len()];
            text = set(&text, &[(key, value)]);
            let loaded = load_text(&text, fixture.path("").as_path());
            prop_assert!(loaded.is_ok(), "{key} {value}: {:?}\n{text}", loaded.map(|_| ()));
            prop_assert_eq!(set(&text, &[(key, value)]), text.clone());
        }
        for kept in [
            "# The service of the build machine.", "   # on the big disk", "# The agent.",
            "  # not pty yet", "    # min_version: 2.1.0", "  # in dollars",
            "unknown_key: kept", "x-common: &common   # an anchor for both", "    binary: claude",
        ] {
            prop_assert!(text.contains(kept), "{kept} is gone:\n{text}");
        }
    }
}
