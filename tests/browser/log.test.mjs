// The log panel as a reader uses it: following and staying, finding, pausing, taking lines along.

import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { DEADLINE_MS, launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

let machine;
let browser;
let page;
let complaints;
let seen, press, says, gone, shot, fromMenu;
let file;
let written = 0;

/** Files below a directory. */
const below = (dir) =>
  readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name);
    return entry.isDirectory() ? below(path) : [path];
  });

/** Adds numbered lines to the log, as the agent would. */
function write(count) {
  const lines = [];
  for (let n = 0; n < count; n += 1) lines.push(`line ${(written += 1)} of the test\n`);
  appendFileSync(file, lines.join(''));
  return `line ${written} of the test`;
}

/**
 * Adds many lines, a portion at a time: a reader who is thousands of lines behind is told of a gap
 * instead of getting all of them. `arrived` waits until the page has that many.
 */
async function writeMany(count, arrived) {
  let last;
  for (let done = 0; done < count; ) {
    const portion = Math.min(2_000, count - done);
    last = write(portion);
    done += portion;
    await arrived(done);
  }
  return last;
}

/** Text and distance from the upper edge of the first line that is wholly visible. */
const firstVisible = () =>
  page.evaluate(() => {
    const top = document.querySelector('.log-lines').getBoundingClientRect().top;
    for (const line of document.querySelectorAll('.log-line')) {
      const at = line.getBoundingClientRect().top - top;
      if (at >= 0) return { text: line.textContent, at: Math.round(at) };
    }
    return null;
  });

/**
 * Scrolls until a line is in view and stays there for a frame, as a reader would: the page may be
 * about to follow the lines that came last.
 */
async function scrollTo(text) {
  await page.waitForFunction(
    (wanted) => {
      const lines = document.querySelector('.log-lines');
      const shown = [...document.querySelectorAll('.log-line')];
      const line = shown.find((each) => each.textContent === wanted);
      if (line && lines.scrollTop === line.offsetTop) return true;
      if (line) lines.scrollTop = line.offsetTop;
      else lines.scrollTop -= 600;
      return false;
    },
    { timeout: DEADLINE_MS },
    text,
  );
}

const isOn = (name, value) => seen(`${part(name)}[aria-checked="${value}"]`);

const atEnd = () =>
  page.waitForFunction(() => {
    const lines = document.querySelector('.log-lines');
    return lines.scrollHeight - lines.scrollTop - lines.clientHeight < 24;
  });

/** Chooses from the menu of the panel. */
const choose = (entry) => fromMenu(`${part('log')} ${part('act-more')}`, part(entry));

before(async () => {
  machine = await world({ api: {}, loud: { knobs: { log_mb_per_s: 25, log_for_ms: 2000 } } });
  await machine.cli('start', 'api');
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, shot, choose: fromMenu } = person(page));
  await page.setViewport({ width: 1280, height: 800 });
  const [{ instance_id: id }] = await machine.api('/api/instances');
  await page.goto(`${machine.url}/ui/s/${id}`, { waitUntil: 'load' });
  await says(part('log-line'), 'Starting poll loop');
  file = below(join(machine.root, 'state')).find(
    (path) => path.endsWith('.log') && readFileSync(path, 'utf8').includes('Starting poll loop'),
  );
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('a level named in a line colours it, and nothing else does', async () => {
  appendFileSync(file, '08:03:09 [WARN] memory low\n08:03:10 [ERROR] closed\nerror pages work\n');
  await says('.log-line.warn', 'memory low');
  await says('.log-line.error', 'closed');
  await says('.log-line:not(.error)', 'error pages work');
});

test('a reader who scrolls up stays where they are, and new lines are counted', async () => {
  const last = write(300);
  await says(part('log-line'), last);
  await atEnd();
  await scrollTo('line 200 of the test');
  await isOn('log-follow', false);
  const before = await firstVisible();
  write(37);
  await says(part('log-pill'), '37 new lines');
  assert.deepEqual(await firstVisible(), before);
  await shot('log-pill');
  await press(part('log-pill'));
  await isOn('log-follow', true);
  await atEnd();
  await says(part('log-line'), 'line 337 of the test');
  await gone(part('log-pill'));
});

test('a reader who scrolls up the moment the page has gone to the end is not taken for one who stays', async () => {
  await page.evaluate(() => {
    const lines = document.querySelector('.log-lines');
    const before = lines.scrollHeight;
    // Between the frame in which the page goes to the end and the one that tells it of that.
    const up = () => {
      const isLonger = lines.scrollHeight >= before + 1200;
      const isAtEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 24;
      if (isLonger && isAtEnd) lines.scrollTop -= 600;
      else setTimeout(up);
    };
    up();
  });
  write(200);
  await isOn('log-follow', false);
  await press(part('log-follow'));
  await isOn('log-follow', true);
  await atEnd();
});

test('lines dropped at the start do not move the reader either', async () => {
  await scrollTo('line 250 of the test');
  await isOn('log-follow', false);
  const before = await firstVisible();
  const last = await writeMany(9_550, (done) => says(part('log-pill'), `${done} new lines`));
  await says('.log-top', 'Only the last 10,000 lines');
  assert.deepEqual(await firstVisible(), before);
  await press(part('log-pill'));
  await says(part('log-line'), last);
  const made = await page.$$eval('.log-line', (lines) => lines.length);
  assert.ok(made < 2_000, `${made} lines have elements`);
});

test('what is looked for is counted, marked, and gone through in both directions', async () => {
  appendFileSync(file, 'needle one\nneedle two needle\nhay\n');
  await says(part('log-line'), 'hay');
  await page.focus('.log-lines');
  await page.keyboard.down('Control');
  await page.keyboard.press('f');
  await page.keyboard.up('Control');
  await page.waitForFunction((where) => document.activeElement?.matches(where), {}, part('log-find'));
  await page.keyboard.type('needle');
  await says(part('log-hits'), '2 of 2');
  await says('.log-line.hit', 'needle two');
  const colours = await page.evaluate(() =>
    ['.log-line.hit mark', '.log-line:not(.hit) mark'].map(
      (where) => getComputedStyle(document.querySelector(where)).backgroundColor,
    ),
  );
  assert.notEqual(colours[0], colours[1]);
  await shot('log-find');
  await press(part('log-next'));
  await says(part('log-hits'), '1 of 2');
  await says('.log-line.hit', 'needle one');
  await press(part('log-previous'));
  await says('.log-line.hit', 'needle two');
  await page.focus(part('log-find'));
  await page.keyboard.press('Escape');
  await gone('.log-line mark');
});

test('a hit far above is brought into view', async () => {
  await page.type(part('log-find'), 'line 3210 of');
  await says(part('log-hits'), '1 of 1');
  await page.waitForFunction(() => {
    const hit = document.querySelector('.log-line.hit')?.getBoundingClientRect();
    const box = document.querySelector('.log-lines').getBoundingClientRect();
    return hit && hit.top >= box.top && hit.bottom <= box.bottom;
  });
  await isOn('log-follow', false);
  await page.focus(part('log-find'));
  await page.keyboard.press('Escape');
  await press(part('log-follow'));
  await atEnd();
});

test('while paused, lines wait and are counted; going on shows all of them', async () => {
  await press(part('log-pause'));
  await seen(`${part('log-pause')}[aria-pressed="true"]`);
  const waiting = write(12);
  await says(part('log-pause'), '12 new lines');
  const shown = await page.$eval(part('log'), (log) => log.textContent);
  assert.ok(!shown.includes(waiting), 'a line came in while paused');
  await press(part('log-pause'));
  await says(part('log-line'), waiting);
  await says(part('log-pause'), 'Pause');
});

test('more than can wait is read again later, and nothing is lost', async () => {
  await press(part('log-pause'));
  const first = written + 1;
  const last = await writeMany(7_000, (done) =>
    says(part('log-pause'), done < 5_000 ? `${done} new lines` : 'more than 5,000 new lines'),
  );
  await press(part('log-pause'));
  await says(part('log-line'), last);
  const text = await download();
  const numbers = [...text.matchAll(/^line (\d+) of the test$/gm)].map(([, n]) => Number(n));
  const expected = Array.from({ length: 7_000 }, (_, n) => first + n);
  assert.deepEqual(numbers.slice(-7_000), expected);
});

/** Presses the button and reads the file that comes of it. */
async function download() {
  const into = mkdtempSync(join(tmpdir(), 'svc-download-'));
  const session = await browser.target().createCDPSession();
  await session.send('Browser.setDownloadBehavior', {
    behavior: 'allow',
    downloadPath: into,
    eventsEnabled: true,
  });
  const done = new Promise((resolve) => {
    session.on('Browser.downloadProgress', ({ state }) => {
      if (state === 'completed') resolve();
    });
  });
  await press(part('log-download'));
  await done;
  const [name] = readdirSync(into);
  const text = readFileSync(join(into, name), 'utf8');
  rmSync(into, { recursive: true });
  await session.detach();
  return text;
}

test('lines are numbered when asked for', async () => {
  await choose('log-numbers');
  await page.waitForFunction(
    () =>
      getComputedStyle(document.querySelector('.log-line'), '::before').content.includes('counter'),
  );
  await shot('log-numbers');
  await choose('log-numbers');
  await gone('.numbered');
});

test('new output is read out only when asked for', async () => {
  await choose('log-announce');
  write(4);
  const last = write(1);
  await says(part('live-polite'), last);
  await choose('log-announce');
});

test('an end and a resume stand in the log as marks with their time', async () => {
  const [{ instance_id: id }] = await machine.api('/api/instances');
  await machine.cli('stop', id);
  await says('[data-mark=ended]', 'Ended');
  const mark = () => page.$eval('[data-mark=ended]', (each) => each.textContent);
  const first = await mark();
  assert.match(first, /\d\d:\d\d:\d\d/);
  // Opened again later, it still says when the bridge ended, not when it was opened.
  const [{ ended_at: ended }] = await machine.api('/api/instances');
  await page.waitForFunction((at) => Date.now() - Date.parse(at) > 2_000, {}, ended);
  await page.reload();
  await says('[data-mark=ended]', 'Ended');
  assert.equal(await mark(), first);
  await machine.cli('resume', id);
  await says('[data-mark=resumed]', 'Resumed, generation 2');
  await shot('log-marks');
});

test('a log of fifty megabytes leaves the page usable', async () => {
  await machine.cli('start', 'loud');
  const [loud] = (await machine.api('/api/instances')).filter((each) => each.project === 'loud');
  await page.evaluate(() => {
    window.__long = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.__long.push(entry.duration);
    }).observe({ type: 'longtask' });
  });
  await page.evaluate((path) => {
    const link = document.createElement('a');
    link.href = path;
    document.querySelector('main').append(link);
    link.click();
    link.remove();
  }, `/ui/s/${loud.instance_id}`);
  await seen(row('loud', 'running'));
  await page.waitForFunction(() => document.querySelectorAll('.log-line').length > 100);
  await press(part('tab-details'));
  await seen(part('details'));
  await press(part('tab-log'));
  await seen(part('log-line'));
  const made = await page.$$eval('.log-line', (lines) => lines.length);
  assert.ok(made < 3_000, `${made} lines have elements`);
  const long = await page.evaluate(() => Math.round(Math.max(0, ...window.__long)));
  console.log(`# fifty megabytes of log: the longest task took ${long} ms`);
  await machine.cli('stop', loud.instance_id);
});

test('on a phone the panel fits, and its menu holds what has no room', async () => {
  const { page: phone, complaints: said } = await tab(browser);
  const thumb = person(phone);
  await phone.setViewport({ width: 320, height: 640, hasTouch: true, isMobile: true });
  const [{ instance_id: id }] = await machine.api('/api/instances');
  await phone.goto(`${machine.url}/ui/s/${id}`, { waitUntil: 'load' });
  await thumb.seen(part('log-line'));
  const [wide, inner] = await phone.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  assert.ok(wide <= inner, `${wide} px wide on ${inner} px`);
  await thumb.press(`${part('log')} ${part('act-more')}`);
  await thumb.seen(part('log-menu-download'));
  await thumb.seen(part('log-menu-copy'));
  await thumb.shot('phone-log-menu');
  await phone.close();
  assert.deepEqual(said, []);
});

test('nothing was complained about', () => {
  assert.deepEqual(complaints, []);
});
