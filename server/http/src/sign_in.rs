//! Signing in and out, and the fresh proof of the password.
//!
//! Pages without script, and JSON for programs (`http-api` §5.2, §5.6).

use crate::call::Call;
use crate::error::{Refusal, echo};
use crate::layers::body::is_form;
use crate::layers::guard::{accepts_html, peer, unauthenticated, with_claim};
use crate::plain::{Page, escaped};
use crate::reply;
use poem::Response;
use poem::http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use svc_app::auth::{ELEVATION, SignInError, Visitor};
use svc_domain::credentials::is_local_path;
use svc_domain::origin::Credential;
use svc_shared::error::ErrorCode;
use svc_shared::paths::LOGIN;

/// Of whom the password is, for what keeps passwords.
pub(crate) const USER: &str =
    "<input name=\"username\" value=\"svc\" autocomplete=\"username\" hidden>\n";

/// `GET /login`.
pub(crate) async fn page(call: Call) -> Result<Response, Refusal> {
    let next = call.query.all("next").next().unwrap_or_default().to_owned();
    if is_in(&call) {
        return Ok(reply::see_other(&onward(&call, &next)));
    }
    Ok(form(&call, StatusCode::OK, &next, None))
}

fn is_in(call: &Call) -> bool {
    match call.caller.credential {
        Credential::AuthOff | Credential::Cookie | Credential::Proxy | Credential::Bearer => true,
        Credential::None | Credential::WrongBearer | Credential::Metrics => false,
    }
}

/// Where a sign-in leads: to `next` where that is a path of ours, else to the page.
fn onward(call: &Call, next: &str) -> String {
    // The page knows its address with the configured prefix, everybody else without.
    let next = if is_local_path(next) { call.context.root.strip(next) } else { "/" };
    let root = call.context.root.as_str();
    // A path may hold what a header may not.
    let is_plain = next.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { format!("{root}{next}") } else { format!("{root}/") }
}

/// What to do without the password.
const FORGOTTEN: &str = "Forgotten? On the machine, run <code>svc hash-password</code>, put what it prints \
                         into the configuration as <code>auth.password_hash</code>, and restart \
                         the service.";

fn form(call: &Call, status: StatusCode, next: &str, problem: Option<&str>) -> Response {
    let root = call.context.root.as_str();
    let problem = problem.map(|text| format!("<p role=\"alert\">{text}</p>\n")).unwrap_or_default();
    let (mut back, mut hidden) = (String::new(), String::new());
    if next != "/" && is_local_path(next) {
        let shown = escaped(next);
        back = format!("<p>You return to <code>{shown}</code>.</p>\n");
        hidden = format!("<input type=\"hidden\" name=\"next\" value=\"{shown}\">\n");
    }
    let takes_passwords = call.context.app.auth().takes_passwords();
    let content = if takes_passwords {
        format!(
            "<h1>Sign in</h1>\n{problem}{back}<form method=\"post\" action=\"{root}{LOGIN}\">\n\
             {hidden}{USER}<div class=\"field\">\n<label for=\"password\">Password</label>\n\
             <input id=\"password\" name=\"password\" type=\"password\" \
             autocomplete=\"current-password\" required autofocus>\n</div>\n\
             <button>Sign in</button>\n</form>\n"
        )
    } else {
        format!(
            "<h1>Sign in</h1>\n{problem}<p>No password is configured. Use a token, a trusted \
             proxy, or set <code>auth.password_required</code> and \
             <code>auth.password_hash</code>.</p>\n"
        )
    };
    Page {
        title: "Sign in – svc",
        content: &content,
        after: if takes_passwords { FORGOTTEN } else { "" },
        is_wide: false,
        nonce: call.nonce.as_deref(),
    }
    .reply(status)
}

fn text<'b>(body: Option<&'b Value>, name: &str) -> &'b str {
    body.and_then(|body| body.get(name)).and_then(Value::as_str).unwrap_or_default()
}

/// `POST /login`.
pub(crate) async fn sign_in(call: Call) -> Result<Response, Refusal> {
    let is_form = is_form(call.request.headers());
    let next = text(call.body.as_ref(), "next").to_owned();
    let auth = call.context.app.auth();
    let seconds = call.context.app.settings().auth.session_max_age.as_secs();
    let done = |cookie: Option<String>| {
        let mut response = if is_form {
            reply::see_other(&onward(&call, &next))
        } else {
            let body = json!({"authenticated": true, "expires_in": seconds});
            reply::json(StatusCode::OK, &body)
        };
        if let Some(cookie) = cookie {
            add_cookie(&mut response, &cookie);
        }
        response
    };
    if call.caller.credential == Credential::AuthOff {
        // Nobody is asked, so there is nothing to prove and nothing to keep.
        return Ok(done(None));
    }
    let password = text(call.body.as_ref(), "password").as_bytes().to_vec();
    let visitor = Visitor {
        peer: peer(&call.request).to_string(),
        source: with_claim(&call.request, |claim| auth.source(claim)),
        forwarded_for: with_claim(&call.request, |claim| auth.forwarded_for(claim)),
        user_agent: call.request.header(header::USER_AGENT).unwrap_or_default().to_owned(),
    };
    match auth.sign_in(&call.caller, password, visitor).await {
        Ok(cookie) => Ok(done(Some(cookie))),
        Err(error) => {
            let refusal = refused(error)?;
            if !is_form {
                return Err(refusal);
            }
            let words = match refusal.status() {
                StatusCode::UNAUTHORIZED => "Wrong password.".to_owned(),
                StatusCode::TOO_MANY_REQUESTS => format!(
                    "Too many attempts. Try again in {} seconds.",
                    refusal.header(header::RETRY_AFTER).unwrap_or("a few")
                ),
                _ => "Too many sign-ins at once. Try again in a moment.".to_owned(),
            };
            let mut response = form(&call, refusal.status(), &next, Some(&words));
            refusal.copy_headers(&mut response);
            Ok(response)
        }
    }
}

/// What a failed attempt answers; a failure of ours is one too.
fn refused(error: SignInError) -> Result<Refusal, Refusal> {
    match error {
        SignInError::Wrong => {
            Ok(Refusal::new(StatusCode::UNAUTHORIZED, ErrorCode::BadPassword, "incorrect password")
                .with(header::WWW_AUTHENTICATE, "Bearer realm=\"svc\""))
        }
        SignInError::Locked(seconds) => Ok(Refusal::new(
            StatusCode::TOO_MANY_REQUESTS,
            ErrorCode::Throttled,
            "too many attempts",
        )
        .with(header::RETRY_AFTER, &seconds.to_string())),
        SignInError::Crowded => Ok(Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::Busy,
            "too many passwords are being checked; try again",
        )
        .with(header::RETRY_AFTER, "1")),
        SignInError::Failed(error) => Err(error.into()),
    }
}

/// `GET /logout`: a page with buttons, because reading must not change anything.
pub(crate) async fn leave(call: Call) -> Result<Response, Refusal> {
    let root = call.context.root.as_str();
    let content = format!(
        "<h1>Sign out</h1>\n<p>Your sessions keep running. The pages that are open on a device \
         stop working when it is signed out.</p>\n\
         <form method=\"post\" action=\"{root}/logout?scope=device\">\n\
         <button>Sign out this device</button>\n</form>\n\
         <form method=\"post\" action=\"{root}/logout?scope=all\">\n\
         <button>Sign out all devices</button>\n</form>\n\
         <p><a href=\"{root}/\">Cancel</a></p>\n"
    );
    let page = Page {
        title: "Sign out – svc",
        content: &content,
        after: "",
        is_wide: false,
        nonce: call.nonce.as_deref(),
    };
    Ok(page.reply(StatusCode::OK))
}

/// `POST /logout`.
///
/// Without `scope` every device is signed out, as before there was a choice.
pub(crate) async fn sign_out(call: Call) -> Result<Response, Refusal> {
    let auth = call.context.app.auth();
    let is_one = match call.query.one("scope")? {
        None | Some("all") => false,
        Some("device") => true,
        Some(other) => {
            return Err(Refusal::invalid(format!(
                "`scope` is `{}`; use `device` or `all`",
                echo(other)
            )));
        }
    };
    match auth.is_enabled() {
        true if is_one => auth.sign_out_one(&call.caller).await?,
        true => auth.sign_out().await?,
        false => {}
    }
    let headers = call.request.headers();
    let mut response = if is_form(headers) || accepts_html(headers) {
        reply::see_other(&format!("{}{LOGIN}", call.context.root.as_str()))
    } else {
        reply::json(StatusCode::OK, &json!({"authenticated": false}))
    };
    for cookie in auth.removals(call.caller.is_https) {
        add_cookie(&mut response, &cookie);
    }
    Ok(response)
}

/// `POST /api/reauth`.
pub(crate) async fn elevate(call: Call) -> Result<Response, Refusal> {
    let identity = call.caller.identity.as_ref().ok_or_else(unauthenticated)?;
    let password = text(call.body.as_ref(), "password").as_bytes().to_vec();
    match call.context.app.auth().elevate(&call.caller, identity, password).await {
        Ok(cookie) => {
            let body = json!({"elevated": true, "expires_in": ELEVATION.as_secs()});
            let mut response = reply::json(StatusCode::OK, &body);
            add_cookie(&mut response, &cookie);
            Ok(response)
        }
        Err(error) => Err(refused(error)?),
    }
}

/// `DELETE /api/reauth`.
pub(crate) async fn lower(call: Call) -> Result<Response, Refusal> {
    let mut response = reply::json(StatusCode::OK, &json!({"elevated": false}));
    add_cookie(&mut response, &call.context.app.auth().lowered(call.caller.is_https));
    Ok(response)
}

fn add_cookie(response: &mut Response, cookie: &str) {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}
