// Background sessions on the page: start, live change, result, stop, resume, remove.

import assert from 'node:assert/strict';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { world } from './world.mjs';

const BUSY = { job_script: [[0, { state: 'working', detail: 'reading the posts' }]] };
const QUICK = { job_script: [[0, { state: 'done', result: 'All three posts are translated.' }]] };

let machine;
let browser;
let page;
let complaints;
let seen, go, press, choose, says, gone, shot;

const job = (project, state) =>
  `${part('job-row')}[data-project="${project}"][data-status="${state}"]`;

before(async () => {
  machine = await world({
    api: { knobs: BUSY },
    quick: { knobs: QUICK },
    docs: { trust: false, knobs: BUSY },
  });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, go, press, choose, says, gone, shot } = person(page));
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(machine.url, { waitUntil: 'load' });
  await page.evaluate(() => {
    window.__sameDocument = true;
  });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

/** Opens the launch dialog of a project, with a background session chosen. */
async function dispatchIn(project) {
  await press(`${part('section-projects')} [data-project="${project}"] ${part('act-launch')}`);
  await press(part('launch-kind-background'));
  await seen(part('launch-prompt'));
}

const refused = () =>
  page.$eval(part('launch-submit'), (button) => button.getAttribute('aria-disabled'));

test('a background session needs a first prompt and then works on the open page', async () => {
  await dispatchIn('api');
  assert.equal(await refused(), 'true');
  await says('#launch-says', 'first prompt');
  await page.type(part('launch-prompt'), 'Translate the last three posts');
  await page.waitForFunction(
    (where) => !document.querySelector(where).hasAttribute('aria-disabled'),
    {},
    part('launch-submit'),
  );
  await shot('launch-background');
  await press(part('launch-submit'));
  await seen(`${part('section-live')} ${job('api', 'working')}`);
  await says(job('api', 'working'), 'Translate the last three posts');
  await says(job('api', 'working'), 'reading the posts');
  await says(part('nav-jobs-count'), '1');
  const [started] = await machine.api('/api/agents');
  assert.equal(started.intent, 'Translate the last three posts');
  await shot('home-job');
});

test('what it asks is shown live, first on the page', async () => {
  const [{ id }] = await machine.api('/api/agents');
  const file = join(machine.env.CLAUDE_CONFIG_DIR, 'jobs', id, 'state.json');
  const record = JSON.parse(readFileSync(file, 'utf8'));
  const asks = { ...record, state: 'blocked', tempo: 'blocked', needs: 'which spelling to use' };
  writeFileSync(`${file}.new`, JSON.stringify(asks));
  renameSync(`${file}.new`, file);
  await seen(`${part('section-waiting')} ${job('api', 'blocked')}`);
  await says(job('api', 'blocked'), 'needs: which spelling to use');
  await says(job('api', 'blocked'), `claude attach ${id}`);
  await page.waitForFunction(() => document.title.startsWith('(1) '));
  await says(part('nav-inbox-count'), '1');
  const first = await page.$eval('main section', (section) => section.dataset.testid);
  assert.equal(first, 'section-waiting');
  await press(part('nav-inbox'));
  await seen(`${part('inbox-jobs')} ${job('api', 'blocked')}`);
  await press(part('nav-home'));
  await seen(`${part('section-waiting')} ${job('api', 'blocked')}`);
  await shot('home-job-blocked');
});

test('it is stopped after a question, and its row goes', async () => {
  await press(`${job('api', 'blocked')} ${part('act-stop')}`);
  await press(part('confirm-yes'));
  await gone(`${part('job-row')}[data-project="api"]`);
  await says(part('toast'), 'Stopped the job in api');
  assert.deepEqual(await machine.api('/api/agents'), []);
});

test('a job started from a terminal shows its result and is resumed as a new one', async () => {
  await machine.cli('jobs', 'start', 'quick', 'Translate it');
  await press(part('nav-jobs'));
  await seen(job('quick', 'done'));
  const [{ id }] = await machine.api('/api/agents');
  await press(`${job('quick', 'done')} summary`);
  await says(part('job-result'), 'All three posts are translated.');
  await shot('jobs-done');
  await press(`${job('quick', 'done')} ${part('act-resume')}`);
  await says(part('toast'), 'Resumed in quick as a new job');
  await page.waitForFunction(
    (where) => document.querySelectorAll(where).length === 2,
    {},
    part('job-row'),
  );
  const jobs = await machine.api('/api/agents');
  const next = jobs.find((other) => other.id !== id).id;
  const link = await seen(`${part('toast')} a[href="/ui/jobs/${next}"]`);
  await link.evaluate((element) => element.click()); // another message may move it
  await seen(`[data-row="job:${next}"] ${part('job-texts')}[open]`);
  await go('/ui/activity', part('event'));
  await says(part('event'), 'quick');
  await go('/ui/projects', `${part('project-row')}[data-project="quick"]`);
  const used = await page.$eval(`${part('project-row')}[data-project="quick"]`, (row) => row.innerText);
  assert.doesNotMatch(used, /never/, 'a job is a use of its project');
  await press(part('nav-jobs'));
  await seen(job('quick', 'done'));
});

test('an ended job is removed at once, and for good when its message goes', async () => {
  const before = (await page.$$(part('job-row'))).length;
  await choose(`${job('quick', 'done')} ${part('act-more')}`, part('menu-remove'));
  await page.waitForFunction(
    (where, many) => document.querySelectorAll(where).length === many,
    {},
    part('job-row'),
    before - 1,
  );
  assert.equal((await machine.api('/api/agents')).length, before);
  const away = await seen(`${part('toast')}:has(${part('toast-undo')}) ${part('toast-dismiss')}`);
  await away.click();
  await until(async () => (await machine.api('/api/agents')).length === before - 1);
});

test('an untrusted folder gets a job only after it was acknowledged', async () => {
  await press(part('nav-home'));
  await dispatchIn('docs');
  await page.type(part('launch-prompt'), 'Tidy up');
  await seen(part('trust-gate'));
  await says('#launch-says', 'Trust the folder');
  assert.equal(await refused(), 'true');
  await press(part('trust-box'));
  await press(part('launch-submit'));
  await seen(job('docs', 'working'));
});

test('the pages of background and external sessions are not wider than a phone', async () => {
  for (const [name, path, there] of [
    ['jobs', '/ui/jobs', part('job-row')],
    ['job-gone', '/ui/jobs/00000000', part('job-gone')],
    ['external', '/ui/external', part('external-empty')],
    ['dispatch', '/?launch=api&kind=background', part('launch-prompt')],
  ]) {
    const { page: phone, complaints: said } = await tab(browser);
    await phone.setViewport({ width: 390, height: 844 });
    await phone.goto(machine.url + path, { waitUntil: 'load' });
    await phone.waitForSelector(there, { visible: true });
    const [wide, inner] = await phone.evaluate(() => [
      document.documentElement.scrollWidth,
      document.documentElement.clientWidth,
    ]);
    assert.ok(wide <= inner, `${name} is ${wide} px wide on ${inner} px`);
    await person(phone).shot(`phone-${name}`);
    await phone.close();
    assert.deepEqual(said, [], name);
  }
});

test('all of it happened on one document, without a complaint', async () => {
  assert.equal(await page.evaluate(() => window.__sameDocument), true);
  assert.deepEqual(complaints, []);
});
