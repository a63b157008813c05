//! What loads but is said aloud.

use crate::{Fixture, only_problem, set_mode, warnings};
use svc_config::{Loaded, Warning, WarningKind};

#[track_caller]
fn warned(content: &str, expected: &[&str]) {
    let fixture = Fixture::new();
    let loaded =
        fixture.load(content, &[]).unwrap_or_else(|errors| panic!("{content:?}: {errors}"));
    assert_eq!(warnings(&fixture, &loaded), expected, "{content:?}");
}

fn kinds(loaded: &Loaded) -> Vec<&WarningKind> {
    loaded.warnings.iter().map(|Warning { kind, .. }| kind).collect()
}

#[test]
fn an_unknown_key_is_named_with_the_one_that_was_meant() {
    warned(
        "auth:\n  enabledd: true\nprot: 80\nlogs: {allowed_origins: []}\nwholly_new: {a: {b: c}}\n\
         projects:\n  api: {restrat: never, x: 1}\nx-mine: {anything: goes}\n",
        &[
            "svc.yml:3: auth.enabledd: is not a known key and has no effect; did you mean \
             auth.enabled?",
            "svc.yml:4: prot: is not a known key and has no effect; did you mean port?",
            "svc.yml:5: logs.allowed_origins: is not a known key and has no effect; did you mean \
             auth.allowed_origins?",
            "svc.yml:6: wholly_new: is not a known key and has no effect",
            "svc.yml:8: projects.api.restrat: is not a known key and has no effect; did you mean \
             projects.api.restart?",
            "svc.yml:8: projects.api.x: is not a known key and has no effect",
            "svc.yml: projects.api: has no effect, because projects holds no such directory",
        ],
    );
}

#[test]
fn a_misspelt_protection_is_marked_as_one() {
    let loaded = Fixture::new()
        .load("auth: {enabledd: yes}\nauht: {}\nlog_formt: json\nlogs: {x_y_z: 1}\n", &[])
        .unwrap();
    let marks: Vec<_> = kinds(&loaded)
        .into_iter()
        .map(|kind| match kind {
            WarningKind::UnknownKey { is_security, .. } => *is_security,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(marks, [true, true, false, false]);
}

#[test]
fn strictness_turns_unknown_keys_into_refusals() {
    let fixture = Fixture::new();
    let errors = fixture.load("config_strict: true\nprot: 80\nlogs:\n", &[]).unwrap_err();
    assert_eq!(
        only_problem(&fixture, &errors),
        "config error: svc.yml:3: prot: is not a known key and has no effect; did you mean port? \
         (config_strict is on)"
    );
    assert!(matches!(errors.warnings[0].kind, WarningKind::EmptySection));
    fixture.load("config_strict: true\nlogs:\n", &[]).unwrap();
    assert!(fixture.load("prot: 80\n", &[("SVC_CONFIG_STRICT", "1")]).is_err());
}

#[test]
fn a_section_without_content_is_empty_and_noticed() {
    let message = "has nothing below it and is read as an empty section";
    warned(
        "logs:\nauth:\n  # enabled: true\nprojects:\n",
        &[
            &format!("svc.yml:2: logs: {message}"),
            &format!("svc.yml:3: auth: {message}"),
            &format!("svc.yml:5: projects: {message}"),
        ],
    );
}

#[test]
fn the_old_cost_switch_means_off() {
    let fixture = Fixture::new();
    let mode = |content: &str| {
        let loaded = fixture.load(content, &[]).unwrap();
        let warned =
            kinds(&loaded).iter().filter(|kind| ***kind == WarningKind::Deprecated).count();
        (loaded.config.usage.mode, warned)
    };
    use svc_config::UsageMode::{Cost, Off, Tokens};
    assert_eq!(mode("usage: {show_cost: false}\n"), (Off, 1));
    assert_eq!(mode("usage: {show_cost: true}\n"), (Cost, 1));
    assert_eq!(mode("usage: {show_cost: false, mode: tokens}\n"), (Tokens, 2));
    assert_eq!(mode("usage: {show_cost: false, mode: off}\n"), (Off, 1));
}

#[test]
fn values_that_cannot_do_what_was_meant_are_named() {
    let fixture = Fixture::new();
    let hash = "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHRzYWx0c2FsdA$\
                aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNoaGFzaGhhc2g";
    let loaded = fixture
        .load(
            "schema_version: 2\nclaude: {min_version: newest}\n\
             auth: {password_hash: hunter2, allowed_origins: [svc.example]}\n\
             clone: {allowed_schemes: [https, git]}\nusage: {currency: EUR}\n\
             webhooks: {urls: ['https://ok.example/x', 'file:///etc']}\n\
             notifications: {urls: ['ntfy://fine', 'https://CANARY.example/x']}\n\
             projects: {missing: {}, 'bad/name': {}}\n",
            &[],
        )
        .unwrap();
    let all = warnings(&fixture, &loaded);
    for expected in [
        "schema_version: is written for a newer version",
        "claude.min_version: is no dotted version",
        "auth.password_hash: is no $argon2id$ hash",
        "auth.allowed_origins: entry 1 is no http or https origin",
        "clone.allowed_schemes: entry 2 never matches",
        "usage.fx_rate: is 1",
        "webhooks.urls: entry 2 is no http or https URL",
        "projects.missing: has no effect",
        "projects.bad…: can never be the name of a project",
    ] {
        assert_eq!(
            all.iter().filter(|line| line.contains(expected)).count(),
            1,
            "{expected}: {all:#?}"
        );
    }
    let fine = format!(
        "claude: {{min_version: '2'}}\n\
         auth: {{password_hash: '{hash}', allowed_origins: ['https://x']}}\n"
    );
    let loaded = fixture.load(&fine, &[]).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn a_state_directory_among_the_projects_is_noticed() {
    let fixture = Fixture::new();
    let all = |content: &str| warnings(&fixture, &fixture.load(content, &[]).unwrap());
    assert!(
        all("state_dir: projects/a/state\n")[0].contains("state_dir: lies inside projects_root")
    );
    assert_eq!(all("state_dir: projects-state\n"), [""; 0]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(fixture.path("projects"), fixture.path("link")).unwrap();
        assert!(all("state_dir: link/state\n")[0].contains("lies inside"));
    }
}

#[cfg(unix)]
#[test]
fn a_file_with_too_many_readers_or_writers_is_noticed() {
    let fixture = Fixture::new();
    let environment = fixture.environment(&[]);
    let with_mode = |content: &str, mode| {
        let file = fixture.write("svc.yml", format!("projects_root: projects\n{content}"));
        set_mode(&file, mode);
        let found = svc_config::find(None, &environment, &fixture.path("")).unwrap();
        let loaded = svc_config::load(&found, &environment).unwrap();
        let writable: Vec<_> = kinds(&loaded)
            .into_iter()
            .filter_map(|kind| match kind {
                WarningKind::FileMode { is_writable } => Some(*is_writable),
                _ => None,
            })
            .collect();
        writable
    };
    let secret = "claude: {env: {A: b}}\n";
    assert_eq!(with_mode("", 0o644), [false; 0]);
    // H28: a group that is not the owner's alone.
    assert_eq!(with_mode("", 0o664), [false]);
    assert_eq!(with_mode("", 0o646), [true]);
    assert_eq!(with_mode(secret, 0o600), [false; 0]);
    assert_eq!(with_mode(secret, 0o640), [false]);
    assert_eq!(with_mode(secret, 0o646), [true, false]);
    assert_eq!(with_mode("auth: {password_hash: ''}\n", 0o644), [false; 0]);
}
