// The page as people set it up for themselves: text twice as large, more space in it, no motion, the
// system's own colours. Nothing is cut off, covered or lost.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { lostHere } from './lost.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

const LONG = `a${'-very-very'.repeat(19)}-long-name`;
const RIGHT_TO_LEFT = 'שלום-עולם';

let machine, browser, page, complaints, devtools;
let seen, go, gone;
let views;

before(async () => {
  machine = await world({
    api: { git: true },
    [LONG]: {},
    [RIGHT_TO_LEFT]: {},
    slow: { knobs: { ready: 'never' } },
    broken: { knobs: { fatal: 'login' } },
  });
  for (const name of ['api', LONG, RIGHT_TO_LEFT]) await machine.cli('start', name, '--wait');
  await machine.cli('start', 'broken').catch(() => {}); // it cannot
  machine.cli('start', 'slow').catch(() => {}); // it takes its time
  const rows = await machine.api('/api/instances');
  const id = (name) => rows.find(({ project }) => project === name).instance_id;
  views = [
    ['/ui/', `${part('section-needs-look')} [data-project="broken"]`],
    [`/ui/s/${id(LONG)}`, part('log-line')],
    [`/ui/s/${id('broken')}`, part('cause-card')],
    [`/ui/projects/${encodeURIComponent(RIGHT_TO_LEFT)}`, part('project')],
    ['/ui/projects', part('project-row')],
    ['/ui/projects?launch=api', part('launch-dialog')],
    ['/ui/projects?launch=broken', part('launch-submit')],
    ['/ui/doctor', part('check')],
  ];
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, go, gone } = person(page));
  devtools = await page.createCDPSession();
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

/** What cannot be read or reached, in every view. */
async function lost({ width }) {
  await page.setViewport({ width, height: 900 });
  const found = [];
  for (const [path, there] of views) {
    await go(path, there);
    const wrong = await page.evaluate(lostHere);
    found.push(...wrong.map((what) => `${path}: ${what}`));
    if (path.includes('launch=')) {
      await page.keyboard.press('Escape');
      await gone('dialog');
    }
  }
  return found;
}

test('names of two hundred letters and names from right to left take nothing away', async () => {
  await seen(row(LONG, 'running'));
  assert.equal(LONG.length > 190, true);
  for (const width of [1280, 390]) assert.deepEqual(await lost({ width }), [], `${width}`);
  const direction = await page.$eval('bdi', (name) => getComputedStyle(name).unicodeBidi);
  assert.equal(direction, 'isolate');
});

test('text twice as large', async (t) => {
  t.after(() => page.evaluate(() => document.documentElement.style.removeProperty('font-size')));
  await page.evaluate(() => document.documentElement.style.setProperty('font-size', '200%'));
  for (const width of [1280, 390]) assert.deepEqual(await lost({ width }), [], `${width}`);
});

test('more space between letters, words and lines', async (t) => {
  t.after(() =>
    page.evaluate(() => {
      document.adoptedStyleSheets = [];
    }),
  );
  const added = await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(
      '* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important } p { margin-bottom: 2em !important }',
    );
    document.adoptedStyleSheets = [sheet];
    return document.adoptedStyleSheets.length;
  });
  assert.equal(added, 1);
  for (const width of [1280, 390]) assert.deepEqual(await lost({ width }), [], `${width}`);
});

test('without motion nothing moves, not even what is starting', async () => {
  const turning = () => page.evaluate(() => document.getAnimations().length);
  await page.setViewport({ width: 1280, height: 900 });
  await go('/ui/', row('slow', 'starting'));
  await page.waitForFunction(() => document.getAnimations().length > 0);
  await page.emulateMediaFeatures([{ name: 'prefers-reduced-motion', value: 'reduce' }]);
  await page.waitForFunction(() => document.getAnimations().length === 0);
  assert.equal(await turning(), 0);
  await page.emulateMediaFeatures([]);
});

test('in the colours of the system every state is still told apart', async () => {
  await devtools.send('Emulation.setEmulatedMedia', {
    features: [{ name: 'forced-colors', value: 'active' }],
  });
  const looks = (selector, names) =>
    page.$eval(
      selector,
      (element, wanted) => {
        const style = getComputedStyle(element);
        return Object.fromEntries(wanted.map((name) => [name, style.getPropertyValue(name)]));
      },
      names,
    );
  const button = await looks(part('act-launch'), ['border-top-style', 'border-top-width']);
  assert.deepEqual(button, { 'border-top-style': 'solid', 'border-top-width': '1px' });
  const shapes = await page.$$eval('.row .glyph', (all) =>
    all.map((glyph) => `${getComputedStyle(glyph).color} ${glyph.getBoundingClientRect().width > 8}`),
  );
  assert.equal(new Set(shapes).size, 1, `${shapes}`);
  await page.click(part('palette-open'));
  await seen('#palette [aria-selected="true"]');
  const chosen = await looks('#palette [aria-selected="true"]', ['outline-style']);
  assert.equal(chosen['outline-style'], 'solid');
  await page.keyboard.press('Escape');
  await gone('dialog');
  await page.click(part('help'));
  const knob = () =>
    page.$eval('[role=switch]', (element) => getComputedStyle(element, '::before').backgroundImage);
  await seen('[role=switch]');
  const on = await knob();
  await page.click('[role=switch]');
  const off = await knob();
  assert.ok(on.includes('gradient') && off.includes('gradient') && on !== off, `${on} ${off}`);
  await page.click('[role=switch]');
  await page.keyboard.press('Escape');
  await gone('dialog');
  await devtools.send('Emulation.setEmulatedMedia', { features: [] });
});

test('nothing was complained about', async () => {
  await page.close();
  assert.deepEqual(complaints, []);
});
