// A private machine for one test file: projects, a double of the agent, a configuration, a service.

import { execFileSync, execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { once } from 'node:events';
import { promisify } from 'node:util';

import { DEADLINE_MS, given, serve } from './harness.mjs';

const run = promisify(execFile);

/** A port that nobody listens at now. */
export async function freePort() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * Makes the tree; `more` is laid over the configuration, `password` signs in what asks the API.
 * `ended` rows have run once, by the records of an earlier service. `variables` are seen by the
 * service. `projects` maps a name to `{ git, trusted, knobs }`; the answer serves, runs commands, asks the
 * API, and takes everything down again.
 */
export async function world(projects, more = {}, password, ended = 0, variables = {}) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-page-')));
  const agentHome = join(root, 'agent');
  const env = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SVC_'))),
    HOME: join(root, 'home'),
    // The machine has its own accounts: `home/accounts`, else root alone.
    PATH: `${join(import.meta.dirname, '../accounts')}:${process.env.PATH}`,
    CLAUDE_CONFIG_DIR: agentHome,
    AGENT_SIM: '1',
    AGENT_SIM_READY_MS: '50',
    ...variables,
  };
  mkdirSync(env.HOME);
  mkdirSync(join(root, 'projects'));
  execFileSync(given('SVC_SIM_BIN'), ['init', agentHome], { env });
  const trusted = {};
  for (const [name, { git = false, trust = true, knobs }] of Object.entries(projects)) {
    const dir = join(root, 'projects', name);
    mkdirSync(dir, { recursive: true });
    if (git) execFileSync('git', ['-C', dir, 'init', '-q', '-b', 'main'], { env });
    if (trust) trusted[dir] = { hasTrustDialogAccepted: true };
    if (knobs) writeFileSync(join(dir, '.agent-sim.json'), JSON.stringify(knobs));
  }
  writeFileSync(
    join(agentHome, '.claude.json'),
    JSON.stringify({ remoteDialogSeen: true, projects: trusted }),
  );
  const config = join(root, 'svc.yml');
  const settings = {
    projects_root: join(root, 'projects'),
    state_dir: join(root, 'state'),
    host: '127.0.0.1',
    port: await freePort(),
    ...more,
    claude: { binary: given('SVC_SIM_BIN'), node_from_nvm: false, ...more.claude },
  };
  writeFileSync(config, JSON.stringify(settings), { mode: 0o600 });

  if (ended > 0) {
    const rows = Array.from({ length: ended }, (_, at) => `old-${String(at).padStart(3, '0')}`);
    const record = { intentional_stop: true, permission_mode: 'default', resume_mode: 'standard' };
    mkdirSync(join(root, 'state'), { recursive: true });
    writeFileSync(
      join(root, 'state', 'state.json'),
      JSON.stringify({
        schema_version: 1,
        instances: Object.fromEntries(rows.map((name) => [name, { project_name: name, ...record }])),
      }),
    );
  }
  let service;
  const start = async () => {
    service = await serve({ args: ['run', '--config', config], env, cwd: root });
  };
  await start();
  const cli = async (...args) => {
    const options = { env, cwd: root, timeout: DEADLINE_MS };
    return (await run(given('SVC_BIN'), [...args, '--config', config], options)).stdout;
  };
  const ask = (path, options) =>
    fetch(service.url + (more.root_path ?? '') + path, {
      signal: AbortSignal.timeout(DEADLINE_MS),
      ...options,
    });
  const signIn = async () => {
    const headers = { 'Content-Type': 'application/json', Origin: service.url };
    const body = JSON.stringify({ password });
    const reply = await ask('/login', { method: 'POST', headers, body });
    if (!reply.ok) throw new Error(`/login: ${reply.status} ${await reply.text()}`);
    return reply.headers.get('set-cookie').split(';')[0];
  };
  const api = async (path) => {
    // Anew each time: a test may end what is signed in.
    const reply = await ask(path, password && { headers: { Cookie: await signIn() } });
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`);
    return reply.json();
  };
  const remote = async (...args) =>
    (await run(given('SVC_SIM_BIN'), ['remote', ...args], { env, timeout: DEADLINE_MS })).stdout;
  /** Takes the service away without a word; `start` brings it back at the same address. */
  const kill = async () => {
    process.kill(service.pid, 'SIGKILL');
    await service.stop();
  };
  /** Ends the service and every session, as a restart of the machine does; `start` follows it. */
  const reboot = async () => {
    const rows = await api('/api/instances');
    await kill();
    for (const { bridge_pid: pid, keeper_pid: keeper } of rows) {
      for (const one of [keeper, pid].filter(Boolean)) {
        try {
          process.kill(one, 'SIGKILL');
        } catch (error) {
          if (error.code !== 'ESRCH') throw error;
        }
      }
    }
    const tool = join(dirname(given('SVC_SIM_BIN')), 'examples', 'reboot');
    await run(tool, [join(root, 'state', 'svc.db')], { timeout: DEADLINE_MS });
    await start();
  };
  const close = async () => {
    for (const row of await api('/api/instances')) {
      if (['starting', 'running'].includes(row.status)) await cli('stop', row.instance_id);
    }
    for (const job of await api('/api/agents')) await cli('jobs', 'stop', job.id);
    const code = await service.stop();
    // The agent's background service outlives everything that asked it for something.
    if (existsSync(join(agentHome, 'daemon.lock'))) {
      await run(given('SVC_SIM_BIN'), ['daemon', 'stop', '--any'], { env, timeout: DEADLINE_MS });
    }
    rmSync(root, { recursive: true, force: true });
    return code;
  };
  const { url, said } = service;
  return { url, said, env, root, cli, api, ask, remote, start, kill, reboot, close };
}
