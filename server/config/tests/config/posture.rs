//! A protection that is asked for and missing is refused, never only warned about.

use crate::{Fixture, relative};

/// Key and first words of every refusal.
#[track_caller]
fn refused(content: &str, variables: &[(&str, &str)], expected: &[(&str, &str)]) {
    let fixture = Fixture::new();
    fixture.write("cert.pem", "");
    fixture.write("key.pem", "");
    let found = match fixture.load(content, variables) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.problems,
    };
    let keys: Vec<_> =
        found.iter().map(|problem| problem.key.clone().unwrap_or_default()).collect();
    let wanted: Vec<_> = expected.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(keys, wanted, "{content:?}");
    for (problem, (_, reason)) in found.iter().zip(expected) {
        let line = relative(&fixture, &problem.to_string());
        assert!(line.contains(reason), "{line}");
    }
}

#[test]
fn a_network_bind_is_refused_unless_it_is_asked_for_openly() {
    refused("host: 0.0.0.0\n", &[], &[("host", "authentication is off; set auth.enabled")]);
    refused("", &[("SVC_HOST", "::")], &[("host", "SVC_HOST: host: is not a loopback address")]);
    refused("host: 0.0.0.0\nauth: {allow_unauthenticated_network: true}\n", &[], &[]);
    refused("host: localhost\n", &[], &[]);
}

#[test]
fn h14_sign_in_that_nobody_could_pass_is_refused_by_the_key_to_set() {
    refused("auth: {password_required: true}\n", &[], &[("auth.password_hash", "is missing")]);
    refused("", &[("SVC_AUTH_PASSWORD_REQUIRED", "1")], &[("auth.password_hash", "is missing")]);
    refused(
        "auth: {reverse_proxy: {enabled: true}}\n",
        &[],
        &[
            ("auth.reverse_proxy.trusted_ips", "is empty"),
            ("auth.reverse_proxy.shared_secret", "is missing"),
        ],
    );
    refused("auth: {enabled: false, password_required: no}\n", &[], &[]);
}

#[test]
fn h14_a_network_bind_needs_a_way_to_ask_who_is_there() {
    let hash = "a".repeat(64);
    let open = [("host", "authentication is off")];
    for (auth, expected) in [
        ("enabled: true".to_owned(), &open[..]),
        (format!("api_token_hash: {hash}"), &open),
        (format!("enabled: true, api_token_hash: {hash}"), &[]),
        (
            "enabled: true, password_required: true, password_hash: '$argon2id$v=19$m=65536,t=3,p=4\
             $c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'"
                .to_owned(),
            &[],
        ),
        (
            "enabled: true, reverse_proxy: {enabled: true, trusted_ips: [10.0.0.1], \
             shared_secret: 0123456789abcdef}"
                .to_owned(),
            &[],
        ),
    ] {
        refused(&format!("host: 0.0.0.0\nauth: {{{auth}}}\n"), &[], expected);
    }
}

#[test]
fn h22_a_password_hash_that_takes_the_machine_is_refused() {
    let hash = |memory: u32, passes: u32| {
        format!(
            "auth: {{password_hash: '$argon2id$v=19$m={memory},t={passes},p=1$c2FsdHNhbHQ\
             $AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'}}\n"
        )
    };
    let expected = [("auth.password_hash", "more than 1 GiB of memory or 16 passes")];
    refused(&hash(1024 * 1024, 16), &[], &[]);
    refused(&hash(1024 * 1024 + 1, 1), &[], &expected);
    refused(&hash(64, 17), &[], &expected);
}

/// A file that leaks must not give the password away within a day of guessing.
#[test]
fn h22_a_password_hash_that_is_quickly_guessed_is_refused() {
    let refused = |hash: &str, reason: &str| {
        let content = format!("auth: {{password_hash: '{hash}'}}\n");
        refused(&content, &[], &[("auth.password_hash", reason)]);
    };
    let good = "c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for cost in
        ["m=8,t=1,p=1", "m=19456,t=1,p=1", "m=7167,t=16,p=1", "m=46,t=1,p=1", "m=7168,t=4,p=8"]
    {
        refused(&format!("$argon2id$v=19${cost}${good}"), "svc hash-password");
    }
    for odd in [
        format!("$argon2id$v=16$m=65536,t=3,p=4${good}"),
        format!("$argon2id$m=65536,t=3,p=4${good}"),
        format!("$argon2id$v=19$t=3,p=4${good}"),
        format!("$argon2id$v=19$m=65536,p=4${good}"),
        "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAA".to_owned(),
        "$argon2id$v=19$m=65536,t=3,p=4$c2Fs$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
            .to_owned(),
    ] {
        refused(&odd, "svc hash-password");
    }
    for enough in ["m=7168,t=5,p=1", "m=9216,t=4,p=1", "m=19456,t=2,p=1", "m=47104,t=1,p=1"] {
        let content = format!("auth: {{password_hash: '$argon2id$v=19${enough}${good}'}}\n");
        self::refused(&content, &[], &[]);
    }
}

/// Otherwise the sign-in page would say that no password is configured.
#[test]
fn h14_a_required_password_needs_a_hash_that_a_password_can_match() {
    for hash in [
        "hunter2",
        "$2b$12$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234",
        "$argon2i$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "$argon2d$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "$scrypt$ln=17,r=8,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "$6$saltsalt$AAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ",
    ] {
        for enabled in ["true", "false"] {
            refused(
                &format!(
                    "auth: {{enabled: {enabled}, password_required: true, password_hash: '{hash}'}}\n"
                ),
                &[],
                &[("auth.password_hash", "is no $argon2id$ hash")],
            );
        }
    }
}

#[test]
fn transport_security_is_complete_or_refused_and_never_quietly_off() {
    let missing = |key| (key, "is missing; tls needs cert_file and key_file");
    for content in ["tls: {}\n", "tls:\n", "tls: {provision: off}\n"] {
        let expected = [missing("tls.cert_file"), missing("tls.key_file")];
        refused(content, &[], &expected);
    }
    refused(
        "tls: {cert_file: cert.pem, key_file: projects}\n",
        &[],
        &[("tls.key_file", "projects is not a regular file")],
    );
    refused("tls: {provision: self-signed}\n", &[], &[("tls.hostnames", "at least one host")]);
    refused(
        "tls: {provision: self-signed, hostnames: [a], key_file: key.pem}\n",
        &[],
        &[("tls.key_file", "must not be set")],
    );
    refused(
        "tls: {provision: self-signed, hostnames: [a, ' ']}\n",
        &[],
        &[("tls.hostnames", "entry 2 is empty")],
    );
    let on = [("SVC_TLS_PROVISION", "self-signed"), ("SVC_TLS_HOSTNAMES", "a,b")];
    refused("", &on, &[]);
}
