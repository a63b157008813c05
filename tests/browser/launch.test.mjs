// The launch dialog: every field under its condition, what is sent, and what goes wrong on the way.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

let machine;
let browser;
let page;
let complaints;
let seen, press, says, gone, pick, shot;
let sent;

const LAUNCHES = (request) =>
  request.method() === 'POST' && /\/api\/(instances\?wait=0|agents)$/.test(request.url());

/** Opens the dialog by its address. */
async function open(project, query = '') {
  await page.goto(`${machine.url}/ui/projects/${project}/launch${query}`, { waitUntil: 'load' });
  await seen(part('launch-dialog'));
  // Readiness is there: what it decides is decided.
  await page.waitForFunction(
    (where) => !document.querySelector(where)?.textContent.includes('Checking'),
    {},
    part('launch-dialog'),
  );
}

/** Presses Launch and answers with what was sent. */
async function submit() {
  const request = page.waitForRequest(LAUNCHES);
  await press(part('launch-submit'));
  const asked = await request;
  sent = { body: JSON.parse(asked.postData()), key: asked.headers()['idempotency-key'] };
  return sent;
}

const cannot = () => seen(`${part('launch-submit')}[aria-disabled="true"]`);
const can = () => seen(`${part('launch-submit')}:not([aria-disabled])`);
const reason = (words) => says('#launch-says', words);

before(async () => {
  machine = await world(
    {
      api: { git: true },
      plain: {},
      free: {},
      docs: { trust: false },
      web: {},
    },
    {
      instance_defaults: { max_bridges: 2 },
      projects: { free: { allow_bypass_permissions: true } },
    },
  );
  const docs = join(machine.root, 'projects', 'docs');
  mkdirSync(join(docs, '.claude'));
  writeFileSync(join(docs, 'CLAUDE.md'), '# Docs\n');
  const hooks = { Stop: [{ hooks: [{ type: 'command', command: 'true' }] }] };
  writeFileSync(join(docs, '.claude', 'settings.json'), JSON.stringify({ hooks }));
  writeFileSync(join(docs, '.mcp.json'), JSON.stringify({ mcpServers: { jira: { command: 'x' } } }));
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, pick, shot } = person(page));
  await page.setViewport({ width: 1280, height: 900 });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('every kind of this version is listed with what it does, and no other takes room', async () => {
  await open('api');
  await seen(`${part('launch-kind-standard')}:checked`);
  const kinds = await page.$$eval('.radio-card', (cards) =>
    cards.map((card) => [card.querySelector('b').textContent, card.querySelector('span span').textContent]),
  );
  assert.deepEqual(kinds.map(([name]) => name), [
    'Server Mode',
    'Interactive Session',
    'Background session',
    'Direct Session',
  ]);
  // One that is switched off says with which key it is switched on.
  const off = kinds.pop();
  assert.match(off[1], /hosted\.enabled/);
  for (const [name, effect] of kinds) assert.match(effect, /Resuming/, name);
  await says(part('launch-checks'), '0 of 2 bridges in use');
  await shot('launch-full');
});

test('H131: what is chosen is what is sent, once, with a key', async () => {
  await pick('#launch-permission', 'plan');
  await pick('#launch-spawn', 'same-dir');
  await page.type('#launch-name', '-no');
  await cannot();
  await reason('session name cannot be used');
  await page.$eval('#launch-name', (field) => field.select());
  await page.keyboard.type('nightly');
  await can();
  const { body, key } = await submit();
  assert.deepEqual(body, {
    project: 'api',
    mode: 'standard',
    trust: null,
    spawn_mode: 'same-dir',
    permission_mode: 'plan',
    name: 'nightly',
  });
  assert.match(key, /^[0-9a-f]{28}$/);
  await gone(part('launch-dialog'));
  const [instance] = await machine.api('/api/instances');
  assert.deepEqual([instance.label, instance.permission_mode], ['nightly', 'plan']);
});

test('where a bridge lives already, opening it takes the place of launching', async () => {
  await page.goto(machine.url, { waitUntil: 'load' });
  await seen(row('api', 'running'));
  await open('api');
  await says(part('launch-already'), 'Already running since');
  await seen(part('launch-open'));
  assert.equal(await page.$(part('launch-submit')), null);
  const [{ instance_id: id }] = await machine.api('/api/instances');
  const href = await page.$eval(part('launch-open'), (link) => link.getAttribute('href'));
  assert.equal(href, `/ui/s/${id}/open`);
  await press(part('launch-kind-background'));
  await seen(part('launch-submit'));
  await gone(part('launch-already'));
  await machine.cli('stop', 'api');
  await press(part('launch-kind-standard'));
  await seen(part('launch-submit'));
});

test('the last choices of a project are suggested again', async () => {
  await open('api');
  const chosen = await page.$eval('#launch-permission', (field) => field.value);
  assert.equal(chosen, 'plan');
  assert.equal(await page.$eval('#launch-name', (field) => field.value), '');
});

test('a worktree needs a repository', async () => {
  await open('plain');
  assert.ok(await page.$eval('#launch-spawn [value=worktree]', (option) => option.disabled));
  await open('api');
  assert.ok(!(await page.$eval('#launch-spawn [value=worktree]', (option) => option.disabled)));
});

test('an untrusted folder names what it ships and waits for the box', async () => {
  await open('docs', '?trust=true');
  assert.equal(await page.$eval(part('trust-box'), (box) => box.checked), false);
  await says(part('trust-path'), join('projects', 'docs'));
  for (const words of ['CLAUDE.md', '.claude/', 'Stop', 'jira']) await says(part('trust-gate'), words);
  await cannot();
  await reason('Trust the folder to launch');
  await press(part('launch-submit'));
  await page.waitForFunction((where) => document.activeElement?.matches(where), {}, part('trust-box'));
  await shot('launch-untrusted');
  await press(part('trust-box'));
  await can();
  const { body } = await submit();
  assert.equal(body.trust, true);
  await gone(part('launch-dialog'));
});

test('a bypass is offered only where allowed, and asks for the name each time', async () => {
  await open('plain', '?permission_mode=bypassPermissions');
  assert.equal(await page.$('#launch-permission [value=bypassPermissions]'), null);
  assert.equal(await page.$(part('bypass-gate')), null);
  await open('free', '?permission_mode=bypassPermissions&typed=free');
  await seen(part('bypass-gate'));
  await cannot();
  await reason('Type the project name to launch');
  await page.type(part('bypass-name'), 'Free');
  await cannot();
  await page.$eval(part('bypass-name'), (field) => field.select());
  await page.keyboard.type('free');
  await can();
  await shot('launch-bypass');
  const { body } = await submit();
  assert.equal(body.permission_mode, 'bypassPermissions');
  await gone(part('launch-dialog'));
});

test('at the limit nothing is sent, and what could be stopped is named', async () => {
  await open('web');
  await cannot();
  await says(part('launch-checks'), '2 of 2 bridges in use');
  await says(part('launch-least-used'), 'docs');
  await says(part('launch-least-used'), 'free');
  await shot('launch-limit');
  await press(`${part('launch-least-used')} a.btn`);
  await seen(part('confirm-yes'));
  await press(part('confirm-yes'));
  await seen('[data-testid=session][data-status="stopped"]');
});

test('a background session is asked for with all of its fields from the address', async () => {
  await open('plain', '?kind=background&model=opus&rc_name=posts&permission_mode=plan&sandbox=on');
  await says(part('launch-sandbox'), 'This version ignores that');
  await seen(`${part('launch-register')}[aria-checked="true"]`);
  await page.type('#launch-prompt', 'Translate');
  await page.keyboard.press('Enter');
  await page.keyboard.type('all');
  const request = page.waitForRequest(LAUNCHES);
  await page.keyboard.down('Control');
  await page.keyboard.press('Enter');
  await page.keyboard.up('Control');
  assert.deepEqual(JSON.parse((await request).postData()), {
    project: 'plain',
    prompt: 'Translate\nall',
    rc_name: 'posts',
    model: 'opus',
    permission_mode: 'plan',
    trust: null,
  });
  await gone(part('launch-dialog'));
});

test('a half-filled dialog is there again after a reload, and forgotten when closed', async () => {
  await open('web', '?kind=background');
  await page.type('#launch-prompt', 'half a thought');
  await page.reload({ waitUntil: 'load' });
  await page.waitForFunction(
    () => document.querySelector('#launch-prompt')?.value === 'half a thought',
  );
  await press(part('launch-cancel'));
  await gone(part('launch-dialog'));
  await open('web', '?kind=background');
  assert.equal(await page.$eval('#launch-prompt', (field) => field.value), '');
});

test('nothing was complained about', () => {
  assert.deepEqual(complaints, []);
});

test('answers other than a launch say what happened and what comes next', async (t) => {
  const { page: other } = await tab(browser);
  const hand = person(other);
  await other.setViewport({ width: 1280, height: 900 });
  await other.setRequestInterception(true);
  let answer = (request) => request.continue();
  const keys = [];
  other.on('request', (request) => {
    if (!LAUNCHES(request)) return request.continue();
    keys.push(request.headers()['idempotency-key']);
    return answer(request);
  });
  const refuse = (status, code, more = {}, headers = {}) => (request) =>
    request.respond({
      status,
      contentType: 'application/json',
      headers,
      body: JSON.stringify({ detail: `refused: ${code}`, code, ...more }),
    });
  await other.goto(`${machine.url}/ui/projects/web/launch`, { waitUntil: 'load' });
  await hand.seen(`${part('launch-submit')}:not([aria-disabled])`);

  await t.test('no answer: not known whether it happened, and the same key again', async () => {
    answer = (request) => request.abort();
    await hand.press(part('launch-submit'));
    await hand.says(part('launch-problem'), 'the result is unknown');
    await hand.says(part('launch-submit'), 'Try again');
    answer = refuse(500, 'internal', { error_id: '0badcafe' });
    await hand.press(part('launch-submit'));
    await hand.says(part('launch-problem'), '0badcafe');
    assert.equal(keys[0], keys[1], 'a repeat of what may have happened carries its key');
  });

  await t.test('too many requests: the time to wait is counted down', async () => {
    answer = refuse(429, 'busy', {}, { 'Retry-After': '3' });
    await hand.press(part('launch-submit'));
    await hand.says('#launch-says', 'Try again in');
    await hand.seen(`${part('launch-submit')}[aria-disabled="true"]`);
    assert.notEqual(keys[2], keys[1], 'what was refused is not repeated by its key');
    await hand.seen(`${part('launch-submit')}:not([aria-disabled])`);
  });

  await t.test('not trusted after all: the gate opens over the same choices', async () => {
    await hand.pick('#launch-permission', 'plan');
    answer = refuse(409, 'not_trusted');
    await hand.press(part('launch-submit'));
    await hand.seen(part('trust-gate'));
    assert.equal(await other.$eval('#launch-permission', (field) => field.value), 'plan');
    await hand.press(part('trust-box'));
  });

  await t.test('closed while it is on its way: it goes on, and says so', async () => {
    const held = new Promise((resolve) => {
      answer = resolve;
    });
    await hand.press(part('launch-submit'));
    const request = await held;
    await other.keyboard.press('Escape');
    await hand.gone(part('launch-dialog'));
    await hand.says(part('toast'), 'Still launching in web');
    assert.equal(JSON.parse(request.postData()).trust, true);
    // The session is there before the answer is: the message is that of every launch.
    answer = (same) => same.continue();
    const reply = await other.evaluate(
      async (url, headers, body) => {
        const told = await fetch(url, { method: 'POST', headers, body });
        return { status: told.status, body: await told.text() };
      },
      request.url(),
      request.headers(),
      request.postData(),
    );
    await hand.says(`${part('project-row')}[data-project="web"]`, '1 running');
    await request.respond({ contentType: 'application/json', ...reply });
    await hand.says(part('toast'), 'started in web');
  });
  await other.close();
});

test('on a phone the button stays in reach below the fields', async () => {
  const { page: phone, complaints: said } = await tab(browser);
  const thumb = person(phone);
  await phone.setViewport({ width: 320, height: 640, hasTouch: true, isMobile: true });
  await phone.goto(`${machine.url}/ui/projects/plain/launch`, { waitUntil: 'load' });
  const button = await thumb.seen(part('launch-submit'));
  const inside = await button.evaluate((each) => {
    const box = each.getBoundingClientRect();
    return box.bottom <= window.innerHeight && box.height >= 44;
  });
  assert.ok(inside, 'Launch lies below the fold');
  const wide = await phone.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 320, `${wide} px wide`);
  await thumb.shot('phone-launch');
  await phone.close();
  assert.deepEqual(said, []);
});
