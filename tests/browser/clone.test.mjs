// From an empty page to a running session in a fresh clone, and what goes wrong on the way.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { gitServer, skip } from './git.mjs';
import { launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

let machine, git, browser, page, complaints;
let seen, press, says, gone, shot;

before(async () => {
  if (skip) return;
  git = await gitServer();
  let bytes = '';
  for (let n = 1; n < 60_000; n += 1) bytes += `${(Math.imul(n, 2654435761) >>> 0).toString(16)}\n`;
  const hooks = { PostToolUse: [{ hooks: [{ type: 'command', command: 'npm run format' }] }] };
  git.repository('ledger.git', {
    'CLAUDE.md': 'Be brief.\n',
    '.claude/settings.json': JSON.stringify({ hooks }),
    '.mcp.json': JSON.stringify({ mcpServers: { jira: { command: 'jira-mcp' } } }),
    large: bytes,
  });
  machine = await world({}, {}, undefined, 0, git.variables);
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, shot } = person(page));
});

after(async () => {
  await browser?.close();
  await machine?.close();
  git?.close();
});

const retype = async (field, words) => {
  await page.$eval(part(field), (input) => {
    input.focus();
    input.select();
  });
  await page.keyboard.type(words);
};

test('a bad address is refused at its field, a private host with the key that allows it', { skip }, async () => {
  await page.setViewport({ width: 390, height: 844 });
  await page.goto(`${machine.url}/ui/projects`, { waitUntil: 'load' });
  await seen(part('welcome'));
  await shot('empty-phone');
  await press(part('new-clone'));
  await seen(part('new-project'));
  await retype('new-url', 'git@git.test:plain/ledger.git');
  await says('#new-url-help', 'ssh://');
  await press(part('new-submit'));
  assert.equal(await page.evaluate(() => document.activeElement.id), 'new-url');
  await retype('new-url', 'https://inside.test/team/ledger.git');
  assert.equal(await page.$eval(part('new-name'), (input) => input.value), 'ledger');
  await press(part('new-submit'));
  await says(part('new-problem'), 'clone.allowed_private_cidrs');
  await shot('clone-refused-phone');
  // The browser itself notes the refusal.
  assert.ok(complaints.every((line) => line.includes('403')), complaints.join('\n'));
  complaints.length = 0;
});

test('a clone shows its progress, can be cancelled and tried again', { skip }, async () => {
  await retype('new-url', 'https://git.test/held/ledger.git');
  await press(part('new-submit'));
  await seen(`${part('clone-progress')}[data-phase="Receiving"]`);
  await shot('clone-phone');
  await press(part('dialog-close'));
  await gone(part('new-project'));
  await press(part('clone-pill'));
  await press(part('clone-cancel'));
  await press(part('clone-cancel-yes'));
  await says(part('clone-failed'), 'The copied files were removed');
  await press(part('clone-again'));
  assert.equal(
    await page.$eval(part('new-url'), (input) => input.value),
    '',
    'the form of a sheet that was opened from the pill is empty',
  );
});

test('what the clone brings is reviewed before it is trusted, and a session runs in it', { skip }, async () => {
  git.open();
  await retype('new-url', 'https://git.test/plain/ledger.git');
  await press(part('new-submit'));
  await seen(part('new-review'));
  await says(part('trust-gate'), 'CLAUDE.md');
  await says(part('trust-gate'), 'jira');
  await shot('clone-review-phone');
  await press(part('trust-box'));
  await press(part('new-trust'));
  await seen(part('launch-dialog'));
  assert.equal((await machine.api('/api/projects')).find(({ name }) => name === 'ledger').trust_state, 'trusted');
  await press(part('launch-submit'));
  await gone(part('launch-dialog'));
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await seen(row('ledger', 'running'));
});

test('an empty project is created on a wide screen, with the key that takes its name checked', { skip }, async () => {
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/projects`, { waitUntil: 'load' });
  await press(part('new-create'));
  await retype('new-name', 'ledger');
  await says('#new-name-help', 'has this name already');
  await retype('new-name', 'notes');
  await says('#new-name-help', '/projects/notes');
  await press(part('new-extra'));
  await shot('create-desk');
  await press(part('new-submit'));
  await seen(part('new-review'));
  await shot('create-review-desk');
  await press(part('new-later'));
  await seen(`${part('project-row')}[data-project="notes"]`);
  await press(part('new-clone'));
  await retype('new-url', 'https://git.test/plain/ledger.git');
  await retype('new-name', 'copy');
  await press(part('new-submit'));
  await seen(part('new-review'));
  await shot('clone-review-desk');
  assert.deepEqual(complaints, []);
});
