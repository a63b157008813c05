// How the components and ten views look, compared with kept pictures: frozen time, no motion,
// invented records that `web/gallery/service.js` answers with. The real service only hands out
// the files of the page. SVC_UPDATE_SNAPSHOTS=1 keeps new pictures.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { FLAGS, look, whyNot } from './pictures.mjs';
import { world } from './world.mjs';

const source = (name) =>
  readFileSync(new URL(`../../web/gallery/${name}`, import.meta.url), 'utf8');
const RUNNING = '3a375c2e-0a3b-4c5d-8e9f-001122334455';
const CRASHED = 'a1c25d38-0a3b-4c5d-8e9f-001122334455';

/** Name, address, and what is there once the view is. */
const VIEWS = [
  ['home', '/ui/', part('section-projects')],
  ['projects', '/ui/projects', part('project-row')],
  ['project', '/ui/projects/web-frontend', part('session-row')],
  ['session', `/ui/s/${RUNNING}`, part('log-line')],
  ['crash', `/ui/s/${CRASHED}`, part('cause-card')],
  ['details', `/ui/s/${RUNNING}?tab=details`, part('details')],
  ['launch', '/ui/?launch=scratch', part('launch-dialog')],
  ['jobs', '/ui/jobs', part('job-row')],
  ['activity', '/ui/activity', part('event')],
  ['readiness', '/ui/doctor', part('check')],
];
const SIZES = [
  { width: 1440, height: 900 },
  { width: 768, height: 1024 },
  { width: 390, height: 844 },
];

let machine;
let browser;
let reason;

before(async () => {
  machine = await world({ web: {} });
  browser = await launch(FLAGS);
  const blank = await browser.newPage();
  reason = await whyNot(blank);
  await blank.close();
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

/** A tab in which time stands still and nothing moves or blinks. */
async function still(script) {
  const { page, complaints } = await tab(browser);
  await page.emulateTimezone('UTC');
  await page.evaluateOnNewDocument(`globalThis.SVC_FROZEN = true;\n${script}`);
  await page.evaluateOnNewDocument(() => {
    addEventListener('DOMContentLoaded', () => {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync('* { caret-color: transparent !important; }');
      document.adoptedStyleSheets = [sheet];
    });
  });
  return { page, complaints, ...person(page) };
}

/** Looks at every width and both themes; answers with what is wrong. */
async function looks(page, name, tall) {
  const wrong = [];
  for (const size of SIZES) {
    await page.setViewport(size);
    if (tall) {
      const height = await page.evaluate(async () => {
        await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
        return document.documentElement.scrollHeight;
      });
      await page.setViewport({ ...size, height });
    }
    for (const theme of ['light', 'dark']) {
      await page.emulateMediaFeatures([
        { name: 'prefers-color-scheme', value: theme },
        { name: 'prefers-reduced-motion', value: 'reduce' },
      ]);
      const isThere = (wanted) => document.documentElement.dataset.theme === wanted;
      await page.waitForFunction(isThere, {}, theme);
      wrong.push(await look(page, `${name}-${size.width}-${theme}`));
    }
  }
  return wrong.filter(Boolean);
}

for (const [name, path, there] of VIEWS) {
  test(`the pictures of ${name} are as they were`, async (t) => {
    if (reason) return t.skip(reason);
    const { page, complaints, seen } = await still(source('samples.js') + source('service.js'));
    await page.setViewport(SIZES[0]);
    await page.goto(machine.url + path, { waitUntil: 'load' });
    await seen(there);
    await page.evaluate(() => document.fonts.ready.then(() => true));
    const wrong = await looks(page, name, false);
    await page.close();
    assert.deepEqual(complaints, []);
    assert.deepEqual(wrong, []);
  });
}

test('the pictures of the components are as they were', async (t) => {
  if (reason) return t.skip(reason);
  const { page, complaints, seen } = await still('');
  await page.setViewport(SIZES[0]);
  await page.goto(`${machine.url}/ui/about/components`, { waitUntil: 'load' });
  await seen('[data-sheet="type-and-colour"]');
  await seen(part('log-line'));
  await seen(part('check'));
  // One card names the address of the page, whose port is another on each run.
  await page.$eval(`[data-sheet] ${part('wrong-address')} p`, (text) => {
    text.textContent = text.textContent.replace(location.port, '7621');
  });
  const wrong = await looks(page, 'components', true);
  await page.close();
  assert.deepEqual(complaints, []);
  assert.deepEqual(wrong, []);
});
