// Somebody's first minute: one command, an empty browser, no manual. Everything is found by the
// words that stand on it, as a person reads them.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, serve, tab } from './harness.mjs';
import { part, person } from './person.mjs';

let browser, service, page, complaints;
let says;

before(async () => {
  service = await serve();
  browser = await launch(); // a profile of its own, and empty
  ({ page, complaints } = await tab(browser));
  ({ says } = person(page));
  await page.setViewport({ width: 1280, height: 900 });
});

after(async () => {
  await browser?.close();
  assert.equal(await service?.stop(), 0);
});

/** Presses what says so, within an element that says something. */
async function press(words, within = 'body', saying = '') {
  const found = await page.waitForFunction(
    (wanted, where, said) => {
      const reads = (element) => (element.innerText || element.getAttribute('aria-label') || '').trim();
      const places = [...document.querySelectorAll(where)].filter((place) => place.innerText.includes(said));
      const controls = places.flatMap((place) => [...place.querySelectorAll('a, button, summary, [role=tab]')]);
      return controls.find(
        (control) =>
          control.checkVisibility() &&
          control.getAttribute('aria-disabled') !== 'true' &&
          reads(control) === wanted,
      );
    },
    {},
    words,
    within,
    saying,
  );
  await found.asElement().evaluate((element) => {
    element.scrollIntoView({ block: 'center' });
    element.click();
  });
}

const heading = (words) =>
  page.waitForFunction(
    (wanted) => document.querySelector('h1')?.innerText.trim() === wanted,
    {},
    words,
  );

/** Launches in a project that is trusted and has no session yet; answers with its name. */
async function launchIn(fits) {
  const { state } = await (await fetch(`${service.url}/api/state`)).json();
  const taken = new Set(Object.values(state.instances).map((instance) => instance.project));
  const free = Object.values(state.projects).find(
    ({ name, trust_state: trust }) => !taken.has(name) && trust === 'trusted' && fits(name),
  );
  assert.ok(free, 'the demo has no project to launch in');
  await press('Launch', `${part('section-projects')} li`, free.name);
  await page.waitForSelector('dialog[open]');
  await says('dialog', free.name);
  await press('Launch', 'dialog');
  return free.name;
}

let project;

test('the first page says what is there, without a word about setting anything up', async () => {
  await page.goto(service.url, { waitUntil: 'load' });
  await heading('Home');
  await says('main', 'Live');
  await says('main', 'Projects');
});

test('a session is launched: Launch beside a project, and Launch in what opens', async () => {
  await page.waitForSelector(`${part('section-projects')} [data-project]`);
  project = await launchIn((name) => !/crash|slow/.test(name));
  await says(`[data-project="${project}"][data-status="running"]`, 'Running');
});

test('its log is read: Log beside it', async () => {
  await press('Log', `${part('section-live')} [data-project="${project}"]`);
  await heading(project);
  await says(part('log-line'), 'poll');
});

test('why another one crashed: Home, and it stands there', async () => {
  await press('Home');
  await heading('Home');
  await launchIn((name) => name.includes('crash'));
  const crashed = '[data-status="crashed"], [data-status="error"]';
  await page.waitForSelector(crashed);
  const cause = await page.$eval(`:is(${crashed}) ${part('cause-line')}`, (line) => line.innerText);
  assert.ok(cause.trim().length > 5, cause);
  await press('Show output', crashed);
  await page.waitForSelector(part('output'), { visible: true });
  const output = await page.$eval(part('output'), (element) => element.innerText);
  assert.ok(output.trim().length > 0, 'no output');
});

const ask = async (path) => (await fetch(service.url + path)).json();
const count = (selector) => page.$$eval(selector, (all) => all.length);

test('every other place says what is true there', async () => {
  await page.click(part('nav-inbox'));
  await heading('Inbox');
  assert.deepEqual((await ask('/api/approvals')).approvals, []);
  const blocked = (await ask('/api/agents')).filter(({ state }) => state === 'blocked').length;
  if (blocked === 0) await says('main', 'Nothing is waiting for you.');
  else await says('main', blocked === 1 ? '1 request is waiting' : `${blocked} requests are waiting`);

  await press('Activity');
  await heading('Activity');
  await says(part('event'), project);

  await press('Usage');
  await heading('Usage');
  await page.waitForSelector(part('usage'));
  const { projects } = await ask('/api/usage?since=2000-01-01T00:00:00Z');
  const used = Object.values(projects).some(({ total_tokens: tokens }) => tokens > 0);
  await says('main', used ? 'input tokens' : 'No tokens were used in this period.');

  await press('Settings');
  await heading('Settings');
  await page.waitForSelector(part('settings'));
  const { can_save: can } = await ask('/api/config');
  assert.equal(await count(part('settings-read-only')), can ? 0 : 1);
  assert.equal(await count('[data-testid=setting] [role=switch]:not([aria-disabled], [disabled])') > 0, can);
  await says(part('settings-read-only'), 'without a configuration file');

  await press('Devices and tokens');
  await heading('Devices and tokens');
  await says('main', 'Only this machine can reach svc.');
  await says('main', 'Authentication is off');

  await press('Readiness');
  await heading('Readiness');
  await page.waitForSelector('[data-check]');
  const { checks } = await ask('/api/doctor');
  const named = await page.$$eval('[data-check]', (all) => all.map((check) => check.dataset.check));
  assert.deepEqual(named.sort(), checks.map(({ name }) => name).sort());
});

test('the page of a project says what was said, changed and told there', async () => {
  await press('Projects');
  await heading('Projects');
  await press(project);
  await heading(project);
  const { sessions } = await ask(`/api/projects/${project}/transcripts`);
  await press('Conversations');
  if (sessions.length === 0) await says('main', 'Conversations appear here after the first session.');
  else await page.waitForSelector(part('conversation'));
  await press('Instructions');
  await page.waitForSelector('#instructions-text');
  const { sha256 } = await ask(`/api/projects/${project}/claude-md`);
  assert.equal(await count(part('instructions-none')), sha256 ? 0 : 1);
});

test('nothing was complained about', async () => {
  await page.close();
  assert.deepEqual(complaints, []);
});
