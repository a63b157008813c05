// A bridge whose remote link is lost: said on the row, restarted there after a question, and kept in
// its timeline.

import assert from 'node:assert/strict';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row, until } from './person.mjs';
import { world } from './world.mjs';

let machine, browser, page, complaints;
let seen, press, choose, says, gone, shot;

const bridge = async () => (await machine.api('/api/instances'))[0];

/** Writes a line into the debug file of the newest start. */
function line(text) {
  const calls = readFileSync(join(machine.env.CLAUDE_CONFIG_DIR, '.agent-sim/calls.jsonl'), 'utf8');
  const starts = calls.trim().split('\n').map(JSON.parse);
  const { argv } = starts.filter((call) => call.argv.includes('remote-control')).at(-1);
  const debug = argv[argv.indexOf('--debug-file') + 1];
  appendFileSync(debug, `${new Date().toISOString()} [DEBUG] ${text}\n`);
}
const lose = () => line('[bridge:api] GET .../work/poll -> 503 (no work)');

before(async () => {
  machine = await world({ web: {} });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, choose, says, gone, shot } = person(page));
  await machine.cli('start', 'web', '--wait', '20');
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('H107: a bridge with a lost link is restarted from its row after a question', async () => {
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await seen(row('web', 'running'));
  assert.equal(await page.$(part('act-heal')), null, 'nothing to heal');
  lose();
  await says(row('web', 'running'), 'Link lost');
  await press(`${row('web', 'running')} ${part('act-heal')}`);
  await says(part('confirm'), 'Its link is lost');
  await shot('heal-desk');
  await press(part('confirm-no'));
  assert.equal((await bridge()).generation, 1);
  await press(`${row('web', 'running')} ${part('act-heal')}`);
  await press(part('confirm-yes'));
  await until(async () => {
    const { generation, status } = await bridge();
    return generation === 2 && status === 'running';
  });
  await gone(part('link-lost'));
  await gone(part('act-heal'));
});

test('H107: on a phone the menu restarts it, and the timeline keeps the losses', async () => {
  await page.setViewport({ width: 390, height: 844 });
  const { instance_id: id } = await bridge();
  await page.goto(`${machine.url}/ui/s/${id}?tab=activity`, { waitUntil: 'load' });
  await seen(part('timeline'));
  await says(part('event'), 'Link lost');
  lose();
  await seen(part('link-lost'));
  await press(part('timeline-newer'));
  await page.waitForFunction(
    (where) =>
      [...document.querySelectorAll(where)].filter((e) => e.textContent.includes('503')).length === 2,
    {},
    part('event'),
  );
  await shot('heal-phone');
  line('[bridge:poll] Reconnected after 4s');
  await gone(part('link-lost'));
  await press(part('timeline-newer'));
  await says(part('event'), 'Link restored');
  lose();
  await seen(part('link-lost'));
  await choose(part('act-more'), part('menu-heal'));
  await press(part('confirm-yes'));
  await until(async () => (await bridge()).generation === 3);
  assert.deepEqual(complaints, []);
});
