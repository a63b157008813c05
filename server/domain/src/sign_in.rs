//! What the agent says while a person signs it in: its address, a refusal, a token.
//!
//! The text comes from another program, and a part of it perhaps from the network. Only an address
//! of the account's own service is passed on to a person, whatever else looks like one.

use url::{Host, Url};

/// Where the account of the agent is. A code given elsewhere would be given away.
const HOSTS: [&str; 4] =
    ["claude.ai", "claude.com", "platform.claude.com", "console.anthropic.com"];
/// Longest address that is looked at.
const LONGEST: usize = 4096;
/// How a long-lived token begins.
const TOKEN: &str = "sk-ant-oat";
/// Fewest characters of one.
const SHORTEST_TOKEN: usize = 32;
/// A program that breaks lines itself may leave so many columns free.
const SLACK: usize = 8;
/// How the agent asks for the code once more.
const REPEAT: &str = "Invalid code";
/// How the agent refuses a code (agent 2.1.197).
const REFUSALS: [&str; 3] = [REPEAT, "OAuth error", "Login failed"];

/// The address where a person allows the sign-in.
///
/// `columns` is where the agent breaks long words; `None` where it does not.
#[must_use]
pub fn authorize_url(lines: &[String], columns: Option<usize>) -> Option<String> {
    let is_part = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '<' | '>' | '`');
    words(lines, "https://", columns, is_part).find(|url| is_authorize(url))
}

/// The long-lived token that the agent shows at the end.
#[must_use]
pub fn token(lines: &[String], columns: Option<usize>) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    words(lines, TOKEN, columns, is_part).find(|token| token.len() >= SHORTEST_TOKEN)
}

/// How often a code is refused in these lines.
#[must_use]
pub fn refusals(lines: &[String]) -> usize {
    lines.iter().map(|line| REFUSALS.iter().filter(|words| line.contains(*words)).count()).sum()
}

/// How often these lines ask for another code.
///
/// After other refusals the command of a login ends.
#[must_use]
pub fn repeats(lines: &[String]) -> usize {
    lines.iter().filter(|line| line.contains(REPEAT)).count()
}

/// Why the agent has refused, in its own words.
///
/// Without a refusal it is the last thing that was said and is no prompt; empty if there is nothing.
#[must_use]
pub fn last_words(lines: &[String]) -> &str {
    let refusal = |line: &'_ String| REFUSALS.iter().filter_map(|words| line.find(words)).min();
    let refused = lines.iter().rev().find_map(|line| line.get(refusal(line)?..));
    let said = lines.iter().rev().map(|line| line.trim());
    let mut said =
        said.filter(|line| !line.ends_with('>') && line.chars().any(char::is_alphabetic));
    refused.map(str::trim).or_else(|| said.next()).unwrap_or_default()
}

/// Whole words that begin like this: something was written after each of them.
fn words<'a>(
    lines: &'a [String],
    start: &'a str,
    columns: Option<usize>,
    is_part: impl Fn(char) -> bool + Copy + 'a,
) -> impl Iterator<Item = String> + 'a {
    let places = lines
        .iter()
        .enumerate()
        .flat_map(move |(row, line)| line.match_indices(start).map(move |(at, _)| (row, at)));
    places.filter_map(move |(row, at)| {
        let mut text = lines.get(row)?.get(at..)?.trim_end();
        let mut word = String::new();
        let mut row = row;
        loop {
            let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
            word.push_str(text.get(..end)?);
            if word.len() > LONGEST {
                return None;
            }
            if end < text.len() {
                return Some(word);
            }
            let line = lines.get(row)?.trim_end();
            let next = lines.get(row + 1).map_or("", |next| next.trim());
            let is_broken = columns.is_some_and(|n| line.chars().count() + SLACK >= n);
            if !is_broken || next.is_empty() || !next.chars().all(is_part) {
                let is_whole = lines.iter().skip(row + 1).any(|line| !line.trim().is_empty());
                return is_whole.then_some(word);
            }
            (text, row) = (next, row + 1);
        }
    })
}

fn is_authorize(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let is_plain = url.username().is_empty() && url.password().is_none() && url.port().is_none();
    let one = |name: &str| {
        let mut values = url.query_pairs().filter(|(key, _)| key == name).map(|(_, value)| value);
        values.next().filter(|value| !value.is_empty() && values.next().is_none())
    };
    is_plain
        && is_ours(&url)
        && url.path().ends_with("/oauth/authorize")
        && ["client_id", "code_challenge", "state"].iter().all(|name| one(name).is_some())
        && one("redirect_uri").is_some_and(|to| Url::parse(&to).is_ok_and(|to| comes_back(&to)))
}

fn is_ours(url: &Url) -> bool {
    url.scheme() == "https" && url.host_str().is_some_and(|host| HOSTS.contains(&host))
}

/// Whether the code ends at the account's own page or at the agent here.
fn comes_back(to: &Url) -> bool {
    let is_here = match to.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    is_ours(to) || (to.scheme() == "http" && is_here)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL: &str = "https://claude.com/cai/oauth/authorize?code=true&client_id=9d1c\
        &response_type=code&redirect_uri=https%3A%2F%2Fplatform.claude.com%2Foauth%2Fcode%2Fcallback\
        &scope=user%3Aprofile&code_challenge=abc&code_challenge_method=S256&state=xyz";

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_address_is_found_once_something_follows_it() {
        let said = format!("Opening browser…\nIf it didn't open, visit: {REAL}\n");
        assert_eq!(authorize_url(&lines(&said), None), None);
        let said = format!("{said}Paste code here if prompted > ");
        assert_eq!(authorize_url(&lines(&said), None).as_deref(), Some(REAL));
    }

    #[test]
    fn an_address_that_the_agent_broke_is_put_together() {
        for width in [120, 117] {
            let bytes = REAL.as_bytes().chunks(width);
            let rows: Vec<_> = bytes.map(|row| String::from_utf8_lossy(row).into_owned()).collect();
            let said = format!("Sign in with:\n\n{}\n\nPaste code > ", rows.join("\n"));
            assert_eq!(authorize_url(&lines(&said), Some(120)).as_deref(), Some(REAL), "{width}");
            // What is cut off is no address.
            let half = rows.first().map(|row| format!("{row}\n")).unwrap_or_default();
            assert_eq!(authorize_url(&lines(&half), Some(120)), None);
        }
    }

    #[test]
    fn decoys_are_passed_over() {
        for decoy in [
            REAL.replace("claude.com/cai", "claude.com.evil.example/cai"),
            REAL.replace("claude.com/cai", "evil.example/cai"),
            REAL.replace("https://claude.com", "https://claude.com@evil.example"),
            REAL.replace("https://claude.com", "https://user@claude.com"),
            REAL.replace("https://claude.com", "https://claude.com:8443"),
            REAL.replace("https://claude.com", "http://claude.com"),
            REAL.replace("platform.claude.com", "evil.example"),
            REAL.replace("/oauth/authorize", "/docs"),
            REAL.replace("&code_challenge=abc", ""),
            REAL.replace("&state=xyz", "&state="),
            format!("{REAL}&redirect_uri=https%3A%2F%2Fevil.example"),
            "https://docs.example.invalid/oauth/authorize?code=true".to_owned(),
        ] {
            let said = lines(&format!("First read {decoy}\nend"));
            assert_eq!(authorize_url(&said, None), None, "{decoy}");
            let said = lines(&format!("First read {decoy} or\n{REAL}\nend"));
            assert_eq!(authorize_url(&said, None).as_deref(), Some(REAL), "{decoy}");
        }
        let local = REAL.replace("https%3A%2F%2Fplatform.claude.com", "http%3A%2F%2Flocalhost%3A9");
        assert!(authorize_url(&lines(&format!("{local}\nend")), None).is_some());
    }

    #[test]
    fn a_token_is_whole_and_nothing_else() {
        let token_text = format!("sk-ant-oat01-{}", "Ab3_-".repeat(19));
        let said = lines(&format!("Your token (valid for 1 year):\n\n{token_text}\n\nStore it."));
        assert_eq!(token(&said, Some(120)).as_deref(), Some(&*token_text));
        assert_eq!(token(&lines(&token_text), Some(120)), None);
        assert_eq!(token(&lines("export X=sk-ant-oat01-<token>\nend"), Some(120)), None);
    }

    #[test]
    fn refusals_are_counted_and_the_last_words_are_no_prompt() {
        let said = lines("Paste code > Invalid code. Please try.\nPress Enter.\nPaste code >  ");
        assert_eq!(refusals(&said), 1);
        assert_eq!(last_words(&said), "Invalid code. Please try.");
        let said = lines("Paste code here if prompted > Login failed: status code 400\n\n");
        assert_eq!((refusals(&said), last_words(&said)), (1, "Login failed: status code 400"));
        assert_eq!(repeats(&said), 0);
        assert_eq!(last_words(&lines("Opening.\nGone wrong\nPaste code >")), "Gone wrong");
        assert_eq!(last_words(&[]), "");
    }

    proptest! {
        #[test]
        fn whatever_is_found_leads_to_the_account(text in "(https://|claude|\\PC|[\n?&=@.:/]){0,60}") {
            let said = lines(&format!("{text}\n{REAL}x{text}\nend"));
            if let Some(url) = authorize_url(&said, Some(20)) {
                let url = Url::parse(&url).unwrap();
                prop_assert!(HOSTS.contains(&url.host_str().unwrap()) && url.scheme() == "https");
            }
            let _ = (token(&said, None), refusals(&said), last_words(&said));
        }
    }
}
