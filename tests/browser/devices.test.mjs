// Devices and tokens: who can reach the service, who is signed in, which programs may come in.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { findings, ruler } from './width.mjs';
import { world } from './world.mjs';

const PASSWORD = 'correct horse';
const HASH =
  '$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q$dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk';
const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1';

let machine;
let browser;
let page;
let complaints;
let seen, press, gone, shot;

/** Signs another device in and returns its cookie. */
async function another(agent) {
  const headers = { 'Content-Type': 'application/json', Origin: machine.url, 'User-Agent': agent };
  const body = JSON.stringify({ password: PASSWORD });
  const answer = await machine.ask('/login', { method: 'POST', headers, body });
  assert.equal(answer.status, 200);
  return answer.headers.get('set-cookie').split(';')[0];
}

const opens = async (cookie) =>
  (await machine.ask('/api/projects', { headers: { Cookie: cookie } })).status;

before(async () => {
  const auth = { enabled: true, password_required: true, password_hash: HASH };
  machine = await world({ api: {} }, { auth }, PASSWORD);
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, gone, shot } = person(page));
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/tokens`, { waitUntil: 'load' });
  await page.waitForSelector('input[type=password]', { visible: true });
  await page.type('input[type=password]', PASSWORD);
  await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('the sign-in leads to the devices, and this one is marked', async () => {
  await seen(part('reach'));
  const own = await page.$$eval(part('device'), (rows) => rows.map((row) => row.innerText));
  const marked = own.filter((text) => text.includes('this one'));
  assert.equal(marked.length, 1, own.join('\n'));
  const codes = await page.$$eval(part('finding'), (rows) => rows.map((row) => row.dataset.code));
  for (const code of ['listen', 'sign_in', 'encryption']) assert.ok(codes.includes(code), code);
});

test('a token is issued with the password, and its secret is shown once', async () => {
  await press(part('issue-token'));
  await seen(part('token-dialog'));
  await page.type('#token-label', 'status board');
  await page.type('#token-password', 'wrong');
  await press(part('token-submit'));
  await seen(part('token-problem'));
  await page.$eval('#token-password', (field) => {
    field.value = '';
  });
  await page.type('#token-password', PASSWORD);
  await shot('token-issue');
  await press(part('token-submit'));
  await seen(part('token-secret'));
  const secret = await page.$eval(`${part('token-secret')} code`, (code) => code.textContent);
  assert.match(secret, /^svc_pat_[\w-]{43}$/);
  await shot('token-secret');
  const isOpen = () => page.$eval(part('token-secret'), (it) => it.closest('dialog').open);
  for (const key of ['Escape', 'Escape', 'Escape']) await page.keyboard.press(key);
  await page.keyboard.down('Control');
  await page.keyboard.press('KeyK');
  await page.keyboard.up('Control');
  // Two frames later whatever these keys lead to has been drawn.
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  assert.ok(await isOpen(), 'no key takes the secret away');
  assert.equal(await page.$(part('palette')), null);
  await press(part('token-stored'));
  await seen(part('token'));
  await gone(part('token-secret'));
  assert.ok(!(await page.content()).includes(secret), 'nothing of it is left on the page');
  const ask = () =>
    machine.ask('/api/projects', { headers: { Authorization: `Bearer ${secret}` } });
  assert.equal((await ask()).status, 200);
  await press(part('revoke-token'));
  await press(part('confirm-yes'));
  await gone(part('token'));
  assert.equal((await ask()).status, 401);
});

test('one other device is signed out, then all others', async () => {
  const phone = await another(IPHONE);
  const others = [await another('curl/8.5.0'), await another(IPHONE)];
  await page.reload({ waitUntil: 'load' });
  await page.waitForFunction(
    (rows) => document.querySelectorAll(rows).length === 4,
    {},
    part('device'),
  );
  const named = await page.$$eval(part('device'), (rows) => rows.map((row) => row.innerText));
  assert.ok(named.some((text) => text.includes('Safari on iPhone')), named.join('\n'));
  const listed = await (await machine.ask('/api/devices', { headers: { Cookie: phone } })).json();
  const { id } = listed.find((device) => device.current);
  await press(`[data-sign-out="${id}"]`);
  await seen(part('confirm'));
  await shot('devices-desk');
  await press(part('confirm-yes'));
  await gone(`[data-device="${id}"]`);
  assert.equal(await opens(phone), 401);
  for (const other of others) assert.equal(await opens(other), 200);
  await press('[data-sign-out="others"]');
  await press(part('confirm-yes'));
  await page.waitForFunction(
    (rows) => document.querySelectorAll(rows).length === 1,
    {},
    part('device'),
  );
  for (const other of others) assert.equal(await opens(other), 401);
});

test('the view fits a phone and a desk', async () => {
  await another(IPHONE);
  await machine.cli('api-token', 'issue', 'old laptop script');
  await machine.cli('api-token', 'issue', 'nightly jobs', '--scope', 'operate', '--expires', '30d');
  await page.reload({ waitUntil: 'load' });
  await seen(part('token'));
  const { look, resize } = await ruler(page);
  const found = await look('devices', [390, 834, 1440]);
  assert.deepEqual(findings(found), []);
  for (const width of [390, 1440]) {
    await resize(width);
    await shot(`devices-${width}`);
  }
});

test('nothing was complained of but the wrong password', () => {
  assert.deepEqual(
    complaints.filter((one) => !/401|403/.test(one)),
    [],
  );
});
