// The main job in a real browser: launch, follow, crash, resume, stop, and what other terminals do,
// all on one page that is never loaded again.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

let machine;
let browser;
let page;
let complaints;

let seen, press, says, shot;

before(async () => {
  machine = await world({
    api: { git: true },
    web: {},
    docs: { trust: false },
    broken: { knobs: { fatal: 'login' } },
  });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, shot } = person(page));
  await page.setViewport({ width: 1280, height: 800 });
  await page.goto(machine.url, { waitUntil: 'load' });
  // A reload would lose it.
  await page.evaluate(() => {
    window.__sameDocument = true;
  });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('a project is launched from the page and runs without a reload', async () => {
  await seen(`${part('section-projects')} [data-project="api"]`);
  await shot('home-first');
  await press(`${part('section-projects')} [data-project="api"] ${part('act-launch')}`);
  await seen(part('launch-dialog'));
  await shot('launch-dialog');
  await press(part('launch-submit'));
  await seen(row('api', 'running'));
  await shot('home-running');
  const [instance] = await machine.api('/api/instances');
  assert.equal(instance.status, 'running');
});

test('its log is followed while it is written', async () => {
  await press(`${row('api', 'running')} ${part('act-log')}`);
  await seen(part('log'));
  await says(part('log-line'), 'Starting poll loop');
  const session = (await machine.remote('connect', join(machine.root, 'projects', 'api'))).trim();
  await says(part('log-line'), '[bridge:session]');
  const text = await page.$eval(part('log'), (log) => log.textContent);
  assert.ok(!text.includes(session), 'a raw identifier is on the page');
  await shot('session-log');
});

test('a bridge killed from outside is shown crashed with its cause', async () => {
  const [instance] = await machine.api('/api/instances');
  const start = performance.now();
  process.kill(instance.bridge_pid, 'SIGKILL');
  await seen(row('api', 'crashed'));
  await seen(part('cause-card'));
  const took = performance.now() - start;
  console.log(`# killed from outside: shown crashed with its cause after ${took.toFixed(0)} ms`);
  const cause = await page.$eval(part('cause-card'), (card) => card.textContent);
  assert.match(cause, /kill/i);
  await shot('session-crashed');
});

test('it is resumed into the same row', async () => {
  const id = await page.$eval(row('api', 'crashed'), (element) => element.dataset.instance);
  await press(part('act-resume'));
  await seen(row('api', 'running'));
  const again = await page.$eval(row('api', 'running'), (element) => element.dataset.instance);
  assert.equal(again, id);
  const rows = await machine.api('/api/instances');
  assert.deepEqual(
    rows.map(({ instance_id: instance, generation }) => [instance, generation]),
    [[id, 2]],
  );
});

test('it is stopped after a question', async () => {
  await press(part('act-stop'));
  await seen(part('confirm'));
  await press(part('confirm-yes'));
  await seen(row('api', 'stopped'));
  await shot('session-stopped');
  const [instance] = await machine.api('/api/instances');
  assert.equal(instance.exit_reason, 'operator_stop');
});

test('what another terminal starts and stops is on the open page', async () => {
  await page.evaluate(() => history.back());
  await seen(part('section-projects'));
  await machine.cli('start', 'web');
  await seen(row('web', 'running'));
  await shot('home-from-terminal');
  await machine.cli('stop', 'web');
  await seen(row('web', 'stopped'));
  await machine.cli('resume', 'web');
  await seen(row('web', 'running'));
  await machine.cli('stop', 'web');
  await machine.cli('forget', 'web');
  await page.waitForSelector('[data-instance][data-project="web"]', { hidden: true });
});

test('a failed start shows the words of the agent', async () => {
  await press(`${part('section-projects')} [data-project="broken"] ${part('act-launch')}`);
  await press(part('launch-submit'));
  await seen(row('broken', 'error'));
  await says(row('broken', 'error'), 'not signed in');
  await press(part('show-output'));
  await says(part('output'), 'You must be logged in to use Remote Control');
  await shot('home-needs-look');
});

test('an untrusted directory is launched only after it was acknowledged', async () => {
  await press(`${part('section-projects')} [data-project="docs"] ${part('act-launch')}`);
  await seen(part('trust-gate'));
  await shot('launch-untrusted');
  const before = await machine.api('/api/instances');
  await press(part('launch-submit'));
  await seen(part('trust-gate'));
  assert.equal((await machine.api('/api/instances')).length, before.length);
  await press(part('trust-box'));
  await press(part('launch-submit'));
  await seen(row('docs', 'running'));
  const docs = (await machine.api('/api/projects')).find(({ name }) => name === 'docs');
  assert.equal(docs.trust_state, 'trusted');
});

test('nothing is wider than a phone', async () => {
  await page.setViewport({ width: 390, height: 844 });
  const [{ instance_id: id }] = await machine.api('/api/instances');
  for (const [name, path, there] of [
    ['home', '/', part('section-projects')],
    ['projects', '/ui/projects', part('project-row')],
    ['session', `/ui/s/${id}`, part('session')],
    ['details', `/ui/s/${id}?tab=details`, part('details')],
    ['dialog', '/?launch=web', part('launch-dialog')],
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
    if (process.env.SVC_SHOTS) {
      await phone.screenshot({ path: join(process.env.SVC_SHOTS, `phone-${name}.png`) });
    }
    await phone.close();
    assert.deepEqual(said, [], name);
  }
  await page.setViewport({ width: 1280, height: 800 });
});

test('all of it happened on one document', async () => {
  const same = await page.evaluate(() => window.__sameDocument);
  assert.equal(same, true, 'the page was loaded again');
});

test('nothing was complained about', () => {
  assert.deepEqual(complaints, []);
});
