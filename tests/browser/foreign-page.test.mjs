// A page of another site in a real browser, while the service asks nobody for a password: it
// writes nothing, embeds nothing and measures nothing.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { world } from './world.mjs';

const PASSWORD = 'correct horse';
const HASH =
  '$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q$dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk';

let machine, closed, site, browser, page, id;

before(async () => {
  machine = await world({ app: {}, idle: {}, fresh: { trust: false } });
  const auth = { enabled: true, password_required: true, password_hash: HASH };
  closed = await world({ app: {} }, { auth }, PASSWORD);
  await machine.cli('start', 'app', '--wait');
  [{ instance_id: id }] = await machine.api('/api/instances');
  site = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<!doctype html><link rel="icon" href="data:,"><title>evil</title><p>evil');
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  // Another site for the browser: another port alone would be the same site.
  const rule = `MAP evil.example 127.0.0.1:${site.address().port}`;
  browser = await launch([`--host-resolver-rules=${rule}`]);
  ({ page } = await tab(browser)); // its refusals are what is looked at
  await page.goto('http://evil.example/', { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  site?.close();
  await machine?.close();
  await closed?.close();
});

/** Everything a foreign page could want to change, as the service knows it. */
async function known() {
  const { state } = await machine.api('/api/state');
  const { rev } = await machine.api('/api/ui-prefs');
  const rows = Object.values(state.instances).map((row) => [row.instance_id, row.status, row.label]);
  const trust = Object.values(state.projects).map((row) => [row.name, row.trust_state]);
  return JSON.stringify({ rows, jobs: state.jobs, trust, rev });
}

const writes = () => [
  ['POST', '/api/v1/instances', { project: 'idle' }],
  ['POST', '/api/instances', { project: 'idle', trust: true }],
  ['DELETE', `/api/v1/instances/${id}`, null],
  ['POST', `/api/v1/instances/${id}/resume`, {}],
  ['POST', `/api/instances/${id}/forget`, null],
  ['PATCH', `/api/instances/${id}`, { label: 'evil' }],
  ['POST', '/api/v1/agents', { project: 'idle', prompt: 'evil' }],
  ['PUT', '/api/ui-prefs', { prefs: { theme: 'dark' }, rev: 0 }],
  ['POST', '/api/projects/fresh/trust', null],
  ['POST', '/api/projects/trust-all', { names: ['fresh'] }],
  ['POST', '/api/projects/idle/adopt', null],
  ['POST', '/api/projects/idle/worktrees/svc-00000000/remove', { confirm: 'svc-00000000' }],
  ['POST', '/api/strays/1/kill', null],
  ['POST', '/api/stranded/0123456789abcdef/continue', null],
  ['POST', '/api/stranded/0123456789abcdef/dismiss', null],
  ['POST', '/login', { password: PASSWORD }],
  ['POST', '/logout', null],
  ['POST', '/api/reauth', { password: PASSWORD }],
];

test('H4: no foreign page writes anything, however its browser sends it', async () => {
  const before = await known();
  const answers = [];
  const note = (response) => {
    const request = response.request();
    if (response.url().startsWith(machine.url) && request.method() !== 'OPTIONS') {
      answers.push([request.method(), response.url(), response.status()]);
    }
  };
  page.on('response', note);
  for (const [method, path, body] of writes()) {
    const text = body ? JSON.stringify(body) : '';
    const sent = await page.evaluate(
      async (to, verb, data) => {
        const done = [];
        const types = ['text/plain', 'application/json', 'application/x-www-form-urlencoded'];
        for (const mode of ['no-cors', 'cors']) {
          for (const type of types) {
            const request = { method: mode === 'cors' ? verb : 'POST', mode, credentials: 'include' };
            const headers = { 'content-type': type, 'x-http-method-override': verb };
            const all = mode === 'cors' ? headers : { 'content-type': type };
            const ended = await fetch(to, { ...request, headers: all, body: data }).then(
              (reply) => `${reply.type} ${reply.status}`,
              () => 'blocked',
            );
            done.push(`${mode} ${type}: ${ended}`);
          }
        }
        done.push(`beacon: ${navigator.sendBeacon(to, data)}`);
        return done;
      },
      machine.url + path,
      method,
      text,
    );
    // Nothing of an answer can be read, not even its status.
    const read = sent.filter((line) => !/blocked|opaque 0|beacon/.test(line));
    assert.deepEqual(read, [], path);
    for (const enctype of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data']) {
      // The frame's own event: the browser tells less reliably of answers to frames of other sites.
      await page.evaluate(
        async (to, how, data) => {
          const frame = document.createElement('iframe');
          frame.name = `f${Math.random()}`;
          const form = document.createElement('form');
          Object.assign(form, { method: 'post', action: to, enctype: how, target: frame.name });
          // As text/plain, a name and a value around `=` can make JSON.
          const field = document.createElement('input');
          field.name = data ? `${data.slice(0, -1)},"x":"` : '_method';
          field.value = data ? '"}' : 'DELETE';
          form.append(field);
          document.body.append(frame, form);
          const answered = new Promise((resolve) => frame.addEventListener('load', resolve, { once: true }));
          form.submit();
          await answered;
        },
        machine.url + path,
        enctype,
        text,
      );
    }
  }
  page.off('response', note);
  const through = answers.filter(([, , status]) => status !== 403);
  assert.deepEqual(through, []);
  assert.ok(answers.length >= 3 * writes().length, `${answers.length} requests arrived`);
  assert.equal(await known(), before);
});

test('H4: a foreign page signs nobody out and uses no sign-in', async () => {
  const { page: own } = await tab(browser);
  const { seen } = person(own);
  await own.goto(`${closed.url}/ui/projects`, { waitUntil: 'load' });
  await own.type('input[type=password]', PASSWORD);
  await Promise.all([own.waitForNavigation(), own.keyboard.press('Enter')]);
  await seen(part('project-row'));
  const { page: foreign } = await tab(browser);
  await foreign.goto('http://evil.example/', { waitUntil: 'load' });
  for (const path of ['/logout', '/api/v1/instances', '/login']) {
    const [reply] = await Promise.all([
      foreign.waitForNavigation({ waitUntil: 'load' }),
      foreign.evaluate((to) => {
        const form = document.createElement('form');
        Object.assign(form, { method: 'post', action: to, enctype: 'text/plain' });
        document.body.append(form);
        form.submit();
      }, closed.url + path),
    ]);
    assert.equal(reply.status(), 403, path);
    await foreign.goto('http://evil.example/', { waitUntil: 'load' });
  }
  const frames = await foreign.evaluate(
    (to) => fetch(to, { mode: 'no-cors', credentials: 'include' }).then(() => 'read', () => 'blocked'),
    `${closed.url}/api/projects`,
  );
  assert.equal(frames, 'blocked');
  const Cookie = (await own.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
  const still = await closed.ask('/api/projects', { headers: { Cookie } });
  assert.equal(still.status, 200, 'the sign-in was ended');
  await foreign.close();
  await own.close();
});

test('H5: no foreign page embeds or measures a reply', async () => {
  const paths = [
    '/',
    '/healthz',
    '/login',
    '/logout',
    '/ui/projects',
    '/static/nothing.js',
    '/nowhere',
    '/api/bootstrap',
    '/api/state',
    '/api/ui-prefs',
    '/api/widget',
    '/api/stranded',
    '/api/strays',
    '/api/history',
    '/api/doctor',
    '/api/login-status',
    '/api/projects',
    '/api/v1/projects',
    '/api/v1/instances',
    `/api/v1/instances/${id}`,
    '/api/v1/sessions',
    '/api/v1/agents',
    `/api/instances/${id}/log`,
    `/api/instances/${id}/qr`,
    '/api/projects/app/preflight',
    '/ws/events',
    `/ws/bridge-log/${id}`,
  ];
  const { page: foreign } = await tab(browser);
  await foreign.goto('http://evil.example/', { waitUntil: 'load' });
  for (const path of paths) {
    const seen = await foreign.evaluate(async (to) => {
      const load = (tag, place) =>
        new Promise((resolve) => {
          const element = document.createElement(tag);
          if (tag === 'link') element.rel = 'stylesheet';
          element.onload = () => resolve(`${tag} loaded`);
          element.onerror = () => resolve('blocked');
          element[place] = to;
          document.body.append(element);
        });
      const found = [];
      for (const [tag, place] of [['img', 'src'], ['script', 'src'], ['link', 'href'], ['video', 'src']]) {
        found.push(await load(tag, place));
      }
      found.push(
        await fetch(to, { mode: 'no-cors', credentials: 'include' }).then(
          (reply) => `fetched ${reply.type}`,
          () => 'blocked',
        ),
      );
      const frame = document.createElement('iframe');
      const framed = new Promise((resolve) => {
        frame.onload = resolve;
      });
      frame.src = to;
      document.body.append(frame);
      await framed;
      found.push(frame.contentWindow.length === 0 ? 'blocked' : 'frames can be counted');
      try {
        found.push(`framed ${frame.contentDocument?.body?.textContent ?? 'blocked'}`);
      } catch {
        found.push('blocked');
      }
      const measured = performance.getEntriesByName(to);
      found.push(...measured.filter((entry) => entry.encodedBodySize || entry.transferSize).map(() => 'measured'));
      return found;
    }, machine.url + path);
    const wrong = seen.filter((word) => !/blocked/.test(word));
    assert.deepEqual(wrong, [], path);
  }
  const shown = foreign.frames().filter((frame) => frame.url().startsWith(machine.url));
  assert.deepEqual(shown.map((frame) => frame.url()), []);
  await foreign.close();
});

test('H135: after a sign-out neither the back button nor the storage shows data', async () => {
  const { page: own } = await tab(browser);
  const { seen } = person(own);
  await own.goto(`${closed.url}/ui/projects`, { waitUntil: 'load' });
  if (new URL(own.url()).pathname === '/login') {
    await own.type('input[type=password]', PASSWORD);
    await Promise.all([own.waitForNavigation(), own.keyboard.press('Enter')]);
  }
  await seen(part('project-row'));
  // What somebody typed into a launch form and did not send.
  await own.evaluate(() => sessionStorage.setItem('svc.launch', '/x\n{"prompt":"about app"}'));
  await Promise.all([
    own.waitForNavigation({ waitUntil: 'load' }),
    own.click(part('rail-sign-out')),
  ]);
  await Promise.all([own.waitForNavigation({ waitUntil: 'load' }), own.click('form button')]);
  assert.equal(new URL(own.url()).pathname, '/login');
  for (let back = 0; back < 2; back += 1) {
    await own.goBack({ waitUntil: 'load' });
    const text = await own.evaluate(() => document.body.innerText);
    assert.equal(await own.$(part('project-row')), null, text);
  }
  await own.goto(`${closed.url}/login`, { waitUntil: 'load' });
  const left = await own.evaluate(async () => ({
    local: Object.keys(localStorage),
    session: Object.keys(sessionStorage),
    caches: await caches?.keys?.(),
    databases: (await indexedDB.databases()).map(({ name }) => name),
  }));
  assert.deepEqual(left.databases, []);
  assert.deepEqual(left.caches ?? [], []);
  const names = [...left.local, ...left.session];
  const told = await own.evaluate(
    (all) => all.map((name) => localStorage.getItem(name) ?? sessionStorage.getItem(name)).join(),
    names,
  );
  assert.ok(!told.includes('app') && !told.includes(closed.root), `${names}: ${told}`);
  await own.close();
});
