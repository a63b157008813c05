//! Secrets by their published form: one row for each, with its source and examples.
//!
//! The rows are data. A new form is a row here and, if no word of `hints` stands in it yet, a word
//! there; the tests judge every row by its own examples.

use std::sync::LazyLock;

use regex::Regex;

use super::hints::Hints;
use super::rules::pattern;
use super::span::Span;

/// One form of a secret.
pub(super) struct Form {
    /// What it is, and where its form is published or was seen.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers and for the tests"))]
    pub source: &'static str,
    /// When the pattern is worth asking.
    hint: Hints,
    /// What is masked: the group `v` where there is one, else the whole match.
    pattern: &'static str,
    /// Texts that hold one, and the part that must not be seen.
    #[cfg(test)]
    pub masked: [(&'static str, &'static str); 2],
    /// Texts that only resemble it.
    #[cfg(test)]
    pub kept: [&'static str; 2],
}

macro_rules! forms {
    ($($source:literal, $hint:expr, $pattern:literal,
       [$($masked:expr),+], [$($kept:literal),+];)*) => {
        &[$(Form {
            source: $source,
            hint: $hint,
            pattern: $pattern,
            #[cfg(test)]
            masked: [$($masked),+],
            #[cfg(test)]
            kept: [$($kept),+],
        }),*]
    };
}

#[rustfmt::skip]
pub(super) const FORMS: &[Form] = forms! {
    "Stripe API keys (docs.stripe.com/keys)", Hints::FORM,
    r"[rs]k_(?:live|test)_[0-9A-Za-z]{16,}",
    [("sk_live_4eC39HqLyjWDarjtT1zdp7dc", "4eC39HqLyj"), ("key rk_test_4eC39HqLyjWDarjtT1zdp7dc.", "4eC39HqLyj")],
    ["sk_live_short", "task_live_view"];
    "Stripe webhook secrets (docs.stripe.com/webhooks)", Hints::FORM,
    r"whsec_[0-9A-Za-z+/=]{16,}",
    [("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8GKY"), ("x=whsec_abcdefghijklmnop0123", "abcdefghij")],
    ["whsec_", "whsec_no"];
    "npm access tokens (docs.npmjs.com/about-access-tokens)", Hints::FORM,
    r"npm_[0-9A-Za-z]{30,}",
    [("npm_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghij"), ("//r/:_authToken=npm_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghij")],
    ["npm_config_registry", "npm_lifecycle_event"];
    "Slack app tokens (api.slack.com/authentication/token-types)", Hints::FORM,
    r"xapp-[0-9]-[0-9A-Za-z-]{10,}",
    [("xapp-1-A0123456789-0123456789012-abcdef", "A0123456789"), ("t: xapp-1-A111-222-abcdefabcdef", "abcdefabcdef")],
    ["xapp-1", "xapp-name"];
    "Slack incoming webhooks (api.slack.com/messaging/webhooks)", Hints::FORM,
    r#"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<v>[^\s"'<>]+)"#,
    [("https://hooks.slack.com/services/T000/B000/abcdefabcdef", "abcdefabcdef"), ("hooks.slack.com/workflows/T0/A0/1/xyzxyz", "xyzxyz")],
    ["https://hooks.slack.com/", "see hooks.slack.com for more"];
    "Discord webhooks (discord.com/developers/docs/resources/webhook)", Hints::FORM,
    r#"discord(?:app)?\.com/api/webhooks/(?P<v>[^\s"'<>]+)"#,
    [("https://discord.com/api/webhooks/123/abcdef-ghij", "abcdef-ghij"), ("https://discordapp.com/api/webhooks/1/zyxw", "zyxw")],
    ["https://discord.com/api/v9", "https://discord.com/developers/docs"];
    "Google OAuth access tokens (developers.google.com/identity/protocols/oauth2)", Hints::FORM,
    r"ya29\.[0-9A-Za-z_-]{16,}",
    [("ya29.a0AfH6SMBx-abcdefgh_ijkl", "a0AfH6SMBx"), ("access ya29.abcdefghijklmnopqrst", "abcdefghij")],
    ["ya29.short", "papaya29.9"];
    "Google OAuth client secrets (same)", Hints::FORM,
    r"GOCSPX-[0-9A-Za-z_-]{16,}",
    [("GOCSPX-abcdefghijklmnop_qrs-tuvwxyz", "abcdefghij"), ("\"s\":\"GOCSPX-0123456789abcdefghij\"", "0123456789")],
    ["GOCSPX-", "GOCSPX-short"];
    "Google OAuth refresh tokens (same)", Hints::FORM,
    r"\b1//0[0-9A-Za-z_-]{20,}",
    [("1//0gabcdefghijklmnopqrstuvwx", "abcdefghij"), ("r=1//03ABCDEFGHIJKLMNOPQRSTUV", "ABCDEFGHIJ")],
    ["1//0", "http://x/1//0a"];
    "Hugging Face user tokens (huggingface.co/docs/hub/security-tokens)", Hints::FORM,
    r"\bhf_[0-9A-Za-z]{30,}",
    [("hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "abcdefghij"), ("HF=hf_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefgh", "ABCDEFGHIJ")],
    ["hf_hub_download", "half_hf_x"];
    "SendGrid API keys (docs.sendgrid.com)", Hints::FORM,
    r"\bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}",
    [("SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG", "abcdefghij"), ("k SG.0123456789ABCDEFGHIJKL.0123456789abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJ")],
    ["MSG.text", "SG.a.b"];
    "PyPI API tokens (pypi.org/help)", Hints::FORM,
    r"pypi-[0-9A-Za-z_-]{16,}",
    [("pypi-AgEIcHlwaS5vcmcCJGFiY2RlZg", "AgEIcHlwaS"), ("password = pypi-AgENdGVzdC5weXBpLm9yZwIk", "AgENdGVzdC")],
    ["pypi-server", "pypi-mirror"];
    "Docker access tokens (docs.docker.com/security/access-tokens)", Hints::FORM,
    r"dckr_pat_[0-9A-Za-z_-]{16,}",
    [("dckr_pat_abcdefghijklmnopqrstuvwxyz0", "abcdefghij"), ("docker: dckr_pat_0123456789ABCDEFGHIJ", "ABCDEFGHIJ")],
    ["dckr_pat_", "docker_pat_x"];
    "Vault tokens (developer.hashicorp.com/vault/docs/concepts/tokens)", Hints::FORM,
    r"\bhv[sb]\.[0-9A-Za-z_-]{16,}",
    [("hvs.CAESIabcdefghijklmnop", "abcdefghij"), ("t=hvb.AAAAAQJabcdefghijklmnop", "abcdefghij")],
    ["hvs.x", "hvs.example.org"];
    "Terraform Cloud tokens (developer.hashicorp.com/terraform/cloud-docs)", Hints::FORM,
    r"\b[0-9A-Za-z]{14}\.atlasv1\.[0-9A-Za-z_=-]{30,}",
    [("abcdefghijklmn.atlasv1.0123456789abcdefghijABCDEFGHIJ0123456789", "0123456789"), ("x ABCDEFGHIJKLMN.atlasv1.zyxwvutsrqponmlkjihgfedcba98765432", "zyxwvutsrq")],
    ["a.atlasv1.b", "version .atlasv1."];
    "GitLab tokens of other kinds (docs.gitlab.com/security/tokens)", Hints::FORM,
    r"\b(?:gl(?:dt|rt|ft|soat|ptt|rtr)-|GR1348941)[0-9A-Za-z_.-]{16,}",
    [("gldt-abcdefghij0123456789", "abcdefghij"), ("GR1348941abcdefghij0123456789", "abcdefghij")],
    ["gldt-x", "glrt-short"];
    "Shopify tokens (shopify.dev/docs/apps)", Hints::FORM,
    r"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{16,}",
    [("shpat_0123456789abcdef0123456789abcdef", "0123456789"), ("shpss_abcdef0123456789abcdef0123456789", "abcdef0123")],
    ["shpat_x", "shpss_notahex"];
    "Atlassian API tokens (id.atlassian.com)", Hints::FORM,
    r"AT[AC]TT3[0-9A-Za-z_=-]{16,}",
    [("ATATT3xFfGF0abcdefghijklmnop", "abcdefghij"), ("t ATCTT3xFfGN0ABCDEFGHIJKLMNOP=1234", "ABCDEFGHIJ")],
    ["ATATT3", "ATTATT3"];
    "Telegram bot tokens (core.telegram.org/bots/api)", Hints::FORM,
    r"[0-9]{8,10}:AA[0-9A-Za-z_-]{30,}",
    [("123456789:AAabcdefghijklmnopqrstuvwxyz0123456", "abcdefghij"), ("bot1234567890:AAHABCDEFGHIJKLMNOPQRSTUVWXYZ01234", "ABCDEFGHIJ")],
    ["12:AA", "10:20:30:AA"];
    "DigitalOcean tokens (docs.digitalocean.com)", Hints::FORM,
    r"do[opr]_v1_[0-9a-f]{32,}",
    [("dop_v1_0123456789abcdef0123456789abcdef01234567", "0123456789"), ("doo_v1_abcdef0123456789abcdef0123456789abcdef01", "abcdef0123")],
    ["dop_v1_", "do_v1_x"];
    "Grafana tokens (grafana.com/docs)", Hints::FORM,
    r"glsa_[0-9A-Za-z_]{24,}",
    [("glsa_abcdefghijklmnopqrstuvwxyz012345_abcdef01", "abcdefghij"), ("g=glsa_ABCDEFGHIJKLMNOPQRSTUVWXYZ012345_01234567", "ABCDEFGHIJ")],
    ["glsa_x", "glsa_short"];
    "Linear API keys (developers.linear.app)", Hints::FORM,
    r"lin_(?:api|oauth)_[0-9A-Za-z]{24,}",
    [("lin_api_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghij"), ("lin_oauth_0123456789abcdef0123456789abcdef", "0123456789")],
    ["lin_api_", "lin_api_version"];
    "Cookie and Set-Cookie headers (RFC 6265)", Hints::FORM,
    r#"(?i)cookie2?["']?\s*[:=]\s*["']?(?P<v>[^\s=;"']+=[^"']+)"#,
    [("Cookie: sid=abcdefabcdef; b=2", "abcdefabcdef"), ("set-cookie: id=xyz123xyz; Path=/; HttpOnly", "xyz123xyz")],
    ["cookie: none", "cookies are kept"];
    "Azure storage and service bus connection strings (learn.microsoft.com)", Hints::KEY_VALUE,
    r"(?i)(?:account|access)key=(?P<v>[0-9A-Za-z+/=]{16,})",
    [("AccountName=a;AccountKey=abcdefghijklmnop0123456789==;EndpointSuffix=x", "abcdefghij"), ("SharedAccessKeyName=r;SharedAccessKey=ABCDEFGHIJKLMNOP012345=", "ABCDEFGHIJ")],
    ["AccountKey=", "accesskey=x"];
    "credentials behind an option of a command (seen in shells and process lists)", Hints::KEY_VALUE,
    r#"(?i)(?:^|[\s"'\[,(])--?[a-z0-9_-]*(?:password|passwd|passphrase|pass|pwd|token|secret|api-?key|access-?key|private-?key)[ =]+(?:"(?P<v>[^"]+)"|'(?P<w>[^']+)'|(?P<x>[^\s"'-]\S{3,}))"#,
    [("mysql --password hunter2 -h db", "hunter2"), ("x --auth-token 'abc def' y", "abc def")],
    ["--password-file-mode", "--token -x"];
    "curl and wget users (curl.se/docs/manpage.html)", Hints::FORM,
    r#"(?:^|\s)(?:-u +|--(?:proxy-)?user[ =]+)["']?[^\s"':]+:(?P<v>[^\s"']+)"#,
    [("curl -u bob:hunter2 https://h/x", "hunter2"), ("curl --user 'bob:s3cret/x' h", "s3cret/x")],
    ["docker run -u 1000 x", "sort -u file"];
    "curl users without a blank (curl.se/docs/manpage.html)", Hints::FORM,
    r#"\bcurl\b.*?\s-u=?["']?[^\s"':]+:(?P<v>[^\s"']+)"#,
    [("curl -ubob:hunter2 https://h/x", "hunter2"), ("curl -s -u'bob:s3cret/x' h", "s3cret/x")],
    ["curl -u", "curl -udp 1"];
    "netrc (curl.se/docs/netrc.html)", Hints::KEY_VALUE,
    r"(?i)\b(?:machine|login|account|default)\s+\S+.*?\bpassword\s+(?P<v>\S+)",
    [("machine h login bob password hunter2", "hunter2"), ("login bob\tpassword s3cret", "s3cret")],
    ["the login page asks", "login bob password"];
    "elements of XML (Maven settings, web.config, SOAP)", Hints::KEY_VALUE,
    r"(?i)<[\w:.-]*(?:password|passwd|passphrase|pwd|token|secret|api_?key|privatekey)[\w:.-]*(?:\s[^<>]*)?>\s*(?P<v>[^<>\s][^<>]*)<",
    [("<password>hunter2</password>", "hunter2"), ("<wsse:Password Type=\"t\">s3cret</wsse:Password>", "s3cret")],
    ["<password></password>", "<token/>"];
    "responses of Digest authentication (RFC 7616)", Hints::FORM,
    r#"(?i)\bresponse="?(?P<v>[0-9a-f]{32,})"#,
    [("Digest username=\"a\", response=\"6629fae49393a05397450978507c4ef1\"", "6629fae493"), ("response=0123456789abcdef0123456789abcdef", "0123456789")],
    ["response=200", "response=\"ok\""];
    "signatures of AWS version 4 (docs.aws.amazon.com)", Hints::QUERY,
    r"(?i)signature=(?P<v>[0-9a-f]{32,})",
    [("AWS4-HMAC-SHA256 SignedHeaders=host, Signature=0123456789abcdef0123456789abcdef0123", "0123456789"), ("&X-Amz-Signature=abcdefabcdefabcdefabcdefabcdefabcdef", "abcdefabcd")],
    ["signature=none", "Signature=abc"];
    "passwords with a slash in URLs (RFC 3986 demands %2F, people do not)", Hints::URL_USER,
    r#"://(?P<v>[^/\s:@"'<>]+:[^\s"'<>@/]*[^0-9\s"'<>@/][^\s"'<>@/]*/[^\s"'<>@]*)@"#,
    [("https://bob:s3c/ret@h/x", "s3c/ret"), ("postgres://u:p/w/d@db:5432/x", "p/w/d")],
    ["https://h:8080/a@b", "https://h/a:b/c@d"];
};

static PATTERNS: LazyLock<Vec<(Hints, Regex)>> =
    LazyLock::new(|| FORMS.iter().map(|form| (form.hint, pattern(form.pattern))).collect());

/// Finds every form that `hints` makes worth asking.
pub(super) fn find(text: &str, hints: Hints, out: &mut Vec<Span>) {
    for (_, rule) in PATTERNS.iter().filter(|(hint, _)| hints.name(*hint)) {
        for found in rule.captures_iter(text) {
            let group = ["v", "w", "x"].into_iter().find_map(|name| found.name(name));
            let secret = group.or_else(|| found.get(0));
            out.extend(secret.map(|secret| Span::secret(secret.start(), secret.end())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::{MASK, redact_text};

    #[test]
    fn h65_every_form_is_masked_by_its_examples_and_leaves_what_resembles_it() {
        for form in FORMS {
            for (text, secret) in form.masked {
                let out = redact_text(text);
                let is_masked = !out.contains(secret) && out.contains(MASK);
                assert!(is_masked, "{}: {text:?} became {out:?}", form.source);
            }
            for text in form.kept {
                assert_eq!(redact_text(text), text, "{}", form.source);
            }
        }
    }

    /// The words of `hints` decide whether a form is looked for at all.
    #[test]
    fn h65_no_form_is_passed_over_because_its_word_is_missing() {
        for form in FORMS {
            for (text, _) in form.masked {
                let mut redactor = crate::redact::Redactor::default();
                let by_words = redactor.line(text).into_owned();
                let mut redactor = crate::redact::Redactor::default();
                assert_eq!(by_words, redactor.line_by_every_rule(text), "{}", form.source);
            }
        }
    }

    #[test]
    fn h65_names_that_end_with_pass_or_pwd_are_keys_of_secrets() {
        for text in [
            "DB_PASS=hunter2hunter2",
            "smtp-pass: hunter2hunter2",
            "pwd=hunter2hunter2",
            "\"pass\": \"hunter2hunter2\"",
            "ADMIN_PWD='hunter2hunter2'",
        ] {
            assert!(!redact_text(text).contains("hunter2"), "{text}");
        }
        for text in [
            "compass=northnorthwest",
            "passing: everythingelse",
            "PWD=/home/somebody/work",
            "bypass_cache=enabledenabled",
        ] {
            assert_eq!(redact_text(text), text);
        }
    }
}
