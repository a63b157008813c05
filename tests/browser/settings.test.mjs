// The settings: shown with their source, changed, saved; a change of somebody else is told; the
// second list is behind the password; keys that only the file sets say why.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { findings, ruler } from './width.mjs';
import { world } from './world.mjs';

const PASSWORD = 'correct horse';
const HASH =
  '$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q$dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk';

let machine, browser, page, complaints, seen, press, says, gone, pick, shot;

const file = () => join(machine.root, 'svc.yml');
const setting = (key) => `[data-key="${key}"]`;
const field = (key) => `${setting(key)} input`;

/** Writes another text into a field and leaves it. */
async function fill(selector, text) {
  await press(selector);
  await page.keyboard.down('Control');
  await page.keyboard.press('KeyA');
  await page.keyboard.up('Control');
  await page.keyboard.type(text);
  await page.keyboard.press('Tab');
}

before(async () => {
  const auth = { enabled: true, password_required: true, password_hash: HASH };
  const hosted = { binary: '/nowhere/svc-hosted' };
  machine = await world({}, { auth, hosted, config_write: { enabled: true } }, PASSWORD);
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, pick, shot } = person(page));
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(machine.url, { waitUntil: 'load' });
  await page.waitForSelector('input[type=password]', { visible: true });
  await page.type('input[type=password]', PASSWORD);
  await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('what the service allows is offered, also when it is told after the settings', async () => {
  const { page: other, complaints: said } = await tab(browser);
  const one = person(other);
  await other.setRequestInterception(true);
  let told;
  other.on('request', (request) =>
    request.url().endsWith('/api/bootstrap') && !told ? (told = request) : request.continue(),
  );
  await other.goto(`${machine.url}/ui/settings`, { waitUntil: 'load' });
  await one.seen(part('settings'));
  await one.gone(part('settings-agent-config'));
  told.continue();
  await one.seen(part('settings-agent-config'));
  assert.deepEqual(said, []);
  await other.close();
});

test('H123: a setting is changed, saved and written to the file', async () => {
  await press(part('nav-settings'));
  await seen(part('settings'));
  await shot('settings-desk');
  await fill(field('restart.max_crashes'), '0');
  await seen(`${setting('restart.max_crashes')} ${part('setting-wrong')}`);
  await fill(field('restart.max_crashes'), '7');
  await gone(part('setting-wrong'));
  await press(`${setting('claude.auto_enable_remote_control')} [role=switch]`);
  await press(`${setting('api.openapi_enabled')} [role=switch]`);
  await says(part('settings-bar'), '3 changes');
  await shot('settings-changed');
  await press(part('settings-save'));
  await says(setting('api.openapi_enabled'), 'saved, needs a restart');
  const live = await page.$eval(setting('restart.max_crashes'), (row) => row.innerText);
  assert.match(live, /applies live/);
  assert.doesNotMatch(live, /saved, needs a restart/);
  await gone(part('settings-bar'));
  const text = await readFile(file(), 'utf8');
  assert.match(text, /max_crashes"?: 7/);
  assert.match(text, /auto_enable_remote_control"?: false/);
});

test('what a save would change is listed, and each change can be taken back', async () => {
  await fill(field('restart.max_crashes'), '9');
  await says(part('settings-bar'), '1 applies at once. Sessions keep running.');
  await press(`${setting('api.openapi_enabled')} [role=switch]`);
  await says(part('settings-bar'), '1 applies at once, 1 needs a restart of svc.');
  await press(part('settings-review'));
  await seen(part('settings-changes'));
  const rows = await page.$$eval(part('settings-change'), (all) =>
    all.map((row) => [...row.children].slice(0, 3).map((one) => one.innerText.trim())),
  );
  assert.deepEqual(rows, [
    ['api.openapi_enabled', 'On', 'Off'],
    ['restart.max_crashes', '7', '9'],
  ]);
  await shot('settings-review');
  await press('[aria-label="Undo restart.max_crashes"]');
  await says(part('settings-bar'), '1 change');
  assert.equal(await page.$eval(field('restart.max_crashes'), (input) => input.value), '7');
  await press('[aria-label="Undo api.openapi_enabled"]');
  await gone(part('settings-bar'));
});

test('a view with unsaved edits is not left without a question', async () => {
  await fill(field('restart.max_crashes'), '9');
  await press(part('nav-projects'));
  await seen(part('unsaved'));
  await shot('settings-unsaved');
  await press(part('unsaved-stay'));
  await gone(part('unsaved'));
  assert.match(page.url(), /\/ui\/settings$/);
  assert.equal(await page.$eval(field('restart.max_crashes'), (input) => input.value), '9');
  // The way back asks as well, and leads back once the answer is there.
  await page.evaluate(() => history.back());
  await seen(part('unsaved'));
  assert.match(page.url(), /\/ui\/settings$/);
  await press(part('unsaved-leave'));
  await gone(part('settings'));
  await page.waitForFunction(() => !location.pathname.endsWith('/ui/settings'));
  // Nothing was saved, and a view without edits is left at once.
  await press(part('nav-settings'));
  await seen(part('settings'));
  assert.equal(await page.$eval(field('restart.max_crashes'), (input) => input.value), '7');
  await press(part('nav-projects'));
  await gone(part('settings'));
  assert.equal(await page.$(part('unsaved')), null);
  await press(part('nav-settings'));
  await seen(part('settings'));
});

test('what needs a program that is missing says so and cannot be switched on', async () => {
  await says(setting('hosted.enabled'), 'not installed');
  await says(`${setting('hosted.enabled')} ${part('setting-missing')}`, 'svc-hosted was not found');
  assert.equal(await page.$eval(`${setting('hosted.enabled')} [role=switch]`, (one) => one.disabled), true);
});

test('H123: a change of somebody else is told, and the own one stays', async () => {
  await fill(field('restart.max_crashes'), '8');
  await seen(part('settings-bar'));
  const text = await readFile(file(), 'utf8');
  await writeFile(file(), text.replace(/max_crashes("?): 7/, 'max_crashes$1: 6'));
  await press(part('settings-save'));
  await seen(part('settings-problem'));
  await seen(`${setting('restart.max_crashes')} ${part('setting-conflict')}`);
  assert.equal(await page.$eval(field('restart.max_crashes'), (input) => input.value), '8');
  await press(part('settings-save'));
  await gone(part('settings-bar'));
  assert.match(await readFile(file(), 'utf8'), /max_crashes"?: 8/);
});

test('the second list opens with the password, and is locked again', async () => {
  await press(part('settings-unlock'));
  await page.type('#settings-password', PASSWORD);
  await press(part('settings-confirm'));
  await seen(part('settings-open'));
  await says(part('settings-left'), 'Open for 9 min');
  await fill(field('clone.max_mb'), '100');
  await press(part('settings-save'));
  await gone(part('settings-bar'));
  assert.match(await readFile(file(), 'utf8'), /max_mb"?: 100/);
  await shot('settings-advanced');
  await press(part('settings-lock'));
  await seen(part('settings-locked'));
});

test('H114: the restart that saved settings wait for is asked about, done and told', async () => {
  await seen(part('settings-waits'));
  await press(part('settings-restart'));
  await says(part('restart-keeps'), 'No session is running.');
  await shot('settings-restart');
  await press(part('restart-cancel'));
  await gone(part('restart-dialog'));
  await press(part('settings-restart'));
  await press(part('restart-begin'));
  // The settings are read again from the service that is back.
  await gone(part('settings-waits'));
  await gone(part('restart-dialog'));
  assert.match(await page.$eval('body', (body) => body.innerText), /svc is running again/);
  await seen(setting('restart.max_crashes'));
  assert.equal(await page.$eval(field('restart.max_crashes'), (input) => input.value), '8');
  const badges = await page.$eval(setting('api.openapi_enabled'), (row) => row.innerText);
  assert.doesNotMatch(badges, /saved, needs a restart/);
});

test('the restart is offered in the palette and in About', async () => {
  await page.keyboard.down('Control');
  await page.keyboard.press('KeyK');
  await page.keyboard.up('Control');
  await seen(part('palette'));
  await page.type(part('palette-field'), 'restart svc');
  await page.keyboard.press('Enter');
  await seen(part('restart-dialog'));
  await page.keyboard.press('Escape');
  await gone(part('restart-dialog'));
  await press(part('nav-about'));
  await press(part('about-restart'));
  await seen(part('restart-dialog'));
  await press(part('restart-cancel'));
  await gone(part('restart-dialog'));
  await press(part('nav-settings'));
  await seen(part('settings'));
});

/** The section that the list beside the settings marks. */
const marked = () =>
  page.$$eval(`${part('settings-place')}[aria-current]`, (all) => all.map((one) => one.innerText.trim()));

test('the list of sections marks the one in view and leads to each', async () => {
  await page.evaluate(() => scrollTo(0, 0));
  await until(async () => (await marked()).join() === 'General');
  const places = await page.$$(part('settings-place'));
  for (const name of ['Logs', 'Clone and webhooks', 'Only in the file', 'Agent']) {
    const labels = await Promise.all(places.map((one) => one.evaluate((it) => it.innerText.trim())));
    await places[labels.indexOf(name)].click();
    await until(async () => (await marked()).join() === name);
  }
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await until(async () => (await marked()).join() === 'Only in the file');
});

test('the key of a setting is copied', async () => {
  // What is copied is kept here: a browser without a desktop has no clipboard.
  await page.evaluate(() => {
    navigator.clipboard.writeText = async (text) => (window.copied = text);
  });
  await press(`${setting('restart.max_crashes')} ${part('setting-copy')}`);
  await page.waitForFunction(() => window.copied === 'restart.max_crashes');
});

test('a searcher finds keys that only the file sets, and why', async () => {
  await page.focus('h1');
  await page.keyboard.press('/');
  await page.keyboard.type('no such key');
  await says(part('settings-none'), 'No setting matches. Locked settings were not searched.');
  const left = await page.$$eval(`${part('settings-place')}:not([hidden])`, (all) => all.length);
  assert.equal(left, 1, 'only the locked list has a place');
  await fill(part('settings-filter'), 'password_hash');
  await gone(part('settings-none'));
  await page.waitForFunction(() => document.querySelectorAll('[data-testid=setting]:not([hidden])').length === 0);
  const found = await page.$$eval(`${part('file-only')}:not([hidden])`, (all) => all.map((one) => one.innerText));
  assert.equal(found.length, 1, found.join('\n'));
  assert.match(found[0], /decides who may sign in/);
});

test('the settings fit every width', async () => {
  await page.goto(`${machine.url}/ui/settings`, { waitUntil: 'load' });
  await seen(part('settings'));
  const { look, resize } = await ruler(page);
  assert.deepEqual(findings(await look('settings')), []);
  await shot('settings-phone');
  // With all that lies over it: the second list, the edits, their review, another's change.
  await resize(1440);
  await press(part('settings-unlock'));
  await page.type('#settings-password', PASSWORD);
  await press(part('settings-confirm'));
  await seen(part('settings-open'));
  await fill(field('clone.max_mb'), '200');
  await press(`${setting('api.openapi_enabled')} [role=switch]`);
  await fill(field('restart.max_crashes'), '9');
  const text = await readFile(file(), 'utf8');
  await writeFile(file(), text.replace(/max_crashes("?): 8/, 'max_crashes$1: 5'));
  await press(part('settings-save'));
  await seen(`${setting('restart.max_crashes')} ${part('setting-conflict')}`);
  await press(part('settings-review'));
  await seen(part('settings-changes'));
  assert.deepEqual(findings(await look('settings, all open')), []);
});

test('where the list of sections has no room, a menu leads to each', async () => {
  await page.setViewport({ width: 768, height: 1024 });
  const menu = part('settings-goto');
  await pick(menu, 'settings-logs');
  await page.waitForFunction(() => document.activeElement?.id === 'settings-logs');
  await shot('settings-tablet');
  assert.equal(await page.$eval(menu, (list) => list.value), '', 'it can be chosen again');
  const names = await page.$$eval(`${menu} option:not([value=""])`, (all) => all.map((one) => one.text));
  const places = await page.$$eval(part('settings-place'), (all) =>
    all.map((one) => one.querySelector('span').textContent),
  );
  assert.deepEqual(names, places);
  assert.equal(await page.$eval(part('settings-place'), (one) => one.checkVisibility()), false);
  assert.deepEqual(
    complaints.filter((one) => !/401|403|409/.test(one)),
    [],
  );
});
