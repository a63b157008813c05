//! Keys about who reaches the service, and what it allows.

use crate::keys::terms::*;
use crate::keys::{choice, section};
use crate::schema::{ItemRule, Preset, TextRule};
use crate::secret::Secret;
use std::path::PathBuf;
use std::time::Duration;

section! {
    /// Authentication.
    Auth "auth." {
        /// Master switch of authentication.
        /// While it is off the other keys enforce nothing, origins and hosts excepted.
        enabled: bool = BOOL => OFF, File Restart protects;
        /// Password sign-in.
        password_required: bool = BOOL => OFF, File Restart protects;
        /// Argon2id hash of the password.
        password_hash: Option<Secret> = LINE => NULL, File Restart secret blank_is_null;
        /// SHA-256 of the unnamed bearer token.
        api_token_hash: Option<Secret> = text(TextRule::Sha256Hex)
            => NULL, File Restart secret blank_is_null;
        /// Permits a network bind without sign-in.
        allow_unauthenticated_network: bool = BOOL => OFF, File Restart;
        /// When the session cookie is marked Secure.
        cookie_secure: CookieSecure = one_of(CookieSecure::WORDS) => is("auto"), File Restart;
        /// How long a sign-in lasts.
        session_max_age as "session_max_age_seconds": Duration = whole_seconds(1.0)
            => num(604_800), File Restart;
        /// Further browser origins, enforced with auth off as well.
        /// In the form browsers send. An entry that is not an origin is kept as written and
        /// never matches.
        allowed_origins: Vec<String> = list(ItemRule::Origin) => EMPTY, File Restart;
        /// Further Host names: exact, or *. and a suffix.
        /// Lower-case.
        allowed_hosts: Vec<String> = list(ItemRule::HostPattern) => EMPTY, File Restart;

        sections:
        /// Trust in a reverse proxy.
        reverse_proxy: ReverseProxy,
    }
}

choice! {
    /// When the session cookie is marked `Secure`.
    CookieSecure {
        /// When the connection is encrypted.
        Auto = "auto",
        /// In every case.
        Always = "always",
        /// In no case.
        Never = "never",
    }
}

section! {
    /// Trust in a reverse proxy.
    ReverseProxy "auth.reverse_proxy." {
        /// Trusts a reverse proxy to name the user.
        enabled: bool = BOOL => OFF, File Restart protects;
        /// Header that names the user.
        user_header: String = text(TextRule::HeaderName) => is("Remote-User"), File Restart;
        /// Header that carries the HMAC.
        /// Never the user header.
        shared_secret_header: String = text(TextRule::HeaderName)
            => is("X-Proxy-Auth"), File Restart;
        /// Addresses and ranges of addresses that a proxy may have.
        trusted_ips: Vec<String> = list(ItemRule::Network) => EMPTY, File Restart;
        /// Key of the HMAC.
        shared_secret: Option<Secret> = LINE => NULL, File Restart secret;
        /// How old a signed request may be.
        hmac_window as "hmac_window_seconds": Duration = whole_seconds(0.0)
            => num(60), File Restart;
        /// Requires the HMAC; off trusts the user header alone.
        require_hmac: bool = BOOL => ON, File Restart;
    }
}

section! {
    /// Transport security.
    Tls "tls." {
        /// Whether the service makes its own certificate.
        provision: TlsProvision = one_of(TlsProvision::WORDS)
            => is("off"), File Restart protects;
        /// Host names in the self-signed certificate.
        /// The first is its subject.
        hostnames: Vec<String> = list(ItemRule::HostName) => EMPTY, File Restart protects;
        /// Certificate chain (PEM).
        /// Set exactly when the service does not make its own certificate.
        cert_file: Option<PathBuf> = PATH => NULL, File Restart protects;
        /// Private key (PEM).
        /// Set exactly when the service does not make its own certificate.
        key_file: Option<PathBuf> = PATH => NULL, File Restart protects;
    }
}

choice! {
    /// Whether the service makes its own certificate.
    TlsProvision {
        /// No: the files are given.
        Off = "off",
        /// Yes.
        SelfSigned = "self-signed",
    }
}

section! {
    /// The API.
    Api "api." {
        /// Serves the API description.
        openapi_enabled: bool = BOOL => OFF, Basic Restart;
    }
}

section! {
    /// The browser pages.
    Ui "ui." {
        /// Serves the browser pages.
        enabled: bool = BOOL => ON, File Restart;
    }
}

section! {
    /// The database.
    Db "db." {
        /// Snapshot before a migration.
        backup_before_migrate: bool = BOOL => ON, File Restart;
    }
}

section! {
    /// The ghost-environment reaper.
    Reaper "reaper." {
        /// Shows the ghost-environment reaper in the dashboard.
        ui_enabled: bool = BOOL => OFF, Basic Live;
    }
}

section! {
    /// Editing of configuration that executes code.
    ConfigWrite "config_write." {
        /// Allows to change settings in the dashboard.
        enabled: bool = BOOL => OFF, File Restart;
        /// Allows it for the user's own configuration as well.
        allow_user_scope: bool = BOOL => OFF, File Restart;
    }
}

section! {
    /// Agent sign-in from the dashboard.
    LoginShepherd "login_shepherd." {
        /// Allows to sign the agent in from the dashboard.
        enabled: bool = BOOL => OFF, File Restart;
        /// Allows to make long-lived tokens from the dashboard.
        allow_setup_token: bool = BOOL => OFF, File Restart;
    }
}

section! {
    /// The MCP server.
    Mcp "mcp." {
        /// Offers the tools of the MCP server that write.
        allow_writes: bool = BOOL => OFF, File NextMcpStart;
    }
}

section! {
    /// Creating and cloning projects.
    Clones "clone." {
        /// Allows to create and clone projects.
        enabled: bool = BOOL => ON, Advanced Live;
        /// URL schemes a clone may use.
        /// Only `https` and `ssh` can ever work.
        allowed_schemes: Vec<String> = list(ItemRule::Any)
            => Preset::List(&["https", "ssh"]), Advanced Live;
        /// Allows clones from private networks.
        allow_private_hosts: bool = BOOL => OFF, Advanced Live;
        /// Private ranges of addresses that clones may use.
        allowed_private_cidrs: Vec<String> = list(ItemRule::Network)
            => EMPTY, Advanced Live;
        /// Longest time a clone may take.
        timeout as "timeout_seconds": Duration = whole_seconds(1.0)
            => num(300), Advanced Live;
        /// Largest clone in MiB; 0 is no limit.
        max_mb: u32 = int(0) => num(2048), Advanced Live;
    }
}
