//! Arguments of the agent's own commands for plugins (`agent-cli` §2, row 10).
//!
//! Nothing that a caller sends is read as an option (H29), and no secret gets into an argument
//! (H35).

use super::names::{is_plugin, is_server};
use super::{BadConfig, ConfigScope, bad};
use crate::log_escape::quoted;
use crate::redact::redact_text;

/// Longest source of a marketplace, in bytes.
const LONGEST_SOURCE: usize = 2_048;

/// What is done to a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginOp {
    /// It is used again.
    Enable,
    /// It is kept and not used.
    Disable,
    /// It is fetched and used.
    Install,
    /// It goes.
    Uninstall,
    /// Its newest version is fetched.
    Update,
}

impl PluginOp {
    /// The word for it, in requests and for the agent.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enable => "enable",
            Self::Disable => "disable",
            Self::Install => "install",
            Self::Uninstall => "uninstall",
            Self::Update => "update",
        }
    }

    /// The operation of this word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        let all = [Self::Enable, Self::Disable, Self::Install, Self::Uninstall, Self::Update];
        all.into_iter().find(|op| op.as_str() == word)
    }
}

/// What is done to a marketplace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarketplaceOp {
    /// One is added from a source.
    Add(String),
    /// One goes, with its plugins.
    Remove(String),
    /// One is fetched again, or all of them.
    Update(Option<String>),
}

impl MarketplaceOp {
    /// The word for it, in requests and for the agent.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Add(_) => "add",
            Self::Remove(_) => "remove",
            Self::Update(_) => "update",
        }
    }

    /// What it is about: the source, or the name.
    #[must_use]
    pub fn subject(&self) -> &str {
        match self {
            Self::Add(subject) | Self::Remove(subject) => subject,
            Self::Update(name) => name.as_deref().unwrap_or("all"),
        }
    }
}

/// A change of one plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginRequest {
    /// What is done.
    pub op: PluginOp,
    /// `name` or `name@marketplace`.
    pub plugin: String,
    /// Its data stays when it goes.
    pub keep_data: bool,
    /// What only it needed goes too.
    pub prune: bool,
}

/// Refuses what cannot be the id of a plugin.
///
/// # Errors
/// It cannot.
pub fn check_plugin(id: &str) -> Result<(), BadConfig> {
    if is_plugin(id) {
        return Ok(());
    }
    Err(bad(format!(
        "{} cannot be the id of a plugin; it is `name` or `name@marketplace`",
        quoted(id)
    )))
}

/// The arguments that change a plugin.
///
/// # Errors
/// A value does not fit.
pub fn plugin_args(request: &PluginRequest, scope: ConfigScope) -> Result<Vec<String>, BadConfig> {
    let PluginRequest { op, plugin, keep_data, prune } = request;
    check_plugin(plugin)?;
    if *op != PluginOp::Uninstall && (*keep_data || *prune) {
        return Err(bad("`keep_data` and `prune` only go with `uninstall`"));
    }
    let mut args = vec!["plugin", op.as_str(), plugin.as_str(), "--scope", scope.as_str()];
    if *keep_data {
        args.push("--keep-data");
    }
    if *prune {
        // Without a terminal the agent asks for this confirmation.
        args.extend(["--prune", "-y"]);
    }
    Ok(args.into_iter().map(str::to_owned).collect())
}

/// The arguments that change marketplaces.
///
/// # Errors
/// A value does not fit.
pub fn marketplace_args(op: &MarketplaceOp, scope: ConfigScope) -> Result<Vec<String>, BadConfig> {
    let mut args = vec!["plugin", "marketplace", op.as_str()];
    match op {
        MarketplaceOp::Add(source) => {
            check_source(source)?;
            args.extend([source.as_str(), "--scope", scope.as_str()]);
        }
        MarketplaceOp::Remove(name) => {
            check_marketplace(name)?;
            args.extend([name.as_str(), "--scope", scope.as_str()]);
        }
        MarketplaceOp::Update(None) => {}
        MarketplaceOp::Update(Some(name)) => {
            check_marketplace(name)?;
            args.push(name);
        }
    }
    Ok(args.into_iter().map(str::to_owned).collect())
}

fn check_marketplace(name: &str) -> Result<(), BadConfig> {
    if is_server(name) {
        return Ok(());
    }
    Err(bad(format!("{} cannot be the name of a marketplace", quoted(name))))
}

fn check_source(source: &str) -> Result<(), BadConfig> {
    if source.trim().is_empty() || source.len() > LONGEST_SOURCE {
        return Err(bad(format!(
            "`source` must be a text of at most {LONGEST_SOURCE} bytes: `owner/repository`, an \
             address, or a path"
        )));
    }
    if source.starts_with('-') {
        return Err(bad("`source` begins with `-` and would be read as an option"));
    }
    if source.chars().any(|c| c.is_control() || svc_shared::text::is_hidden(c)) {
        return Err(bad("`source` holds a character that shows nothing; remove it"));
    }
    let has_password = source.split_once("://").is_some_and(|(_, rest)| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        host.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    });
    if has_password || redact_text(source) != source {
        return Err(bad(
            "`source` holds a secret, which every user of the machine could read in the list of \
             processes; leave it out and let git ask its credential helper",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(op: PluginOp, plugin: &str) -> PluginRequest {
        PluginRequest { op, plugin: plugin.to_owned(), keep_data: false, prune: false }
    }

    #[test]
    fn arguments_are_those_of_the_agent() {
        let args = plugin_args(&request(PluginOp::Install, "a@b"), ConfigScope::Local).unwrap();
        assert_eq!(args, ["plugin", "install", "a@b", "--scope", "local"]);
        let all =
            PluginRequest { keep_data: true, prune: true, ..request(PluginOp::Uninstall, "a") };
        let args = plugin_args(&all, ConfigScope::User).unwrap();
        let end = ["uninstall", "a", "--scope", "user", "--keep-data", "--prune", "-y"];
        assert_eq!(args[1..], end);
        let market = |op| marketplace_args(&op, ConfigScope::Project).map(|args| args.join(" "));
        let add = "plugin marketplace add o/r --scope project";
        assert_eq!(market(MarketplaceOp::Add("o/r".to_owned())).unwrap(), add);
        let remove = "plugin marketplace remove m --scope project";
        assert_eq!(market(MarketplaceOp::Remove("m".to_owned())).unwrap(), remove);
        assert_eq!(market(MarketplaceOp::Update(None)).unwrap(), "plugin marketplace update");
        let one = market(MarketplaceOp::Update(Some("m".to_owned())));
        assert_eq!(one.unwrap(), "plugin marketplace update m");
    }

    #[test]
    fn h29_h35_no_value_is_an_option_or_a_secret() {
        for odd in ["-y", "--scope=user", "a b", "a@b@c", "", "a;b", "$(x)"] {
            assert!(plugin_args(&request(PluginOp::Enable, odd), ConfigScope::User).is_err());
            let remove = MarketplaceOp::Remove(odd.to_owned());
            assert!(marketplace_args(&remove, ConfigScope::User).is_err(), "{odd}");
        }
        let pruned = PluginRequest { prune: true, ..request(PluginOp::Install, "a") };
        assert!(plugin_args(&pruned, ConfigScope::User).is_err());
        let secret = format!("https://host.example/x?token=ghp_{}", "a1B2".repeat(9));
        for odd in ["", " ", "-o/r", "o/r\n", "o/\u{202e}r", "https://u:p@host.example/x", &secret]
        {
            let add = MarketplaceOp::Add(odd.to_owned());
            assert!(marketplace_args(&add, ConfigScope::User).is_err(), "{odd:?}");
        }
        for fine in ["owner/repo", "./here", "https://host.example/x.git", "git@host.example:o/r"] {
            let add = MarketplaceOp::Add(fine.to_owned());
            assert!(marketplace_args(&add, ConfigScope::User).is_ok(), "{fine}");
        }
    }
}
