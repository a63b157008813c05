//! `auth status`: the account's state as knob `auth` tells it.

use serde_json::{Value, json};

use super::console::{hang, pause, print, say};
use super::double::Double;
use super::failure::Failure;
use super::values::Auth;
use super::{calls, files};

/// Prints the login state; exit code 0 logged in, 1 logged out (agent 2.1.197).
pub(crate) fn status(double: &Double) -> Result<u8, Failure> {
    let options = double.args.get(2..).unwrap_or_default();
    if let Some(odd) = options.iter().find(|o| !matches!(o.as_str(), "--json" | "--text")) {
        return Err(Failure::agent(format!("error: unknown option '{odd}'")));
    }
    if let Err(complaint) = double.home.repair_config() {
        say(&complaint.text); // the answer follows all the same (agent 2.1.197)
    }
    pause(double.knobs.auth_ms);
    let logged_in = match double.knobs.auth {
        Auth::Hang => hang(),
        Auth::Garbage => {
            print("Segmentation fault imminent {\"loggedIn\": tru\n");
            return Ok(0);
        }
        Auth::LoggedOut => None,
        Auth::ApiKey => Some(json!({
            "loggedIn": true, "authMethod": "api_key", "apiProvider": "firstParty",
            "apiKeySource": "ANTHROPIC_API_KEY",
        })),
        Auth::OauthToken => Some(json!({
            "loggedIn": true, "authMethod": "oauth_token", "apiProvider": "firstParty",
        })),
        Auth::ClaudeAi => Some(claude_ai()),
        Auth::Expiring(ms) => {
            write_expiry(double, ms)?;
            Some(claude_ai())
        }
    };
    let code = u8::from(logged_in.is_none());
    if options.iter().any(|o| o == "--text") {
        print(match logged_in {
            Some(_) => "Login method: Claude Max Account\n",
            None => "Not logged in. Run claude auth login to authenticate.\n",
        });
        return Ok(code);
    }
    let mut state = logged_in.unwrap_or_else(
        || json!({ "loggedIn": false, "authMethod": "none", "apiProvider": "firstParty" }),
    );
    if let (true, Value::Object(fields)) = (double.profile.is_future(), &mut state) {
        fields.insert("sessionGeneration".into(), json!(7));
    }
    print(&format!("{state:#}\n"));
    Ok(code)
}

fn claude_ai() -> Value {
    json!({
        "loggedIn": true, "authMethod": "claude.ai", "apiProvider": "firstParty",
        "email": "sim@example.invalid", "orgId": "00000000-0000-4000-8000-000000000001",
        "orgName": "Simulated Organisation", "subscriptionType": "max",
    })
}

/// The product reads the end of the login from the credentials file.
fn write_expiry(double: &Double, ms: u64) -> Result<(), Failure> {
    let path = double.home.dir().join(".credentials.json");
    let content = json!({ "claudeAiOauth": {
        "accessToken": "simulated", "refreshToken": "simulated",
        "expiresAt": calls::now_ms().saturating_add(ms), "scopes": ["user:inference"],
        "subscriptionType": "max",
    }});
    files::replace(&path, content.to_string().as_bytes())
        .map_err(|e| Failure::refused(format!("cannot write {}: {e}", path.display())))
}
