// Ten thousand projects: the page stays small, and every row can be reached.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { world } from './world.mjs';

const COUNT = 10_000;

let machine;
let browser;
let page;
let complaints;
let seen, press;

const name = (n) => `p-${String(n).padStart(5, '0')}`;
const item = (n) => `${part('project-row')}[data-project="${name(n)}"]`;

const hasFocus = (n) =>
  page.waitForFunction(
    (where) => document.activeElement?.closest(where) != null,
    {},
    item(n),
  );

before(async () => {
  const all = Array.from({ length: COUNT }, (_, n) => [name(n), { trust: false }]);
  machine = await world(Object.fromEntries(all));
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press } = person(page));
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/projects`, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('H129: the list says how long it is and makes only the rows near the visible part', async () => {
  await seen(`${item(0)}[aria-posinset="1"][aria-setsize="${COUNT}"]`);
  const made = await page.evaluate(() => document.querySelectorAll('*').length);
  assert.ok(made <= 3_000, `${made} elements`);
});

test('the keyboard reaches the last row and comes back', async () => {
  await page.focus(`${item(0)} .name`);
  await page.keyboard.press('End');
  await hasFocus(COUNT - 1);
  await seen(`${item(COUNT - 1)}[aria-posinset="${COUNT}"]`);
  await page.keyboard.press('ArrowUp');
  await hasFocus(COUNT - 2);
  await page.keyboard.press('ArrowDown');
  await hasFocus(COUNT - 1);
  await page.keyboard.press('Home');
  await hasFocus(0);
});

test('a wheel that takes the focused row away does not lose the place', async () => {
  await page.evaluate(() => window.scrollTo(0, 200_000));
  await page.waitForFunction((where) => !document.querySelector(where), {}, item(0));
  await page.waitForFunction(() => document.activeElement?.matches('ul.projects'));
  await page.keyboard.press('ArrowDown');
  await hasFocus(1);
});

test('a search over all of them finds one', async () => {
  await press(part('search'));
  await page.keyboard.type('p-07777');
  await seen(`${item(7_777)}[aria-setsize="1"]`);
});

test('nothing was complained about', async () => {
  await page.close();
  assert.deepEqual(complaints, []);
});
