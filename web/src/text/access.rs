//! Sentences about who may come in, and who can reach the service.

/// View.
pub const TITLE: &str = "Devices and tokens";
/// While the lists are read.
pub const ASKING: &str = "Reading who is signed in…";
/// Section.
pub const REACH: &str = "Who can reach this server";
/// Before the time of the findings.
pub const CHECKED: &str = "checked";
/// Before the key of a finding.
pub const CHANGE: &str = "change it with";
/// Section.
pub const DEVICES: &str = "Signed-in devices";
/// Section.
pub const TOKENS: &str = "API tokens";
/// Column.
pub const DEVICE: &str = "Device";
/// Column.
pub const FROM: &str = "From";
/// Column.
pub const SIGNED_IN: &str = "Signed in";
/// Column.
pub const LAST_SEEN: &str = "Last seen";
/// Column.
pub const UNTIL: &str = "Signed in until";
/// Badge of the device that shows the page.
pub const THIS_ONE: &str = "this one";
/// Button.
pub const SIGN_OUT: &str = "Sign out";
/// Button.
pub const SIGN_OUT_OTHERS: &str = "Sign out all others";
/// Question after the device's name.
pub const SIGN_OUT_QUESTION: &str = "? Its open pages stop working at once.";
/// Object of the question about all others.
pub const ALL_OTHERS: &str = "every device but this one";
/// Rest of that question.
pub const ALL_OTHERS_QUESTION: &str = "? Their open pages stop working at once.";
/// A browser that gave no name.
pub const NAMELESS: &str = "Unknown browser";
/// Empty list.
pub const NO_DEVICE: &str =
    "No browser is signed in. Each sign-in with the password is listed here.";
/// Empty list, nobody is asked.
pub const NOBODY_ASKED: &str =
    "Authentication is off, so no device signs in. Set auth.enabled to true to ask for a password.";
/// Column.
pub const TOKEN: &str = "Token";
/// Column.
pub const MAY_DO: &str = "Permissions";
/// Column.
pub const EXPIRES: &str = "Expires";
/// Column.
pub const ISSUED: &str = "Issued";
/// Column.
pub const LAST_USED: &str = "Last used";
/// A token without scopes.
pub const EVERYTHING: &str = "everything";
/// No expiry, or no use.
pub const NEVER: &str = "never";
/// Its time is over.
pub const EXPIRED: &str = "expired";
/// Button.
pub const ISSUE: &str = "Issue token";
/// Button.
pub const ROTATE: &str = "Rotate";
/// Button.
pub const REVOKE: &str = "Revoke";
/// Question after the token's name.
pub const REVOKE_QUESTION: &str = "? Programs that use it are refused at once.";
/// Below the list.
pub const FILE_MANAGED: &str = "The token for metrics and the token in svc.yml are managed in the \
                                file. Issuing and rotating ask for your password.";
/// Empty list.
pub const NO_TOKEN: &str =
    "A token lets a program use svc without your password, and only as far as you allow.";
/// Field.
pub const LABEL: &str = "Name";
/// Field.
pub const PASSWORD: &str = "Password";
/// Why it is asked for.
pub const PASSWORD_WHY: &str = "Enter your password again, because a token works without it.";
/// Without a password in the configuration.
pub const NO_PASSWORD: &str =
    "No password is configured, so this page cannot check that it is you. On the machine, run";
/// Scope.
pub const READ: &str = "Read: see sessions, logs and usage";
/// Scope.
pub const OPERATE: &str = "Operate: read, and start and stop sessions";
/// Scope.
pub const APPROVE: &str = "Approve: read, and answer permission requests";
/// Scope.
pub const ALL: &str = "Everything that you may do";
/// Expiries to choose from: words and days.
pub const LIFETIMES: [(&str, i64); 4] =
    [("30 days", 30), ("90 days", 90), ("1 year", 365), ("never", 0)];
/// Title over a new secret.
pub const SECRET: &str = "Your new token";
/// Below it.
pub const SECRET_ONCE: &str = "It is shown only now. Keep it where the program reads it, for \
                               example in a secret store, and send it as `Authorization: Bearer`.";
/// Button.
pub const STORED: &str = "I stored it";
/// For the copy button.
pub const SECRET_WORD: &str = "token";

/// Title of the dialog that rotates.
#[must_use]
pub fn rotate(label: &str) -> String {
    format!("Give {label} a new secret")
}
/// In that dialog.
pub const ROTATE_WHY: &str = "Programs that use the old secret are refused at once.";
/// Outcome.
#[must_use]
pub fn signed_out(name: &str) -> String {
    format!("{name} is signed out")
}
/// Outcome.
#[must_use]
pub fn signed_out_others(count: u64) -> String {
    match count {
        0 => "No other device was signed in".to_owned(),
        1 => "1 other device is signed out".to_owned(),
        many => format!("{many} other devices are signed out"),
    }
}
/// Outcome.
#[must_use]
pub fn revoked(label: &str) -> String {
    format!("Token {label} is revoked")
}
/// Never used since it was issued some time ago.
#[must_use]
pub fn never_in(days: i64) -> String {
    format!("never in {days} days")
}
/// Beside the address that a device signed in from.
#[must_use]
pub fn also_from(addresses: &str) -> String {
    format!("also from {addresses}")
}
