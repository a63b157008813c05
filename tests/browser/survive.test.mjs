// What a page that stays open lives through: the service killed and started again, the network cut,
// the machine asleep, another tab, hundreds of changes at once, sockets cut in the middle of a
// frame. It is never loaded again, and shows what the service knows.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { DEADLINE_MS, launch, tab } from './harness.mjs';
import { part, person, row, until } from './person.mjs';
import { proxy } from './proxy.mjs';
import { world } from './world.mjs';

const MANY = 200;
const CUTS = 50;

let wire, machine, browser, page, complaints;
let seen, press, says, gone;
let home;
let all;
/** State of each job as it was written last. */
const written = new Map();

const job = (state) => `${part('job-row')}[data-status="${state}"]`;

before(async () => {
  wire = await proxy();
  const origin = `http://127.0.0.1:${wire.port}`;
  machine = await world(
    { api: {}, web: {}, busy: { knobs: { job_script: [[0, { state: 'working' }]] } }, slow: { knobs: { ready_ms: 4_000 } } },
    { auth: { allowed_origins: [origin] } },
  );
  wire.to(Number(new URL(machine.url).port));
  home = `${origin}/ui/`;
  await machine.cli('start', 'api', '--wait');
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone } = person(page));
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(home, { waitUntil: 'load' });
  await seen(row('api', 'running'));
  await page.evaluate(() => {
    window.__sameDocument = true;
  });
});

after(async () => {
  if (all) jobs().forget(all); // nobody works on them
  await browser?.close();
  await machine?.close();
  wire?.close();
});

/**
 * What a lost line makes the browser itself say, and the loader of the other views, which says it
 * when the line goes while they come and fetches them again when it is back.
 */
const lineNoise = (line) =>
  /ERR_(CONNECTION|INTERNET|NETWORK|EMPTY|SOCKET)|WebSocket connection|Failed to load resource/.test(line) ||
  line === 'console error: TypeError: Failed to fetch';

/** The records as the page shows them, beside those of the service. */
async function agrees() {
  const { state } = await machine.api('/api/state');
  const wanted = [
    ...Object.values(state.instances).map((it) => `${it.instance_id} ${it.status} ${it.label}`),
    ...Object.values(state.jobs ?? {}).map((it) => `job:${it.id} ${it.state} ${it.detail}`),
  ];
  await page.waitForFunction(
    (all) => {
      const shown = [...document.querySelectorAll('[data-row][data-status]')];
      return (
        shown.length === all.length &&
        all.every((line) => {
          const [key, status, ...rest] = line.split(' ');
          const element = document.querySelector(`[data-row="${key}"]`);
          const name = rest.join(' ');
          return element?.dataset.status === status && element.textContent.includes(name);
        })
      );
    },
    {},
    wanted,
  );
}

test('H132: a killed service is shown, its rows cannot act, and the next one is right', async () => {
  const curve = `${row('api', 'running')} ${part('used')}`;
  await page.waitForSelector(`${curve} .spark-line`); // flat: nothing that counts as visible
  await machine.kill();
  await seen(part('offline-banner'));
  await says(part('offline-banner'), 'data from');
  await page.waitForSelector(`${curve} .spark-hatch`); // the curve ends where the knowledge does
  await seen(`${row('api', 'running')} ${part('act-stop')}[aria-disabled="true"]`);
  const before = await page.$eval(row('api', 'running'), (element) => element.dataset.instance);
  await machine.start();
  await gone(part('offline-banner'));
  await says(part('toast'), 'The service was restarted. Up to date.');
  await seen(`${row('api', 'running')} ${part('act-stop')}:not([aria-disabled])`);
  const again = await page.$eval(row('api', 'running'), (element) => element.dataset.instance);
  assert.equal(again, before);
  await agrees();
});

test('what happened while the service was away is on the page when it is back', async () => {
  const [{ bridge_pid: pid }] = await machine.api('/api/instances');
  await machine.kill();
  await seen(part('offline-banner'));
  process.kill(pid, 'SIGKILL');
  await machine.start();
  await gone(part('offline-banner'));
  await gone(row('api', 'running'));
  await agrees();
  await machine.cli('resume', 'api');
  await seen(row('api', 'running'));
});

test('H132: a lost network is shown, and the page catches up by itself', async () => {
  await page.setOfflineMode(true);
  await seen(part('offline-banner'));
  await machine.cli('start', 'web', '--wait');
  assert.equal(await page.$(row('web', 'running')), null);
  await page.setOfflineMode(false);
  await gone(part('offline-banner'));
  await seen(row('web', 'running'));
  await says(part('toast'), 'while you were away');
  await agrees();
});

test('a restart that the service never heard of is not said to be under way', async () => {
  const { page: other } = await tab(browser);
  const one = person(other);
  await other.goto(`${home}about`, { waitUntil: 'load' });
  await one.press(part('about-restart'));
  await one.seen(part('restart-dialog'));
  await other.setOfflineMode(true);
  await one.press(part('restart-begin'));
  // Before the page has noticed it waits for the answer, afterwards it says why it cannot ask.
  await other.waitForSelector(`${part('restart-away')}, ${part('restart-problem')}`);
  await one.seen(part('offline-banner'));
  await other.setOfflineMode(false);
  await one.gone(part('offline-banner'));
  await one.seen(part('restart-problem'));
  await one.gone(part('restart-away'));
  await other.close();
  await page.bringToFront();
});

test('a message about a start ends also when its end was not seen', async () => {
  await machine.cli('start', 'slow', '--wait');
  await machine.cli('stop', 'slow');
  await press(`${row('slow', 'stopped')} ${part('act-resume')}`);
  const starts = () =>
    page.$$eval(part('toast'), (all) => all.some((it) => /starting/i.test(it.innerText)));
  await until(starts);
  // Another state comes instead of the change that the message waits for.
  await machine.kill();
  await seen(part('offline-banner'));
  await machine.start();
  await gone(part('offline-banner'));
  await seen(row('slow', 'running'));
  await until(async () => !(await starts()));
  await machine.cli('stop', 'slow');
});

test('a page that slept shows what happened meanwhile', async () => {
  const { page: asleep, complaints: said } = await tab(browser);
  await asleep.goto(home, { waitUntil: 'load' });
  await asleep.waitForSelector(row('web', 'running'));
  const devtools = await asleep.createCDPSession();
  await devtools.send('Page.setWebLifecycleState', { state: 'frozen' });
  wire.cut();
  await machine.cli('stop', 'web');
  await devtools.send('Page.setWebLifecycleState', { state: 'active' });
  // The tab counts as hidden from now on: nothing is painted, so nothing may wait for paint.
  const now = (state) =>
    asleep.waitForFunction((where) => document.querySelector(where), { polling: 'mutation' }, state);
  await now(row('web', 'stopped'));
  await now('[data-link="live"]');
  await asleep.close();
  await page.bringToFront();
  assert.deepEqual(said.filter((line) => !lineNoise(line)), []);
  await seen(row('web', 'stopped'));
  await gone(part('offline-banner'));
});

test('two tabs show the same, and one that goes takes nothing from the other', async () => {
  const { page: other, complaints: said } = await tab(browser);
  const second = person(other);
  await other.goto(home, { waitUntil: 'load' });
  await second.press(`${row('web', 'stopped')} ${part('act-resume')}`);
  await second.seen(row('web', 'running'));
  await page.bringToFront();
  await seen(row('web', 'running'));
  await other.close();
  assert.deepEqual(said, []);
  await press(`${row('web', 'running')} ${part('act-stop')}`);
  await press(part('confirm-yes'));
  await seen(row('web', 'stopped'));
});

/** Writes the records of many jobs as the agent does. */
function jobs() {
  const dir = join(machine.env.CLAUDE_CONFIG_DIR, 'jobs');
  return {
    like: (id) => {
      const record = JSON.parse(readFileSync(join(dir, id, 'state.json'), 'utf8'));
      return Array.from({ length: MANY }, (_, at) => {
        const own = (0xa0000000 + at).toString(16);
        mkdirSync(join(dir, own), { recursive: true });
        return { id: own, record };
      });
    },
    forget: (all) => {
      for (const { id } of all) rmSync(join(dir, id), { recursive: true });
    },
    write: (all, change) => {
      for (const [at, { id, record }] of all.entries()) {
        const file = join(dir, id, 'state.json');
        const next = { ...record, ...change(at) };
        writeFileSync(`${file}.new`, JSON.stringify(next));
        renameSync(`${file}.new`, file);
        written.set(id, next.state);
      }
    },
  };
}

/** Waits until the lists of jobs that show nothing but this state have so many rows. */
const untilJobs = (state, many) =>
  page.waitForFunction(
    (where, wanted, count) => {
      // Of a long list only a part exists; each row of it knows how many there are.
      const lists = [...document.querySelectorAll(`ul:has(> ${where})`)];
      const size = ({ children: [row, ...more] }) =>
        Number(row.getAttribute('aria-setsize') ?? 1 + more.length);
      return (
        lists
          .filter((list) => [...list.children].every((row) => row.dataset.status === wanted))
          .reduce((sum, list) => sum + size(list), 0) === count
      );
    },
    {},
    part('job-row'),
    state,
    many,
  );

test('two hundred rows change at once, and the one under the hand stays the same', async () => {
  await machine.cli('jobs', 'start', 'busy', 'Read it');
  await seen(job('working'));
  const [{ id }] = await machine.api('/api/agents');
  all = jobs().like(id);
  jobs().write(all, (at) => ({ state: 'done', tempo: 'idle', detail: `ready ${at}` }));
  await page.goto(home.replace('/ui/', '/ui/jobs'), { waitUntil: 'load' });
  await page.evaluate(() => {
    window.__sameDocument = true;
  });
  await untilJobs('done', MANY);
  const name = `[data-row="job:${id}"] .name`;
  await page.focus(name);
  await page.$eval(name, (element) => {
    element.__mine = true;
  });
  jobs().write(all, (at) => ({ state: 'failed', tempo: 'idle', detail: `went wrong ${at}` }));
  await untilJobs('failed', MANY);
  assert.equal(await page.evaluate(() => document.activeElement.__mine), true, 'the focus moved');
  await agreesOnJobs();
});

/** Waits until the service has read what was written last, and the page shows what it knows. */
async function agreesOnJobs() {
  const until = Date.now() + DEADLINE_MS;
  for (;;) {
    const known = await machine.api('/api/agents');
    const hasRead = known.every(({ id, state }) => (written.get(id) ?? state) === state);
    const state = new Map(known.map(({ id, state }) => [`job:${id}`, state]));
    const { total, rows } = await page.$$eval(`ul:has(> ${part('job-row')})`, (lists) => ({
      total: lists
        .map(({ children: [row, ...more] }) => row.getAttribute('aria-setsize') ?? 1 + more.length)
        .reduce((sum, size) => sum + Number(size), 0),
      rows: lists.flatMap(({ children }) =>
        [...children].map(({ dataset }) => [dataset.row, dataset.status]),
      ),
    }));
    const shown = { total, wrong: rows.filter(([row, status]) => state.get(row) !== status) };
    const wanted = { total: known.length, wrong: [] };
    if (hasRead && JSON.stringify(shown) === JSON.stringify(wanted)) return;
    if (Date.now() < until) continue;
    assert.ok(hasRead, 'the service has not read what was written');
    assert.deepEqual(shown, wanted);
  }
}

test(`${CUTS} cuts while everything changes leave the page with the state of the service`, async () => {
  for (let cut = 0; cut < CUTS; cut += 1) {
    const from = (cut * 7) % MANY;
    jobs().write(all.slice(from, from + 20), () => ({
      state: cut % 2 ? 'done' : 'failed',
      tempo: 'idle',
      detail: `cut ${cut}`,
    }));
    wire.cut();
    // As the browser does when the network is back: the next try is made at once.
    await page.evaluate(() => dispatchEvent(new Event('online')));
  }
  await gone(part('offline-banner'));
  await page.waitForSelector('[data-link="live"]');
  await agreesOnJobs();
  assert.equal(await page.evaluate(() => window.__sameDocument), true);
});

test('nothing was complained about but the line', () => {
  assert.deepEqual(complaints.filter((line) => !lineNoise(line)), []);
});

test('a defect of the page ends in a screen that says so and leads on', async () => {
  const { page: broken, complaints: said } = await tab(browser);
  const other = person(broken);
  await broken.goto(home, { waitUntil: 'load' });
  await other.seen(row('api', 'running'));
  // The browser refuses one element, which it never does: the page cannot go on.
  await broken.evaluate(() => {
    const real = Document.prototype.createElement;
    const copy = Node.prototype.cloneNode;
    const once = () => {
      Document.prototype.createElement = real;
      Node.prototype.cloneNode = copy;
      throw new Error('out of elements');
    };
    Document.prototype.createElement = once;
    Node.prototype.cloneNode = once;
  });
  await machine.cli('resume', 'web');
  await other.seen('#crash');
  const text = await broken.$eval('#crash', (screen) => screen.textContent);
  assert.match(text, /panicked/);
  assert.match(text, /build [0-9a-f]/);
  assert.ok(said.some((line) => line.includes('panicked')), `${said}`);
  assert.equal(await broken.$$eval('body > :not(#crash):not([inert])', (all) => all.length), 0);
  await Promise.all([broken.waitForNavigation({ waitUntil: 'load' }), broken.click('#crash a')]);
  await other.seen(row('api', 'running'));
  await broken.close();
});
