// What lies over a view has an entry in the history: Back closes it and the view stays. And the
// sizes of text that the design names, as the browser measures them.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { world } from './world.mjs';

const source = (name) =>
  readFileSync(new URL(`../../web/gallery/${name}`, import.meta.url), 'utf8');
const RUNNING = '3a375c2e-0a3b-4c5d-8e9f-001122334455';
const row = `[data-row="${RUNNING}"]`;

let machine;
let browser;
let page, complaints, seen, press, choose, gone;

before(async () => {
  machine = await world({ web: {} });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, choose, gone } = person(page));
  await page.evaluateOnNewDocument(`${source('samples.js')}\n${source('service.js')}`);
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/activity`, { waitUntil: 'load' });
  await seen(part('event'));
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

const back = () => page.evaluate(() => history.back());
const path = () => page.evaluate(() => location.pathname + location.search);
const isAt = (wanted) =>
  page.waitForFunction((to) => location.pathname + location.search === to, {}, wanted);

/** Home, come to from Activity by a link of the page. */
async function home() {
  await press(part('nav-activity'));
  await seen(part('event'));
  await press(part('nav-home'));
  await seen(row);
}

const LAYERS = [
  ['the help', part('help'), part('keys'), part('dialog-close')],
  ['the palette', part('palette-open'), '#palette', null],
  ['a menu', `${row} ${part('act-more')}`, '[role=menu]', null],
];

for (const [name, opener, there, cross] of LAYERS) {
  test(`Back closes ${name}, and the view stays`, async () => {
    await home();
    await press(opener);
    await seen(there);
    await back();
    await gone(there);
    assert.equal(await path(), '/ui/');
    await seen(row);
    await back();
    await isAt('/ui/activity');
  });

  test(`${name}, closed by hand, leaves nothing in the history`, async () => {
    await home();
    await press(opener);
    await seen(there);
    const length = await page.evaluate(() => history.length);
    if (cross) await press(cross);
    else await page.keyboard.press('Escape');
    await gone(there);
    await page.waitForFunction(() => history.state?.layer === undefined);
    await press(opener);
    await seen(there);
    assert.equal(await page.evaluate(() => history.length), length, 'its entry is used again');
    await page.keyboard.press('Escape');
    await gone(there);
    await page.waitForFunction(() => history.state?.layer === undefined);
    await back();
    await isAt('/ui/activity');
  });
}

/** The shortcuts over the menu of a row, which a click in them has closed. */
async function menuUnderKeys() {
  await press(`${row} ${part('act-more')}`);
  await seen('[role=menu]');
  await page.keyboard.press('?');
  await seen(part('keys'));
  await press(`${part('keys')} h2`);
  await gone('[role=menu]');
  await seen(part('keys'));
}

test('a menu that closes under a dialog leaves nothing in the history', async () => {
  await home();
  await menuUnderKeys();
  await press(part('dialog-close'));
  await gone(part('keys'));
  await page.waitForFunction(() => history.state?.layer === undefined);
  assert.equal(await path(), '/ui/');
  await back();
  await isAt('/ui/activity');
});

test('Back from a dialog over a menu that has closed leads to the view at once', async () => {
  await home();
  await menuUnderKeys();
  await back();
  await gone(part('keys'));
  await page.waitForFunction(() => history.state?.layer === undefined);
  assert.equal(await path(), '/ui/');
  await back();
  await isAt('/ui/activity');
});

test('Back closes a dialog over what an earlier load left in the history', async () => {
  await home();
  await menuUnderKeys();
  await page.reload({ waitUntil: 'load' });
  await seen(row);
  await press(part('help'));
  await seen(part('keys'));
  await back();
  await gone(part('keys'));
  await page.waitForFunction(() => history.state?.layer === undefined);
  await seen(row);
  await back();
  await isAt('/ui/activity');
});

test('a menu that leads to a dialog, and a dialog to another view, take one step back', async () => {
  await home();
  await choose(`${row} ${part('act-more')}`, part('menu-qr'));
  await seen(part('qr'));
  await back();
  await gone(part('qr'));
  assert.equal(await path(), '/ui/');
  await choose(`${row} ${part('act-more')}`, part('menu-details'));
  await seen(part('details'));
  await back();
  await seen(row);
  assert.equal(await path(), '/ui/');
  await back();
  await isAt('/ui/activity');
});

test('text has the sizes of the design', async () => {
  const measured = async (selector) => {
    await seen(selector);
    return page.$eval(selector, (element) => {
      const { fontSize, lineHeight } = getComputedStyle(element);
      return `${fontSize}/${lineHeight}`;
    });
  };
  await home();
  const desk = {};
  for (const [name, selector] of Object.entries({
    h1: '.topbar h1',
    button: `${row} ${part('act-open')}`,
    badge: `${row} .badge`,
    name: `${row} .name`,
    facts: `${row} .row-facts`,
    heading: '.section-head h2',
  })) {
    desk[name] = await measured(selector);
  }
  await press(`${row} .name`);
  desk.title = await measured('.session-line h1');
  desk.log = await measured(part('log-line'));
  assert.deepEqual(desk, {
    h1: '20px/28px',
    button: '13px/20px',
    badge: '12px/16px',
    name: '14px/20px',
    facts: '13px/20px',
    heading: '14px/20px',
    title: '24px/32px',
    log: '13px/18px',
  });
  await page.setViewport({ width: 768, height: 1024 });
  assert.equal(await measured('.session-line h1'), '24px/32px');
  assert.equal(await measured(part('act-open')), '13px/20px');
  await page.setViewport({ width: 1440, height: 900 });
});

test('nothing was complained about', async () => {
  await page.close();
  assert.deepEqual(complaints.filter((text) => !/\b404\b/.test(text)), []);
});
