//! Sentences of the sign-in of the agent.

/// Title.
pub const TITLE: &str = "Sign the agent in";
/// Button on Home and at the check.
pub const OPEN: &str = "Sign in";
/// Button while one is under way.
pub const GO_ON: &str = "Continue the sign-in";
/// What happens.
pub const WHAT: &str = "The agent shows an address. You open it, allow the sign-in with your \
                        Claude account, and bring back the code that you see there.";
/// The feature is off.
pub const OFF: &str = "Signing in from this page is turned off. Sign in on the machine, in a \
                       terminal of the user that runs svc:";
/// … with this.
pub const COMMAND: &str = "claude auth login";
/// … or turn it on.
pub const OFF_HOW: &str =
    "To do it here, set login_shepherd.enabled: true in svc.yml and restart svc.";
/// What the command is, for the button that copies it.
pub const COMMAND_WORD: &str = "the command";
/// The kinds.
pub const MODE: &str = "What for";
/// … of the machine.
pub const LOGIN: &str = "Sign this machine in with a subscription";
/// … of a token.
pub const TOKEN: &str = "Make a token for another machine, valid for a year";
/// Button.
pub const START: &str = "Start";
/// While the agent starts.
pub const STARTING: &str = "The agent starts. It shows its address within 30 seconds.";
/// Label of the address.
pub const ADDRESS: &str = "1. Allow the sign-in";
/// Link.
#[must_use]
pub fn open(host: &str) -> String {
    format!("Open {host}")
}
/// The address, for the button that copies it.
pub const ADDRESS_WORD: &str = "the address";
/// Opens the picture.
pub const PICTURE: &str = "Show a QR code for another device";
/// Name of the picture.
pub const PICTURE_ALT: &str = "QR code of the address";
/// Label of the field.
pub const CODE: &str = "2. Paste the code";
/// Below the field.
pub const CODE_HELP: &str = "The page of your account shows the code after you have allowed it.";
/// Button.
pub const SEND: &str = "Send the code";
/// While the code is checked.
pub const CHECKING: &str = "The agent checks the code. You may close this dialog meanwhile.";
/// Button: asks again.
pub const RECHECK: &str = "Check again";
/// When it ends.
#[must_use]
pub fn ends_in(span: &str) -> String {
    format!("Ends in {span} unless you go on.")
}
/// Button.
pub const CANCEL: &str = "Cancel the sign-in";
/// It is over, and this page did not hear how.
pub const GONE: &str = "This sign-in is over.";
/// … what may have happened.
pub const GONE_HOW: &str = "It ended on another page or was cancelled there, nobody went on with it \
                            for 15 minutes, or svc was restarted. Readiness says whether the agent \
                            is signed in.";
/// Button.
pub const AGAIN: &str = "Start again";
/// Success.
pub const DONE: &str = "The agent is signed in.";
/// … what it means.
pub const DONE_HOW: &str = "Sessions can be launched now.";
/// Failure.
pub const FAILED: &str = "The agent was not signed in.";
/// Label.
pub const PASSWORD: &str = "Password";
/// Below it.
pub const PASSWORD_WHY: &str = "The token gives access to your account for a year, so the password \
                                of this page is asked for again.";
/// Button.
pub const PROVE: &str = "Continue";
/// Title of the token.
pub const SECRET: &str = "Your token";
/// Below it.
pub const SECRET_ONCE: &str = "It is shown once and kept nowhere. Set it as \
                               CLAUDE_CODE_OAUTH_TOKEN where it is needed.";
/// Button.
pub const STORED: &str = "I have stored it";
/// What it is, for the button that copies it.
pub const SECRET_WORD: &str = "the token";
/// On Home while one is under way.
pub const UNDER_WAY: &str = "The agent is being signed in.";
