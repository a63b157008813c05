// Reaching and doing things by typing: the command palette, the keys, and the chips of Home.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

let machine;
let browser;
let page;
let complaints;
let seen, press, says, gone, shot;

const at = (path) => page.waitForFunction((wanted) => location.pathname === wanted, {}, path);

/** Opens the palette, types, and takes the first entry. */
async function run(words) {
  await page.keyboard.down('Control');
  await page.keyboard.press('k');
  await page.keyboard.up('Control');
  await page.waitForFunction(
    (where) => document.activeElement?.matches(where),
    {},
    part('palette-field'),
  );
  await page.keyboard.type(words);
  await says('#palette [aria-selected="true"]', words.split(' ').at(-1));
  await page.keyboard.press('Enter');
  await gone(part('palette'));
}

before(async () => {
  machine = await world({ api: {}, web: {} });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, shot } = person(page));
  await page.setViewport({ width: 1280, height: 800 });
  await page.goto(machine.url, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('a project is launched, stopped and resumed without a mouse', async () => {
  await seen(part('section-projects'));
  await run('Launch web');
  await seen(part('launch-submit'));
  await page.focus(part('launch-submit'));
  await page.keyboard.press('Enter');
  await seen(row('web', 'running'));
  await run('Stop web');
  await page.waitForFunction(
    (where) => document.activeElement?.matches(where),
    {},
    part('confirm-no'),
  );
  await page.keyboard.press('Tab', { delay: 0 });
  await page.focus(part('confirm-yes'));
  await page.keyboard.press('Enter');
  await seen(row('web', 'stopped'));
  await run('Resume web');
  await seen(row('web', 'running'));
});

test('the palette finds views, says what fits, and goes by Escape', async () => {
  await run('Activity');
  await at('/ui/activity');
  await press(part('palette-open'));
  await page.type(part('palette-field'), 'zzzz');
  await says(part('palette'), 'Nothing matches.');
  await shot('palette-empty');
  await page.keyboard.press('Escape');
  await gone(part('palette'));
  await press(part('palette-open'));
  await says('#palette', 'Home');
  await shot('palette');
  await page.keyboard.press('Escape');
  await gone(part('palette'));
});

test('letters go to views and rows, and do nothing in a field or when switched off', async () => {
  await page.keyboard.type('gh');
  await at('/ui/');
  await seen(row('web', 'running'));
  await page.keyboard.press('j');
  await page.waitForFunction(() => document.activeElement?.closest('[data-project="web"]'));
  await page.keyboard.press('s');
  await seen(`${row('web', 'running')} ${part('confirm')}`);
  await page.keyboard.press('Escape');
  await gone(part('confirm'));
  await page.keyboard.type('gp');
  await at('/ui/projects');
  await seen(part('search'));
  await page.keyboard.press('/');
  await page.waitForFunction((where) => document.activeElement?.matches(where), {}, part('search'));
  await page.keyboard.type('gh?');
  assert.equal(await page.$eval(part('search'), (field) => field.value), 'gh?');
  await at('/ui/projects');
  await page.focus('h1');
  await page.keyboard.type('?');
  await seen(part('keys'));
  await shot('keys');
  await press(part('keys-switch'));
  await page.keyboard.press('Escape');
  await gone(part('keys'));
  await page.focus('h1');
  await page.keyboard.type('gh');
  await press(part('help'));
  await seen(part('keys'));
  await at('/ui/projects');
  await press(part('keys-switch'));
  await page.keyboard.press('Escape');
  await gone(part('keys'));
});

test('Home shows one kind of rows, and the address keeps which', async () => {
  await press(part('nav-home'));
  await seen(row('web', 'running'));
  await press(part('only-background'));
  await gone(row('web', 'running'));
  await says(part('section-live-empty'), 'Nothing matches.');
  await page.reload({ waitUntil: 'load' });
  await seen(`${part('only-background')}[aria-pressed="true"]`);
  await press(part('only-server'));
  await seen(row('web', 'running'));
  await shot('home-filter');
});

test('nothing was complained about', async () => {
  await page.close();
  assert.deepEqual(complaints, []);
});
