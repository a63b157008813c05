// What a row shows and what can be done to rows: figures, taking back, several at once, long lists.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row, until } from './person.mjs';
import { world } from './world.mjs';

let machine;
let browser;
let page;
let complaints;
let sent;
let seen, press, says, gone, shot;

const desk = { width: 1280, height: 900 };

before(async () => {
  machine = await world(
    { api: {}, web: {}, docs: {}, broken: { knobs: { fatal: 'login' } } },
    { metrics: { poll_seconds: 1 } },
    undefined,
    200,
  );
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, shot } = person(page));
  await page.setViewport(desk);
  sent = [];
  const devtools = await page.createCDPSession();
  await devtools.send('Network.enable');
  devtools.on('Network.webSocketFrameSent', ({ response }) => sent.push(response.payloadData));
  await page.goto(machine.url, { waitUntil: 'load' });
  await machine.cli('start', 'api');
  await machine.cli('start', 'web');
  await seen(row('api', 'running'));
  await seen(row('web', 'running'));
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

const asked = (on) => () => sent.some((text) => text === `{"type":"samples","on":${on}}`);
const id = async (project) =>
  (await machine.api('/api/instances')).find((one) => one.project === project)?.instance_id;
const own = (project) => `[data-instance][data-project="${project}"]`;
const inSection = (section, project) => `${part(`section-${section}`)} ${own(project)}`;
const focusRow = (project) => page.focus(`${own(project)} .name`);
const focusIn = (selector) =>
  page.waitForFunction((where) => document.activeElement?.closest(where) != null, {}, selector);
const undo = `${part('toast')} ${part('toast-undo')}`;
/** Presses something in a message: `press` would put the message away, as it lies over the page. */
const tap = async (selector) => (await seen(selector)).click();
/** Puts the message away that could take something back. */
const putAway = () => tap(`${part('toast')}:has(${part('toast-undo')}) ${part('toast-dismiss')}`);

/** Forgets by the menu of the row. */
async function forget(project) {
  await press(`${own(project)} ${part('act-more')}`);
  await press(part('menu-forget'));
  await gone(own(project));
}

test('a running row shows what it uses, in figures, as a curve and in words', async () => {
  const used = `${row('api', 'running')} ${part('used')}`;
  await seen(used);
  await page.waitForFunction(
    (where) => document.querySelector(`${where} .spark-line`)?.getAttribute('d').includes('L'),
    {},
    used,
  );
  const words = await page.$eval(`${used} svg`, (svg) => svg.getAttribute('aria-label'));
  assert.match(words, /^CPU now \d+ %, max \d+ % in .+, where 100 % is one core; \d+ MiB$/);
  const [width, height, figures] = await page.$eval(used, (box) => {
    const { width, height } = box.querySelector('svg').getBoundingClientRect();
    return [width, height, box.querySelector('.used-now').innerText];
  });
  assert.deepEqual([width, height], [96, 24]);
  assert.match(figures, /\d+ %\s+\d+ MiB/);
  await shot('home-used');
});

test('a card shows the processor time only', async () => {
  await page.setViewport({ width: 390, height: 844 });
  await page.waitForSelector(`${row('api', 'running')} ${part('used')}`, { hidden: true });
  await says(`${row('api', 'running')} .fact`, 'CPU');
  await page.setViewport(desk);
});

test('measurements are asked for only where they are shown', async () => {
  await until(asked(true));
  sent.length = 0;
  await press(part('nav-jobs'));
  await until(asked(false));
  sent.length = 0;
  await press(part('nav-home'));
  await until(asked(true));
  await seen(`${row('api', 'running')} ${part('used')}`);
});

test('a tab that nobody sees gets no measurements, and gets them again when it is seen', async () => {
  const turn = (hidden) =>
    page.evaluate((hidden) => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
      document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);
  sent.length = 0;
  await turn(true);
  await until(asked(false));
  sent.length = 0;
  await turn(false);
  await until(asked(true));
});

test('a forgotten row goes at once, comes back by Undo, and goes for good with its message', async () => {
  await machine.cli('start', 'docs');
  await machine.cli('stop', 'docs');
  await seen(row('docs', 'stopped'));
  await forget('docs');
  assert.ok(await id('docs'), 'forgotten before it could be taken back');
  await tap(undo);
  await seen(row('docs', 'stopped'));
  await gone(undo);
  await forget('docs');
  await putAway();
  await until(async () => (await id('docs')) === undefined);
});

test('the keys f and Ctrl-Z forget and take back, and the focus stays in the list', async () => {
  await machine.cli('start', 'docs');
  await machine.cli('stop', 'docs');
  await seen(row('docs', 'stopped'));
  await focusRow('docs');
  await page.keyboard.press('f');
  await gone(own('docs'));
  await focusIn('[data-row]');
  await page.keyboard.down('Control');
  await page.keyboard.press('z');
  await page.keyboard.up('Control');
  await seen(row('docs', 'stopped'));
  await focusIn(own('docs'));
  assert.ok(await id('docs'));
});

test('a removal that the service refuses brings the row back and says why', async () => {
  await forget('docs');
  await page.hover(part('toast')); // it stays as long as somebody reads it
  await machine.cli('resume', 'docs');
  await putAway();
  await seen(row('docs', 'running'));
  await says(`${part('toast')}[data-level="danger"]`, "Couldn't forget docs");
  await tap(`${part('toast')}[data-level="danger"] ${part('toast-dismiss')}`);
  await machine.cli('stop', 'docs');
  await seen(row('docs', 'stopped'));
});

test('a page that is left forgets what it was told to', async () => {
  const { page: other, complaints: said } = await tab(browser);
  await other.setViewport(desk);
  await other.goto(machine.url, { waitUntil: 'load' });
  const they = person(other);
  await they.press(`${own('docs')} ${part('act-more')}`);
  await they.press(part('menu-forget'));
  await they.gone(own('docs'));
  await other.goto('about:blank');
  await until(async () => (await id('docs')) === undefined);
  await other.close();
  await page.bringToFront();
  assert.deepEqual(said, []);
});

test('a bad end is put away with what ended, here only, and stays there', async () => {
  await machine.cli('start', 'broken').catch(() => {}); // fails, as it should
  await seen(inSection('needs-look', 'broken'));
  await says(`${own('broken')} .chip`, 'new');
  await page.waitForFunction(() => document.title.startsWith('(1) Home'));
  await press(`${inSection('needs-look', 'broken')} ${part('act-dismiss')}`);
  await gone(inSection('needs-look', 'broken'));
  await seen(inSection('ended', 'broken'));
  await page.waitForFunction(() => document.title.startsWith('Home'));
  await tap(undo);
  await seen(inSection('needs-look', 'broken'));
  await press(`${inSection('needs-look', 'broken')} ${part('act-dismiss')}`);
  await putAway();
  await page.reload({ waitUntil: 'load' });
  await seen(inSection('ended', 'broken'));
  assert.equal(await page.$(inSection('needs-look', 'broken')), null);
  assert.ok(await id('broken'), 'only put away');
});

test('several rows are stopped by one question, and each says what came of it', async () => {
  // The box appears under a pointer that can hover, and everywhere once a row is selected.
  await focusRow('api');
  await page.keyboard.press('x');
  await says(part('bulk'), '1 selected');
  await press(`${row('web', 'running')} ${part('pick')}`);
  await says(part('bulk'), '2 selected');
  await shot('home-selected');
  await press(part('bulk-Stop'));
  await seen(part('bulk-dialog'));
  await focusIn(part('bulk-no'));
  const names = await page.$$eval(part('bulk-row'), (rows) => rows.map((one) => one.innerText));
  assert.deepEqual(names, ['api', 'web']);
  await press(part('bulk-yes'));
  await page.waitForFunction(
    (where) => document.querySelectorAll(where).length === 2,
    {},
    part('bulk-result'),
  );
  await says(part('bulk-result'), 'Stopped api');
  await focusIn(part('bulk-close'));
  await shot('bulk-result');
  await press(part('bulk-close'));
  await gone(part('bulk'));
  await seen(row('api', 'stopped'));
  await seen(row('web', 'stopped'));
});

test('Shift and a click on a selected box take it out again', async () => {
  const box = `${own('api')} ${part('pick')}`;
  await focusRow('api');
  await page.keyboard.press('x');
  await seen(part('bulk'));
  await page.keyboard.down('Shift');
  await press(box);
  await page.keyboard.up('Shift');
  await gone(part('bulk'));
  assert.equal(await page.$eval(box, (input) => input.checked), false);
});

test('Shift takes everything in between, and Escape takes nothing', async () => {
  const first = await page.$$eval(`${part('section-ended')} [data-row]`, (rows) =>
    rows.slice(0, 4).map((one) => one.dataset.row),
  );
  await page.focus(`[data-row="${first[0]}"] .name`);
  await page.keyboard.press('x');
  await page.focus(`[data-row="${first[3]}"] .name`);
  await page.keyboard.press('X');
  await says(part('bulk'), '4 selected');
  await page.keyboard.press('Escape');
  await gone(part('bulk'));
});

test('H129: of two hundred ended rows only those near what is seen exist, and keys reach the last', async () => {
  await press(part('ended-all'));
  await page.waitForFunction(
    (where) => document.querySelector(where)?.getAttribute('aria-setsize') > 200,
    {},
    `${part('section-ended')} [data-row]`,
  );
  const many = await page.$$eval(`${part('section-ended')} [data-row]`, (rows) => rows.length);
  assert.ok(many < 80, `${many} rows exist`);
  await page.focus(`${part('section-ended')} [data-row] .name`);
  await page.keyboard.press('End');
  await page.waitForFunction(() => {
    const at = document.activeElement?.closest('[data-row]');
    return at != null && at.getAttribute('aria-posinset') === at.getAttribute('aria-setsize');
  });
  await page.keyboard.press('Home');
  await page.waitForFunction(
    () =>
      document.activeElement?.closest('[data-row]')?.getAttribute('aria-posinset') === '1',
  );
});

test('nothing was complained about', () => {
  const expected = /409: .*forget|console error: .*409/;
  assert.deepEqual(
    complaints.filter((text) => !expected.test(text)),
    [],
  );
});
