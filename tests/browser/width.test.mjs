// Every view, dialog and state at every width, with the samples as they are and with names of two
// hundred letters: nothing is cut, covered, broken, out of reach or too small. The records are the
// gallery's own; the real service only hands out the files of the page.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { findings, ruler, WIDTHS } from './width.mjs';
import { world } from './world.mjs';

const source = (name) =>
  readFileSync(new URL(`../../web/gallery/${name}`, import.meta.url), 'utf8');
const RUNNING = '3a375c2e-0a3b-4c5d-8e9f-001122334455';
const CRASHED = 'a1c25d38-0a3b-4c5d-8e9f-001122334455';
const DECLINED = '184dccee-0a3b-4c5d-8e9f-001122334455';
const HELD = 'd51a99bb-0a3b-4c5d-8e9f-001122334455';
const ASKING = '6f0b3c21-0a3b-4c5d-8e9f-001122334455';
const STARTING = '51b0d9aa-0a3b-4c5d-8e9f-001122334455';

/** A name of 200 letters without a place to break it. */
const long = (name) => name.replace(/[^a-z]/g, '').padEnd(200, 'mnw');
/** What is long: projects of every status, a label, a cause, the host, a prompt, a worktree. */
const LENGTHENED = [
  'web-frontend',
  'crash-demo',
  'thesis-latex',
  'scratch',
  'notes',
  'billing-worker',
  'buildbox',
  'fix-login',
  'before the upgrade',
  'out of memory: worker 4',
  'Migrate the tests to the new runner',
  'read the docs',
  'fix the login form',
  'Edit src/login.ts',
  'Bash: git push origin release/2.4',
  'atlas-api',
  'release 2.4',
  'git push origin release/2.4 --follow-tags',
];

let machine;
let browser;
let page, complaints, seen, press, gone, look, resize;

before(async () => {
  machine = await world({ web: {} });
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

async function open(path, names) {
  await page?.close();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, gone } = person(page));
  await page.emulateTimezone('UTC');
  let samples = source('samples.js');
  if (names === 'long') for (const name of LENGTHENED) samples = samples.replaceAll(name, long(name));
  const on = 'SAMPLES.bootstrap.features.config_write = true;';
  await page.evaluateOnNewDocument(`${samples}\n${on}\n${source('service.js')}`);
  ({ look, resize } = await ruler(page));
  await page.goto(machine.url + path, { waitUntil: 'load' });
}

/** Another view of the same document. */
const go = (path, there) => person(page).go(path, there);

const clean = (found) => {
  const lines = findings(found);
  assert.equal(lines.length, 0, `\n${lines.join('\n')}`);
};

const VIEWS = [
  ['/ui/?ended=all', part('section-ended')],
  ['/ui/?filter=external', part('external-row')],
  ['/ui/restore', part('restore-list')],
  ['/ui/projects', part('project-row')],
  ['/ui/projects?q=zzz', part('nothing-matches')],
  ['/ui/projects/ledger', part('session-row')],
  ['/ui/projects/$web-frontend', part('session-row')],
  ['/ui/projects/$web-frontend?tab=activity', part('event')],
  ['/ui/projects/$scratch', part('project')],
  ['/ui/projects/release-tools-of-the-platform-team-with-a-name-that-does-not-fit-in-a-row', 'h1'],
  ['/ui/jobs', part('job-row')],
  ['/ui/inbox', part('inbox-item')],
  [`/ui/inbox/${ASKING}/1f2e3d4c-0a3b-4c5d-8e9f-001122334455`, part('allow')],
  ['/ui/inbox?state=answered', part('inbox-item')],
  ['/ui/inbox?state=answered&request=edit', part('diff')],
  ['/ui/jobs/5e72b459', `${part('job-texts')}[open]`],
  ['/ui/external', part('external-row')],
  ['/ui/activity', part('event')],
  ['/ui/doctor', part('check')],
  ['/ui/about', part('about')],
  ['/ui/tokens', part('reach')],
  ['/ui/settings', part('settings')],
  ['/ui/agent-config', part('agent-config')],
  ['/ui/agent-config/claude-md', part('config-text')],
  ['/ui/agent-config/settings', part('config-key')],
  ['/ui/agent-config/permissions?project=$web-frontend', part('config-add')],
  ['/ui/agent-config/hooks?project=$web-frontend', part('hook')],
  ['/ui/agent-config/mcp?project=$web-frontend&scope=local', part('server')],
  ['/ui/agent-config/approvals?project=$web-frontend', part('config-approval')],
  ['/ui/agent-config/subagents?project=$web-frontend', part('subagent')],
  ['/ui/agent-config/subagents?project=$web-frontend&name=code-review', part('config-text')],
  ['/ui/agent-config/skills?project=$web-frontend', part('config-override')],
  ['/ui/agent-config/skills?project=$web-frontend&name=release', part('config-text')],
  ['/ui/agent-config/plugins?project=$web-frontend', part('plugin')],
  ['/ui/agent-config/marketplaces?project=$web-frontend', part('plugin')],
  ['/ui/moon', part('not-found')],
  [`/ui/s/${RUNNING}`, part('log-line')],
  [`/ui/s/${RUNNING}?tab=activity`, part('event')],
  [`/ui/s/${RUNNING}?tab=details`, part('details')],
  [`/ui/s/${CRASHED}`, part('cause-card')],
  [`/ui/s/${DECLINED}`, part('resume-declined')],
  [`/ui/s/${HELD}`, part('log')],
  [`/ui/s/${STARTING}`, part('log')],
  [`/ui/s/${ASKING}`, part('question')],
  ['/ui/s/ffffffff', part('not-found')],
];
const DIALOGS = [
  ['/ui/projects?launch=docs-site', part('launch-dialog')],
  ['/ui/projects?launch=$billing-worker', part('launch-already')],
  ['/ui/projects?launch=$scratch', part('trust-gate')],
  ['/ui/projects?launch=$notes&kind=background', part('launch-prompt')],
  ['/ui/projects?launch=nothing', part('launch-dialog')],
];

for (const names of ['usual', 'long']) {
  const named = (path) =>
    path.replace(/\$([a-z-]+)/, (_, name) => (names === 'long' ? long(name) : name));

  test(`every view at every width, ${names} names`, async () => {
    await open('/ui/', names);
    await seen(part('section-projects'));
    const found = await look('home');
    for (const [path, there] of VIEWS) {
      await go(named(path), there);
      await gone('[aria-busy=true]');
      found.push(...(await look(path)));
    }
    clean(found);
  });

  test(`every dialog at every width, ${names} names`, async () => {
    await open('/ui/projects', names);
    await seen(part('project-row'));
    const found = [];
    for (const [path, there] of DIALOGS) {
      await go(named(path), there);
      found.push(...(await look(path)));
      await page.keyboard.press('Escape');
      await gone('dialog');
    }
    await resize(1440);
    for (const [name, opener, there] of [
      ['keys', part('help'), part('keys')],
      ['palette', part('palette-open'), '#palette [role=option]'],
    ]) {
      await press(opener);
      await seen(there);
      found.push(...(await look(name)));
      await page.keyboard.press('Escape');
      await gone('dialog');
      await resize(1440);
    }
    await go('/ui/projects', part('project-row'));
    for (const [name, opener, there] of [
      ['clone', part('new-clone'), part('new-url')],
      ['create', part('new-create'), part('new-name')],
      ['cloning', part('clone-pill'), part('clone-progress')],
    ]) {
      await press(opener);
      await seen(there);
      found.push(...(await look(name)));
      await page.keyboard.press('Escape');
      await gone('dialog');
      await resize(1440);
    }
    await go(named('/ui/projects/$scratch'), part('project'));
    await press(part('act-trust'));
    await seen('dialog');
    found.push(...(await look('trust')));
    await page.keyboard.press('Escape');
    await gone('dialog');
    await resize(390);
    await press(part('nav-more'));
    await seen(part('more'));
    found.push(...(await look('more', WIDTHS.filter((width) => width < 640))));
    clean(found);
  });

  test(`an edited part of the agent's configuration at every width, ${names} names`, async () => {
    const project = names === 'long' ? long('web-frontend') : 'web-frontend';
    await open(`/ui/agent-config/hooks?project=${project}`, names);
    const found = [];
    await seen(part('hook'));
    await page.type('[data-at="/Stop/0/hooks/0/command"]', 'x');
    await press(part('config-versions-open'));
    await seen(part('config-versions'));
    found.push(...(await look('edited')));
    await resize(390);
    await press(part('config-to-review'));
    await page.type(part('config-typed'), 'web');
    found.push(...(await look('reviewed', WIDTHS.filter((width) => width < 640))));
    await resize(1440);
    await press(part('config-compare'));
    found.push(...(await look('compared')));
    await go(`/ui/agent-config/settings?project=${project}`, part('config-effective-open'));
    await resize(1440);
    await press(part('config-effective-open'));
    await seen(part('config-effective'));
    found.push(...(await look('effective')));
    await go(`/ui/agent-config/plugins?project=${project}`, part('plugin'));
    await resize(1440);
    await press(part('plugin-uninstall'));
    await seen(part('plugin-ask'));
    found.push(...(await look('asked')));
    clean(found);
  });

  test(`what opens in a row at every width, ${names} names`, async () => {
    await open('/ui/?ended=all', names);
    await seen(part('section-ended'));
    const found = [];
    const of = (id) => `[data-row="${id}"]`;
    for (const id of [RUNNING, CRASHED, DECLINED]) {
      for (const width of WIDTHS) {
        await resize(width);
        await press(`${of(id)} ${part('act-more')}`);
        await seen('[role=menu]');
        found.push(...(await look(`menu of ${id}`, [width])));
        await page.keyboard.press('Escape');
        await gone('[role=menu]');
      }
    }
    await resize(1440);
    await press(`${of(CRASHED)} ${part('show-output')}`);
    await press(`${of(RUNNING)} ${part('act-stop')}`);
    await seen(part('confirm'));
    found.push(...(await look('output, a question')));
    await resize(1440);
    await press(part('confirm-no'));
    await press(`${of(RUNNING)} ${part('act-more')}`);
    await press(part('menu-rename'));
    await seen(part('rename-field'));
    found.push(...(await look('renaming')));
    await resize(1440);
    await page.keyboard.press('Escape');
    await gone(part('rename-field'));
    for (const id of [RUNNING, CRASHED, DECLINED]) {
      await page.$eval(`${of(id)} ${part('pick')}`, (box) => box.click());
    }
    await seen(part('bulk'));
    found.push(...(await look('selecting')));
    clean(found);
  });

  test(`loading, empty, failed and stale at every width, ${names} names`, async () => {
    const found = [];
    for (const [state, there, paths] of [
      ['loading', '[aria-busy=true]', ['/ui/']],
      ['empty', part('welcome'), ['/ui/', '/ui/projects', '/ui/jobs', '/ui/external', '/ui/activity']],
      ['error', part('no-start'), ['/ui/']],
      ['stale', part('offline-banner'), ['/ui/', '/ui/projects', `/ui/s/${RUNNING}`, '/ui/jobs']],
    ]) {
      await open(`/ui/?state=${state}`, names);
      await seen(there);
      for (const path of paths) {
        await go(`${path}?state=${state}`, 'h1');
        found.push(...(await look(`${state} ${path}`)));
      }
    }
    clean(found);
  });
}

test('nothing was complained about', async () => {
  await page.close();
  assert.deepEqual(complaints.filter((text) => !/\b(503|404)\b/.test(text)), []);
});
