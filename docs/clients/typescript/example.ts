// Lists the projects, starts a session in `web`, and stops it again.

import createClient from "openapi-fetch";
import type { paths } from "./svc.js";

const svc = createClient<paths>({
  baseUrl: process.env.SVC_URL,
  headers: { Authorization: `Bearer ${process.env.SVC_TOKEN}` },
});

const { data: projects = [] } = await svc.GET("/api/v1/projects");
for (const project of projects) console.log(`${project.name} is ${project.trust_state}`);

const { data: started, error } = await svc.POST("/api/v1/instances", { body: { project: "web" } });
if (!started) throw new Error(`refused: ${error.code}`);

const one = { params: { path: { instance_id: started.instance_id } } };
const { data: session } = await svc.GET("/api/v1/instances/{instance_id}", one);
console.log(`${session?.project} is ${session?.status}`);

// What is refused says why, in a word for programs and in a sentence for people.
const refused = await svc.POST("/api/v1/instances", { body: { project: "no-such-project" } });
if (refused.error) console.log(`refused: ${refused.error.code}`);

const { data: stopped } = await svc.DELETE("/api/v1/instances/{instance_id}", one);
console.log(`${stopped?.project} is ${stopped?.status}`);
