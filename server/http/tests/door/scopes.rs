//! Every route with a token of every scope, and the second at which a token ends.

use crate::client::Sent;
use crate::coverage::path_of;
use crate::harness::Server;
use crate::sign_in::{configuration, own};
use std::time::Duration;
use svc_domain::scope::{Reach, Scope};
use svc_http::ServeOptions;
use svc_ports::Clock as _;

fn of_token(sent: Sent, token: &str) -> Sent {
    sent.header("Authorization", &format!("Bearer {token}"))
}

#[tokio::test]
async fn h23_every_route_with_a_token_of_every_scope() {
    let server = Server::with(&configuration(""), ServeOptions::default()).await;
    let mut allowed = 0;
    for scope in Scope::ALL {
        let token = server.app.tokens().issue(scope.as_str(), &[scope], None).await.unwrap().token;
        for route in svc_http::table() {
            let (method, pattern) = (route.method.as_str(), route.pattern.as_str());
            let sent = Sent::new(method, &path_of(&route)).header("Origin", &own(&server));
            let reply = server.send(of_token(sent, &token)).await;
            let is_denied = reply.status == 403 && reply.code() == "scope_denied";
            let cell = format!("{scope}: {method} {pattern}: {}", reply.status);
            assert_eq!(!is_denied, Reach::Only(vec![scope]).covers(method, pattern), "{cell}");
            // Whatever routes will come: a token that looks changes nothing, and one that answers
            // questions changes nothing else.
            let is_look = ["GET", "HEAD"].contains(&method);
            let is_question = pattern.contains("/permissions/") || pattern.contains("/approvals/{");
            let is_answer = is_question && !is_look;
            match scope {
                Scope::Read => assert!(is_look || is_denied, "{cell}"),
                Scope::Approve => assert!(is_look || is_answer || is_denied, "{cell}"),
                Scope::Operate => assert!(!is_answer || is_denied, "{cell}"),
            }
            // Who may come in, and what the service and its agents are set to, is for nobody else.
            let guarded = ["/api/tokens", "/api/devices", "/api/config", "/api/restart"];
            if guarded.iter().any(|own| pattern.starts_with(own)) {
                assert!(is_denied, "{cell}");
            }
            allowed += usize::from(!is_denied);
        }
    }
    assert!(allowed > 100, "{allowed}");
}

#[tokio::test]
async fn h23_a_token_is_refused_from_the_second_at_which_it_ends() {
    let server = Server::with(&configuration(""), ServeOptions::default()).await;
    let ends = server.clock.now().plus(Duration::from_secs(60));
    let token = server.app.tokens().issue("short", &[], Some(ends)).await.unwrap().token;
    let ask = async || server.send(of_token(Sent::new("GET", "/api/projects"), &token)).await;
    server.clock.go_on(59_999);
    assert_eq!(ask().await.status, 200);
    server.clock.go_on(1);
    let reply = ask().await;
    assert_eq!((reply.status, reply.code().as_str()), (401, "auth_required"));
}
