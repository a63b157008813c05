// Conversations of a bridge that died are named on its row and its page, and continue in one click.

import assert from 'node:assert/strict';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row, until } from './person.mjs';
import { world } from './world.mjs';

const knobs = {
  turns: [
    { after_ms: 0, role: 'user', text: 'Why is the login slow?' },
    { after_ms: 0, role: 'assistant', text: 'I will look.' },
  ],
};

let machine, browser, page, complaints;
let seen, go, press, says, gone, shot;
let bridge;

const one = (at) => `${part('stranded-session')}:nth-of-type(${at})`;

before(async () => {
  machine = await world({ web: { knobs } });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, go, press, says, gone, shot } = person(page));
  await page.setViewport({ width: 390, height: 844 });
  await machine.cli('start', 'web', '--wait', '20');
  [bridge] = await machine.api('/api/instances');
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('H107: the row says that the link is lost, and what a session waits for', async () => {
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await seen(row('web', 'running'));
  const { calls } = { calls: join(machine.env.CLAUDE_CONFIG_DIR, '.agent-sim/calls.jsonl') };
  const start = readFileSync(calls, 'utf8').trim().split('\n').map(JSON.parse)
    .find((call) => call.argv.includes('remote-control'));
  const debug = start.argv[start.argv.indexOf('--debug-file') + 1];
  const line = (text) => appendFileSync(debug, `${new Date().toISOString()} [DEBUG] ${text}\n`);
  line('[bridge:api] GET .../work/poll -> 503 (no work)');
  await says(row('web', 'running'), 'Link lost');
  await says(row('web', 'running'), 'HTTP 503');
  line('[bridge:perm] sessionId=session_1 tool=Bash request_id=r1 (not auto-approving)');
  await says(row('web', 'running'), 'Waiting for permission: Bash');
  const from = await page.$eval(part('activity'), (fact) => fact.title);
  assert.match(from, /^from the agent's log, certain, since /);
  await shot('link-lost-phone');
  line('[bridge:poll] Reconnected after 4s');
  await gone(part('link-lost'));
  line('[bridge:session] sessionId=session_1 completed exit_code=0 pid=4');
  await gone(part('activity'));
});

test('the conversations of a killed bridge are named, and continue or go', async () => {
  for (let count = 1; count <= 2; count += 1) {
    await machine.remote('connect', join(machine.root, 'projects', 'web'));
    await until(async () => {
      const { state: { tracked } } = await machine.api('/api/state');
      return (tracked[bridge.instance_id] ?? []).filter((s) => s.pid !== bridge.bridge_pid).length === count;
    });
  }
  process.kill(bridge.bridge_pid, 'SIGKILL');
  await says(row('web', 'crashed'), '2 conversations are stranded');
  await page.goto(`${machine.url}/ui/s/${bridge.instance_id}`, { waitUntil: 'load' });
  await seen(one(2));
  await says(one(1), 'Why is the login slow?');
  await shot('stranded-phone');
  await page.setViewport({ width: 1440, height: 900 });
  await shot('stranded-desk');
  await press(`${one(1)} ${part('act-continue-stranded')}`);
  await gone(one(2));
  // The row goes at once; the job that goes on is known a moment later.
  const continued = ({ state, continued_as: job }) => state === 'continued' && job;
  await until(async () => (await machine.api('/api/stranded')).filter(continued).length === 1);
  await press(`${one(1)} ${part('act-dismiss-stranded')}`);
  await gone(part('stranded'));
  assert.deepEqual(complaints, []);
});
