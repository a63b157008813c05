// The terminal panel in the gallery: the grid, the lines above it, search and copying. The samples
// stand in for a session.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { wrongCells } from './cells.mjs';
import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { world } from './world.mjs';

const SHEET = '[data-sheet=terminal]';
const LIVE = `${SHEET} [data-testid=terminal]`;

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

async function open() {
  const { page, complaints } = await tab(browser);
  await page.setViewport({ width: 390, height: 844, isMobile: true, hasTouch: true });
  await page.goto(`${machine.url}/ui/about/components?theme=dark`, { waitUntil: 'load' });
  await page.waitForSelector(`${LIVE} .term-screen .term-row span`);
  return { page, complaints, ...person(page) };
}

test('every cell of the service stands in its column of the page', async () => {
  const { page, complaints } = await open();
  const sample = await page.evaluate(() => SAMPLES.terminal.live);
  const wrong = await page.evaluate(wrongCells, LIVE, sample);
  assert.deepEqual(wrong, []);
  await page.close();
  assert.deepEqual(complaints, []);
});

test('the lines above the screen are read on demand and stay where they are', async () => {
  const { page, complaints } = await open();
  await page.evaluate((live) => document.querySelector(`${live} [data-testid=terminal-older]`).click(), LIVE);
  await page.waitForSelector(`${LIVE} .term-past`);
  const [first, last] = await page.evaluate((live) => {
    const past = [...document.querySelectorAll(`${live} .term-past`)];
    return [past.at(0).textContent, past.at(-1).textContent];
  }, LIVE);
  assert.deepEqual([first, last], ['line 40 above the screen', 'line 239 above the screen']);
  await page.waitForSelector(`${LIVE} [data-testid=terminal-to-end]`);
  await page.evaluate((live) => document.querySelector(`${live} [data-testid=terminal-to-end]`).click(), LIVE);
  await page.waitForFunction((live) => !document.querySelector(`${live} .term-past`), {}, LIVE);
  await page.close();
  assert.deepEqual(complaints, []);
});

test('a panel without a screen says why and is no empty black area', async () => {
  const { page, complaints, seen } = await open();
  await seen(`${SHEET} ${part('terminal-why')}`);
  const heights = await page.$$eval(`${SHEET} .term-why`, (all) => all.map((it) => it.clientHeight));
  assert.equal(heights.length, 6);
  assert.ok(heights.every((height) => height > 0 && height <= 160), `${heights}`);
  const shown = await page.$$eval(`${SHEET} .term-body`, (all) => all.filter((it) => it.offsetHeight > 0).length);
  assert.equal(shown, 2, 'the live one and the last screen');
  await page.close();
  assert.deepEqual(complaints, []);
});
