//! Refusals about exposure: a protection that is asked for and not there is never a mere warning.

use crate::{House, relative};

/// Key and first words of every refusal.
#[track_caller]
fn refused(content: &str, variables: &[(&str, &str)], expected: &[(&str, &str)]) {
    let house = House::new();
    house.write("cert.pem", "");
    house.write("key.pem", "");
    let found = match house.load(content, variables) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.problems,
    };
    let keys: Vec<_> =
        found.iter().map(|problem| problem.key.clone().unwrap_or_default()).collect();
    let wanted: Vec<_> = expected.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(keys, wanted, "{content:?}");
    for (problem, (_, reason)) in found.iter().zip(expected) {
        let line = relative(&house, &problem.to_string());
        assert!(line.contains(reason), "{line}");
    }
}

const MISSING: &str = "asks for a protection this build does not enforce";

#[test]
fn a_network_bind_is_refused_unless_it_is_asked_for_openly() {
    refused("host: 0.0.0.0\n", &[], &[("host", "this build has no sign-in")]);
    refused("", &[("SVC_HOST", "::")], &[("host", "SVC_HOST: host: is not a loopback address")]);
    refused("host: 0.0.0.0\nauth: {allow_unauthenticated_network: true}\n", &[], &[]);
    refused("host: localhost\n", &[], &[]);
}

#[test]
fn a_protection_of_a_later_build_is_refused_by_name() {
    refused("auth: {enabled: true}\n", &[], &[("auth.enabled", MISSING)]);
    refused("", &[("SVC_AUTH_ENABLED", "1")], &[("auth.enabled", "SVC_AUTH_ENABLED")]);
    refused(
        "auth: {password_required: true}\n",
        &[],
        &[("auth.password_hash", "is missing"), ("auth.password_required", MISSING)],
    );
    refused(
        "auth: {reverse_proxy: {enabled: true}}\n",
        &[],
        &[
            ("auth.reverse_proxy.trusted_ips", "is empty"),
            ("auth.reverse_proxy.shared_secret", "is missing"),
            ("auth.reverse_proxy.enabled", MISSING),
        ],
    );
    let hash = "a".repeat(64);
    refused(
        &format!("host: 0.0.0.0\nauth: {{enabled: true, api_token_hash: {hash}}}\n"),
        &[],
        &[("host", "relies on a protection"), ("auth.enabled", MISSING)],
    );
    refused("auth: {enabled: false, password_required: no}\n", &[], &[]);
}

#[test]
fn transport_security_is_complete_or_refused_and_never_quietly_off() {
    let missing = |key| (key, "is missing; tls needs cert_file and key_file");
    let unsupported = ("tls", MISSING);
    for content in ["tls: {}\n", "tls:\n", "tls: {provision: off}\n"] {
        let expected = [missing("tls.cert_file"), missing("tls.key_file"), unsupported];
        refused(content, &[], &expected);
    }
    refused("tls: {cert_file: cert.pem, key_file: key.pem}\n", &[], &[unsupported]);
    refused(
        "tls: {cert_file: cert.pem, key_file: projects}\n",
        &[],
        &[("tls.key_file", "projects is not a regular file"), unsupported],
    );
    refused(
        "tls: {provision: self-signed}\n",
        &[],
        &[("tls.hostnames", "at least one host"), unsupported],
    );
    refused(
        "tls: {provision: self-signed, hostnames: [a], key_file: key.pem}\n",
        &[],
        &[("tls.key_file", "must not be set"), unsupported],
    );
    refused(
        "tls: {provision: self-signed, hostnames: [a, ' ']}\n",
        &[],
        &[("tls.hostnames", "entry 2 is empty")],
    );
    let on = [("SVC_TLS_PROVISION", "self-signed"), ("SVC_TLS_HOSTNAMES", "a,b")];
    refused("", &on, &[unsupported]);
}
