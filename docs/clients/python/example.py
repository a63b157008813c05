"""Lists the projects, starts a session in `web`, and stops it again."""

import os
import sys

import httpx
from svc_client import AuthenticatedClient
from svc_client.api.instances import get_instance, spawn_instance, stop_instance
from svc_client.api.projects import list_projects
from svc_client.models import Error, Instance, SpawnRequest, SpawnResult

svc = AuthenticatedClient(
    base_url=os.environ["SVC_URL"],
    token=os.environ["SVC_TOKEN"],
    # A launch is answered when the session is ready, at the latest after 15 seconds.
    timeout=httpx.Timeout(40),
    raise_on_unexpected_status=True,
)

projects = list_projects.sync(client=svc)
if not isinstance(projects, list):
    sys.exit(f"refused: {projects}")
for project in projects:
    print(f"{project.name} is {project.trust_state.value}")

started = spawn_instance.sync(client=svc, body=SpawnRequest(project="web"))
if not isinstance(started, SpawnResult):
    sys.exit(f"refused: {started}")
session = get_instance.sync(started.instance_id, client=svc)
if isinstance(session, Instance):
    print(f"{session.project} is {session.status.value}")

# What is refused says why, in a word for programs and in a sentence for people.
refused = spawn_instance.sync(client=svc, body=SpawnRequest(project="no-such-project"))
if isinstance(refused, Error):
    print(f"refused: {refused.code.value}")

stopped = stop_instance.sync(started.instance_id, client=svc)
if isinstance(stopped, Instance):
    print(f"{stopped.project} is {stopped.status.value}")
