// A question is answered from its notification: the worker is the real one, and so are service,
// hook and agent. What the browser gets from its maker and what a desktop would draw is stubbed.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { DEADLINE_MS, launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { delivered, keys, stub } from './push-stub.mjs';
import { resultsOf } from './results.mjs';
import { world } from './world.mjs';

let machine;
let browser;
let page;
let worker;
let push;

before(async () => {
  const turn = (text) => ({ after_ms: 0, role: 'permission', text });
  const ledger = { knobs: { turns: ['make deploy', 'rm -r build'].map(turn) } };
  machine = await world({ ledger }, {
    claude: { approval_hook: true },
    push: { enabled: true, allow_action: true },
  });
  browser = await launch();
  ({ page } = await tab(browser));
  await page.browserContext().overridePermissions(machine.url, ['notifications']);
  await page.evaluateOnNewDocument(stub, { keys: keys(), endpoint: 'https://1.1.1.1/send/SECRET' });
  await page.setViewport({ width: 390, height: 844, isMobile: true, hasTouch: true });
  await page.goto(`${machine.url}/ui/notifications`, { waitUntil: 'load' });
  const { press, seen } = person(page);
  const standing = (state) => `${part('push-switch')}[aria-checked="${state}"]:not([disabled])`;
  await seen(standing('false'));
  await press(part('push-switch'));
  await seen(standing('true'));
  ({ worker, push } = await delivered(browser, page));
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

const shown = () =>
  worker.evaluate(() =>
    self.all.map(({ title, tag, actions }) => ({
      title,
      tag,
      actions: actions?.map((one) => one.action),
    })),
  );

/** What the service sends about a question: the fields of its message, and no content. */
const told = (asked) => ({
  kind: 'show',
  tag: `svc-permission-needed-${asked.instance_id}`,
  title: 'A session is asking',
  body: asked.project,
  url: '/ui/inbox',
  event: 'permission-needed',
  instance_id: asked.instance_id,
  project: asked.project,
  request_id: asked.request_id,
  actions: ['deny', 'allow'],
  at: Date.now(),
});

/** Text of each result, and whether the call failed. */
const results = () => resultsOf(machine.root).map((one) => [one.content, one.is_error === true]);

const open = async () => (await (await fetch(`${machine.url}/api/approvals`)).json()).approvals;

test('a tap on a notification allows, and the agent goes on', async (t) => {
  await machine.cli('start', 'ledger');
  await machine.remote('connect', join(machine.root, 'projects', 'ledger'));
  await until(async () => (await open()).length === 2);
  const asked = (await open()).find((one) => one.summary === 'make deploy');
  // Another view, so that the inbox does not hold the question back from the device.
  await page.goto('about:blank');
  await push(told(asked));
  const end = Date.now() + DEADLINE_MS;
  while ((await shown()).length !== 1) assert.ok(Date.now() < end, 'nothing was shown');
  const [{ tag, actions }] = await shown();
  assert.deepEqual(actions, ['deny', 'allow']);
  const tapped = Date.now();
  await worker.evaluate((tag) => self.click(tag, 'allow'), tag);
  await until(() => results().length === 1);
  t.diagnostic(`${Date.now() - tapped} ms from the tap until the agent went on`);
  assert.deepEqual(results(), [['done', false]]);
  assert.deepEqual(await shown(), []);
  assert.deepEqual((await open()).map((one) => one.summary), ['rm -r build']);
});

test('a late tap says that somebody was first, and a refusal reaches the agent', async () => {
  const [asked] = await open();
  await push(told(asked));
  const end = Date.now() + DEADLINE_MS;
  while ((await shown()).length !== 1) assert.ok(Date.now() < end, 'nothing was shown');
  const [{ tag }] = await shown();
  await worker.evaluate((tag) => self.click(tag, 'deny'), tag);
  await until(() => results().length === 2);
  assert.deepEqual(results()[1], ['Denied by operator', true]);
  await push(told(asked));
  while ((await shown()).length !== 1) assert.ok(Date.now() < end, 'nothing was shown');
  await worker.evaluate((tag) => self.click(tag, 'allow'), tag);
  assert.equal((await shown())[0].title, 'Already answered');
});
