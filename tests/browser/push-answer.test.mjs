// A question is answered from its notification: the worker is the real one, and so are service,
// hook and agent. What the browser gets from its maker and what a desktop would draw is stubbed.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { DEADLINE_MS, launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { keys, stub } from './push-stub.mjs';
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
  ({ worker, push } = await delivered());
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

/** The worker, and how a message of the browser's maker comes to it. */
async function delivered() {
  const client = await page.createCDPSession();
  const registration = await new Promise((resolve) => {
    client.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      if (registrations[0]) resolve(registrations[0]);
    });
    client.send('ServiceWorker.enable');
  });
  const { registrationId } = registration;
  const target = await browser.waitForTarget((one) => one.type() === 'service_worker');
  const worker = await target.worker();
  await worker.evaluate(() => {
    self.all = [];
    self.registration.showNotification = async (title, { body, tag, data, actions }) => {
      const close = () => (self.all = self.all.filter((one) => one.tag !== tag));
      close();
      self.all.push({ title, body, tag, data, actions, close });
    };
    self.registration.getNotifications = async ({ tag }) => self.all.filter((one) => one.tag === tag);
    // A click on a button of a notification.
    self.click = (tag, action) => {
      const event = new ExtendableEvent('notificationclick');
      let work;
      Object.assign(event, {
        notification: self.all.find((one) => one.tag === tag),
        action,
        waitUntil: (promise) => (work = promise),
      });
      self.dispatchEvent(event);
      return work;
    };
  });
  const push = (told) =>
    client.send('ServiceWorker.deliverPushMessage', {
      origin: machine.url,
      registrationId,
      data: JSON.stringify(told),
    });
  return { worker, push };
}

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

/** The results of calls that the conversations of the machine show. */
function results() {
  const dir = join(machine.root, 'agent', 'projects');
  const files = readdirSync(dir, { recursive: true }).filter((name) => name.endsWith('.jsonl'));
  const lines = files.flatMap((name) => readFileSync(join(dir, name), 'utf8').split('\n'));
  const parts = lines.filter(Boolean).map((line) => JSON.parse(line).message?.content);
  const found = parts.filter(Array.isArray).flat().filter((one) => one.type === 'tool_result');
  return found.map((one) => [one.content, one.is_error === true]);
}

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
