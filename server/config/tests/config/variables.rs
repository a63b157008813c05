//! The environment: precedence, spellings, files, lists, leftovers.

use crate::{Fixture, only_problem, relative, warnings};
use svc_config::{Loaded, Source, UsageMode, load};
use svc_shared::status::ResumeMode;

#[track_caller]
fn loaded(fixture: &Fixture, content: &str, variables: &[(&str, &str)]) -> Loaded {
    fixture.load(content, variables).unwrap_or_else(|errors| panic!("{variables:?}: {errors}"))
}

#[track_caller]
fn refused(content: &str, variables: &[(&str, &str)], expected: &str) {
    let fixture = Fixture::new();
    let errors = fixture.load(content, variables).unwrap_err();
    assert_eq!(only_problem(&fixture, &errors), format!("config error: {expected}"));
}

fn env(name: &str) -> Option<Source> {
    Some(Source::Env { name: name.to_owned() })
}

#[test]
fn each_layer_outranks_the_one_before() {
    let fixture = Fixture::new();
    let file = fixture.write("port.txt", " 82\n\n");
    let file = file.to_str().unwrap();
    let port = |content: &str, variables: &[(&str, &str)]| {
        let loaded = loaded(&fixture, content, variables);
        (loaded.config.port, loaded.source("port").cloned())
    };
    assert_eq!(port("", &[]), (7621, Some(Source::Default)));
    assert_eq!(port("port: 80\n", &[]), (80, Some(Source::File { line: 2 })));
    assert_eq!(port("port: 80\n", &[("SVC_PORT", "81")]), (81, env("SVC_PORT")));
    let both = [("SVC_PORT", "81"), ("SVC_PORT_FILE", file)];
    assert_eq!(port("port: 80\n", &both), (82, env("SVC_PORT_FILE")));
    let blank = [("SVC_PORT", "81"), ("SVC_PORT_FILE", " ")];
    assert_eq!(port("port: 80\n", &blank), (81, env("SVC_PORT")));
}

#[test]
fn a_variable_is_read_like_the_file() {
    let fixture = Fixture::new();
    let config = loaded(
        &fixture,
        "",
        &[
            ("SVC_CLAUDE_STARTUP_GRACE_SECONDS", "5m"),
            ("SVC_CLAUDE_AUTO_ENABLE_REMOTE_CONTROL", "Off"),
            ("SVC_USAGE_MODE", "off"),
            ("SVC_STATE_DIR", "~/s"),
            ("SVC_INSTANCE_DEFAULTS_MAX_BRIDGES", ""),
            ("SVC_AUTH_PASSWORD_HASH", "  "),
        ],
    )
    .config;
    assert_eq!(config.claude.startup_grace.as_secs(), 300);
    assert!(!config.claude.auto_enable_remote_control);
    assert_eq!(config.usage.mode, UsageMode::Off);
    assert_eq!(config.state_dir, fixture.path("home/s"));
    assert_eq!(config.instance_defaults.max_bridges, None);
    assert_eq!(config.auth.password_hash, None);
    refused("", &[("SVC_PORT", "many")], "SVC_PORT: port: must be a whole number (found many)");
    for name in ["SVC_PORT", "SVC_HOST", "SVC_ROOT_PATH", "SVC_CLAUDE_SCOPE"] {
        let fixture = Fixture::new();
        let line = only_problem(&fixture, &fixture.load("", &[(name, "")]).unwrap_err());
        assert!(line.contains(name) && line.contains("is set to nothing"), "{line}");
    }
}

#[test]
fn lists_are_split_or_json() {
    let fixture = Fixture::new();
    let origins = |value: &str| {
        let content = "auth: {allowed_origins: ['http://file']}\n";
        loaded(&fixture, content, &[("SVC_AUTH_ALLOWED_ORIGINS", value)])
            .config
            .auth
            .allowed_origins
            .clone()
    };
    assert_eq!(origins("http://a, http://b\nhttp://c,,"), ["http://a", "http://b", "http://c"]);
    assert_eq!(origins(""), [""; 0], "an empty list overrides the file");
    assert_eq!(origins(" [\"http://a\", \"http://b\"] "), ["http://a", "http://b"]);
    let urls = [("SVC_NOTIFICATIONS_URLS", "[\"mail://a?to=b,c\"]")];
    let config = loaded(&fixture, "", &urls).config;
    assert_eq!(config.notifications.urls[0].expose(), "mail://a?to=b,c");
    refused(
        "",
        &[("SVC_AUTH_ALLOWED_ORIGINS", "[\"a\", 1]")],
        "SVC_AUTH_ALLOWED_ORIGINS: auth.allowed_origins: starts with [ and is not a JSON array of \
         texts; write [\"a\", \"b\"] or a, b",
    );
    let list = fixture.write("origins", "http://x\nhttp://y\n");
    let variables = [("SVC_AUTH_ALLOWED_ORIGINS_FILE", list.to_str().unwrap())];
    let config = loaded(&fixture, "", &variables).config;
    assert_eq!(config.auth.allowed_origins, ["http://x", "http://y"]);
}

#[test]
fn a_named_file_that_cannot_be_used_is_refused_without_its_content() {
    let fixture = Fixture::new();
    for (name, content, reason) in [
        ("empty", b"".to_vec(), "which is empty"),
        ("blank", b" \n\t".to_vec(), "which is empty"),
        ("binary", b"canary\xff".to_vec(), "which is not UTF-8 text"),
        ("big", vec![b'1'; 64 * 1024 + 1], "which is larger than 64 KiB"),
    ] {
        let path = fixture.write(name, content);
        let errors = fixture.load("", &[("SVC_PORT_FILE", path.to_str().unwrap())]).unwrap_err();
        let line = only_problem(&fixture, &errors);
        assert_eq!(line, format!("config error: SVC_PORT_FILE: port: names {name}, {reason}"));
    }
    let errors = fixture.load("", &[("SVC_PORT_FILE", "/nonexistent/x")]).unwrap_err();
    assert!(only_problem(&fixture, &errors).contains("names /nonexistent/x, which cannot be read"));
    let errors = fixture.load("", &[("SVC_PORT_FILE", "/dev/null")]).unwrap_err();
    assert!(only_problem(&fixture, &errors).contains("not a regular file"));
}

#[test]
fn the_certificate_keys_are_keys_and_not_indirections() {
    let fixture = Fixture::new();
    let cert = fixture.write("cert.pem", "");
    let errors = fixture.load("", &[("SVC_TLS_CERT_FILE", cert.to_str().unwrap())]).unwrap_err();
    let lines: Vec<_> =
        errors.problems.iter().map(|problem| problem.key.clone().unwrap()).collect();
    assert_eq!(lines, ["tls.key_file"], "the section exists now, and it is incomplete");
    let pointer = fixture.write("pointer", "no/such.pem\n");
    let errors =
        fixture.load("", &[("SVC_TLS_CERT_FILE_FILE", pointer.to_str().unwrap())]).unwrap_err();
    let line = relative(&fixture, &errors.lines()[0]);
    let start = "config error: SVC_TLS_CERT_FILE_FILE: tls.cert_file: no/such.pem cannot be used";
    assert!(line.starts_with(start), "{line}");
}

#[test]
fn a_mapping_cannot_come_from_a_variable() {
    let fixture = Fixture::new();
    let variables = [("SVC_PROJECTS", "a"), ("SVC_CLAUDE_ENV", "A=b"), ("SVC_WEBHOOKS_EVENTS", "")];
    let loaded = loaded(&fixture, "claude: {env: {A: file}}\n", &variables);
    let expected = |name: &str, key: &str| {
        format!("{name}: {key}: is a mapping, which one variable cannot hold; set it in the file")
    };
    assert_eq!(
        warnings(&fixture, &loaded),
        [
            expected("SVC_CLAUDE_ENV", "claude.env"),
            expected("SVC_PROJECTS", "projects"),
            expected("SVC_WEBHOOKS_EVENTS", "webhooks.events"),
        ]
    );
    assert_eq!(loaded.config.claude.env["A"].expose(), "file");
}

#[test]
fn a_variable_that_means_nothing_gets_a_suggestion() {
    let fixture = Fixture::new();
    let variables = [
        ("SVC_PORTT", "80"),
        ("SVC_COMPLETELY_DIFFERENT_THING", "x"),
        ("SVC_AUTH_PASWORD_HASH_FILE", "x"),
        // These mean something, or are not ours.
        ("SVC_SETUP_PORT", "80"),
        ("SVC_LAUNCH_ID", "x"),
        ("SVC_CONFIG", "elsewhere"),
        ("svc_port", "1"),
        ("SVCPORT", "1"),
    ];
    assert_eq!(
        warnings(&fixture, &loaded(&fixture, "", &variables)),
        [
            "SVC_AUTH_PASWORD_HASH_FILE: means nothing to this program; did you mean \
             SVC_AUTH_PASSWORD_HASH_FILE?",
            "SVC_COMPLETELY_DIFFERENT_THING: means nothing to this program",
            "SVC_PORTT: means nothing to this program; did you mean SVC_PORT?",
        ]
    );
}

#[test]
fn the_old_name_of_the_launch_mode_still_works() {
    let fixture = Fixture::new();
    let old = "claude: {resume_mode: pty}\n";
    let both = "claude: {resume_mode: pty, launch_mode: standard}\n";
    let variable = ("SVC_CLAUDE_RESUME_MODE", "pty");
    let new = ("SVC_CLAUDE_LAUNCH_MODE", "standard");
    let cases: [(&str, &[_], ResumeMode, usize); 6] = [
        (old, &[], ResumeMode::Pty, 1),
        (both, &[], ResumeMode::Standard, 2),
        ("claude: {launch_mode: standard}\n", &[variable], ResumeMode::Pty, 1),
        ("", &[variable, new], ResumeMode::Standard, 1),
        (old, &[new], ResumeMode::Standard, 2),
        ("", &[], ResumeMode::Standard, 0),
    ];
    for (content, variables, mode, warned) in cases {
        let loaded = loaded(&fixture, content, variables);
        assert_eq!(loaded.config.claude.launch_mode, mode, "{content} {variables:?}");
        assert_eq!(loaded.warnings.len(), warned, "{:?}", loaded.warnings);
    }
}

#[test]
fn the_removed_database_address_is_named_with_the_real_place() {
    let fixture = Fixture::new();
    let loaded = loaded(
        &fixture,
        "database_url: sqlite://me:canary@x\nstate_dir: state\n",
        &[("SVC_DATABASE_URL", "canary")],
    );
    let message = "database_url: no longer has any effect; data is kept in state/svc.db";
    assert_eq!(
        warnings(&fixture, &loaded),
        [format!("svc.yml:2: {message}"), format!("SVC_DATABASE_URL: {message}")]
    );
}

#[test]
fn a_session_secret_is_long_enough_or_refused_by_its_variable() {
    let fixture = Fixture::new();
    let long = "0123456789abcdef0123456789abcdef";
    let secret =
        |variables: &[(&str, &str)]| loaded(&fixture, "", variables).config.session_secret.clone();
    assert_eq!(secret(&[]), None);
    assert_eq!(secret(&[("SVC_SESSION_SECRET", long)]).unwrap().expose(), long);
    let file = fixture.write("secret", format!("{long}{long}\n"));
    let from_file =
        secret(&[("SVC_SESSION_SECRET", "x"), ("SVC_SESSION_SECRET_FILE", file.to_str().unwrap())]);
    assert_eq!(from_file.unwrap().expose(), format!("{long}{long}"));
    let short = fixture.write("short", "canary-short");
    for (name, value) in [
        ("SVC_SESSION_SECRET", "canary-short"),
        ("SVC_SESSION_SECRET", ""),
        ("SVC_SESSION_SECRET_FILE", short.to_str().unwrap()),
    ] {
        let line = only_problem(&fixture, &fixture.load("", &[(name, value)]).unwrap_err());
        assert!(line.starts_with(&format!("config error: {name}: ")), "{line}");
        assert!(line.contains("32 bytes") && !line.contains("canary-short"), "{line}");
    }
}

#[cfg(unix)]
#[test]
fn a_value_that_is_not_text_is_refused() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    let fixture = Fixture::new();
    let file = fixture.write("svc.yml", "projects_root: projects\nstate_dir: s\n");
    let value = OsString::from_vec(b"canary\xff".to_vec());
    let environment = [("SVC_HOST", value)].into_iter().collect();
    let found = svc_config::find(Some(&file), &environment, &fixture.path("")).unwrap();
    let line = only_problem(&fixture, &load(&found, &environment).unwrap_err());
    assert_eq!(line, "config error: SVC_HOST: host: is not UTF-8");
}
