// Interactive Sessions from the page: launched from the dialog, shown on the row, opened in the
// terminal; and what the dialog says where others work on the same files.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

const LAUNCHES = (request) =>
  request.method() === 'POST' && /\/api\/instances\?wait=0$/.test(request.url());

let machine, browser, page, complaints;
let seen, press, says, gone, pick, shot;

before(async () => {
  machine = await world(
    { api: { git: true }, bare: { git: true }, plain: {} },
    { claude: { pty_screen_enabled: true } },
  );
  const api = join(machine.root, 'projects', 'api');
  writeFileSync(join(api, 'README.md'), '# api\n');
  const git = (...args) =>
    execFileSync('git', ['-C', api, '-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args]);
  git('add', '.');
  git('commit', '-q', '-m', 'first');
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, pick, shot } = person(page));
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

async function open(project, query = '') {
  await page.goto(`${machine.url}/ui/projects/${project}/launch${query}`, { waitUntil: 'load' });
  await seen(part('launch-dialog'));
  await page.waitForFunction(
    (where) => !document.querySelector(where)?.textContent.includes('Checking'),
    {},
    part('launch-dialog'),
  );
}

async function submit() {
  const request = page.waitForRequest(LAUNCHES);
  await press(part('launch-submit'));
  const asked = JSON.parse((await request).postData());
  await gone(part('launch-dialog'));
  return asked;
}

const sideways = () =>
  page.evaluate(() => document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth);

for (const [name, width, height] of [['phone', 390, 844], ['desk', 1440, 900]]) {
  test(`an Interactive Session is launched with its place and policy, ${name}`, async () => {
    await page.setViewport({ width, height });
    await open('api');
    await press(part('launch-kind-pty'));
    const places = await page.$$eval('#launch-spawn option', (all) => all.map((o) => o.value));
    assert.deepEqual(places, ['same-dir', 'worktree']);
    await pick('#launch-spawn', 'worktree');
    await says(part('launch-dialog'), 'A checkout and a branch of its own');
    await page.type('#launch-name', `fix ${name}`);
    await press(part('launch-more'));
    await says('#launch-restart', 'As configured: never');
    await pick('#launch-restart', 'on-crash');
    await says(part('launch-dialog'), 'Resumes the session after a crash');
    await says('#launch-says', 'Interactive Session in a worktree of its own');
    assert.equal(await sideways(), false);
    await shot(`launch-interactive-${name}`);
    const body = await submit();
    assert.deepEqual(body, {
      project: 'api',
      mode: 'pty',
      trust: null,
      spawn_mode: 'worktree',
      permission_mode: 'default',
      name: `fix ${name}`,
      restart: 'on-crash',
    });
    const [mine] = (await machine.api('/api/instances')).filter((one) => one.label === `fix ${name}`);
    assert.deepEqual(
      [mine.resume_mode, mine.spawn_mode, mine.restart.policy],
      ['pty', 'worktree', 'on-crash'],
    );
    assert.match(mine.worktree_name, /^svc-/);
    await page.goto(`${machine.url}/ui/?filter=interactive`, { waitUntil: 'load' });
    const own = `[data-instance="${mine.instance_id}"][data-status="running"]`;
    await says(own, 'Interactive Session');
    await says(own, 'worktree');
    await shot(`interactive-row-${name}`);
    await page.goto(`${machine.url}/ui/s/${mine.instance_id}`, { waitUntil: 'load' });
    await press('#tab-terminal');
    await seen('.term-screen .term-row span');
    await shot(`interactive-terminal-${name}`);
  });
}

test('a session beside a bridge is no second bridge, and the shared files are named', async () => {
  await machine.cli('start', 'bare', '--wait', '20');
  await open('bare');
  await seen(part('launch-already'));
  await press(part('launch-kind-pty'));
  await gone(part('launch-already'));
  await says(part('launch-collision'), 'Another session works on the same files');
  await shot('launch-collision');
  await press(part('launch-use-worktree'));
  await gone(part('launch-collision'));
  // The repository has no commit to make a worktree from.
  await seen(`${part('launch-submit')}[aria-disabled="true"]`);
  await says(part('launch-checks'), 'needs at least one commit');
  await pick('#launch-spawn', 'same-dir');
  const body = await submit();
  assert.deepEqual([body.mode, body.spawn_mode, body.restart], ['pty', 'same-dir', undefined]);
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await page.waitForFunction(
    (where) => document.querySelectorAll(where).length === 2,
    {},
    row('bare', 'running'),
  );
  const counts = await page.$$eval('[data-testid^=only-] .num', (all) => all.map((n) => n.textContent));
  assert.deepEqual(counts, ['4', '1', '3', '0', '0']);
  await open('bare', '?kind=standard');
  await seen(part('launch-already'));
});

test('the kind of the last launch is suggested again', async () => {
  await open('bare');
  await seen(`${part('launch-kind-pty')}:checked`);
  await open('plain');
  await seen(`${part('launch-kind-standard')}:checked`);
  await press(part('launch-kind-pty'));
  assert.ok(await page.$eval('#launch-spawn [value=worktree]', (option) => option.disabled));
  assert.deepEqual(complaints, []);
});
