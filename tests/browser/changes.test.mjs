// What a session changed, file by file, and the worktree that it leaves.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { away, launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { world } from './world.mjs';

const SECRET = `sk-ant-api03-${'a1B2'.repeat(10)}`;
const file = (path) => `${part('changes-file')}[data-path="${path}"]`;

let machine, browser, page, complaints;
let seen, go, press, says, gone, shot;
let session, tree;
const lines = Array.from({ length: 60 }, (_, at) => `const line${at + 1} = ${at + 1};`);

before(async () => {
  machine = await world({ web: { git: true }, plain: {} });
  const root = join(machine.root, 'projects', 'web');
  const git = (...args) =>
    execFileSync('git', ['-C', root, '-c', 'user.name=a', '-c', 'user.email=a@b.invalid', ...args], {
      env: machine.env,
    });
  mkdirSync(join(root, 'src/auth'), { recursive: true });
  writeFileSync(join(root, 'src/auth/session.ts'), `${lines.join('\n')}\n`);
  writeFileSync(join(root, 'gone.txt'), 'bye\n');
  writeFileSync(join(root, '.gitignore'), '.claude/\n');
  git('add', '.');
  git('commit', '-q', '-m', 'first');
  await machine.cli('start', 'web', '--mode', 'pty', '--spawn-mode', 'worktree', '--wait', '20');
  [session] = await machine.api('/api/instances');
  tree = join(root, '.claude/worktrees', session.worktree_name);
  lines[3] = 'const line4 = 44;';
  lines.splice(49, 1, 'const line50 = now();', `const key = "${SECRET}";`);
  writeFileSync(join(tree, 'src/auth/session.ts'), `${lines.join('\n')}\n`);
  writeFileSync(join(tree, 'notes of mine.txt'), 'one\ntwo\n');
  writeFileSync(join(tree, 'picture.png'), Buffer.from([0x89, 0x50, 0, 1, 2]));
  rmSync(join(tree, 'gone.txt'));
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, go, press, says, gone, shot } = person(page));
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

const wide = () =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
const text = (selector) => page.$eval(selector, (element) => element.textContent);

test('the files of a session are listed, and one shows its changed lines', async () => {
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/s/${session.instance_id}?tab=changes`, { waitUntil: 'load' });
  await says(part('changes-count'), '4 files');
  await says(part('changes'), 'against the merge base with main');
  await press(file('src/auth/session.ts'));
  await seen(part('diff'));
  const marks = await page.$$eval('.diff .mark', (cells) => cells.map((cell) => cell.textContent));
  assert.equal(marks.filter((mark) => mark === '+').length, 3);
  assert.equal(marks.filter((mark) => mark === '−').length, 2);
  assert.equal((await page.$$('.changes-part')).length, 2);
  const numbers = await page.$$eval('.diff tr.plus .num:nth-child(2)', (all) => all.map((n) => n.textContent));
  assert.deepEqual(numbers, ['4', '50', '51']);
  assert.equal((await text('main')).includes(SECRET), false);
  await says(part('changes-masked'), '1 line holds a value');
  // The words that differ are marked, beside the sign in front of the line.
  assert.deepEqual(await page.$$eval('.diff .minus u', (all) => all.map((u) => u.textContent)), ['4', '50']);
  assert.deepEqual(await page.$$eval('.diff .plus u', (all) => all.map((u) => u.textContent)), ['44', 'now()']);
  await shot('changes-desk');
  await press(part('changes-hide-same'));
  await until(async () => (await page.$$('.diff tr')).length > 60);
  await press(part('changes-hide-same'));
  await until(async () => (await page.$$('.diff tr')).length < 30);
  await press(part('changes-beside'));
  await seen('.diff-beside');
  const beside = await page.$$eval('.diff-beside tr', (rows) =>
    rows.map((row) => [...row.querySelectorAll('.text')].map((cell) => cell.textContent)),
  );
  assert.ok(beside.some(([old, now]) => old === '−const line4 = 4;' && now === '+const line4 = 44;'));
  await shot('changes-beside-desk');
  await page.setViewport({ width: 800, height: 900 });
  await gone('.diff-beside');
  await page.setViewport({ width: 1440, height: 900 });
  await page.reload({ waitUntil: 'load' });
  await seen('.diff-beside');
  await press(part('changes-unified'));
  await gone('.diff-beside');
  await browser.defaultBrowserContext().overridePermissions(machine.url, ['clipboard-read', 'clipboard-sanitized-write']);
  await press(part('copy-patch'));
  let patch;
  await until(async () => (patch = await page.evaluate(() => navigator.clipboard.readText())) !== '');
  assert.match(patch, /^--- a\/src\/auth\/session.ts\n\+\+\+ b\/src\/auth\/session.ts\n@@ -1,7 \+1,7 @@\n const line1/);
  assert.equal(patch.includes(SECRET), false);
  await says(part('changes-viewed'), '0 of 4 viewed');
  await page.focus(file('src/auth/session.ts'));
  await page.keyboard.press('v');
  await says(part('changes-viewed'), '1 of 4 viewed');
  await page.reload({ waitUntil: 'load' });
  await says(part('changes-viewed'), '1 of 4 viewed');
  assert.equal(await page.$eval(part('viewed'), (box) => box.checked), true);
  writeFileSync(join(tree, 'src/auth/session.ts'), `${[...lines, 'more'].join('\n')}\n`);
  await seen(part('changes-old'));
  await press(part('changes-reload'));
  await says(part('changes-viewed'), '0 of 4 viewed');
  await press(part('change-next'));
  assert.equal(await page.evaluate(() => document.activeElement.className), 'changes-part');
  await page.focus(file('src/auth/session.ts'));
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await says(part('file-remark'), 'binary');
  writeFileSync(join(tree, 'later.txt'), 'x\n');
  await says(part('changes-old'), 'Files changed since');
  await press(part('changes-reload'));
  await gone(part('changes-old'));
  await says(part('changes-count'), '5 files');
  assert.equal(await wide(), 0);
  assert.deepEqual(complaints, []);
});

test('on a phone the list comes first, then the file, and Back leads to the list', async () => {
  await page.setViewport({ width: 390, height: 844 });
  await page.goto(`${machine.url}/ui/s/${session.instance_id}?tab=changes`, { waitUntil: 'load' });
  await seen(file('notes of mine.txt'));
  await shot('changes-phone-list');
  assert.equal(await wide(), 0);
  await press(file('src/auth/session.ts'));
  await seen(part('diff'));
  await page.waitForSelector('.changes-files', { hidden: true });
  await shot('changes-phone-file');
  assert.equal(await wide(), 0);
  await page.goBack();
  await seen(file('notes of mine.txt'));
  await gone(part('diff'));
  await press(file('src/auth/session.ts'));
  await press(part('changes-back'));
  await seen(file('notes of mine.txt'));
});

test('a project has its own changes, and one without git has no tab', async () => {
  await page.setViewport({ width: 1440, height: 900 });
  await go('/ui/projects/web?tab=changes', part('changes-none'));
  await go('/ui/projects/plain', part('project'));
  await gone('#tab-changes');
});

test('a page that lost the service says that its changes may be old', async () => {
  const { page: other } = await tab(browser);
  const one = person(other);
  await other.goto(`${machine.url}/ui/s/${session.instance_id}?tab=changes`, { waitUntil: 'load' });
  await one.seen(file('src/auth/session.ts'));
  assert.equal(await other.$(part('changes-old')), null);
  await away({ page, complaints }, async () => {
    await machine.kill();
    writeFileSync(join(tree, 'notes of mine.txt'), 'one\ntwo\nthree\n');
    await machine.start();
  });
  await one.seen(part('changes-old'));
  await other.close();
  await page.goto(`${machine.url}/ui/projects/web`, { waitUntil: 'load' });
});

test('the worktree of an ended session is kept, or removed by typing its name', async () => {
  await go('/ui/projects/web?tab=worktrees', part('worktree'));
  await says(part('worktree'), 'in use');
  await machine.cli('stop', session.instance_id);
  await go(`/ui/s/${session.instance_id}`, part('left-worktree'));
  await says(part('left-worktree'), '5 files with uncommitted changes');
  await shot('worktree-left-desk');
  await press(part('act-remove-worktree'));
  await says(part('left-worktree'), 'loses changes in 5 files');
  await page.keyboard.press('Escape');
  await press(part('act-remove-worktree'));
  await press(part('worktree-yes'));
  assert.equal(existsSync(tree), true);
  await page.setViewport({ width: 390, height: 844 });
  assert.equal(await wide(), 0);
  await shot('worktree-ask-phone');
  await page.type(part('worktree-name'), session.worktree_name);
  await press(part('worktree-yes'));
  await gone(part('left-worktree'));
  await until(async () => !existsSync(tree));
  await go('/ui/projects/web?tab=worktrees', part('worktrees'));
  await says(part('worktrees'), 'has left a worktree');
  assert.deepEqual(complaints, []);
});
