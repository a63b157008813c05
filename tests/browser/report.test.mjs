// Why a session stopped: the report of its page, copied as text; and the bundle for support, which
// is listed before it is saved.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, row, until } from './person.mjs';
import { findings, ruler } from './width.mjs';
import { world } from './world.mjs';

let machine, browser, report, page, complaints, seen, press, says, shot;

before(async () => {
  machine = await world({ api: {} });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, shot } = person(page));
  await page.setViewport({ width: 1440, height: 900 });
  await machine.cli('start', 'api');
  await page.goto(machine.url, { waitUntil: 'load' });
  await seen(row('api', 'running'));
  const rows = await (await fetch(`${machine.url}/api/v1/instances`)).json();
  process.kill(rows[0].bridge_pid, 'SIGKILL');
  await seen(row('api', 'crashed'));
  report = `${machine.url}/ui/s/${rows[0].instance_id}`;
  await page.goto(report, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

test('the report names the cause, how it is known and what to do next', async () => {
  await seen(part('report'));
  await says(part('report'), 'Why it stopped');
  // The card above has the cause and the output; the report does not say them again.
  await says(part('cause-card'), 'signal KILL');
  await says(part('report-evidence'), 'The signal did not come from this service.');
  await says(part('report-next'), 'svc resume');
  await shot('report-desk');
});

test('the report is copied as a text of its own', async () => {
  // What is copied is kept here: a browser without a desktop has no clipboard.
  await page.evaluate(() => {
    navigator.clipboard.writeText = async (text) => (window.copied = text);
  });
  await press(part('copy-report'));
  await until(() => page.evaluate(() => Boolean(window.copied)));
  const text = await page.evaluate(() => window.copied);
  assert.match(text, /signal KILL/);
  assert.match(text, /api/);
  assert.match(text, /resume/);
});

test('the bundle is listed first, and what is saved is what was listed', async () => {
  await page.goto(`${machine.url}/ui/doctor`, { waitUntil: 'load' });
  await press(part('support-bundle'));
  await seen(part('support-card'));
  const listed = await page.$$eval(`${part('support-card')} li`, (all) => all.map((one) => one.innerText));
  assert.ok(listed.length > 3, listed.join('\n'));
  await shot('support-desk');
  const dir = mkdtempSync(join(tmpdir(), 'svc-bundle-'));
  const client = await page.createCDPSession();
  await client.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: dir });
  await press(part('support-save'));
  await until(() => readdirSync(dir).some((name) => name.endsWith('.gz')));
  const [name] = readdirSync(dir);
  const members = execFileSync('tar', ['-tzf', join(dir, name)], { encoding: 'utf8' }).split('\n');
  for (const line of listed) {
    const own = line.split(/\s/)[0];
    assert.ok(members.some((member) => member.endsWith(own)), `${own} is listed and not in the file`);
  }
  const all = execFileSync('tar', ['-xzOf', join(dir, name)], { encoding: 'utf8', maxBuffer: 1 << 26 });
  assert.match(all, /crashed/);
});

test('bundle and report fit every width', async () => {
  const { look, resize } = await ruler(page);
  assert.deepEqual(findings(await look('support')), []);
  await page.goto(report, { waitUntil: 'load' });
  await seen(part('report'));
  assert.deepEqual(findings(await look('report')), []);
  await resize(390);
  await shot('report-phone');
  assert.deepEqual(complaints, []);
});
