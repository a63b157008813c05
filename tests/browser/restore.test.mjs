// After a restart of the machine: the offer on Home, the choice, one click, progress, one summary.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { away, launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { world } from './world.mjs';

const NAMES = ['api', 'docs', 'infra', 'web'];

let machine, browser, page, complaints;
let seen, press, says, gone, pick, shot;

const SIZES = { phone: [390, 844], desk: [1440, 900] };
const resize = async (name) => {
  const [width, height] = SIZES[name];
  await page.setViewport({ width, height });
};
const candidate = (project) => `${part('restore-candidate')}[data-project="${project}"]`;
const sideways = () =>
  page.evaluate(() => document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth);
const statuses = async () => {
  const rows = await machine.api('/api/instances');
  return Object.fromEntries(rows.map((one) => [one.project, one.status]));
};

before(async () => {
  machine = await world(Object.fromEntries(NAMES.map((name) => [name, {}])));
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, pick, shot } = person(page));
  await resize('desk');
  for (const name of NAMES) {
    const mode = name === 'docs' ? 'standard' : 'pty';
    await machine.cli('start', name, '--mode', mode, '--wait', '20');
  }
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('H115: nothing is asked for and nothing offered while no restart ended anything', async () => {
  const asked = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await seen(part('section-live'));
  assert.equal(await page.$(part('restore-strip')), null);
  assert.ok(!asked.includes('/api/restore'), 'the first load reads no offer');
  await page.goto(`${machine.url}/ui/restore`, { waitUntil: 'load' });
  await seen(part('restore-nothing'));
});

test('H115: what the restart ended is offered on Home, and can wait', async () => {
  await away({ page, complaints }, machine.reboot);
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await says(part('restore-strip'), '4 sessions ended with the restart of the machine');
  await shot('restore-strip-desk');
  await resize('phone');
  await shot('restore-strip-phone');
  assert.equal(await sideways(), false);
  await press(part('restore-later'));
  await gone(part('restore-strip'));
  await page.reload({ waitUntil: 'load' });
  await seen(part('section-ended'));
  assert.equal(await page.$(part('restore-strip')), null);
  await page.evaluate(() => sessionStorage.clear());
  await page.reload({ waitUntil: 'load' });
  await press(part('restore-open'));
  await says(candidate('web'), 'the conversation');
  await says(candidate('docs'), 'the bridge');
  await shot('restore-phone');
  assert.equal(await sideways(), false);
  await resize('desk');
  await shot('restore-desk');
});

test('H115: what is left out stays, the rest comes back in one click with one summary', async () => {
  await press(`${candidate('infra')} ${part('restore-box')}`);
  await says(part('restore-begin'), 'Restore 3 sessions');
  await pick(part('restore-parallel'), '4');
  await press(part('restore-begin'));
  await seen(part('restore-progress'));
  await shot('restore-progress-desk');
  await seen(`${part('restore-progress')}[data-state=done]`);
  await says(part('restore-summary'), '3 of 3 sessions restored');
  await page.waitForFunction(
    (where) => document.querySelectorAll(where).length === 3,
    {},
    `${part('restore-step')}[data-state=done]`,
  );
  await says(part('toast'), '3 of 3 sessions restored');
  assert.equal((await page.$$(part('toast'))).length, 1);
  await shot('restore-done-desk');
  const now = await statuses();
  assert.deepEqual([now.api, now.docs, now.web], ['running', 'running', 'running']);
  assert.notEqual(now.infra, 'running');
  assert.equal((await machine.api('/api/instances')).length, 4, 'no second record');
  await press(part('restore-rest'));
  await seen(candidate('infra'));
});

test('H115: what nobody wants back is not offered again', async () => {
  await press(part('restore-dismiss'));
  await seen(part('restore-nothing'));
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await seen(part('section-ended'));
  await until(async () => (await machine.api('/api/restore')).candidates.length === 0);
  assert.equal(await page.$(part('restore-strip')), null);
  assert.deepEqual(complaints, []);
});
