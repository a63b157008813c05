// Remote environments that are left over: archived after a question, deleted after a word.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { world } from './world.mjs';

// Only a service with fail points takes a server on this machine for the account's.
const skip = process.env.SVC_FAILPOINTS_BIN ? false : 'needs a service with fail points';

let machine, account, browser, page, complaints;
let seen, press, says, gone, shot;
const environments = [];
const changes = [];

before(async () => {
  if (skip) return;
  process.env.SVC_BIN = process.env.SVC_FAILPOINTS_BIN;
  account = createServer((request, response) => {
    const answer = (status, body) => {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    if (request.method === 'GET') return answer(200, { environments, has_more: false });
    changes.push(`${request.method} ${request.url}`);
    if (request.url.includes('env-busy')) {
      return answer(409, { error: { message: 'it has work waiting' } });
    }
    return answer(200, {});
  });
  account.listen(0, '127.0.0.1');
  await once(account, 'listening');
  const points = `environments.api=http://127.0.0.1:${account.address().port}`;
  const more = { reaper: { ui_enabled: true } };
  machine = await world({ api: {} }, more, undefined, 0, { SVC_FAILPOINTS: points });
  for (const name of ['api', 'busy', 'old']) {
    environments.push({
      environment_id: `env-${name}`,
      kind: 'bridge',
      name: `of ${name}`,
      bridge_info: { directory: join(machine.root, 'projects', name) },
    });
  }
  const login = { accessToken: 'simulated', expiresAt: Date.now() + 3_600_000 };
  writeFileSync(
    join(machine.root, 'agent', '.credentials.json'),
    JSON.stringify({ claudeAiOauth: login }),
  );
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, shot } = person(page));
});

after(async () => {
  await browser?.close();
  await machine?.close();
  account?.close();
});

const choose = (name) =>
  page.$$eval(
    part('environment'),
    (rows, wanted) => {
      const row = rows.find((one) => one.textContent.includes(`projects/${wanted}`));
      row.querySelector('input').click();
    },
    name,
  );

test('what is left over is archived, and each row says what became of it', { skip }, async () => {
  await page.setViewport({ width: 390, height: 844 });
  await page.goto(`${machine.url}/ui/maintenance`, { waitUntil: 'load' });
  await seen(part('environment'));
  assert.equal((await page.$$(part('environment'))).length, 3);
  await shot('maintenance-phone');
  await choose('api');
  await choose('busy');
  await press(part('environments-archive'));
  await says(part('environments-question'), 'Archive 2 environments?');
  await press(part('environments-yes'));
  await says(part('environments'), 'archived');
  await says(part('environments'), 'it has work waiting');
  assert.deepEqual(changes.toSorted(), [
    'POST /v1/environments/env-api/archive',
    'POST /v1/environments/env-busy/archive',
  ]);
});

test('nothing is deleted before the word is typed', { skip }, async () => {
  await page.setViewport({ width: 1440, height: 900 });
  changes.length = 0;
  environments.splice(0, 2);
  await press(part('environments-scan'));
  await page.waitForFunction(
    (row) => document.querySelectorAll(row).length === 1,
    {},
    part('environment'),
  );
  await choose('old');
  await press(part('environments-delete'));
  await says(part('environments-question'), 'cannot be undone');
  await page.keyboard.type('delete');
  await page.keyboard.press('Enter');
  assert.deepEqual(changes, []);
  await page.$eval(part('environments-typed'), (field) => field.select());
  await page.keyboard.type('DELETE');
  await shot('maintenance-delete-desk');
  await press(part('environments-yes'));
  await gone(part('environments-question'));
  await says(part('environment-outcome'), 'deleted');
  assert.deepEqual(changes, ['DELETE /v1/environments/bridge/env-old']);
  assert.deepEqual(complaints, []);
});
