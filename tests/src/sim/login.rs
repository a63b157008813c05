//! `auth login` and `auth logout`: the flow over a pipe, ended by knob `login`.

use std::io::{self, BufRead};

use serde_json::json;

use super::console::{hang, pause, print, say};
use super::double::Double;
use super::failure::Failure;
use super::ids::Draw;
use super::values::Login;
use super::{calls, files};

/// Mark of a login this double made; it turns knob `auth: logged_out` into a login.
const MADE: &str = "login.json";

const PROMPT: &str = "Paste code here if prompted > ";

/// Whether a simulated login took place in this home.
pub(crate) fn was_made(home: &super::home::AgentHome) -> bool {
    home.mark().join(MADE).exists()
}

/// `auth login [--claudeai]`.
pub(crate) fn login(double: &Double) -> Result<u8, Failure> {
    let options = double.args.get(2..).unwrap_or_default();
    let known = ["--claudeai", "--console", "--sso"];
    if let Some(odd) = options.iter().find(|option| !known.contains(&option.as_str())) {
        return Err(Failure::agent(format!("error: unknown option '{odd}'")));
    }
    let kind = double.knobs.login;
    print("Opening browser to sign in…\n");
    if kind == Login::DecoyUrl {
        let lookalike = url(double).replace("claude.com/", "claude.com.example.invalid/");
        print(&format!(
            "Trouble? Read https://docs.example.invalid/oauth/authorize?code=true or {lookalike} \
             first.\n"
        ));
    }
    if let Login::SlowUrl(ms) = kind {
        pause(ms);
    }
    if kind != Login::NoUrl {
        let url = url(double);
        let shown = match kind {
            // Colours at both ends and a hyperlink around it.
            Login::AnsiUrl => {
                format!("\u{1b}]8;;{url}\u{7}\u{1b}[36m{url}\u{1b}[39m\u{1b}]8;;\u{7}")
            }
            _ => url,
        };
        print(&format!("If the browser didn't open, visit: {shown}\n"));
    }
    if kind == Login::UrlThenExit {
        say("Login failed: the callback server could not be started\n");
        return Ok(1);
    }
    print(PROMPT);
    for line in io::stdin().lock().lines() {
        let line = line.unwrap_or_default();
        if kind == Login::HangAfterCode {
            hang();
        }
        // Agent 2.1.197: a code has two parts.
        if !line
            .trim()
            .split_once('#')
            .is_some_and(|(code, state)| !code.is_empty() && !state.is_empty())
        {
            print("Invalid code. Please make sure the full code was copied.\n");
            print(PROMPT);
            continue;
        }
        if kind == Login::Reject {
            say("Login failed: Request failed with status code 400\n");
            return Ok(1);
        }
        remember(double)?;
        print("Login successful.\n");
        return Ok(0);
    }
    // Agent 2.1.197 waits for the browser when nobody can type.
    hang()
}

/// `auth logout`.
pub(crate) fn logout(double: &Double) -> Result<u8, Failure> {
    for file in [double.home.mark().join(MADE), double.home.dir().join(".credentials.json")] {
        let _ = std::fs::remove_file(file); // nobody was logged in
    }
    print("Successfully logged out from your Anthropic account.\n");
    Ok(0)
}

pub(crate) fn url(double: &Double) -> String {
    let mut draw = Draw::new(double.knobs.seed, &["login"]);
    format!(
        "https://claude.com/cai/oauth/authorize?code=true&client_id={}&response_type=code\
         &redirect_uri=https%3A%2F%2Fplatform.claude.com%2Foauth%2Fcode%2Fcallback\
         &scope=user%3Aprofile+user%3Ainference&code_challenge={}&code_challenge_method=S256\
         &state={}",
        draw.uuid(),
        draw.hex(),
        draw.hex()
    )
}

fn remember(double: &Double) -> Result<(), Failure> {
    const YEAR_MS: u64 = 365 * 24 * 3600 * 1000;
    let now = calls::now_ms();
    let credentials = json!({ "claudeAiOauth": {
        "accessToken": "simulated", "refreshToken": "simulated",
        "expiresAt": now.saturating_add(YEAR_MS), "scopes": ["user:inference"],
        "subscriptionType": "max",
    }});
    let made = json!({ "at": now }).to_string();
    // Whoever watches the credentials finds the login made.
    files::replace(&double.home.mark().join(MADE), made.as_bytes())
        .and_then(|()| {
            let file = double.home.dir().join(".credentials.json");
            files::replace(&file, credentials.to_string().as_bytes())
        })
        .map_err(|e| Failure::refused(format!("cannot write the login: {e}")))
}
