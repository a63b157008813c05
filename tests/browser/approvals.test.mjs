// What sessions ask through the agent's own hook: in the inbox, in two taps on a phone.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { given, launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { resultsOf } from './results.mjs';
import { findings, ruler } from './width.mjs';
import { world } from './world.mjs';

const asks = (...commands) => ({
  turns: commands.map((text) => ({ after_ms: 0, role: 'permission', text })),
});

let machine;
let browser;
const byHand = [];

before(async () => {
  const projects = {
    ledger: { knobs: asks('make deploy', 'rm -r build') },
    garden: { knobs: asks('npm publish') },
  };
  machine = await world(projects, { claude: { approval_hook: true } });
  browser = await launch();
  const settings = join(machine.root, 'agent', 'settings.json');
  const hasHook = () => readFileSync(settings, 'utf8').includes('__permission-hook__');
  await until(() => {
    try {
      return hasHook();
    } catch {
      return false;
    }
  });
});

after(async () => {
  for (const child of byHand) child.kill('SIGKILL');
  await browser?.close();
  await machine?.close();
});

/** A session that somebody starts in a terminal of a project. */
function byHandIn(project) {
  const args = ['--print', '--sdk-url', 'local', '--session-id', 'cse_by_hand'];
  const cwd = join(machine.root, 'projects', project);
  const options = { cwd, env: machine.env, stdio: ['pipe', 'ignore', 'ignore'] };
  const child = spawn(given('SVC_SIM_BIN'), args, options);
  byHand.push(child);
  return child;
}

const results = () => resultsOf(machine.root).map((one) => one.content);

const items = (page) => page.$$eval(part('inbox-item'), (all) => all.length);

/** Selector of the line of the list about this command. */
async function item(page, command) {
  const find = (where, words) =>
    [...document.querySelectorAll(where)].find((one) => one.textContent.includes(words))?.dataset
      .request;
  const found = await page.waitForFunction(find, {}, part('inbox-item'), command);
  return `${part('inbox-item')}[data-request="${await found.jsonValue()}"]`;
}

test('a session that a phone drives asks here, and goes on after one tap', async () => {
  await machine.cli('start', 'ledger');
  const { page, complaints } = await tab(browser);
  await page.setViewport({ width: 390, height: 844, isMobile: true, hasTouch: true });
  await page.goto(`${machine.url}/ui/inbox`, { waitUntil: 'load' });
  const { press, says, seen, gone, shot } = person(page);
  await seen(part('inbox-empty'));
  await machine.remote('connect', join(machine.root, 'projects', 'ledger'));
  await until(async () => (await items(page)) === 2);
  await shot('approvals-phone-list');
  const { look, resize } = await ruler(page);
  assert.deepEqual(findings(await look('inbox', [320, 390, 834, 1440])), []);
  await resize(390);
  await press(await item(page, 'make deploy'));
  await says(part('request'), 'make deploy');
  await shot('approvals-phone');
  await says(part('session-rules'), 'Bash(make:*)');
  await press(part('allow-session'));
  await says(part('request-outcome'), 'Allowed for the session');
  await gone(part('allow'));
  await until(() => results().includes('done'));
  await press(part('inbox-back'));
  await press(await item(page, 'rm -r build'));
  await says(part('request'), 'rm -r build');
  await page.type(`${part('request')} input`, 'keep the build');
  await press(part('deny'));
  await says(part('request'), 'The agent was told: keep the build');
  await until(() => results().includes('keep the build'));
  await press(part('inbox-back'));
  await seen(part('inbox-empty'));
  await press(part('inbox-answered'));
  await until(async () => (await items(page)) === 2);
  await shot('approvals-phone-answered');
  await page.close();
  assert.deepEqual(complaints, []);
});

test('a session that somebody started in a terminal asks here too, with its conversation', async () => {
  const { page, complaints } = await tab(browser);
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/inbox`, { waitUntil: 'load' });
  const { press, says, seen, shot } = person(page);
  await seen(part('inbox-empty'));
  byHandIn('garden');
  // A wide screen shows the first one at once.
  await says(part('request'), 'npm publish');
  const text = await page.$eval(part('request'), (one) => one.innerText);
  assert.match(text, /garden/);
  assert.match(text, /not by svc/);
  assert.match(text, /Deny and Allow once are for this request only/);
  await shot('approvals-desk');
  // The conversation of the session is one click away.
  const href = await page.$eval('.request-lead', (link) => link.getAttribute('href'));
  assert.ok(!href.includes('cse_by_hand'), href);
  await press(part('allow'));
  await seen(part('inbox-empty'));
  const { approvals } = await machine.api('/api/approvals?state=answered');
  assert.equal(approvals.find((one) => one.summary === 'npm publish').decision, 'allow');
  await page.goto(machine.url + href, { waitUntil: 'load' });
  await until(() => page.evaluate(() => document.body.innerText.includes('npm publish')));
  await page.close();
  assert.deepEqual(complaints, []);
});

test('a question goes when its agent does, and the history says why', async () => {
  const { page, complaints } = await tab(browser);
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/inbox`, { waitUntil: 'load' });
  const { press, says, seen } = person(page);
  const agent = byHandIn('garden');
  await press(await item(page, 'npm publish'));
  await says(part('request'), 'npm publish');
  agent.kill('SIGKILL');
  await says(part('request-outcome'), 'Withdrawn. The session stopped waiting');
  await press(part('inbox-answered'));
  await says(part('inbox-items'), 'withdrawn');
  await seen(part('inbox-open'));
  await page.close();
  assert.deepEqual(complaints, []);
});
