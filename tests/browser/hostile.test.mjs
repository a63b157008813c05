// Names, texts and output that somebody wrote to break the page: shown as they are, with what cannot
// be seen written out, and everything still works.

import assert from 'node:assert/strict';
import { appendFileSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { world } from './world.mjs';

const RUN = 'window.__broken=1';
const HOSTILE = [
  `<script>${RUN}</script>`,
  `"><script>${RUN}</script>`,
  `'><script>${RUN}</script>`,
  `</title><script>${RUN}</script>`,
  `</textarea><script>${RUN}</script>`,
  `</style><script>${RUN}</script>`,
  `</script><script>${RUN}</script>`,
  `<img src=x onerror=${RUN}>`,
  `"><img src=x onerror="${RUN}">`,
  `<svg onload=${RUN}>`,
  `<svg><script>${RUN}</script></svg>`,
  `<svg><animate onbegin=${RUN} attributeName=x>`,
  `<body onload=${RUN}>`,
  `<iframe srcdoc="<script>parent.__broken=1</script>">`,
  `<iframe src="javascript:parent.__broken=1">`,
  `<object data="javascript:${RUN}">`,
  `<embed src="javascript:${RUN}">`,
  `<a href="javascript:${RUN}">press</a>`,
  `<details open ontoggle=${RUN}>`,
  `<video><source onerror=${RUN}>`,
  `<input autofocus onfocus=${RUN}>`,
  `<select onfocus=${RUN} autofocus>`,
  `<marquee onstart=${RUN}>`,
  `<math><mtext><img src=x onerror=${RUN}>`,
  `<template><script>${RUN}</script></template>`,
  `<style>*{display:none!important}</style>`,
  `<link rel=stylesheet href="data:text/css,*{display:none}">`,
  `<base href="https://evil.example/">`,
  `<meta http-equiv=refresh content="0;url=https://evil.example/">`,
  `<form action="https://evil.example/"><button>Launch`,
  `<!--`,
  `-->`,
  `<![CDATA[`,
  `]]>`,
  `&lt;script&gt;${RUN}&lt;/script&gt;`,
  `&#60;b&#62;`,
  `&amp;&quot;&apos;`,
  `" onmouseover="${RUN}" x="`,
  `' onfocus='${RUN}' x='`,
  '`${' + RUN + '}`',
  '${7*7}{{7*7}}<%= 7*7 %>#{7*7}',
  `{{constructor.constructor('${RUN}')()}}`,
  `javascript:${RUN}`,
  'data:text|html,<script>alert(1)<|script>',
  '\\"; ' + RUN + '; \\"',
  "'; DROP TABLE bridges; --",
  '../../../../etc/passwd',
  '%2e%2e%2f%00%0a',
  'a\u202egnp.exe',
  '\u2066first\u2069\u202d',
  'zero\u200bwidth\u200d\u2060joined',
  'byte\ufeffmark',
  'line\u2028and\u2029paragraph',
  'bell\u0007escape\u001b[31mred\u001b[0m',
  'backspace\b\b\bgone',
  'z\u0351\u0358\u0344a\u0353\u0359l\u0331\u033bg\u034fo\u0317',
  'שלום-עולם مرحبا',
  '👩‍👩‍👧‍👦🏴‍☠️',
  `x${'long-'.repeat(39)}x`,
  '  spaces   around  ',
  'tab\tand\nnew line',
  '__proto__',
  'constructor',
  '?launch=api#top&q=1;a=b',
];

/** A name that a folder can have. */
const folder = (text) => text.replaceAll('/', '|');

/** As the page writes out what cannot be seen. */
const shown = (text) =>
  text.replace(
    // eslint-disable-next-line no-control-regex
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff]/g,
    (c) => `\\u{${c.codePointAt(0).toString(16)}}`,
  );

let machine, browser, page, complaints;
let seen, go, press, says, gone;
let names, bridge;

before(async () => {
  names = HOSTILE.map(folder);
  const projects = Object.fromEntries(names.map((name) => [name, {}]));
  // Not every name can be the key of a literal.
  Object.defineProperty(projects, '__proto__', { value: {}, enumerable: true });
  machine = await world({
    ...projects,
    failing: { knobs: { exit_at_ms: 1, exit_code: 3, stderr_text: `${HOSTILE.slice(0, 48).join('\n')}\n` } },
    writing: {},
    busy: { knobs: { job_script: [[0, { state: 'working' }]] } },
  });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, go, press, says, gone } = person(page));
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(`${machine.url}/ui/projects`, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

/** Nothing of it ran, and nothing of it became an element. */
async function quiet() {
  const made = await page.evaluate(() => ({
    ran: window.__broken ?? null,
    elements: document.querySelectorAll(
      'main :is(script, img, iframe, object, embed, marquee, video, base, meta, style, form[action], math, template)',
    ).length,
  }));
  assert.deepEqual(made, { ran: null, elements: 0 });
}

test('H70: every hostile name is listed as text', async () => {
  await seen(part('project-row'));
  await page.setViewport({ width: 1280, height: 6000 });
  const known = (await machine.api('/api/projects')).map(({ name }) => name);
  // A folder whose name begins with a dot or hides something is no project.
  names = names.filter((name) => known.includes(name));
  assert.ok(names.length >= 50, `${names.length} of them are projects`);
  await page.waitForFunction(
    (where, many) => document.querySelectorAll(where).length === many,
    {},
    part('project-row'),
    known.length,
  );
  const rows = await page.$$eval(`${part('project-row')} .name`, (all) => all.map((name) => name.textContent));
  assert.deepEqual(rows.toSorted(), known.map(shown).toSorted());
  await page.setViewport({ width: 1280, height: 900 });
  await quiet();
});

test('each has a page of its own, and a launch dialog', async () => {
  for (const name of names) {
    await go(`/ui/projects/${encodeURIComponent(name)}`, part('project'));
    await page.waitForFunction(
      (wanted) => document.querySelector('h1')?.textContent === wanted,
      {},
      shown(name),
    );
  }
  for (const name of names.filter((_, at) => at % 6 === 0)) {
    await go(`/ui/projects?launch=${encodeURIComponent(name)}`, part('launch-submit'));
    const title = await page.$eval('#dialog-title', (heading) => heading.textContent);
    assert.ok(title.includes(shown(name)), title);
    await page.keyboard.press('Escape');
    await gone('dialog');
  }
  await quiet();
});

test('a bridge in such a place is launched, renamed and stopped by the usual buttons', async () => {
  const name = names[8];
  await go(`/ui/projects/${encodeURIComponent(name)}`, part('project'));
  await press(`${part('project')} ${part('act-launch')}`);
  await press(part('launch-submit'));
  await seen(`${part('session-row')}[data-status="running"]`);
  const [{ instance_id: id, project }] = await machine.api('/api/instances');
  assert.equal(project, name);
  await go(`/ui/s/${id}`, part('session'));
  const labels = HOSTILE.filter((text) => text.length <= 128);
  for (const label of labels) {
    const headers = { 'Content-Type': 'application/json', Origin: machine.url };
    const body = JSON.stringify({ label });
    const reply = await machine.ask(`/api/instances/${id}`, { method: 'PATCH', headers, body });
    if (!reply.ok) continue; // refused at the door
    const { label: kept } = await reply.json();
    if (kept === project) continue; // shown once
    const told = await page
      .waitForFunction(
        (wanted) => document.querySelector('.session-line .label')?.textContent === wanted,
        {},
        shown(kept),
      )
      .catch(() => null);
    assert.ok(told, `${kept} is shown as ${await page.$eval('.session-line', (line) => line.textContent)}`);
  }
  await press(part('act-stop'));
  const question = await page.$eval(part('confirm'), (asked) => asked.textContent);
  assert.ok(question.includes(shown(name)), question);
  await press(part('confirm-yes'));
  await seen(`${part('session')}[data-status="stopped"]`);
  await quiet();
});

test('H70: the last words of a bridge are shown as text', async () => {
  // Through the service: one that the command line starts may be taken over before it ends, and
  // such a bridge never becomes `error`.
  const headers = { 'Content-Type': 'application/json', Origin: machine.url };
  const body = JSON.stringify({ project: 'failing' });
  await machine.ask('/api/instances', { method: 'POST', headers, body });
  await go('/ui/', `${part('session-row')}[data-project="failing"][data-status="error"]`);
  await press(`[data-project="failing"] ${part('show-output')}`);
  const rows = await machine.api('/api/instances');
  bridge = rows.find(({ project }) => project === 'failing');
  const text = await page.$eval(part('output'), (output) => output.textContent);
  assert.ok(text.includes('<form action='), text);
  assert.equal(text.trim(), shown(bridge.error_detail).trim());
  await quiet();
});

test('H70: a log is shown as text while it grows', async () => {
  await machine.cli('start', 'writing', '--wait');
  const rows = await machine.api('/api/instances');
  const { instance_id: id } = rows.find(({ project }) => project === 'writing');
  await go(`/ui/s/${id}`, part('log-line'));
  const logs = join(machine.root, 'state', 'logs');
  const file = readdirSync(logs).find((name) => name.startsWith('writing-') && name.endsWith('.log'));
  // One at a time: only what can be seen is on the page.
  for (const text of HOSTILE.slice(0, 48)) {
    appendFileSync(join(logs, file), `2026-11-21T08:07:31.000Z [DEBUG] ${text} .\n`);
    await says(part('log-line'), `${text} .`);
  }
  await quiet();
});

test('a job says what it was asked, what it does and what came of it', async () => {
  await machine.cli('jobs', 'start', 'busy', 'Read it');
  await go('/ui/jobs', `${part('job-row')}[data-status="working"]`);
  const [{ id }] = await machine.api('/api/agents');
  const file = join(machine.env.CLAUDE_CONFIG_DIR, 'jobs', id, 'state.json');
  for (const [at, text] of HOSTILE.entries()) {
    const record = JSON.parse(readFileSync(file, 'utf8'));
    const next = { ...record, state: 'blocked', tempo: 'blocked', needs: `${at} ${text} .`, detail: text };
    writeFileSync(`${file}.new`, JSON.stringify(next));
    renameSync(`${file}.new`, file);
    // The service takes out what directs a line; what it hands on is shown as it is.
    let needs;
    do [{ needs }] = await machine.api('/api/agents');
    while (!needs?.startsWith(`${at} `));
    const told = await says(part('job-row'), shown(needs)).catch(() => null);
    assert.ok(told, `${needs} is not in ${await page.$eval(part('job-row'), (row) => row.textContent)}`);
  }
  await quiet();
});

test('the palette lists such names and goes where they are', async () => {
  await press(part('palette-open'));
  await page.type(part('palette-field'), 'onerror');
  await says('#palette [role=option]', '<img src=x onerror=');
  await page.keyboard.press('Escape');
  await gone('dialog');
  await quiet();
});

test('nothing was complained about', async () => {
  await page.close();
  assert.deepEqual(complaints.filter((line) => !line.startsWith('4')), []);
});
