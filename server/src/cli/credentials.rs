//! Commands that create and revoke credentials (`command-line` §2.2).
//!
//! `api-token`, `hash-password`, `hash-token` and `hash-metrics-token`.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::options::Listing;
use crate::cli::work::{act, end};
use clap::{Args, Subcommand};
use serde_json::json;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::time::Duration;
use svc_app::auth::{self, LONGEST_PASSWORD, SHORTEST_PASSWORD};
use svc_app::{App, AppError};
use svc_domain::scope::Scope;
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;
use svc_shared::internal::access::IssuedToken;

#[derive(Debug, Subcommand)]
pub(crate) enum ApiToken {
    /// Make a token and print it once.
    #[command(
        after_help = "Examples:\n  svc api-token issue ci\n  svc api-token issue --label phone --scope read"
    )]
    Issue(IssueToken),
    /// List labels, times of issue and of last use; never a token.
    #[command(after_help = "Examples:\n  svc api-token list --json")]
    List(Listing),
    /// Give a token a new secret; the old one stops working at once.
    #[command(after_help = "Examples:\n  svc api-token rotate ci")]
    Rotate(Labelled),
    /// Delete a token; it stops working at once.
    #[command(after_help = "Examples:\n  svc api-token revoke ci")]
    Revoke(Labelled),
}

#[derive(Debug, Args)]
pub(crate) struct Labelled {
    /// The token's label.
    #[arg(value_name = "LABEL")]
    pub(crate) name: Option<String>,
    /// The same as an option.
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct IssueToken {
    #[command(flatten)]
    pub(crate) named: Labelled,
    /// Its rights: `read`, `operate` or `approve`. Repeatable; without it everything.
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
    /// When it ends by itself: a time (RFC 3339) or a duration (90m, 12h, 30d).
    #[arg(long, value_name = "WHEN")]
    pub(crate) expires: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct HashPassword {
    /// Read from standard input even on a terminal.
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `svc api-token …`.
pub(crate) fn api_token(call: &Call, verb: &ApiToken) -> Result<Exit, End> {
    match verb {
        ApiToken::Issue(issue) => issue_token(call, issue),
        ApiToken::List(listing) => list_tokens(call, listing),
        ApiToken::Rotate(named) => {
            let label = label(named)?;
            let issued =
                act(call, async |app| Ok(app.tokens().rotate(&label).await.map_err(refused)?))?;
            tell(call, named.json, &issued, "has a new secret; the old one stopped working")
        }
        ApiToken::Revoke(named) => {
            let label = label(named)?;
            end(call, async |app| Ok(app.tokens().revoke(&label).await.map_err(refused)?))?;
            if named.json {
                call.output.json(&json!({"label": label, "revoked": true}))?;
            } else {
                call.output.note(&format!("token `{label}` is revoked"));
            }
            Ok(Exit::Done)
        }
    }
}

fn issue_token(call: &Call, issue: &IssueToken) -> Result<Exit, End> {
    let label = label(&issue.named)?;
    let scopes: Vec<Scope> = issue
        .scope
        .iter()
        .map(|word| word.parse().map_err(|error| usage(format!("--scope {word}: {error}"))))
        .collect::<Result<_, _>>()?;
    let expires = issue.expires.as_deref().map(when).transpose()?;
    let issued = act(call, async |app: &App| {
        Ok(app.tokens().issue(&label, &scopes, expires).await.map_err(refused)?)
    })?;
    tell(call, issue.named.json, &issued, "was issued")
}

fn tell(call: &Call, json: bool, issued: &IssuedToken, what: &str) -> Result<Exit, End> {
    if json {
        call.output.json(issued)?;
        return Ok(Exit::Done);
    }
    call.output.line(&issued.token)?;
    call.output.note(&format!(
        "token `{}` (created {}) {what}",
        issued.label,
        seconds(issued.created)
    ));
    call.output.note("it is not shown again; send it as `Authorization: Bearer <token>`");
    Ok(Exit::Done)
}

fn list_tokens(call: &Call, listing: &Listing) -> Result<Exit, End> {
    let (tokens, has_unnamed) = act(call, async |app| {
        Ok((app.tokens().list().await?, app.settings().auth.api_token_hash.is_some()))
    })?;
    if has_unnamed {
        call.output.note("the token of auth.api_token_hash has full access too");
    }
    if listing.json {
        call.output.json(&tokens)?;
        return Ok(Exit::Done);
    }
    if tokens.is_empty() {
        call.output.note("there is no named token; create one with `svc api-token issue LABEL`");
        return Ok(Exit::Done);
    }
    let rows: Vec<_> = tokens
        .iter()
        .map(|token| {
            let used = token.last_used.map_or_else(|| "never".to_owned(), seconds);
            let scopes =
                token.scopes.as_ref().map_or_else(|| "all".to_owned(), |words| words.join(","));
            let expires = token.expires_at.map_or_else(|| "never".to_owned(), seconds);
            [
                token.label.as_str().into(),
                seconds(token.created).into(),
                used.into(),
                scopes.into(),
                expires.into(),
            ]
        })
        .collect();
    call.output.table(["LABEL", "CREATED", "LAST USED", "SCOPES", "EXPIRES"], &rows)?;
    Ok(Exit::Done)
}

/// A time without fractions, as tables show it.
fn seconds(at: Timestamp) -> String {
    let text = at.to_string();
    text.split_once('.').map_or_else(|| text.clone(), |(whole, _)| format!("{whole}Z"))
}

fn label(named: &Labelled) -> Result<String, End> {
    match (&named.name, &named.label) {
        (Some(one), Some(other)) if one != other => {
            Err(usage("the label is given twice and differs; give it once".to_owned()))
        }
        (Some(label), _) | (None, Some(label)) => Ok(label.clone()),
        (None, None) => Err(usage("the label is missing; name the token".to_owned())),
    }
}

fn usage(line: String) -> End {
    Failure::new(Exit::Refused, "usage", line).into()
}

/// A label that is taken is the caller's to change.
fn refused(error: AppError) -> Failure {
    let is_taken = error.code == ErrorCode::Exists;
    let mut failure = Failure::from(error);
    if is_taken {
        failure.exit = Exit::Refused;
    }
    failure
}

/// A time, or a duration from now.
fn when(raw: &str) -> Result<Timestamp, End> {
    if let Ok(at) = raw.parse() {
        return Ok(at);
    }
    let parsed = raw.split_at_checked(raw.len().saturating_sub(1)).and_then(|(number, unit)| {
        let factor: u64 = match unit {
            "m" => 60,
            "h" => 3600,
            "d" => 24 * 3600,
            _ => return None,
        };
        let is_plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse::<u32>().ok().filter(|_| is_plain).map(|number| u64::from(number) * factor)
    });
    let Some(length) = parsed else {
        return Err(usage(format!(
            "--expires {raw}: neither a time such as 2030-01-31T00:00:00Z nor a duration such as \
             90m, 12h or 30d"
        )));
    };
    Ok(crate::compose::now().plus(Duration::from_secs(length)))
}

/// `svc hash-token` and `svc hash-metrics-token`.
pub(crate) fn hash_token(
    call: &Call,
    options: &Listing,
    key: &str,
    variable: &str,
) -> Result<Exit, End> {
    let (token, hash) = auth::new_token().map_err(End::of_machine)?;
    if options.json {
        call.output.json(&json!({"token": token, "hash": hash}))?;
        return Ok(Exit::Done);
    }
    call.output.line(&token)?;
    let name = key.rsplit('.').next().unwrap_or(key);
    let section = key.split('.').next().unwrap_or(key);
    call.output.note(&format!(
        "it is not shown again; put its hash into the section `{section}`:\n  {name}: {hash}\n\
         or into the environment as {variable}"
    ));
    Ok(Exit::Done)
}

/// `svc hash-password`.
pub(crate) fn hash_password(call: &Call, options: &HashPassword) -> Result<Exit, End> {
    let (password, again) = if options.stdin || !io::stdin().is_terminal() {
        from_pipe()?
    } else {
        let ask = |question: &str| {
            rpassword::prompt_password(question).map_err(|error| {
                usage(format!(
                    "the password cannot be read without showing it ({error}); use --stdin"
                ))
            })
        };
        (ask("Password: ")?.into_bytes(), Some(ask("Again: ")?.into_bytes()))
    };
    if password.is_empty() {
        return Err(usage("the password is empty; give one".to_owned()));
    }
    if again.is_some_and(|again| again != password) {
        return Err(usage("the passwords don't match; try again".to_owned()));
    }
    if password.len() > LONGEST_PASSWORD {
        return Err(usage(format!(
            "the password is longer than {LONGEST_PASSWORD} bytes; use a shorter one"
        )));
    }
    if String::from_utf8_lossy(&password).chars().count() < SHORTEST_PASSWORD {
        call.output.note(&format!(
            "warning: the password has fewer than {SHORTEST_PASSWORD} characters; a longer one is \
             harder to guess, and the first-run page takes no shorter one"
        ));
    }
    let hash = auth::hash_password(&password).map_err(End::of_machine)?;
    if options.json {
        call.output.json(&json!({"hash": hash}))?;
    } else {
        call.output.line(&hash)?;
    }
    Ok(Exit::Done)
}

/// The first line, and the second if there is one.
fn from_pipe() -> Result<(Vec<u8>, Option<Vec<u8>>), End> {
    let mut input = io::stdin().lock().take(8 * 1024);
    let mut line = || -> Result<Option<Vec<u8>>, End> {
        let mut line = Vec::new();
        let count = input.read_until(b'\n', &mut line).map_err(End::of_machine)?;
        while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            line.pop();
        }
        Ok((count > 0).then_some(line))
    };
    let first = line()?.unwrap_or_default();
    Ok((first, line()?.filter(|again| !again.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_a_time_or_a_duration() {
        let from_now = |raw: &str| when(raw).unwrap().since(crate::compose::now()).as_secs();
        for (raw, about) in [("90m", 5400), ("12h", 43_200), ("30d", 2_592_000)] {
            assert!((about - 60..=about).contains(&from_now(raw)), "{raw}");
        }
        let fixed = when("2030-01-31T00:00:00Z").unwrap();
        assert_eq!(seconds(fixed), "2030-01-31T00:00:00Z");
        for bad in ["", "d", "1w", "-1d", "1.5h", "soon", "ä", "99999999999d"] {
            assert!(when(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_label_is_given_once() {
        let named = |name: Option<&str>, label: Option<&str>| Labelled {
            name: name.map(Into::into),
            label: label.map(Into::into),
            json: false,
        };
        assert_eq!(label(&named(Some("ci"), None)).unwrap(), "ci");
        assert_eq!(label(&named(None, Some("ci"))).unwrap(), "ci");
        assert_eq!(label(&named(Some("ci"), Some("ci"))).unwrap(), "ci");
        assert!(label(&named(Some("ci"), Some("x"))).is_err());
        assert!(label(&named(None, None)).is_err());
    }
}
