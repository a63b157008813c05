// Automatic restarts on the page: the policy and its change, the countdown, calling it off, and the
// release of a session that was given up.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { away, launch, tab } from './harness.mjs';
import { part, person, row, until } from './person.mjs';
import { world } from './world.mjs';

let machine, browser, page, complaints;
let seen, press, says, gone, pick, shot;

const SIZES = { phone: [390, 844], desk: [1440, 900] };
const resize = async (name) => {
  const [width, height] = SIZES[name];
  await page.setViewport({ width, height });
};
const one = async (project) =>
  (await machine.api('/api/instances')).find((instance) => instance.project === project);
const sideways = () =>
  page.evaluate(() => document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth);

before(async () => {
  machine = await world(
    { web: {} },
    { restart: { initial_delay_seconds: 59, max_delay_seconds: 59, jitter: 0 } },
  );
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, pick, shot } = person(page));
  await resize('desk');
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('H112: the policy of a session is shown and changed on its page', async () => {
  await machine.cli('start', 'web', '--wait', '20');
  const { instance_id: id } = await one('web');
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await press(`${row('web', 'running')} ${part('act-more')}`);
  await press(part('menu-restart-policy'));
  await seen(part('restart-policy'));
  assert.equal(await page.$eval(part('restart-policy'), (field) => field.value), 'never');
  await says('#restart-policy-help', 'somebody has to resume');
  await pick(part('restart-policy'), 'on-crash');
  await page.waitForFunction((at) => document.querySelector(at).value === 'on-crash', {}, part('restart-policy'));
  await says('#restart-policy-help', 'Resumes the session after a crash');
  assert.equal((await one('web')).restart.policy, 'on-crash');
  // A choice that has no answer yet is not sent a second time.
  await says(part('toast'), 'web restarts: After a crash');
  await says('.session-facts', 'restarts on crash');
  await shot('restart-policy-desk');
  await resize('phone');
  assert.equal(await sideways(), false);
  await shot('restart-policy-phone');
  await pick(part('restart-policy'), '');
  await page.waitForFunction((at) => document.querySelector(at).value === 'never', {}, part('restart-policy'));
  await pick(part('restart-policy'), 'on-crash');
  await until(async () => (await one('web')).restart.policy === 'on-crash');
  assert.equal((await one('web')).instance_id, id);
});

test('H112: a scheduled restart is counted down, and a person calls it off', async () => {
  const { instance_id: id, bridge_pid: pid } = await one('web');
  process.kill(pid, 'SIGKILL');
  await seen(part('restart-card'));
  await says(part('restart-card'), 'The service resumes this session in');
  await says(part('restart-card'), 'This is attempt 1');
  await shot('restart-waits-phone');
  assert.equal(await sideways(), false);
  const text = () => page.$eval(part('restart-card'), (card) => card.textContent);
  const first = await text();
  await page.waitForFunction(
    (at, before) => document.querySelector(at)?.textContent !== before,
    { timeout: 30_000 },
    part('restart-card'),
    first,
  );
  await resize('desk');
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await says(row('web', 'crashed'), 'restarts in');
  await shot('restart-waits-desk');
  await page.goto(`${machine.url}/ui/s/${id}`, { waitUntil: 'load' });
  await press(part('act-stop-trying'));
  await gone(part('restart-card'));
  const { restart, status } = await one('web');
  assert.deepEqual([restart.state, restart.next_at], ['idle', null]);
  assert.ok(['crashed', 'stopped'].includes(status), status);
});

test('H112: a scheduled restart begins at once when a person asks for it', async () => {
  await machine.cli('resume', (await one('web')).instance_id);
  await until(async () => (await one('web')).status === 'running');
  process.kill((await one('web')).bridge_pid, 'SIGKILL');
  await seen(part('restart-card'));
  await press(part('act-restart-now'));
  await seen(`${part('session')}[data-status=running]`);
  await gone(part('restart-card'));
});

test('H112: a session that was given up says after how many crashes, and is released', async () => {
  await away({ page, complaints }, machine.close);
  const knobs = { exit_after_ready_ms: 20, exit_code: 3 };
  machine = await world(
    { loop: { knobs } },
    {
      restart: {
        policy: 'on-crash',
        initial_delay_seconds: 0.05,
        max_delay_seconds: 0.1,
        max_crashes: 3,
      },
    },
  );
  await machine.cli('start', 'loop');
  await until(async () => (await one('loop')).restart.state === 'quarantined');
  const { instance_id: id } = await one('loop');
  await page.goto(`${machine.url}/ui/s/${id}`, { waitUntil: 'load' });
  await says(part('restart-card'), '3 crashes in a short time');
  await says(part('session'), 'Quarantined');
  // Every crash stands in the timeline beside its cause.
  await page.waitForFunction(
    (where) =>
      [...document.querySelectorAll(where)].filter((e) => e.textContent.includes('Crashed')).length === 3,
    {},
    `${part('few-events')} ${part('event')}`,
  );
  await shot('restart-given-up-desk');
  await resize('phone');
  assert.equal(await sideways(), false);
  await press(part('act-release'));
  await seen(part('confirm'));
  await shot('restart-release-phone');
  await press(part('confirm-no'));
  await page.waitForFunction(
    (name) => document.activeElement?.dataset.testid === name,
    {},
    'act-release',
  );
  await press(part('act-release'));
  await press(part('confirm-yes'));
  await gone(part('restart-card'));
  const row = await one('loop');
  assert.deepEqual([row.quarantined, row.restart.state, row.generation], [null, 'idle', 3]);
  // Started again by hand, it crashes again until it is given up; then release and start.
  await machine.cli('resume', id);
  await until(async () => (await one('loop')).restart.state === 'quarantined');
  const { generation } = await one('loop');
  await press(part('act-release-start'));
  await until(async () => (await one('loop')).generation > generation);
  await until(async () => (await one('loop')).restart.state === 'quarantined');
  // Between two crashes it runs, and the report of a crash that is asked for then is refused.
  const is_late = (text) => /^409: .*\/report$/.test(text) || text.includes('status of 409');
  assert.deepEqual(complaints.filter((text) => !is_late(text)), []);
});
