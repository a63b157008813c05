//! Launches that wait for the reset of a plan limit.

use crate::call::Call;
use crate::error::Refusal;
use crate::idempotency::Subject;
use crate::public::Key;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;
use svc_app::AppError;
use svc_shared::api::planned_launches::PlanLaunch;

pub(crate) async fn list(call: Call) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::OK, &call.context.app.launch_plans().list().await?))
}

pub(crate) async fn plan(mut call: Call) -> Result<Response, Refusal> {
    let body = call.body.take().unwrap_or_default();
    let subject = Subject::new("plan", &body);
    let wanted: PlanLaunch = serde_json::from_value(body).map_err(|error| {
        Refusal::invalid(format!(
            "the body holds no launch, because of {error}; give `session` or `job`"
        ))
    })?;
    let app = call.context.app.clone();
    let plan = async move {
        match app.launch_plans().plan(wanted).await? {
            Some(planned) => Ok(reply::json(StatusCode::ACCEPTED, &planned)),
            None => Err(AppError::invalid(
                "nothing was planned, because no plan limit is known that a launch would wait \
                 for; launch it now",
            )
            .into()),
        }
    };
    // A repeat of the same request gets the first answer.
    let key = Key::of(&call.request)?;
    call.context.idempotency.run(key.0, subject, plan).await
}

pub(crate) async fn cancel(call: Call) -> Result<Response, Refusal> {
    let cancelled = call.context.app.launch_plans().cancel(call.param()).await?;
    Ok(reply::json(StatusCode::OK, &cancelled))
}
