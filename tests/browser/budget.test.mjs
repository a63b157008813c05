// What the page may cost with 500 projects: counts that are the same on every machine. Times are
// measured by a command, never by a test.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

const PROJECTS = 500;
const SESSIONS = 3;
/** Long enough for every timer of the page to come round once, in milliseconds. */
const IDLE_MS = 8_000;

const name = (number) => `project-${String(number).padStart(3, '0')}`;

let machine;
let browser;
let page;
let complaints;
let requests;
let frames;

before(async () => {
  machine = await world(Object.fromEntries(Array.from({ length: PROJECTS }, (_, at) => [name(at), {}])));
  for (let at = 0; at < SESSIONS; at += 1) await machine.cli('start', name(at));
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  await page.setViewport({ width: 1280, height: 800 });
  const devtools = await page.createCDPSession();
  await devtools.send('Network.enable');
  requests = [];
  frames = 0;
  devtools.on('Network.requestWillBeSent', ({ request }) => requests.push(request.url));
  devtools.on('Network.webSocketFrameReceived', () => {
    frames += 1;
  });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

/** In the page: presses the first Launch when it is there, and keeps what was asked for until then. */
function watch(button) {
  const asked = new Set([location.href]);
  const { fetch, WebSocket } = window;
  window.fetch = (what, ...rest) => {
    asked.add(new URL(what.url ?? what, location.href).href);
    return fetch(what, ...rest);
  };
  window.WebSocket = class extends WebSocket {
    constructor(url, ...rest) {
      super(url, ...rest);
      asked.add(String(url));
    }
  };
  const seen = new MutationObserver(() => {
    const found = document.querySelector(button);
    if (!found) return;
    seen.disconnect();
    for (const { name } of performance.getEntriesByType('resource')) {
      asked.add(name.split('#')[0]); // a part of a file is not another file
    }
    window.__asked = [...asked];
    found.click();
  });
  seen.observe(document, { childList: true, subtree: true });
}

test('a browser that has nothing yet is ready to launch after ten requests, one of them the socket', async () => {
  const { seen, press } = person(page);
  const watching = await page.evaluateOnNewDocument(watch, part('act-launch'));
  await page.goto(`${machine.url}/ui/projects`, { waitUntil: 'load' });
  await seen(part('launch-dialog'));
  const asked = await page.evaluate(() => window.__asked);
  assert.ok(asked.some((url) => url.endsWith('/api/state')), asked.join('\n'));
  assert.ok(asked.length <= 10, asked.join('\n'));
  await page.removeScriptToEvaluateOnNewDocument(watching.identifier);
  await press(part('dialog-close'));
});

test('the list of 500 projects is at most 3000 elements, at its beginning and at its end', async () => {
  const { seen } = person(page);
  await seen(part('project-row'));
  const elements = () => page.evaluate(() => document.querySelectorAll('*').length);
  assert.ok((await elements()) <= 3_000);
  // The row of the last name is far below; on the way all others have been there.
  await page.waitForFunction(
    (last) => {
      window.scrollTo(0, document.documentElement.scrollHeight);
      return document.body.textContent.includes(last);
    },
    {},
    name(PROJECTS - 1),
  );
  assert.ok((await elements()) <= 3_000);
});

test('a page that is left alone asks for nothing and hears little', async () => {
  const { seen } = person(page);
  await page.goto(machine.url, { waitUntil: 'load' });
  for (let at = 0; at < SESSIONS; at += 1) await seen(row(name(at), 'running'));
  // With the first measurement the page asks once for those that it has missed.
  await seen(part('used'));
  await page.waitForNetworkIdle({ idleTime: 2_000 });
  const before = { requests: requests.length, frames };
  await sleep(IDLE_MS);
  assert.deepEqual(requests.slice(before.requests), []);
  // One sample a second at most, and room for one change of something else.
  assert.ok(frames - before.frames <= IDLE_MS / 1_000 + 2, `${frames - before.frames} frames`);
});

test('nothing was complained about', () => assert.deepEqual(complaints, []));
