// Lists and calls every tool of `svc mcp`, and reads every resource: `node example.mjs PROJECT`.
// SVC names the program, and SVC_CONFIG its configuration.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const project = process.argv[2] ?? "web";
const transport = new StdioClientTransport({
  command: process.env.SVC ?? "svc",
  args: ["mcp"],
  env: process.env,
  stderr: "ignore",
});
const client = new Client({ name: "example", version: "1.0.0" });
await client.connect(transport);
console.log(`connected to ${client.getServerVersion().name}`);

async function call(name, args = {}) {
  const result = await client.callTool({ name, arguments: args }, undefined, { timeout: 60_000 });
  if (result.isError) {
    throw new Error(result.content[0].text);
  }
  return result.structuredContent;
}

async function readAll() {
  const { resources } = await client.listResources();
  const { resourceTemplates } = await client.listResourceTemplates();
  const kinds = new Set();
  for (const { uri } of resources) {
    const { contents } = await client.readResource({ uri });
    if (contents[0].uri !== uri || typeof contents[0].text !== "string") {
      throw new Error(`${uri} was read as ${JSON.stringify(contents)}`);
    }
    kinds.add(new URL(uri).host);
  }
  console.log(`${resourceTemplates.length} templates; read ${[...kinds].sort().join(", ")}`);
}

const { tools } = await client.listTools();
console.log(tools.map((tool) => tool.name).join(" "));
console.log(`${(await call("list_sessions")).count} sessions`);
const before = await call("session_status", { id: project });
console.log(`${project} is ${before.found ? before.session.status : "not found"}`);
await readAll();

// Only with `mcp.allow_writes: true`, and after the person was asked.
if (tools.some((tool) => tool.name === "spawn_session")) {
  const { session } = await call("spawn_session", { project });
  console.log(`${project} is ${session.status}`);
  const seen = await call("session_status", { id: session.id });
  console.log(`session_status: ${seen.session.status}`);
  await readAll();
  console.log(`stopped: ${(await call("stop_session", { id: session.id })).stopped}`);
  console.log(`resumed: ${(await call("resume_session", { id: session.id })).resumed}`);
  console.log(`stopped: ${(await call("stop_session", { id: session.id })).stopped}`);
}
await client.close();
