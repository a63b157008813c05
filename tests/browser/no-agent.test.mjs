// A machine without the agent: it is said once, with what to do, and nobody is told to sign in
// what is not there.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { world } from './world.mjs';

let machine, browser, page, complaints;
let seen, says;

before(async () => {
  machine = await world({ api: {} }, { claude: { binary: '/nowhere/claude' } });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, says } = person(page));
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

for (const [width, height] of [[1440, 900], [390, 844]]) {
  test(`a missing agent is told of once, at ${width} px`, async () => {
    await page.setViewport({ width, height });
    await page.goto(machine.url, { waitUntil: 'load' });
    await says(part('strip'), 'The agent was not found');
    await says(part('strip'), 'claude.binary');
    // The checks have run: what they found about the agent is not told a second time.
    await page.waitForFunction(
      (where) => /\d/.test(document.querySelector(where)?.textContent),
      {},
      part('ready-pill'),
    );
    assert.equal((await page.$$(part('strip'))).length, 1);
    const main = await page.$eval('main', (all) => all.textContent);
    assert.equal(/not signed in/.test(main), false, main);
  });
}

test('nothing was complained about', async () => {
  await seen('main');
  assert.deepEqual(complaints, []);
});
