// Actions that are repeated, or meant for something that has changed meanwhile (H131).

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

let machine, browser, page;
let seen, press, gone;

before(async () => {
  machine = await world({ app: {}, other: {} });
  browser = await launch();
  ({ page } = await tab(browser)); // a refusal is part of the test
  ({ seen, press, gone } = person(page));
  await page.setViewport({ width: 1280, height: 900 });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('H131: twenty rapid clicks on Launch send one request', async () => {
  const sent = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') sent.push(new URL(request.url()).pathname);
  });
  await page.goto(`${machine.url}/ui/projects?launch=app`, { waitUntil: 'load' });
  await seen(part('launch-submit'));
  await page.waitForSelector(`${part('launch-submit')}:not([aria-disabled="true"])`);
  await page.$eval(part('launch-submit'), (button) => {
    for (let click = 0; click < 20; click += 1) button.click();
  });
  await gone(part('launch-dialog'));
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await seen(row('app', 'running'));
  const launches = sent.filter((path) => /\/instances$/.test(path));
  assert.equal(launches.length, 1, `${launches}`);
  assert.equal((await machine.api('/api/instances')).length, 1);
});

test('H131: a row that another tab stopped and forgot is not shown as running', async () => {
  const { page: other } = await tab(browser);
  await other.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  const there = person(other);
  await there.seen(row('app', 'running'));
  await there.press(`${row('app', 'running')} ${part('act-stop')}`);
  const question = await other.$eval(part('confirm'), (asked) => asked.textContent);
  assert.ok(question.includes('app'), question);
  // The answer that does harm is not the one Enter gives.
  const focused = await other.evaluate(() => document.activeElement?.dataset.testid);
  assert.notEqual(focused, 'confirm-yes');
  const [{ instance_id: id }] = await machine.api('/api/instances');
  await machine.cli('stop', id);
  await machine.cli('forget', id);
  await other.bringToFront();
  await there.gone(row('app', 'running'));
  assert.deepEqual(await machine.api('/api/instances'), []);
  await other.close();
});
