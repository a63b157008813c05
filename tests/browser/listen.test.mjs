// What somebody hears who does not see the page: names, roles and states of rows, dialogs and menus,
// and what is announced, when.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row, until } from './person.mjs';
import { world } from './world.mjs';

let machine, browser, page, complaints;
let seen, press, gone;

before(async () => {
  machine = await world({ api: {}, web: {}, docs: { trust: false } });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, gone } = person(page));
  // The pause between two announcements ends when the test says so.
  await page.evaluateOnNewDocument(() => {
    const real = window.setTimeout.bind(window);
    const held = [];
    window.setTimeout = (run, after, ...more) =>
      after === 2000 ? held.push(run) : real(run, after, ...more);
    window.__nextAnnouncement = () => {
      const due = held.splice(0);
      due.forEach((run) => run());
      return due.length;
    };
    window.__announced = [];
    // Apart from the list: what was read out before the list was emptied is not said again.
    const last = {};
    new MutationObserver(() => {
      for (const where of ['live-polite', 'live-assertive']) {
        const text = document.querySelector(`[data-testid=${where}]`)?.textContent ?? '';
        if (text === (last[where] ?? '')) continue;
        last[where] = text;
        window.__announced.push([where, text]);
      }
    }).observe(document, { childList: true, characterData: true, subtree: true });
  });
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(machine.url, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

/** What the accessibility tree holds of an element: lines of role, name and states, indented. */
async function heard(selector) {
  const element = await seen(selector);
  const tree = await page.accessibility.snapshot({ root: element, interestingOnly: false });
  const lines = [];
  const walk = ({ role, name = '', children = [], ...states }) => {
    const told = ['disabled', 'expanded', 'pressed', 'checked', 'selected', 'modal', 'haspopup']
      .filter((state) => states[state] !== undefined)
      .map((state) => `${state}=${states[state]}`);
    if (role !== 'none' && role !== 'generic') lines.push([role, name, ...told].join('|'));
    children.forEach(walk);
  };
  if (tree) walk(tree);
  return lines;
}

const has = (lines, wanted) =>
  assert.ok(
    lines.some((line) => (wanted instanceof RegExp ? wanted.test(line) : line === wanted)),
    `${wanted} is not heard in\n${lines.join('\n')}`,
  );

test('the landmarks of the page are told apart', async () => {
  await seen(part('section-projects'));
  const lines = await heard('body');
  for (const wanted of [
    'navigation|Main',
    'main|',
    'banner|',
    'region|Projects',
    'heading|Home',
    'heading|Projects',
    'link|Skip to content',
  ]) {
    has(lines, wanted);
  }
  assert.equal(lines.filter((line) => line.startsWith('main|')).length, 1);
});

test('both live regions are there and empty from the start', async () => {
  const { page: fresh } = await tab(browser);
  await fresh.goto(machine.url, { waitUntil: 'load' });
  await fresh.waitForSelector(part('section-projects'));
  const regions = await fresh.$$eval('[aria-live]', (all) =>
    all.map((region) => [region.getAttribute('aria-live'), region.getAttribute('role'), region.textContent]),
  );
  assert.deepEqual(regions, [
    ['polite', 'status', ''],
    ['assertive', 'alert', ''],
  ]);
  await fresh.close();
  await page.bringToFront();
});

test('the launch dialog says what it is, what is chosen and why it cannot launch', async () => {
  await press(`${part('section-projects')} [data-project="docs"] ${part('act-launch')}`);
  await seen(part('trust-gate'));
  const lines = await heard(part('launch-dialog'));
  has(lines, /^dialog\|.*docs.*modal=true/);
  has(lines, /^radio\|.*checked=true/);
  has(lines, /^checkbox\|.*checked=false/);
  has(lines, /^combobox\|/);
  has(lines, /^button\|Close/);
  const button = await page.$eval(part('launch-submit'), (submit) => ({
    disabled: submit.getAttribute('aria-disabled'),
    why: document.getElementById(submit.getAttribute('aria-describedby'))?.textContent,
  }));
  assert.equal(button.disabled, 'true');
  assert.match(button.why ?? '', /trust/i);
  await page.keyboard.press('Escape');
  await gone('dialog');
});

test('a row is heard with its status, its kind and named actions', async () => {
  await machine.cli('start', 'api', '--wait');
  const lines = await heard(row('api', 'running'));
  has(lines, 'listitem|api, Running');
  has(lines, 'link|api');
  has(lines, 'StaticText|Running');
  has(lines, /^StaticText\|Server Mode/);
  has(lines, /^button\|Stop api/);
  has(lines, /^link\|Open api/);
  has(lines, /^button\|.*api.*haspopup=menu/);
  await press(`${row('api', 'running')} ${part('act-more')}`);
  await seen('[role=menu]');
  const menu = await heard('[role=menu]');
  assert.match(menu[0], /^menu\|/);
  has(menu, 'menuitem|Details');
  await page.keyboard.press('Escape');
  await gone('[role=menu]');
});

test('a question is heard as one, with answers that say what they do', async () => {
  await press(`${row('api', 'running')} ${part('act-stop')}`);
  const lines = await heard(part('confirm'));
  has(lines, 'group|Stop api');
  has(lines, 'button|Stop api');
  has(lines, 'button|Keep running');
  await press(part('confirm-no'));
  await gone(part('confirm'));
});

test('a tab says which panel it belongs to, and which is chosen', async () => {
  await press(`${row('api', 'running')} .name`);
  await seen(part('log'));
  const lines = await heard(part('session'));
  has(lines, /^tablist\|/);
  has(lines, /^tab\|Log\|selected=true/);
  has(lines, /^tab\|Details/);
  has(lines, /^tabpanel\|Log/);
  await silence();
  await page.goBack();
  await seen(row('api', 'running'));
  // It is said a moment after it is shown, and the next test counts from here on.
  await page.waitForFunction(() => window.__announced.some(([, text]) => text.includes('Home opened')));
});

/** Lets everything be read out that waits, and forgets it. */
async function silence() {
  const drawn = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  while (await page.evaluate(() => window.__nextAnnouncement() > 0)) await drawn();
  await page.evaluate(() => {
    window.__announced.length = 0;
  });
}

test('H136: many things that happen at once are one announcement, and the rest waits its turn', async () => {
  await silence();
  for (const place of ['projects', 'jobs', 'activity', 'about', 'home']) await press(part(`nav-${place}`));
  const polite = () =>
    page.evaluate(() => window.__announced.filter(([where]) => where === 'live-polite').map(([, text]) => text));
  await page.waitForFunction(() => window.__announced.length > 0);
  assert.deepEqual(await polite(), ['Projects opened']);
  await page.evaluate(() => window.__nextAnnouncement());
  await page.waitForFunction(() => window.__announced.length > 1);
  const [, second] = await polite();
  assert.match(second, /^Background opened Activity opened About opened And 1 more\.$/);
  await page.evaluate(() => window.__nextAnnouncement());
});

test('a crash interrupts, with the name and the cause', async () => {
  await press(`${part('section-projects')} [data-project="web"] ${part('act-launch')}`);
  await press(part('launch-submit'));
  await seen(row('web', 'running'));
  const rows = await machine.api('/api/instances');
  process.kill(rows.find(({ project }) => project === 'web').bridge_pid, 'SIGKILL');
  await seen(row('web', 'crashed'));
  // What the region said, in order: the answer of the launch may be read out after the crash.
  const interruptions = () =>
    page.evaluate(() => window.__announced.filter(([where]) => where === 'live-assertive').map(([, text]) => text));
  await until(async () => (await interruptions()).some((text) => /\bweb crashed\b/.test(text)));
  const crash = (await interruptions()).find((text) => /\bweb crashed\b/.test(text));
  assert.match(crash, /kill/i, JSON.stringify(await machine.api('/api/instances')));
  has(await heard(row('web', 'crashed')), 'listitem|web, Crashed');
});

test('a control that cannot act says why when it is used', async () => {
  await page.evaluate(() => window.__nextAnnouncement());
  const refused = await page.$$eval('main [aria-disabled=true]', (all) =>
    all
      .filter((element) => !element.getAttribute('aria-label')?.includes(': '))
      .filter((element) => !element.getAttribute('aria-describedby'))
      .map((element) => element.outerHTML.slice(0, 160)),
  );
  assert.deepEqual(refused, []);
});

test('the log is a region that can be scrolled and is not read out by itself', async () => {
  await press(`${row('api', 'running')} .name`);
  await seen(part('log-line'));
  const region = await page.$eval('.log-lines', (lines) => ({
    stops: lines.tabIndex,
    role: lines.getAttribute('role'),
    name: lines.getAttribute('aria-label'),
    live: lines.closest('[aria-live]') !== null,
  }));
  assert.equal(region.stops, 0);
  assert.ok(region.role && region.name, JSON.stringify(region));
  assert.equal(region.live, false);
});

test('nothing was complained about', async () => {
  await page.close();
  assert.deepEqual(complaints, []);
});
