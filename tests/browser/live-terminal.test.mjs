// The terminal of a real session on a phone: real programs are drawn, and a reader who loses the
// network comes back to the same place without a gap.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { wrongCells } from './cells.mjs';
import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { proxy } from './proxy.mjs';
import { world } from './world.mjs';

const TERMINAL = part('terminal');
const ROWS = `${TERMINAL} .term-screen`;
/** How long the network is away. */
const AWAY_MS = 10_000;
const RECORDINGS = join(import.meta.dirname, '../recordings');

let wire, machine, browser, page, complaints, origin;
let seen, press, says, shot;

before(async () => {
  wire = await proxy();
  origin = `http://127.0.0.1:${wire.port}`;
  const knobs = { ready_ms: 0, tui: { bare: true, no_queries: true, feed: 'feed' } };
  machine = await world(
    { reader: { knobs }, programs: { knobs } },
    { claude: { pty_screen_enabled: true }, auth: { allowed_origins: [origin] } },
  );
  wire.to(Number(new URL(machine.url).port));
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, shot } = person(page));
  await page.setViewport({ width: 390, height: 844, isMobile: true, hasTouch: true });
});

after(async () => {
  await browser?.close();
  await machine?.close();
  wire?.close();
});

/** A session of the project whose screen shows what is written to the descriptor. */
async function session(project) {
  const pipe = join(machine.root, 'projects', project, 'feed');
  execFileSync('mkfifo', [pipe]);
  await machine.cli('start', project, '--mode', 'pty', '--wait');
  const all = await machine.api('/api/instances');
  const { instance_id: id } = all.find((one) => one.project === project);
  // The agent has the other end open, or this would wait for ever.
  return { id, feed: openSync(pipe, 'w') };
}

/** A frame of the whole screen, as the service sends it to any viewer. */
const told = (id) =>
  page.evaluate(
    (path) =>
      new Promise((resolve, reject) => {
        const socket = new WebSocket(`ws://${location.host}${path}`);
        socket.onmessage = ({ data }) => {
          resolve(JSON.parse(data));
          socket.close();
        };
        socket.onerror = () => reject(new Error('no frame'));
      }),
    `/ws/pty-screen/${id}?format=diff`,
  );

const top = () => page.$eval(`${TERMINAL} .term-body`, (body) => body.scrollTop);

/** The line that stands first in view. */
const firstInView = () =>
  page.$eval(`${TERMINAL} .term-body`, (body) => {
    const { top } = body.getBoundingClientRect();
    const rows = [...body.querySelectorAll('.term-row')];
    return rows.find((row) => row.getBoundingClientRect().top >= top)?.textContent;
  });

test('H58: a phone reads, scrolls back, loses the network and comes back without a gap', async () => {
  const { id, feed } = await session('reader');
  const say = (from, to) => {
    for (let n = from; n <= to; n += 1) writeSync(feed, `line ${String(n).padStart(4, '0')}\r\n`);
  };
  say(1, 300);
  await page.goto(`${origin}/ui/s/${id}`, { waitUntil: 'load' });
  await press('#tab-terminal');
  await says(ROWS, 'line 0300');
  await shot('live-terminal-phone');

  // Back to what was said before, with the finger.
  await page.$eval(`${TERMINAL} .term-body`, (body) => body.scrollTo(0, body.scrollHeight));
  await press(part('terminal-older'));
  await seen(`${TERMINAL} .term-past`);
  await page.$eval(`${TERMINAL} .term-body`, (body) => body.scrollTo(0, 200));
  await page.waitForFunction((where) => document.querySelector(where), {}, part('terminal-to-end'));
  const reading = await firstInView();
  assert.match(reading, /^line \d{4}$/);
  await shot('live-terminal-phone-back');

  // The network goes; the agent writes on.
  const before = complaints.length;
  wire.to(1); // nobody listens there
  wire.cut();
  await new Promise((resolve) => setTimeout(resolve, AWAY_MS / 2));
  say(301, 700);
  await new Promise((resolve) => setTimeout(resolve, AWAY_MS / 2));
  assert.equal(await firstInView(), reading, 'the reader was moved while the network was away');
  wire.to(Number(new URL(machine.url).port));
  await says(ROWS, 'line 0700');
  assert.equal(await firstInView(), reading, 'the reader was moved when the network came back');
  complaints.splice(before); // of the lost line

  // What was written meanwhile is read as well: every line between the reader and the end.
  await page.waitForFunction(
    (where) => {
      const rows = [...document.querySelectorAll(`${where} .term-row`)].map((row) => row.textContent);
      const numbers = rows.filter((text) => /^line \d{4}$/.test(text)).map((text) => Number(text.slice(5)));
      return numbers.at(-1) === 700 && numbers.every((n, at) => n === numbers[0] + at);
    },
    {},
    TERMINAL,
  );
  assert.ok((await top()) > 0);
  await press(part('terminal-to-end'));
  await page.waitForFunction((where) => !document.querySelector(`${where} .term-past`), {}, TERMINAL);
  // The view stays at the end while the lines above go away under it.
  writeSync(feed, 'line 0701\r\n');
  await says(ROWS, 'line 0701');
  const stays = () =>
    page.evaluate(async (where) => {
      for (let frame = 0; frame < 30; frame += 1) await new Promise(requestAnimationFrame);
      return document.querySelector(`${where} .term-past, ${where} .term-pill`)?.outerHTML ?? 'at the end';
    }, TERMINAL);
  assert.equal(await stays(), 'at the end');
  await shot('live-terminal-phone-again');
  // And while the phone is turned: the panel is higher, then lower.
  for (const [width, height] of [[844, 390], [390, 1200], [390, 844]]) {
    await page.setViewport({ width, height });
    assert.equal(await stays(), 'at the end', `at ${width} × ${height}`);
  }
  closeSync(feed);
  assert.deepEqual(complaints, []);
});

test('H54: what real programs draw stands on the page cell for cell', async () => {
  const { id, feed } = await session('programs');
  await page.goto(`${origin}/ui/s/${id}`, { waitUntil: 'load' });
  await press('#tab-terminal');
  for (const name of ['vim', 'less', 'nano', 'htop', 'tmux']) {
    const bytes = readFileSync(join(RECORDINGS, `${name}.bytes`));
    // Back to an empty screen of its own, then the recording, then a mark to wait for.
    writeSync(feed, '\x1bc');
    writeSync(feed, bytes);
    writeSync(feed, `\x1b7\x1b[30;1Hend of ${name}\x1b8`);
    await says(ROWS, `end of ${name}`);
    const frame = await told(id);
    assert.ok(frame.full && frame.rows_changed.length > 5, `${name}: ${frame.rows_changed.length} rows`);
    assert.deepEqual(await page.evaluate(wrongCells, TERMINAL, frame), [], name);
    await shot(`live-terminal-${name}`);
  }
  closeSync(feed);
  assert.deepEqual(complaints, []);
});
