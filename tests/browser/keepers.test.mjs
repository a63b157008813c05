// Keepers on Readiness: what holds a terminal is listed, and only an orphan can be ended there.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { away, given, launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { world } from './world.mjs';

let machine, browser, page, complaints;
let seen, press, says, gone, shot;
const rows = {};
const keeper = (project) => `${part('keeper')}[data-pid="${rows[project].keeper_pid}"]`;

before(async () => {
  machine = await world({ known: {}, lost: {} });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, shot } = person(page));
  for (const name of ['known', 'lost']) {
    await machine.cli('start', name, '--mode', 'pty', '--wait', '20');
  }
  for (const one of await machine.api('/api/instances')) rows[one.project] = one;
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('every keeper is listed, an orphan is marked, and only that one can be ended', async () => {
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/doctor`, { waitUntil: 'load' });
  await says(keeper('known'), `agent ${rows.known.bridge_pid}`);
  await seen(`${keeper('known')} a`);
  assert.equal(await page.$(part('act-end-keeper')), null);
  await away({ page, complaints }, async () => {
    await machine.kill();
    const tool = join(dirname(given('SVC_SIM_BIN')), 'examples', 'lose_record');
    await promisify(execFile)(tool, [join(machine.root, 'state', 'svc.db'), 'lost']);
    await machine.start();
  });
  await page.goto(`${machine.url}/ui/doctor`, { waitUntil: 'load' });
  await says(`${part('warn')} [data-check=keepers]`, `${rows.lost.keeper_pid} (lost, orphaned)`);
  await says(keeper('lost'), 'orphaned');
  assert.equal(await page.$(`${keeper('known')} ${part('act-end-keeper')}`), null);
  await shot('keepers-desk');
  await page.setViewport({ width: 390, height: 844 });
  await shot('keepers-phone');
  const wide = await page.evaluate(
    () => document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth,
  );
  assert.equal(wide, false);
  await press(`${keeper('lost')} ${part('act-end-keeper')}`);
  await says(part('confirm'), 'Its terminal closes');
  await press(part('confirm-no'));
  await press(`${keeper('lost')} ${part('act-end-keeper')}`);
  await press(part('confirm-yes'));
  await gone(keeper('lost'));
  await seen(`${part('ok')} [data-check=keepers]`);
  await until(async () => (await machine.api('/api/keepers')).length === 1);
  const [left] = await machine.api('/api/keepers');
  assert.equal(left.keeper_pid, rows.known.keeper_pid);
  assert.deepEqual(complaints, []);
});
