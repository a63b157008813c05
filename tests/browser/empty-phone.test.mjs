// From an empty browser on a phone to a conversation that was had in a fresh clone, without a word
// of documentation: clone, review, trust, edit CLAUDE.md, launch, read.

import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { gitServer, skip } from './git.mjs';
import { launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

const WHOLE_WAY_MS = 120_000;
let machine, git, browser, page, complaints, dir;
let seen, press, says, gone, shot;

before(async () => {
  if (skip) return;
  git = await gitServer();
  git.repository('ledger.git', {
    'CLAUDE.md': 'Be brief.\n',
    '.mcp.json': JSON.stringify({ mcpServers: { jira: { command: 'jira-mcp' } } }),
  });
  machine = await world({}, { config_write: { enabled: true } }, undefined, 0, git.variables);
  dir = join(machine.root, 'projects', 'ledger');
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, shot } = person(page));
  await page.setViewport({ width: 390, height: 844, isMobile: true, hasTouch: true });
});

after(async () => {
  await browser?.close();
  await machine?.close();
  git?.close();
});

/** What the agent writes down of a conversation in the folder of a project. */
function talk(...turns) {
  const place = join(machine.root, 'agent', 'projects', dir.replace(/[^A-Za-z0-9]/g, '-'));
  mkdirSync(place, { recursive: true });
  const lines = turns.map(([role, content], at) =>
    JSON.stringify({
      type: role,
      cwd: dir,
      isSidechain: false,
      timestamp: `2026-03-01T10:20:3${at}.000Z`,
      message: { role, content },
    }),
  );
  const file = join(place, '0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f1.jsonl');
  appendFileSync(file, `${lines.join('\n')}\n`);
}

const type = async (selector, words) => {
  const field = await seen(selector);
  await field.evaluate((it) => it.scrollIntoView({ block: 'center' }));
  await field.focus();
  await field.evaluate((it) => it.select());
  await page.keyboard.type(words);
};

const sideways = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

test('from an empty phone to what was said in a fresh clone', { skip, timeout: WHOLE_WAY_MS }, async () => {
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await press(part('new-clone'));
  await type(part('new-url'), 'https://git.test/plain/ledger.git');
  await press(part('new-submit'));

  // What would run on start is told before it is trusted.
  await seen(part('new-review'));
  await says(part('trust-gate'), 'CLAUDE.md');
  await says(part('trust-gate'), 'jira');
  await shot('phone-review');
  await press(part('trust-box'));
  await press(part('new-trust'));
  await seen(part('launch-dialog'));
  await press(part('dialog-close'));
  await gone(part('launch-dialog'));

  await page.goto(`${machine.url}/ui/projects/ledger`, { waitUntil: 'load' });
  await press(part('agent-config-link'));
  await press('[data-part="claude-md"] a, a[href*="/agent-config/claude-md"]');
  await seen(part('config-text'));
  await type(part('config-text'), 'Be brief. Test before each commit.\n');
  await press(part('config-to-review'));
  await says('.config-diff', 'Test before each commit');
  await shot('phone-instructions');
  assert.equal(readFileSync(join(dir, 'CLAUDE.md'), 'utf8'), 'Be brief.\n', 'nothing is written yet');
  await type(part('config-typed'), 'ledger');
  await press(`${part('config-save')}:not([aria-disabled])`);
  await gone(part('config-review'));
  assert.match(readFileSync(join(dir, 'CLAUDE.md'), 'utf8'), /Test before each commit/);
  assert.ok((await sideways()) <= 0, 'no sideways scrolling');

  await page.goto(`${machine.url}/ui/projects/ledger`, { waitUntil: 'load' });
  await press(part('act-launch'));
  await seen(part('launch-dialog'));
  await press(part('launch-submit'));
  await gone(part('launch-dialog'));
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await seen(row('ledger', 'running'));
  await shot('phone-running');

  talk(['user', 'Which tests are slow?'], ['assistant', [{ type: 'text', text: 'The **clone** ones.' }]]);
  await page.goto(`${machine.url}/ui/projects/ledger`, { waitUntil: 'load' });
  await press(part('tab-conversations'));
  await press(part('conversation'));
  await says(part('turn'), 'Which tests are slow?');
  await says(part('turn'), 'The clone ones.');
  await shot('phone-conversation');
  assert.ok((await sideways()) <= 0, 'no sideways scrolling');
  assert.deepEqual(complaints, []);
});
