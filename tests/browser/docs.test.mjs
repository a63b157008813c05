// The API description in a browser: it renders from this service alone, under its content policy,
// and calls the API.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { world } from './world.mjs';

let browser;
let place;

before(async () => {
  place = await world({ orchard: {} }, { api: { openapi_enabled: true }, root_path: '/tools/svc' });
  browser = await launch();
});

after(async () => {
  await browser?.close();
  assert.equal(await place?.close(), 0);
});

test('the API page renders without a foreign host and calls the API', async () => {
  const { page, complaints } = await tab(browser);
  const foreign = [];
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol !== 'data:' && url.origin !== place.url) foreign.push(request.url());
  });
  await page.goto(`${place.url}/tools/svc/docs`, { waitUntil: 'load' });
  await page.waitForSelector('#operations-projects-listProjects');
  const operations = await page.$$eval('.opblock', (blocks) => blocks.length);
  assert.ok(operations >= 14, `${operations} operations`);
  assert.match(await page.$eval('.info .title', (title) => title.innerText), /svc/);

  await page.click('#operations-projects-listProjects .opblock-summary-control');
  await page.waitForSelector('#operations-projects-listProjects .try-out__btn', { visible: true });
  await page.click('#operations-projects-listProjects .try-out__btn');
  await page.waitForSelector('#operations-projects-listProjects .execute', { visible: true });
  await page.click('#operations-projects-listProjects .execute');
  const answer = '#operations-projects-listProjects .live-responses-table';
  await page.waitForFunction(
    (selector) => document.querySelector(selector)?.innerText.includes('orchard'),
    {},
    answer,
  );
  assert.match(await page.$eval(answer, (table) => table.innerText), /\b200\b/);
  await page.close();
  assert.deepEqual(foreign, []);
  assert.deepEqual(complaints, []);
});
