// What no client should send, by a client that is otherwise well behaved: each gets an error of
// the protocol, and the conversation goes on.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ResultSchema } from "@modelcontextprotocol/sdk/types.js";

const transport = new StdioClientTransport({
  command: process.env.SVC,
  args: ["mcp"],
  env: process.env,
  stderr: "ignore",
});
const client = new Client({ name: "odd", version: "1.0.0" });
await client.connect(transport);

/// Everything that comes in, before the client makes anything of it.
const heard = [];
const listeners = new Set();
const handled = transport.onmessage;
transport.onmessage = (message, extra) => {
  heard.push(message);
  listeners.forEach((look) => look());
  handled(message, extra);
};
// Answers without a number are errors to the client: they are expected here.
client.onerror = () => {};

function hears(fits) {
  return new Promise((resolve) => {
    const look = () => {
      const at = heard.findIndex(fits);
      if (at >= 0) {
        listeners.delete(look);
        resolve(heard.splice(at, 1)[0]);
      }
    };
    listeners.add(look);
    look();
  });
}

let deep = {};
for (let level = 0; level < 2000; level += 1) {
  deep = { a: deep };
}
const ping = (id) => ({ jsonrpc: "2.0", id, method: "ping" });
const call = (id, params) => ({ jsonrpc: "2.0", id, method: "tools/call", params });
for (const [message, id, code] of [
  [{ jsonrpc: "1.0", id: 9001, method: "ping" }, 9001, -32600],
  [{ jsonrpc: "2.0", id: 9002 }, 9002, -32600],
  [{ jsonrpc: "2.0", id: 9003, method: "nothing" }, 9003, -32601],
  [{ jsonrpc: "2.0", id: 9004, method: "ping", params: [] }, 9004, -32602],
  [call(9005, {}), 9005, -32602],
  [{ jsonrpc: "2.0", id: 9006, method: "resources/read", params: { uri: 7 } }, 9006, -32602],
]) {
  await transport.send(message);
  const answer = await hears((one) => one.id === id);
  assert.equal(answer.error.code, code, JSON.stringify(message));
  await client.ping();
}

// A number that is taken: the second request is refused, the first is answered.
await transport.send(call(9100, { name: "list_sessions", arguments: {} }));
await transport.send(ping(9100));
const twice = [await hears((one) => one.id === 9100)];
twice.push(await hears((one) => one.id === 9100));
const refused = twice.filter((one) => one.error?.code === -32600).length;
assert.ok(refused <= 1, JSON.stringify(twice));
await client.ping();

// Arguments that do not fit are told to the agent, which can mend them.
for (const [name, args] of [
  ["session_status", {}],
  ["session_status", { id: 7 }],
  ["session_status", { id: "a", more: 1 }],
  ["session_status", { id: { a: [{ a: {} }] } }],
  ["nothing", {}],
]) {
  const result = await client.callTool({ name, arguments: args });
  assert.equal(result.isError, true, name);
  await client.ping();
}
for (const uri of ["svc://logs/nobody", "file:///etc/passwd"]) {
  await assert.rejects(client.readResource({ uri }), (error) => Number.isInteger(error.code));
}
await assert.rejects(client.request({ method: "prompts/list" }, ResultSchema), { code: -32601 });

// What has no number in its answer, a client of this kind does not even see as a message.
const tooDeep = call(9300, { name: "session_status", arguments: { id: deep } });
for (const message of [[ping(9200)], [], 7, deep, tooDeep]) {
  await transport.send(message);
  await client.ping();
}
const { tools } = await client.listTools();
console.log(`still ${tools.length} tools`);
await client.close();
