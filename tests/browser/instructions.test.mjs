// The editor of what a project tells its agents.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { world } from './world.mjs';

let machine, browser, page, complaints, file;
let seen, press, gone, shot;

before(async () => {
  machine = await world({ ledger: {} });
  file = join(machine.root, 'projects', 'ledger', 'CLAUDE.md');
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, gone, shot } = person(page));
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/projects/ledger?tab=instructions`, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

const typed = () => page.$eval('#instructions-text', (field) => field.value);

test('the file is made from nothing', async () => {
  await seen(part('instructions-none'));
  await page.type('#instructions-text', 'Be brief.');
  await press(part('instructions-save'));
  await gone(part('instructions-none'));
  assert.equal(readFileSync(file, 'utf8'), 'Be brief.');
  await shot('instructions-desk');
});

test('what was written on the machine meanwhile is shown, and one of both is chosen', async () => {
  await page.type('#instructions-text', ' And kind.');
  writeFileSync(file, 'By hand.');
  await press(part('instructions-save'));
  await seen(part('instructions-conflict'));
  assert.ok((await page.$eval(part('instructions-conflict'), (it) => it.innerText)).includes('By hand.'));
  assert.ok((await typed()).includes('And kind.'), 'nothing that was typed is lost');
  await page.setViewport({ width: 390, height: 844 });
  await shot('instructions-conflict-phone');
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `no sideways scrolling: ${wide}`);
  await press(part('instructions-mine'));
  await gone(part('instructions-conflict'));
  await until(() => readFileSync(file, 'utf8').includes('And kind.'));

  await page.type('#instructions-text', '!');
  assert.ok((await typed()).endsWith('!'), 'what is typed during a save stays');
  writeFileSync(file, 'By hand again.');
  await press(`${part('instructions-save')}:not([aria-disabled])`);
  await press(part('instructions-theirs'));
  await gone(part('instructions-conflict'));
  assert.equal(await typed(), 'By hand again.');
  assert.equal(readFileSync(file, 'utf8'), 'By hand again.');
  // The browser itself notes each refusal.
  assert.ok(complaints.every((line) => line.includes('409')), complaints.join('\n'));
});
