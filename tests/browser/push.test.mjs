// Notifications of a device while the page is closed. No push service is reached from here: what
// the browser gets from its maker, and what a desktop would show, is stubbed at that boundary;
// worker, service and page are the real ones.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DEADLINE_MS, launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { delivered, keys, stub } from './push-stub.mjs';
import { findings, ruler } from './width.mjs';
import { world } from './world.mjs';

let machine;
let browser;
let page;
let complaints;
let seen, press, shot;

before(async () => {
  machine = await world({ api: {} }, { push: { enabled: true } });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, shot } = person(page));
  const context = page.browserContext();
  await context.overridePermissions(machine.url, ['notifications']);
  await page.evaluateOnNewDocument(stub, { keys: keys(), endpoint: 'https://1.1.1.1/send/SECRET' });
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/notifications`, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

const standing = (state) => `${part('push-switch')}[aria-checked="${state}"]:not([disabled])`;
const listed = async () => (await fetch(`${machine.url}/api/push/subscriptions`)).json();

test('the switch registers the worker and tells the service', async () => {
  await seen(standing('false'));
  await press(part('push-switch'));
  await seen(standing('true'));
  await seen(part('push-device'));
  const text = await page.$eval(part('push-devices'), (all) => all.innerText);
  assert.match(text, /1\.1\.1\.1/);
  assert.doesNotMatch(text, /SECRET/);
  const key = await (await fetch(`${machine.url}/api/push/key`)).json();
  assert.equal(await page.evaluate(() => sessionStorage.getItem('stub-subscription')), key.public_key);
  assert.equal((await listed()).length, 1);
  await shot('push-desk');
});

test('it stays on after a reload', async () => {
  await page.reload({ waitUntil: 'load' });
  await seen(standing('true'));
  assert.equal((await listed()).length, 1);
});

test('the view fits a phone and a desk', async () => {
  const { look, resize } = await ruler(page);
  const found = await look('push', [390, 834, 1440]);
  assert.deepEqual(findings(found), []);
  await resize(390);
  await shot('push-phone');
});

test('the worker shows what is pushed, and takes it back', async () => {
  const { worker, push } = await delivered(browser, page);
  const shown = () =>
    worker.evaluate(() => self.all.map(({ title, body, tag }) => ({ title, body, tag })));
  const until = async (wanted) => {
    const end = Date.now() + DEADLINE_MS;
    while ((await shown()).length !== wanted) {
      assert.ok(Date.now() < end, `${wanted} notifications did not come`);
    }
  };
  const told = { kind: 'show', tag: 'svc-test', title: 'Test of svc', body: 'Here', event: 'test' };
  await push({ ...told, url: '/ui/notifications', actions: [], at: Date.now() });
  await until(1);
  assert.deepEqual(await shown(), [{ title: 'Test of svc', body: 'Here', tag: 'svc-test' }]);
  await push({ ...told, kind: 'close' });
  await until(0);
});

test('switched off, the worker is gone', async () => {
  await press(part('push-switch'));
  await seen(standing('false'));
  const workers = await page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length);
  assert.equal(workers, 0);
  assert.deepEqual(await listed(), []);
  assert.deepEqual(complaints, []);
});
