// A launch that waits for the reset of a plan limit: chosen in the dialog, listed, taken back.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { world } from './world.mjs';

const HOUR_MS = 3_600_000;
const SIZES = { phone: [390, 844], tablet: [768, 1024], desk: [1440, 900] };

let machine, browser, page, complaints;
let seen, go, press, says, gone;

const planned = (project) => `${part('planned-row')}[data-project="${project}"]`;

/** A conversation that stopped at a limit. */
function atLimit(project, resets) {
  const cwd = join(machine.root, 'projects', project);
  const id = '22222222-2222-4333-8444-555555555555';
  const dir = join(machine.env.CLAUDE_CONFIG_DIR, 'projects', cwd.replace(/[^A-Za-z0-9]/g, '-'));
  const text = `Claude AI usage limit reached|${Math.floor(resets / 1000)}`;
  const turn = {
    type: 'assistant', cwd, sessionId: id, isSidechain: false, isApiErrorMessage: true,
    timestamp: new Date().toISOString(),
    message: { role: 'assistant', model: '<synthetic>', content: [{ type: 'text', text }] },
  };
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, `${id}.jsonl`), `${JSON.stringify(turn)}\n`);
}

async function shots(name) {
  if (!process.env.SVC_SHOTS) return;
  for (const [size, [width, height]] of Object.entries(SIZES)) {
    await page.setViewport({ width, height });
    await page.screenshot({ path: join(process.env.SVC_SHOTS, `${name}-${size}.png`) });
  }
  await page.setViewport({ width: 390, height: 844 });
}

before(async () => {
  machine = await world({ api: {}, talk: {}, web: {} });
  atLimit('talk', Date.now() + HOUR_MS);
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, go, press, says, gone } = person(page));
  await page.setViewport({ width: 390, height: 844 });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('while a limit is known, a launch can wait for its reset', async () => {
  await page.goto(`${machine.url}/ui/?launch=api`, { waitUntil: 'load' });
  // The service learns of the limit while the dialog is open.
  await says(part('launch-limit'), 'Usage limit reached, resets');
  await says(part('launch-submit'), 'Launch');
  await press(part('launch-later'));
  await says('#launch-later-help', 'Starts once');
  await says(part('launch-submit'), 'Launch later');
  await shots('launch-later');
  await press(part('launch-submit'));
  await gone(part('launch-dialog'));
  await says(planned('api'), 'Waiting for the reset');
  await says(planned('api'), 'Starts ');
  await says(part('section-planned'), 'Server Mode');
  assert.deepEqual(await machine.api('/api/instances'), [], 'nothing has started');
});

test('what waits is listed live, with the prompt of a job, and on the page of its project', async () => {
  await machine.cli('jobs', 'start', 'web', 'tidy up the tests', '--wait-for-limit');
  await says(planned('web'), 'tidy up the tests');
  await shots('planned-home');
  await page.setViewport({ width: 390, height: 844 });
  await go('/ui/projects/web', planned('web'));
  await shots('planned-project');
  await gone(planned('api'));
  await go('/ui/', planned('api'));
});

test('it is taken back here or by a command', async () => {
  await press(`${planned('api')} ${part('act-cancel-launch')}`);
  await gone(planned('api'));
  const { launches } = await machine.api('/api/launches');
  const web = launches.find((one) => one.project === 'web');
  assert.equal(launches.find((one) => one.project === 'api').state, 'cancelled');
  await machine.cli('launches', 'cancel', web.id);
  await gone(part('section-planned'));
  await until(async () => (await machine.api('/api/launches')).launches.every((one) => one.state === 'cancelled'));
  assert.deepEqual(complaints, []);
});
