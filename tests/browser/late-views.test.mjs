// The views beside Home are in modules of their own. They come when Home is at rest, or when one of
// them is opened; what does not come is said, and can be fetched once more.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { IS_LATE_MODULE, launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

let machine, browser;

before(async () => {
  machine = await world({ web: {} });
  await machine.cli('start', 'web', '--wait', '20');
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

/** A browser that has nothing yet, with what was asked for of the modules. */
async function newcomer(refused = () => false) {
  const context = await browser.createBrowserContext();
  const { page, complaints } = await tab(context);
  const asked = [];
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    if (!IS_LATE_MODULE.test(request.url())) return request.continue();
    asked.push(request.url());
    return refused() ? request.abort('failed') : request.continue();
  });
  return { context, page, complaints, asked, ...person(page) };
}

test('Home comes without the other modules, which come when it is at rest', async () => {
  const { context, page, complaints, asked, seen, press } = await newcomer();
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await seen(row('web', 'running'));
  assert.deepEqual(asked, [], 'Home needs none of them');
  await page.waitForNetworkIdle({ idleTime: 3_000 });
  assert.equal(new Set(asked).size, 3);
  const before = asked.length;
  await press(part('nav-settings'));
  await seen(part('settings'));
  assert.equal(asked.length, before, 'what is here is not fetched again');
  assert.deepEqual(complaints, []);
  await context.close();
});

test('an address of another view shows that view in a browser that has nothing yet', async () => {
  const [bridge] = await machine.api('/api/instances');
  const { context, page, complaints, seen } = await newcomer();
  await page.goto(`${machine.url}/ui/s/${bridge.instance_id}`, { waitUntil: 'load' });
  await seen(part('session'));
  assert.deepEqual(complaints, []);
  await context.close();
});

test('a view that cannot be fetched says so, and comes when it is asked for again', async () => {
  let is_cut = true;
  const { context, page, seen, says, press, gone } = await newcomer(() => is_cut);
  await page.goto(`${machine.url}/ui/settings`, { waitUntil: 'load' });
  await says(part('view-failed'), 'This view could not be loaded');
  assert.match(await page.title(), /could not be loaded/);
  // The rest of the page works meanwhile.
  await press(part('nav-home'));
  await seen(row('web', 'running'));
  await page.goBack();
  await seen(part('view-failed'));
  is_cut = false;
  await press(part('view-again'));
  await seen(part('settings'));
  await gone(part('view-failed'));
  await context.close();
});
