// What a newcomer sees after one command: the demo, marked as one, alive, and without a complaint.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, serve, tab } from './harness.mjs';

let browser;
let service;

before(async () => {
  service = await serve();
  browser = await launch();
});

after(async () => {
  await browser?.close();
  assert.equal(await service?.stop(), 0);
});

for (const [name, width, height] of [
  ['desk', 1280, 800],
  ['phone', 390, 844],
]) {
  test(`the demo is marked and alive on a ${name}`, async () => {
    const { page, complaints } = await tab(browser);
    await page.setViewport({ width, height });
    await page.goto(service.url, { waitUntil: 'load' });
    await page.waitForSelector('[data-instance][data-status="running"]', { visible: true });
    await page.waitForSelector('[data-testid="section-projects"] [data-project]');
    const text = await page.$eval('body', (body) => body.innerText);
    assert.match(text, /\bDEMO\b/);
    const [wide, inner] = await page.evaluate(() => [
      document.documentElement.scrollWidth,
      document.documentElement.clientWidth,
    ]);
    assert.ok(wide <= inner, `${wide} px wide on ${inner} px`);
    if (process.env.SVC_SHOTS) {
      mkdirSync(process.env.SVC_SHOTS, { recursive: true });
      await page.screenshot({ path: join(process.env.SVC_SHOTS, `demo-${name}.png`) });
    }
    await page.close();
    assert.deepEqual(complaints, []);
  });
}
