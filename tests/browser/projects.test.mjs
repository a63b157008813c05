// The project list: searching, ordering, favourites, selecting, trusting several folders.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { world } from './world.mjs';

let machine;
let browser;
let page;
let complaints;
let seen, press, says, gone, pick, shot;

const item = (name) => `${part('project-row')}[data-project="${name}"]`;

/** Waits until the list shows exactly these projects, in this order. */
const lists = (...names) =>
  page.waitForFunction(
    (where, wanted) =>
      [...document.querySelectorAll(where)].map((row) => row.dataset.project).join() === wanted,
    {},
    part('project-row'),
    names.join(),
  );

const query = () => new URL(page.url()).search;

before(async () => {
  machine = await world({
    'my-api': { git: true },
    api: { git: true },
    'blog "odd"': { trust: false },
    docs: { trust: false },
    web: { trust: false },
  });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, pick, shot } = person(page));
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/projects`, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('a search finds the name before scattered letters, marks the hits and stays in the address', async () => {
  await lists('api', 'blog "odd"', 'docs', 'my-api', 'web');
  await shot('projects');
  await page.type(part('search'), 'API');
  await lists('api', 'my-api');
  await says(`${item('my-api')} mark`, 'api');
  assert.equal(query(), '?q=API');
  await page.reload({ waitUntil: 'load' });
  await lists('api', 'my-api');
  assert.equal(await page.$eval(part('search'), (field) => field.value), 'API');
  await page.goto(`${machine.url}/ui/projects?q=zzz`, { waitUntil: 'load' });
  await press(`${part('nothing-matches')} button`);
  await lists('api', 'blog "odd"', 'docs', 'my-api', 'web');
});

test('favourites are a filter, and survive a reload', async () => {
  await press(`${item('web')} ${part('star')}`);
  await seen(`${item('web')} ${part('star')}[aria-pressed="true"]`);
  await press(`${part('filter')}:nth-child(3)`);
  await lists('web');
  assert.equal(query(), '?fav=1');
  // Kept by the service, not only by this browser.
  await page.waitForFunction(async () => {
    const reply = await fetch('/api/ui-prefs');
    return (await reply.json()).prefs.favourites?.join() === 'web';
  });
  await page.evaluate(() => localStorage.clear());
  await page.reload({ waitUntil: 'load' });
  await lists('web');
  // Home offers it before the others.
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await seen(`li:first-child${part('quick-project')}[data-project="web"]`);
  await page.goBack({ waitUntil: 'load' });
  await press(`${item('web')} ${part('star')}`);
  await seen(part('nothing-matches'));
});

test('the last used comes first where that is wanted, and says when', async () => {
  await machine.cli('start', 'my-api');
  await page.goto(`${machine.url}/ui/projects?sort=used`, { waitUntil: 'load' });
  await lists('my-api', 'api', 'blog "odd"', 'docs', 'web');
  await says(`${item('my-api')} ${part('rollup')}`, '1 running');
  await page.waitForFunction(
    (where) => /ago|just now/.test(document.querySelector(where)?.textContent),
    {},
    `${item('my-api')} ${part('last-used')}`,
  );
  await says(`${item('web')} ${part('last-used')}`, 'never');
  await pick(part('sort'), 'name');
  await lists('api', 'blog "odd"', 'docs', 'my-api', 'web');
  assert.equal(query(), '?sort=name');
  await pick(part('sort'), 'attention');
  await lists('my-api', 'api', 'blog "odd"', 'docs', 'web');
  assert.equal(query(), '');
});

test('of several selected folders exactly the checked ones are trusted', async () => {
  await press(`${item('docs')} ${part('last-used')}`);
  await seen(`${item('docs')}.chosen`);
  await page.focus(`${item('web')} .name`);
  await page.keyboard.press('x');
  await page.focus(`${item('api')} .name`);
  await page.keyboard.press('x');
  await says(part('selection'), '3 selected');
  await shot('projects-selected');
  await press(part('trust-selected'));
  await seen(part('bulk-trust'));
  const boxes = `${part('bulk-trust')} input`;
  const offered = await page.$$eval(boxes, (all) => all.map((box) => [box.dataset.project, box.checked]));
  assert.deepEqual(offered, [['docs', false], ['web', false]]);
  await says(part('bulk-trust'), `${machine.root}/projects/docs`);
  await shot('bulk-trust');
  await press(part('trust-confirm'));
  await seen(part('bulk-trust'));
  await press(`${part('bulk-trust')} [data-project="docs"]`);
  await press(part('trust-confirm'));
  await gone(part('bulk-trust'));
  await seen(`${item('docs')}[data-trust="trusted"] ${part('act-launch')}`);
  await seen(`${item('web')}[data-trust="untrusted"] ${part('act-trust')}`);
  await press(part('deselect'));
  await gone(part('selection'));
});

test('a row offers its page, its path and a launch behind the gate', async () => {
  await press(`${item('web')} ${part('act-more')}`);
  await press(part('menu-launch'));
  await seen(part('trust-gate'));
  await page.keyboard.press('Escape');
  await gone(part('trust-gate'));
  await press(`${item('api')} ${part('act-more')}`);
  await shot('project-menu');
  await press(part('open-page'));
  await page.waitForFunction(() => location.pathname === '/ui/projects/api');
});

test('nothing was complained about', async () => {
  await page.close();
  assert.deepEqual(complaints, []);
});
