//! The documented operations (`http-api` §2), in three steps: parse, call, map.

pub(crate) mod answer;
pub(crate) mod params;
pub(crate) mod schema;

use crate::body::fields::unknown_field_warnings;
use crate::context::Context;
use crate::error::Refusal;
use crate::exposition;
use crate::idempotency::Subject;
use crate::reply;
use answer::{Answer, doc};
pub(crate) use params::Key;
use params::{Filter, JsonBody, NamedFilter, PathJobId, PathName, Wait};
use poem::http::{HeaderValue, StatusCode, header};
use poem::{Request, Response};
use poem_openapi::{OpenApi, Tags};
use schema::LaunchBody;
use std::collections::BTreeMap;
use std::sync::Arc;
use svc_app::Figures;
use svc_app::read_model::{Encoded, List};
use svc_shared::api::instances::{Instance, ResumeRequest, SpawnRequest, SpawnResult};
use svc_shared::api::jobs::{BackgroundJob, DispatchRequest};
use svc_shared::api::projects::Project;
use svc_shared::status::{BridgeStatus, Channel, TrustState};

pub(crate) use params::{ParsedBody, PathNames};

/// Every documented operation.
pub(crate) type Operations = (PublicApi, OpsApi);

/// Operations below `/api/v1`.
pub(crate) struct PublicApi {
    context: Arc<Context>,
}

/// Operations outside it.
pub(crate) struct OpsApi {
    context: Arc<Context>,
}

#[derive(Tags)]
#[oai(rename_all = "lowercase")]
enum Tag {
    /// Directories under the projects root.
    Projects,
    /// What the agent works on right now.
    Sessions,
    /// Bridges of this service.
    Instances,
    /// Background jobs.
    Agents,
    /// The service itself.
    Ops,
}

impl PublicApi {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    pub(crate) fn operations(self) -> Operations {
        let context = Arc::clone(&self.context);
        (self, OpsApi { context })
    }
}

#[OpenApi(prefix_path = "/api/v1")]
impl PublicApi {
    /// Projects, by name.
    #[oai(path = "/projects", method = "get", operation_id = "listProjects", tag = "Tag::Projects")]
    async fn list_projects(
        &self,
        request: &Request,
        /// Only projects in this state.
        trust: Filter<TrustState>,
    ) -> Answer<doc::Projects> {
        let context = &self.context;
        if trust.0.is_empty() {
            return Answer::new(Ok(whole(context, request, List::Projects).await));
        }
        let snapshot = context.app.read_model().snapshot();
        let kept: Vec<&Project> = snapshot
            .projects()
            .into_iter()
            .filter(|project| trust.0.iter().any(|wanted| project.trust_state.is(wanted)))
            .collect();
        Answer::new(filtered(request, &kept))
    }

    /// Sessions that work in a project without a bridge of this service, by project.
    #[oai(
        path = "/sessions",
        method = "get",
        operation_id = "listExternalSessions",
        tag = "Tag::Sessions"
    )]
    async fn list_external_sessions(&self) -> Answer<doc::Sessions> {
        let snapshot = self.context.app.read_model().snapshot();
        Answer::new(Ok(self.probed(reply::json(StatusCode::OK, &snapshot.state.external))))
    }

    /// Sessions of bridges of this service, by instance id.
    #[oai(
        path = "/sessions/tracked",
        method = "get",
        operation_id = "listTrackedSessions",
        tag = "Tag::Sessions"
    )]
    async fn list_tracked_sessions(&self) -> Answer<doc::Sessions> {
        let snapshot = self.context.app.read_model().snapshot();
        Answer::new(Ok(self.probed(reply::json(StatusCode::OK, &snapshot.state.tracked))))
    }

    /// Projects with a live Server Mode bridge that could be adopted, sorted.
    #[oai(
        path = "/sessions/adoptable",
        method = "get",
        operation_id = "listAdoptableProjects",
        tag = "Tag::Sessions"
    )]
    async fn list_adoptable_projects(&self) -> Answer<doc::Names> {
        let snapshot = self.context.app.read_model().snapshot();
        Answer::new(Ok(self.probed(reply::json(StatusCode::OK, &snapshot.state.adoptable))))
    }

    /// Instances, in registration order.
    #[oai(
        path = "/instances",
        method = "get",
        operation_id = "listInstances",
        tag = "Tag::Instances"
    )]
    async fn list_instances(
        &self,
        request: &Request,
        /// Only instances of these projects.
        project: NamedFilter,
        /// Only instances in these states.
        status: Filter<BridgeStatus>,
        /// Only instances driven this way.
        channel: Filter<Channel>,
    ) -> Answer<doc::Instances> {
        let is_whole = project.0.is_empty() && status.0.is_empty() && channel.0.is_empty();
        if is_whole {
            return Answer::new(Ok(whole(&self.context, request, List::Instances).await));
        }
        let snapshot = self.context.app.read_model().snapshot();
        let kept: Vec<&Instance> = snapshot
            .instances()
            .filter(|row| project.0.is_empty() || project.0.contains(&row.project))
            .filter(|row| status.0.is_empty() || status.0.iter().any(|word| row.status.is(word)))
            .filter(|row| channel.0.is_empty() || channel.0.iter().any(|word| row.channel.is(word)))
            .collect();
        Answer::new(filtered(request, &kept))
    }

    /// Launches a bridge, or answers with the live one of the project.
    #[oai(
        path = "/instances",
        method = "post",
        operation_id = "spawnInstance",
        tag = "Tag::Instances"
    )]
    async fn spawn_instance(
        &self,
        /// Seconds to wait for readiness; 15 when absent.
        wait: Wait,
        /// Repeats with the same key return the first result for 10 minutes.
        #[oai(name = "Idempotency-Key")]
        key: Key,
        body: JsonBody<LaunchBody>,
    ) -> Answer<doc::Spawn> {
        let app = self.context.app.clone();
        let subject = Subject::new("spawn", &body.0);
        let request: SpawnRequest = body.0.0;
        let warnings = unknown_field_warnings(&body.1);
        let launch = async move {
            let result = app.bridges().spawn(request, wait.0).await?;
            Ok(launched(result, warnings, StatusCode::CREATED))
        };
        Answer::new(self.context.idempotency.run(key.0, subject, launch).await)
    }

    /// One instance.
    #[oai(
        path = "/instances/:instance_id",
        method = "get",
        operation_id = "getInstance",
        tag = "Tag::Instances"
    )]
    async fn get_instance(
        &self,
        /// Instance id, unique prefix of one, or name of a project with one instance.
        instance_id: PathName,
    ) -> Answer<doc::OneInstance> {
        let found = self.context.app.instances().get(&instance_id.0).await;
        Answer::new(found.map(|row| reply::json(StatusCode::OK, &row)).map_err(Refusal::from))
    }

    /// Stops an instance; the answer comes when its process is gone.
    #[oai(
        path = "/instances/:instance_id",
        method = "delete",
        operation_id = "stopInstance",
        tag = "Tag::Instances"
    )]
    async fn stop_instance(
        &self,
        /// Instance id, unique prefix of one, or name of a project with one instance.
        instance_id: PathName,
    ) -> Answer<doc::Stopped> {
        let stopped = self.context.app.bridges().stop(&instance_id.0).await;
        Answer::new(stopped.map(|row| reply::json(StatusCode::OK, &row)).map_err(Refusal::from))
    }

    /// Revives an ended instance into the same record.
    #[oai(
        path = "/instances/:instance_id/resume",
        method = "post",
        operation_id = "resumeInstance",
        tag = "Tag::Instances"
    )]
    async fn resume_instance(
        &self,
        /// Instance id, unique prefix of one, or name of a project with one instance.
        instance_id: PathName,
        /// Seconds to wait for readiness; 15 when absent.
        wait: Wait,
        /// Repeats with the same key return the first result for 10 minutes.
        #[oai(name = "Idempotency-Key")]
        key: Key,
        body: JsonBody<ResumeRequest>,
    ) -> Answer<doc::Resume> {
        let app = self.context.app.clone();
        let subject = Subject::new(&format!("resume {}", instance_id.0), &body.0);
        let warnings = unknown_field_warnings(&body.1);
        let launch = async move {
            let result = app.bridges().resume(&instance_id.0, body.0, wait.0).await?;
            Ok(launched(result, warnings, StatusCode::OK))
        };
        Answer::new(self.context.idempotency.run(key.0, subject, launch).await)
    }

    /// Background jobs, latest change first.
    #[oai(path = "/agents", method = "get", operation_id = "listAgents", tag = "Tag::Agents")]
    async fn list_agents(
        &self,
        request: &Request,
        /// Only jobs of this project.
        project: NamedFilter,
    ) -> Answer<doc::Jobs> {
        let snapshot = self.context.app.read_model().snapshot();
        let is_kept = |job: &&Arc<BackgroundJob>| {
            let of = job.project.as_deref().unwrap_or_default();
            project.0.is_empty() || project.0.iter().any(|name| name == of)
        };
        let mut kept: Vec<_> = snapshot.state.jobs.values().filter(is_kept).collect();
        kept.sort_by(|a, b| (&b.updated_at, &b.id).cmp(&(&a.updated_at, &a.id)));
        Answer::new(filtered(request, &kept))
    }

    /// Starts a background job.
    #[oai(path = "/agents", method = "post", operation_id = "dispatchAgent", tag = "Tag::Agents")]
    async fn dispatch_agent(
        &self,
        /// Repeats with the same key return the first result for 10 minutes.
        #[oai(name = "Idempotency-Key")]
        key: Key,
        body: JsonBody<DispatchRequest>,
    ) -> Answer<doc::Dispatch> {
        let app = self.context.app.clone();
        let subject = Subject::new("dispatch", &body.0);
        let warnings = unknown_field_warnings(&body.1);
        let launch = async move {
            let mut result = app.jobs().dispatch(body.0).await?;
            result.warnings.extend(warnings);
            Ok(reply::json(StatusCode::CREATED, &result))
        };
        Answer::new(self.context.idempotency.run(key.0, subject, launch).await)
    }

    /// Stops a background job and removes it; answers when its process is gone.
    #[oai(
        path = "/agents/:job_id",
        method = "delete",
        operation_id = "stopAgent",
        tag = "Tag::Agents"
    )]
    async fn stop_agent(
        &self,
        /// 8 lower-case hexadecimal digits.
        job_id: PathJobId,
    ) -> Answer<doc::StopJob> {
        let stopped = self.context.app.jobs().stop(&job_id.0).await;
        Answer::new(
            stopped.map(|result| reply::json(StatusCode::OK, &result)).map_err(Refusal::from),
        )
    }

    /// Starts a new job that inherits the transcript of an ended one.
    #[oai(
        path = "/agents/:job_id/resume",
        method = "post",
        operation_id = "resumeAgent",
        tag = "Tag::Agents"
    )]
    async fn resume_agent(
        &self,
        /// 8 lower-case hexadecimal digits.
        job_id: PathJobId,
        /// Repeats with the same key return the first result for 10 minutes.
        #[oai(name = "Idempotency-Key")]
        key: Key,
        body: JsonBody<ResumeRequest>,
    ) -> Answer<doc::ResumeJob> {
        let app = self.context.app.clone();
        let subject = Subject::new(&format!("resume job {}", job_id.0), &body.0);
        let launch = async move {
            let result = app.jobs().resume(&job_id.0, body.0).await?;
            Ok(reply::json(StatusCode::CREATED, &result))
        };
        Answer::new(self.context.idempotency.run(key.0, subject, launch).await)
    }
}

impl PublicApi {
    /// Marks an answer that may be old.
    ///
    /// The last probe of the agent's sessions failed, or none has run yet.
    fn probed(&self, mut response: Response) -> Response {
        if self.context.app.sessions().is_stale() {
            response.headers_mut().insert("x-svc-stale", HeaderValue::from_static("true"));
        }
        response
    }
}

#[OpenApi]
impl OpsApi {
    /// Health of the service.
    #[oai(path = "/healthz", method = "get", operation_id = "getHealth", tag = "Tag::Ops")]
    async fn get_health(&self) -> Answer<doc::HealthReport> {
        Answer::new(Ok(reply::json(StatusCode::OK, &self.context.app.status().health())))
    }

    /// Figures for a monitoring system; only with `observability.prometheus_enabled`.
    #[oai(path = "/metrics", method = "get", operation_id = "getMetrics", tag = "Tag::Ops")]
    async fn get_metrics(&self, request: &Request) -> Answer<doc::Metrics> {
        let app = &self.context.app;
        let figures = Figures { hosted: app.hosted().figures(), ..app.metrics().figures() };
        let accept = request.header(header::ACCEPT);
        let answer = exposition::answer(&figures, accept).map(|(media, text)| {
            let answer = Response::builder().content_type(media);
            answer.header(header::VARY, header::ACCEPT.as_str()).body(text)
        });
        Answer::new(answer.map_err(|error| Refusal::internal(&error.to_string())))
    }
}

fn launched(mut result: SpawnResult, warnings: Vec<String>, created: StatusCode) -> Response {
    result.outcome.warnings.extend(warnings);
    let status = if result.outcome.created { created } else { StatusCode::OK };
    reply::json(status, &result)
}

/// A whole list from the cache.
///
/// A blocking thread builds it, because ten thousand records take their time.
pub(crate) async fn whole(context: &Context, request: &Request, list: List) -> Response {
    let encoded = encoded(context, list).await;
    reply::tagged(request.headers(), encoded.body.clone(), &encoded.etag)
}

async fn encoded(context: &Context, list: List) -> Arc<Encoded> {
    let model = Arc::clone(context.app.read_model());
    if let Some(encoded) = model.cached(list) {
        return encoded;
    }
    let on_thread = Arc::clone(&model);
    tokio::task::spawn_blocking(move || on_thread.encoded(list))
        .await
        .unwrap_or_else(|_| model.encoded(list))
}

fn filtered<T: serde::Serialize>(request: &Request, rows: &[T]) -> Result<Response, Refusal> {
    let body = serde_json::to_vec(rows).map_err(|error| Refusal::internal(&error.to_string()))?;
    let etag = crate::digest::entity_tag(&body);
    Ok(reply::tagged(request.headers(), body.into(), &etag))
}

/// Working sessions by project or by instance.
pub(crate) type SessionsByKey = BTreeMap<String, Vec<svc_shared::api::sessions::WorkingSession>>;
