// The page of a project, the timeline, readiness, and the link as a picture.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

let machine;
let browser;
let page;
let complaints;
let seen, press, choose, says, gone, shot;

const at = (path) => page.waitForFunction((wanted) => location.pathname === wanted, {}, path);

before(async () => {
  machine = await world({ api: {}, docs: { trust: false }, 'odd name': {} });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, choose, says, gone, shot } = person(page));
  await page.setViewport({ width: 1280, height: 800 });
  await page.goto(machine.url, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('the name of a project leads to its page, from which it is launched', async () => {
  await press(`${part('section-projects')} [data-project="api"] .name`);
  await at('/ui/projects/api');
  await says('h1', 'api');
  await seen(part('project-empty'));
  await press(`${part('project')} ${part('act-launch')}`);
  await press(part('launch-submit'));
  await seen(`${part('project')} ${row('api', 'running')}`);
  await gone(part('project-empty'));
  await shot('project');
});

test('what happened is told on the page of the project and of everything', async () => {
  await press(part('tab-activity'));
  await says(`${part('timeline')} .word`, 'Started');
  await press(part('nav-activity'));
  await at('/ui/activity');
  await says(part('event'), 'api');
  await machine.cli('stop', 'api');
  await press(part('timeline-newer'));
  await says(`${part('timeline')} .word`, 'Ended');
  await shot('activity');
  await page.goBack();
  await at('/ui/projects/api');
  await seen(`${part('tab-activity')}[aria-selected="true"]`);
});

test('a running session offers its link as a picture', async () => {
  await machine.cli('start', 'odd name');
  await press(part('nav-home'));
  await seen(`${row('odd name', 'running')} ${part('act-open')}`);
  await choose(`${row('odd name', 'running')} ${part('act-more')}`, part('menu-qr'));
  await page.waitForFunction(
    (where) => document.querySelector(where)?.naturalWidth > 0,
    {},
    `${part('qr')} img`,
  );
  await shot('qr');
  await page.keyboard.press('Escape');
  await gone(part('qr'));
});

test('readiness says what was checked, and checks again', async () => {
  await press(part('nav-doctor'));
  await at('/ui/doctor');
  await seen(part('check'));
  const answer = page.waitForResponse((reply) => reply.url().endsWith('/api/doctor'));
  await press(part('doctor-again'));
  const { checks } = await (await answer).json();
  await page.waitForFunction(
    (where, many) => document.querySelectorAll(where).length === many,
    {},
    part('check'),
    checks.length,
  );
  const passed = checks.filter(({ status }) => status === 'ok').length;
  await says('main', `${passed} checks passed.`);
  await says('[data-check="projects_root"]', 'Projects folder projects_root');
  await shot('doctor');
});

test('every place can be reached by a thumb, and none is wider than a phone', async () => {
  const { page: phone, complaints: said } = await tab(browser);
  const thumb = person(phone);
  await phone.setViewport({ width: 320, height: 640, hasTouch: true, isMobile: true });
  await phone.goto(machine.url, { waitUntil: 'load' });
  await thumb.press(part('nav-more'));
  await thumb.seen(part('more'));
  await thumb.shot('phone-more');
  await thumb.press(`${part('more')} a[href="/ui/doctor"]`);
  await thumb.seen(part('check'));
  for (const path of ['/ui/doctor', '/ui/activity', '/ui/projects/odd%20name', '/ui/projects/none']) {
    await phone.goto(machine.url + path, { waitUntil: 'load' });
    await phone.waitForSelector('h1', { visible: true });
    await phone.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
    const [wide, inner] = await phone.evaluate(() => [
      document.documentElement.scrollWidth,
      document.documentElement.clientWidth,
    ]);
    assert.ok(wide <= inner, `${path} is ${wide} px wide on ${inner} px`);
    await thumb.shot(`phone${path.replaceAll(/[/%]/g, '-')}`);
  }
  await phone.close();
  assert.deepEqual(said, []);
});

test('nothing was complained about', async () => {
  await page.close();
  assert.deepEqual(complaints, []);
});
