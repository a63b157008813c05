// Prints how long the page takes: `cargo xtask times`. Times depend on the machine and on what
// else it does, so they are printed and never asserted.

import { setTimeout as sleep } from 'node:timers/promises';

import { launch } from './harness.mjs';
import { part, row } from './person.mjs';
import { world } from './world.mjs';

const RUNS = Number(process.env.SVC_TIMES_RUNS ?? 9);
const SESSIONS = 20;
const IDLE_MS = 40_000;
/** A phone on a slow line. */
const SLOW = { latency: 150, downloadThroughput: 200_000, uploadThroughput: 200_000, offline: false };

const name = (number) => `project-${String(number).padStart(5, '0')}`;
const sorted = (numbers) => [...numbers].sort((one, other) => one - other);
const median = (numbers) => sorted(numbers)[Math.floor(numbers.length / 2)];
const p95 = (numbers) => sorted(numbers)[Math.ceil(numbers.length * 0.95) - 1];

function tell(what, numbers, unit = 'ms') {
  const show = (number) => String(Math.round(number)).padStart(7);
  console.log(`${what.padEnd(58)}${show(median(numbers))} ${unit}   p95${show(p95(numbers))} ${unit}`);
}

/** In the page, before anything else of it: presses the first Launch and notes when it answers. */
function watch(button, dialog) {
  window.__times = { long: [] };
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.__times.long.push(entry.duration);
  }).observe({ type: 'longtask', buffered: true });
  const look = () => {
    if (!window.__times.pressed) {
      const found = document.querySelector(button);
      if (found) {
        window.__times.pressed = true;
        found.click();
      }
    } else if (!window.__times.interactive && document.querySelector(dialog)) {
      window.__times.interactive = performance.now();
    }
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
}

async function load(context, url, { slow = false } = {}) {
  const page = await context.newPage();
  await page.setViewport(slow ? { width: 390, height: 844 } : { width: 1280, height: 800 });
  if (slow) {
    const devtools = await page.createCDPSession();
    await devtools.send('Network.enable');
    await devtools.send('Network.emulateNetworkConditions', SLOW);
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: 4 });
  }
  await page.evaluateOnNewDocument(watch, part('act-launch'), part('launch-dialog'));
  await page.goto(`${url}/ui/projects`, { waitUntil: 'load', timeout: 120_000 });
  await page.waitForFunction(() => window.__times.interactive, { timeout: 120_000 });
  const times = await page.evaluate(() => ({
    paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
    interactive: window.__times.interactive,
    long: Math.max(0, ...window.__times.long),
  }));
  return { page, ...times };
}

/** Loads in browsers that know nothing, as often as asked for. */
async function cold(browser, url, options) {
  const all = [];
  for (let run = 0; run < RUNS; run += 1) {
    const context = await browser.createBrowserContext();
    const first = await load(context, url, options);
    await first.page.close();
    const again = await load(context, url, options);
    all.push({ ...first, warm: again.interactive });
    await context.close();
  }
  return all;
}

/** What a number of loads came to. */
function tellLoads(what, loads) {
  tell(`${what}: first paint`, loads.map(({ paint }) => paint));
  tell(`${what}: interactive, cold`, loads.map(({ interactive }) => interactive));
  tell(`${what}: interactive, warm`, loads.map(({ warm }) => warm));
  tell(`${what}: longest task`, loads.map(({ long }) => long));
}

/** From one more letter in the search field to the frame that shows the answer. */
async function filter(browser, url) {
  const page = await browser.newPage();
  await page.goto(`${url}/ui/projects`, { waitUntil: 'load' });
  await page.waitForSelector(part('project-row'));
  const all = [];
  for (let run = 0; run < RUNS; run += 1) {
    all.push(
      await page.evaluate(async (field, letters) => {
        const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        const input = document.querySelector(field);
        await painted();
        const start = performance.now();
        input.value = letters;
        input.dispatchEvent(new Event('input', { bubbles: true }));
        await painted();
        return performance.now() - start;
      }, part('search'), run % 2 ? '' : 'project-0001'),
    );
  }
  await page.close();
  return all;
}

/** A page that notes when it last heard from the stream. */
async function listener(browser, url) {
  const page = await browser.newPage();
  await page.evaluateOnNewDocument(() => {
    const Real = window.WebSocket;
    window.WebSocket = class extends Real {
      constructor(...given) {
        super(...given);
        super.addEventListener('message', () => {
          window.__heard = performance.now();
        });
      }
    };
  });
  await page.goto(url, { waitUntil: 'load' });
  return page;
}

/** Stops the session of a project: from the frame of the stream to the frame of the screen. */
async function stopped(page, machine, project) {
  const shown = page.evaluate(
    (gone) =>
      new Promise((done) => {
        const seen = new MutationObserver(() => {
          if (document.querySelector(gone)) return;
          seen.disconnect();
          const heard = window.__heard;
          requestAnimationFrame(() => setTimeout(() => done(performance.now() - heard)));
        });
        seen.observe(document.body, { subtree: true, childList: true, attributes: true });
      }),
    row(project, 'running'),
  );
  const [time] = await Promise.all([shown, machine.cli('stop', project)]);
  return time;
}

/** The same on any number of projects, with one session that comes and goes. */
async function changes(browser, machine) {
  const page = await listener(browser, machine.url);
  const all = [];
  for (let run = 0; run < RUNS; run += 1) {
    await machine.cli('start', name(0));
    await page.waitForSelector(row(name(0), 'running'));
    all.push(await stopped(page, machine, name(0)));
    await machine.cli('forget', name(0)); // or the next stop would not know which is meant
  }
  await page.close();
  return all;
}

/**
 * What a page left alone uses, with every session older than the minute in which its age counts
 * seconds; then how long a change takes.
 */
async function live(browser, machine) {
  const page = await listener(browser, machine.url);
  await page.waitForSelector(row(name(0), 'running'));
  const counts = (times) => [...document.querySelectorAll(times)].some((time) => /\ds|\d s/.test(time.textContent));
  while (await page.evaluate(counts, `${part('session-row')} time`)) await sleep(1_000);
  // The first sample, four seconds later at most, still brings the history of the figures.
  await page.waitForNetworkIdle({ idleTime: 6_000 });
  // Processor time of the main thread; by the clock, a task also lasts while others have the core.
  const devtools = await page.createCDPSession();
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
  const figures = async () => {
    const { metrics } = await devtools.send('Performance.getMetrics');
    return Object.fromEntries(metrics.map(({ name: of, value }) => [of, value]));
  };
  await devtools.send('Network.enable');
  const traffic = { requests: 0, frames: 0 };
  devtools.on('Network.requestWillBeSent', () => { traffic.requests += 1; });
  devtools.on('Network.webSocketFrameReceived', () => { traffic.frames += 1; });
  const before = await figures();
  await sleep(IDLE_MS);
  const after = await figures();
  const { requests, frames } = traffic;
  const idle = ((after.TaskDuration - before.TaskDuration) * 100_000) / IDLE_MS;
  const deltas = [];
  for (let run = 0; run < Math.min(RUNS, SESSIONS - 1); run += 1) {
    deltas.push(await stopped(page, machine, name(run + 1)));
  }
  await page.close();
  return { deltas, idle, requests, frames, heap: after.JSHeapUsedSize / 1_000_000 };
}

async function measure(projects, rest, ended = 0) {
  const names = Array.from({ length: projects }, (_, at) => [name(at), {}]);
  const machine = await world(Object.fromEntries(names), {}, undefined, ended);
  const browser = await launch();
  try {
    await rest(browser, machine);
  } finally {
    await browser.close();
    await machine.close();
  }
}

await measure(500, async (browser, machine) => {
  for (let at = 0; at < SESSIONS; at += 1) await machine.cli('start', name(at));
  tellLoads('500 projects', await cold(browser, machine.url));
  tell('500 projects: letter typed until painted', await filter(browser, machine.url));
  tellLoads('slow phone', await cold(browser, machine.url, { slow: true }));
  const { deltas, idle, requests, frames, heap } = await live(browser, machine);
  tell('change received until painted', deltas);
  console.log(`${'left alone: share of one core'.padEnd(58)}${idle.toFixed(2).padStart(7)} %`);
  console.log(`${'left alone: requests and frames in 30 s'.padEnd(58)}${requests * 30_000 / IDLE_MS} and ${(frames * 30_000 / IDLE_MS).toFixed(1)}`);
  console.log(`${'heap, without the module\'s memory'.padEnd(58)}${heap.toFixed(1).padStart(7)} MB`);
});
await measure(1_000, async (browser, machine) => {
  tell('1000 projects: letter typed until painted', await filter(browser, machine.url));
});
for (const projects of [1, 50, 10_000]) {
  await measure(projects, async (browser, machine) => {
    tellLoads(`${projects} projects`, await cold(browser, machine.url));
    tell(`${projects} projects: change received until painted`, await changes(browser, machine));
  });
}
await measure(50, async (browser, machine) => {
  tellLoads('10000 ended sessions', await cold(browser, machine.url));
  tell('10000 ended sessions: change received until painted', await changes(browser, machine));
}, 10_000);
