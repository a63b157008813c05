// Notifications: the targets of the configuration, what became of each, and the test button.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { findings, ruler } from './width.mjs';
import { world } from './world.mjs';

let machine;
let browser;
let page;
let complaints;
let seen, press, shot;
let receiver;
const got = [];
// What the address that refuses answers.
let refusal = 500;

before(async () => {
  receiver = createServer((request, answer) => {
    got.push(request.url);
    request.resume();
    answer.writeHead(request.url.startsWith('/sorry') ? refusal : 204).end();
  });
  await new Promise((done) => receiver.listen(0, '127.0.0.1', done));
  const { port } = receiver.address();
  const urls = [
    `json://127.0.0.1:${port}/fine?k=SECRET1`,
    `json://me:SECRET2@127.0.0.1:${port}/sorry`,
    'https://unknown.example/SECRET3',
  ];
  const notifications = { enabled: true, urls, quiet_hours: '22:00-07:00' };
  const hooks = ['/fine/SECRET4', '/sorry/SECRET5'].map((path) => `http://127.0.0.1:${port}${path}`);
  const webhooks = { enabled: true, outbox: true, urls: hooks };
  machine = await world({ api: {} }, { notifications, webhooks });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, shot } = person(page));
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/notifications`, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  await machine?.close();
  receiver?.close();
});

const row = (entry) => `${part('notification-target')}[data-entry="${entry}"]`;

test('every entry is listed by service and host, without its secrets', async () => {
  await seen(row(3));
  const text = await page.$eval(part('notification-services'), (all) => all.innerText);
  assert.match(text, /JSON/);
  assert.match(text, /http:\/\/127\.0\.0\.1/);
  assert.match(text, /disabled/);
  assert.match(text, /22:00-07:00/);
  assert.doesNotMatch(text, /SECRET/);
});

test('a test says whether the service took it, and why not', async () => {
  await press(`${row(1)} ${part('test-target')}`);
  await seen(`${row(1)} [data-state=accepted]`);
  assert.deepEqual(got, ['/fine?k=SECRET1']);
  await press(`${row(2)} ${part('test-target')}`);
  await seen(`${row(2)} [data-state=failed]`);
  const text = await page.$eval(row(2), (one) => one.innerText);
  assert.match(text, /it answered 500/);
  await shot('notifications-desk');
});

const hook = (entry) => `${part('webhook-target')}[data-entry="${entry}"]`;

test('webhooks are listed, tried, and posted again once they were given up', async () => {
  await seen(hook(2));
  await press(`${hook(1)} ${part('test-webhook')}`);
  await until(() => got.at(-1) === '/fine/SECRET4');
  await page.waitForFunction(() => document.body.innerText.includes('The test was accepted'));
  refusal = 404;
  const json = { 'Content-Type': 'application/json' };
  const body = JSON.stringify({ project: 'api' });
  const launched = await machine.ask('/api/v1/instances', { method: 'POST', headers: json, body });
  assert.equal(launched.status, 201);
  for (let failed = 0; failed < 2; ) failed = (await machine.api('/api/webhooks')).targets[1].failed;
  await page.reload({ waitUntil: 'load' });
  await seen(`${hook(2)} [data-state="given up"]`);
  await seen(`${hook(1)} [data-state=delivered]`);
  refusal = 204;
  await press(`${hook(2)} ${part('replay-webhook')}`);
  await page.waitForFunction(() => document.body.innerText.includes('posted again'));
  const text = await page.$eval(part('webhooks'), (all) => all.innerText);
  assert.match(text, /tried again for three days/);
  assert.doesNotMatch(text, /SECRET/);
  await shot('webhooks-desk');
});

test('the view fits a phone and a desk', async () => {
  const { look, resize } = await ruler(page);
  const found = await look('notifications', [390, 834, 1440]);
  assert.deepEqual(findings(found), []);
  await resize(390);
  await shot('notifications-phone');
  // What failed is said by the page, not by the browser.
  assert.deepEqual(complaints, []);
});
