// The page of one session: found by its address, renamed, after a crash, and where Resume is refused.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

let machine;
let browser;
let page;
let complaints;
let seen, press, says, gone, shot;

const at = (path) => page.waitForFunction((wanted) => location.pathname === wanted, {}, path);

/** The rows of a project, the newest first. */
const rows = async (project) => {
  const all = await machine.api('/api/instances');
  const ours = all.filter((each) => each.project === project);
  return ours.sort((a, b) => b.started_at.localeCompare(a.started_at));
};

before(async () => {
  machine = await world({ api: {}, web: {}, broken: { knobs: { fatal: 'login' } } });
  await machine.cli('start', 'api');
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, shot } = person(page));
  await page.setViewport({ width: 1280, height: 800 });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('the beginning of an id is enough, and the address becomes whole', async () => {
  const [{ instance_id: id }] = await rows('api');
  await page.goto(`${machine.url}/ui/s/${id.slice(0, 6)}`, { waitUntil: 'load' });
  await seen(row('api', 'running'));
  await at(`/ui/s/${id}`);
});

test('a session is renamed beside its name', async () => {
  await press(part('head-rename'));
  await seen(part('rename-field'));
  await page.$eval(part('rename-field'), (field) => field.select());
  await page.keyboard.type('nightly');
  await page.keyboard.press('Enter');
  await says('.session-head .label', 'nightly');
  await page.waitForFunction(
    (where) => document.activeElement?.matches(where),
    {},
    part('head-rename'),
  );
});

test('after a crash its last words and what went before stand on one screen', async () => {
  const [{ bridge_pid: pid }] = await rows('api');
  process.kill(pid, 'SIGKILL');
  await seen(part('cause-card'));
  for (const word of ['Crashed', 'Ready', 'Started']) {
    await says(`${part('few-events')} .word`, word);
  }
  const isAtEnd = await page.$eval(part('output'), (output) => {
    const end = output.querySelector('b').getBoundingClientRect();
    return end.bottom <= output.getBoundingClientRect().bottom;
  });
  assert.ok(isAtEnd, 'the last line has to be scrolled to');
  await shot('session-ended');
  await press(part('tab-details'));
  await says(`${part('details')} ${part('few-events')}`, 'Crashed');
  await press(part('log-end'));
  await seen(part('log'));
  await page.waitForFunction(() => document.activeElement?.matches('.log-lines'));
});

test('a resume that would be declined says so, and leads to the one that runs', async () => {
  const [{ instance_id: old }] = await rows('api');
  await machine.cli('start', 'api');
  const [{ instance_id: live }] = await rows('api');
  assert.notEqual(live, old);
  await says(part('resume-declined'), "Can't resume: already running");
  await seen(`${part('act-resume')}[aria-disabled="true"]`);
  await shot('session-declined');
  await press(`${part('resume-declined')} a[href="/ui/s/${live}"]`);
  await at(`/ui/s/${live}`);
  await page.goBack();
  await press(part('act-stop-live'));
  await at(`/ui/s/${live}`);
  await press(part('confirm-yes'));
  await seen(row('api', 'stopped'));
  await page.goto(`${machine.url}/ui/s/${old}`, { waitUntil: 'load' });
  await seen(`${part('act-resume')}:not([aria-disabled])`);
  await gone(part('resume-declined'));
});

test('a start that failed is edited and tried again with its own options', async () => {
  await page.goto(`${machine.url}/ui/projects/broken/launch?permission_mode=plan`, {
    waitUntil: 'load',
  });
  await seen(`${part('launch-submit')}:not([aria-disabled])`);
  await page.type('#launch-name', 'second try');
  await press(part('launch-submit'));
  // Not by hand: a person puts messages away before pressing what they cover.
  await (await seen(part('toast-launch'))).evaluate((button) => button.click());
  await seen(part('launch-dialog'));
  assert.equal(await page.$eval('#launch-permission', (field) => field.value), 'plan');
  assert.equal(await page.$eval('#launch-name', (field) => field.value), 'second try');
});

test('an id of nothing leads home', async () => {
  await page.goto(`${machine.url}/ui/s/ffffffff`, { waitUntil: 'load' });
  await seen(part('not-found'));
  await press(`${part('not-found')} a`);
  await at('/ui/');
  await seen(part('section-projects'));
});

test('on a phone its actions are in reach of a thumb, above the places', async () => {
  const { page: phone, complaints: said } = await tab(browser);
  const thumb = person(phone);
  await phone.setViewport({ width: 360, height: 740, hasTouch: true, isMobile: true });
  const [{ instance_id: id }] = await rows('api');
  await phone.goto(`${machine.url}/ui/s/${id}`, { waitUntil: 'load' });
  const button = await thumb.seen(part('act-resume'));
  const free = await button.evaluate((each) => {
    const box = each.getBoundingClientRect();
    const places = document.querySelector('.bottombar').getBoundingClientRect();
    return { above: box.bottom <= places.top, low: box.top > window.innerHeight / 2 };
  });
  assert.deepEqual(free, { above: true, low: true });
  await thumb.press(`.session-head ${part('act-more')}`);
  await thumb.press(part('menu-copy-id'));
  await thumb.shot('phone-session-actions');
  await thumb.press(part('act-resume'));
  await thumb.seen(row('api', 'running'));
  await phone.close();
  assert.deepEqual(said, []);
});

test('nothing was complained about', () => {
  assert.deepEqual(complaints, []);
});
