// How the page looks and stays usable: themes, messages that lie over it, addresses kept for later.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DEADLINE_MS, launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

let machine;
let browser;

before(async () => {
  machine = await world({ api: {}, broken: { knobs: { fatal: 'login' } } });
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

async function open(path, { width = 1280, height = 800 } = {}) {
  const { page, complaints } = await tab(browser);
  await page.setViewport({ width, height });
  await page.goto(machine.url + path, { waitUntil: 'load' });
  return { page, complaints, ...person(page) };
}

const themed = (page, theme) =>
  page.waitForFunction((wanted) => document.documentElement.dataset.theme === wanted, {}, theme);

test('the theme follows the system until one is chosen', async () => {
  const { page, complaints, press } = await open('/');
  const system = (value) =>
    page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }]);
  await system('dark');
  await themed(page, 'dark');
  await system('light');
  await themed(page, 'light');
  await press(part('theme')); // light, chosen
  await press(part('theme')); // dark, chosen
  await themed(page, 'dark');
  // Left before the page knows that the choice is kept, the next one would meet it half way.
  await page.waitForFunction(() => JSON.parse(localStorage.getItem('svc.prefs')).rev === 2);
  await page.reload({ waitUntil: 'load' });
  await themed(page, 'dark');
  await press(part('theme')); // like the system again
  await themed(page, 'light');
  await system('dark');
  await themed(page, 'dark');
  await page.close();
  assert.deepEqual(complaints, []);
});

test('the address of every place in the navigation can be loaded again', async () => {
  const { page, complaints, seen } = await open('/');
  await seen('nav a[href]');
  const places = await page.$$eval('nav a[href]', (links) => links.map((link) => link.href));
  assert.ok(places.length >= 3, `${places}`);
  for (const place of new Set(places)) {
    const reply = await page.goto(place, { waitUntil: 'load' });
    assert.equal(reply.status(), 200, place);
    await seen('nav a[aria-current="page"]');
  }
  await page.close();
  assert.deepEqual(complaints, []);
});

for (const [name, size] of [
  ['desk', { width: 1280, height: 380 }],
  ['phone', { width: 390, height: 640 }],
]) {
  test(`what a message covers on a ${name} can be scrolled out from below it`, async () => {
    const { page, complaints, seen, press, covers, says } = await open('/', size);
    await press(`${part('section-projects')} [data-project="broken"] ${part('act-launch')}`);
    await press(part('launch-submit'));
    await says(part('toast'), 'broken');
    await seen(row('broken', 'error'));
    const last = `${part('section-projects')} li:last-child ${part('act-launch')}`;
    // A message may come or grow while the page is scrolled: then there is more to scroll.
    for (const begin = Date.now(); ; ) {
      await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
      if (!(await covers(await seen(last), part('toast')))) break;
      assert.ok(Date.now() - begin < DEADLINE_MS, 'a message lies over the last button');
      await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(drawn)));
    }
    await press(last);
    await seen(part('launch-dialog'));
    await page.close();
    assert.deepEqual(complaints, []);
  });
}
