// Every address: opened cold, loaded again, left and come back to. The same view, its heading
// focused after a move, and the place in it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

let machine, browser, page, complaints;
let seen, press, says, gone;
let views;

before(async () => {
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`project-${at}`, {}]));
  machine = await world({ api: { git: true }, ...many });
  await machine.cli('start', 'api', '--wait');
  const [{ instance_id: id }] = await machine.api('/api/instances');
  views = [
    ['/ui/', row('api', 'running'), 'Home'],
    ['/ui/?filter=external', `${part('only-external')}[aria-pressed="true"]`, 'Home'],
    ['/ui/projects', part('project-row'), 'Projects'],
    ['/ui/projects?q=project-3&sort=name', part('project-row'), 'Projects'],
    ['/ui/projects/api', part('project'), 'api'],
    ['/ui/projects/api?tab=activity', part('event'), 'api'],
    [`/ui/s/${id}`, part('log-line'), 'api'],
    [`/ui/s/${id}?tab=details`, part('details'), 'api'],
    ['/ui/jobs', 'h1', 'Background'],
    ['/ui/inbox', part('inbox-empty'), 'Inbox'],
    ['/ui/external', part('external-empty'), null],
    ['/ui/activity', part('event'), 'Activity'],
    ['/ui/doctor', part('check'), 'Readiness'],
    ['/ui/about', part('about'), 'About'],
    ['/ui/tokens', part('reach'), 'Devices and tokens'],
    ['/ui/moon', part('not-found'), 'Not found'],
  ];
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone } = person(page));
  await page.setViewport({ width: 1280, height: 700 });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

const title = (words) =>
  page.waitForFunction(
    (wanted) => wanted === null || document.querySelector('h1')?.textContent === wanted,
    {},
    words,
  );

test('every address opens cold, with a heading and a title of its own', async () => {
  for (const [path, there, heading] of views) {
    const reply = await page.goto(machine.url + path, { waitUntil: 'load' });
    assert.equal(reply.status(), 200, path);
    await seen(there);
    await title(heading);
    assert.equal(await page.evaluate(() => location.pathname + location.search), path);
    await page.waitForFunction(
      (wanted) => wanted === null || document.title.includes(wanted),
      {},
      heading,
    );
  }
});

test('back and forward bring the same views, with the focus on the heading', async () => {
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await seen(row('api', 'running'));
  for (const [place, heading] of [['projects', 'Projects'], ['activity', 'Activity'], ['about', 'About']]) {
    await press(part(`nav-${place}`));
    await title(heading);
  }
  for (const [go, heading] of [['goBack', 'Activity'], ['goBack', 'Projects'], ['goForward', 'Activity']]) {
    await page[go]();
    await title(heading);
    await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
  }
});

test('coming back is coming back to the same place on the page', async () => {
  await page.goto(`${machine.url}/ui/projects?sort=name`, { waitUntil: 'load' });
  await seen(part('project-row'));
  await page.evaluate(() => scrollTo(0, 1200));
  await page.waitForFunction(() => scrollY > 1000);
  const link = await page.waitForFunction(
    (where) =>
      [...document.querySelectorAll(where)].find((name) => {
        const { top, bottom } = name.getBoundingClientRect();
        return top > 150 && bottom < innerHeight - 100;
      }),
    {},
    `${part('project-row')} .name`,
  );
  const before = await page.evaluate(() => scrollY);
  await link.asElement().click();
  await seen(part('project'));
  await page.waitForFunction(() => scrollY === 0);
  await page.goBack();
  await seen(part('project-row'));
  await page.waitForFunction((there) => Math.abs(scrollY - there) < 60, {}, before);
});

test('the beginning of an id leads to the whole address, and an unknown one says so', async () => {
  const [{ instance_id: id }] = await machine.api('/api/instances');
  await page.goto(`${machine.url}/ui/s/${id.slice(0, 8)}`, { waitUntil: 'load' });
  await seen(part('log'));
  await page.waitForFunction((whole) => location.pathname.endsWith(whole), {}, id);
  await page.goto(`${machine.url}/ui/s/${id.slice(0, 8)}?tab=details`, { waitUntil: 'load' });
  await seen(part('details'));
  assert.equal(new URL(page.url()).search, '?tab=details');
  await page.goto(`${machine.url}/ui/s/ffffffff`, { waitUntil: 'load' });
  await seen(part('not-found'));
  await says(part('not-found'), 'ffffffff');
});

test('the launch dialog has an address, and closing it leaves the view behind it', async () => {
  await page.goto(`${machine.url}/ui/projects/project-1/launch`, { waitUntil: 'load' });
  await seen(part('launch-submit'));
  await says('#dialog-title', 'project-1');
  await page.keyboard.press('Escape');
  await gone('dialog');
  await title('Projects');
  assert.equal(await page.evaluate(() => location.pathname), '/ui/projects');
});

test('nothing was complained about', async () => {
  await page.close();
  assert.deepEqual(complaints, []);
});
