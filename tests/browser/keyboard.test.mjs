// The main job without a mouse: every step by keys that somebody without the manual finds (Tab,
// Enter, arrows, Escape), the focus always to be seen and never lost.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

let machine, browser, page, complaints;
let seen, says, gone;

before(async () => {
  machine = await world({ api: {}, web: {}, zoo: {} });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, says, gone } = person(page));
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(machine.url, { waitUntil: 'load' });
  await seen(part('section-projects'));
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

const press = (key) => page.keyboard.press(key);

/** Waits until the element with the focus fits. */
const focused = (selector) =>
  page.waitForFunction((where) => document.activeElement?.matches(where), {}, selector);

/** The element with the focus: whether it fits, whether it can be seen to have it. */
const stop = (selector) =>
  page.evaluate((where) => {
    const element = document.activeElement;
    if (!element || element === document.body) return { is: false, at: 'nowhere', visible: true };
    const rings = [element, element.closest('.field-box, .radio-card, label')].filter(Boolean);
    const ringed = rings.some((one) => {
      const { outlineStyle, outlineWidth } = getComputedStyle(one);
      return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
    });
    const { x, y, width, height } = element.getBoundingClientRect();
    const inView = x + width > 0 && y + height > 0 && x < innerWidth && y < innerHeight;
    return {
      is: element.matches(where),
      at: element.outerHTML.slice(0, 120),
      visible: ringed && inView,
    };
  }, selector);

/** Tabs until an element that fits has the focus; every stop on the way can be seen. */
async function tabTo(selector, { back = false } = {}) {
  const way = [];
  for (let count = 0; count < 80; count += 1) {
    if (back) await page.keyboard.down('Shift');
    await press('Tab');
    if (back) await page.keyboard.up('Shift');
    const at = await stop(selector);
    way.push(at.at);
    assert.ok(at.visible, `the focus cannot be seen at ${at.at}`);
    if (at.is) return way;
  }
  assert.fail(`Tab does not reach ${selector}:\n${way.join('\n')}`);
}

test('the first Tab offers to skip the navigation, and doing so leads past it', async () => {
  await press('Tab');
  assert.ok((await stop('.skip')).is);
  await press('Enter');
  await focused('#content');
  const way = await tabTo('main a, main button');
  assert.equal(way.length, 1);
});

test('H136: a project is launched by Tab and Enter', async () => {
  await page.focus('h1');
  await tabTo(`${part('section-projects')} [data-project="api"] .name`);
  await tabTo(`[data-project="api"] ${part('act-launch')}`);
  await press('Enter');
  await seen(part('launch-dialog'));
  await page.waitForFunction(() => document.activeElement?.closest('dialog'));
  await tabTo(part('launch-submit'));
  await press('Enter');
  await seen(row('api', 'running'));
  await gone('dialog');
});

test('a dialog keeps the focus, and Escape gives it back to what opened it', async () => {
  await page.focus('h1');
  await tabTo(part('palette-open'), { back: false });
  await press('Enter');
  await focused(part('palette-field'));
  for (let count = 0; count < 6; count += 1) {
    await press('Tab');
    const outside = await page.evaluate(() => {
      const at = document.activeElement;
      return at !== document.body && !at.closest('dialog') ? at.outerHTML.slice(0, 120) : null;
    });
    assert.equal(outside, null);
  }
  await press('Escape');
  await gone('dialog');
  await focused(part('palette-open'));
});

test('a list is one stop: the arrows move in it, and Tab leaves it after one row', async () => {
  for (const name of ['web', 'zoo']) await machine.cli('start', name, '--wait');
  for (const name of ['web', 'zoo']) await seen(row(name, 'running'));
  await page.focus('h1');
  const rows = `${part('section-live')} li`;
  await tabTo(`${rows} .name`);
  const names = await page.$$eval(`${rows} .name`, (all) => all.map((name) => name.textContent));
  assert.equal(names.length, 3);
  const at = () => page.evaluate(() => document.activeElement.closest('li')?.dataset.project);
  assert.equal(await at(), names[0]);
  await press('ArrowDown');
  assert.equal(await at(), names[1]);
  await press('End');
  await page.waitForFunction(
    (name) => document.activeElement.closest('li')?.dataset.project === name,
    {},
    names[2],
  );
  await press('ArrowUp');
  assert.equal(await at(), names[1]);
  // Its own controls, then out of the list.
  await tabTo(`[data-project="${names[1]}"] ${part('act-more')}`);
  const within = () => stop(`${part('section-live')} [data-project="${names[1]}"] *`);
  do await press('Tab');
  while ((await within()).is);
  const left = await stop(`${rows} *`);
  assert.equal(left.is, false, left.at);
  await tabTo(`${rows} *`, { back: true });
  assert.equal(await at(), names[1]);
});

test('a menu opens by Enter, is walked by arrows, and Escape goes back to its button', async () => {
  const more = `${row('web', 'running')} ${part('act-more')}`;
  await page.focus(`${row('web', 'running')} .name`);
  await tabTo(more);
  await press('Enter');
  await focused('[role=menuitem]');
  const first = await page.evaluate(() => document.activeElement.textContent);
  await press('ArrowDown');
  assert.notEqual(await page.evaluate(() => document.activeElement.textContent), first);
  await press('ArrowUp');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), first);
  await press('Escape');
  await gone('[role=menu]');
  await focused(more);
});

test('H131 H136: a bridge is stopped after a question whose safe answer has the focus', async () => {
  await page.focus(`${row('web', 'running')} .name`);
  await tabTo(`${row('web', 'running')} ${part('act-stop')}`);
  await press('Enter');
  await focused(part('confirm-no'));
  await press('Enter');
  await gone(part('confirm'));
  await page.waitForFunction(() => document.activeElement?.closest('[data-project="web"]'));
  await tabTo(`${row('web', 'running')} ${part('act-stop')}`, { back: true });
  await press('Enter');
  await focused(part('confirm-no'));
  await tabTo(part('confirm-yes'), { back: true });
  await press('Enter');
  await seen(row('web', 'stopped'));
  await page.waitForFunction(() => document.activeElement !== document.body);
});

test('it is resumed where it ended', async () => {
  // The row tells of the stop before its request is answered.
  await seen(`${row('web', 'stopped')} ${part('act-resume')}:not([aria-disabled])`);
  await page.focus(`${row('web', 'stopped')} .name`);
  await tabTo(`${row('web', 'stopped')} ${part('act-resume')}`);
  await press('Enter');
  await seen(row('web', 'running'));
  await page.waitForFunction(() => document.activeElement !== document.body);
});

test('a menu or a field that goes in the moment it opens breaks nothing', async () => {
  const away = (button) =>
    button.evaluate((element) => {
      element.click();
      // Before the next frame, in which the focus would move into what has opened.
      history.pushState(null, '', '/ui/activity');
      dispatchEvent(new PopStateEvent('popstate'));
    });
  const back = async () => {
    await focused('h1');
    await page.evaluate(() => new Promise(requestAnimationFrame));
    assert.deepEqual(complaints, []);
    await page.goBack();
    await seen(row('api', 'running'));
  };
  await away(await seen(`${row('api', 'running')} ${part('act-more')}`));
  await back();
  await page.click(`${row('api', 'running')} ${part('act-more')}`);
  await away(await seen(part('menu-rename')));
  await back();
});

test('a row that goes while it has the focus hands it to the next one', async () => {
  await page.focus(`${row('zoo', 'running')} .name`);
  await machine.cli('stop', 'zoo');
  await machine.cli('forget', 'zoo');
  await gone('[data-instance][data-project="zoo"]');
  await page.waitForFunction(() => document.activeElement?.closest('main') || document.activeElement?.matches('h1'));
});

test('another view has the focus on its heading, and says that it opened', async () => {
  await page.focus('h1');
  await tabTo(part('nav-activity'), { back: true });
  await press('Enter');
  await focused('h1');
  assert.equal(await page.$eval('h1', (title) => title.textContent), 'Activity');
  await says(part('live-polite'), 'Activity opened');
});

test('nothing was complained about', async () => {
  await page.close();
  assert.deepEqual(complaints, []);
});
