// Every view, dialog and state in every width and theme: nothing for axe-core to find, nothing wider
// than the screen, targets for a thumb, one heading, no complaint in the console.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { given, launch, tab } from './harness.mjs';
import { line } from './line.mjs';
import { part, person, row } from './person.mjs';
import { sweep } from './sweep.mjs';
import { world } from './world.mjs';

const LONG = `a-${'very-'.repeat(20)}long-name`;

let machine, empty, browser, page, complaints, look, wire;
let seen, press, choose, says, gone;
let external;

before(async () => {
  machine = await world({
    api: { git: true },
    web: {},
    stopped: {},
    slow: { knobs: { ready: 'never' } },
    broken: { knobs: { fatal: 'login' } },
    docs: { trust: false },
    hand: {},
    idle: {},
    [LONG]: {},
    done: { knobs: { job_script: [[0, { state: 'done', result: 'All is translated.' }]] } },
    busy: { knobs: { job_script: [[0, { state: 'working', detail: 'reading the posts' }]] } },
  });
  empty = await world({});
  browser = await launch();
  external = spawn(given('SVC_SIM_BIN'), ['remote-control'], {
    cwd: join(machine.root, 'projects', 'hand'),
    env: machine.env,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  for (const name of ['api', 'web', 'stopped', LONG]) await machine.cli('start', name, '--wait');
  await machine.cli('stop', 'stopped');
  await machine.cli('start', 'broken').catch(() => {}); // it cannot
  await machine.cli('start', 'slow');
  await machine.cli('jobs', 'start', 'done', 'Translate it');
  await machine.cli('jobs', 'start', 'busy', 'Read it');
  const rows = await machine.api('/api/instances');
  const states = Object.fromEntries(rows.map(({ project, status }) => [project, status]));
  assert.deepEqual(
    [states.api, states.web, states.stopped, states.slow],
    ['running', 'running', 'stopped', 'starting'],
    JSON.stringify(states),
  );
  assert.match(states.broken, /error|crashed/);
  process.kill(rows.find(({ project }) => project === 'web').bridge_pid, 'SIGKILL');
  ({ page, complaints } = await tab(browser));
  ({ seen, press, choose, says, gone } = person(page));
  wire = await line(page);
  look = await sweep(page);
  await page.goto(machine.url, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  external?.kill('SIGKILL');
  await machine?.close();
  await empty?.close();
});

/** Another view of the same document, once everything in it is there. */
async function go(path, there) {
  await person(page).go(path, there);
  await gone('[aria-busy=true]');
}

/** Each finding once, with the states that show it. */
function clean(found) {
  const where = new Map();
  for (const [state, what] of found) where.set(what, [...(where.get(what) ?? []), state]);
  const lines = [...where].map(([what, at]) => `${what}\n    in ${at.length}: ${at.slice(0, 3).join('; ')}`);
  assert.equal(lines.length, 0, `\n${lines.join('\n')}`);
}

const phone = () => page.setViewport({ width: 390, height: 844 });
const desk = () => page.setViewport({ width: 1440, height: 900 });

test('H136: Home with something in every section', async () => {
  await seen(row('web', 'crashed'));
  await seen(`${part('section-needs-look')} [data-project="broken"]`);
  await seen(row('slow', 'starting'));
  await seen(`${part('external-row')}[data-project="hand"]`);
  await seen(`${part('job-row')}[data-status="working"]`);
  const found = await look('home');
  await press(`${row('web', 'crashed')} ${part('show-output')}`);
  await press(`${row('api', 'running')} ${part('act-more')}`);
  await seen('[role=menu]');
  found.push(...(await look('home, output and menu open')));
  await page.keyboard.press('Escape');
  await press(`${row('api', 'running')} ${part('act-stop')}`);
  await seen(part('confirm'));
  found.push(...(await look('home, a question')));
  await press(part('confirm-no'));
  await choose(`${row('api', 'running')} ${part('act-more')}`, part('menu-rename'));
  await seen(part('rename-field'));
  found.push(...(await look('home, renaming')));
  await page.keyboard.press('Escape');
  clean(found);
});

test('the pages of lists', async () => {
  const [{ id }] = await machine.api('/api/agents');
  const found = [];
  for (const [path, there] of [
    ['/ui/projects', part('project-row')],
    ['/ui/projects?q=zzz', part('nothing-matches')],
    ['/ui/projects/api', part('project')],
    ['/ui/projects/api?tab=activity', part('event')],
    ['/ui/projects/docs', part('project')],
    ['/ui/projects/idle', part('project-empty')],
    ['/ui/projects/nothing-here', 'h1'],
    ['/ui/jobs', part('job-row')],
    [`/ui/jobs/${id}`, `${part('job-texts')}[open]`],
    ['/ui/jobs/00000000', part('job-gone')],
    ['/ui/inbox', part('inbox-empty')],
    ['/ui/external', part('external-row')],
    ['/ui/activity', part('event')],
    ['/ui/doctor', part('check')],
    ['/ui/about', part('about')],
    ['/ui/tokens', part('reach')],
    ['/ui/moon', part('not-found')],
  ]) {
    await go(path, there);
    found.push(...(await look(path)));
  }
  clean(found);
});

test('the pages of sessions', async () => {
  const rows = await machine.api('/api/instances');
  const id = (project) => rows.find((other) => other.project === project).instance_id;
  const found = [];
  for (const [path, there] of [
    [`/ui/s/${id('api')}`, part('log-line')],
    [`/ui/s/${id('api')}?tab=activity`, part('event')],
    [`/ui/s/${id('api')}?tab=details`, part('details')],
    [`/ui/s/${id('web')}`, part('cause-card')],
    [`/ui/s/${id('stopped')}`, part('log')],
    [`/ui/s/${id(LONG)}`, part('log-line')],
    ['/ui/s/ffffffff', part('not-found')],
  ]) {
    await go(path, there);
    found.push(...(await look(path)));
  }
  await wire.rule('/connect', { status: 409, code: 'no_link' });
  await go(`/ui/s/${id('api')}/open`, part('open-retry'));
  found.push(...(await look('open, refused')));
  await wire.rule('/connect');
  clean(found);
});

test('H136: dialogs, sheets and messages', async () => {
  await go('/ui/projects', part('project-row'));
  const found = [];
  for (const [name, path, there] of [
    ['launch', '/ui/projects?launch=idle', part('launch-submit')],
    ['launch where one lives', '/ui/projects?launch=api', part('launch-already')],
    ['launch, not trusted', '/ui/projects?launch=docs', part('trust-gate')],
    ['dispatch', '/ui/projects?launch=idle&kind=background', part('launch-prompt')],
    ['launch in nothing', '/ui/projects?launch=nothing', part('launch-dialog')],
  ]) {
    await go(path, there);
    found.push(...(await look(name)));
    await page.keyboard.press('Escape');
    await gone('dialog');
  }
  await press(part('help'));
  await seen(part('keys'));
  found.push(...(await look('keys')));
  await press(part('dialog-close'));
  await press(part('palette-open'));
  await seen('#palette [role=option]');
  found.push(...(await look('palette')));
  await page.keyboard.press('Escape');
  await gone('dialog');
  await phone();
  await press(part('nav-more'));
  await seen(part('more'));
  found.push(...(await look('more places', { widths: [390, 320] })));
  await phone();
  await press(part('dialog-close'));
  await desk();
  await go('/', row('api', 'running'));
  await choose(`${row('api', 'running')} ${part('act-more')}`, part('menu-qr'));
  await page.waitForFunction((where) => document.querySelector(where)?.naturalWidth > 0, {}, `${part('qr')} img`);
  found.push(...(await look('link as a picture')));
  await press(part('dialog-close'));
  clean(found);
});

test('a lost connection, an ended sign-in, and a page that cannot start', async () => {
  const found = [];
  await go('/', row('api', 'running'));
  await wire.cut();
  await seen(part('offline-banner'));
  found.push(...(await look('home, offline')));
  await go('/ui/projects', part('project-row'));
  found.push(...(await look('projects, offline')));
  const [{ instance_id: id }] = await machine.api('/api/instances');
  await go(`/ui/s/${id}`, part('log'));
  found.push(...(await look('session, offline')));
  // Far enough from the next try of the page itself, which would take the button away.
  await page.waitForFunction(
    (where) => /next try in ([5-9]|1\d) s/.test(document.querySelector(where)?.textContent),
    {},
    part('offline-banner'),
  );
  await wire.mend();
  await press(part('retry-now'));
  await gone(part('offline-banner'));
  await wire.cut(4401);
  await seen(part('signed-out'));
  found.push(...(await look('signed out')));
  await wire.mend();
  await gone(part('signed-out'));
  await wire.rule('/api/state', 'hold');
  await page.reload({ waitUntil: 'load' });
  await seen('[aria-busy=true]');
  found.push(...(await look('loading')));
  await wire.rule('/api/state', { status: 500, code: 'internal' });
  await page.reload({ waitUntil: 'load' });
  await seen(part('no-start'));
  found.push(...(await look('cannot start')));
  await wire.rule('/api/state', { status: 403, code: 'origin_check_failed' });
  await page.reload({ waitUntil: 'load' });
  await seen(part('wrong-address'));
  found.push(...(await look('wrong address')));
  await wire.rule('/api/state');
  clean(found);
});

test('places without anything in them', async () => {
  const found = [];
  await page.goto(empty.url, { waitUntil: 'load' });
  await seen(part('welcome'));
  found.push(...(await look('home, empty')));
  for (const [path, there] of [
    ['/ui/projects', 'h1'],
    ['/ui/jobs', part('jobs-empty')],
    ['/ui/external', part('external-empty')],
    ['/ui/activity', 'h1'],
  ]) {
    await go(path, there);
    found.push(...(await look(`${path}, empty`)));
  }
  clean(found);
});

test('nothing was complained about', async () => {
  await page.close();
  assert.deepEqual(complaints, []);
});
