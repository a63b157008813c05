//! Clients that break the protocol, and ends of different releases.

use crate::support::{Session, Viewer, Workspace, within};
use svc_keeper::client::{self, ConnectError, Options};
use svc_keeper::message::{ErrorCode, FromKeeper, MAX_CLIENTS, Role};
use svc_keeper::sidecar::Token;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

async fn raw(session: &Session) -> UnixStream {
    UnixStream::connect(&session.record().socket).await.unwrap()
}

/// What the keeper says until it closes.
async fn answer(stream: &mut UnixStream) -> Vec<FromKeeper> {
    let mut bytes = Vec::new();
    let _ = within(stream.read_to_end(&mut bytes)).await; // a reset after unread bytes: fine
    let mut messages = Vec::new();
    let mut rest = bytes.as_slice();
    while let Some((head, body)) = rest.split_first_chunk::<4>() {
        let (frame, after) = body.split_at(u32::from_be_bytes(*head) as usize);
        messages.push(serde_json::from_slice(frame).unwrap());
        rest = after;
    }
    messages
}

async fn say(stream: &mut UnixStream, text: &str) {
    let length = u32::try_from(text.len()).unwrap().to_be_bytes();
    stream.write_all(&[&length[..], text.as_bytes()].concat()).await.unwrap();
}

fn hello(session: &Session, proto: &str) -> String {
    let token = session.record().token.reveal().to_owned();
    format!("{{\"t\":\"hello\",\"proto\":{proto},\"role\":\"controller\",\"token\":\"{token}\"}}")
}

fn code(messages: &[FromKeeper]) -> Option<ErrorCode> {
    match messages.last() {
        Some(FromKeeper::Error { code, .. }) => Some(*code),
        _ => None,
    }
}

#[tokio::test]
async fn f69_hostile_frames_end_their_connection_and_no_other() {
    let workspace = Workspace::new();
    let session = workspace.start("echo up; exec sleep 1000").await;
    let mut viewer = Viewer::new(&session, Role::Observer).await;
    viewer.until_text("up").await;
    let good = hello(&session, "[1,1]");
    let wrong = good.replace("\"token\":\"", "\"token\":\"0");
    for (frames, expected) in [
        (vec!["{\"t\":\"ping\"}"], ErrorCode::Auth),
        (vec![wrong.as_str()], ErrorCode::Auth),
        (vec!["not json"], ErrorCode::Malformed),
        (vec!["{\"t\":\"hologram\"}"], ErrorCode::Malformed),
        (vec![good.as_str(), "[]"], ErrorCode::Malformed),
        (vec![good.as_str(), good.as_str()], ErrorCode::Malformed),
        (
            vec![good.as_str(), "{\"t\":\"input\",\"data_b64\":\"*\",\"id\":1}"],
            ErrorCode::Malformed,
        ),
    ] {
        let mut stream = raw(&session).await;
        for frame in &frames {
            say(&mut stream, frame).await;
        }
        assert_eq!(code(&answer(&mut stream).await), Some(expected), "{frames:?}");
    }
    // Two GiB are refused by their length, before and after the token was said.
    for first in [None, Some(&good)] {
        let mut stream = raw(&session).await;
        if let Some(first) = first {
            say(&mut stream, first).await;
        }
        stream.write_all(&[0x80, 0, 0, 0, b'x']).await.unwrap();
        assert_eq!(code(&answer(&mut stream).await), Some(ErrorCode::Malformed));
    }
    // A second controller takes over, the first one reads on.
    let mut first = Viewer::new(&session, Role::Controller).await;
    let second = Viewer::new(&session, Role::Controller).await;
    first.connection.commands.input("eA==".to_owned(), 1).await.unwrap();
    let refused = within(first.connection.events.next()).await.unwrap();
    assert!(matches!(refused, FromKeeper::Error { code: ErrorCode::Readonly, .. }), "{refused:?}");
    drop(second);
    // Nobody noticed.
    viewer.connection.commands.ping().await.unwrap();
    assert_eq!(within(viewer.connection.events.next()).await.unwrap(), FromKeeper::Pong);
}

#[tokio::test]
async fn f69_a_silent_client_is_sent_away_and_a_seventeenth_is_too_much() {
    let workspace = Workspace::new();
    let session = workspace.start("exec sleep 1000").await;
    let mut silent = raw(&session).await;
    assert_eq!(code(&answer(&mut silent).await), Some(ErrorCode::Timeout));
    let mut viewers = Vec::new();
    for _ in 0..MAX_CLIENTS {
        viewers.push(session.connect(Role::Observer).await);
    }
    let error =
        client::connect(&session.record(), &Options::new(Role::Observer)).await.unwrap_err();
    assert!(matches!(error, ConnectError::Refused { code: ErrorCode::Busy, .. }), "{error:?}");
}

#[tokio::test]
async fn f66_h64_a_newer_service_speaks_to_an_older_keeper_and_a_stranger_is_named() {
    let workspace = Workspace::new();
    let session = workspace.start("exec sleep 1000").await;
    let mut options = Options::new(Role::Controller);
    options.protocols = 1..=2;
    let connection = client::connect(&session.record(), &options).await.unwrap();
    assert_eq!(connection.welcome.proto, 1);
    options.protocols = 2..=3;
    let error = client::connect(&session.record(), &options).await.unwrap_err();
    let ConnectError::Version { keeper, client } = error else { panic!("{error:?}") };
    assert_eq!((keeper, client), ([1, 1], [2, 3]));
    assert!(workspace.is_alive(&session.agent));
}

#[tokio::test]
async fn f67_h63_the_client_tells_its_token_only_to_the_recorded_keeper() {
    let workspace = Workspace::new();
    let session = workspace.start("exec sleep 1000").await;
    let options = Options::new(Role::Controller);
    // The socket of another keeper, a wrong token, nobody.
    let other = workspace.start("exec sleep 1000").await;
    let mut record = session.record();
    record.socket = other.record().socket;
    let error = client::connect(&record, &options).await.unwrap_err();
    assert!(matches!(error, ConnectError::Stranger), "{error:?}");
    let mut record = session.record();
    record.token = Token::new([0; 32]);
    let error = client::connect(&record, &options).await.unwrap_err();
    assert!(matches!(error, ConnectError::Refused { code: ErrorCode::Auth, .. }), "{error:?}");
    let mut record = session.record();
    record.socket = workspace.root.join("nobody.sock");
    let error = client::connect(&record, &options).await.unwrap_err();
    assert!(matches!(error, ConnectError::NoKeeper(_)), "{error:?}");
}
