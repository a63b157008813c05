// The guard as a person meets it: the first run from an empty directory, signing in, being locked
// out for wrong passwords, and a sign-out in one tab that ends the live page of another.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { after, before, test } from 'node:test';

import { DEADLINE_MS, given, launch, serve, tab } from './harness.mjs';
import { part } from './person.mjs';

const PASSWORD = 'correct horse';

let root;
let service;
let browser;
let page;
let complaints;

async function freePort() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

before(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-first-')));
  const env = {
    ...process.env,
    HOME: join(root, 'home'),
    CLAUDE_CONFIG_DIR: join(root, 'agent'),
    AGENT_SIM: '1',
    SVC_SETUP_PORT: String(await freePort()),
    SVC_STATE_DIR: join(root, 'state'),
    SVC_CLAUDE_BINARY: given('SVC_SIM_BIN'),
    SVC_CLAUDE_NODE_FROM_NVM: 'false',
  };
  mkdirSync(env.HOME);
  mkdirSync(join(root, 'projects', 'app'), { recursive: true });
  execFileSync(given('SVC_SIM_BIN'), ['init', env.CLAUDE_CONFIG_DIR], { env });
  const args = ['run', '--config', join(root, 'svc.yml')];
  service = await serve({ args, env, cwd: root });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
});

after(async () => {
  await browser?.close();
  await service?.stop();
  if (root) rmSync(root, { recursive: true, force: true });
});

const fill = (fields) =>
  page.evaluate((values) => {
    for (const [name, value] of Object.entries(values)) {
      document.querySelector(`[name="${name}"]`).value = value;
    }
  }, fields);

/** Presses the one button of a form and waits for the page that comes of it. */
async function send() {
  await Promise.all([page.waitForNavigation({ waitUntil: 'load' }), page.click('form button')]);
}

const alert = () => page.$eval('[role="alert"]', (element) => element.textContent);

test('a wrong form comes back with what is wrong, without the passwords', async () => {
  await page.goto(service.url, { waitUntil: 'load' });
  assert.equal(await page.$eval('h1', (title) => title.textContent), 'Set up svc');
  // Its own default is this machine only: nothing to warn about.
  assert.doesNotMatch(await page.$eval('body', (body) => body.innerText), /cookie/i);
  await fill({ projects_root: join(root, 'nowhere'), password: PASSWORD, confirm: 'other' });
  await send();
  assert.match(await page.$eval('#projects_root-wrong', (e) => e.textContent), /cannot be used/);
  assert.match(await page.$eval('#confirm-wrong', (e) => e.textContent), /Passwords don.t match/);
  assert.equal(await page.$eval('#password', (element) => element.value), '');
  assert.deepEqual(complaints.splice(0).filter((line) => !line.includes('400')), []);
});

test('the first run leads by itself to the sign-in and from there to the page', async () => {
  await fill({ projects_root: join(root, 'projects'), password: PASSWORD, confirm: PASSWORD });
  await send();
  await page.waitForSelector('#password[autocomplete="current-password"]', {
    timeout: DEADLINE_MS,
  });
  assert.equal(new URL(page.url()).pathname, '/login');
  assert.match(await page.$eval('body', (body) => body.innerText), /svc hash-password/);
  assert.ok(!readFileSync(join(root, 'svc.yml'), 'utf8').includes(PASSWORD));
  await fill({ password: PASSWORD });
  await send();
  await page.waitForSelector(`${part('section-projects')} [data-project="app"]`);
  assert.deepEqual(complaints, []);
});

test('a sign-out in one tab ends the live page of another', async () => {
  const { page: other } = await tab(browser);
  const network = await other.createCDPSession();
  await network.send('Network.enable');
  const isOpen = new Promise((resolve) => {
    network.on('Network.webSocketFrameReceived', resolve);
  });
  const closed = new Promise((resolve) => {
    network.on('Network.webSocketClosed', resolve);
  });
  await other.goto(service.url, { waitUntil: 'load' });
  await isOpen;
  await page.bringToFront();
  await page.goto(`${service.url}/logout`, { waitUntil: 'load' });
  await send();
  assert.equal(new URL(page.url()).pathname, '/login');
  await closed;
  await other.goto(`${service.url}/ui/projects`, { waitUntil: 'load' });
  assert.equal(new URL(other.url()).search, '?next=%2Fui%2Fprojects');
  await other.close();
  assert.deepEqual(complaints, []);
});

test('five wrong passwords lock, and the remaining time is the true one', async () => {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    await fill({ password: `wrong ${attempt}` });
    await send();
    assert.match(await alert(), /Wrong password/);
  }
  await fill({ password: PASSWORD });
  const [reply] = await Promise.all([
    page.waitForNavigation({ waitUntil: 'load' }),
    page.click('form button'),
  ]);
  assert.equal(reply.status(), 429);
  const seconds = Number(reply.headers()['retry-after']);
  assert.ok(seconds > 0 && seconds <= 300, `${seconds}`);
  assert.ok((await alert()).includes(`${seconds} seconds`), await alert());
  const csp = complaints.filter((line) => line.startsWith('refused'));
  assert.deepEqual(csp, []);
});

test('a page that is not there says so under the same policy', async () => {
  complaints.length = 0;
  const reply = await page.goto(`${service.url}/static/nothing-here`, { waitUntil: 'load' });
  assert.equal(reply.status(), 404);
  assert.equal(await page.$eval('h1', (title) => title.textContent), 'Not found');
  assert.deepEqual(complaints.filter((line) => line.startsWith('refused')), []);
});
