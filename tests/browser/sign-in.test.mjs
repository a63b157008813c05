// A sign-in that ends while somebody is typing.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { world } from './world.mjs';

const PASSWORD = 'correct horse';
const HASH =
  '$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q$dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk';

let machine;
let browser;
let page;
let seen, press, gone, shot;

before(async () => {
  const auth = { enabled: true, password_required: true, password_hash: HASH };
  machine = await world({ api: {} }, { auth }, PASSWORD);
  browser = await launch();
  ({ page } = await tab(browser)); // its refusals are what is looked at
  ({ seen, press, gone, shot } = person(page));
  await page.setViewport({ width: 1280, height: 800 });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

async function signIn(where) {
  await where.waitForSelector('input[type=password]', { visible: true });
  await where.type('input[type=password]', PASSWORD);
  await Promise.all([where.waitForNavigation(), where.keyboard.press('Enter')]);
}

test('the password leads to the view that was asked for', async () => {
  await page.goto(`${machine.url}/ui/projects`, { waitUntil: 'load' });
  await signIn(page);
  assert.equal(new URL(page.url()).pathname, '/ui/projects');
  await seen(part('project-row'));
});

test('H132: a sign-in that ends is shown, and typed text is there after the next one', async () => {
  await press(`${part('project-row')} ${part('act-launch')}`);
  await seen('#launch-name');
  await page.type('#launch-name', 'half filled');
  const cookies = await page.cookies();
  const Cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
  const headers = { Cookie, Origin: machine.url };
  const left = await machine.ask('/logout', { method: 'POST', redirect: 'manual', headers });
  assert.ok(left.status < 400, `${left.status}`);
  await seen(part('signed-out'));
  await shot('signed-out');
  const opened = new Promise((resolve) => {
    browser.once('targetcreated', resolve);
  });
  await press(part('sign-in'));
  await signIn(await (await opened).page());
  await page.bringToFront();
  await gone(part('signed-out'));
  assert.equal(await page.$eval('#launch-name', (field) => field.value), 'half filled');
});
