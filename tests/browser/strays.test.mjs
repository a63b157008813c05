// What bridges have left behind is listed on Readiness and ended there; two processes on one session
// are told of at their rows.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { given, launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

const SESSION = '5e5510a0-1111-4222-8333-444444444444';
const knobs = { session_id: SESSION };

let machine;
let browser;
let page;
let complaints;
let seen, go, press, says, gone, shot;
const left = [];
let hand;

const stray = (child) => `${part('stray')}[data-pid="${child.pid}"]`;
const end = (child) => `${stray(child)} ${part('act-end-stray')}`;

/** What has the focus, by its name for tests. */
const focused = (name) =>
  page.waitForFunction((wanted) => document.activeElement?.dataset.testid === wanted, {}, name);

before(async () => {
  machine = await world({ web: { knobs }, api: { knobs } });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, go, press, says, gone, shot } = person(page));
  await page.setViewport({ width: 1280, height: 800 });
});

after(async () => {
  await browser?.close();
  for (const child of [...left, hand]) child?.kill('SIGKILL');
  await machine?.close();
});

test('what an ended bridge left is listed under its check', async () => {
  await machine.cli('start', 'web');
  const [bridge] = await machine.api('/api/instances');
  const environment = readFileSync(`/proc/${bridge.bridge_pid}/environ`, 'utf8').split('\0');
  const mark = environment.find((one) => one.startsWith('SVC_LAUNCH_ID=')).split('=')[1];
  await machine.cli('stop', 'web');
  // The service that saw it end would end these too.
  await machine.kill();
  for (let count = 0; count < 3; count += 1) {
    const env = { ...machine.env, SVC_LAUNCH_ID: mark };
    const child = spawn('sleep', ['600'], { cwd: machine.root, env, stdio: 'ignore' });
    await once(child, 'spawn');
    left.push(child);
  }
  await machine.start();
  await page.goto(`${machine.url}/ui/doctor`, { waitUntil: 'load' });
  for (const child of left) {
    await seen(`[data-testid="warn"] [data-check="strays"] ${stray(child)}`);
    await says(stray(child), `${child.pid} (sleep)`);
    await says(stray(child), 'left by a session that ended');
    await says(stray(child), 'web');
  }
  await shot('strays');
});

test('one is ended after a question, by the keyboard alone', async () => {
  const [first] = left;
  const ended = once(first, 'exit');
  await page.focus(end(first));
  await page.keyboard.press('Enter');
  await says(`${stray(first)} ${part('confirm')}`, 'cannot finish its work');
  await focused('confirm-no');
  await shot('strays-question');
  await page.keyboard.press('Enter');
  await gone(part('confirm'));
  await focused('act-end-stray');
  await page.keyboard.press('Enter');
  await focused('confirm-no');
  await page.focus(part('confirm-yes'));
  await page.keyboard.press('Enter');
  await says(part('toast'), `Process ${first.pid} (sleep) has ended`);
  assert.deepEqual(await ended, [null, 'SIGKILL']);
  await gone(stray(first));
  await says('[data-check="strays"]', '2 processes without a live bridge');
  await focused('act-end-stray');
  assert.deepEqual(complaints, []);
});

test('H131: a refused kill says why, in the words of the service, and the list is read again', async () => {
  const [, second] = left;
  await seen(end(second));
  const ended = once(second, 'exit');
  second.kill('SIGKILL');
  await ended;
  await press(end(second));
  await press(`${stray(second)} ${part('confirm-yes')}`);
  await says(part('toast'), `Couldn't end process ${second.pid} (sleep)`);
  await says(part('toast'), `Process ${second.pid} is no stray of this service`);
  await gone(stray(second));
  await shot('strays-refused');
  assert.ok(complaints.splice(0).every((line) => line.includes('409')));
});

test('a thumb reaches the button on a phone, and nothing is cut off', async () => {
  const [, , third] = left;
  await page.setViewport({ width: 390, height: 844, hasTouch: true, isMobile: true });
  const button = await seen(end(third));
  const { width, height } = await button.boundingBox();
  assert.ok(width >= 44 && height >= 44, `${width} × ${height}`);
  await shot('strays-phone');
  await press(end(third));
  await seen(`${stray(third)} ${part('confirm')}`);
  await shot('strays-phone-question');
  const overflows = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  assert.equal(overflows, 0);
  const ended = once(third, 'exit');
  await press(`${stray(third)} ${part('confirm-yes')}`);
  await ended;
  await gone(part('strays'));
  await seen('[data-testid="ok"] [data-check="strays"]');
  await page.setViewport({ width: 1280, height: 800 });
  assert.deepEqual(complaints, []);
});

test('two processes on one session are told of at both rows, until one of them ends', async () => {
  await go('/ui/', part('section-projects'));
  await machine.cli('resume', 'web');
  await seen(row('web', 'running'));
  const [bridge] = await machine.api('/api/instances');
  hand = spawn(given('SVC_SIM_BIN'), ['remote-control'], {
    cwd: join(machine.root, 'projects', 'api'),
    env: machine.env,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const pids = [bridge.bridge_pid, hand.pid].sort((a, b) => a - b);
  const words = `Processes ${pids.join(' and ')} work on the same session`;
  await says(`${row('web', 'running')} ${part('same-session')}`, words);
  const theirs = `${part('external-row')}[data-project="api"]`;
  await says(`${theirs} ${part('same-session')}`, words);
  assert.ok(!(await page.content()).includes(SESSION));
  await shot('same-session');
  await page.setViewport({ width: 390, height: 844, hasTouch: true, isMobile: true });
  await seen(part('same-session'));
  await shot('same-session-phone');
  const ended = once(hand, 'exit');
  hand.kill('SIGINT');
  await ended;
  await gone(part('same-session'));
  await seen(row('web', 'running'));
  await page.close();
  assert.deepEqual(complaints, []);
});
