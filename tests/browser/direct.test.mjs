// Direct Sessions on the page: the conversation, the questions of the agent, the inbox.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { world } from './world.mjs';

const TOOL = { name: 'Bash', input: { command: 'cargo test retry' }, ask: true };
const KNOBS = {
  hosted: { replies: [{ match: '^use', chunks: ['I run the tests'], tool: TOOL }, { chunks: ['Plain talk'] }] },
};

let machine;
let browser;

before(async () => {
  machine = await world({ ledger: { knobs: KNOBS } }, { hosted: { enabled: true } });
  browser = await launch();
});

/** Ends the daemon, which outlives the service on purpose. */
async function endDaemon() {
  const dir = join(machine.root, 'state', 'hosted');
  const auth = readFileSync(join(dir, 'token'), 'utf8').trim();
  const socket = connect(join(dir, 'daemon.sock'));
  socket.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'server.shutdown', params: {}, auth })}\n`);
  await new Promise((resolve) => socket.on('close', resolve).on('error', resolve).resume());
}

after(async () => {
  await browser?.close();
  if (machine) {
    for (const row of await machine.api('/api/hosted')) {
      if (row.status === 'running') await machine.cli('stop', row.instance_id);
    }
    await endDaemon();
    await machine.close();
  }
});

const post = (path, body) =>
  machine.ask(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Origin: machine.url },
    body: JSON.stringify(body),
  });

async function session() {
  const reply = await post('/api/instances', { project: 'ledger', channel: 'hosted' });
  assert.equal(reply.status, 201, await reply.clone().text());
  return (await reply.json()).instance_id;
}

const shot = async (page, name) => {
  if (process.env.SVC_SHOTS) await page.screenshot({ path: join(process.env.SVC_SHOTS, `${name}.png`) });
};

test('a message is sent, the question is answered where it is asked, and the agent goes on', async () => {
  const id = await session();
  const { page, complaints } = await tab(browser);
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/s/${id}?theme=dark`, { waitUntil: 'load' });
  const { press, seen } = person(page);
  await seen(part('direct'));
  await page.type(part('message'), 'use the tool');
  await page.keyboard.press('Enter');
  await seen(part('question'));
  await shot(page, 'direct-desk');
  await press(`${part('question')} ${part('allow')}`);
  await until(() => page.evaluate(() => document.body.innerText.includes('Turn done')));
  await until(() => page.evaluate(() => !document.querySelector('[data-testid=question]')));
  assert.ok(await page.evaluate(() => document.body.innerText.includes('I run the tests')));
  await shot(page, 'direct-done');
  await page.close();
  assert.deepEqual(complaints, []);
});

test('a session is launched from the page under its own name', async () => {
  const { page, complaints } = await tab(browser);
  await page.setViewport({ width: 390, height: 844, isMobile: true, hasTouch: true });
  await page.goto(`${machine.url}/ui/projects?launch=ledger`, { waitUntil: 'load' });
  const { press, seen, gone } = person(page);
  await press(part('launch-kind-hosted'));
  await gone('#launch-spawn');
  await page.type('#launch-name', 'tidy up');
  await shot(page, 'launch-direct-phone');
  await press(part('launch-submit'));
  await gone(part('launch-dialog'));
  const rows = await machine.api('/api/hosted');
  assert.deepEqual(rows.filter((row) => row.label === 'tidy up').map((row) => row.status), ['running']);
  await page.close();
  assert.deepEqual(complaints, []);
});

test('on a phone the inbox answers without opening the session', async () => {
  const id = await session();
  const { page, complaints } = await tab(browser);
  await page.setViewport({ width: 390, height: 844, isMobile: true, hasTouch: true });
  await page.goto(`${machine.url}/ui/inbox`, { waitUntil: 'load' });
  const { press, says, seen } = person(page);
  await seen(part('inbox-empty'));
  assert.equal((await post(`/api/instances/${id}/message`, { text: 'use it again' })).status, 202);
  await press(part('inbox-item'));
  await seen(part('allow'));
  await shot(page, 'inbox-phone');
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `no sideways scrolling: ${wide}`);
  await page.type(`${part('request')} input`, 'not on a Friday');
  await press(`${part('request')} ${part('deny')}`);
  await says(part('request-outcome'), 'Denied');
  const { approvals } = await machine.api('/api/approvals?state=answered');
  const mine = approvals.find((one) => one.instance_id === id);
  assert.deepEqual([mine.decision, mine.message], ['deny', 'not on a Friday']);
  await page.goto(`${machine.url}/ui/s/${id}`, { waitUntil: 'load' });
  await seen(part('direct'));
  await until(() => page.evaluate(() => document.body.innerText.includes('Denied')));
  await shot(page, 'direct-phone');
  await page.close();
  assert.deepEqual(complaints, []);
});

test('what is typed stays while a message is on its way, and when it is refused', async () => {
  const id = await session();
  const { page } = await tab(browser);
  const { seen, says } = person(page);
  await page.goto(`${machine.url}/ui/s/${id}`, { waitUntil: 'load' });
  await seen(part('direct'));
  const box = () => page.$eval(part('message'), (field) => field.value);
  await page.setRequestInterception(true);
  const held = [];
  const hold = (request) =>
    request.url().endsWith('/message') ? held.push(request) : request.continue();
  page.on('request', hold);
  await page.type(part('message'), 'the first');
  await page.keyboard.press('Enter');
  await until(() => held.length === 1);
  assert.equal(await box(), '');
  await page.type(part('message'), 'the second');
  await page.keyboard.press('Enter');
  await says('.direct-composer', 'The message before is being sent.');
  assert.equal(await box(), 'the second', 'nothing is sent beside another, and nothing is lost');
  await held[0].respond({
    status: 409,
    contentType: 'application/problem+json',
    body: JSON.stringify({ code: 'invalid_value', detail: 'the session ended', status: 409 }),
  });
  await until(async () => (await box()) === 'the first\nthe second');
  assert.equal(held.length, 1);
  // Also over a reload.
  page.off('request', hold);
  await page.setRequestInterception(false);
  await page.reload({ waitUntil: 'load' });
  await seen(part('direct'));
  assert.equal(await box(), 'the first\nthe second');
  await page.focus(part('message'));
  await page.keyboard.press('Enter');
  await until(() => page.evaluate(() => document.body.innerText.includes('the second')));
  await until(async () => (await box()) === '');
  await page.close();
});
