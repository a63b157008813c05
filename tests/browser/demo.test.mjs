// What a newcomer sees after one command: the demo, marked as one, alive, and without a complaint.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, serve, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { world } from './world.mjs';

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

test('the last step of the demo opens no foreign address', async () => {
  const { page, complaints } = await tab(browser);
  const { seen } = person(page);
  await page.goto(service.url, { waitUntil: 'load' });
  const opens = await seen(part('act-open'));
  await page.goto(await opens.evaluate((link) => link.href), { waitUntil: 'load' });
  await seen(part('open-demo'));
  assert.equal(new URL(page.url()).origin, service.url);
  await page.close();
  assert.deepEqual(complaints, []);
});

test('About names one licence', async () => {
  const { page, complaints } = await tab(browser);
  const { seen } = person(page);
  await page.goto(`${service.url}/ui/about`, { waitUntil: 'load' });
  await seen(part('about'));
  const text = await page.$eval('main', (main) => main.innerText);
  assert.equal(text.match(/licence/gi)?.length, 1);
  assert.match(text, /\bMIT\b/);
  assert.doesNotMatch(text, /Apache/);
  await page.close();
  assert.deepEqual(complaints, []);
});

test('an agent that is missing is told of once, and not asked to be signed in', async (t) => {
  const machine = await world({ web: {} }, { claude: { binary: '/no/such/agent' } });
  t.after(machine.close);
  const { page } = await tab(browser);
  const { seen, says } = person(page);
  await page.goto(machine.url, { waitUntil: 'load' });
  await says(part('strip'), 'The agent was not found');
  await seen(part('section-projects'));
  const strips = await page.$$eval(part('strip'), (all) => all.map((strip) => strip.innerText));
  assert.equal(strips.length, 1, strips.join('\n'));
  assert.doesNotMatch(await page.$eval('main', (main) => main.innerText), /sign in the agent/i);
  await page.close();
});
