// What somebody started by hand: it is shown while it lives, and can be taken over when it is a
// bridge.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { given, launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

let machine;
let browser;
let page;
let complaints;
let seen, press, says, gone, shot;
let bridge;

const external = (project) => `${part('external-row')}[data-project="${project}"]`;

before(async () => {
  machine = await world({ api: {}, web: {} });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, shot } = person(page));
  await page.setViewport({ width: 1280, height: 800 });
  await page.goto(machine.url, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  await machine?.close();
  bridge?.kill('SIGKILL');
});

test('a bridge started by hand appears on the open page', async () => {
  await seen(part('section-projects'));
  bridge = spawn(given('SVC_SIM_BIN'), ['remote-control'], {
    cwd: join(machine.root, 'projects', 'web'),
    env: machine.env,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  await seen(`${part('section-live')} ${external('web')}`);
  await shot('home-external');
  const sessions = await machine.api('/api/sessions');
  assert.deepEqual(Object.keys(sessions), ['web']);
});

test('it is managed after a question, and is then a row like any other', async () => {
  await press(part('only-external'));
  await press(`${part('section-live')} a[href="/ui/external"]`);
  await press(`${external('web')} ${part('act-manage')}`);
  await says(part('confirm'), 'You can stop it here from then on. Its log stays where it was started');
  await press(part('confirm-yes'));
  await gone(external('web'));
  await seen(part('external-empty'));
  await press(part('nav-home'));
  await seen(row('web', 'running'));
  const [instance] = await machine.api('/api/instances');
  assert.deepEqual([instance.project, instance.adopted], ['web', true]);
});

test('it is stopped from the page, and its process ends', async () => {
  const ended = once(bridge, 'exit');
  await press(`${row('web', 'running')} ${part('act-stop')}`);
  await press(part('confirm-yes'));
  await seen(row('web', 'stopped'));
  await ended;
  await page.close();
  assert.deepEqual(complaints, []);
});
