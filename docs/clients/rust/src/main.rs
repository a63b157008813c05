//! Lists the projects, starts a session in `web`, and stops it again.

#[allow(dead_code, unused_imports)]
mod svc {
    include!(concat!(env!("OUT_DIR"), "/svc.rs"));
}

use reqwest::header::{AUTHORIZATION, HeaderValue};
use std::{env, error::Error, time::Duration};
use svc::types::Refusal;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let token: HeaderValue = format!("Bearer {}", env::var("SVC_TOKEN")?).parse()?;
    let http = reqwest::Client::builder()
        .default_headers([(AUTHORIZATION, token)].into_iter().collect())
        // A launch is answered when the session is ready, at the latest after 15 seconds.
        .timeout(Duration::from_secs(40))
        .build()?;
    let svc = svc::Client::new_with_client(&env::var("SVC_URL")?, http);

    for project in svc.list_projects().send().await?.into_inner() {
        println!("{} is {}", project.name, project.trust_state);
    }

    let started = svc.spawn_instance().body_map(|body| body.project("web")).send().await?;
    let id = started.instance_id.to_string();
    let session = svc.get_instance().instance_id(&id).send().await?;
    println!("{} is {}", session.project, session.status);

    // What is refused says why, in a word for programs and in a sentence for people.
    let unknown = svc.spawn_instance().body_map(|body| body.project("no-such-project"));
    if let Err(svc::Error::ErrorResponse(refused)) = unknown.send().await
        && let Refusal::Error(refused) = refused.into_inner()
    {
        println!("refused: {}", refused.code);
    }

    let stopped = svc.stop_instance().instance_id(&id).send().await?;
    println!("{} is {}", stopped.project, stopped.status);
    Ok(())
}
