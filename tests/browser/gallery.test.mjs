// The gallery of components: reached from About, in every state and theme, and harmless.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { world } from './world.mjs';

const GALLERY = '/ui/about/components';

let machine;
let browser;

before(async () => {
  machine = await world({ web: {} });
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

/** A tab that remembers what it asked the service for. */
async function open(path) {
  const { page, complaints } = await tab(browser);
  const asked = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await page.setViewport({ width: 1280, height: 800 });
  await page.goto(machine.url + path, { waitUntil: 'load' });
  return { page, complaints, asked, ...person(page) };
}

test('About leads to the gallery, and no other visit fetches anything of it', async () => {
  const { page, complaints, asked, seen, press } = await open('/ui/about');
  await seen(part('components'));
  assert.deepEqual(asked.filter((path) => /gallery|samples/.test(path)), []);
  await press(part('components'));
  await seen(part('gallery'));
  assert.ok(asked.some((path) => /svc-gallery/.test(path)), `${asked}`);
  await page.close();
  assert.deepEqual(complaints, []);
});

for (const [state, there] of [
  ['', part('session-row')],
  ['loading', '[aria-busy=true]'],
  ['empty', part('welcome')],
  ['error', part('no-start')],
  ['stale', part('session-row')],
]) {
  for (const theme of ['light', 'dark']) {
    test(`the gallery shows ${state || 'the usual state'} in the ${theme} theme`, async () => {
      const path = `${GALLERY}?state=${state}&theme=${theme}`;
      const { page, complaints, seen, gone } = await open(path);
      await seen(`[data-sheet=rows-of-sessions] ${there}`);
      if (state === 'stale') await seen(part('offline-banner'));
      else await gone(part('offline-banner'));
      const [now, wide, inner] = await page.evaluate(() => {
        const root = document.documentElement;
        return [root.dataset.theme, root.scrollWidth, root.clientWidth];
      });
      assert.equal(now, theme);
      assert.ok(wide <= inner, `${wide} px wide on ${inner} px`);
      await page.close();
      assert.deepEqual(complaints, []);
    });
  }
}

test('what is pressed in the gallery is answered there and reaches no service', async () => {
  const { page, complaints, asked, seen, press, says } = await open(GALLERY);
  const row = '[data-sheet=rows-of-sessions] [data-project=docs-site][data-status=starting]';
  await press(`${row} ${part('act-stop')}`);
  await press(`${row} ${part('confirm-yes')}`);
  await says(part('toast'), 'samples');
  await press(`${row} a.name`);
  await seen(part('gallery'));
  assert.equal(new URL(page.url()).pathname, GALLERY);
  assert.deepEqual(asked.filter((path) => /\/(api|ws)\//.test(path)), []);
  await page.close();
  assert.deepEqual(complaints, []);
});
