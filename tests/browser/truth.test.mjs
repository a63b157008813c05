// What a newcomer does, on a phone and on a desk. Every sentence that the page shows on the way is
// compared with what happened.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { given, launch, tab } from './harness.mjs';
import { part, person, row } from './person.mjs';
import { world } from './world.mjs';

const PASSWORD = 'correct horse';
const HASH =
  '$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q$dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk';

const project = (name) => `${part('section-projects')} [data-project="${name}"]`;
const external = (name) => `${part('external-row')}[data-project="${name}"]`;

async function script(t, width, height) {
  const auth = { enabled: true, password_required: true, password_hash: HASH };
  const machine = await world(
    {
      api: {},
      // Told apart from its cause: the last thing it prints.
      told: { knobs: { stderr_text: 'space to show QR code' } },
      slow: { knobs: { ready_ms: 3_000 } },
      hand: {},
      docs: { trust: false },
    },
    { auth },
    PASSWORD,
  );
  const docs = join(machine.root, 'projects', 'docs');
  mkdirSync(join(docs, '.claude'));
  const hooks = { Stop: [{ hooks: [{ type: 'command', command: 'true' }] }] };
  writeFileSync(join(docs, '.claude', 'settings.json'), JSON.stringify({ hooks }));
  writeFileSync(join(docs, '.mcp.json'), JSON.stringify({ mcpServers: { jira: { command: 'x' } } }));
  const browser = await launch();
  let hand;
  t.after(async () => {
    await browser.close();
    hand?.kill('SIGKILL');
    await machine.close();
  });
  const { page, complaints } = await tab(browser);
  const { seen, press, says, gone, go } = person(page);
  await page.setViewport({ width, height });
  await page.goto(machine.url, { waitUntil: 'load' });
  const signIn = async () => {
    await page.waitForSelector('input[type=password]', { visible: true });
    await page.type('input[type=password]', PASSWORD);
    await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
  };
  await signIn();
  const home = () => go('/ui/', part('section-projects'));
  const of = async (name) =>
    (await machine.api('/api/instances')).find((instance) => instance.project === name);
  const text = (selector) => page.$eval(selector, (element) => element.innerText);

  await t.test('an untrusted folder is no warning', async () => {
    await seen(project('docs'));
    await go('/ui/doctor', '[data-check="workspace-trust"]');
    await seen('[data-testid="decision"] [data-check="workspace-trust"]');
    const warnings = await page.$$('[data-testid="warn"] [data-check], [data-testid="fail"] [data-check]');
    const pill = await page.$(part('ready-pill'));
    assert.equal(pill !== null, warnings.length > 0, 'the pill counts what stops work');
    await home();
  });

  await t.test('a launch says that it started when it did', async () => {
    await press(`${project('api')} ${part('act-launch')}`);
    await says('#launch-says', 'Server Mode in the project folder, ');
    await press(part('launch-submit'));
    await says(part('toast'), 'Server Mode started in api');
    assert.equal((await of('api')).status, 'running');
  });

  await t.test('a log is read', async () => {
    const { instance_id: id } = await of('api');
    await go(`/ui/s/${id}`, part('log'));
    await says(part('log-line'), 'Starting poll loop');
  });

  await t.test('why another crashed: the signal, not the last line of its output', async () => {
    await machine.cli('start', 'told', '--wait');
    await home();
    await seen(row('told', 'running'));
    const before = await of('told');
    await gone(`${row('told', 'running')} .chip`);
    process.kill(before.bridge_pid, 'SIGKILL');
    await seen(row('told', 'crashed'));
    const crashed = await of('told');
    const facts = await text(row('told', 'crashed'));
    const expected =
      crashed.exit_signal === 9 ? 'killed by signal KILL (137)' : 'exit status not known';
    assert.ok(facts.includes(expected), facts);
    assert.match(facts, /Last output:/);
    await go(`/ui/s/${crashed.instance_id}`, part('cause-card'));
    const heading = await text(`${part('cause-card')} h2`);
    assert.ok(heading.toLowerCase().includes(expected.slice(0, 10).toLowerCase()), heading);
    assert.ok(!heading.includes('QR code'), heading);
    await seen('[data-mark=ended]');
    // What it printed is in the log too, with its source.
    await says('[data-source=output]', 'space to show QR code');
    const mark = await text('[data-mark=ended]');
    const ended = new Date(crashed.ended_at).toTimeString().slice(0, 8);
    assert.ok(mark.includes(ended), `${mark} is not at ${ended}`);
  });

  await t.test('a resume is called running only when it runs', async () => {
    await machine.cli('start', 'slow', '--wait');
    await machine.cli('stop', 'slow');
    const { instance_id: id } = await of('slow');
    await go(`/ui/s/${id}`, `${part('session')}[data-status="stopped"]`);
    const told = page.evaluate(
      () =>
        new Promise((resolve) => {
          const look = () => {
            const toasts = [...document.querySelectorAll('[data-testid="toast"]')];
            const done = toasts.find(
              ({ textContent: words }) => words.includes('slow') && !words.includes('Starting'),
            );
            if (!done) return;
            watch.disconnect();
            resolve({
              toast: done.textContent,
              status: document.querySelector('[data-testid="session"]').dataset.status,
            });
          };
          const watch = new MutationObserver(look);
          watch.observe(document.body, { subtree: true, childList: true, characterData: true });
        }),
    );
    await press(part('act-resume'));
    await says(part('toast'), 'Starting in slow');
    const { toast, status } = await told;
    assert.equal(status, 'running', toast);
    assert.equal((await of('slow')).generation, 2);
  });

  await t.test('a stop names what it ends, and can be declined', async () => {
    await press(part('act-stop'));
    await says(part('confirm-no'), 'Keep running');
    await press(part('confirm-no'));
    await gone(part('confirm'));
    assert.equal((await of('slow')).status, 'running');
    await press(part('act-stop'));
    await press(part('confirm-yes'));
    await says(part('toast'), 'Stopped slow');
    assert.equal((await of('slow')).exit_reason, 'operator_stop');
  });

  await t.test('adopting promises only what it gives', async () => {
    hand = spawn(given('SVC_SIM_BIN'), ['remote-control'], {
      cwd: join(machine.root, 'projects', 'hand'),
      env: machine.env,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    await home();
    await press(`${external('hand')} ${part('act-manage')}`);
    await says(part('confirm'), 'Its log stays where it was started');
    await says(part('confirm-no'), 'Cancel');
    await press(part('confirm-yes'));
    await seen(row('hand', 'running'));
    const adopted = await of('hand');
    assert.deepEqual([adopted.adopted, adopted.has_log], [true, false]);
    await says(`${row('hand', 'running')} .chip`, 'adopted');
  });

  await t.test('trusting shows what a launch would show', async () => {
    await go('/ui/projects', `${part('project-row')}[data-project="docs"]`);
    await go('/ui/projects/docs', part('act-trust'));
    await press(part('act-trust'));
    await says(part('trust-gate'), '1 hook: Stop');
    await says(part('trust-gate'), 'MCP server jira');
    await press(part('trust-box'));
    await press(part('trust-confirm'));
    await says(part('toast'), 'docs is trusted');
  });

  await t.test('signing out asks which devices, and can be cancelled', async () => {
    if (width < 640) {
      await press(part('nav-more'));
      await Promise.all([page.waitForNavigation(), press(part('sign-out'))]);
    } else {
      await Promise.all([page.waitForNavigation(), press(part('rail-sign-out'))]);
    }
    const buttons = await page.$$eval('form button', (all) => all.map((one) => one.textContent));
    assert.deepEqual(buttons, ['Sign out this device', 'Sign out all devices']);
    const cancel = await page.$('a[href="/"]');
    await Promise.all([page.waitForNavigation({ waitUntil: 'load' }), cancel.click()]);
    await seen(part('section-projects'));
    const other = await machine.ask('/login', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Origin: machine.url },
      body: JSON.stringify({ password: PASSWORD }),
    });
    const cookie = other.headers.get('set-cookie').split(';')[0];
    await page.goto(`${machine.url}/logout`, { waitUntil: 'load' });
    await Promise.all([page.waitForNavigation(), page.click('form button')]);
    assert.equal(new URL(page.url()).pathname, '/login');
    const still = await machine.ask('/api/projects', { headers: { Cookie: cookie } });
    assert.equal(still.status, 200, 'the other device stays');
  });

  assert.deepEqual(complaints, []);
}

test('a newcomer on a phone is told what happens', (t) => script(t, 390, 844));
test('a newcomer at a desk is told what happens', (t) => script(t, 1440, 900));
