// What somebody chose: shown at once, kept by the service, the same in every tab.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { world } from './world.mjs';

const PASSWORD = 'correct horse';
const HASH =
  '$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q$dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk';

let machine;
let browser;
let page;
let complaints;
let seen, press, says, gone, pick, shot;

// A tab in the background paints nothing, so nothing is looked for once per frame.
const polling = 50;

const theme = (where, wanted) =>
  where.waitForFunction(
    (word) => document.documentElement.dataset.theme === word,
    { polling },
    wanted,
  );

/** Waits until the service keeps this value. */
const kept = (member, value) =>
  page.waitForFunction(
    async (name, wanted) => {
      const reply = await fetch('/api/ui-prefs');
      return JSON.stringify((await reply.json()).prefs[name]) === wanted;
    },
    { polling },
    member,
    JSON.stringify(value),
  );

async function signIn() {
  await page.waitForSelector('input[type=password]', { visible: true });
  await page.type('input[type=password]', PASSWORD);
  await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
}

before(async () => {
  const auth = { enabled: true, password_required: true, password_hash: HASH };
  machine = await world({ api: {}, web: {} }, { auth }, PASSWORD);
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, pick, shot } = person(page));
  await page.setViewport({ width: 1280, height: 800 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'light' }]);
  await page.goto(`${machine.url}/ui/about`, { waitUntil: 'load' });
  await signIn();
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('a theme, a density and a zone are chosen on About and kept by the service', async () => {
  await seen(part('prefs'));
  await theme(page, 'light');
  await pick(part('pref-theme'), 'dark');
  await theme(page, 'dark');
  await pick(part('pref-density'), 'compact');
  await page.waitForFunction(() => document.documentElement.dataset.density === 'compact');
  await pick(part('pref-zone'), 'utc');
  await kept('zone', 'utc');
  await kept('theme', 'dark');
  await kept('density', 'compact');
  await shot('prefs');
});

test('another tab follows at once, and takes nothing back', async () => {
  const other = await browser.newPage();
  await other.goto(`${machine.url}/ui/about`, { waitUntil: 'load' });
  await other.waitForSelector(part('pref-theme'), { visible: true });
  await theme(other, 'dark');
  await other.select(part('pref-theme'), 'light');
  await theme(page, 'light');
  await kept('theme', 'light');
  await other.select(part('pref-theme'), 'dark');
  await theme(page, 'dark');
  await kept('theme', 'dark');
  await other.close();
  await page.bringToFront();
  await kept('density', 'compact');
});

test('what another device chose meanwhile is kept beside a choice made here', async () => {
  const there = await page.evaluate(async () => {
    const { prefs, rev } = await (await fetch('/api/ui-prefs')).json();
    const body = JSON.stringify({ prefs: { ...prefs, favourites: ['web'] }, rev });
    const headers = { 'Content-Type': 'application/json' };
    return (await fetch('/api/ui-prefs', { method: 'PUT', headers, body })).status;
  });
  assert.equal(there, 200);
  await pick(part('pref-zone'), '');
  await kept('zone', undefined);
  await kept('favourites', ['web']);
  // The stale answer is how the page learns of it.
  const stale = complaints.splice(0).filter((text) => !/409/.test(text));
  assert.deepEqual(stale, []);
});

test('a choice the service did not hear of is said, and told with the next one', async () => {
  const lose = (request) =>
    request.method() === 'PUT' ? request.abort() : request.continue();
  await page.setRequestInterception(true);
  page.on('request', lose);
  await pick(part('pref-zone'), 'utc');
  await says(part('toast'), 'Not saved yet');
  page.off('request', lose);
  await page.setRequestInterception(false);
  await pick(part('pref-density'), '');
  await kept('density', undefined);
  await kept('zone', 'utc');
  await pick(part('pref-density'), 'compact');
  await pick(part('pref-zone'), '');
  await kept('density', 'compact');
  await kept('zone', undefined);
  const lost = complaints.splice(0).filter((text) => !/ERR_FAILED|ui-prefs/.test(text));
  assert.deepEqual(lost, []);
});

test('an answer that was on its way while a choice was kept takes nothing back', async () => {
  const other = await browser.newPage();
  const steps = new EventEmitter();
  const [asked, late] = [once(steps, 'asked'), once(steps, 'late')];
  await other.setRequestInterception(true);
  const hold = async (request) => {
    if (!request.url().endsWith('/api/bootstrap')) return request.continue();
    // What the service said before the choice, told to the page after it.
    const old = await page.evaluate(async () => (await fetch('/api/bootstrap')).text());
    steps.emit('asked');
    await late;
    return request.respond({ status: 200, contentType: 'application/json', body: old });
  };
  other.on('request', hold);
  const told = other.waitForResponse((reply) => reply.url().endsWith('/api/bootstrap'));
  await other.goto(`${machine.url}/ui/projects`, { waitUntil: 'load' });
  await asked;
  const theirs = person(other);
  await theme(other, 'dark');
  await theirs.press(part('theme')); // like the system
  await kept('theme', undefined);
  const { rev } = await page.evaluate(async () => (await fetch('/api/ui-prefs')).json());
  await other.waitForFunction(
    (kept) => JSON.parse(localStorage.getItem('svc.prefs')).rev === kept,
    { polling },
    rev,
  );
  steps.emit('late');
  await told;
  // Made of what the answer says: then it was taken in.
  await theirs.seen(part('act-launch'));
  await theme(other, 'light');
  await theirs.press(part('theme')); // light, chosen
  await kept('theme', 'light');
  await theirs.press(part('theme'));
  await kept('theme', 'dark');
  other.off('request', hold);
  await other.close();
  assert.deepEqual(complaints.splice(0), []);
});

test('a letter gets another key, and the letter itself does nothing any more', async () => {
  await press(`${part('prefs')} summary`);
  await page.click(part('key-g'), { count: 3 });
  await page.type(part('key-g'), 'v');
  await page.keyboard.press('Tab');
  await kept('shortcuts', { keys: { g: 'v' } });
  await page.focus('h1');
  const before = page.url();
  await page.keyboard.type('gp');
  assert.equal(page.url(), before);
  await page.keyboard.type('vp');
  await page.waitForFunction(() => location.pathname === '/ui/projects');
  await page.goBack();
  await press(`${part('prefs')} summary`);
  // A key that does something already is not taken, and the field shows the one that counts.
  await page.click(part('key-l'), { count: 3 });
  await page.type(part('key-l'), 'v');
  await page.keyboard.press('Tab');
  await says(part('toast'), 'v');
  await page.waitForFunction((field) => document.querySelector(field).value === 'l', {}, part('key-l'));
  await page.focus('h1');
  await page.keyboard.type('?');
  await seen(part('keys'));
  await page.keyboard.press('Escape');
  await gone(part('keys'));
});

test('all of it is there after signing out and in again, and this browser kept nothing', async () => {
  await page.setViewport({ width: 390, height: 844 });
  await press(part('nav-more'));
  await press(part('sign-out'));
  await seen('form button');
  assert.equal(await page.evaluate(() => localStorage.length), 0);
  await Promise.all([page.waitForNavigation(), press('form button')]);
  await page.setViewport({ width: 1280, height: 800 });
  await page.goto(`${machine.url}/ui/projects?fav=1`, { waitUntil: 'load' });
  await signIn();
  await seen(`${part('project-row')}[data-project="web"] ${part('star')}[aria-pressed="true"]`);
  await theme(page, 'dark');
  const height = await page.$eval(part('project-row'), (row) => row.offsetHeight);
  assert.equal(height, 44, 'rows are compact');
});

test('nothing was complained about', async () => {
  await page.close();
  assert.deepEqual(complaints, []);
});
