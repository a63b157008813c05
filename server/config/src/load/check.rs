//! Checks of the whole configuration: combinations, directories, exposure.

use super::draft::Draft;
use super::hash_quality::quality;
use crate::config::{ConfigValues, CookieSecure, TlsProvision, UsageMode};
use crate::environment::Environment;
use crate::report::{Location, Warning, WarningKind, printable};
use crate::secret::Secret;
use crate::setting::Source;
use crate::table;
use crate::value;
use std::path::{Path, PathBuf};
use svc_domain::notification::address::Address;
use svc_domain::posture::{
    self, Caution, CookieMark, Enforced, Exposure, HashQuality, ProxyTrust, Refusal,
};

/// Shortest HMAC key that gets no warning, in bytes.
const SHORT_HMAC_KEY: usize = 16;

impl Draft {
    /// Checks the configuration as a whole, and adds the session secret.
    pub(super) fn check(
        &mut self,
        mut config: ConfigValues,
        environment: &Environment,
    ) -> ConfigValues {
        self.check_projects(&config);
        self.check_combinations(&config);
        self.check_tls(&mut config);
        self.check_exposure(&config);
        config.session_secret = self.session_secret(environment);
        self.warn_of_ineffective(&config);
        self.warn_of_webhooks(&config);
        self.warn_of_notifications(&config);
        self.warn_of_file_mode();
        config
    }

    fn is_sound(&self, keys: &[&str]) -> bool {
        keys.iter().all(|key| !self.failed.contains(key))
    }

    fn refuse(&mut self, key: &str, reason: impl Into<String>) {
        self.problem(self.location_of(key), key, reason);
    }

    fn warn_ineffective(&mut self, key: &str, message: impl Into<String>) {
        self.warn(WarningKind::Ineffective, self.location_of(key), key, message);
    }

    fn check_projects(&mut self, config: &ConfigValues) {
        if !self.is_sound(&["projects_root"]) {
            return;
        }
        let root = &config.projects_root;
        let shown = printable(&root.to_string_lossy());
        let reason = match std::fs::metadata(root) {
            Ok(metadata) if !metadata.is_dir() => Some(format!("{shown} is not a directory")),
            Ok(_) => std::fs::read_dir(root)
                .err()
                .map(|error| format!("{shown} cannot be read ({error})")),
            Err(error) => Some(format!("{shown} cannot be used ({error})")),
        };
        if let Some(reason) = reason {
            return self.refuse("projects_root", format!("{reason}; name a readable directory"));
        }
        let names: Vec<_> = self.projects.keys().cloned().collect();
        for name in names {
            if !root.join(name.as_str()).is_dir() {
                let line = self.projects.get(&name).and_then(|settings| {
                    settings.values().find_map(|setting| match setting.source {
                        Source::File { line } => Some(line),
                        Source::Default | Source::Env { .. } => None,
                    })
                });
                let location = line.map_or_else(|| self.whole(), |line| self.line(line));
                let key = format!("projects.{name}");
                let message = format!("has no effect, because {shown} holds no such directory");
                self.warn(WarningKind::UnknownProject, location, key, message);
            }
        }
        if self.is_sound(&["state_dir"]) && real(&config.state_dir).starts_with(real(root)) {
            let message = "lies inside projects_root, where agents can read the service's secrets; \
                           move it elsewhere";
            self.warn(WarningKind::Posture, self.location_of("state_dir"), "state_dir", message);
        }
    }

    fn check_combinations(&mut self, config: &ConfigValues) {
        let restart = ["restart.initial_delay_seconds", "restart.max_delay_seconds"];
        if self.is_sound(&restart) && config.restart.max_delay < config.restart.initial_delay {
            let reason = "must not be below restart.initial_delay_seconds";
            self.refuse("restart.max_delay_seconds", reason);
        }
        let proxy = &config.auth.reverse_proxy;
        let headers = ["auth.reverse_proxy.user_header", "auth.reverse_proxy.shared_secret_header"];
        if self.is_sound(&headers)
            && proxy.user_header.eq_ignore_ascii_case(&proxy.shared_secret_header)
        {
            let reason = "must not be the header of auth.reverse_proxy.user_header";
            self.refuse("auth.reverse_proxy.shared_secret_header", reason);
        }
    }

    fn check_tls(&mut self, config: &mut ConfigValues) {
        let keys = ["tls.provision", "tls.hostnames", "tls.cert_file", "tls.key_file"];
        let Some(tls) = config.tls.as_ref() else { return };
        if !self.is_sound(&keys) {
            return;
        }
        let files = [("tls.cert_file", &tls.cert_file), ("tls.key_file", &tls.key_file)];
        for (key, file) in files {
            match (tls.provision, file.as_ref()) {
                (TlsProvision::Off, None) => {
                    let reason = "is missing; tls needs cert_file and key_file, or provision: \
                                  self-signed; remove the whole section for plain HTTP";
                    self.refuse(key, reason);
                }
                // The path stays as written: a renewal may replace a link in it.
                (TlsProvision::Off, Some(path)) => {
                    if let Err(reason) = readable_file(path) {
                        self.refuse(key, reason);
                    }
                }
                (TlsProvision::SelfSigned, Some(_)) => {
                    let reason = "must not be set with tls.provision: self-signed";
                    self.refuse(key, reason);
                }
                (TlsProvision::SelfSigned, None) => {}
            }
        }
        if tls.provision == TlsProvision::SelfSigned && tls.hostnames.is_empty() {
            let reason = "must name at least one host for tls.provision: self-signed";
            self.refuse("tls.hostnames", reason);
        }
        if let Some(mode) = tls.key_file.as_deref().and_then(mode_of)
            && mode & 0o077 != 0
        {
            let message = format!(
                "can be read by others than its owner (mode {:04o}); restrict it to 0600",
                mode & 0o7777
            );
            let kind = WarningKind::FileMode { is_writable: false };
            self.warn(kind, self.location_of("tls.key_file"), "tls.key_file", message);
        }
    }

    fn check_exposure(&mut self, config: &ConfigValues) {
        let is_judged = |key: &str| {
            matches!(key, "host" | "ui.enabled")
                || key.starts_with("auth.")
                || key.starts_with("tls.")
        };
        if self.failed.iter().any(|key| is_judged(key)) {
            return;
        }
        let (refusals, cautions) = judge_exposure(config);
        for refusal in refusals {
            self.refuse(refusal.key(), refusal.to_string());
            self.exposures += 1;
        }
        for caution in cautions {
            let key = caution.key();
            self.warn(WarningKind::Posture, self.location_of(key), key, caution.to_string());
        }
    }

    /// Warns of values that load but cannot have an effect.
    fn warn_of_ineffective(&mut self, config: &ConfigValues) {
        if config.schema_version > 1 {
            let message = "is written for a newer version; keys this version does not know have no \
                           effect";
            let location = self.location_of("schema_version");
            self.warn(WarningKind::NewerSchema, location, "schema_version", message);
        }
        if !is_version(&config.claude.min_version) {
            let message = "is no dotted version such as 2.1.145, so no agent can satisfy it";
            self.warn_ineffective("claude.min_version", message);
        }
        let auth = &config.auth;
        // With `auth.password_required` it is a reason not to start.
        if !auth.password_required
            && auth.password_hash.as_ref().is_some_and(|hash| !is_password_hash(hash))
        {
            let message = "is no $argon2id$ hash, so no password can match; make one with \
                           `svc hash-password`";
            self.warn_ineffective("auth.password_hash", message);
        }
        let proxy = &config.auth.reverse_proxy;
        if proxy.shared_secret.as_ref().is_some_and(|key| key.expose().len() < SHORT_HMAC_KEY) {
            let message = "is shorter than 16 bytes and can be guessed; use a longer random one";
            self.warn_ineffective("auth.reverse_proxy.shared_secret", message);
        }
        for (index, entry) in config.auth.allowed_origins.iter().enumerate() {
            if value::origin(entry).is_none() {
                let message = format!(
                    "entry {} is no http or https origin such as https://host:port and can never \
                     match",
                    index + 1
                );
                self.warn_ineffective("auth.allowed_origins", message);
            }
        }
        for (index, scheme) in config.clone.allowed_schemes.iter().enumerate() {
            if !matches!(scheme.as_str(), "https" | "ssh") {
                let message = format!("entry {} never matches; only https and ssh do", index + 1);
                self.warn_ineffective("clone.allowed_schemes", message);
            }
        }
        let usage = &config.usage;
        #[expect(clippy::float_cmp, reason = "exactly the untouched default is meant")]
        let is_unconverted = usage.fx_rate == 1.0;
        if usage.mode == UsageMode::Cost && usage.currency != "USD" && is_unconverted {
            let message = "is 1, so US dollars are shown as the other currency; set the rate";
            self.warn_ineffective("usage.fx_rate", message);
        }
    }

    fn warn_of_webhooks(&mut self, config: &ConfigValues) {
        for (index, target) in config.webhooks.urls.iter().enumerate() {
            let is_target = url::Url::parse(target.expose())
                .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            if !is_target {
                let message =
                    format!("entry {} is no http or https URL and is disabled", index + 1);
                self.warn_ineffective("webhooks.urls", message);
            }
        }
    }

    fn warn_of_notifications(&mut self, config: &ConfigValues) {
        for (index, entry) in config.notifications.urls.iter().enumerate() {
            if let Err(why) = Address::parse(entry.expose()) {
                let message = format!("entry {} is disabled: it {why}", index + 1);
                self.warn_ineffective("notifications.urls", message);
            }
        }
    }

    fn warn_of_file_mode(&mut self) {
        let Some(path) = self.file.clone() else { return };
        let Some(mode) = mode_of(&path) else { return };
        let location = Location::File(path.clone());
        let mut warn = |is_writable, message: String| {
            self.warnings.push(Warning {
                kind: WarningKind::FileMode { is_writable },
                location: location.clone(),
                keys: Vec::new(),
                message,
            });
        };
        if mode & 0o002 != 0 {
            let message = "can be changed by every user, and it names programs that run; take the \
                           right away (chmod o-w)";
            warn(true, message.to_owned());
        } else if mode & 0o020 != 0 {
            let message = "can be changed by its group, and it names programs that run; take the \
                           right away (chmod g-w) unless the group is yours alone";
            warn(false, message.to_owned());
        }
        if self.step == Some(crate::find::Step::WorkingDirectory) && has_foreign_owner(&path) {
            let message = "was found in the working directory and belongs to another user, and it \
                           names programs that run; name a file of your own with -c";
            warn(true, message.to_owned());
        }
        let holds_secret = table::leaves().filter(|leaf| leaf.secret).any(|leaf| {
            self.settings.get(leaf.key).is_some_and(|setting| {
                matches!(setting.source, Source::File { .. }) && !setting.value.is_nothing()
            })
        });
        if holds_secret && mode & 0o044 != 0 {
            let message = format!(
                "holds a secret and can be read by other users (mode {:04o}); restrict it to 0600",
                mode & 0o7777
            );
            warn(false, message);
        }
    }
}

/// Whether a configuration would leave the service open.
///
/// Reasons not to start, and reasons for a warning. The start itself uses this function.
#[must_use]
pub fn judge_exposure(config: &ConfigValues) -> (Vec<Refusal>, Vec<Caution>) {
    let exposure = exposure_of(config);
    (posture::refusals(&exposure, enforced()), posture::cautions(&exposure))
}

/// Whether a configured password hash can ever match a password.
#[must_use]
pub fn is_password_hash(hash: &Secret) -> bool {
    quality(Some(hash)) != HashQuality::Unusable
}

/// The protections that this build enforces.
fn enforced() -> Enforced {
    Enforced { sign_in: true, reverse_proxy: true, tls: true }
}

fn exposure_of(config: &ConfigValues) -> Exposure<'_> {
    let auth = &config.auth;
    let proxy = &auth.reverse_proxy;
    let is_wide = |raw: &String| {
        value::network(raw).is_some_and(|range| range.prefix_len() < range.max_prefix_len())
    };
    Exposure {
        host: &config.host,
        allow_unauthenticated_network: auth.allow_unauthenticated_network,
        auth_enabled: auth.enabled,
        password_required: auth.password_required,
        password_hash: quality(auth.password_hash.as_ref()),
        has_api_token_hash: auth.api_token_hash.is_some(),
        ui_enabled: config.ui.enabled,
        cookie: match auth.cookie_secure {
            CookieSecure::Auto => CookieMark::Auto,
            CookieSecure::Always => CookieMark::Always,
            CookieSecure::Never => CookieMark::Never,
        },
        proxy: proxy.enabled.then(|| ProxyTrust {
            has_trusted_ips: !proxy.trusted_ips.is_empty(),
            has_wide_range: proxy.trusted_ips.iter().any(is_wide),
            require_hmac: proxy.require_hmac,
            has_shared_secret: proxy.shared_secret.is_some(),
        }),
        tls: config.tls.is_some(),
    }
}

/// The path with its links resolved, as far as it exists.
fn real(path: &Path) -> PathBuf {
    for known in path.ancestors() {
        if let (Ok(resolved), Ok(rest)) = (known.canonicalize(), path.strip_prefix(known)) {
            return resolved.join(rest);
        }
    }
    path.to_path_buf()
}

/// Whether a file exists, is regular and can be opened.
fn readable_file(path: &Path) -> Result<(), String> {
    let shown = printable(&path.to_string_lossy());
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(format!("{shown} is not a regular file")),
        Ok(_) => std::fs::File::open(path)
            .map(drop)
            .map_err(|error| format!("{shown} cannot be read ({error})")),
        Err(error) => Err(format!("{shown} cannot be used ({error})")),
    }
}

/// Dotted numbers, with an optional pre-release after a hyphen.
fn is_version(raw: &str) -> bool {
    let (numbers, pre_release) = raw.split_once('-').unwrap_or((raw, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    numbers.split('.').all(is_number) && !pre_release.is_empty() && pre_release.chars().all(is_word)
}

#[cfg(unix)]
fn mode_of(path: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|metadata| metadata.mode())
}

#[cfg(not(unix))]
fn mode_of(_path: &Path) -> Option<u32> {
    None
}

/// Whether the file belongs to neither this user nor root.
#[cfg(unix)]
fn has_foreign_owner(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::geteuid().as_raw();
    std::fs::metadata(path).is_ok_and(|metadata| metadata.uid() != 0 && metadata.uid() != own)
}

#[cfg(not(unix))]
fn has_foreign_owner(_path: &Path) -> bool {
    false
}
